/**
 * Exponentials and what is made of them. x is n·ln 2 + r with |r| ≤ ln 2 / 2, so that e^x = 2^n·e^r:
 *
 *   t = x / ln 2 + 1.5·2^23       the addition rounds to an integer, n, in the low bits of t
 *   r = x - n·ln 2                in two steps: ln 2 is the sum of two floats
 *   e^r = 1 + r + r²·(c2 + c3·r + …)
 *
 * 2^n may be beyond the format's exponents where the result is a subnormal number, so it is applied as
 * 2^⌊n/2⌋ and 2^⌈n/2⌉. The first product is exact and the second rounds once. Numbers so large or small
 * that the result is certain are clamped first, which keeps n in range.
 */
import type { ByWidth, FloatArithmetic } from "./float-arithmetic.ts";
import { exp2Slope, expCurve, tanhCurve } from "./coefficients.ts";

/** -ln 2 as the sum of two floats. */
const minusLn2: ByWidth<readonly [high: number, low: number]> = {
  32: [-0.6931471824645996, 1.9046542121259336e-9],
  64: [-0.6931471805599453, -2.3190468138462996e-17],
};

/** The same with a first part so short that its product with n is exact: where products are rounded before they are added. */
const minusShortLn2: typeof minusLn2 = {
  32: [-0.693145751953125, -1.428606765330187e-6],
  64: [-0.693147180559890330187045, -5.497923018708371e-14],
};

/** Beyond these the results are infinite, or zero. */
const expRange: ByWidth<readonly [least: number, greatest: number]> = {
  32: [-104, 89],
  64: [-746, 710],
};
const exp2Range: typeof expRange = { 32: [-151, 128], 64: [-1076, 1024] };
/** Below the first the result is -1. */
const expm1Range: typeof expRange = { 32: [-18, 89], 64: [-38, 710] };

interface Reduced<T> {
  /** The rounding sum, with n + bias in its low bits. */
  readonly shifted: T;
  readonly rest: T;
}

/** Takes x apart into n and r. */
function reduce<T extends object>(f: FloatArithmetic<T>, x: T, bias: number): Reduced<T> {
  const rounder = f.format.rounder + bias;
  const [high, low] = (f.hasFma ? minusLn2 : minusShortLn2)[f.width];
  const shifted = f.madd(x, Math.LOG2E, rounder);
  const n = f.sub(shifted, rounder);
  return { shifted, rest: f.madd(n, low, f.madd(n, high, x)) };
}

/** value · 2^n, rounded once, where the low bits of `shifted` are n and twice the exponent's bias. */
function scale<T extends object>(f: FloatArithmetic<T>, value: T, shifted: T): T {
  const { place, bias } = f.format;
  const word = f.lowWord(shifted);
  const doubled = f.words("shl", word, place - 1);
  const half = f.words("and", doubled, (2 * bias + 1) << place);
  const rest = f.words("sub", f.words("shl", word, place), half);
  return f.mul(f.mul(value, f.withHighWord(half)), f.withHighWord(rest));
}

/** 2^n, where the low bits of `shifted` are n and the exponent's bias. */
function powerOfTwo<T extends object>(f: FloatArithmetic<T>, shifted: T): T {
  return f.withHighWord(f.words("shl", f.lowWord(shifted), f.format.place));
}

/** e^r. Where products are rounded before they are added, the small terms come first, so that only the last sum shows. */
function exponentialOfRest<T extends object>(f: FloatArithmetic<T>, rest: T): T {
  const curve = expCurve[f.precision];
  if (f.hasFma) return f.polynomial(rest, [1, 1, ...curve]);
  const small = f.mul(f.polynomial(rest, curve), f.mul(rest, rest));
  return f.add(f.add(small, rest), 1);
}

/** 2^r. Otherwise than of e^r the first product is rounded; what its sum with 1 loses joins the small terms. */
function powerOfRest<T extends object>(f: FloatArithmetic<T>, rest: T): T {
  const slope = exp2Slope[f.precision];
  if (f.hasFma) return f.polynomial(rest, [1, ...slope]);
  const [first = 0, ...others] = slope;
  const leading = f.mul(rest, first);
  const small = f.mul(f.polynomial(rest, others), f.mul(rest, rest));
  const sum = f.add(leading, 1);
  return f.add(sum, f.add(f.sub(leading, f.sub(sum, 1)), small));
}

/** e^x·2^doublings of x clamped to where n is in range. */
function exponential<T extends object>(f: FloatArithmetic<T>, x: T, doublings = 0): T {
  const { shifted, rest } = reduce(f, x, 2 * f.format.bias + doublings);
  return scale(f, exponentialOfRest(f, rest), shifted);
}

/** e^x / 2 of x from 0, which is infinite only where sinh and cosh are. */
export function halfExponential<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const [, greatest] = expRange[f.precision];
  return exponential(f, f.clamp(x, undefined, greatest + 1), -1);
}

/** factor·e^x, rounded once where it is a subnormal number; x is within the range of exponents. */
export function scaledExponential<T extends object>(f: FloatArithmetic<T>, x: T, factor: T): T {
  const { shifted, rest } = reduce(f, x, 2 * f.format.bias);
  return scale(f, f.mul(exponentialOfRest(f, rest), factor), shifted);
}

export function exp<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return exponential(f, f.clamp(x, ...expRange[f.precision]));
}

/** 2^(x + low), where x is in the range of exponents and `low` is small. */
export function exp2Sum<T extends object>(f: FloatArithmetic<T>, x: T, low?: T): T {
  const { shifted, rest } = splitWhole(f, x, 2 * f.format.bias);
  const argument = low === undefined ? rest : f.add(rest, low);
  return scale(f, powerOfRest(f, argument), shifted);
}

/** 2^x, which is a normal number. */
export function exp2Normal<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { shifted, rest } = splitWhole(f, x, f.format.bias);
  return f.mul(f.polynomial(rest, [1, ...exp2Slope[f.precision]]), powerOfTwo(f, shifted));
}

/** Takes x apart into the nearest integer and what is left, exactly. */
function splitWhole<T extends object>(f: FloatArithmetic<T>, x: T, bias: number): Reduced<T> {
  const rounder = f.format.rounder + bias;
  const shifted = f.add(x, rounder);
  return { shifted, rest: f.sub(x, f.sub(shifted, rounder)) };
}

export function clampExponent<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return f.clamp(x, ...exp2Range[f.precision]);
}

export function exp2<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return exp2Sum(f, clampExponent(f, x));
}

/**
 * 2^n·(e^r - 1) + 2^n - 1, at half its size: with n at its greatest, 2^n is beyond the format. Numbers
 * that are their own result, zeros and subnormal ones among them, go around it.
 */
export function expm1<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { shifted, rest } = reduce(f, f.clamp(x, ...expm1Range[f.precision]), f.format.bias - 1);
  const curve = f.mul(f.polynomial(rest, expCurve[f.precision]), rest);
  const grown = f.madd(curve, rest, rest);
  const half = powerOfTwo(f, shifted);
  const halfResult = f.madd(grown, half, f.sub(half, 0.5));
  const tiny = f.compare("lt", f.abs(x), 2 ** -(f.format.fraction + 3));
  return f.select(tiny, x, f.add(halfResult, halfResult));
}

/** With e = e^-|x|, which never overflows: 1 / (1 + e), or e / (1 + e) for negative numbers. */
export function logistic<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const [least] = expRange[f.precision];
  const decay = exponential(f, f.clamp(f.neg(f.abs(x)), least, undefined));
  const numerator = f.select(f.compare("lt", x, 0), decay, 1);
  const denominator = f.add(decay, 1);
  const lost = f.sub(decay, f.sub(denominator, 1));
  return f.quotient(numerator, denominator, lost);
}

/** From here on tanh is 1. */
const tanhIsOne: ByWidth<number> = { 32: 9.25, 64: 20 };
const tanhCurveEnd = 0.55;

/**
 * Near zero a polynomial, x + x³·P(x²); from there on 1 - 2 / (e^2|x| + 1), where the divisor and the quotient are sums
 * of two floats: gradients hold 1 - tanh² against small numbers, in which half a unit more of tanh shows.
 */
export function tanh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const magnitude = f.abs(x);
  const square = f.mul(magnitude, magnitude);
  const curve = f.mul(f.polynomial(square, tanhCurve[f.precision]), square);
  const near = f.madd(curve, magnitude, magnitude);
  const far = farTanh(f, f.clamp(magnitude, undefined, tanhIsOne[f.precision]));
  return f.copySign(f.select(f.compare("lt", magnitude, tanhCurveEnd), near, far), x);
}

function farTanh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { shifted, rest } = reduce(f, f.add(x, x), f.format.bias);
  const power = powerOfTwo(f, shifted);
  const growth = f.madd(f.mul(f.polynomial(rest, expCurve[f.precision]), rest), rest, rest);
  const grown = f.madd(growth, power, power);
  const grownLow = f.madd(growth, power, f.sub(power, grown));
  const divisor = f.add(grown, 1);
  const divisorLow = f.add(f.sub(1, f.sub(divisor, grown)), grownLow);
  const { estimate, correction } = f.reciprocal(divisor, divisorLow);
  const result = f.madd(estimate, -2, 1);
  const lost = f.madd(estimate, -2, f.sub(1, result));
  return f.add(result, f.madd(correction, -2, lost));
}
