/**
 * Scalar functions in f64 that JavaScript lacks, or has with other special cases.
 *
 * They are good to one unit in the last place of an f64, logistic to one and a half, erfc to four. A narrower format
 * rounds them once more, so its result is the correctly rounded one unless the true value lies within
 * 2^-28 units of a tie (for f32; 2^-40 for the others).
 */

import { complementaryError } from "../../support/complementary-error.ts";

/** Adding this leaves no room for a fraction, of numbers of either sign below 2^51. */
const integerRounder = 1.5 * 2 ** 52;
const alwaysIntegerFrom = 2 ** 52;

/** To the nearest integer, halves to even. */
export function roundHalfEven(value: number): number {
  if (!(Math.abs(value) < alwaysIntegerFrom / 2)) return roundLarge(value);
  const rounded = value + integerRounder - integerRounder;
  // A zero keeps the sign of the number that it came from.
  return rounded === 0 ? value * 0 : rounded;
}

/** From 2^51 on a number has at most one bit of fraction; NaN comes here too. */
function roundLarge(value: number): number {
  const whole = Math.trunc(value);
  if (whole === value || value !== value) return value;
  return whole % 2 === 0 ? whole : whole + Math.sign(value);
}

/** C's `pow`: a base of 1, or an exponent of 0, gives 1 even where the other is NaN. */
export function power(base: number, exponent: number): number {
  if (base === 1) return 1;
  if (base === -1 && (exponent === Infinity || exponent === -Infinity)) return 1;
  return Math.pow(base, exponent);
}

const leastExponent = -1074;
const greatestExponent = 1023;
/** 2^n for all n that an f64 has. */
const powersOfTwo = Float64Array.from(
  { length: greatestExponent - leastExponent + 1 },
  (_, index) => 2 ** (index + leastExponent),
);

/** `value` · 2^`integer`, rounded once: what the exponent has beyond an f64's goes to the value first. */
function scaleByPower(value: number, integer: number): number {
  const exponent = Math.max(leastExponent, Math.min(greatestExponent, integer));
  const scaled = value * (powersOfTwo[integer - exponent - leastExponent] as number);
  return scaled * (powersOfTwo[exponent - leastExponent] as number);
}

export function exponential2(value: number): number {
  // Beyond these the result is infinite or zero; NaN falls through.
  if (value > 1025) return Infinity;
  if (value < -1080) return 0;
  const integer = roundHalfEven(value);
  return scaleByPower(Math.exp((value - integer) * Math.LN2), integer);
}

export function logistic(value: number): number {
  if (value >= 0) return 1 / (1 + Math.exp(-value));
  const exponential = Math.exp(value);
  return exponential / (1 + exponential);
}

/* ---- erf ---- */

/**
 * erf by Taylor series around the multiples of 1/16:
 *
 *   x = center + t, |t| ≤ 1/32    erf(x) = a0 + a1 t + a2 t² + … + a11 t¹¹
 *
 * With y = erf, y'' = -2x y' gives each coefficient from the two before it. a0 is kept as the sum of
 * two f64, so that the result's error is little more than its last rounding.
 */
const erfSpacing = 1 / 16;
/** From here on erf is nearer to 1 than to the f64 below 1. */
const erfIsOne = 6;
const erfTerms = 12;
const erfStride = erfTerms + 1;

const fixedBits = 192n;
const fixedOne = 1n << fixedBits;

/** π, times 2^192. */
const fixedPi = 0x3243f6a8885a308d313198a2e03707344a4093822299f31d0n;

function integerSquareRoot(value: bigint): bigint {
  let root = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** erf(sixteenths / 16) times 2^192, by e^(-x²) Σ 2^n x^(2n+1) / (1·3·…·(2n+1)), which only adds. */
function fixedErf(sixteenths: number): bigint {
  const x = (BigInt(sixteenths) * fixedOne) / 16n;
  const square = (x * x) >> fixedBits;
  let term = x;
  let sum = x;
  for (let n = 1n; term > 0n; n++) {
    term = ((term * 2n * square) >> fixedBits) / (2n * n + 1n);
    sum += term;
  }
  return (sum * fixedSlope(sixteenths)) >> fixedBits;
}

/** The derivative of erf at sixteenths / 16, 2/√π e^(-x²), times 2^192. */
function fixedSlope(sixteenths: number): bigint {
  const square = (BigInt(sixteenths * sixteenths) * fixedOne) / 256n;
  const twoOverRootPi = (2n * fixedOne * fixedOne) / integerSquareRoot(fixedPi << fixedBits);
  return (twoOverRootPi * fixedOne) / fixedExponential(square);
}

function fixedExponential(x: bigint): bigint {
  let term = fixedOne;
  let sum = fixedOne;
  for (let n = 1n; term > 0n; n++) {
    term = ((term * x) >> fixedBits) / n;
    sum += term;
  }
  return sum;
}

/** A fixed-point number as the nearest f64. */
function fromFixed(value: bigint): number {
  return Number(value) / 2 ** Number(fixedBits);
}

const erfCenters = erfIsOne / erfSpacing + 1;
const erfTable = new Float64Array(erfCenters * erfStride);
let erfTableIsFilled = false;

function fillErfTable(): void {
  erfTableIsFilled = true;
  for (let index = 0; index < erfCenters; index++) {
    const center = index * erfSpacing;
    const exact = fixedErf(index);
    const base = index * erfStride;
    const leading = fromFixed(exact);
    erfTable[base] = leading;
    erfTable[base + erfTerms] = fromFixed(exact - BigInt(leading * 2 ** 64) * 2n ** 128n);
    let before = 0;
    let current = fromFixed(fixedSlope(index));
    for (let n = 1; n < erfTerms; n++) {
      erfTable[base + n] = current;
      const next = (-2 * center * n * current - 2 * (n - 1) * before) / ((n + 1) * n);
      before = current;
      current = next;
    }
  }
}

/** 2/√π - 1, and further coefficients of erf(x)/x in x². */
const erfSeries = [
  0.12837916709551256, -0.37612638903183754, 0.11283791670955126, -0.026866170645131252,
  0.005223977625442188, -0.0008548327023450852, 0.00012055332981789664, -0.00001492565035840625,
] as const;

/** erf(x) - y near zero, where the relative error counts: x + x·(2/√π - 1 - …). */
function excessNearZero(value: number, y: number): number {
  const square = value * value;
  let sum = 0;
  for (let n = erfSeries.length - 1; n >= 0; n--) sum = sum * square + (erfSeries[n] as number);
  return value - y + value * sum;
}

/** erf(x) - y of x from 0 below 6; where they are alike, with more digits than either has. */
function errorExcess(magnitude: number, y: number): number {
  // NaN goes this way too.
  if (!(magnitude > erfSpacing / 2)) return excessNearZero(magnitude, y);
  if (!erfTableIsFilled) fillErfTable();
  const index = Math.round(magnitude / erfSpacing);
  const t = magnitude - index * erfSpacing;
  const base = index * erfStride;
  let sum = 0;
  for (let n = erfTerms - 1; n > 0; n--) sum = (sum + (erfTable[base + n] as number)) * t;
  return (erfTable[base] as number) - y + (sum + (erfTable[base + erfTerms] as number));
}

export function errorFunction(value: number): number {
  const magnitude = Math.abs(value);
  if (magnitude >= erfIsOne) return value < 0 ? -1 : 1;
  const result = errorExcess(magnitude, 0);
  return value < 0 || Object.is(value, -0) ? -result : result;
}

const twoOverRootPi = 2 / Math.sqrt(Math.PI);

/** A starting value, then Halley's steps on erf(x) - y. */
export function inverseErrorFunction(y: number): number {
  const magnitude = Math.abs(y);
  if (!(magnitude < 1)) return magnitude === 1 ? y * Infinity : NaN;
  if (magnitude < 1e-9) return y / twoOverRootPi;
  const logarithm = Math.log1p(-magnitude * magnitude);
  const half = 2 / (Math.PI * 0.147) + logarithm / 2;
  let x = Math.sqrt(Math.sqrt(half * half - logarithm / 0.147) - half);
  for (let step = 0; step < 3; step++) {
    const slope = errorExcess(x, magnitude) / (twoOverRootPi * Math.exp(-x * x));
    x -= slope / (1 + x * slope);
  }
  return y < 0 ? -x : x;
}

/** e^(-x²) with the rounding error of the square taken into account. */
function gaussian(x: number): number {
  const high = Math.fround(x);
  const low = x - high;
  return Math.exp(-high * high) * Math.exp(-low * (x + high));
}

export function complementaryErrorFunction(x: number): number {
  // Where erf is small nothing cancels; NaN goes this way too.
  if (!(Math.abs(x) > 0.5)) return 1 - errorFunction(x);
  const size = Math.abs(x);
  const { center, curve, zero } = complementaryError[64];
  if (size > zero) return x < 0 ? 2 : 0;
  const place = (size - center) / (size + center);
  const sum = curve.reduceRight((total, coefficient) => total * place + coefficient, 0);
  const value = (sum / (1 + 2 * size)) * gaussian(size);
  return x < 0 ? 2 - value : value;
}
