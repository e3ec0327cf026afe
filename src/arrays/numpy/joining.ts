/**
 * Arrays put together and taken apart: stacks, splits, blocks, tiles, repeats.
 *
 *   split(x, 3)             three parts of equal extent
 *   split(x, [2, 5])        before place 2, from 2 to 5, from 5 on
 */
import type { DTypeName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isListOf, isWhole } from "../../support/checked-call.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { array, arrays, axisOption, checked, isArray, operand, shape } from "../argument-checks.ts";
import { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import * as shapes from "../shapes.ts";
import type { AxisOption } from "../shapes.ts";
import { part } from "./part.ts";

/** The array with axes of extent 1 added until it has so many: in front, where NumPy puts them, a third one behind. */
function atLeast<D extends DTypeName>(x: NDArray<D>, rank: 1 | 2 | 3): NDArray<D> {
  if (x.rank >= rank) return x;
  if (rank < 3 || x.rank === 0)
    return shapes.reshape(x, [...Array.from({ length: rank - x.rank }, () => 1), ...x.shape]);
  return shapes.reshape(x, x.rank === 1 ? [1, ...x.shape, 1] : [...x.shape, 1]);
}

/** The array with an axis at least: a number becomes [1]. */
export const atleast1d = checked("atleast1d", [array], withRank(1));
/** The array with two axes at least: [n] becomes [1, n]. */
export const atleast2d = checked("atleast2d", [array], withRank(2));
/** The array with three axes at least: [n] becomes [1, n, 1] and [m, n] becomes [m, n, 1]. */
export const atleast3d = checked("atleast3d", [array], withRank(3));

function withRank(rank: 1 | 2 | 3) {
  return <D extends DTypeName>(x: NDArray<D>): NDArray<D> => atLeast(x, rank);
}

/** Arrays below each other: along the first axis, rows of one axis becoming matrices. */
export const vstack = checked(
  "vstack",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): NDArray<D> =>
    shapes.concatenate(all.map((each) => atLeast(each, 2))),
);
/** Arrays beside each other: along the second axis, or the only one. */
export const hstack = checked(
  "hstack",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): NDArray<D> => {
    const whole = all.map((each) => atLeast(each, 1));
    return shapes.concatenate(whole, { axis: whole[0]?.rank === 1 ? 0 : 1 });
  },
);
/** Arrays behind each other: along the third axis. */
export const dstack = checked(
  "dstack",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): NDArray<D> =>
    shapes.concatenate(
      all.map((each) => atLeast(each, 3)),
      { axis: 2 },
    ),
);
/** Arrays of one axis as the columns of a matrix; those of two are put beside each other. */
export const columnStack = checked(
  "columnStack",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): NDArray<D> =>
    shapes.concatenate(
      all.map((each) => (each.rank < 2 ? shapes.reshape(each, [-1, 1]) : each)),
      { axis: 1 },
    ),
);
/** The parts along an axis, the first by default, each without that axis. */
export const unstack = checked(
  "unstack",
  [array, axisOption],
  <D extends DTypeName>(x: NDArray<D>, { axis = 0 }: AxisOption = {}): readonly NDArray<D>[] => {
    const along = shapes.axisOf(axis, x.rank);
    return Array.from({ length: x.shape[along] ?? 0 }, (_, place) =>
      shapes.squeeze(part(x, along, [place, place + 1]), { axis: along }),
    );
  },
);

const places: ArgumentKind = {
  expected: "how many parts, a whole number from 1, or a list of the places where it is cut",
  holds: (value) => isWhole(1)(value) || isListOf(isWhole(0))(value),
};

/** The parts of an axis between places; a place behind the end leaves an empty part. */
function cut<D extends DTypeName>(
  x: NDArray<D>,
  axis: number,
  at: readonly number[],
): readonly NDArray<D>[] {
  const extent = x.shape[axis] ?? 0;
  const ends = [0, ...at.map((place) => Math.min(place, extent)), extent];
  return ends
    .slice(1)
    .map((end, index) => part(x, axis, [ends[index] ?? 0, Math.max(end, ends[index] ?? 0)]));
}

/** The first extents are one longer where the parts cannot be equal. */
function parts<D extends DTypeName>(
  x: NDArray<D>,
  at: number | readonly number[],
  axis: number,
): readonly NDArray<D>[] {
  const along = shapes.axisOf(axis, x.rank);
  if (typeof at !== "number") return cut(x, along, at);
  const extent = x.shape[along] ?? 0;
  const [size, longer] = [Math.floor(extent / at), extent % at];
  return cut(
    x,
    along,
    Array.from({ length: at - 1 }, (_, index) => (index + 1) * size + Math.min(index + 1, longer)),
  );
}

function equalParts<D extends DTypeName>(
  x: NDArray<D>,
  at: number | readonly number[],
  axis: number,
): readonly NDArray<D>[] {
  const extent = x.shape[shapes.axisOf(axis, x.rank)] ?? 0;
  if (typeof at === "number" && extent % at !== 0)
    throw new TilewrightError({
      code: "TW9307",
      message: `axis ${axis} of ${x.toString()} has no ${at} equal parts`,
      expected: `a number that divides ${extent}`,
      found: `${at}`,
      remedy: "arraySplit makes the first parts one longer",
    });
  return parts(x, at, axis);
}

/** The array in parts along an axis, the first by default: so many equal ones, or cut at the places of a list. */
export const split = checked(
  "split",
  [array, places, axisOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    at: number | readonly number[],
    { axis = 0 }: AxisOption = {},
  ): readonly NDArray<D>[] => equalParts(x, at, axis),
);
/** As `split`, but the first parts are one longer where equal ones are not possible. */
export const arraySplit = checked(
  "arraySplit",
  [array, places, axisOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    at: number | readonly number[],
    { axis = 0 }: AxisOption = {},
  ): readonly NDArray<D>[] => parts(x, at, axis),
);

const splitAlong = (name: string, axis: (rank: number) => number) =>
  checked(
    name,
    [array, places],
    <D extends DTypeName>(x: NDArray<D>, at: number | readonly number[]): readonly NDArray<D>[] =>
      equalParts(x, at, axis(x.rank)),
  );

/** The array in parts along the first axis. */
export const vsplit = splitAlong("vsplit", () => 0);
/** The array in parts along the second axis, or the only one. */
export const hsplit = splitAlong("hsplit", (rank) => (rank === 1 ? 0 : 1));
/** The array in parts along the third axis. */
export const dsplit = splitAlong("dsplit", () => 2);

/** The array beside itself, so many times along each axis; fewer numbers are of the last axes. */
export const tile = checked(
  "tile",
  [array, { expected: "how often, a whole number or one for each axis", holds: isCounts }],
  <D extends DTypeName>(x: NDArray<D>, times: number | readonly number[]): NDArray<D> => {
    const list = typeof times === "number" ? [times] : times;
    const rank = Math.max(x.rank, list.length);
    const extents = [...Array.from({ length: rank - x.rank }, () => 1), ...x.shape];
    const counts = [...Array.from({ length: rank - list.length }, () => 1), ...list];
    const apart = shapes.reshape(
      x,
      extents.flatMap((extent) => [1, extent]),
    );
    const wide = base.broadcastTo(
      apart,
      extents.flatMap((extent, axis) => [counts[axis] ?? 1, extent]),
    );
    return shapes.reshape(
      wide,
      extents.map((extent, axis) => extent * (counts[axis] ?? 1)),
    );
  },
);

function isCounts(value: unknown): boolean {
  return isWhole(0)(value) || isListOf(isWhole(0))(value);
}

/** Each element so many times along an axis, or as often as a list says of each place; without an axis, of the flattened array. */
export const repeat = checked(
  "repeat",
  [
    array,
    { expected: "how often, a whole number or one for each place", holds: isCounts },
    axisOption,
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    times: number | readonly number[],
    { axis }: AxisOption = {},
  ): NDArray<D> => {
    if (axis === undefined) return repeated(shapes.reshape(x, [-1]), times, 0);
    return repeated(x, times, shapes.axisOf(axis, x.rank));
  },
);

function repeated<D extends DTypeName>(
  x: NDArray<D>,
  times: number | readonly number[],
  axis: number,
): NDArray<D> {
  const extent = x.shape[axis] ?? 0;
  if (typeof times !== "number") {
    if (times.length !== extent)
      throw new TilewrightError({
        code: "TW9307",
        message: `repeat was given ${times.length} numbers for ${extent} places`,
        expected: `one number, or ${extent}`,
        found: `${times.length}`,
      });
    const from = times.flatMap((count, place) => Array.from({ length: count }, () => place));
    return shapes.take(x, shapes.array(from, "i32"), { axis });
  }
  const behind = x.shape.slice(axis + 1);
  const column = shapes.reshape(x, [...x.shape.slice(0, axis + 1), 1, ...behind]);
  const wide = base.broadcastTo(column, [...x.shape.slice(0, axis + 1), times, ...behind]);
  return shapes.reshape(wide, [...x.shape.slice(0, axis), extent * times, ...behind]);
}

/** The array with further elements behind, along an axis; without one, both are flattened. */
export const append = checked(
  "append",
  [array, array, axisOption],
  <D extends DTypeName>(x: NDArray<D>, values: NDArray<D>, { axis }: AxisOption = {}): NDArray<D> =>
    axis === undefined
      ? shapes.concatenate([shapes.reshape(x, [-1]), shapes.reshape(values, [-1])])
      : shapes.concatenate([x, values], { axis }),
);

const whole: ArgumentKind = {
  expected: "a place, or a list of places, whole numbers",
  holds: (value) => Number.isSafeInteger(value) || isListOf(Number.isSafeInteger)(value),
};

/** The array with elements put in before a place of an axis, the first by default; a number fills one place. */
export const insert = checked(
  "insert",
  [
    array,
    { expected: "a place, a whole number", holds: Number.isSafeInteger },
    operand,
    axisOption,
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    place: number,
    values: NDArray<D> | number,
    { axis = 0 }: AxisOption = {},
  ): NDArray<D> => {
    const along = shapes.axisOf(axis, x.rank);
    const extent = x.shape[along] ?? 0;
    const at = place < 0 ? place + extent : place;
    const one = x.shape.map((each, index) => (index === along ? 1 : each));
    const filled = typeof values === "number" ? base.full(one, values, x.dtype) : values;
    const between = filled.rank < x.rank ? base.broadcastTo(filled, one) : filled;
    return shapes.concatenate([part(x, along, [0, at]), between, part(x, along, [at, extent])], {
      axis: along,
    });
  },
);
/** The array without one place of an axis, or several; the first axis by default. */
export const deleteAt = checked(
  "deleteAt",
  [array, whole, axisOption],
  <D extends DTypeName>(
    x: NDArray<D>,
    at: number | readonly number[],
    { axis = 0 }: AxisOption = {},
  ): NDArray<D> => {
    const along = shapes.axisOf(axis, x.rank);
    const extent = x.shape[along] ?? 0;
    const gone = (typeof at === "number" ? [at] : at).map((each) =>
      each < 0 ? each + extent : each,
    );
    const left = Array.from({ length: extent }, (_, each) => each).filter(
      (each) => !gone.includes(each),
    );
    return shapes.take(x, shapes.array(left, "i32"), { axis: along });
  },
);

/** Arrays in nested lists, as `block` takes them. */
export type Blocks<D extends DTypeName = DTypeName> = NDArray<D> | readonly Blocks<D>[];

const isBlocks = (value: unknown): boolean =>
  isArray(value) || (Array.isArray(value) && value.length > 0 && value.every(isBlocks));

function depthOf(blocks: Blocks): number {
  return blocks instanceof NDArray ? 0 : 1 + Math.max(...blocks.map(depthOf));
}

/** One array of nested lists of blocks: those of the innermost lists lie beside each other along the last axis. */
export const block = checked(
  "block",
  [{ expected: "arrays in nested lists", holds: isBlocks }],
  <D extends DTypeName>(blocks: Blocks<D>): NDArray<D> => {
    const depth = depthOf(blocks);
    const join = (each: Blocks<D>, level: number): NDArray<D> => {
      if (each instanceof NDArray) {
        const missing = Math.max(depth - each.rank, 0);
        return shapes.reshape(each, [...Array.from({ length: missing }, () => 1), ...each.shape]);
      }
      const joined = each.map((inner) => join(inner, level + 1));
      return shapes.concatenate(joined, { axis: level - depth });
    };
    return join(blocks, 0);
  },
);
/** Arrays broadcast against each other. */
export const broadcastArrays = checked(
  "broadcastArrays",
  [arrays],
  <D extends DTypeName>(all: readonly NDArray<D>[]): readonly NDArray<D>[] => {
    const common = all.map((each) => each.shape).reduce(base.broadcastShapes);
    return all.map((each) => base.broadcastTo(each, common));
  },
);
/** The elements over and over in another shape, cut off where that is smaller. */
export const resize = checked(
  "resize",
  [array, shape],
  <D extends DTypeName>(x: NDArray<D>, extents: readonly number[]): NDArray<D> => {
    const size = extents.reduce((product, extent) => product * extent, 1);
    const flat = shapes.reshape(x, [-1]);
    const own = flat.shape[0] ?? 0;
    if (own === 0) return base.full(extents, 0, x.dtype);
    const copies = Array.from({ length: Math.max(Math.ceil(size / own), 1) }, () => flat);
    return shapes.reshape(part(shapes.concatenate(copies), 0, [0, size]), extents);
  },
);
