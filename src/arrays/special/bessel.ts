/**
 * Modified Bessel functions of the first kind, I₀ and I₁, by two series that need no tables:
 *
 *   |x| < bound     Σ (x²/4)^k / (k! (k+ν)!) · (x/2)^ν           all terms have one sign: nothing cancels
 *   beyond          e^x / √(2πx) · Σ ± Π ((2j−1)² − 4ν²) / (k! (8x)^k)   terms shrink until the format's last bit
 */
import type { DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";

/** c0 + y · (c1 + y · (…)) */
function polynomial<D extends DTypeName>(y: NDArray<D>, terms: readonly number[]): NDArray<D> {
  const [last = 0, ...others] = [...terms].reverse();
  return others.reduce(
    (sum, term) => base.add(base.mul(sum, y), term),
    base.full(y.shape, last, y.dtype),
  );
}

/** Where one series takes over from the other, and how many terms each has, by the bits of the format. */
const plans = {
  wide: { bound: 20, near: 55, far: 30 },
  narrow: { bound: 9, near: 28, far: 12 },
} as const;

/** exp(−|x|) · I_order(x), without overflow. */
export function besselScaled<D extends DTypeName>(order: 0 | 1, x: NDArray<D>): NDArray<D> {
  const { bound, near, far } = dtypes[x.dtype].bits === 64 ? plans.wide : plans.narrow;
  const size = base.abs(x);
  const inside = base.minimum(size, bound);
  const square = base.div(base.mul(inside, inside), 4);
  let term = 1;
  const terms = Array.from({ length: near }, (_, k) => (term /= k === 0 ? 1 : k * (k + order)));
  const series = polynomial(square, terms);
  const isOdd = order === 1;
  const whole = isOdd ? base.mul(series, base.div(inside, 2)) : series;
  const small = base.mul(whole, base.exp(base.neg(inside)));
  const outside = base.maximum(size, bound);
  let coefficient = 1;
  const tail = Array.from({ length: far }, (_, k) => {
    if (k > 0) coefficient *= ((2 * k - 1) ** 2 - 4 * order) / (8 * k);
    return coefficient;
  });
  const asymptotic = polynomial(base.div(1, outside), tail);
  const large = base.div(asymptotic, base.sqrt(base.mul(outside, 2 * Math.PI)));
  const found = base.where(base.less(size, bound), small, large);
  const known = base.where(base.notEqual(x, x), x, found);
  return isOdd ? base.where(base.less(x, 0), base.neg(known), known) : known;
}

/** I₀(x), the sum of ((x/2)^k / k!)². */
export function besselI0<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return base.mul(besselScaled(0, x), base.exp(base.abs(x)));
}
