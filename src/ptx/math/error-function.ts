/**
 * The error function and its complement, of a = |x|.
 *
 * erf: with the sign of x put back. Both of two forms are computed, and one is chosen:
 *
 *   a < 0.92     a + a·P(a²)
 *   from there   1 - 2^Q(a), where Q is a polynomial near log2(1 - erf a); 1 from where it rounds to it
 *
 * Of f32, the power is the GPU's own approximation: it is less than 0.2, so that 2^-22 of it are less than one unit in the
 * last place of what it is taken from.
 *
 * erfc: the product of `src/support/complementary-error.ts`, less than 2 by it for negative x.
 */
import { complementaryError } from "../../support/complementary-error.ts";
import type { ByWidth, FloatArithmetic } from "./float-arithmetic.ts";
import { erfCurve, erfDecay } from "./coefficients.ts";
import { exp2Normal, scaledExponential } from "./exponential.ts";

const curveEnd = 0.92;
const erfIsOne: ByWidth<number> = { 32: 4, 64: 5.93 };

export function erf<T extends object>(
  f: FloatArithmetic<T>,
  x: T,
  powerOfTwo: (f: FloatArithmetic<T>, x: T) => T = exp2Normal,
): T {
  const magnitude = f.abs(x);
  const near = f.madd(f.polynomial(f.mul(x, x), erfCurve[f.precision]), magnitude, magnitude);
  const bounded = f.clamp(magnitude, undefined, erfIsOne[f.precision]);
  const power = f.polynomial(bounded, erfDecay[f.precision]);
  const far = f.sub(1, powerOfTwo(f, power));
  return f.copySign(f.select(f.compare("lt", magnitude, curveEnd), near, far), x);
}

export function erfc<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { center, curve, zero } = complementaryError[f.precision];
  const size = f.clamp(f.abs(x), undefined, zero);
  // (size - center) / (size + center), where the rounding of the sum would show.
  const inverse = f.nearReciprocal(f.add(size, center));
  const rough = f.madd(inverse, -2 * center, 1);
  const above = f.madd(f.add(rough, 1), -center, size);
  const place = f.madd(inverse, f.fma(f.neg(size), rough, above), rough);
  const divisor = f.madd(size, 2, 1);
  const lost = f.madd(size, 2, f.sub(1, divisor));
  const ratio = f.quotient(f.polynomial(place, curve), divisor, lost);
  const square = f.mul(size, size);
  const error = f.fma(size, size, f.neg(square));
  const value = scaledExponential(f, f.neg(square), f.madd(f.neg(ratio), error, ratio));
  return f.select(f.compare("lt", x, 0), f.sub(2, value), value);
}
