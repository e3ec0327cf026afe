/**
 * Float operations on numbers and codes, as the hardware does them. Arithmetic that yields NaN yields one
 * NaN a format: 0x7fffffff for f32, 0x7fff for f16 and bf16. f64 is another matter: see `nans.ts`.
 */
import { decodeTable } from "../../formats/floats.ts";

/** One f64 as a number and as its low and high word; the low one also as an f32. */
const double = new Float64Array(1);
const words = new Int32Array(double.buffer);
const single = new Float32Array(double.buffer);

export const halfNumbers = decodeTable("f16");
export const bfloatNumbers = decodeTable("bf16");

export const nanHalf = 0x7fff;

const smallestNormal = 2 ** -126;
const smallestNormalHalf = 2 ** -14;
/** What is nearer to the smallest normal number than to one place less. */
const roundsToNormal = (1 - 2 ** -25) * smallestNormal;
const roundsToNormalHalf = (1 - 2 ** -12) * smallestNormalHalf;

/** Subnormal f32 numbers become zeros of their sign. */
export function flush(value: number): number {
  return value < smallestNormal && value > -smallestNormal ? value * 0 : value;
}

export function flushHalf(value: number): number {
  return value < smallestNormalHalf && value > -smallestNormalHalf ? value * 0 : value;
}

/**
 * A result rounded to f32 and flushed. The hardware rounds as if exponents had no end, and flushes what is
 * then below the normal numbers: (1 − 2⁻²⁴)·2⁻¹²⁶, which f32 would round up to 2⁻¹²⁶, becomes zero.
 */
export function roundAndFlush(value: number): number {
  return value < roundsToNormal && value > -roundsToNormal ? value * 0 : Math.fround(value);
}

export function flushHalfResult(value: number): number {
  return value < roundsToNormalHalf && value > -roundsToNormalHalf ? value * 0 : value;
}

/** Into [0, 1]; NaN becomes +0. */
export function saturate(value: number): number {
  return value > 0 ? (value > 1 ? 1 : value) : 0;
}

/** Negative numbers become +0; NaN stays. */
export function rectify(value: number): number {
  return value <= 0 ? 0 : value;
}

/** a·b + c with factors exact in f64, rounded to odd, so that a narrower rounding behind it is right. */
export function fuseToOdd(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const partOfC = sum - product;
  const error = product - (sum - partOfC) + (c - partOfC);
  if (!(error > 0 || error < 0)) return sum;
  double[0] = sum;
  const low = words[0] as number;
  if ((low & 1) !== 0) return sum;
  if (error > 0 === sum > 0) words[0] = low | 1;
  else {
    words[0] = low - 1;
    if (low === 0) words[1] = (words[1] as number) - 1;
  }
  return double[0];
}

/**
 * a·b + c of f32 numbers, rounded once. Rounding the f64 sum again goes wrong only where it is halfway
 * between two f32 numbers, or beyond the largest; anywhere else the nearest f32 is the same.
 */
export function fuseSingle(a: number, b: number, c: number): number {
  const sum = a * b + c;
  const nearest = Math.fround(sum);
  const rest = sum - nearest;
  if (rest === 0 || rest !== rest) return nearest;
  const other = nearest + 2 * rest;
  return Math.fround(other) === other || rest === Infinity || rest === -Infinity
    ? Math.fround(fuseToOdd(a, b, c))
    : nearest;
}

/** The smaller; a NaN gives way to a number, and -0 is smaller than +0. */
export function minimum(a: number, b: number): number {
  if (a !== a) return b;
  return b !== b ? a : Math.min(a, b);
}

export function maximum(a: number, b: number): number {
  if (a !== a) return b;
  return b !== b ? a : Math.max(a, b);
}

export function bitsOfSingle(value: number): number {
  if (value !== value) return 0x7fffffff;
  single[0] = value;
  return words[0] as number;
}

export function singleOfBits(bits: number): number {
  words[0] = bits;
  return single[0] as number;
}

/** Adding and subtracting this rounds a number below 2^51 to the nearest even integer. */
const integerRounder = 2 ** 52;

/** A number as f16 code, rounded once: of the f64's low word it only matters whether anything is there. */
export function encodeHalf(value: number): number {
  if (value !== value) return nanHalf;
  double[0] = value;
  const high = words[1] as number;
  const magnitude = high & 0x7fffffff;
  const sign = (high >>> 16) & 0x8000;
  if (magnitude < 0x3f100000)
    return sign | ((Math.abs(value) * 2 ** 24 + integerRounder - integerRounder) | 0);
  const kept = words[0] === 0 ? magnitude : magnitude | 1;
  const code = ((kept + 0x1ff + ((kept >>> 10) & 1)) >>> 10) - 0xfc000;
  return sign | (code > 0x7c00 ? 0x7c00 : code);
}

export function encodeBfloat(value: number): number {
  if (value !== value) return nanHalf;
  double[0] = value;
  const high = words[1] as number;
  const magnitude = high & 0x7fffffff;
  const sign = (high >>> 16) & 0x8000;
  if (magnitude < 0x38100000)
    return sign | ((Math.abs(value) * 2 ** 133 + integerRounder - integerRounder) | 0);
  const kept = words[0] === 0 ? magnitude : magnitude | 1;
  const code = ((kept + 0xfff + ((kept >>> 13) & 1)) >>> 13) - 0x1c000;
  return sign | (code > 0x7f80 ? 0x7f80 : code);
}

/** To the nearest integer, ties to even. */
export function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  const rounded = rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
  // A zero keeps the sign of the number that it came from.
  return rounded === 0 ? value * 0 : rounded;
}

/** f32 bits of a magnitude with the sign that the top bit of `signs` tells; NaN has none. */
export function withSign(magnitude: number, signs: number): number {
  return magnitude === magnitude
    ? bitsOfSingle(magnitude) | (signs & 0x80000000)
    : bitsOfSingle(magnitude);
}

/** The same of a code of f16 or bf16. */
export function withHalfSign(code: number, signs: number): number {
  return code === nanHalf ? code : code | (signs & 0x8000);
}

/** The high word of 1 / x, of which only the high word counts; subnormal numbers are zeros. */
export function reciprocalHigh(high: number): number {
  return highWordOf(1 / highNumber(high));
}

export function reciprocalRootHigh(high: number): number {
  return highWordOf(1 / Math.sqrt(highNumber(high)));
}

function highNumber(high: number): number {
  words[0] = 0;
  words[1] = (high & 0x7ff00000) === 0 ? high & 0x80000000 : high;
  return double[0] as number;
}

function highWordOf(value: number): number {
  if (value !== value) return 0x7fffffff;
  double[0] = value;
  const high = words[1] as number;
  return (high & 0x7ff00000) === 0 ? high & 0x80000000 : high;
}

/** 1 where the property holds. */
export function hasProperty(bits: number, property: string): number {
  const exponent = (bits >>> 23) & 0xff;
  const mantissa = bits & 0x7fffff;
  return classHolds(exponent === 0xff, exponent === 0, mantissa === 0, property) ? 1 : 0;
}

export function hasPropertyWide(low: number, high: number, property: string): number {
  const exponent = (high >>> 20) & 0x7ff;
  const isWhole = (high & 0xfffff) === 0 && low === 0;
  return classHolds(exponent === 0x7ff, exponent === 0, isWhole, property) ? 1 : 0;
}

function classHolds(
  isTop: boolean,
  isBottom: boolean,
  mantissaIsZero: boolean,
  property: string,
): boolean {
  switch (property) {
    case "finite":
      return !isTop;
    case "infinite":
      return isTop && mantissaIsZero;
    case "number":
      return !isTop || mantissaIsZero;
    case "notanumber":
      return isTop && !mantissaIsZero;
    case "normal":
      // Zero counts as normal for the hardware.
      return !isTop && (!isBottom || mantissaIsZero);
    case "subnormal":
      return isBottom && !mantissaIsZero;
    default:
      throw new Error(`testp.${property}`);
  }
}
