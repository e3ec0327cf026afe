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
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { reduceAngle } from "./angle.ts";
import type { Angle } from "./angle.ts";
import { Arithmetic } from "./arithmetic.ts";
import type { Width } from "./arithmetic.ts";
import { cosCurve, sinCurve, tanCurve } from "./coefficients.ts";

/**
 * The sine of n·π/2 + r: either polynomial is base + base·r²·P(r²), with base r or 1. What r is too large by counts by the
 * slope, -cos r or sin r, for which 1 - r²/2 and r are enough.
 */
function sineOf(f: Arithmetic, { quarters, rest, excess }: Angle): Register {
  const odd = f.testIntegers("setp.ne.s32", f.integers("and.b32", quarters, 1), 0);
  const square = f.mul(rest, rest);
  const sines = sinCurve[f.width];
  const coefficients = cosCurve[f.width].map((cosine, index) =>
    f.select(odd, cosine, sines[index] ?? 0),
  );
  const base = f.select(odd, 1, rest);
  const change = f.mul(excess, f.select(odd, rest, f.fma(square, 0.5, -1)));
  // The sum with +0 makes the zero of r = -0 positive, so that the result keeps the sign of r.
  const curve = f.fma(f.polynomial(square, coefficients), square, 0);
  return f.negateByBit(f.add(base, f.fma(curve, base, change)), quarters, 1);
}

export function sin(code: Code, width: Width, x: Register): Register {
  const f = new Arithmetic(code, width);
  return sineOf(f, reduceAngle(f, x));
}

/** The sine a quarter further. */
export function cos(code: Code, width: Width, x: Register): Register {
  const f = new Arithmetic(code, width);
  const { quarters, ...reduced } = reduceAngle(f, x);
  return sineOf(f, { ...reduced, quarters: f.integers("add.s32", quarters, 1) });
}

export function tan(code: Code, width: Width, x: Register): Register {
  const f = new Arithmetic(code, width);
  const { quarters, rest } = reduceAngle(f, x);
  const square = f.mul(rest, rest);
  const curve = f.mul(f.polynomial(square, tanCurve[width]), square);
  const tangent = f.fma(curve, rest, rest);
  const odd = f.testIntegers("setp.ne.s32", f.integers("and.b32", quarters, 1), 0);
  return f.select(odd, f.quotient(-1, tangent), tangent);
}
