/**
 * What functions of single numbers give, by fractions of BigInt and docs/arithmetic.md alone: a second definition for random
 * programs to be held against. Numbers of floats are JavaScript's numbers, integers are BigInts, and bools booleans. It shares no code with
 * the library.
 */
import type { BinaryIn, UnaryIn } from "../../../src/formats/arithmetic/functions.ts";
import type { DType, DTypeName, FloatName } from "../../../src/formats/dtype.ts";
import { add, divide, multiply, rationalOf } from "../../exact-reference.ts";
import type { Rational } from "../../exact-reference.ts";
import type { ExactBinary, ExactUnary } from "../../support/inexact-functions.ts";

export type Item = number | bigint | boolean;
export type RoundingMode = "nearest" | "away" | "zero" | "down" | "up";
export interface CastChoice {
  readonly rounding?: RoundingMode;
  readonly overflow?: "saturate" | "nan" | "unit";
}

interface FloatLimits {
  /** Significant bits, the leading one included. */
  readonly bits: number;
  /** Exponent of the last place of subnormal numbers. */
  readonly lastPlace: number;
  readonly most: number;
  readonly hasInfinity: boolean;
}

export const floatLimits: { readonly [N in FloatName]: FloatLimits } = {
  f64: { bits: 53, lastPlace: -1074, most: Number.MAX_VALUE, hasInfinity: true },
  f32: { bits: 24, lastPlace: -149, most: (2 - 2 ** -23) * 2 ** 127, hasInfinity: true },
  tf32: { bits: 11, lastPlace: -136, most: (2 - 2 ** -10) * 2 ** 127, hasInfinity: true },
  f16: { bits: 11, lastPlace: -24, most: 65_504, hasInfinity: true },
  bf16: { bits: 8, lastPlace: -133, most: (2 - 2 ** -7) * 2 ** 127, hasInfinity: true },
  f8e4m3fn: { bits: 4, lastPlace: -9, most: 448, hasInfinity: false },
  f8e5m2: { bits: 3, lastPlace: -16, most: 57_344, hasInfinity: true },
  f8e8m0fnu: { bits: 1, lastPlace: -127, most: 2 ** 127, hasInfinity: false },
  f6e2m3fn: { bits: 4, lastPlace: -3, most: 7.5, hasInfinity: false },
  f6e3m2fn: { bits: 3, lastPlace: -4, most: 28, hasInfinity: false },
  f4e2m1fn: { bits: 2, lastPlace: -1, most: 6, hasInfinity: false },
};

function isFloatType(dtype: DType): dtype is DType<FloatName> {
  return dtype.kind === "float";
}

export function integerLimits(dtype: DType): readonly [least: bigint, most: bigint] {
  const bits = BigInt(dtype.bits);
  return dtype.kind === "signed"
    ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]
    : [0n, 2n ** bits - 1n];
}

/** The low bits of an integer, read as the format reads them. */
export function wrap(dtype: DType, value: bigint): bigint {
  return dtype.kind === "signed"
    ? BigInt.asIntN(dtype.bits, value)
    : BigInt.asUintN(dtype.bits, value);
}

function power(exponent: number): Rational {
  return exponent >= 0
    ? { numerator: 1n << BigInt(exponent), denominator: 1n }
    : { numerator: 1n, denominator: 1n << BigInt(-exponent) };
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

/** Whole multiples of a unit, of a positive quotient. */
function wholes(value: Rational, mode: RoundingMode | "tiesUp", negative: boolean): bigint {
  const below = value.numerator / value.denominator;
  const rest = value.numerator % value.denominator;
  if (rest === 0n) return below;
  const half = 2n * rest - value.denominator;
  const up: boolean = {
    nearest: half > 0n || (half === 0n && below % 2n === 1n),
    tiesUp: half >= 0n,
    away: half >= 0n,
    zero: false,
    down: negative,
    up: !negative,
  }[mode];
  return up ? below + 1n : below;
}

/** A fraction that is no zero, rounded to so many bits, however large. */
function rounded(name: FloatName, value: Rational, mode: RoundingMode): number {
  const { bits, lastPlace } = floatLimits[name];
  const negative = value.numerator < 0n;
  const magnitude = { ...value, numerator: negative ? -value.numerator : value.numerator };
  let exponent = bitLength(magnitude.numerator) - bitLength(magnitude.denominator);
  const scaled = multiply(magnitude, power(-exponent));
  if (scaled.numerator < scaled.denominator) exponent -= 1;
  const place = Math.max(exponent - bits + 1, lastPlace);
  const ties = name === "f8e8m0fnu" && mode === "nearest" ? "tiesUp" : mode;
  const units = wholes(multiply(magnitude, power(-place)), ties, negative);
  // Half the exponent twice: either power alone may be beyond what JavaScript has.
  const [first, second] = [Math.trunc(place / 2), place - Math.trunc(place / 2)];
  const result = Number(units) * 2 ** first * 2 ** second;
  return negative ? -result : result;
}

function isInfinite(value: number): boolean {
  return Math.abs(value) === Infinity;
}

/** Numbers beyond the format, infinities and zeros, each as docs/numbers.md has it. */
function toFloat(
  name: FloatName,
  exact: Rational | number,
  { rounding = "nearest", overflow }: CastChoice,
): number {
  const { most, hasInfinity } = floatLimits[name];
  const special = typeof exact === "number" ? exact : undefined;
  if (overflow === "unit") return toUnit(name, exact, rounding);
  if (Number.isNaN(special)) return /^f[46]e/.test(name) ? -0 : NaN;
  if (name === "f8e8m0fnu") return toPower(exact, rounding);
  const saturates = overflow === "saturate" || (overflow === undefined && !keepsInfinity(name));
  const bound = saturates ? most : overflow === "nan" || !hasInfinity ? NaN : Infinity;
  if (special !== undefined && isInfinite(special)) return Math.sign(special) * bound;
  if (special === 0) return special;
  const fraction = typeof exact === "number" ? rationalOf(exact) : exact;
  if (fraction.numerator === 0n) return 0;
  const result = rounded(name, fraction, rounding);
  if (Math.abs(result) <= most) return result;
  const inward = { zero: true, down: result > 0, up: result < 0, nearest: false, away: false };
  return Math.sign(result) * (inward[rounding] ? most : bound);
}

/** The formats of 8 bits and fewer saturate by default. */
function keepsInfinity(name: FloatName): boolean {
  return name === "f64" || name === "f32" || name === "tf32" || name === "f16" || name === "bf16";
}

function toUnit(name: FloatName, exact: Rational | number, rounding: RoundingMode): number {
  if (typeof exact === "number") {
    if (Number.isNaN(exact) || exact <= 0) return 0;
    if (exact >= 1) return 1;
    return rounded(name, rationalOf(exact), rounding);
  }
  if (exact.numerator <= 0n) return 0;
  return exact.numerator >= exact.denominator ? 1 : rounded(name, exact, rounding);
}

function toPower(exact: Rational | number, rounding: RoundingMode): number {
  if (typeof exact === "number" && isInfinite(exact)) return NaN;
  const fraction = typeof exact === "number" ? rationalOf(exact) : exact;
  if (fraction.numerator <= 0n) return NaN;
  const result = Math.max(rounded("f8e8m0fnu", fraction, rounding), 2 ** -127);
  return result > 2 ** 127 ? NaN : result;
}

function toInteger(dtype: DType, value: number, rounding: RoundingMode = "zero"): bigint {
  const [least, most] = integerLimits(dtype);
  if (Number.isNaN(value)) return 0n;
  if (isInfinite(value)) return value > 0 ? most : least;
  const { numerator, denominator } = rationalOf(value);
  const negative = numerator < 0n;
  const magnitude = { numerator: negative ? -numerator : numerator, denominator };
  const whole = wholes(magnitude, rounding, negative);
  return clamp(negative ? -whole : whole, least, most);
}

function clamp(value: bigint, least: bigint, most: bigint): bigint {
  if (value < least) return least;
  return value > most ? most : value;
}

export function cast(from: DType, to: DType, item: Item, choice: CastChoice = {}): Item {
  if (from === to && choice.overflow !== "unit") return item;
  const value = typeof item === "boolean" ? BigInt(item) : item;
  if (to.kind === "bool") return typeof value === "bigint" ? value !== 0n : value !== 0;
  if (isFloatType(to)) {
    const exact = typeof value === "bigint" ? { numerator: value, denominator: 1n } : value;
    return toFloat(to.name, exact, choice);
  }
  if (typeof value === "number") return toInteger(to, value, choice.rounding);
  return choice.overflow === "saturate" ? clamp(value, ...integerLimits(to)) : wrap(to, value);
}

/* ---- floats ---- */

function ofFraction(name: FloatName, exact: Rational, zero: number): number {
  return exact.numerator === 0n ? zero : toFloat(name, exact, {});
}

function isOrdinary(...values: readonly number[]): boolean {
  return values.every((value) => Number.isFinite(value));
}

function lesser(left: number, right: number): number {
  if (Number.isNaN(left) || Number.isNaN(right)) return NaN;
  if (left === 0 && right === 0) return Object.is(left, -0) ? left : right;
  return left < right ? left : right;
}

/** The operand that is a number, where one is NaN. */
function numberOf(left: number, right: number, both: number): number {
  return Number.isNaN(left) ? right : Number.isNaN(right) ? left : both;
}

const floatFunctions: {
  readonly [F in ExactBinary]: (name: FloatName, left: number, right: number) => number;
} = {
  // Where both are ordinary, the double's zero has the right sign and is zero only where the exact result is.
  add: (name, left, right) =>
    isOrdinary(left, right)
      ? ofFraction(name, add(rationalOf(left), rationalOf(right)), left + right)
      : left + right,
  sub: (name, left, right) =>
    isOrdinary(left, right)
      ? ofFraction(name, add(rationalOf(left), rationalOf(-right)), left - right)
      : left - right,
  mul: (name, left, right) =>
    isOrdinary(left, right)
      ? signed(ofFraction(name, multiply(rationalOf(left), rationalOf(right)), 0), left, right)
      : left * right,
  div: (name, left, right) =>
    isOrdinary(left, right) && right !== 0
      ? signed(ofFraction(name, divide(rationalOf(left), rationalOf(right)), 0), left, right)
      : left / right,
  rem: (_, left, right) => left % right,
  min: (_, left, right) => lesser(left, right),
  max: (_, left, right) => -lesser(-left, -right),
  fmin: (_, left, right) => numberOf(left, right, lesser(left, right)),
  fmax: (_, left, right) => numberOf(left, right, -lesser(-left, -right)),
};

/** A result with the sign of a product. */
function signed(value: number, left: number, right: number): number {
  const isMinus = (left < 0 || Object.is(left, -0)) !== (right < 0 || Object.is(right, -0));
  return isMinus ? -Math.abs(value) : Math.abs(value);
}

function halvesToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (!Number.isFinite(value) || rest === 0) return value;
  const even = below % 2 === 0 ? below : below + 1;
  const result = rest < 0.5 ? below : rest > 0.5 ? below + 1 : even;
  return result === 0 && value < 0 ? -0 : result;
}

const floatUnaries: { readonly [F in ExactUnary]: (name: FloatName, value: number) => number } = {
  neg: (_, value) => -value,
  abs: (_, value) => Math.abs(value),
  sign: (_, value) => Math.sign(value),
  floor: (_, value) => Math.floor(value),
  ceil: (_, value) => Math.ceil(value),
  trunc: (_, value) => Math.trunc(value),
  round: (_, value) => halvesToEven(value),
  // One rounding of a root of twice the bits and two more cannot be told from the exact one's.
  sqrt: (name, value) => {
    const root = Math.sqrt(value);
    return name === "f64" || !Number.isFinite(root) || root === 0
      ? root
      : toFloat(name, rationalOf(root), {});
  },
};

/* ---- integers ---- */

function modularPower(dtype: DType, base: bigint, exponent: bigint): bigint {
  if (exponent < 0n) {
    if (base === 1n) return 1n;
    if (base === -1n) return exponent % 2n === 0n ? 1n : -1n;
    return 0n;
  }
  let result = 1n;
  let square = base;
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left % 2n === 1n) result = wrap(dtype, result * square);
    square = wrap(dtype, square * square);
  }
  return wrap(dtype, result);
}

function shiftBy(dtype: DType, amount: bigint): bigint {
  return BigInt.asUintN(dtype.bits, amount);
}

const integerFunctions: {
  readonly [F in BinaryIn<"number" | "integer" | "logic">]: (
    dtype: DType,
    left: bigint,
    right: bigint,
  ) => bigint;
} = {
  add: (_, left, right) => left + right,
  sub: (_, left, right) => left - right,
  mul: (_, left, right) => left * right,
  div: (_, left, right) => (right === 0n ? -1n : left / right),
  rem: (_, left, right) => (right === 0n ? left : left % right),
  min: (_, left, right) => (left < right ? left : right),
  max: (_, left, right) => (left > right ? left : right),
  pow: modularPower,
  and: (_, left, right) => left & right,
  or: (_, left, right) => left | right,
  xor: (_, left, right) => left ^ right,
  shl: (dtype, left, right) => {
    const amount = shiftBy(dtype, right);
    return amount >= BigInt(dtype.bits) ? 0n : left << amount;
  },
  shr: (dtype, left, right) => {
    const amount = shiftBy(dtype, right);
    return left >> (amount >= BigInt(dtype.bits) ? BigInt(dtype.bits) : amount);
  },
  mul_high: (dtype, left, right) => (left * right) >> BigInt(dtype.bits),
};

function patternOf(dtype: DType, value: bigint): string {
  return BigInt.asUintN(dtype.bits, value).toString(2).padStart(dtype.bits, "0");
}

const integerUnaries: {
  readonly [F in UnaryIn<"number" | "integer" | "logic">]: (dtype: DType, value: bigint) => bigint;
} = {
  neg: (_, value) => -value,
  abs: (_, value) => (value < 0n ? -value : value),
  sign: (_, value) => (value > 0n ? 1n : value < 0n ? -1n : 0n),
  not: (_, value) => ~value,
  clz: (dtype, value) => BigInt(patternOf(dtype, value).split("1")[0]?.length ?? 0),
  popcount: (dtype, value) => BigInt(patternOf(dtype, value).split("1").length - 1),
  bit_reverse: (dtype, value) => BigInt(`0b${[...patternOf(dtype, value)].toReversed().join("")}`),
};

/* ---- of any format ---- */

function referenceOf<T>(references: { readonly [fn: string]: T | undefined }, fn: string): T {
  const reference = references[fn];
  if (reference === undefined) throw new Error(`no reference of ${fn}`);
  return reference;
}

export function unary(fn: string, dtype: DType, item: Item): Item {
  if (typeof item === "boolean") return !item;
  if (typeof item === "bigint") return wrap(dtype, referenceOf(integerUnaries, fn)(dtype, item));
  return referenceOf(floatUnaries, fn)(dtype.name as FloatName, item);
}

export function binary(fn: string, dtype: DType, left: Item, right: Item): Item {
  if (typeof left === "boolean" || typeof right === "boolean")
    return fn === "and"
      ? left === true && right === true
      : fn === "or"
        ? left === true || right === true
        : left !== right;
  if (typeof left === "bigint" && typeof right === "bigint")
    return wrap(dtype, referenceOf(integerFunctions, fn)(dtype, left, right));
  const reference = referenceOf(floatFunctions, fn);
  return reference(dtype.name as FloatName, Number(left), Number(right));
}

export function compare(predicate: string, left: Item, right: Item): boolean {
  if (predicate === "eq") return left === right;
  if (predicate === "ne") return left !== right;
  if (predicate === "lt") return left < right;
  if (predicate === "le") return left <= right;
  return predicate === "gt" ? left > right : left >= right;
}

export function fma(dtype: DType, a: number, b: number, c: number): number {
  if (!isOrdinary(a, b, c)) return a * b + c;
  const exact = add(multiply(rationalOf(a), rationalOf(b)), rationalOf(c));
  if (exact.numerator !== 0n) return toFloat(dtype.name as FloatName, exact, {});
  // Of a sum that is zero: the sign of its terms where they agree; a product that is no zero cancels to +0.
  const product = signed(a === 0 || b === 0 ? 0 : 1, a, b);
  return Object.is(product, -0) && Object.is(c, -0) ? -0 : 0;
}

/** The order of sorts: NaN above all numbers, -0 below 0. */
export function order(left: Item, right: Item): number {
  if (typeof left !== "number" || typeof right !== "number")
    return left < right ? -1 : left > right ? 1 : 0;
  if (Number.isNaN(left) || Number.isNaN(right))
    return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
  if (left === 0 && right === 0) return Number(Object.is(right, -0)) - Number(Object.is(left, -0));
  return left - right;
}

/** Bits of an integer or of a number that is no NaN, as another format reads them. */
export function sameBits(from: DType, to: DType, item: Item): Item {
  const buffer = new DataView(new ArrayBuffer(8));
  write(buffer, from.name, item);
  return read(buffer, to.name);
}

function write(buffer: DataView, name: DTypeName, item: Item): void {
  if (name === "f64") buffer.setFloat64(0, Number(item), true);
  else if (name === "f32" || name === "tf32") buffer.setFloat32(0, Number(item), true);
  else buffer.setBigUint64(0, BigInt.asUintN(64, BigInt(item)), true);
}

function read(buffer: DataView, name: DTypeName): Item {
  if (name === "f64") return buffer.getFloat64(0, true);
  if (name === "f32") return buffer.getFloat32(0, true);
  const bits = Number(name.slice(1));
  const whole = buffer.getBigUint64(0, true);
  return name.startsWith("i") ? BigInt.asIntN(bits, whole) : BigInt.asUintN(bits, whole);
}
