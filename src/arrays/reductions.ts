/** Sums, products of matrices and what is made of them. */
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { neutralNumbers } from "../graph/ops/combiner.ts";
import { isNarrowFloat } from "../graph/ops/elements.ts";
import { tensorType } from "../graph/ops/types.ts";
import { combiner, splatOf } from "../graph/transform/arithmetic.ts";
import { NDArray, recordWith, recordAll, typeOfArray } from "./array.ts";
import {
  abs,
  astype,
  div,
  equal,
  exp,
  less,
  log,
  mul,
  notEqual,
  one,
  sub,
  where,
} from "./functions.ts";
import { countRemedy, requireKind, requireOneDtype } from "./dtype-checks.ts";
import type { AxisOption } from "./shapes.ts";
import { axisOf, expandDims, iota, reshape, transpose } from "./shapes.ts";

/** Options of `sum`, `max` and the other reductions. */
export interface ReduceOptions {
  /** The axes that go; all where none is given. */
  readonly axis?: number | readonly number[] | undefined;
  /** Whether they stay with the extent 1. */
  readonly keepDims?: boolean | undefined;
}

function axesOf(x: NDArray, { axis }: ReduceOptions): readonly number[] {
  if (axis === undefined) return x.shape.map((_, each) => each);
  const list = typeof axis === "number" ? [axis] : axis;
  return list.map((each) => axisOf(each, x.rank));
}

function kept<D extends DTypeName>(
  x: NDArray<D>,
  result: NDArray<D>,
  options: ReduceOptions,
): NDArray<D> {
  if (options.keepDims !== true) return result;
  const axes = axesOf(x, options);
  return reshape(
    result,
    x.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent)),
  );
}

function reducing(kind: keyof typeof neutralNumbers) {
  return <D extends DTypeName>(x: NDArray<D>, options: ReduceOptions = {}): NDArray<D> => {
    const { element } = typeOfArray(x.value);
    const value = recordWith("reduce", (builder) =>
      builder.one(
        "stablehlo.reduce",
        {
          inputs: [x.value],
          init_values: [splatOf(builder, tensorType(element, []), neutralNumbers[kind](element))],
        },
        { dimensions: axesOf(x, options) },
        { regions: { body: combiner(builder, element, kind) } },
      ),
    );
    return kept(x, new NDArray<D>(value), options);
  };
}

const added = reducing("stablehlo.add");

export function sum<D extends DTypeName>(x: NDArray<D>, options: ReduceOptions = {}): NDArray<D> {
  requireKind("sum", x, ["float", "signed", "unsigned"], countRemedy);
  return added(x, options);
}

export const prod = reducing("stablehlo.multiply");
export const max = reducing("stablehlo.maximum");
export const min = reducing("stablehlo.minimum");

/** Whether any element along the axes holds. */
export function any(x: NDArray<"bool">, options: ReduceOptions = {}): NDArray<"bool"> {
  return max(x, options);
}

/** Whether all elements along the axes hold. */
export function all(x: NDArray<"bool">, options: ReduceOptions = {}): NDArray<"bool"> {
  return min(x, options);
}

/** What is computed of an array in f32 where its format is a narrower float, since a sum may not fit it though the mean does. */
function inWide<D extends DTypeName>(
  x: NDArray<D>,
  compute: <E extends DTypeName>(wide: NDArray<E>) => NDArray<E>,
): NDArray<D> {
  if (!isNarrowFloat(typeOfArray(x.value).element)) return compute(x);
  return astype(compute(astype(x, "f32")), x.dtype);
}

const floatRemedy = 'convert the array first: astype(x, "f32")';

export function mean<D extends DTypeName>(x: NDArray<D>, options: ReduceOptions = {}): NDArray<D> {
  requireKind("mean", x, ["float"], floatRemedy);
  const count = axesOf(x, options).reduce((total, axis) => total * (x.shape[axis] ?? 1), 1);
  return inWide(x, (wide) => div(sum(wide, options), count));
}

/** The mean square of the distance from the mean. */
export function variance<D extends DTypeName>(
  x: NDArray<D>,
  options: ReduceOptions = {},
): NDArray<D> {
  requireKind("variance", x, ["float"], floatRemedy);
  return inWide(x, <E extends DTypeName>(wide: NDArray<E>) => {
    const distance = sub(wide, mean(wide, { ...options, keepDims: true }));
    return mean(one<E>(recordAll("chlo.square", { operand: distance.value }, {})), options);
  });
}

/** The first index of an element that is one of those along an axis. */
function firstOf(isOne: NDArray<"bool">, axis: number): NDArray<"i32"> {
  const places = iota(isOne.shape, "i32", { axis });
  return min(where(isOne, places, isOne.shape[axis] ?? 0), { axis });
}

/** Looks along an axis, or at all elements by rows, for an extreme; where nothing is looked for, there may be no elements. */
function firstExtreme(name: "argmax" | "argmin", x: NDArray, { axis }: AxisOption): NDArray<"i32"> {
  const along = axis === undefined ? 0 : axisOf(axis, x.rank);
  const all = axis === undefined ? reshape(x, [-1]) : x;
  const isAsked = all.shape.every((extent, each) => each === along || extent > 0);
  if (all.shape[along] === 0 && isAsked)
    throw new TilewrightError({
      code: "TW9320",
      message:
        axis === undefined
          ? `${name} of an array that has no elements`
          : `${name} along axis ${axis}, which has no elements`,
      expected: axis === undefined ? "an element or more" : "an axis with an element or more",
      found: x.toString(),
    });
  const extreme = (name === "argmax" ? max : min)(all, { axis: along, keepDims: true });
  return firstOf(isExtreme(all, extreme), along);
}

/** The first index of the largest element along an axis, or of all by rows, NaN before all others. */
export function argmax(x: NDArray, options: AxisOption = {}): NDArray<"i32"> {
  return firstExtreme("argmax", x, options);
}

/** The first index of the smallest element along an axis, or of all by rows, NaN before all others. */
export function argmin(x: NDArray, options: AxisOption = {}): NDArray<"i32"> {
  return firstExtreme("argmin", x, options);
}

/** Whether an element is the extreme one; an extreme that is NaN is one that compares with nothing. */
function isExtreme(x: NDArray, extreme: NDArray): NDArray<"bool"> {
  const isSame = equal(x, extreme);
  return typeOfArray(x.value).element.includes("f") ? logicalOr(isSame, notEqual(x, x)) : isSame;
}

function logicalOr(x: NDArray<"bool">, y: NDArray<"bool">): NDArray<"bool"> {
  return one(recordAll("stablehlo.or", { lhs: x.value, rhs: y.value }, {}));
}

/** Sums of products by a formula such as "bij,bjk->bik"; without an arrow the result has the letters of one operand alone, in order. */
export function einsum<D extends DTypeName>(
  formula: string,
  x: NDArray<D>,
  y: NDArray<D>,
): NDArray<D> {
  requireOneDtype(x, y);
  const parts = /^\s*(\w*)\s*,\s*(\w*)\s*(?:->\s*(\w*)\s*)?$/.exec(formula);
  const [, left = "", right = "", given] = parts ?? [];
  const lone = [...left, ...right].filter((name) => !(left.includes(name) && right.includes(name)));
  const result = given ?? lone.sort().join("");
  const isPlain = [left, right, result].every((names) => new Set(names).size === names.length);
  const fits = parts !== null && isPlain && left.length === x.rank && right.length === y.rank;
  if (!fits || [...result].some((name) => !left.includes(name) && !right.includes(name)))
    throw new TilewrightError({
      code: "TW9308",
      message: `the formula ${JSON.stringify(formula)} does not fit its arrays`,
      expected: `two operands of ranks ${x.rank} and ${y.rank} with different letters each, such as "ij,jk->ik"`,
      found: `${x.toString()} and ${y.toString()}`,
    });
  const alone = (own: string, other: string): readonly number[] =>
    [...own].flatMap((name, axis) =>
      !other.includes(name) && !result.includes(name) ? [axis] : [],
    );
  const lhs = alone(left, right).length === 0 ? x : sum(x, { axis: alone(left, right) });
  const rhs = alone(right, left).length === 0 ? y : sum(y, { axis: alone(right, left) });
  const stays = (own: string, other: string): string =>
    [...own].filter((name) => other.includes(name) || result.includes(name)).join("");
  return product(stays(left, right), stays(right, left), result, lhs, rhs);
}

function product<D extends DTypeName>(
  left: string,
  right: string,
  result: string,
  x: NDArray<D>,
  y: NDArray<D>,
): NDArray<D> {
  const shared = [...left].filter((name) => right.includes(name));
  const batching = shared.filter((name) => result.includes(name));
  const contracting = shared.filter((name) => !result.includes(name));
  const places = (names: readonly string[], within: string): readonly number[] =>
    names.map((name) => within.indexOf(name));
  const value = recordAll(
    "stablehlo.dot_general",
    { lhs: x.value, rhs: y.value },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: places(batching, left),
        rhs_batching_dimensions: places(batching, right),
        lhs_contracting_dimensions: places(contracting, left),
        rhs_contracting_dimensions: places(contracting, right),
      },
    },
  );
  const free = (own: string): readonly string[] =>
    [...own].filter((name) => !shared.includes(name));
  const order = [...batching, ...free(left), ...free(right)];
  const axes = [...result].map((name) => order.indexOf(name));
  const found = one<D>(value);
  return axes.every((axis, i) => axis === i) ? found : transpose(found, axes);
}

/** The product of matrices, over axes in front of them that are equal. */
export function matmul<D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<D> {
  if (x.rank === 1 && y.rank === 1) return einsum("i,i->", x, y);
  if (x.rank === 1)
    return reshape(matmul(expandDims(x, { axis: 0 }), y), [
      ...y.shape.slice(0, -2),
      ...y.shape.slice(-1),
    ]);
  if (y.rank === 1) return reshape(matmul(x, expandDims(y, { axis: 1 })), x.shape.slice(0, -1));
  const batch = "abcdefg".slice(0, Math.max(x.rank, y.rank) - 2);
  const own = (rank: number): string => batch.slice(batch.length - (rank - 2));
  return einsum(`${own(x.rank)}ij,${own(y.rank)}jk->${batch}ik`, x, y);
}

/** The largest elements, which only keep exp from overflowing: no result depends on them, and so no derivative. */
function shift<D extends DTypeName>(x: NDArray<D>, options: ReduceOptions): NDArray<D> {
  const top = max(x, { ...options, keepDims: true });
  return one(recordAll("tilewright.stop_gradient", { operand: top.value }, {}));
}

/** log(sum(exp(x))), without overflow. */
export function logsumexp<D extends DTypeName>(
  x: NDArray<D>,
  options: ReduceOptions = {},
): NDArray<D> {
  // An infinite one keeps nothing from overflowing, and less itself would be NaN: of -∞ alone the result is -∞, with ∞ it is ∞.
  const highest = shift(x, options);
  const isFinite = less(abs(highest), Infinity);
  const top = where(isFinite, highest, 0);
  const total = log(sum(exp(sub(x, top)), { ...options, keepDims: true }));
  const result = one<D>(recordAll("stablehlo.add", { lhs: total.value, rhs: top.value }, {}));
  if (options.keepDims === true) return result;
  const axes = axesOf(x, options);
  return reshape(
    result,
    x.shape.filter((_, axis) => !axes.includes(axis)),
  );
}

export function softmax<D extends DTypeName>(
  x: NDArray<D>,
  { axis = -1 }: AxisOption = {},
): NDArray<D> {
  const powers = exp(sub(x, shift(x, { axis })));
  // A reciprocal for each sum, and a product for each element: division takes several times as long.
  return mul(powers, div(1, sum(powers, { axis, keepDims: true })));
}
