/**
 * Functions of arrays, element by element: NumPy's names, shapes and broadcasting. A plain number takes the
 * dtype of the array beside it.
 *
 *   add(x, y)      [4, 1] and [3]  ->  [4, 3]
 *   mul(x, 2)      the 2 is of x's dtype
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import type { GraphOpKind } from "../graph/ops/table.ts";
import { tensorType } from "../graph/ops/types.ts";
import { splatOf } from "../graph/transform/arithmetic.ts";
import { elementOf, NDArray, recordAll, recordWith, typeOfArray } from "./array.ts";
import { requireKind, requireNumber, requireOneDtype } from "./dtype-checks.ts";

/** An array, or a number that takes the dtype of the array beside it. */
export type Operand<D extends DTypeName = DTypeName> = NDArray<D> | number;

export function one<D extends DTypeName>(results: readonly GraphValue[]): NDArray<D> {
  const [value] = results;
  if (value === undefined) throw new Error("the op has a result");
  return new NDArray<D>(value);
}

/** The shape that shapes have in common; each axis equal or 1. */
export function broadcastShapes(
  left: readonly number[],
  right: readonly number[],
): readonly number[] {
  const rank = Math.max(left.length, right.length);
  return Array.from({ length: rank }, (_, axis) => {
    const a = left[axis - (rank - left.length)] ?? 1;
    const b = right[axis - (rank - right.length)] ?? 1;
    if (a !== b && a !== 1 && b !== 1)
      throw new TilewrightError({
        code: "TW9304",
        message: "the shapes of two arrays cannot be broadcast to one",
        expected: `extents that are equal or 1, counted from the last`,
        found: `[${left.join(", ")}] and [${right.join(", ")}]`,
      });
    return a === 1 ? b : a;
  });
}

/** Elements below the lower bound become it, those above the upper one that. */
export function clip<D extends DTypeName>(
  x: NDArray<D>,
  lower: Operand<D>,
  upper: Operand<D>,
): NDArray<D> {
  return minimum(maximum(x, lower), upper);
}

/** An array of all elements equal. */
export function full<D extends DTypeName>(
  shape: readonly number[],
  value: number,
  dtype: D,
): NDArray<D> {
  requireNumber(value, dtype);
  const type = tensorType(elementOf(dtype), shape);
  return new NDArray<D>(recordWith("full", (builder) => splatOf(builder, type, value)));
}

export function broadcastTo<D extends DTypeName>(
  x: NDArray<D>,
  shape: readonly number[],
): NDArray<D> {
  if (x.shape.join() === shape.join()) return x;
  broadcastShapes(x.shape, shape);
  const axes = x.shape.map((_, axis) => axis + shape.length - x.rank);
  const type = tensorType(typeOfArray(x.value).element, shape);
  return one(
    recordAll(
      "stablehlo.broadcast_in_dim",
      { operand: x.value },
      { broadcast_dimensions: axes },
      { types: [type] },
    ),
  );
}

/** Both operands as arrays of one shape and dtype. */
export function together<D extends DTypeName>(
  x: Operand<D>,
  y: Operand<D>,
): readonly [NDArray<D>, NDArray<D>] {
  const array = x instanceof NDArray ? x : y;
  if (!(array instanceof NDArray))
    throw new TilewrightError({
      code: "TW9305",
      message: "an operation on arrays was given numbers alone",
      expected: "at least one array",
      found: `${Number(x)} and ${Number(y)}`,
    });
  const of = (each: Operand<D>): NDArray<D> =>
    each instanceof NDArray ? each : full(array.shape, each, array.dtype);
  const [left, right] = [of(x), of(y)];
  requireOneDtype(left, right);
  const shape = broadcastShapes(left.shape, right.shape);
  return [broadcastTo(left, shape), broadcastTo(right, shape)];
}

type BinaryKind = Extract<
  GraphOpKind,
  | "stablehlo.add"
  | "stablehlo.subtract"
  | "stablehlo.multiply"
  | "stablehlo.divide"
  | "stablehlo.remainder"
  | "stablehlo.power"
  | "stablehlo.maximum"
  | "stablehlo.minimum"
  | "stablehlo.and"
  | "stablehlo.or"
  | "stablehlo.xor"
  | "stablehlo.atan2"
  | "stablehlo.shift_left"
  | "stablehlo.shift_right_arithmetic"
  | "stablehlo.shift_right_logical"
>;

export function binary(kind: BinaryKind) {
  return <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [lhs, rhs] = together(x, y);
    return one(recordAll(kind, { lhs: lhs.value, rhs: rhs.value }, {}));
  };
}

export const add = binary("stablehlo.add");
export const sub = binary("stablehlo.subtract");
export const mul = binary("stablehlo.multiply");
export const div = binary("stablehlo.divide");
export const rem = binary("stablehlo.remainder");
export const pow = binary("stablehlo.power");
export const maximum = binary("stablehlo.maximum");
export const minimum = binary("stablehlo.minimum");
export const bitwiseAnd = binary("stablehlo.and");
export const bitwiseOr = binary("stablehlo.or");
export const bitwiseXor = binary("stablehlo.xor");
export const atan2 = binary("stablehlo.atan2");
export const shiftLeft = binary("stablehlo.shift_left");
const shiftRightLogical = binary("stablehlo.shift_right_logical");
const shiftRightArithmetic = binary("stablehlo.shift_right_arithmetic");

/** Shifts to the right; signed integers keep their sign, as NumPy's do. */
export function shiftRight<D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> {
  const array = x instanceof NDArray ? x : y;
  const isSigned = array instanceof NDArray && dtypes[array.dtype].kind === "signed";
  return isSigned ? shiftRightArithmetic(x, y) : shiftRightLogical(x, y);
}

type Direction = "EQ" | "NE" | "GE" | "GT" | "LE" | "LT";

function comparison(direction: Direction) {
  return <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<"bool"> => {
    const [lhs, rhs] = together(x, y);
    return one(
      recordAll(
        "stablehlo.compare",
        { lhs: lhs.value, rhs: rhs.value },
        { comparison_direction: direction },
      ),
    );
  };
}

export const equal = comparison("EQ");
export const notEqual = comparison("NE");
export const less = comparison("LT");
export const lessEqual = comparison("LE");
export const greater = comparison("GT");
export const greaterEqual = comparison("GE");

type UnaryKind = Extract<
  GraphOpKind,
  | "stablehlo.abs"
  | "stablehlo.negate"
  | "stablehlo.exponential"
  | "stablehlo.exponential_minus_one"
  | "stablehlo.log"
  | "stablehlo.log_plus_one"
  | "stablehlo.logistic"
  | "stablehlo.sine"
  | "stablehlo.cosine"
  | "stablehlo.tan"
  | "stablehlo.tanh"
  | "stablehlo.sqrt"
  | "stablehlo.rsqrt"
  | "stablehlo.cbrt"
  | "stablehlo.floor"
  | "stablehlo.ceil"
  | "stablehlo.sign"
  | "stablehlo.round_nearest_even"
  | "stablehlo.not"
  | "stablehlo.popcnt"
  | "stablehlo.count_leading_zeros"
  | "chlo.acos"
  | "chlo.acosh"
  | "chlo.asin"
  | "chlo.asinh"
  | "chlo.atan"
  | "chlo.atanh"
  | "chlo.bessel_i1e"
  | "chlo.cosh"
  | "chlo.digamma"
  | "chlo.erf"
  | "chlo.erf_inv"
  | "chlo.erfc"
  | "chlo.lgamma"
  | "chlo.sinh"
  | "chlo.square"
>;

export function unary(kind: UnaryKind) {
  return <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
    one(recordAll(kind, { operand: x.value }, {}));
}

export const abs = unary("stablehlo.abs");
export const neg = unary("stablehlo.negate");
export const exp = unary("stablehlo.exponential");
export const expm1 = unary("stablehlo.exponential_minus_one");
export const log = unary("stablehlo.log");
export const log1p = unary("stablehlo.log_plus_one");
export const sigmoid = unary("stablehlo.logistic");
export const sin = unary("stablehlo.sine");
export const cos = unary("stablehlo.cosine");
export const tan = unary("stablehlo.tan");
export const tanh = unary("stablehlo.tanh");
export const sqrt = unary("stablehlo.sqrt");
export const rsqrt = unary("stablehlo.rsqrt");
export const cbrt = unary("stablehlo.cbrt");
export const floor = unary("stablehlo.floor");
export const ceil = unary("stablehlo.ceil");
export const sign = unary("stablehlo.sign");
export const round = unary("stablehlo.round_nearest_even");
export const erf = unary("chlo.erf");
export const erfInv = unary("chlo.erf_inv");

export const not = unary("stablehlo.not");

/** Whether elements do not hold. */
export function logicalNot<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  requireKind(
    "logicalNot",
    x,
    ["bool"],
    "compare with 0: equal(x, 0); all bits turned are bitwiseXor(x, -1)",
  );
  return not(x);
}

/** `x` where the condition holds, else `y`; two numbers are f32. */
export function where(condition: NDArray<"bool">, x: number, y: number): NDArray<"f32">;
export function where<D extends DTypeName>(
  condition: NDArray<"bool">,
  x: Operand<D>,
  y: Operand<D>,
): NDArray<D>;
export function where(condition: NDArray<"bool">, x: Operand, y: Operand): NDArray {
  const areNumbers = typeof x === "number" && typeof y === "number";
  const [onTrue, onFalse] = together(areNumbers ? full([], x, "f32") : x, y);
  const shape = broadcastShapes(condition.shape, onTrue.shape);
  return one(
    recordAll(
      "stablehlo.select",
      {
        pred: broadcastTo(condition, shape).value,
        on_true: broadcastTo(onTrue, shape).value,
        on_false: broadcastTo(onFalse, shape).value,
      },
      {},
    ),
  );
}

/** The elements in another dtype. */
export function astype<D extends DTypeName>(x: NDArray, dtype: D): NDArray<D> {
  if (x.dtype === (dtype as DTypeName)) return x as NDArray<D>;
  const types = [tensorType(elementOf(dtype), x.shape)];
  return one(recordAll("stablehlo.convert", { operand: x.value }, {}, { types }));
}

/** The bits in another dtype of the same width. */
export function bitcast<D extends DTypeName>(x: NDArray, dtype: D): NDArray<D> {
  const types = [tensorType(elementOf(dtype), x.shape)];
  return one(recordAll("stablehlo.bitcast_convert", { operand: x.value }, {}, { types }));
}
