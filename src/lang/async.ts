/**
 * Asynchronous copies and products. Each function starts something and returns at once; the program
 * goes on to use the result only after the wait that belongs to it:
 *
 * | started by                     | done when                                                     |
 * |--------------------------------|---------------------------------------------------------------|
 * | `copyAsync` into shared memory | `barrier.wait()`, the copy having arrived on it               |
 * | `copyAsync` into global memory | `waitGroup()`, or the kernel's end                            |
 * | `wgmma`                        | `accumulator.wait()`                                          |
 */
import { bool } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type { copyReductions, evictions } from "../ir/ops/asynchronous.ts";
import { isSummedShort, promotedDepth } from "../ir/precisions.ts";
import type { DotAccumulation } from "../ir/precisions.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { promiseOf } from "./access.ts";
import { Accumulator, accumulator as newAccumulator } from "./accumulator.ts";
import { when } from "./control.ts";
import { multicastAxes, multicastAxis, peersAlong } from "./multicast.ts";
import { PickedRef } from "./gathered-ref.ts";
import { Ref } from "./ref.ts";
import { Scalar } from "./elementwise.ts";
import { barrierOperands } from "./barriers.ts";
import type { Barrier } from "./barriers.ts";
import { constant, requireAccumulation } from "./create.ts";
import { Tile } from "./tile.ts";
import { activeTrace, emit, emitOrigin } from "./trace.ts";
import { all, slice } from "./window.ts";
import { pairOf } from "./tensor-memory.ts";
import { origin, useValue, wrongKind } from "./traced.ts";

/** Options of `copyAsync`. */
export interface CopyOptions {
  /** Where the copy arrives when it has landed; needed for a copy into shared memory. */
  readonly barrier?: Barrier;
  /** What stands where the source overhangs its array; zeros by default. */
  readonly fill?: "zero" | "nan";
  /** The axis of the cluster, or the axes, along which every block receives the copy. */
  readonly multicast?: string | readonly string[];
  /**
   * All blocks along the axes of the multicast call it, and each copies an equal part for all; the copy arrives once in each block, when
   * all of it has landed there.
   */
  readonly collective?: boolean;
  /**
   * Both blocks of a pair copy, and `barrier` is that of the pair's leader, the block with the even rank: it has one arrival, when both windows have landed.
   */
  readonly pair?: boolean;
  /** Promises that both windows are in bounds: nothing is clipped or tested. Simulator and emulator find broken promises. */
  readonly inBounds?: boolean;
  /**
   * Combines with what is in global memory instead of overwriting it: "add", "min", "max", the bits ("and", "or", "xor"), or counting in u32: "inc" up to
   * the element, then from 0 again; "dec" down to 0, then from the element again.
   */
  readonly reduction?: Exclude<(typeof copyReductions)[number], "none">;
  /** Tells the L2 cache to drop what is copied first, since nobody reads it again, or last. */
  readonly evict?: (typeof evictions)[number];
}

const copyOptions: readonly (keyof CopyOptions)[] = [
  ...(["barrier", "fill", "multicast", "collective", "pair"] as const),
  ...(["inBounds", "reduction", "evict"] as const),
];

/** Starts a copy between global and shared memory; f32 may be copied into shared tf32, to which it is rounded. */
export function copyAsync<D extends DTypeName>(
  source: Ref<D>,
  destination: Ref<NoInfer<D> | (D extends "f32" ? "tf32" : never)>,
  options: CopyOptions = {},
): void {
  const location = captureLocation();
  for (const [role, ref] of Object.entries({ source, destination }))
    if (!(ref instanceof Ref))
      wrongKind(`the ${role} of a copy`, "a window", ref, location, pickedRemedy(ref));
  requireKnownOptions("copyAsync", options, copyOptions, "TW1033", location);
  const { barrier, fill = "zero", multicast, collective = false } = options;
  const { reduction = "none", evict } = options;
  if (evict !== undefined && typeof evict !== "string")
    wrongKind("evict of a copy", '"first" or "last"', evict, location);
  if (typeof collective !== "boolean")
    wrongKind("collective of a copy", "true or false", collective, location);
  const stated = {
    ...promiseOf("copyAsync", options, location),
    ...pairOf("copyAsync", options, location),
  };
  const axes = multicastAxes(multicast, location);
  const copy = (from: Ref, into: Ref, parts?: number): void => {
    const operands = {
      source: useValue(from, location),
      destination: useValue(into, location),
      ...(barrier !== undefined && barrierOperands(barrier, location)),
    };
    const shared = { multicast: [...axes], parts, ...stated };
    emit("copy_async", operands, { fill, ...shared, reduction, evict }, location);
  };
  if (collective) copyCollectively(source, destination, axes, copy, location);
  else copy(source, destination);
}

/** Has each block along the axes copy its part, or the first of them all of it where parts would be too small. */
function copyCollectively(
  source: Ref,
  destination: Ref,
  axes: readonly string[],
  copy: (from: Ref, into: Ref, parts?: number) => void,
  location: Location,
): void {
  const trace = activeTrace("copyAsync", location);
  if (axes.length === 0)
    throw new TilewrightError({
      code: "TW2069",
      message: "a collective copy without blocks that share it",
      location,
      expected: 'axes of the cluster, multicast: "i"',
      found: "no multicast",
      remedy: "say in `multicast` along which axes of the cluster blocks share the copy",
    });
  // Mistakes are those of the whole copy.
  trace.region(
    "a collective copy",
    [],
    location,
    () => {
      copy(source, destination);
      return [];
    },
    { apart: true },
  );
  atLocation(location, () => {
    const peers = peersAlong(trace, axes, location);
    const shape = destination.shape.map(Number);
    const axis = multicastAxis({ dtype: destination.dtype, shape }, peers.count);
    if (axis === undefined) {
      when(peers.part().eq(0), () => {
        copy(source, destination);
      });
      return;
    }
    const size = (shape[axis] ?? 0) / peers.count;
    const before = Array.from({ length: axis }, () => all);
    const part = slice(peers.part().mul(size), size);
    copy(source.at(...before, part), destination.at(...before, part), peers.count);
  });
}

/** What is picked element by element is no window that a copy could take. */
function pickedRemedy(item: unknown): string | undefined {
  return item instanceof PickedRef
    ? "what index tiles pick is loaded and stored by threads: buffer.store(x.at(ids).load())"
    : undefined;
}

/**
 * Closes the open group of copies into global memory: the thread's, or inside `warps` the warp's. Groups are for waits that leave the newest ones running;
 * `waitGroup()` needs none.
 */
export function commitGroup(): void {
  emit("commit_group", {}, {}, captureLocation());
}

/**
 * Waits for all copies into global memory of the thread and of its warps; with `pending`, until at most so many of the thread's groups, and of those of each of
 * its warps, are unfinished. With `read`, it waits only until their shared memory may be overwritten. Inside `warps` it waits for the warp's own copies alone.
 */
export function waitGroup(pending = 0, options: { readonly read?: boolean } = {}): void {
  const location = captureLocation();
  requireKnownOptions("waitGroup", options, ["read"], "TW1033", location);
  const { read = false } = options;
  emit("wait_group", {}, { pending, read }, location);
}

/** Asks for a window on global memory to be brought nearer. */
export function prefetch(ref: Ref): void {
  const location = captureLocation();
  if (!(ref instanceof Ref)) wrongKind("what prefetch takes", "a ref", ref, location);
  emit("prefetch", { ref: useValue(ref, location) }, {}, location);
}

/**
 * Asks for the tensor maps by which copies from or into the array of a window are made, where the kernel is to do so
 * elsewhere than at its start.
 */
export function prefetchMaps(ref: Ref): void {
  const location = captureLocation();
  if (!(ref instanceof Ref)) wrongKind("what prefetchMaps takes", "a ref", ref, location);
  emit("prefetch_maps", { ref: useValue(ref, location) }, {}, location);
}

/** Makes this thread's accesses to shared memory visible to copies and wgmma ordered after it. */
export function commitShared(): void {
  emit("proxy_fence", {}, { space: "smem" }, captureLocation());
}

/** Makes this thread's accesses to global memory visible to copies ordered after it. */
export function commitGlobal(): void {
  emit("proxy_fence", {}, { space: "gmem" }, captureLocation());
}

const productOptions: readonly (keyof ProductOptions)[] = [
  ...(["sparse", "adds", "rolled", "accumulation"] as const),
];

/** Options of `wgmma`. */
export interface ProductOptions {
  /**
   * Says that `a` is sparse and holds two of every four elements of a row, [m, k / 2]. The metadata, [m, k / 16] ([m, k / 8]
   * of tf32, which holds one of two), say which: four bits for each chunk, the first element's index in the low two.
   */
  readonly sparse?: Tile<"u16">;
  /** Where it is false, the product takes the place of what is in the accumulator instead of being added to it. */
  readonly adds?: Scalar<"bool">;
  /**
   * Whether its instructions may be a loop of one, which the driver's assembler is done with sooner; where all products of a kernel say so
   * and are of one size.
   */
  readonly rolled?: boolean;
  /**
   * How FP8 is summed in f32. "promoted" waits for each 128 of k and adds their sums to the accumulator in f32; "fast" leaves them to the
   * instruction, which keeps 13 bits behind the leading one, and returns at once. All other products are the same by both.
   */
  readonly accumulation?: DotAccumulation;
}

/** Starts adding the product of `a`, [m, k], and `b`, [k, n], to an accumulator, [m, n]. */
export function wgmma<D extends DTypeName>(
  accumulator: Accumulator<D>,
  a: Ref | Tile,
  b: Ref,
  options: ProductOptions = {},
): Accumulator<D> {
  const location = captureLocation();
  if (!(accumulator instanceof Accumulator))
    wrongKind("the first operand of wgmma", "an accumulator", accumulator, location);
  if (!(a instanceof Ref) && !(a instanceof Tile))
    wrongKind("the left factor of wgmma", "a ref or a tile", a, location);
  if (!(b instanceof Ref)) wrongKind("the right factor of wgmma", "a ref", b, location);
  requireKnownOptions("wgmma", options, productOptions, "TW1033", location);
  const { sparse, adds, rolled = false, accumulation = "promoted" } = options;
  requireAccumulation("wgmma", accumulation, location);
  if (typeof rolled !== "boolean") wrongKind("rolled of wgmma", "true or false", rolled, location);
  if (sparse !== undefined && !(sparse instanceof Tile))
    wrongKind("sparse of wgmma", "a tile of metadata", sparse, location);
  if (adds !== undefined && !(adds instanceof Scalar))
    wrongKind("adds of wgmma", "a bool scalar", adds, location);
  if (
    accumulation === "promoted" &&
    isSummedShort(a.dtype, accumulator.dtype) &&
    isSingle(accumulator)
  )
    return new Accumulator<D>(promotedProduct(accumulator, a, b, options)[origin]);
  const factors = { a: useValue(a, location), b: useValue(b, location) };
  const metadata = sparse && useValue(sparse, location);
  const operands = {
    accumulator: accumulator.consume(location),
    ...factors,
    metadata,
    adds: adds && useValue(adds, location),
  };
  const attributes = rolled ? { rolled } : {};
  return new Accumulator(emitOrigin("wgmma", operands, attributes, location));
}

function isSingle(sums: Accumulator): sums is Accumulator<"f32"> {
  return sums.dtype.name === "f32";
}

/**
 * A product whose sums are added to the accumulator in f32, 128 of k at a time:
 *
 *   k 0 to 127 onto zero, waited for   +   k 128 to 255 onto zero, waited for   +   …   +   the accumulator
 */
function promotedProduct(
  sums: Accumulator<"f32">,
  a: Ref | Tile,
  b: Ref,
  { sparse, adds, rolled = false }: ProductOptions,
): Accumulator<"f32"> {
  const { dtype, shape } = sums;
  const [k = 0, columns = 0] = b.shape.map(Number);
  const before = sums.wait();
  const held = sparse === undefined ? 1 : 2;
  const none = constant(bool, false);
  let total = adds === undefined ? before : adds.select(before, 0);
  for (let start = 0; start < k; start += promotedDepth) {
    const depth = Math.min(promotedDepth, k - start);
    const isWhole = depth === k;
    const started = wgmma(
      newAccumulator(dtype, shape, "anything"),
      isWhole ? a : partOfLeft(a, start / held, depth / held),
      isWhole ? b : b.at(slice(start, depth), slice(0, columns)),
      {
        ...(sparse && { sparse: isWhole ? sparse : partOfTile(sparse, start / 16, depth / 16) }),
        adds: none,
        rolled,
        accumulation: "fast",
      },
    );
    total = total.add(started.wait());
  }
  return newAccumulator(dtype, shape, total);
}

function partOfLeft(left: Ref | Tile, start: number, length: number): Ref | Tile {
  if (left instanceof Tile) return partOfTile(left, start, length);
  return left.at(slice(0, Number(left.shape[0] ?? 0)), slice(start, length));
}

function partOfTile<D extends DTypeName>(tile: Tile<D>, start: number, length: number): Tile<D> {
  return tile.slice([0, start], [tile.shape[0] ?? 0, length]);
}
