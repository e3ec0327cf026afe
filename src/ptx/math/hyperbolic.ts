/**
 * Hyperbolic functions and their inverses.
 *
 *   sinh    e^x/2 - e^-x/2; below 1 its series     asinh   log1p(x + x² / (1 + √(x² + 1)))
 *   cosh    e^x/2 + e^-x/2                         acosh   log1p(x - 1 + √(x² - 1))
 *                                                  atanh   log1p(2x / (1 - x)) / 2
 *
 * e^-x/2 is a quarter over e^x/2. Where x² is beyond the ones that are added to it, asinh and acosh are log x + ln 2.
 */
import type { ByWidth, FloatArithmetic } from "./float-arithmetic.ts";
import { sinhCurve } from "./coefficients.ts";
import { halfExponential } from "./exponential.ts";
import { log, log1p } from "./logarithm.ts";

export function sinh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const size = f.abs(x);
  const square = f.mul(size, size);
  const curve = f.mul(f.polynomial(square, sinhCurve[f.precision]), square);
  const near = f.madd(curve, size, size);
  const grown = halfExponential(f, size);
  const far = f.sub(grown, f.div(0.25, grown));
  return f.copySign(f.select(f.compare("lt", size, 1), near, far), x);
}

export function cosh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const grown = halfExponential(f, f.abs(x));
  return f.add(grown, f.div(0.25, grown));
}

/** From here on x² ± 1 is x². */
const large: ByWidth<number> = { 32: 2 ** 13, 64: 2 ** 28 };

function logOfTwice<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return f.add(log(f, x), Math.LN2);
}

export function asinh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const size = f.abs(x);
  const root = f.sqrt(f.madd(size, size, 1));
  const above = f.div(f.mul(size, size), f.add(root, 1));
  const near = log1p(f, f.add(size, above));
  const isLarge = f.compare("gt", size, large[f.precision]);
  return f.copySign(f.select(isLarge, logOfTwice(f, size), near), x);
}

export function acosh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const root = f.sqrt(f.fma(x, x, -1));
  const near = log1p(f, f.add(f.sub(x, 1), root));
  const value = f.select(f.compare("gt", x, large[f.precision]), logOfTwice(f, x), near);
  return f.select(f.compare("lt", x, 1), NaN, value);
}

export function atanh<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const size = f.abs(x);
  const ratio = f.div(f.add(size, size), f.sub(1, size));
  return f.copySign(f.mul(log1p(f, ratio), 0.5), x);
}
