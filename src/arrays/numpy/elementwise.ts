/**
 * NumPy's functions of single elements beside those of `functions.ts`: the other trigonometric functions, logarithms and powers to other bases,
 * remainders, rounding, bits. Each is an op or a short formula of ops, so that it has derivatives, batches and a place on every device.
 *
 *   log2(x)          log(x) · 1/ln 2, exact for powers of two
 *   mod(x, y)        the remainder with the sign of y, where `rem` has that of x
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName, FloatName, IntegerName } from "../../formats/dtype.ts";
import { array, checked, isNumber, operand, options } from "../argument-checks.ts";
import { floatFormats } from "../../formats/floats.ts";
import { NDArray, recordAll } from "../array.ts";
import { whileLoop } from "../control.ts";
import { requireKind } from "../dtype-checks.ts";
import type { BinaryOf, NumberName, UnaryOf } from "../dtypes-of-functions.ts";
import * as base from "../functions.ts";
import type { Operand } from "../functions.ts";
import { any } from "../reductions.ts";
import { besselI0 } from "../special/bessel.ts";
import { logAddExp } from "./log-domain.ts";

const unary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array], call);
const binary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [operand, operand], call);

const isFloat = (x: NDArray): boolean => dtypes[x.dtype].kind === "float";

/** Two operands as arrays of one shape and dtype, which has to be of floats. */
function floats<D extends DTypeName>(
  name: string,
  x: Operand<D>,
  y: Operand<D>,
): readonly [NDArray<D>, NDArray<D>] {
  const [left, right] = base.together(x, y);
  requireKind(name, left, ["float"], 'convert them first: astype(x, "f32")');
  return [left, right];
}

/** The angle in radians, from 0 to π, whose cosine each element is. */
export const acos: UnaryOf<FloatName> = unary("acos", base.unary("chlo.acos"));
/** The angle in radians, from -π/2 to π/2, whose sine each element is. */
export const asin: UnaryOf<FloatName> = unary("asin", base.unary("chlo.asin"));
/** The angle in radians, from -π/2 to π/2, whose tangent each element is. For that of a point see `atan2`. */
export const atan: UnaryOf<FloatName> = unary("atan", base.unary("chlo.atan"));
/** The hyperbolic sine of each element. */
export const sinh: UnaryOf<FloatName> = unary("sinh", base.unary("chlo.sinh"));
/** The hyperbolic cosine of each element. */
export const cosh: UnaryOf<FloatName> = unary("cosh", base.unary("chlo.cosh"));
/** The inverse hyperbolic sine of each element. */
export const asinh: UnaryOf<FloatName> = unary("asinh", base.unary("chlo.asinh"));
/** The inverse hyperbolic cosine of each element, NaN below 1. */
export const acosh: UnaryOf<FloatName> = unary("acosh", base.unary("chlo.acosh"));
/** The inverse hyperbolic tangent of each element, NaN outside of -1 to 1. */
export const atanh: UnaryOf<FloatName> = unary("atanh", base.unary("chlo.atanh"));
/** The square of each element. */
export const square: UnaryOf<NumberName> = unary("square", base.unary("chlo.square"));
/** 1 / x of each element. */
export const reciprocal: UnaryOf<FloatName> = unary(
  "reciprocal",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => base.div(1, x),
);
/** 2 to the power of each element. */
export const exp2: UnaryOf<FloatName> = unary(
  "exp2",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => base.pow(2, x),
);

const logarithm =
  (b: number) =>
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
    base.div(base.log(x), Math.log(b));

/** The logarithm to base 2 of each element. */
export const log2: UnaryOf<FloatName> = unary("log2", logarithm(2));
/** The logarithm to base 10 of each element. */
export const log10: UnaryOf<FloatName> = unary("log10", logarithm(10));

/** Each element without its fraction, towards 0. */
export const trunc: UnaryOf<FloatName> = unary(
  "trunc",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> =>
    base.where(base.less(x, 0), base.ceil(x), base.floor(x)),
);
/** Degrees as radians. */
export const deg2rad: UnaryOf<FloatName> = unary(
  "deg2rad",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => base.mul(x, Math.PI / 180),
);
/** Radians as degrees. */
export const rad2deg: UnaryOf<FloatName> = unary(
  "rad2deg",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => base.mul(x, 180 / Math.PI),
);
/** sin(πx) / (πx) of each element, 1 at 0. */
export const sinc: UnaryOf<FloatName> = unary(
  "sinc",
  <D extends DTypeName>(x: NDArray<D>): NDArray<D> => {
    const isZero = base.equal(x, 0);
    const angle = base.mul(base.where(isZero, 1, x), Math.PI);
    return base.where(isZero, 1, base.div(base.sin(angle), angle));
  },
);
/** All bits of each integer turned, ~x; of bools the negation. */
export const bitwiseNot: UnaryOf<IntegerName | "bool"> = unary("bitwiseNot", base.not);
/** How many bits of each integer are set. */
export const bitwiseCount: UnaryOf<IntegerName> = unary(
  "bitwiseCount",
  base.unary("stablehlo.popcnt"),
);
/** How many bits of each integer are 0 before the first that is set. */
export const countLeadingZeros: UnaryOf<IntegerName> = unary(
  "countLeadingZeros",
  base.unary("stablehlo.count_leading_zeros"),
);

/** The quotient rounded down; of floats as NumPy rounds it, so that x = floorDivide(x, y) · y + mod(x, y). */
function floorQuotient<D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> {
  const [left, right] = base.together(x, y);
  if (isFloat(left)) {
    const exact = base.div(base.sub(left, floorRemainder(left, right)), right);
    return base.where(base.equal(right, 0), base.div(left, right), base.round(exact));
  }
  const quotient = base.div(left, right);
  if (dtypes[left.dtype].kind !== "signed") return quotient;
  const isShort = base.bitwiseAnd(
    base.notEqual(base.rem(left, right), 0),
    base.notEqual(base.less(left, 0), base.less(right, 0)),
  );
  return base.sub(quotient, base.astype(isShort, left.dtype));
}

/** The remainder with the sign of the divisor. */
function floorRemainder<D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> {
  const [left, right] = base.together(x, y);
  const rest = base.rem(left, right);
  if (dtypes[left.dtype].kind === "unsigned") return rest;
  const isOther = base.bitwiseAnd(
    base.notEqual(rest, 0),
    base.notEqual(base.less(rest, 0), base.less(right, 0)),
  );
  return base.where(isOther, base.add(rest, right), rest);
}

/** x / y rounded down, element by element, with broadcasting. `div` of integers rounds towards 0. */
export const floorDivide: BinaryOf<NumberName> = binary("floorDivide", floorQuotient);
/** The remainder of x / y with the sign of y, element by element, as NumPy's `mod` and `remainder`. `rem` has the sign of x. */
export const mod: BinaryOf<NumberName> = binary("mod", floorRemainder);
/** The quotient rounded down and the remainder with the sign of y. */
export const divmod = binary(
  "divmod",
  <D extends DTypeName>(
    x: Operand<D>,
    y: Operand<D>,
  ): readonly [quotient: NDArray<D>, remainder: NDArray<D>] => [
    floorQuotient(x, y),
    floorRemainder(x, y),
  ],
);
/** The fraction and the whole part of each element, both with its sign. */
export const modf = unary(
  "modf",
  <D extends FloatName>(x: NDArray<D>): readonly [fraction: NDArray<D>, whole: NDArray<D>] => {
    const whole = trunc(x);
    const isInfinite = base.equal(base.abs(x), Infinity);
    return [base.where(isInfinite, 0, base.sub(x, whole)), whole];
  },
);
/** sqrt(x² + y²) without overflow, element by element. */
export const hypot: BinaryOf<FloatName> = binary(
  "hypot",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [a, b] = floats("hypot", x, y);
    const [left, right] = [base.abs(a), base.abs(b)];
    const [longer, shorter] = [base.maximum(left, right), base.minimum(left, right)];
    const isZero = base.equal(longer, 0);
    const ratio = base.div(shorter, base.where(isZero, 1, longer));
    const length = base.mul(longer, base.sqrt(base.add(base.mul(ratio, ratio), 1)));
    const isInfinite = base.bitwiseOr(base.equal(left, Infinity), base.equal(right, Infinity));
    return base.where(isInfinite, Infinity, length);
  },
);
/** x with the sign of y, element by element; -0 has one. */
export const copysign: BinaryOf<FloatName> = binary(
  "copysign",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = floats("copysign", x, y);
    const size = base.abs(left);
    return base.where(isNegative(right), base.neg(size), size);
  },
);
/** The next number of the format from x in the direction of y. */
export const nextafter: BinaryOf<FloatName> = binary(
  "nextafter",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [from, to] = base.together(x, y);
    return base.one(recordAll("chlo.next_after", { x: from.value, y: to.value }, {}));
  },
);
/** The larger of two elements, as `maximum`, but a number where the other is NaN. */
export const fmax: BinaryOf<NumberName> = binary(
  "fmax",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = base.together(x, y);
    const larger = base.where(base.less(left, right), right, left);
    return base.where(base.notEqual(left, left), right, larger);
  },
);
/** The smaller of two elements, as `minimum`, but a number where the other is NaN. */
export const fmin: BinaryOf<NumberName> = binary(
  "fmin",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = base.together(x, y);
    const smaller = base.where(base.greater(left, right), right, left);
    return base.where(base.notEqual(left, left), right, smaller);
  },
);
/** 0 where x < 0, `y` where x = 0, 1 where x > 0. */
export const heaviside: BinaryOf<FloatName> = binary(
  "heaviside",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = floats("heaviside", x, y);
    const step = base.where(base.greater(left, 0), base.full(left.shape, 1, left.dtype), 0);
    const known = base.where(base.equal(left, 0), right, step);
    return base.where(base.notEqual(left, left), left, known);
  },
);
/** log(exp(x) + exp(y)) without overflow, element by element. */
export const logaddexp: BinaryOf<FloatName> = binary("logaddexp", logAddExp);
/** log2(2^x + 2^y) without overflow, element by element. */
export const logaddexp2: BinaryOf<FloatName> = binary(
  "logaddexp2",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = floats("logaddexp2", x, y);
    const sum = logAddExp(base.mul(left, Math.LN2), base.mul(right, Math.LN2));
    return base.div(sum, Math.LN2);
  },
);
/** x · 2^n with the whole powers n in an array of i32, without rounding in between. */
export const ldexp = checked(
  "ldexp",
  [array, operand],
  <D extends FloatName>(x: NDArray<D>, n: NDArray<"i32"> | number): NDArray<D> => {
    const power = typeof n === "number" ? base.full(x.shape, n, "i32") : n;
    // In two steps, each of which is a power of two that the format has.
    const half = base.shiftRight(power, 1);
    const scale = (each: NDArray<"i32">): NDArray<D> => base.pow(2, base.astype(each, x.dtype));
    return base.mul(base.mul(x, scale(half)), scale(base.sub(power, half)));
  },
);
/** Whether either of two truths holds and not both. */
export const logicalXor = binary("logicalXor", (x: NDArray<"bool">, y: NDArray<"bool">) =>
  logic("logicalXor", x, y, base.bitwiseXor),
);
/** Whether both truths hold. */
export const logicalAnd = binary("logicalAnd", (x: NDArray<"bool">, y: NDArray<"bool">) =>
  logic("logicalAnd", x, y, base.bitwiseAnd),
);
/** Whether either of two truths holds. */
export const logicalOr = binary("logicalOr", (x: NDArray<"bool">, y: NDArray<"bool">) =>
  logic("logicalOr", x, y, base.bitwiseOr),
);

function logic(
  name: string,
  x: NDArray<"bool">,
  y: NDArray<"bool">,
  combine: (x: NDArray<"bool">, y: NDArray<"bool">) => NDArray<"bool">,
): NDArray<"bool"> {
  for (const each of [x, y])
    if (each instanceof NDArray) requireKind(name, each, ["bool"], "compare first: notEqual(x, 0)");
  return combine(x, y);
}

/** The greatest common divisor of two integers, element by element; never negative. */
export const gcd: BinaryOf<IntegerName> = binary("gcd", commonDivisor);
/** The least common multiple of two integers, element by element; never negative, and 0 where either is. */
export const lcm: BinaryOf<IntegerName> = binary(
  "lcm",
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> => {
    const [left, right] = base.together(x, y);
    const divisor = commonDivisor(left, right);
    const isZero = base.equal(divisor, 0);
    const quotient = base.div(left, base.where(isZero, 1, divisor));
    const multiple = base.mul(quotient, right);
    return dtypes[left.dtype].kind === "signed" ? base.abs(multiple) : multiple;
  },
);

/** Euclid's algorithm, until no element is left. */
function commonDivisor<D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> {
  const [left, right] = base.together(x, y);
  requireKind("gcd", left, ["signed", "unsigned"], 'convert them first: astype(x, "i32")');
  const isSigned = dtypes[left.dtype].kind === "signed";
  const start = isSigned
    ? { whole: base.abs(left), rest: base.abs(right) }
    : { whole: left, rest: right };
  const { whole: divisor } = whileLoop(
    ({ rest }) => any(base.notEqual(rest, 0)),
    ({ whole, rest }) => {
      const isOver = base.equal(rest, 0);
      const next = base.rem(whole, base.where(isOver, 1, rest));
      return { whole: base.where(isOver, whole, rest), rest: base.where(isOver, 0, next) };
    },
    start,
  );
  return divisor;
}

/** Whether an element is below 0 or -0. */
const isNegative = <D extends DTypeName>(x: NDArray<D>): NDArray<"bool"> =>
  base.less(base.where(base.equal(x, 0), base.div(1, x), x), 0);

const kindOfNumbers = options("{ nan, positive, negative }, numbers", {
  nan: isNumber,
  positive: isNumber,
  negative: isNumber,
});

/** What takes the place of what is no number. */
export interface NanToNumOptions {
  /** Of NaN, 0 by default. */
  readonly nan?: number | undefined;
  /** Of infinity, the largest number of the format by default. */
  readonly positive?: number | undefined;
  /** Of negative infinity, the smallest number of the format by default. */
  readonly negative?: number | undefined;
}

/** The array with 0 for NaN and the largest and smallest numbers of the format for the infinities, or what the options say. */
export const nanToNum = checked(
  "nanToNum",
  [array, kindOfNumbers],
  <D extends FloatName>(x: NDArray<D>, given: NanToNumOptions = {}): NDArray<D> => {
    const greatest = floatFormats[x.dtype].maxFinite;
    const { nan = 0, positive = greatest, negative = -greatest } = given;
    const known = base.where(base.notEqual(x, x), nan, x);
    const below = base.where(base.equal(known, Infinity), positive, known);
    return base.where(base.equal(below, -Infinity), negative, below);
  },
);

/** The modified Bessel function of the first kind of order 0 of each element. */
export const i0: UnaryOf<FloatName> = unary("i0", besselI0);
