/**
 * Functions that give elements of a tile other places, chosen by numbers that are only known as the kernel runs, or
 * count them. Elements change lanes through shared memory that the function has for itself; each program thread that
 * runs the code has a part of its own.
 *
 *   takeAlong(tile, indices, { axis: 1 })     element (i, j) is tile[i, indices[i, j]]
 *   flip(tile, { axis: 0 })                   row i is row rows − 1 − i
 *   roll(tile, 3, { axis: 0 })                row i is row (i − 3) mod rows
 *   topK(tile, 8, { axis: 1 })                the 8 greatest of each row, and where they are
 *   histogram(values, 16)           how many of the values are 0, 1, … 15
 */
import { i32, i64 } from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import type { AccessOptions } from "./access.ts";
import { smem } from "./arguments.ts";
import { axisFromEnd, axisOption, requireAxisOptions } from "./axes.ts";
import { scoped } from "./control.ts";
import { concatenate, full, iota } from "./create.ts";
import type { TileIndex } from "./gathered-ref.ts";
import type { Ref } from "./ref.ts";
import { isPositiveInteger } from "./sizes.ts";
import { threadIndex } from "./sync.ts";
import { Tile } from "./tile.ts";
import type { AxisOption } from "./tile.ts";
import { activeTrace, emit, emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { useValue, wrongKind } from "./traced.ts";
import { all } from "./window.ts";

/** Runs a body with shared memory of this program thread's own, which reports call by a name that the user knows. */
export function withBuffer<D extends DTypeName, R extends DTypeName>(
  name: string,
  dtype: DType<D>,
  shape: readonly number[],
  location: Location,
  body: (own: Ref<D>) => Tile<R>,
): Tile<R> {
  const trace = activeTrace("shared memory", location);
  if (trace.warps !== undefined)
    throw new TilewrightError({
      code: "TW2209",
      message: `${name.replace(/_.*/, "")} needs the whole program thread, not one warp`,
      location,
      expected: "a place outside of code for single warps",
      found: "one within it",
      notes: [{ message: "the warps split up here", location: trace.warps.location }],
      remedy:
        "move it out of the warp code, or store and load through a part of shared memory for each warp",
    });
  const isAlone = trace.runners === 1;
  const threads = isAlone ? 1 : trace.context.threads.length;
  return atLocation(location, () =>
    scoped({ [name]: smem(dtype, [threads, ...shape]) }, ({ [name]: buffer }) => {
      if (buffer === undefined) throw new Error(`no buffer ${name}`);
      return body(buffer.at(isAlone ? 0 : threadIndex()));
    }),
  );
}

function requireTile(label: string, tile: unknown, location: Location): void {
  if (!(tile instanceof Tile)) wrongKind(`what ${label} takes`, "a tile", tile, location);
}

function requireIndices(label: string, tile: unknown, location: Location): void {
  if (!(tile instanceof Tile) || (tile.dtype !== i32 && tile.dtype !== i64))
    wrongKind(label, "a tile of i32 or i64", tile, location);
}

function requireAxis(label: string, tile: Tile, axis: unknown, location: Location): number {
  const rank = tile.shape.length;
  const own = typeof axis === "number" ? axisFromEnd(axis, rank) : -1;
  if (Number.isInteger(own) && own >= 0 && own < rank) return own;
  return wrongKind(`the axis of ${label}`, `an axis from ${-rank} to ${rank - 1}`, axis, location);
}

/**
 * Elements of a tile by their positions along one axis: element (…, i, …) is the tile's at position
 * `indices[…, i, …]`. Along the other axes the shapes agree, or are 1 in the indices and repeat.
 */
export function takeAlong<D extends DTypeName>(
  tile: Tile<D>,
  indices: TileIndex,
  options: AxisOption,
): Tile<D> {
  const location = captureLocation();
  requireTile("takeAlong", tile, location);
  requireIndices("the indices of takeAlong", indices, location);
  const own = requireAxis("takeAlong", tile, axisOption("takeAlong", options, location), location);
  const { shape } = tile;
  if (indices.shape.length !== shape.length)
    wrongKind("the indices of takeAlong", `a tile of ${shape.length} axes`, indices, location);
  const positions = shape.map((extent, each): TileIndex => {
    if (each === own) return indices;
    const ones = shape.map((_, other) => (other === each ? extent : 1));
    return iota(i32, ones, { axis: each });
  });
  return withBuffer("takeAlong_tile", tile.dtype, shape, location, (buffer) => {
    buffer.store(tile);
    return buffer.at(...positions).load();
  });
}

/** The tile turned around along an axis. */
export function flip<D extends DTypeName>(tile: Tile<D>, options: AxisOption): Tile<D> {
  const location = captureLocation();
  requireTile("flip", tile, location);
  const own = requireAxis("flip", tile, axisOption("flip", options, location), location);
  const extent = tile.shape[own] ?? 1;
  return withBuffer("flip_tile", tile.dtype, tile.shape, location, (buffer) => {
    buffer.store(tile);
    const before = tile.shape.slice(0, own).map(() => all);
    const turned = iota(i32, [extent], { axis: 0 })
      .neg()
      .add(extent - 1);
    return buffer.at(...before, turned).load();
  });
}

/** Each element moved `by` places on along an axis; what leaves at the end comes in at the start. */
export function roll<D extends DTypeName>(tile: Tile<D>, by: number, options: AxisOption): Tile<D> {
  const location = captureLocation();
  requireTile("roll", tile, location);
  const own = requireAxis("roll", tile, axisOption("roll", options, location), location);
  if (!Number.isSafeInteger(by)) wrongKind("the places of roll", "a whole number", by, location);
  const extent = tile.shape[own] ?? 1;
  const first = ((-by % extent) + extent) % extent;
  if (first === 0) return tile;
  const part = (start: number, size: number): Tile<D> =>
    tile.slice(
      tile.shape.map((_, each) => (each === own ? start : 0)),
      tile.shape.with(own, size),
    );
  return concatenate([part(first, extent - first), part(0, first)], { axis: own });
}

/** Along which axis `topK` looks, and which elements it picks. */
export interface TopKOptions {
  /** The axis; a negative one counts from the end. */
  readonly axis: number;
  /** The greatest elements (the default) or the least, from the least on. */
  readonly largest?: boolean;
}

/**
 * The `count` greatest elements along an axis, from the greatest on, and their positions; of equal ones the
 * first. NaN is the greatest, and −0 below 0.
 */
export function topK<D extends DTypeName>(
  tile: Tile<D>,
  count: number,
  options: TopKOptions,
): readonly [Tile<D>, Tile<"i32">] {
  const location = captureLocation();
  requireTile("topK", tile, location);
  requireAxisOptions("topK", options, ["axis", "largest"], location);
  const own = requireAxis("topK", tile, options.axis, location);
  const extent = tile.shape[own] ?? 1;
  if (!isPositiveInteger(count) || count > extent)
    wrongKind("the count of topK", `a number from 1 to ${extent}`, count, location);
  const first = 2 ** Math.ceil(Math.log2(count));
  const attributes = {
    axis: own,
    descending: options.largest !== false,
    positions: true,
    ...(first < extent && { first }),
  };
  const operands = { keys: useValue(tile, location), payloads: [] };
  const [keys, positions] = emit("sort", operands, attributes, location);
  if (keys === undefined || positions === undefined) throw new Error("a sort without positions");
  const starts = tile.shape.map(() => 0);
  const sizes = tile.shape.with(own, count);
  const taken = (source: Value): Origin =>
    originOf(emitValue("slice", { source }, { starts, sizes }, location), location);
  return [new Tile(taken(keys)), new Tile(taken(positions))];
}

/** How many elements of a tile are 0, 1, … `bins` − 1; others must be left out by `where`. */
export function histogram(
  values: TileIndex,
  bins: number,
  options: AccessOptions = {},
): Tile<"i32"> {
  const location = captureLocation();
  requireIndices("the values of histogram", values, location);
  requireKnownOptions("histogram", options, ["where"], "TW1033", location);
  if (!isPositiveInteger(bins))
    wrongKind("the bins of histogram", "a positive whole number", bins, location);
  return withBuffer("histogram_bins", i32, [bins], location, (counts) => {
    counts.store(0);
    counts.at(values).atomicAdd(full(i32, values.shape, 1), options);
    return counts.load();
  });
}
