/**
 * Sine, cosine and tangent. x is n·π/2 + r with |r| ≤ π/4, and n says which of sin r and cos r the result
 * is, with which sign:
 *
 *   n mod 4     0        1        2        3
 *   sin x     sin r    cos r   -sin r   -cos r
 *   cos x     cos r   -sin r   -cos r    sin r
 *   tan x     tan r  -1/tan r   tan r  -1/tan r
 *
 * `angle.ts` finds n and r for numbers of any size.
 */
import type { Angle, FloatArithmetic } from "./float-arithmetic.ts";
import { cosCurve, sinCurve, tanCurve } from "./coefficients.ts";

/**
 * The sine of n·π/2 + r: either polynomial is base + base·r²·P(r²), with base r or 1. What r is too large by counts by the
 * slope, -cos r or sin r, for which 1 - r²/2 and r are enough.
 */
function sineOf<T extends object>(f: FloatArithmetic<T>, { quarters, rest, excess }: Angle<T>): T {
  const odd = f.testWords("ne", f.words("and", quarters, 1), 0);
  const square = f.mul(rest, rest);
  const sines = sinCurve[f.precision];
  const coefficients = cosCurve[f.precision].map((cosine, index) =>
    f.select(odd, cosine, sines[index] ?? 0),
  );
  const base = f.select(odd, 1, rest);
  const change = f.mul(excess, f.select(odd, rest, f.madd(square, 0.5, -1)));
  // The sum with +0 makes the zero of r = -0 positive, so that the result keeps the sign of r.
  const curve = f.madd(f.polynomial(square, coefficients), square, 0);
  return f.negateByBit(f.add(base, f.madd(curve, base, change)), quarters, 1);
}

export function sin<T extends object>(f: FloatArithmetic<T>, angle: Angle<T>): T {
  return sineOf(f, angle);
}

/** The sine a quarter further. */
export function cos<T extends object>(
  f: FloatArithmetic<T>,
  { quarters, ...reduced }: Angle<T>,
): T {
  return sineOf(f, { ...reduced, quarters: f.words("add", quarters, 1) });
}

export function tan<T extends object>(f: FloatArithmetic<T>, { quarters, rest }: Angle<T>): T {
  const square = f.mul(rest, rest);
  const curve = f.mul(f.polynomial(square, tanCurve[f.precision]), square);
  const tangent = f.madd(curve, rest, rest);
  const odd = f.testWords("ne", f.words("and", quarters, 1), 0);
  return f.select(odd, f.quotient(-1, tangent), tangent);
}
