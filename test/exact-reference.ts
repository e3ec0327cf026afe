/**
 * A second, slow definition of arithmetic for tests to compare with: rational numbers of BigInt,
 * rounded once to a format, and transcendental functions as fixed-point series of 200 bits. It shares
 * no code with the library.
 */
import type { DType, DTypeName, Elements } from "../src/formats/dtype.ts";
import { allocateElements } from "../src/formats/dtype.ts";
import type { Random } from "../src/support/random.ts";
import { referenceDecode, referenceEncode } from "./number-reference.ts";

export type ExactName = "f64" | "f32" | "tf32" | "f16" | "bf16";

interface Precision {
  readonly bits: number;
  /** Exponent of the last place of subnormal numbers. */
  readonly lastPlace: number;
  /** Numbers from 2^overflow on, once rounded, are infinite. */
  readonly overflow: number;
}

const precisions: { readonly [N in ExactName]: Precision } = {
  f64: { bits: 53, lastPlace: -1074, overflow: 1024 },
  f32: { bits: 24, lastPlace: -149, overflow: 128 },
  tf32: { bits: 11, lastPlace: -136, overflow: 128 },
  f16: { bits: 11, lastPlace: -24, overflow: 16 },
  bf16: { bits: 8, lastPlace: -133, overflow: 128 },
};

/** A fraction; the denominator is positive. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const double = new Float64Array(1);
const doubleBits = new BigUint64Array(double.buffer);

/** A finite number as a fraction. */
export function rationalOf(value: number): Rational {
  double[0] = value;
  const bits = doubleBits[0] ?? 0n;
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & (2n ** 52n - 1n);
  const magnitude = biased === 0 ? fraction : fraction + 2n ** 52n;
  const exponent = Math.max(biased, 1) - 1075;
  const numerator = value < 0 ? -magnitude : magnitude;
  return exponent >= 0
    ? { numerator: numerator << BigInt(exponent), denominator: 1n }
    : { numerator, denominator: 1n << BigInt(-exponent) };
}

export function add(left: Rational, right: Rational): Rational {
  return {
    numerator: left.numerator * right.denominator + right.numerator * left.denominator,
    denominator: left.denominator * right.denominator,
  };
}

export function multiply(left: Rational, right: Rational): Rational {
  return {
    numerator: left.numerator * right.numerator,
    denominator: left.denominator * right.denominator,
  };
}

export function divide(left: Rational, right: Rational): Rational {
  const sign = right.numerator < 0n ? -1n : 1n;
  return {
    numerator: sign * left.numerator * right.denominator,
    denominator: sign * left.denominator * right.numerator,
  };
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

/** The nearest number of the format, ties to even; a zero has the fraction's sign. */
export function roundRational(name: ExactName, value: Rational): number {
  const { numerator, denominator } = value;
  if (numerator === 0n) return 0;
  if (numerator < 0n) return -roundRational(name, { numerator: -numerator, denominator });
  const { bits, lastPlace, overflow } = precisions[name];
  let exponent = bitLength(numerator) - bitLength(denominator);
  const scaled = exponent >= 0 ? denominator << BigInt(exponent) : denominator;
  if ((exponent >= 0 ? numerator : numerator << BigInt(-exponent)) < scaled) exponent--;
  const place = Math.max(exponent - bits + 1, lastPlace);
  const over = place >= 0 ? numerator : numerator << BigInt(-place);
  const under = place >= 0 ? denominator << BigInt(place) : denominator;
  let units = over / under;
  const rest = 2n * (over - units * under);
  if (rest > under || (rest === under && units % 2n === 1n)) units += 1n;
  if (place + bitLength(units) > overflow) return Infinity;
  return place > 900 ? Number(units) * 2 ** 900 * 2 ** (place - 900) : Number(units) * 2 ** place;
}

export function roundNumber(name: ExactName, value: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  return roundRational(name, rationalOf(value));
}

/* ---- fixed point ---- */

const fixedBits = 200n;
const one = 1n << fixedBits;

export function fixedOf(value: number): bigint {
  const { numerator, denominator } = rationalOf(value);
  return (numerator * one) / denominator;
}

export function rationalOfFixed(value: bigint): Rational {
  return { numerator: value, denominator: one };
}

function times(left: bigint, right: bigint): bigint {
  return (left * right) >> fixedBits;
}

function over(left: bigint, right: bigint): bigint {
  return (left * one) / right;
}

/** Σ term(n), from term(0), until a term vanishes; each is made from the one before it. */
function series(first: bigint, next: (term: bigint, n: bigint) => bigint): bigint {
  let sum = 0n;
  let term = first;
  for (let n = 1n; term !== 0n && term !== -1n; n++) {
    sum += term;
    term = next(term, n);
  }
  return sum;
}

function arctanInverse(denominator: bigint): bigint {
  let power = one / denominator;
  let sum = 0n;
  for (let n = 0n; power !== 0n; n++) {
    sum += (n % 2n === 0n ? power : -power) / (2n * n + 1n);
    power /= denominator * denominator;
  }
  return sum;
}

/** Machin's formula. */
const pi = 4n * (4n * arctanInverse(5n) - arctanInverse(239n));

function naturalLog(x: bigint): bigint {
  // x = 2^shift · rest with rest in [3/4, 3/2); log(rest) = 2 artanh((rest - 1) / (rest + 1)).
  let shift = 0n;
  let rest = x;
  while (rest >= (3n * one) / 2n) [rest, shift] = [rest >> 1n, shift + 1n];
  while (rest < (3n * one) / 4n) [rest, shift] = [rest << 1n, shift - 1n];
  const twice = (ratio: bigint): bigint => {
    const square = times(ratio, ratio);
    let power = ratio;
    let sum = 0n;
    for (let n = 1n; power !== 0n && power !== -1n; n += 2n) {
      sum += power / n;
      power = times(power, square);
    }
    return 2n * sum;
  };
  return shift * twice(one / 3n) + twice(over(rest - one, rest + one));
}

const log2 = naturalLog(2n * one);

export function fixedExp(x: bigint): bigint {
  // Halve until small, then square as often.
  const halvings = 8n;
  let result = series(one, (term, n) => times(term, x >> halvings) / n);
  for (let n = 0n; n < halvings; n++) result = times(result, result);
  return result;
}

function sine(x: bigint): bigint {
  const reduced = ((x % (2n * pi)) + 2n * pi) % (2n * pi);
  const centered = reduced > pi ? reduced - 2n * pi : reduced;
  const square = times(centered, centered);
  return series(centered, (term, n) => -times(term, square) / (2n * n * (2n * n + 1n)));
}

function squareRoot(value: bigint): bigint {
  let root = 1n << BigInt((bitLength(value) + 1) >> 1);
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** Σ (-1)^n x^(2n+1) / (n! (2n+1)), times 2/√π. */
function fixedErf(x: bigint): bigint {
  const square = times(x, x);
  let term = x;
  let sum = 0n;
  for (let n = 1n; term !== 0n && term !== -1n; n++) {
    sum += term / (2n * n - 1n);
    term = -times(term, square) / n;
  }
  return over(2n * sum, squareRoot(pi << fixedBits));
}

/** Functions of fixed-point numbers, for arguments of moderate size. */
export const fixedFunctions = {
  exp: fixedExp,
  exp2: (x: bigint) => fixedExp(times(x, log2)),
  expm1: (x: bigint) => fixedExp(x) - one,
  log: naturalLog,
  log2: (x: bigint) => over(naturalLog(x), log2),
  log1p: (x: bigint) => naturalLog(one + x),
  sin: sine,
  cos: (x: bigint) => sine(x + pi / 2n),
  tan: (x: bigint) => over(sine(x), sine(x + pi / 2n)),
  tanh: (x: bigint) => {
    const square = fixedExp(2n * x);
    return over(square - one, square + one);
  },
  erf: fixedErf,
  logistic: (x: bigint) => over(one, one + fixedExp(-x)),
  rsqrt: (x: bigint) => over(one, squareRoot(x << fixedBits)),
  sqrt: (x: bigint) => squareRoot(x << fixedBits),
} as const;

/* ---- lanes ---- */

export function isExactName(name: DTypeName): name is ExactName {
  return Object.hasOwn(precisions, name);
}

/** Lanes of a float format that hold `values`, which must be numbers of the format. */
export function elementsOfNumbers(dtype: DType<ExactName>, values: readonly number[]): Elements {
  const lanes = allocateElements(dtype, values.length) as Float64Array;
  const { name } = dtype;
  values.forEach((value, i) => {
    lanes[i] = name === "f16" || name === "bf16" ? referenceEncode(name, value) : value;
  });
  return lanes;
}

export function numbersOfElements(dtype: DType<ExactName>, lanes: Elements): number[] {
  const { name } = dtype;
  return Array.from(lanes as Float64Array, (lane) =>
    name === "f16" || name === "bf16" ? referenceDecode(name, lane) : lane,
  );
}

/** Special, extreme and small numbers of the format. */
export function specialNumbers(name: ExactName): readonly number[] {
  const { bits, lastPlace, overflow } = precisions[name];
  const last = 2 ** lastPlace;
  const normal = 2 ** (lastPlace + bits - 1);
  const epsilon = 2 ** (1 - bits);
  const greatest = (2 - epsilon) * 2 ** (overflow - 1);
  const positive = [0, last, 3 * last, normal - last, normal, normal * (1 + epsilon), 0.5, 1];
  positive.push(1 + epsilon, 1 - epsilon / 2, 1.5, 2, 3, 10, greatest / 2, greatest, Infinity);
  return [...positive, ...positive.map((value) => -value), NaN];
}

/** Numbers of the format over all its exponents, many of them near one another. */
export function randomNumbers(name: ExactName, count: number, random: Random): number[] {
  const { bits, lastPlace, overflow } = precisions[name];
  const numbers: number[] = [];
  while (numbers.length < count) {
    const significand = 1 + random.uniform() + random.uniform() * 2 ** -32;
    const wide = random.below(overflow - lastPlace - bits) + lastPlace + bits;
    const exponent = random.below(4) === 0 ? wide : random.below(8) - 4;
    const sign = random.below(2) === 0 ? -1 : 1;
    const value = roundNumber(name, sign * significand * 2 ** exponent);
    if (Number.isFinite(value)) numbers.push(value);
  }
  return numbers;
}

/** Every pair of the two lists. */
export function pairs(values: readonly number[]): readonly (readonly [number, number])[] {
  return values.flatMap((left) => values.map((right) => [left, right] as const));
}
