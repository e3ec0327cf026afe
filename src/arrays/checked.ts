/**
 * The functions on arrays as programs call them, each with what its arguments are. A value of another kind is refused
 * where it is given (TW4023), not where something is computed from it later.
 */
import type { FloatName, IntegerName } from "../formats/dtype.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { fieldsOf, functionKind, isListOf, isWhole, optional } from "../support/checked-call.ts";
import { isHostArray } from "../formats/hostarray.ts";
import {
  array,
  arrays,
  axes,
  axisAnd,
  axisOption,
  checked,
  count,
  dtype,
  indices,
  isArray,
} from "./argument-checks.ts";
import { number, openShape, operand, reduceOptions, requiredAxis } from "./argument-checks.ts";
import { shape, tree, truths } from "./argument-checks.ts";
import type { AlongAxisOf, BinaryOf, LogicName, NumberName } from "./dtypes-of-functions.ts";
import type { ReductionOf, UnaryOf } from "./dtypes-of-functions.ts";
import * as functions from "./functions.ts";
import * as indexing from "./indexing.ts";
import * as ordering from "./ordering.ts";
import * as reductions from "./reductions.ts";
import * as runnings from "./cumulative.ts";
import * as shapes from "./shapes.ts";
import * as trees from "./tree.ts";

const unary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array], call);
const binary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [operand, operand], call);
const reduction = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array, reduceOptions], call);

/** The absolute value of each element; the modulus of complex ones. */
export const abs: UnaryOf<NumberName> = unary("abs", functions.abs);
/** The negative of each element, -x. */
export const neg: UnaryOf<NumberName> = unary("neg", functions.neg);
/** e to the power of each element. */
export const exp: UnaryOf<FloatName> = unary("exp", functions.exp);
/** exp(x) - 1, exact also for elements near 0. */
export const expm1: UnaryOf<FloatName> = unary("expm1", functions.expm1);
/** The natural logarithm of each element. */
export const log: UnaryOf<FloatName> = unary("log", functions.log);
/** log(1 + x), exact also for elements near 0. */
export const log1p: UnaryOf<FloatName> = unary("log1p", functions.log1p);
/** The logistic function 1 / (1 + exp(-x)) of each element. */
export const sigmoid: UnaryOf<FloatName> = unary("sigmoid", functions.sigmoid);
/** The sine of each element, in radians. */
export const sin: UnaryOf<FloatName> = unary("sin", functions.sin);
/** The cosine of each element, in radians. */
export const cos: UnaryOf<FloatName> = unary("cos", functions.cos);
/** The tangent of each element, in radians. */
export const tan: UnaryOf<FloatName> = unary("tan", functions.tan);
/** The hyperbolic tangent of each element. */
export const tanh: UnaryOf<FloatName> = unary("tanh", functions.tanh);
/** The square root of each element. */
export const sqrt: UnaryOf<FloatName> = unary("sqrt", functions.sqrt);
/** 1 / sqrt(x) of each element. */
export const rsqrt: UnaryOf<FloatName> = unary("rsqrt", functions.rsqrt);
/** The cube root of each element, which is negative for negative elements. */
export const cbrt: UnaryOf<FloatName> = unary("cbrt", functions.cbrt);
/** The largest whole number not above each element. */
export const floor: UnaryOf<FloatName> = unary("floor", functions.floor);
/** The smallest whole number not below each element. */
export const ceil: UnaryOf<FloatName> = unary("ceil", functions.ceil);
/** -1, 0 or 1 by the sign of each element; NaN stays NaN. */
export const sign: UnaryOf<NumberName> = unary("sign", functions.sign);
/** Each element rounded to the nearest whole number, halves to the even one. */
export const round: UnaryOf<FloatName> = unary("round", functions.round);
/** True where an element of a bool array is false. */
export const logicalNot: UnaryOf<"bool"> = unary("logicalNot", functions.logicalNot);
/** The error function of each element. */
export const erf: UnaryOf<FloatName> = unary("erf", functions.erf);
/** The inverse of the error function: the y with erf(y) = x, for elements between -1 and 1. */
export const erfInv: UnaryOf<FloatName> = unary("erfInv", functions.erfInv);

/**
 * x + y, element by element, with broadcasting. A plain number takes the dtype of the array beside it.
 *
 * @example
 * ```ts
 * import { add, array } from "tilewright/arrays";
 *
 * const column = array([[1], [2]]);
 * const row = array([10, 20, 30]);
 * console.log(await add(column, row).values()); // [[11, 21, 31], [12, 22, 32]]
 * ```
 */
export const add = binary("add", functions.add);
/** x - y, element by element, with broadcasting. */
export const sub = binary("sub", functions.sub);
/** x · y, element by element, with broadcasting. For the product of matrices see `matmul`. */
export const mul = binary("mul", functions.mul);
/** x / y, element by element, with broadcasting; integers are truncated towards 0. */
export const div = binary("div", functions.div);
/** The remainder of x / y, element by element, with the sign of x, as `%` has it. */
export const rem = binary("rem", functions.rem);
/** x to the power of y, element by element, with broadcasting. */
export const pow = binary("pow", functions.pow);
/** The larger of two elements, with broadcasting; NaN where either is NaN. For the largest of one array see `max`. */
export const maximum = binary("maximum", functions.maximum);
/** The smaller of two elements, with broadcasting; NaN where either is NaN. For the smallest of one array see `min`. */
export const minimum = binary("minimum", functions.minimum);
/** The bits that both elements have set, of integers or bools. */
export const bitwiseAnd: BinaryOf<LogicName> = binary("bitwiseAnd", functions.bitwiseAnd);
/** The bits that either element has set, of integers or bools. */
export const bitwiseOr: BinaryOf<LogicName> = binary("bitwiseOr", functions.bitwiseOr);
/** The bits that exactly one of two elements has set, of integers or bools. */
export const bitwiseXor: BinaryOf<LogicName> = binary("bitwiseXor", functions.bitwiseXor);
/** The angle of the point (y, x) in radians, from -π to π; the first argument is y. */
export const atan2: BinaryOf<FloatName> = binary("atan2", functions.atan2);
/** The bits of integers x moved to the left by y places. */
export const shiftLeft: BinaryOf<IntegerName> = binary("shiftLeft", functions.shiftLeft);
/** The bits of integers x moved to the right by y places. Signed integers keep their sign. */
export const shiftRight: BinaryOf<IntegerName> = binary("shiftRight", functions.shiftRight);
/** Whether x = y, element by element, as a bool array. */
export const equal = binary("equal", functions.equal);
/** Whether x ≠ y, element by element, as a bool array. */
export const notEqual = binary("notEqual", functions.notEqual);
/** Whether x < y, element by element, as a bool array. */
export const less = binary("less", functions.less);
/** Whether x ≤ y, element by element, as a bool array. */
export const lessEqual = binary("lessEqual", functions.lessEqual);
/** Whether x > y, element by element, as a bool array. */
export const greater = binary("greater", functions.greater);
/** Whether x ≥ y, element by element, as a bool array. */
export const greaterEqual = binary("greaterEqual", functions.greaterEqual);

/** Elements limited to a range: those below `lower` become it, those above `upper` become that. */
export const clip = checked("clip", [array, operand, operand], functions.clip);
/**
 * Elements of `x` where the condition is true, of `y` elsewhere, with broadcasting.
 *
 * @example
 * ```ts
 * import { array, greater, where } from "tilewright/arrays";
 *
 * const x = array([-1, 2, -3]);
 * console.log(await where(greater(x, 0), x, 0).values()); // [0, 2, 0]
 * ```
 */
export const where = checked("where", [array, operand, operand], functions.where);
/** The array converted to another dtype, rounded where that is narrower. */
export const astype = checked("astype", [array, dtype], functions.astype);
/** The same bits read as another dtype of the same width, such as `"f32"` as `"u32"`. */
export const bitcast = checked("bitcast", [array, dtype], functions.bitcast);
/** An array of a shape with every element equal to a number. */
export const full = checked("full", [shape, number, dtype], functions.full);
/** The array repeated along axes of extent 1, and along new ones in front, to fill a shape. */
export const broadcastTo = checked("broadcastTo", [array, shape], functions.broadcastTo);
/** The shape that two shapes broadcast to; refused where extents differ and neither is 1. */
export const broadcastShapes = checked(
  "broadcastShapes",
  [shape, shape],
  functions.broadcastShapes,
);

/**
 * The sum of the elements, along some axes or all.
 *
 * @example
 * ```ts
 * import { array, sum } from "tilewright/arrays";
 *
 * const x = array([[1, 2], [3, 4]]);
 * console.log(await sum(x).values()); // 10
 * console.log(await sum(x, { axis: 0 }).values()); // [4, 6]
 * ```
 */
export const sum: ReductionOf<NumberName> = reduction("sum", reductions.sum);
/** The product of the elements, along some axes or all. */
export const prod = reduction("prod", reductions.prod);
/** The largest element, along some axes or all; NaN if there is one. For the larger of two arrays see `maximum`. */
export const max = reduction("max", reductions.max);
/** The smallest element, along some axes or all; NaN if there is one. For the smaller of two arrays see `minimum`. */
export const min = reduction("min", reductions.min);
/** The arithmetic mean of the elements, along some axes or all. Narrow floats are added in f32. */
export const mean: ReductionOf<FloatName> = reduction("mean", reductions.mean);
/** log(sum(exp(x))), along some axes or all, without overflow. */
export const logsumexp: ReductionOf<FloatName> = reduction("logsumexp", reductions.logsumexp);
/** Whether any element of a bool array is true, along some axes or all. */
export const any = checked("any", [truths, reduceOptions], reductions.any);
/** Whether all elements of a bool array are true, along some axes or all. */
export const all = checked("all", [truths, reduceOptions], reductions.all);
/**
 * The index of the largest element along an axis, the first of equal ones; NaN counts as the largest. Without an axis,
 * the index into the flattened array.
 */
export const argmax = checked("argmax", [array, axisOption], reductions.argmax);
/**
 * The index of the smallest element along an axis, the first of equal ones; NaN counts as the smallest. Without an
 * axis, the index into the flattened array.
 */
export const argmin = checked("argmin", [array, axisOption], reductions.argmin);
/** exp(x) / sum(exp(x)) along an axis, the last by default, without overflow. */
export const softmax: AlongAxisOf<FloatName> = checked(
  "softmax",
  [array, axisOption],
  reductions.softmax,
);
/**
 * The product of two matrices, or of batches of them: [..., m, k] and [..., k, n] give [..., m, n].
 *
 * @example
 * ```ts
 * import { array, matmul } from "tilewright/arrays";
 *
 * const x = array([[1, 2], [3, 4]]);
 * const y = array([[1], [10]]);
 * console.log(await matmul(x, y).values()); // [[21], [43]]
 * ```
 */
export const matmul = checked("matmul", [array, array], reductions.matmul);
/**
 * Sums of products by a formula in Einstein's notation, as NumPy's `einsum` of two operands.
 *
 * @example
 * ```ts
 * import { array, einsum } from "tilewright/arrays";
 *
 * const q = array([[[1, 2]], [[3, 4]]]); // [batch, row, k]
 * const scores = einsum("bik,bjk->bij", q, q); // q · qᵀ of each batch
 * ```
 */
export const einsum = checked(
  "einsum",
  [
    { expected: 'a formula such as "ij,jk->ik"', holds: (value) => typeof value === "string" },
    array,
    array,
  ],
  reductions.einsum,
);

// A list with holes includes undefined, which no test of each element would meet.
const isNested = (value: unknown): boolean =>
  ["number", "bigint", "boolean"].includes(typeof value) ||
  (Array.isArray(value) && !value.includes(undefined) && value.every(isNested));
const data: ArgumentKind = {
  expected: "numbers in nested lists, or an array of the host, as fromNumbers makes it",
  holds: (value) => isNested(value) || isHostArray(fieldsOf(value, ["dtype", "shape", "data"])),
};

/**
 * An array from numbers in nested lists, or from a host array. Numbers become `"f32"` unless a dtype is given.
 *
 * @example
 * ```ts
 * import { array } from "tilewright/arrays";
 *
 * const x = array([[1, 2], [3, 4]]);
 * const i = array([0, 1], "i32");
 * console.log(x.shape, x.dtype, i.dtype); // [2, 2] f32 i32
 * ```
 */
const makeArray = checked("array", [data, optional(dtype)], shapes.array);
export { makeArray as array };
/** An array of zeros of a shape, of `"f32"` unless a dtype is given. */
export const zeros = checked("zeros", [shape, optional(dtype)], shapes.zeros);
/** An array of ones of a shape, of `"f32"` unless a dtype is given. */
export const ones = checked("ones", [shape, optional(dtype)], shapes.ones);
/** The numbers 0, 1, …, count - 1, of `"i32"` unless a dtype is given. */
export const arange = checked("arange", [count, optional(dtype)], shapes.arange);
/** An array of a shape in which each element is its own index along one axis. */
export const iota = checked(
  "iota",
  [
    shape,
    dtype,
    {
      expected: "{ axis }, an axis of the shape",
      holds: (value, [extents]) => {
        const rank = shape.holds(extents, []) ? (extents as readonly number[]).length : 0;
        const { axis: along } = fieldsOf(value, ["axis"]);
        return requiredAxis.holds(value, []) && isWhole(-rank, rank - 1)(along);
      },
    },
  ],
  shapes.iota,
);
/** The same elements in row-major order in another shape, of which one extent may be -1 and is then computed. */
export const reshape = checked("reshape", [array, openShape], shapes.reshape);
/** The array with its axes in another order; reversed unless an order is given. */
export const transpose = checked("transpose", [array, optional(axes)], shapes.transpose);
/** The elements in reverse order along an axis, the first by default. */
export const flip = checked("flip", [array, axisOption], shapes.flip);
/** Arrays joined along an axis that they have, the first by default. */
export const concatenate = checked("concatenate", [arrays, axisOption], shapes.concatenate);
/** Arrays of one shape joined along a new axis, the first by default. */
export const stack = checked("stack", [arrays, axisOption], shapes.stack);
/** The array with a new axis of extent 1 at a place. */
export const expandDims = checked("expandDims", [array, requiredAxis], shapes.expandDims);
const isRange = (range: unknown): boolean =>
  isListOf(Number.isSafeInteger)(range) && isWhole(2, 3)((range as readonly unknown[]).length);
/**
 * A part of the array: `[start, stop, step?]` for each axis, or null for all of it. Negative ends count from the end.
 *
 * @example
 * ```ts
 * import { array, slice } from "tilewright/arrays";
 *
 * const x = array([[1, 2, 3], [4, 5, 6]]);
 * console.log(await slice(x, [null, [0, 2]]).values()); // [[1, 2], [4, 5]]
 * ```
 */
export const slice = checked(
  "slice",
  [
    array,
    {
      expected: "[start, stop, step?] or null for each axis",
      holds: isListOf((range) => range === null || isRange(range)),
    },
  ],
  shapes.slice,
);
/** The array without axes of extent 1: one of them, or all. */
export const squeeze = checked("squeeze", [array, axisOption], shapes.squeeze);
/** Parts along an axis, the first by default, at the given indices, which are clamped to those that exist. An embedding lookup. */
export const take = checked("take", [array, array, axisOption], shapes.take);
/** 1 at each index and 0 elsewhere, along a new last axis of `count` elements. */
export const oneHot = checked("oneHot", [array, count, optional(dtype)], shapes.oneHot);

const running = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array, axisAnd("reverse")], call);

/** The elements in order along an axis, the last by default; NaN comes after all numbers. */
export const sort = checked("sort", [array, axisAnd("descending")], ordering.sort);
/** The indices that put the elements in order along an axis, the last by default. */
export const argsort = checked("argsort", [array, axisAnd("descending")], ordering.argsort);
/** The k largest elements along the last axis, in descending order, and their indices. */
export const topK = checked("topK", [array, count], ordering.topK);
/** The running sum along an axis, the last by default. */
export const cumsum = running("cumsum", runnings.cumsum);
/** The running product along an axis, the last by default. */
export const cumprod = running("cumprod", runnings.cumprod);
/** The running maximum along an axis, the last by default. */
export const cummax = running("cummax", runnings.cummax);
/** The running minimum along an axis, the last by default. */
export const cummin = running("cummin", runnings.cummin);

/** Records and lists with at least one array in them. */
const filledTree: ArgumentKind = {
  expected: "an array, or records and lists with arrays in them",
  holds: (value) => tree.holds(value, []) && trees.flatten(value).leaves.length > 0,
};
/** Every prefix along an axis combined by an associative function of two trees of arrays, in a logarithmic number of steps. */
export const associativeScan = checked(
  "associativeScan",
  [functionKind, filledTree, axisAnd("reverse")],
  runnings.associativeScan,
);

const starts: ArgumentKind = {
  expected: "a whole number or an array of i32 without axes for each axis",
  holds: isListOf(
    (start) =>
      Number.isSafeInteger(start) || (isArray(start) && start.dtype === "i32" && start.rank === 0),
  ),
};
/** A part of a fixed shape whose starts are only known when the program runs; they are clamped so that it fits. */
export const dynamicSlice = checked("dynamicSlice", [array, starts, shape], indexing.dynamicSlice);
/** The array with a part replaced, at starts that are only known when the program runs; they are clamped so that it fits. */
export const dynamicUpdateSlice = checked(
  "dynamicUpdateSlice",
  [array, array, starts],
  indexing.dynamicUpdateSlice,
);
/** For each place of the indices, the element at that index along an axis, the last by default, as NumPy's `take_along_axis`. */
export const takeAlongAxis = checked(
  "takeAlongAxis",
  [array, indices, axisOption],
  indexing.takeAlongAxis,
);
/** The array with updates added to the rows that indices name; those of equal indices add up, and those out of range are dropped. */
export const addAt = checked("addAt", [array, indices, array], indexing.addAt);
/** The array with the rows that indices name replaced; of equal indices the last wins, and those out of range are dropped. */
export const setAt = checked("setAt", [array, indices, array], indexing.setAt);
