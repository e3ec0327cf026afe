/**
 * The memory order and the scope of an access, as options say them and as the op has them.
 *
 *   x.store(rows);  flag.store(1, { memoryOrder: "release" });                           one block
 *   whileLoop(…, () => flag.loadScalar({ memoryOrder: "acquire" }));  x.load();          another, once it has found 1
 */
import { loadOrders, storeOrders } from "../ir/ops/memory.ts";
import { memoryOrders, memoryScopes } from "../ir/schema.ts";
import type { MemoryOrder, MemoryScope } from "../ir/schema.ts";
import type { MemorySpace } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";

export type { MemoryOrder, MemoryScope } from "../ir/schema.ts";

/** What a load may say of its order: without a word it is weak, and nobody may write there meanwhile. */
export type LoadOrder = "weak" | (typeof loadOrders)[number];

/** What a store may say of its order. */
export type StoreOrder = "weak" | (typeof storeOrders)[number];

/** Within which threads an access with a memory order is atomic, and orders what stands around it. */
export interface ScopeOption {
  /** The threads that share it: of the block, the cluster, the device, or whoever shares the memory. Of global memory the device's unless given, of shared memory the block's, of a peer's the cluster's. */
  readonly scope?: MemoryScope;
}

interface GivenOrder {
  readonly memoryOrder?: unknown;
  readonly scope?: unknown;
}

/** The attributes of an access with a memory order; undefined of a weak one. */
export interface OrderAttributes<O extends MemoryOrder> {
  readonly order: O;
  readonly scope: MemoryScope;
}

const defaultScopes: { readonly [S in MemorySpace]: MemoryScope } = {
  gmem: "device",
  smem: "block",
  peer: "cluster",
  tmem: "block",
};

export const orderOptions = ["memoryOrder", "scope"] as const;

export function loadOrder(
  given: GivenOrder,
  space: MemorySpace,
  location: Location,
): OrderAttributes<(typeof loadOrders)[number]> | undefined {
  return strongOrder("load", loadOrders, given, space, location);
}

export function storeOrder(
  given: GivenOrder,
  space: MemorySpace,
  location: Location,
): OrderAttributes<(typeof storeOrders)[number]> | undefined {
  return strongOrder("store", storeOrders, given, space, location);
}

/** Updates are never weak; those that say nothing are relaxed for the device. */
export function updateOrder(
  method: string,
  given: GivenOrder,
  space: MemorySpace,
  location: Location,
): OrderAttributes<MemoryOrder> | undefined {
  const { memoryOrder, scope } = given;
  if (memoryOrder === undefined && scope === undefined) return undefined;
  const order = wordOf(method, memoryOrders, memoryOrder ?? "relaxed", location);
  return { order, scope: scopeOf(scope, space, location) };
}

function strongOrder<O extends MemoryOrder>(
  method: string,
  orders: readonly O[],
  { memoryOrder = "weak", scope }: GivenOrder,
  space: MemorySpace,
  location: Location,
): OrderAttributes<O> | undefined {
  if (memoryOrder !== "weak")
    return {
      order: wordOf(method, orders, memoryOrder, location, ["weak"]),
      scope: scopeOf(scope, space, location),
    };
  if (scope === undefined) return undefined;
  throw new TilewrightError({
    code: "TW1044",
    message: `a weak ${method} has no scope`,
    location,
    expected: `a memoryOrder beside the scope: ${quoted(orders)}`,
    found: `scope: ${textOf(scope)}`,
    remedy: `write memoryOrder: "relaxed", or leave out scope`,
  });
}

function wordOf<O extends string>(
  method: string,
  orders: readonly O[],
  given: unknown,
  location: Location,
  others: readonly string[] = [],
): O {
  const found = orders.find((order) => order === given);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW1044",
    message: `${method} has no memory order ${textOf(given)}`,
    location,
    expected: quoted([...others, ...orders]),
    found: textOf(given),
  });
}

function scopeOf(given: unknown, space: MemorySpace, location: Location): MemoryScope {
  if (given === undefined) return defaultScopes[space];
  const found = memoryScopes.find((scope) => scope === given);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW1044",
    message: `there is no scope ${textOf(given)}`,
    location,
    expected: quoted(memoryScopes),
    found: textOf(given),
  });
}

/** A load with a memory order goes past the caches that could be told to keep what it reads. */
export function refuseEviction(evict: unknown, location: Location): void {
  if (evict === undefined) return;
  throw new TilewrightError({
    code: "TW1044",
    message: "a load with a memory order tells the cache nothing",
    location,
    expected: "a load without evict",
    found: `evict: ${textOf(evict)}`,
    remedy: "leave out evict",
  });
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(", ");
}

function textOf(given: unknown): string {
  return typeof given === "string" ? `"${given}"` : String(given);
}
