/**
 * What a kernel's specification is made of: descriptions of arrays, scalars, scratch memory and
 * synchronisation objects. They are plain frozen data, made before any tracing, and carry the dtype in
 * their type, from which the types of the body's argument follow:
 *
 * | written                        | in the body            |
 * |--------------------------------|------------------------|
 * | `tensor(f32, [n])`              | `Ref<"f32">`           |
 * | `tensors(4, f32, [n])`         | `TensorList<"f32">`    |
 * | `scalar(f32)`                  | `Scalar<"f32">`        |
 * | `smem(bf16, [64, 64])`         | `Ref<"bf16">`          |
 * | `tmem(f32, [128, 128])`        | `Ref<"f32">`           |
 * | `barrier({ count: 2 })`        | `Barrier`              |
 * | `clusterBarrier("i")`          | `ClusterBarrier`       |
 * | `semaphore([4])`               | `Semaphore`            |
 * | `union({ a: smem(…) }, { … })` | `{ a: Ref<…>, … }`     |
 */
import type { DType, DTypeName } from "../formats/dtype.ts";
import { dtypes } from "../formats/dtype.ts";
import { shapeText } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import { parseSharedLayout, requireStorable } from "../layout/algebra/shared-layout.ts";
import type { SharedLayout } from "../layout/algebra/shared-layout.ts";
import { locatedAt, TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../support/options.ts";
import { isExtent, isPositiveInteger } from "./sizes.ts";
import { describe, wrongKind } from "./traced.ts";

/** An array argument. */
export interface TensorSpec<D extends DTypeName = DTypeName> {
  readonly kind: "array";
  /** The format of the elements. */
  readonly dtype: DType<D>;
  /** The extents of the axes. */
  readonly shape: readonly Size[];
  /** Elements from one index to the next along each axis; row-major where there are none. */
  readonly strides: readonly Size[] | undefined;
}

/** A list of array arguments of one format and shape. */
export interface TensorListSpec<D extends DTypeName = DTypeName> {
  readonly kind: "arrays";
  /** How many arrays there are. */
  readonly count: number;
  /** The format of their elements. */
  readonly dtype: DType<D>;
  /** The extents of the axes of each. */
  readonly shape: readonly Size[];
}

/** A scalar argument. */
export interface ScalarSpec<D extends DTypeName = DTypeName> {
  readonly kind: "scalar";
  /** The format of the number. */
  readonly dtype: DType<D>;
}

/** Memories that a kernel can have scratch in. */
export type ScratchSpace = "smem" | "gmem" | "tmem";

/** Scratch memory. */
export interface MemorySpec<
  D extends DTypeName = DTypeName,
  Space extends ScratchSpace = ScratchSpace,
> {
  readonly kind: "memory";
  /** Which memory it is. */
  readonly space: Space;
  /** The format of the elements. */
  readonly dtype: DType<D>;
  /** The extents of the axes. */
  readonly shape: readonly Size[];
  /** How shared memory is stored, where the user says so. */
  readonly layout: SharedLayout | undefined;
  /** How elements of tensor memory lie: a column each, in shared columns, or as scales of blocks, the same in all lanes or others in either half. */
  readonly lies: "apart" | "packed" | "scales" | "halved scales";
  /** Whether tensor memory belongs to a pair of blocks. */
  readonly pair: boolean;
  /** Where the program declares it. */
  readonly location: Location;
}

/** A barrier, or an array of them. */
export interface BarrierSpec {
  readonly kind: "barrier";
  /** How many arrivals complete a phase. */
  readonly arrivals: number;
  /** How many barriers there are. */
  readonly count: number;
  /** How many there are along each axis. */
  readonly shape: readonly number[];
  /** Where the program declares it. */
  readonly location: Location;
}

/** A barrier of the blocks of a cluster, or an array of them. */
export interface ClusterBarrierSpec {
  readonly kind: "cluster barrier";
  /** The axes along which blocks meet; all of the cluster where there are none. */
  readonly axes: readonly string[] | undefined;
  /** How many arrivals of each block complete a phase. */
  readonly arrivals: number;
  /** How many barriers each block has. */
  readonly count: number;
  /** How many there are along each axis. */
  readonly shape: readonly number[];
  /** Where the program declares it. */
  readonly location: Location;
}

/** Counters shared by the grid. */
export interface SemaphoreSpec {
  readonly kind: "semaphore";
  /** The extents of the axes. */
  readonly shape: readonly Size[];
  /** Whether the kernel leaves them at 0, as it found them. */
  readonly restored: boolean;
  /** Where the program declares it. */
  readonly location: Location;
}

/** Members of a group of a union, by name. */
export interface UnionGroup {
  readonly [name: string]: MemorySpec<DTypeName, "smem" | "tmem">;
}

/** Shared or tensor memory that groups of windows take turns in. */
export interface UnionSpec<Members extends UnionGroup = UnionGroup> {
  readonly kind: "union";
  /** The allocations that share the memory, by alternatives. */
  readonly groups: readonly UnionGroup[];
  /** Where the program declares it. */
  readonly location: Location;
  /** The members of all groups; exists in the types only. */
  readonly members?: Members;
}

/** What a kernel can ask for as scratch: memory, barriers, semaphores, or alternatives that share memory. */
export type ScratchSpec = MemorySpec | BarrierSpec | ClusterBarrierSpec | SemaphoreSpec | UnionSpec;

/** Scratch that can be allocated in the middle of a kernel: what lives within a block, and counters of the grid. */
export type ScopedSpec = Exclude<ScratchSpec, MemorySpec> | MemorySpec<DTypeName, "smem" | "tmem">;

/** An array argument of a kernel; contiguous in row-major order unless `strides` are given. */
export function tensor<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly Size[],
  options: { readonly strides?: readonly Size[] } = {},
): TensorSpec<D> {
  const location = captureLocation();
  requireDType(dtype, location);
  requireShape("an array", shape, location);
  requireKnownOptions("tensor", options, ["strides"], "TW1033", location);
  const { strides } = options;
  if (strides !== undefined) requireStrides(shape, strides, location);
  return Object.freeze({
    kind: "array",
    dtype,
    shape: Object.freeze([...shape]),
    strides: strides && Object.freeze([...strides]),
  });
}

/**
 * A list of `count` array arguments of one format and shape, contiguous in row-major order. The kernel picks one by a number or by
 * an index that is known at run time: `xs.at(group)`.
 */
export function tensors<D extends DTypeName>(
  count: number,
  dtype: DType<D>,
  shape: readonly Size[],
): TensorListSpec<D> {
  const location = captureLocation();
  if (!isPositiveInteger(count) || count > mostArrays)
    wrongKind(
      "the length of a list of arrays",
      `a whole number from 1 to ${mostArrays}`,
      count,
      location,
    );
  requireDType(dtype, location);
  requireShape("an array", shape, location);
  return Object.freeze({ kind: "arrays", count, dtype, shape: Object.freeze([...shape]) });
}

/** A kernel has 4 KiB of parameters on every target; the rest is for its other arguments. */
const mostArrays = 256;

/** A scalar argument of a kernel. */
export function scalar<D extends DTypeName>(dtype: DType<D>): ScalarSpec<D> {
  requireDType(dtype, captureLocation());
  return Object.freeze({ kind: "scalar", dtype });
}

/**
 * Shared memory of the block, uninitialised. How its elements are stored is chosen by the compiler
 * unless `layout` says it: a layout, or its text such as `shared(tile 8 64, swizzle 128)`.
 */
export function smem<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  options: { readonly layout?: SharedLayout | string } = {},
): MemorySpec<D, "smem"> {
  const location = captureLocation();
  requireKnownOptions("smem", options, ["layout"], "TW1033", location);
  const { layout } = options;
  const stated = layout === undefined ? undefined : sharedLayoutOf(layout, shape, location);
  return memory("smem", dtype, shape, location, { layout: stated });
}

/** The layout that is meant, which must be able to store the shape. */
function sharedLayoutOf(
  layout: SharedLayout | string,
  shape: readonly number[],
  location: Location,
): SharedLayout {
  const parsed = locatedAt(location, () =>
    typeof layout === "string" ? parseSharedLayout(layout) : layout,
  );
  requireStorable(parsed, shape, location);
  return parsed;
}

/** Global memory shared by the grid, uninitialised. */
export function gmem<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly Size[],
): MemorySpec<D, "gmem"> {
  return memory("gmem", dtype, shape, captureLocation());
}

/** Options of `tmem`. */
export interface TmemOptions {
  /** Elements of 8 and 16 bits share columns, as left factors of products do; sums of 16 bits have a column each. */
  readonly packed?: boolean;
  /**
   * They are scales of blocks along k, [rows, blocks], multiples of 128 and 4. `"halves"`, [256, blocks], are those of b of a pair whose blocks have 64 rows
   * each: rows 0 … 127 are for the first half of the columns, and 128 … 255 for the second.
   */
  readonly scales?: boolean | "halves";
  /** It belongs to products of a pair of blocks: both have it at the same columns. All tensor memory of a kernel does, or none. */
  readonly pair?: boolean;
}

/**
 * Tensor memory of the block, uninitialised: tiles of 128 or 64 rows, in which `tcgen05Mma` adds up, or what it multiplies. Axes in front are tiles side by
 * side.
 */
export function tmem<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  options: TmemOptions = {},
): MemorySpec<D, "tmem"> {
  const location = captureLocation();
  requireKnownOptions("tmem", options, ["packed", "scales", "pair"], "TW1033", location);
  const { packed = false, scales = false, pair = false } = options;
  for (const [name, flag] of Object.entries({ packed, pair }))
    if (typeof flag !== "boolean") wrongKind(`${name} of tmem`, "true or false", flag, location);
  if (typeof scales !== "boolean" && scales !== "halves")
    wrongKind("scales of tmem", 'true, false or "halves"', scales, location);
  if (packed && scales !== false) wrongKind("packed of tmem", "false of scales", packed, location);
  return memory("tmem", dtype, shape, location, {
    lies: scales === "halves" ? "halved scales" : scales ? "scales" : packed ? "packed" : "apart",
    pair,
  });
}

function memory<D extends DTypeName, Space extends ScratchSpace>(
  space: Space,
  dtype: DType<D>,
  shape: readonly Size[],
  location: Location,
  {
    layout,
    lies = "apart",
    pair = false,
  }: Partial<Pick<MemorySpec, "layout" | "lies" | "pair">> = {},
): MemorySpec<D, Space> {
  requireDType(dtype, location);
  requireShape(space, shape, location);
  return Object.freeze({
    kind: "memory",
    space,
    dtype,
    shape: Object.freeze([...shape]),
    layout,
    lies,
    pair,
    location,
  });
}

/** `count` barriers, or so many along each axis, each of which completes a phase after `arrivals` arrivals. */
export function barrier(
  options: { readonly arrivals?: number; readonly count?: number | readonly number[] } = {},
): BarrierSpec {
  const location = captureLocation();
  requireKnownOptions("barrier", options, ["arrivals", "count"], "TW1033", location);
  const { arrivals = 1, count = 1 } = options;
  return Object.freeze({
    kind: "barrier",
    ...barrierArray("a barrier", arrivals, count, location),
    location,
  });
}

/**
 * Barriers of the blocks of a cluster along the named axes, all of the cluster's unless given: each block has `count` of them, or so many along each axis,
 * and phases complete after `arrivals` arrivals of every one of these blocks.
 */
export function clusterBarrier(
  axes?: string | readonly string[],
  options: { readonly arrivals?: number; readonly count?: number | readonly number[] } = {},
): ClusterBarrierSpec {
  const location = captureLocation();
  requireKnownOptions("clusterBarrier", options, ["arrivals", "count"], "TW1033", location);
  const { arrivals = 1, count = 1 } = options;
  return Object.freeze({
    kind: "cluster barrier",
    axes: axes === undefined ? undefined : clusterAxes(axes, location),
    ...barrierArray("a cluster's barrier", arrivals, count, location),
    location,
  });
}

function clusterAxes(given: unknown, location: Location): readonly string[] {
  const axes: readonly unknown[] = Array.isArray(given) ? given : [given];
  const named = axes.filter((axis, at) => typeof axis === "string" && axes.indexOf(axis) === at);
  if (named.length === 0 || named.length !== axes.length)
    return wrongKind(
      "what clusterBarrier takes",
      'an axis of the cluster, "i", or several, ["i", "j"]',
      given,
      location,
    );
  return Object.freeze(named.map(String));
}

/** Barriers row by row, and how many arrivals each of them counts. */
function barrierArray(
  what: string,
  arrivals: number,
  count: number | readonly number[],
  location: Location,
): Pick<BarrierSpec, "arrivals" | "count" | "shape"> {
  if (!isPositiveInteger(arrivals))
    wrongKind(`arrivals of ${what}`, "a positive whole number", arrivals, location);
  const shape: readonly unknown[] = Array.isArray(count) ? count : [count];
  if (shape.length === 0 || !shape.every(isPositiveInteger))
    return wrongKind(
      `count of ${what}`,
      "a positive whole number, or one for each axis",
      count,
      location,
    );
  const barriers = shape.reduce((product, extent) => product * extent, 1);
  return { arrivals, count: barriers, shape: Object.freeze([...shape]) };
}

/**
 * Counters in global memory, shared by the grid and 0 at launch; one without a shape. Those of a kernel that leaves them at 0 are
 * `restored`: launches that keep their memory then clear it once, and not each time.
 */
export function semaphore(
  shape: readonly Size[] = [],
  options: { readonly restored?: boolean } = {},
): SemaphoreSpec {
  const location = captureLocation();
  requireShape("a semaphore", shape, location);
  requireKnownOptions("semaphore", options, ["restored"], "TW1033", location);
  const { restored = false } = options;
  if (typeof restored !== "boolean")
    wrongKind("restored of a semaphore", "true or false", restored, location);
  return Object.freeze({ kind: "semaphore", shape: Object.freeze([...shape]), restored, location });
}

type Intersect<U> = (U extends unknown ? (item: U) => void : never) extends (item: infer I) => void
  ? I
  : never;
type Flatten<T> = { readonly [K in keyof T]: T[K] };

/** Shared or tensor memory for groups that are never alive together: members of one group lie side by side. */
export function union<const Groups extends readonly UnionGroup[]>(
  ...groups: Groups
): UnionSpec<Flatten<Intersect<Groups[number]>> & UnionGroup> {
  const location = captureLocation();
  const owners = new Map<string, number>();
  let space: ScratchSpace | undefined;
  for (const [position, group] of groups.entries()) {
    if (!isRecord(group) || !isReadable(group, []))
      wrongKind("a group of union", "an object with a name for each", group, location);
    for (const [name, member] of Object.entries(group)) {
      const given: unknown = member;
      const own = isSpec(given, ["memory"]) ? given.space : undefined;
      if (own === undefined || own === "gmem")
        throw notInUnion(name, "smem(dtype, shape) or tmem(dtype, shape)", member, location);
      space ??= own;
      if (own !== space)
        throw notInUnion(name, `${space}(dtype, shape), like the first`, member, location);
      if (owners.has(name)) {
        throw new TilewrightError({
          code: "TW1021",
          message: `${name} names members of group ${owners.get(name)} and of group ${position}`,
          location,
          expected: "a name for each member",
          found: `${name} twice`,
        });
      }
      owners.set(name, position);
    }
  }
  if (owners.size === 0) wrongKind("a union", "groups with members", undefined, location);
  return Object.freeze({ kind: "union", groups: Object.freeze([...groups]), location });
}

function notInUnion(
  name: string,
  expected: string,
  member: unknown,
  location: Location,
): TilewrightError {
  return new TilewrightError({
    code: "TW1031",
    message: `member ${name} of a union lies in another memory`,
    location,
    expected,
    found: describeSpec(member),
  });
}

type AnySpec = TensorSpec | TensorListSpec | ScalarSpec | ScratchSpec;

/** Whether `item` is a description of one of `kinds`. */
export function isSpec<K extends AnySpec["kind"]>(
  item: unknown,
  kinds: readonly K[],
): item is Extract<AnySpec, { readonly kind: K }> {
  if (typeof item !== "object" || item === null || !("kind" in item)) return false;
  return (kinds as readonly unknown[]).includes(item.kind);
}

export const specNames: { readonly [K in AnySpec["kind"]]: string } = {
  array: "tensor(…)",
  arrays: "tensors(…)",
  scalar: "scalar(…)",
  memory: "smem(…), gmem(…) or tmem(…)",
  barrier: "barrier(…)",
  "cluster barrier": "clusterBarrier(…)",
  semaphore: "semaphore(…)",
  union: "union(…)",
};

const specKinds = Object.keys(specNames) as readonly AnySpec["kind"][];

/** A description in words, for messages. */
export function describeSpec(item: unknown): string {
  if (!isSpec(item, specKinds)) return describe(item);
  return item.kind === "memory" ? `${item.space}(…)` : specNames[item.kind];
}

function requireDType(dtype: unknown, location: Location): void {
  if (!Object.values(dtypes).some((known) => known === dtype))
    wrongKind("a dtype", "one of the number formats, such as f32", dtype, location);
}

function requireShape(what: string, shape: unknown, location: Location): void {
  if (Array.isArray(shape) && shape.every(isExtent)) return;
  throw new TilewrightError({
    code: "TW1029",
    message: `${what} has a shape that is not a list of sizes`,
    location,
    expected: "positive whole numbers and named dimensions",
    found: Array.isArray(shape) ? `[${shape.map(sizeOrItem).join(", ")}]` : describe(shape),
  });
}

function sizeOrItem(item: unknown): string {
  return isExtent(item) ? shapeText([item]).slice(1, -1) : describe(item);
}

function requireStrides(shape: readonly Size[], strides: unknown, location: Location): void {
  if (Array.isArray(strides) && strides.length === shape.length && strides.every(isExtent)) return;
  throw new TilewrightError({
    code: "TW1030",
    message: `strides do not fit an array of shape ${shapeText(shape)}`,
    location,
    expected: `${shape.length} positive strides, in elements`,
    found: Array.isArray(strides) ? `[${strides.map(sizeOrItem).join(", ")}]` : describe(strides),
  });
}
