/**
 * Counting and looking up: where numbers stand in a sorted list, how many fall into each bin, which are different. What would have as many
 * results as the data says takes a `size`, since shapes are known before a program runs.
 *
 *   searchsorted([1, 3, 5], [0, 3, 9])     0 1 3
 *   unique([3, 1, 3], { size: 3 })         1 3 1        filled with the least, or with `fill`
 */
import type { DTypeName, FloatName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { fieldsOf, isListOf, isWhole } from "../../support/checked-call.ts";
import {
  array,
  arrays,
  checked,
  indices as indicesKind,
  isArray,
  isFlag,
  isNumber,
  isPairOf,
  options,
} from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import { cumsum } from "../cumulative.ts";
import * as base from "../functions.ts";
import * as indexing from "../indexing.ts";
import * as ordering from "../ordering.ts";
import * as reductions from "../reductions.ts";
import * as shapes from "../shapes.ts";
import { part } from "./part.ts";

/** On which side of equal elements. */
export interface SideOption {
  /** `"left"`, before equal elements, by default; `"right"` is behind them. */
  readonly side?: "left" | "right" | undefined;
}
const isSide = (value: unknown): boolean => value === "left" || value === "right";
const sideOption = options('{ side }, "left" or "right"', { side: isSide });

/** Halving what is left, until each number has its place: NaN stands behind all numbers. */
function placesIn<D extends DTypeName>(
  sorted: NDArray<D>,
  values: NDArray<D>,
  side: "left" | "right",
): NDArray<"i32"> {
  const [extent = 0] = sorted.shape;
  let low = base.full(values.shape, 0, "i32");
  let size = extent;
  const isNaN = (x: NDArray<D>) => base.notEqual(x, x);
  while (size > 0) {
    const half = Math.floor(size / 2);
    const middle = base.minimum(base.add(low, half), extent - 1);
    const there = shapes.take(sorted, middle);
    const isBefore =
      side === "left"
        ? base.bitwiseOr(
            base.less(there, values),
            base.bitwiseAnd(isNaN(values), base.logicalNot(isNaN(there))),
          )
        : base.bitwiseOr(base.lessEqual(there, values), isNaN(values));
    low = base.where(isBefore, base.minimum(base.add(low, half + 1), extent), low);
    size = half;
  }
  return low;
}

/** The place at which each number would be put into an array of one axis that is in order. */
export const searchsorted = checked(
  "searchsorted",
  [array, array, sideOption],
  <D extends DTypeName>(
    sorted: NDArray<D>,
    values: NDArray<D>,
    { side = "left" }: SideOption = {},
  ): NDArray<"i32"> => placesIn(sorted, values, side),
);
/** The number of the bin of each element, of bins that ascend: 0 before the first edge; equal ones belong above, or below by `{ right: true }`. */
export const digitize = checked(
  "digitize",
  [array, array, options("{ right }, a boolean", { right: isFlag })],
  <D extends DTypeName>(
    x: NDArray<D>,
    edges: NDArray<D>,
    { right = false }: { readonly right?: boolean | undefined } = {},
  ): NDArray<"i32"> => placesIn(edges, x, right ? "left" : "right"),
);

/** Options of `bincount`. */
export interface BincountOptions<D extends DTypeName = DTypeName> {
  /** How many bins there are; numbers beyond are dropped. */
  readonly length: number;
  /** What each element counts, 1 by default. */
  readonly weights?: NDArray<D> | undefined;
}
const bincountOptions: ArgumentKind = {
  expected: "{ length, weights }, a whole number and an array",
  holds: (value) =>
    value !== undefined &&
    options("", { length: isWhole(0), weights: isArray }).holds(value, []) &&
    fieldsOf(value, ["length"])["length"] !== undefined,
};

function counted(x: NDArray<"i32">, given: BincountOptions<never>): NDArray<"i32">;
function counted<D extends DTypeName>(
  x: NDArray<"i32">,
  given: BincountOptions<D> & { readonly weights: NDArray<D> },
): NDArray<D>;
function counted(x: NDArray<"i32">, { length, weights }: BincountOptions): NDArray {
  const flat = shapes.reshape(x, [-1]);
  // An index below 0 would be counted from the end.
  const places = base.where(base.less(flat, 0), length, flat);
  if (weights === undefined)
    return indexing.addAt(base.full([length], 0, "i32"), places, base.full(flat.shape, 1, "i32"));
  return indexing.addAt(
    base.full([length], 0, weights.dtype),
    places,
    shapes.reshape(weights, [-1]),
  );
}

/** How often each number 0, 1, … length − 1 occurs, or the sum of the weights of those. */
export const bincount = checked("bincount", [indicesKind, bincountOptions], counted);

/** Options of `histogram`. */
export interface HistogramOptions<D extends DTypeName = DTypeName> {
  /** How many bins of equal width, 10 by default, or the edges of bins, ascending. */
  readonly bins?: number | readonly number[] | undefined;
  /** From where to where bins of equal width go: the least and the largest element by default. */
  readonly range?: readonly [least: number, greatest: number] | undefined;
  /** What each element counts, 1 by default. */
  readonly weights?: NDArray<D> | undefined;
  /** Whether counts are divided by their sum and the width of the bin. */
  readonly density?: boolean | undefined;
}
const histogramOptions = options(
  "{ bins, range, weights, density }: a whole number or edges, two numbers, an array, a boolean",
  {
    bins: (value) => isWhole(1)(value) || isListOf(isNumber)(value),
    range: (value) => isPairOf(isNumber)(value),
    weights: isArray,
    density: isFlag,
  },
);

/** The edges of the bins, as numbers of the array's dtype. */
function edgesOf<D extends DTypeName>(
  x: NDArray<D>,
  { bins = 10, range }: HistogramOptions<D>,
): NDArray<D> {
  if (typeof bins !== "number") return shapes.array([...bins], x.dtype);
  const part = base.div(base.astype(shapes.arange(bins + 1), x.dtype), bins);
  const wide = (least: NDArray<D>, greatest: NDArray<D>): NDArray<D> =>
    base.add(base.mul(base.sub(1, part), least), base.mul(part, greatest));
  const number = (value: number): NDArray<D> => base.full([], value, x.dtype);
  if (range !== undefined) return wide(number(range[0]), number(range[1]));
  const [least, greatest] = [reductions.min(x), reductions.max(x)];
  // Where all are equal a bin has the width 1, as NumPy's.
  const isFlat = base.equal(least, greatest);
  return wide(
    base.where(isFlat, base.sub(least, 0.5), least),
    base.where(isFlat, base.add(greatest, 0.5), greatest),
  );
}

/** The edges that `histogram` uses. */
export const histogramBinEdges = checked(
  "histogramBinEdges",
  [array, histogramOptions],
  <D extends FloatName>(x: NDArray<D>, given: HistogramOptions<D> = {}): NDArray<D> =>
    edgesOf(x, given),
);
/** How many elements fall between each two edges, and the edges; the last bin includes its upper edge. */
export const histogram = checked(
  "histogram",
  [array, histogramOptions],
  <D extends FloatName>(
    x: NDArray<D>,
    given: HistogramOptions<D> = {},
  ): readonly [counts: NDArray<D>, edges: NDArray<D>] => {
    const edges = edgesOf(x, given);
    const flat = shapes.reshape(x, [-1]);
    const bins = (edges.shape[0] ?? 1) - 1;
    const upper = part(edges, 0, [bins, bins + 1]);
    const found = base.sub(placesIn(edges, flat, "right"), 1);
    const isLast = base.equal(flat, base.broadcastTo(upper, flat.shape));
    const place = base.where(isLast, bins - 1, found);
    const weights = given.weights ?? base.full(flat.shape, 1, x.dtype);
    const counts = counted(place, { length: bins, weights: shapes.reshape(weights, [-1]) });
    if (given.density !== true) return [counts, edges];
    const widths = base.sub(part(edges, 0, [1, bins + 1]), part(edges, 0, [0, bins]));
    return [base.div(counts, base.mul(reductions.sum(counts), widths)), edges];
  },
);

/** Linear interpolation at numbers `x` between points whose places ascend; outside of them the first and the last value, or `left` and `right`. */
export const interp = checked(
  "interp",
  [array, array, array, options("{ left, right }, numbers", { left: isNumber, right: isNumber })],
  <D extends FloatName>(
    x: NDArray<D>,
    places: NDArray<D>,
    values: NDArray<D>,
    {
      left,
      right,
    }: { readonly left?: number | undefined; readonly right?: number | undefined } = {},
  ): NDArray<D> => {
    const extent = places.shape[0] ?? 0;
    const upper = base.clip(placesIn(places, x, "right"), 1, Math.max(extent - 1, 1));
    const at = (of: NDArray<D>, index: NDArray<"i32">) => shapes.take(of, index);
    const lower = base.sub(upper, 1);
    const [x0, x1] = [at(places, lower), at(places, upper)];
    const [y0, y1] = [at(values, lower), at(values, upper)];
    const width = base.sub(x1, x0);
    const isNone = base.equal(width, 0);
    const fraction = base.div(base.sub(x, x0), base.where(isNone, 1, width));
    const line = base.add(y0, base.mul(base.sub(y1, y0), fraction));
    const between = base.where(isNone, y0, line);
    const placeOf = (index: number) => shapes.take(places, base.full(x.shape, index, "i32"));
    const [first, last] = [placeOf(0), placeOf(extent - 1)];
    const end = (index: number, given: number | undefined): NDArray<D> =>
      given === undefined
        ? shapes.take(values, base.full(x.shape, index, "i32"))
        : base.full(x.shape, given, x.dtype);
    const above = base.where(base.greater(x, last), end(extent - 1, right), between);
    return base.where(base.less(x, first), end(0, left), above);
  },
);

/** How many results there are, and what fills those that the data does not give. */
export interface SizedOptions {
  /** How many places there are. */
  readonly size: number;
  /** What stands in the places that are left. */
  readonly fill?: number | undefined;
}
const sized: ArgumentKind = {
  expected: "{ size, fill }, a whole number and a number",
  holds: (value) =>
    value !== undefined &&
    options("", { size: isWhole(0), fill: isNumber }).holds(value, []) &&
    fieldsOf(value, ["size"])["size"] !== undefined,
};

/** The places of the elements that are not 0, a number for each axis: the first `size` of them, then `fill`, 0 by default. */
export const nonzero = checked(
  "nonzero",
  [array, sized],
  (x: NDArray, { size, fill = 0 }: SizedOptions): readonly NDArray<"i32">[] => {
    const flat = shapes.reshape(x, [-1]);
    const [places, isThere] = chosen(flat, size);
    let behind = flat.shape[0] ?? 0;
    return x.shape.map((extent) => {
      behind /= extent;
      return base.where(isThere, base.rem(base.div(places, behind), extent), fill);
    });
  },
);
/** The places of the elements of the flattened array that are not 0: the first `size` of them, then `fill`, 0 by default. */
export const flatnonzero = checked(
  "flatnonzero",
  [array, sized],
  (x: NDArray, { size, fill = 0 }: SizedOptions): NDArray<"i32"> => {
    const [places, isThere] = chosen(shapes.reshape(x, [-1]), size);
    return base.where(isThere, places, fill);
  },
);
/** The places of the elements that are not 0, a row for each: the first `size` of them, then `fill`, 0 by default. */
export const argwhere = checked(
  "argwhere",
  [array, sized],
  (x: NDArray, given: SizedOptions): NDArray<"i32"> => shapes.stack(nonzero(x, given), { axis: 1 }),
);

/** The first places of a flat array whose elements are not 0, and which of them there are. */
function chosen(
  flat: NDArray,
  size: number,
): readonly [places: NDArray<"i32">, isThere: NDArray<"bool">] {
  const extent = flat.shape[0] ?? 0;
  const isSome = base.astype(flat, "bool");
  const rank = base.sub(cumsum(base.astype(isSome, "i32")), 1);
  // What is not chosen goes to a place behind the end, where it is dropped.
  const target = base.where(isSome, rank, Math.max(size, extent));
  const places = indexing.setAt(base.full([size], 0, "i32"), target, shapes.arange(extent));
  const count = reductions.sum(base.astype(isSome, "i32"));
  return [places, base.less(shapes.arange(size), count)];
}

/** What `uniqueAll` gives: the different elements, and where they were. */
export interface UniqueParts<D extends DTypeName> {
  /** The different elements in order. */
  readonly values: NDArray<D>;
  /** Where each of them stands first. */
  readonly indices: NDArray<"i32">;
  /** For each element of the array, the place of its value. */
  readonly inverse: NDArray<"i32">;
  /** How often each of them occurs; 0 in the places that are left. */
  readonly counts: NDArray<"i32">;
}

function uniqueParts<D extends DTypeName>(
  x: NDArray<D>,
  { size, fill }: SizedOptions,
): UniqueParts<D> {
  const flat = shapes.reshape(x, [-1]);
  const extent = flat.shape[0] ?? 0;
  const order = ordering.argsort(flat);
  const sorted = shapes.take(flat, order);
  const before = part(sorted, 0, [0, Math.max(extent - 1, 0)]);
  const behind = part(sorted, 0, [Math.min(1, extent), extent]);
  // NaN is different from every number, itself included.
  const isNew = shapes.concatenate([
    base.full([Math.min(extent, 1)], 1, "bool"),
    base.notEqual(before, behind),
  ]);
  const rank = base.sub(cumsum(base.astype(isNew, "i32")), 1);
  const target = base.where(isNew, rank, Math.max(size, extent));
  const first = indexing.setAt(base.full([size], 0, "i32"), target, order);
  const total = reductions.sum(base.astype(isNew, "i32"));
  const isThere = base.less(shapes.arange(size), total);
  const picked = shapes.take(flat, first);
  const filler = fill === undefined ? part(sorted, 0, [0, 1]) : fill;
  return {
    values: base.where(
      isThere,
      picked,
      typeof filler === "number" ? filler : base.broadcastTo(filler, [size]),
    ),
    indices: base.where(
      isThere,
      first,
      extent === 0 ? 0 : shapes.take(order, base.full([size], 0, "i32")),
    ),
    inverse: shapes.reshape(indexing.setAt(base.full([extent], 0, "i32"), order, rank), x.shape),
    counts: indexing.addAt(base.full([size], 0, "i32"), rank, base.full([extent], 1, "i32")),
  };
}

/** The different elements in order: the first `size` of them, then `fill`, the least element by default. */
export const unique = checked(
  "unique",
  [array, sized],
  <D extends DTypeName>(x: NDArray<D>, given: SizedOptions): NDArray<D> =>
    uniqueParts(x, given).values,
);
/** The different elements in order, where each stands first, the place of each element's value, and how often each occurs. */
export const uniqueAll = checked("uniqueAll", [array, sized], uniqueParts);

/** Whether each element of one array is anywhere in another. */
export const isin = checked(
  "isin",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, list: NDArray<D>): NDArray<"bool"> => {
    const sorted = ordering.sort(shapes.reshape(list, [-1]));
    const extent = sorted.shape[0] ?? 0;
    if (extent === 0) return base.full(x.shape, 0, "bool");
    const place = base.minimum(placesIn(sorted, x, "left"), extent - 1);
    return base.equal(shapes.take(sorted, place), x);
  },
);

/** The elements that one of two flat arrays has and that a test keeps, in order, in `size` places. */
function kept<D extends DTypeName>(
  values: NDArray<D>,
  isKept: NDArray<"bool">,
  { size, fill }: SizedOptions,
): NDArray<D> {
  const count = reductions.sum(base.astype(isKept, "i32"));
  const rank = base.sub(cumsum(base.astype(isKept, "i32")), 1);
  const target = base.where(isKept, rank, Math.max(size, values.shape[0] ?? 0));
  const placed = indexing.setAt(base.full([size], 0, values.dtype), target, values);
  const isThere = base.less(shapes.arange(size), count);
  return base.where(isThere, placed, fill ?? part(placed, 0, [0, 1]));
}

const flatOf = <D extends DTypeName>(x: NDArray<D>): NDArray<D> => shapes.reshape(x, [-1]);
/** In a sorted array, whether an element is the first of those that equal it. */
function isFirst(sorted: NDArray): NDArray<"bool"> {
  const extent = sorted.shape[0] ?? 0;
  return shapes.concatenate([
    base.full([Math.min(extent, 1)], 1, "bool"),
    base.notEqual(
      part(sorted, 0, [0, Math.max(extent - 1, 0)]),
      part(sorted, 0, [Math.min(1, extent), extent]),
    ),
  ]);
}
type SetOperation = <D extends DTypeName>(
  x: NDArray<D>,
  y: NDArray<D>,
  options: SizedOptions,
) => NDArray<D>;
const setOperation = (name: string, call: SetOperation): SetOperation =>
  checked(name, [array, array, sized], call);

/** The elements of either array, in order and once each: `size` of them, then `fill`, the first by default. */
export const union1d: SetOperation = setOperation("union1d", (x, y, given) => {
  const sorted = ordering.sort(shapes.concatenate([flatOf(x), flatOf(y)]));
  return kept(sorted, isFirst(sorted), given);
});
/** The elements of both arrays, in order and once each: `size` of them, then `fill`, the first by default. */
export const intersect1d: SetOperation = setOperation("intersect1d", (x, y, given) => {
  const sorted = ordering.sort(flatOf(x));
  return kept(sorted, base.bitwiseAnd(isFirst(sorted), isin(sorted, y)), given);
});
/** The elements of the first array that the second has not, in order and once each: `size` of them, then `fill`, the first by default. */
export const setdiff1d: SetOperation = setOperation("setdiff1d", (x, y, given) => {
  const sorted = ordering.sort(flatOf(x));
  const isOther = base.logicalNot(isin(sorted, y));
  return kept(sorted, base.bitwiseAnd(isFirst(sorted), isOther), given);
});
/** The elements of exactly one of the arrays, in order and once each: `size` of them, then `fill`, the first by default. */
export const setxor1d: SetOperation = setOperation("setxor1d", (x, y, given) => {
  const sorted = ordering.sort(shapes.concatenate([flatOf(x), flatOf(y)]));
  const areBoth = base.bitwiseAnd(isin(sorted, x), isin(sorted, y));
  return kept(sorted, base.bitwiseAnd(isFirst(sorted), base.logicalNot(areBoth)), given);
});

/** The order of several keys: by the last, where those are equal by the one before it, and so on. */
export const lexsort = checked("lexsort", [arrays], (keys: readonly NDArray[]): NDArray<"i32"> => {
  const [first] = keys;
  const start = shapes.iota(first?.shape ?? [0], "i32", { axis: -1 });
  return keys.reduce<NDArray<"i32">>((order, key) => {
    const moved = indexing.takeAlongAxis(key, order);
    return indexing.takeAlongAxis(order, ordering.argsort(moved));
  }, start);
});
