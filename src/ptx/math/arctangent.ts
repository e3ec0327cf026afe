/**
 * The angle of a point. With a and b the lesser and the greater of |x| and |y|, a/b is at most 1 and its
 * arctangent t at most π/4; mirrored at the diagonal and at the vertical axis it is the point's angle:
 *
 *   |y| ≤ |x|, x ≥ 0   t            |y| > |x|, x ≥ 0   π/2 - t
 *   |y| ≤ |x|, x < 0   π - t        |y| > |x|, x < 0   π - (π/2 - t)
 *
 * and it has the sign of y.
 */
import type { ByWidth, FloatArithmetic } from "./float-arithmetic.ts";
import { atanCurve } from "./coefficients.ts";

/** π as the sum of two floats. */
const pi: ByWidth<readonly [high: number, low: number]> = {
  32: [3.1415927410125732, -8.742277657347586e-8],
  64: [3.141592653589793, 1.2246467991473532e-16],
};

export function atan2<T extends object>(f: FloatArithmetic<T>, y: T, x: T): T {
  const [high, low] = pi[f.width];
  const horizontal = f.abs(x);
  const vertical = f.abs(y);
  const steep = f.compare("gt", vertical, horizontal);
  const lesser = f.select(steep, horizontal, vertical);
  const greater = f.select(steep, vertical, horizontal);
  const angle = angleIn(f, ratioOf(f, lesser, greater), steep);
  const opposite = f.add(f.sub(high, angle), low);
  // The sign bit, since -0 lies to the left.
  const left = f.testWords("lt", f.highWord(x), 0);
  const signed = f.copySign(f.select(left, opposite, angle), y);
  return f.select(f.compare("nan", x, y), NaN, signed);
}

/** The angle of the point (1, x): a is |x| or 1/|x|, whichever is at most 1. */
export function atan<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const size = f.abs(x);
  const steep = f.compare("gt", size, 1);
  const ratio = f.select(steep, f.div(1, size), size);
  const signed = f.copySign(angleIn(f, ratio, steep), x);
  return f.select(f.compare("nan", x, x), NaN, signed);
}

/** The angle of the point (√(1 - x²), x). */
export function asin<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return atan2(f, x, otherSide(f, x));
}

/** The angle of the point (x, √(1 - x²)). */
export function acos<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return atan2(f, otherSide(f, x), x);
}

/** √(1 - x²), of which nothing is lost near 1; NaN beyond. */
function otherSide<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return f.sqrt(f.fma(f.neg(x), x, 1));
}

/** The angle with this tangent up to the diagonal, or mirrored at it. */
function angleIn<T extends object>(f: FloatArithmetic<T>, ratio: T, steep: T): T {
  const [high, low] = pi[f.width];
  const square = f.mul(ratio, ratio);
  const curve = f.mul(f.polynomial(square, atanCurve[f.precision]), square);
  const flat = f.madd(curve, ratio, ratio);
  const mirrored = f.add(f.sub(high / 2, flat), low / 2);
  return f.select(steep, mirrored, flat);
}

/** 0/0 is 0 here, and ∞/∞ is 1. */
function ratioOf<T extends object>(f: FloatArithmetic<T>, lesser: T, greater: T): T {
  const quotient = f.div(lesser, greater);
  const known = f.select(f.compare("eq", lesser, Infinity), 1, quotient);
  return f.select(f.compare("eq", greater, 0), 0, known);
}
