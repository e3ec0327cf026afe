/**
 * Questions about what an op does. All answers follow from its traits in the op table:
 *
 *   %3 = slice_ref %0 …        windowedBy: %0
 *   store %3, %2               accessesOf: %3 is written by lanes;  hasEffect
 *   %4 = reshape %2            reusedBy: %2, whose registers %4 has;  onlyComputes
 */
import type { AnyOp, OpOf, Region, Value } from "./node.ts";
import { opTable } from "./ops.ts";
import type { RepeatingKind, WindowKind } from "./ops.ts";
import type {
  Access,
  AccessesByMethod,
  MemoryOrder,
  MemoryScope,
  Scope,
  Synchronization,
  Traits,
} from "./schema.ts";
import { onceForEach } from "../support/memo.ts";
import { regionList } from "./traverse.ts";

export function traitsOf({ kind }: Pick<AnyOp, "kind">): Traits {
  return opTable[kind].traits;
}

/** The values of a named operand: none where it is optional and absent, several where it is a list. */
function operandsNamed(op: AnyOp, name: string): readonly Value[] {
  const operands = op.operands as { readonly [name: string]: Value | readonly Value[] | undefined };
  const found = operands[name];
  if (found === undefined) return noValues;
  return "id" in found ? [found] : found;
}

const noValues: readonly Value[] = Object.freeze([]);
const noAccesses: readonly OperandAccess[] = Object.freeze([]);

/** Whether the op only computes: equal ones may be merged and one may move. */
export function onlyComputes(op: AnyOp): boolean {
  return traitsOf(op).may === "anything";
}

/** Whether the op does something that others can see, itself or in its regions. */
export function hasEffect(op: AnyOp): boolean {
  const { may } = traitsOf(op);
  return may === "as its regions" ? regionList(op).some(regionHasEffect) : may === "nothing";
}

export function regionHasEffect({ ops }: Region): boolean {
  for (const op of ops) if (hasEffect(op)) return true;
  return false;
}

/**
 * The first op, of these or in their regions, whose results may depend on other elements than those in the same place, on the place, or on who
 * computes them.
 */
export function mixingOp(ops: readonly AnyOp[]): AnyOp | undefined {
  for (const op of ops) {
    const { elements } = traitsOf(op);
    if (elements === "each") continue;
    if (elements === "as its regions") {
      const inside = mixingOp(regionList(op).flatMap((region) => region.ops));
      if (inside !== undefined) return inside;
    } else if (elements === "mixed" || isGiven(op, elements.eachWithout)) return op;
  }
  return undefined;
}

function isGiven({ attributes }: AnyOp, name: string): boolean {
  return (attributes as { readonly [name: string]: unknown })[name] !== undefined;
}

/** What the op does to one of its operands. */
export interface OperandAccess extends Access {
  readonly value: Value;
}

/** What the op does to its operands by the chosen method; by any of them where none is chosen. */
export function accessesOf(op: AnyOp, method?: string): readonly OperandAccess[] {
  const { accesses } = traitsOf(op);
  if (!("by" in accesses) && accesses.length === 0) return noAccesses;
  const found: OperandAccess[] = [];
  const made = accessesBy(op, accesses, method);
  for (let place = 0; place < made.length; place += 1) {
    const access = made[place] as Access;
    const { of, mode, actor, proxy, done } = access;
    const values = operandsNamed(op, of);
    for (let index = 0; index < values.length; index += 1)
      found.push({ of, mode, actor, proxy, done, value: values[index] as Value });
  }
  return found;
}

function accessesBy(
  { kind }: AnyOp,
  accesses: Traits["accesses"],
  method: string | undefined,
): readonly Access[] {
  if (!("by" in accesses)) return accesses;
  if (method === undefined) return byAnyMethod(accesses);
  const chosen = accesses.by[method];
  if (chosen === undefined) throw new Error(`${kind} has no method ${method}`);
  return chosen;
}

const byAnyMethod = onceForEach(({ by }: AccessesByMethod): readonly Access[] =>
  Object.values(by).flat(),
);

/** The value whose memory the results are a window on, in this block or in another. */
export function windowedBy(op: AnyOp): Value | undefined {
  const { results } = traitsOf(op);
  if (typeof results !== "object") return undefined;
  if ("window" in results) return operandsNamed(op, results.window)[0];
  return "peer" in results ? operandsNamed(op, results.peer)[0] : undefined;
}

/** The arrays of which the result is one; none where it is no such choice. */
export function chosenAmong(op: AnyOp): readonly Value[] {
  const { results } = traitsOf(op);
  return typeof results === "object" && "oneOf" in results
    ? operandsNamed(op, results.oneOf)
    : noValues;
}

/** Whether the op's result is a window on its `ref`. */
export function isWindow(op: AnyOp): op is OpOf<WindowKind> {
  return "ref" in op.operands && windowedBy(op) === op.operands.ref;
}

/** Whether the op's regions run again with what they carry. */
export function repeats(op: AnyOp): op is OpOf<RepeatingKind> {
  return traitsOf(op).regions === "repeat";
}

/** Operands whose registers live on under another name: those of results, of carries, of what is yielded. */
export function reusedBy(op: AnyOp): readonly Value[] {
  const { results } = traitsOf(op);
  if (typeof results !== "object") return [];
  if ("same" in results) return operandsNamed(op, results.same);
  return "handed" in results ? operandsNamed(op, results.handed) : [];
}

/** Whether the results' registers may be those of other values too. */
export function sharesRegisters(op: AnyOp): boolean {
  const { results } = traitsOf(op);
  return typeof results === "object"
    ? "same" in results || "handed" in results
    : results === "fixed";
}

/** Whether the op makes memory or barriers of the block's own, rather than of the grid's. */
export function allocatesShared(op: AnyOp): boolean {
  if (traitsOf(op).results !== "memory") return false;
  return op.results.every(
    ({ type }) => type.kind === "barrier" || (type.kind === "ref" && type.space === "smem"),
  );
}

/** Whether it makes memory of the block: shared or tensor memory, or barriers. */
export function allocatesInBlock(op: AnyOp): boolean {
  const [result] = op.results;
  const isTensor = result?.type.kind === "ref" && result.type.space === "tmem";
  return allocatesShared(op) || (isTensor && traitsOf(op).results === "memory");
}

/** What an access says of the order of what stands around it. */
export interface StatedOrder {
  readonly order: MemoryOrder;
  readonly scope: MemoryScope;
}

/** The order and the scope of an access of memory that others touch meanwhile; of atomic updates that say nothing, relaxed for the device. */
export function statedOrder(op: AnyOp): StatedOrder {
  const { attributes } = op;
  const { order = "relaxed", scope = "device" } = "order" in attributes ? attributes : {};
  return { order, scope };
}

export function releases({ order }: StatedOrder): boolean {
  return order === "release" || order === "acq_rel";
}

export function acquires({ order }: StatedOrder): boolean {
  return order === "acquire" || order === "acq_rel";
}

const before: Synchronization = { who: "thread", part: "whole", at: "before" };
const after: Synchronization = { who: "thread", part: "whole", at: "after" };

/** Where the op's instructions synchronize threads. */
export function synchronizationsOf(op: AnyOp): readonly Synchronization[] {
  const { synchronizes } = traitsOf(op);
  if (synchronizes !== "as ordered") return synchronizes;
  const stated = statedOrder(op);
  return [...(releases(stated) ? [before] : []), ...(acquires(stated) ? [after] : [])];
}

/** Whose accesses the op acquires; of a stated order the widest, since what is acquired may be handed on. */
export function acquireScope(op: AnyOp): Scope {
  const { acquires: scope } = traitsOf(op);
  if (scope !== "as ordered") return scope;
  return acquires(statedOrder(op)) ? "grid" : "nobody";
}

/** To whom the op releases what threads did before it; by a stated order to the widest. */
export function releaseScope(op: AnyOp): Scope {
  const { releases: to } = traitsOf(op);
  if (to === "as ordered") return releases(statedOrder(op)) ? "grid" : "nobody";
  if (typeof to === "string") return to;
  const attributes = op.attributes as { readonly [name: string]: unknown };
  const listed = [attributes[to.with] ?? []].flat();
  const given = operandsNamed(op, to.with).length > 0 || listed.length > 0;
  return given ? to.scope : to.otherwise;
}

/** Whether it touches memory or barriers of other blocks of the cluster, or may, besides windows that are a peer's. */
export function reachesPeers(op: AnyOp): boolean {
  const isForPair = "pair" in op.attributes && op.attributes.pair === true;
  return isForPair || releaseScope(op) === "cluster";
}
