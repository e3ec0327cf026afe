/**
 * Statistics of arrays along axes: spread, order statistics, correlation, and the same without NaN.
 *
 *   quantile(x, 0.5)        the median: between two places of the sorted array what lies between both numbers
 *   nanmean(x)              the mean of what is not NaN
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName, FloatName } from "../../formats/dtype.ts";
import type { ArgumentKind } from "../../support/checked-call.ts";
import { isListOf } from "../../support/checked-call.ts";
import {
  array,
  axes as axesKind,
  checked,
  isArray,
  isFlag,
  isNumber,
  options,
  reduceOptions,
} from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import type { NumberName, Only, ReductionOf } from "../dtypes-of-functions.ts";
import * as base from "../functions.ts";
import { cumprod as cumProd, cumsum as cumSum } from "../cumulative.ts";
import type { CumulativeOptions } from "../cumulative.ts";
import * as ordering from "../ordering.ts";
import * as reductions from "../reductions.ts";
import type { ReduceOptions } from "../reductions.ts";
import * as shapes from "../shapes.ts";
import type { AxisOption } from "../shapes.ts";
import { axisAnd, axisOption } from "../argument-checks.ts";
import { part } from "./part.ts";
import { matrixTranspose, moveaxis } from "./moving.ts";

const isAxes = (value: unknown): boolean =>
  Number.isSafeInteger(value) || axesKind.holds(value, []);

/** How many elements go into each result. */
function countOf(x: NDArray, { axis }: ReduceOptions): number {
  const all = axis === undefined ? x.shape.map((_, each) => each) : [axis].flat();
  return all.reduce((product, each) => product * (x.shape[shapes.axisOf(each, x.rank)] ?? 1), 1);
}

/** Options of `variance`, `std` and their kin. */
export interface SpreadOptions extends ReduceOptions {
  /** What is taken from the count before it divides: 0 for a population, 1 for a sample. */
  readonly ddof?: number | undefined;
}
type SpreadOf = <D extends DTypeName>(
  x: NDArray<D> & Only<D, FloatName>,
  options?: SpreadOptions,
) => NDArray<D>;
const spreadOptions = options("{ axis, keepDims, ddof }, axes, a boolean and a number", {
  axis: isAxes,
  keepDims: isFlag,
  ddof: isNumber,
});

function varianceOf<D extends DTypeName>(
  x: NDArray<D>,
  { ddof = 0, ...along }: SpreadOptions = {},
): NDArray<D> {
  const population = reductions.variance(x, along);
  const count = countOf(x, along);
  return ddof === 0 ? population : base.mul(population, count / (count - ddof));
}

/** The mean square of the distance from the mean, along some axes or all: of a population, or of a sample by `{ ddof: 1 }`. */
export const variance: SpreadOf = checked("variance", [array, spreadOptions], varianceOf);
/** The square root of the variance, along some axes or all: of a population, or of a sample by `{ ddof: 1 }`. */
export const std: SpreadOf = checked(
  "std",
  [array, spreadOptions],
  <D extends DTypeName>(x: NDArray<D>, given: SpreadOptions = {}): NDArray<D> =>
    base.sqrt(varianceOf(x, given)),
);
/** The largest element less the smallest, along some axes or all. */
export const ptp: ReductionOf<NumberName> = checked(
  "ptp",
  [array, reduceOptions],
  <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> =>
    base.sub(reductions.max(x, along), reductions.min(x, along)),
);
/** How many elements are not 0, along some axes or all. */
export const countNonzero = checked(
  "countNonzero",
  [array, reduceOptions],
  (x: NDArray, along: ReduceOptions = {}): NDArray<"i32"> =>
    reductions.sum(base.astype(x.dtype === "bool" ? x : base.notEqual(x, 0), "i32"), along),
);
/** The mean with weights, broadcast against the array, along some axes or all. */
export const average = checked(
  "average",
  [
    array,
    options("{ axis, keepDims, weights }, axes, a boolean and an array", {
      axis: isAxes,
      keepDims: isFlag,
      weights: isArray,
    }),
  ],
  <D extends DTypeName>(
    x: NDArray<D>,
    { weights, ...along }: ReduceOptions & { readonly weights?: NDArray<D> | undefined } = {},
  ): NDArray<D> => {
    if (weights === undefined) return reductions.mean(x, along);
    // Weights of one axis are of the axis that is averaged.
    const axis = typeof along.axis === "number" ? shapes.axisOf(along.axis, x.rank) : undefined;
    const isLine = weights.rank === 1 && axis !== undefined && x.rank > 1;
    const line = x.shape.map((_, each) => (each === axis ? -1 : 1));
    const own = isLine ? shapes.reshape(weights, line) : weights;
    const all = base.broadcastTo(own, x.shape);
    return base.div(reductions.sum(base.mul(x, all), along), reductions.sum(all, along));
  },
);

/** What a quantile between two places of the sorted array is. */
export const quantileMethods = ["linear", "lower", "higher", "nearest", "midpoint"] as const;
/** What a quantile between two places of the sorted array is. */
export type QuantileMethod = (typeof quantileMethods)[number];
/** Options of `quantile`, `percentile` and `median`. */
export interface QuantileOptions extends ReduceOptions {
  /** `"linear"`, by the distance from both, unless given. */
  readonly method?: QuantileMethod | undefined;
}
const quantileOptions = options(
  `{ axis, keepDims, method }: axes, a boolean and ${quantileMethods.join(", ")}`,
  {
    axis: isAxes,
    keepDims: isFlag,
    method: (value) => quantileMethods.some((method) => method === value),
  },
);
const parts: ArgumentKind = {
  expected: "a number or a list of numbers from 0 to 1",
  holds: (value) => isPart(value) || isListOf(isPart)(value),
};
function isPart(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= 1;
}
const percents: ArgumentKind = {
  expected: "a number or a list of numbers from 0 to 100",
  holds: (value) => parts.holds(hundredths(value), []),
};
const hundredths = (value: unknown): unknown =>
  typeof value === "number"
    ? value / 100
    : Array.isArray(value)
      ? value.map((each: unknown) => (typeof each === "number" ? each / 100 : each))
      : value;

/** How the elements of both places beside a quantile are weighed, `fraction` of the way from the lower. */
const weights: { readonly [M in QuantileMethod]: (fraction: number) => number } = {
  linear: (fraction) => fraction,
  lower: () => 0,
  higher: (fraction) => (fraction > 0 ? 1 : 0),
  nearest: (fraction) => (fraction > 0.5 ? 1 : 0),
  midpoint: (fraction) => (fraction > 0 ? 0.5 : 0),
};

/** The axes that go as one axis at the end, and whether nothing stays of the others' places. */
function gathered<D extends DTypeName>(x: NDArray<D>, { axis }: ReduceOptions): NDArray<D> {
  if (axis === undefined) return shapes.reshape(x, [-1]);
  const gone = [axis].flat().map((each) => shapes.axisOf(each, x.rank));
  const moved = moveaxis(
    x,
    gone,
    gone.map((_, index) => index - gone.length),
  );
  return shapes.reshape(moved, [...moved.shape.slice(0, x.rank - gone.length), -1]);
}

/** A result with the axes that went put back with the extent 1. */
function kept<D extends DTypeName>(
  x: NDArray,
  result: NDArray<D>,
  { axis, keepDims }: ReduceOptions,
): NDArray<D> {
  if (keepDims !== true) return result;
  const gone = (axis === undefined ? x.shape.map((_, each) => each) : [axis].flat()).map((each) =>
    shapes.axisOf(each, x.rank),
  );
  return shapes.reshape(
    result,
    x.shape.map((extent, each) => (gone.includes(each) ? 1 : extent)),
  );
}

function quantileOf<D extends DTypeName>(
  x: NDArray<D>,
  at: number,
  { method = "linear", ...along }: QuantileOptions,
): NDArray<D> {
  const sorted = ordering.sort(gathered(x, along));
  const last = (sorted.shape.at(-1) ?? 1) - 1;
  const place = at * last;
  const lower = Math.floor(place);
  // A half between an odd and an even place goes to the even one, as NumPy has it.
  const isTie = method === "nearest" && place - lower === 0.5;
  const weight = isTie ? lower % 2 : weights[method](place - lower);
  const pick = (index: number): NDArray<D> =>
    shapes.squeeze(part(sorted, sorted.rank - 1, [index, index + 1]), { axis: -1 });
  const [below, above] = [pick(lower), pick(Math.min(lower + 1, last))];
  const between =
    weight === 0
      ? below
      : weight === 1
        ? above
        : base.add(base.mul(below, 1 - weight), base.mul(above, weight));
  // NaN is sorted to the end, and makes every quantile NaN.
  const top = pick(last);
  return kept(x, base.where(base.notEqual(top, top), top, between), along);
}

function quantilesOf<D extends DTypeName>(
  x: NDArray<D>,
  at: number | readonly number[],
  given: QuantileOptions = {},
): NDArray<D> {
  if (typeof at === "number") return quantileOf(x, at, given);
  return shapes.stack(at.map((each) => quantileOf(x, each, given)));
}

/** The number below which a part of the elements lies, along some axes or all; of a list of parts a new first axis. */
export const quantile = checked("quantile", [array, parts, quantileOptions], quantilesOf);
/** The number below which so many percent of the elements lie, as `quantile`. */
export const percentile = checked(
  "percentile",
  [array, percents, quantileOptions],
  <D extends FloatName>(
    x: NDArray<D>,
    at: number | readonly number[],
    given: QuantileOptions = {},
  ): NDArray<D> =>
    quantilesOf(x, typeof at === "number" ? at / 100 : at.map((each) => each / 100), given),
);
/** The number in the middle of the sorted elements, or the mean of both there, along some axes or all. */
export const median: ReductionOf<FloatName> = checked(
  "median",
  [array, reduceOptions],
  <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> =>
    quantileOf(x, 0.5, along),
);

/** Options of `cov`. */
export interface CovarianceOptions {
  /** Whether each row is a variable; true by default, columns otherwise. */
  readonly rowvar?: boolean | undefined;
  /** What is taken from the count before it divides, 1 by default. */
  readonly ddof?: number | undefined;
}
const covarianceOptions = options("{ rowvar, ddof }, a boolean and a number", {
  rowvar: isFlag,
  ddof: isNumber,
});

function covariance<D extends DTypeName>(
  x: NDArray<D>,
  { rowvar = true, ddof = 1 }: CovarianceOptions = {},
): NDArray<D> {
  const table = x.rank < 2 ? shapes.reshape(x, [1, -1]) : rowvar ? x : matrixTranspose(x);
  const centred = base.sub(table, reductions.mean(table, { axis: 1, keepDims: true }));
  const products = reductions.matmul(centred, matrixTranspose(centred));
  const found = base.div(products, (table.shape[1] ?? 0) - ddof);
  return x.rank < 2 ? shapes.reshape(found, []) : found;
}

/** The covariance of each two variables, the rows of a matrix. */
export const cov = checked("cov", [array, covarianceOptions], covariance);
/** Pearson's correlation of each two variables, the rows of a matrix; 1 of each with itself. */
export const corrcoef = checked(
  "corrcoef",
  [array, options("{ rowvar }, a boolean", { rowvar: isFlag })],
  <D extends FloatName>(x: NDArray<D>, given: CovarianceOptions = {}): NDArray<D> => {
    const found = covariance(x, given);
    if (found.rank === 0) return base.div(found, found);
    const rows = found.shape[0] ?? 0;
    const isOn = base.equal(
      shapes.iota([rows, rows], "i32", { axis: 0 }),
      shapes.iota([rows, rows], "i32", { axis: 1 }),
    );
    const own = base.sqrt(reductions.sum(base.where(isOn, found, 0), { axis: 1 }));
    const both = base.mul(shapes.reshape(own, [-1, 1]), shapes.reshape(own, [1, -1]));
    return base.clip(base.div(found, both), -1, 1);
  },
);

const isKnown = (x: NDArray): NDArray<"bool"> => base.equal(x, x);
const nanReduction = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array, reduceOptions], call);

/** The sum of what is not NaN, along some axes or all. */
export const nansum: ReductionOf<NumberName> = nanReduction(
  "nansum",
  <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> =>
    reductions.sum(base.where(isKnown(x), x, 0), along),
);
/** The product of what is not NaN, along some axes or all. */
export const nanprod: ReductionOf<NumberName> = nanReduction(
  "nanprod",
  <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> =>
    reductions.prod(base.where(isKnown(x), x, 1), along),
);
/** The largest of what is not NaN, along some axes or all; NaN where nothing else is. */
export const nanmax: ReductionOf<FloatName> = nanReduction("nanmax", nanExtreme("max"));
/** The smallest of what is not NaN, along some axes or all; NaN where nothing else is. */
export const nanmin: ReductionOf<FloatName> = nanReduction("nanmin", nanExtreme("min"));

function nanExtreme(which: "max" | "min") {
  const [extreme, filler] =
    which === "max" ? [reductions.max, -Infinity] : [reductions.min, Infinity];
  return <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> => {
    if (dtypes[x.dtype].kind !== "float") return extreme(x, along);
    const known = isKnown(x);
    const rest = extreme(base.where(known, x, filler), along);
    return base.where(reductions.any(known, along), rest, NaN);
  };
}

/** How many elements are not NaN, in the array's dtype. */
const knownCount = <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions): NDArray<D> =>
  reductions.sum(base.astype(isKnown(x), x.dtype), along);

function nanMeanOf<D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> {
  return base.div(reductions.sum(base.where(isKnown(x), x, 0), along), knownCount(x, along));
}

function nanVarianceOf<D extends DTypeName>(
  x: NDArray<D>,
  { ddof = 0, ...along }: SpreadOptions = {},
): NDArray<D> {
  const middle = nanMeanOf(x, { ...along, keepDims: true });
  const distance = base.where(isKnown(x), base.sub(x, middle), 0);
  const squares = reductions.sum(base.mul(distance, distance), along);
  const count = base.sub(knownCount(x, along), ddof);
  return base.where(base.greater(count, 0), base.div(squares, count), NaN);
}

/** The mean of what is not NaN, along some axes or all; NaN where nothing is. */
export const nanmean: ReductionOf<FloatName> = nanReduction("nanmean", nanMeanOf);
/** The variance of what is not NaN, along some axes or all. */
export const nanvar = checked("nanvar", [array, spreadOptions], nanVarianceOf);
/** The square root of the variance of what is not NaN, along some axes or all. */
export const nanstd = checked(
  "nanstd",
  [array, spreadOptions],
  <D extends FloatName>(x: NDArray<D>, given: SpreadOptions = {}): NDArray<D> =>
    base.sqrt(nanVarianceOf(x, given)),
);

function nanQuantileOf<D extends DTypeName>(
  x: NDArray<D>,
  at: number,
  along: ReduceOptions,
): NDArray<D> {
  // NaN is sorted behind all numbers, of which there are `count`.
  const flat = gathered(x, along);
  const sorted = ordering.sort(flat);
  const count = knownCount(flat, { axis: -1, keepDims: true });
  const place = base.mul(base.maximum(base.sub(count, 1), 0), at);
  const lower = base.floor(place);
  const pick = (index: NDArray<D>): NDArray<D> => {
    const places = shapes.iota(sorted.shape, "i32", { axis: sorted.rank - 1 });
    const isHere = base.equal(base.astype(places, sorted.dtype), index);
    return reductions.sum(base.where(isHere, sorted, 0), { axis: -1 });
  };
  const weight = shapes.squeeze(base.sub(place, lower), { axis: -1 });
  const [below, above] = [pick(lower), pick(base.ceil(place))];
  const between = base.add(base.mul(below, base.sub(1, weight)), base.mul(above, weight));
  const isSome = base.greater(shapes.squeeze(count, { axis: -1 }), 0);
  return kept(x, base.where(isSome, between, NaN), along);
}

/** The number below which a part of what is not NaN lies, along some axes or all. */
export const nanquantile = checked(
  "nanquantile",
  [array, parts, reduceOptions],
  <D extends FloatName>(
    x: NDArray<D>,
    at: number | readonly number[],
    along: ReduceOptions = {},
  ): NDArray<D> =>
    typeof at === "number"
      ? nanQuantileOf(x, at, along)
      : shapes.stack(at.map((each) => nanQuantileOf(x, each, along))),
);
/** The number below which so many percent of what is not NaN lie, along some axes or all. */
export const nanpercentile = checked(
  "nanpercentile",
  [array, percents, reduceOptions],
  <D extends FloatName>(
    x: NDArray<D>,
    at: number | readonly number[],
    along: ReduceOptions = {},
  ): NDArray<D> =>
    typeof at === "number"
      ? nanQuantileOf(x, at / 100, along)
      : shapes.stack(at.map((each) => nanQuantileOf(x, each / 100, along))),
);
/** The number in the middle of what is not NaN, along some axes or all. */
export const nanmedian: ReductionOf<FloatName> = nanReduction(
  "nanmedian",
  <D extends DTypeName>(x: NDArray<D>, along: ReduceOptions = {}): NDArray<D> =>
    nanQuantileOf(x, 0.5, along),
);

const nanArg = (name: "nanargmax" | "nanargmin", filler: number) =>
  checked(name, [array, axisOption], (x: NDArray, along: AxisOption = {}): NDArray<"i32"> => {
    const look = name === "nanargmax" ? reductions.argmax : reductions.argmin;
    return look(dtypes[x.dtype].kind === "float" ? base.where(isKnown(x), x, filler) : x, along);
  });

/** The index of the largest element that is not NaN, along an axis or of the flattened array. */
export const nanargmax = nanArg("nanargmax", -Infinity);
/** The index of the smallest element that is not NaN, along an axis or of the flattened array. */
export const nanargmin = nanArg("nanargmin", Infinity);
/** The running sum along an axis, the last by default, with 0 for NaN. */
export const nancumsum = checked(
  "nancumsum",
  [array, axisAnd("reverse")],
  <D extends DTypeName>(x: NDArray<D>, along: CumulativeOptions = {}): NDArray<D> =>
    cumSum(base.where(isKnown(x), x, 0), along),
);
/** The running product along an axis, the last by default, with 1 for NaN. */
export const nancumprod = checked(
  "nancumprod",
  [array, axisAnd("reverse")],
  <D extends DTypeName>(x: NDArray<D>, along: CumulativeOptions = {}): NDArray<D> =>
    cumProd(base.where(isKnown(x), x, 1), along),
);
