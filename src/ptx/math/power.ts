/**
 * x to the power y, as 2^(y·log2 |x|), with the sign and the special cases of C's pow. An error of the
 * logarithm grows with y, so it is computed as the sum of two floats, and y times it too.
 *
 *   |x| = 2^e·m, m from 2/3 to 4/3     s = (m - 1) / (m + 1)     log m = 2·(s + s³/3 + s⁵/5 + …)
 *
 * A pair is the unrounded sum of a float and of a second one below the first's last place.
 */
import type { ByWidth, FloatArithmetic, Term } from "./float-arithmetic.ts";
import { atanhCurve } from "./coefficients.ts";
import { clampExponent, exp2Sum } from "./exponential.ts";
import { takeApart } from "./logarithm.ts";

interface Pair<V> {
  readonly high: V;
  readonly low: V;
}

interface ComputedPair<T extends object> extends Pair<Term<T>> {
  readonly high: T;
}

const third: ByWidth<Pair<number>> = {
  32: { high: 0.3333333432674408, low: -9.934107758624577e-9 },
  64: { high: 0.3333333333333333, low: 1.850371707708594e-17 },
};
/** 2 / ln 2. */
const twoOverLn2: ByWidth<Pair<number>> = {
  32: { high: 2.885390043258667, low: 3.851926067000022e-8 },
  64: { high: 2.8853900817779268, low: 4.0710547481862066e-17 },
};

/** The product of two pairs. */
function multiply<T extends object>(
  f: FloatArithmetic<T>,
  left: Pair<Term<T>>,
  right: Pair<Term<T>>,
): ComputedPair<T> {
  const high = f.mul(left.high, right.high);
  const lost = f.fma(left.high, right.high, f.neg(high));
  return { high, low: f.madd(left.low, right.high, f.madd(left.high, right.low, lost)) };
}

/** The sum of a larger number, or zero, and a smaller pair. */
function addToLarger<T extends object>(
  f: FloatArithmetic<T>,
  larger: Term<T>,
  smaller: Pair<Term<T>>,
): ComputedPair<T> {
  const high = f.add(larger, smaller.high);
  const lost = f.sub(smaller.high, f.sub(high, larger));
  return { high, low: f.add(lost, smaller.low) };
}

/** (m - 1) / (m + 1). */
function ratio<T extends object>(f: FloatArithmetic<T>, mantissa: T): ComputedPair<T> {
  const numerator = f.sub(mantissa, 1);
  const denominator = f.add(mantissa, 1);
  const denominatorLow = f.sub(mantissa, f.sub(denominator, 1));
  const reciprocal = f.quotient(1, denominator);
  const high = f.mul(numerator, reciprocal);
  const minus = f.neg(high);
  const remainder = f.madd(minus, denominatorLow, f.fma(minus, denominator, numerator));
  return { high, low: f.mul(remainder, reciprocal) };
}

/** log2 of a positive finite number. */
function logarithm<T extends object>(f: FloatArithmetic<T>, x: T): ComputedPair<T> {
  const { exponent, mantissa } = takeApart(f, x);
  const s = ratio(f, mantissa);
  const square = multiply(f, s, s);
  const tail = f.mul(f.polynomial(square.high, atanhCurve[f.precision]), square.high);
  const { high, low } = third[f.width];
  const coefficient = addToLarger(f, high, { high: tail, low });
  const cubic = multiply(f, s, multiply(f, square, coefficient));
  const sum = addToLarger(f, s.high, cubic);
  const natural = { high: sum.high, low: f.add(sum.low, s.low) };
  return addToLarger(f, exponent, multiply(f, natural, twoOverLn2[f.width]));
}

/** Beyond this an exponent gives 0, 1 or infinity, whatever the base. */
const largestExponent: ByWidth<number> = { 32: 2 ** 40, 64: 2 ** 70 };

/** |x|^y of finite numbers, x not zero. */
function magnitudePower<T extends object>(f: FloatArithmetic<T>, magnitude: T, y: T): T {
  const limit = largestExponent[f.precision];
  const exponent = f.clamp(y, -limit, limit);
  const base = logarithm(f, magnitude);
  const high = f.mul(exponent, base.high);
  const lost = f.fma(exponent, base.high, f.neg(high));
  const low = f.madd(exponent, base.low, lost);
  const clamped = clampExponent(f, high);
  const inside = f.compare("eq", clamped, high);
  return exp2Sum(f, clamped, f.select(inside, low, 0));
}

export function pow<T extends object>(f: FloatArithmetic<T>, x: T, y: T): T {
  const magnitude = f.abs(x);
  let result = magnitudePower(f, magnitude, y);
  // Zero and infinity: themselves to positive exponents, each other to negative ones.
  const infinite = f.compare("eq", magnitude, Infinity);
  const zero = f.compare("eq", x, 0);
  const falling = f.compare("lt", y, 0);
  result = f.select(infinite, f.select(falling, 0, Infinity), result);
  result = f.select(zero, f.select(falling, Infinity, 0), result);
  result = withSign(f, x, y, result);
  const unordered = f.compare("nan", x, y);
  result = f.select(unordered, NaN, result);
  result = f.select(f.compare("eq", x, 1), 1, result);
  return f.select(f.compare("eq", y, 0), 1, result);
}

/** Negative bases: odd exponents keep the sign, and exponents that are no integers have no result. */
function withSign<T extends object>(f: FloatArithmetic<T>, x: T, y: T, result: T): T {
  const whole = (value: T): T => f.compare("eq", f.truncate(value), value);
  const integral = whole(y);
  const even = whole(f.mul(y, 0.5));
  const sign = f.words("and", f.highWord(x), 2 ** 31);
  const flipped = f.withHighWord(f.words("xor", f.highWord(result), sign), result);
  const signed = f.select(integral, f.select(even, result, flipped), result);
  const negative = f.compareAnd("gt", x, -Infinity, f.compare("lt", x, 0));
  return f.select(negative, f.select(integral, signed, NaN), signed);
}
