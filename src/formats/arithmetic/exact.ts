/**
 * Float arithmetic with any rounding, by exact integers: operands become mantissa · 2^exponent, the result
 * is exact (or exact but for a remainder, of which only its presence matters), and one rounding follows.
 * Slow; the usual round-to-nearest of f32 and f64 does not come here.
 *
 *   1 / 3 to f32, rounding up:   2^60 / 3 = 384307168202282325, remainder 1
 *                                24 bits kept, rest not zero: one more in the last place
 */

export type Rounding = "rn" | "rz" | "rm" | "rp" | "rna";

/** A binary format: bits of a mantissa with its leading one, and the exponents of its last place. */
export interface Precision {
  readonly bits: number;
  readonly lowestPlace: number;
  readonly maxFinite: number;
}

export const precisions = Object.freeze({
  f64: { bits: 53, lowestPlace: -1074, maxFinite: Number.MAX_VALUE },
  f32: { bits: 24, lowestPlace: -149, maxFinite: (2 - 2 ** -23) * 2 ** 127 },
  tf32: { bits: 11, lowestPlace: -136, maxFinite: (2 - 2 ** -10) * 2 ** 127 },
  f16: { bits: 11, lowestPlace: -24, maxFinite: 65504 },
  bf16: { bits: 8, lowestPlace: -133, maxFinite: (2 - 2 ** -7) * 2 ** 127 },
  /** f32 and f16 without an end of their exponents, for results that are flushed after this rounding. */
  endless: { bits: 24, lowestPlace: -1000, maxFinite: (2 - 2 ** -23) * 2 ** 127 },
  endlessHalf: { bits: 11, lowestPlace: -1000, maxFinite: 65504 },
});

export interface Scaled {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const scratch = new DataView(new ArrayBuffer(8));

/** A finite number, exactly. */
export function scaled(value: number): Scaled {
  scratch.setFloat64(0, value);
  const bits = scratch.getBigUint64(0);
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const magnitude = biased === 0 ? fraction : fraction | 0x10000000000000n;
  return { mantissa: bits >> 63n ? -magnitude : magnitude, exponent: Math.max(biased, 1) - 1075 };
}

function bitLength(magnitude: bigint): number {
  return magnitude.toString(2).length;
}

/** Whether dropping `rest` of `unit` (and a remainder below) moves the magnitude up. */
function roundsUp(
  mode: Rounding,
  negative: boolean,
  odd: boolean,
  rest: bigint,
  half: bigint,
  hasRemainder: boolean,
): boolean {
  if (rest === 0n && !hasRemainder) return false;
  if (mode === "rz") return false;
  if (mode === "rm") return negative;
  if (mode === "rp") return !negative;
  if (rest !== half) return rest > half;
  return hasRemainder || mode === "rna" || odd;
}

function overflow(mode: Rounding, negative: boolean, maxFinite: number): number {
  const away = mode === "rn" || mode === "rna" || mode === (negative ? "rm" : "rp");
  const size = away ? Infinity : maxFinite;
  return negative ? -size : size;
}

/** `mantissa` · 2^`exponent`, plus something smaller than a place where there is a remainder, rounded. */
export function roundScaled(
  { mantissa, exponent }: Scaled,
  precision: Precision,
  mode: Rounding,
  hasRemainder = false,
): number {
  const negative = mantissa < 0n;
  // Two more places make room for the remainder below the half.
  const magnitude = (negative ? -mantissa : mantissa) << 2n;
  const lowest = exponent - 2;
  const place = Math.max(lowest + bitLength(magnitude) - precision.bits, precision.lowestPlace);
  const drop = place - lowest;
  let kept = drop <= 0 ? magnitude << BigInt(-drop) : magnitude >> BigInt(drop);
  if (drop > 0) {
    const shift = BigInt(drop);
    const rest = magnitude - (kept << shift);
    const half = 1n << (shift - 1n);
    if (roundsUp(mode, negative, (kept & 1n) === 1n, rest, half, hasRemainder)) kept += 1n;
  }
  const size =
    place > 900 ? Number(kept) * 2 ** 900 * 2 ** (place - 900) : Number(kept) * 2 ** place;
  if (size > precision.maxFinite) return overflow(mode, negative, precision.maxFinite);
  return negative ? -size : size;
}

function sumOf(left: Scaled, right: Scaled): Scaled {
  const exponent = Math.min(left.exponent, right.exponent);
  return {
    mantissa:
      (left.mantissa << BigInt(left.exponent - exponent)) +
      (right.mantissa << BigInt(right.exponent - exponent)),
    exponent,
  };
}

function productOf(left: Scaled, right: Scaled): Scaled {
  return { mantissa: left.mantissa * right.mantissa, exponent: left.exponent + right.exponent };
}

function isNegative(value: number): boolean {
  return value < 0 || Object.is(value, -0);
}

/** A sum of exactly zero: its sign follows from the terms where they agree, else from the rounding. */
function zeroSum(leftNegative: boolean, rightNegative: boolean, mode: Rounding): number {
  const negative = leftNegative === rightNegative ? leftNegative : mode === "rm";
  return negative ? -0 : 0;
}

export function addRounded(a: number, b: number, precision: Precision, mode: Rounding): number {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return a + b;
  const sum = sumOf(scaled(a), scaled(b));
  if (sum.mantissa === 0n)
    return a === 0 ? zeroSum(isNegative(a), isNegative(b), mode) : zeroSum(true, false, mode);
  return roundScaled(sum, precision, mode);
}

export function multiplyRounded(
  a: number,
  b: number,
  precision: Precision,
  mode: Rounding,
): number {
  if (!Number.isFinite(a) || !Number.isFinite(b) || a === 0 || b === 0) return a * b;
  return roundScaled(productOf(scaled(a), scaled(b)), precision, mode);
}

export function fuseRounded(
  a: number,
  b: number,
  c: number,
  precision: Precision,
  mode: Rounding,
): number {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
  if (!Number.isFinite(c)) return c;
  const sum = sumOf(productOf(scaled(a), scaled(b)), scaled(c));
  if (sum.mantissa !== 0n) return roundScaled(sum, precision, mode);
  const productNegative = isNegative(a) !== isNegative(b);
  if (a === 0 || b === 0) return zeroSum(productNegative, isNegative(c), mode);
  return zeroSum(true, false, mode);
}

/** Enough places for any precision, and a remainder below them. */
const quotientPlaces = 130;

export function divideRounded(a: number, b: number, precision: Precision, mode: Rounding): number {
  if (!Number.isFinite(a) || !Number.isFinite(b) || a === 0 || b === 0) return a / b;
  const left = scaled(a);
  const right = scaled(b);
  const numerator = left.mantissa << BigInt(quotientPlaces);
  const mantissa = numerator / right.mantissa;
  const exponent = left.exponent - right.exponent - quotientPlaces;
  const hasRemainder = mantissa * right.mantissa !== numerator;
  return roundScaled({ mantissa, exponent }, precision, mode, hasRemainder);
}

export function squareRootRounded(a: number, precision: Precision, mode: Rounding): number {
  if (!(a > 0) || a === Infinity) return Math.sqrt(a);
  const { mantissa, exponent } = scaled(a);
  const odd = (exponent & 1) !== 0;
  const shift = BigInt(quotientPlaces + (odd ? 1 : 0));
  const radicand = mantissa << shift;
  const root = integerRoot(radicand);
  const place = (exponent - Number(shift)) / 2;
  return roundScaled(
    { mantissa: root, exponent: place },
    precision,
    mode,
    root * root !== radicand,
  );
}

function integerRoot(value: bigint): bigint {
  let guess = 1n << BigInt((bitLength(value) + 1) >> 1);
  for (;;) {
    const next = (guess + value / guess) >> 1n;
    if (next >= guess) return guess;
    guess = next;
  }
}

/** A number rounded to a precision. */
export function roundTo(value: number, precision: Precision, mode: Rounding): number {
  if (!Number.isFinite(value) || value === 0) return value;
  if (mode === "rn" && precision === precisions.f32) return Math.fround(value);
  if (precision === precisions.f64) return value;
  return roundScaled(scaled(value), precision, mode);
}

/** An integer rounded to a precision. */
export function roundInteger(value: bigint, precision: Precision, mode: Rounding): number {
  return value === 0n ? 0 : roundScaled({ mantissa: value, exponent: 0 }, precision, mode);
}

export function subtractRounded(
  a: number,
  b: number,
  precision: Precision,
  mode: Rounding,
): number {
  return addRounded(a, -b, precision, mode);
}

export function reciprocalRounded(a: number, precision: Precision, mode: Rounding): number {
  return divideRounded(1, a, precision, mode);
}
