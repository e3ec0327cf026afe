/**
 * Special functions over tiles, by the formulas of the evaluator: series and recurrences of a fixed length, every
 * branch computed and the right one selected.
 */
import { f64 } from "../../../formats/dtype.ts";
import { loop, whileLoop } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import {
  digammaSeries,
  eulerGamma,
  logGammaAroundTwo,
  stirling,
  zetaDivisors,
} from "../../../support/gamma-series.ts";
import { select, withSignOf } from "./bits.ts";
import { inWide, wide } from "./functions.ts";
import type { UnaryTile } from "./functions.ts";

/** Horner's scheme on the coefficients from the lowest power up. */
function polynomial(coefficients: readonly number[], x: Tile): Tile {
  return coefficients.reduceRight<Tile>((sum, coefficient) => sum.mul(x).add(coefficient), wide(0));
}

/** |sin(πx)| by the distance from the nearest whole number, which is exact. */
function sinPiSize(x: Tile): Tile {
  return x.sub(x.add(0.5).floor()).abs().mul(Math.PI).sin();
}

function logGammaPositive(x: Tile): Tile {
  const start = { shifted: x, product: x.mul(0).add(1) as Tile };
  const { shifted, product } = loop({ to: 10, carry: start }, (_, carry) => {
    const isBelow = carry.shifted.lt(10);
    return {
      shifted: select(isBelow, carry.shifted.add(1), carry.shifted),
      product: select(isBelow, carry.product.mul(carry.shifted), carry.product),
    };
  });
  const part = wide(1).div(shifted);
  const series = part.mul(polynomial(stirling, part.mul(part)));
  const main = shifted
    .sub(0.5)
    .mul(shifted.log())
    .sub(shifted)
    .add(Math.log(2 * Math.PI) / 2);
  const value = main.add(series).sub(product.log());
  const isNearTwo = x.sub(2).abs().le(0.25);
  const isNearOne = x.sub(1).abs().le(0.25);
  const off = select(isNearTwo, x.sub(2), select(isNearOne, x.sub(1), wide(0)));
  const around = off.mul(polynomial(logGammaAroundTwo, off));
  return select(isNearTwo, around, select(isNearOne, around.sub(off.log1p()), value));
}

function isWhole(x: Tile): Tile<"bool"> {
  return x.floor().eq(x);
}

function logGamma(x: Tile): Tile {
  const size = x.abs();
  const positive = logGammaPositive(size.maximum(Number.MIN_VALUE));
  const reflected = wide(Math.PI)
    .div(size.mul(sinPiSize(x)))
    .log()
    .sub(positive);
  const negative = select(
    isWhole(x),
    wide(Infinity),
    select(x.gt(-1e-8), size.mul(eulerGamma).sub(size.log()), reflected),
  );
  const value = select(x.le(0), negative, positive);
  return select(size.eq(Infinity), wide(Infinity), value);
}

function digammaOf(x: Tile): Tile {
  const isNegative = x.le(0);
  const start = { shifted: select(isNegative, wide(1).sub(x), x), sum: x.mul(0) as Tile };
  const { shifted, sum } = loop({ to: 10, carry: start }, (_, carry) => {
    const isBelow = carry.shifted.lt(10);
    return {
      shifted: select(isBelow, carry.shifted.add(1), carry.shifted),
      sum: select(isBelow, carry.sum.add(wide(1).div(carry.shifted)), carry.sum),
    };
  });
  const square = wide(1).div(shifted.mul(shifted));
  const positive = shifted
    .log()
    .sub(wide(0.5).div(shifted))
    .sub(square.mul(polynomial(digammaSeries, square)))
    .sub(sum);
  const reflection = wide(Math.PI).div(x.sub(x.add(0.5).floor()).mul(Math.PI).tan());
  const pole = select(x.eq(0), wide(-Infinity), wide(NaN));
  const negative = select(isWhole(x), pole, positive.sub(reflection));
  const value = select(isNegative, negative, positive);
  return select(x.eq(Infinity), x, select(x.isFinite(), value, wide(NaN)));
}

/** x to the power of -s, for negative x too where s is whole. */
function inversePower(x: Tile, s: Tile): Tile {
  return x.pow(s.neg());
}

/** Σ (q + k)^-x over k from 0. */
function zetaOf(x: Tile, q: Tile): Tile {
  const both = x.add(q);
  // Lanes that need no sum must not keep the others waiting, or never end.
  const isSummed = x.gt(1).and(q.gt(-1e6)).and(both.isFinite());
  const base = select(isSummed, q, both.mul(0).add(1));
  const start = { sum: inversePower(base, x), base, count: both.mul(0) as Tile };
  const isActive = (carry: { base: Tile; count: Tile }) =>
    isSummed.and(carry.count.lt(9).or(carry.base.le(9)));
  const carried = whileLoop(
    start,
    (carry) => isActive(carry).any(),
    (carry) => {
      const active = isActive(carry);
      const next = carry.base.add(1);
      return {
        sum: select(active, carry.sum.add(inversePower(next, x)), carry.sum),
        base: select(active, next, carry.base),
        count: select(active, carry.count.add(1), carry.count),
      };
    },
  );
  const last = carried.base;
  let term = inversePower(last, x);
  let sum = carried.sum.add(term.mul(last).div(x.sub(1))).sub(term.mul(0.5));
  let factor: Tile = both.mul(0).add(1);
  for (const [k, divisor] of zetaDivisors.entries()) {
    factor = factor.mul(x.add(2 * k));
    term = term.div(last);
    // Where x is so large that no term is left, the factor may be infinite.
    sum = sum.add(select(term.eq(0), wide(0), factor.mul(term).div(divisor)));
    factor = factor.mul(x.add(2 * k + 1));
    term = term.div(last);
  }
  const isEven = isWhole(x.mul(0.5));
  const pole = select(isEven, wide(Infinity), wide(NaN));
  const negative = select(isWhole(q), pole, select(isWhole(x), sum, wide(NaN)));
  const value = select(q.le(0), negative, sum);
  const atInfinity = select(q.gt(0), wide(0), wide(NaN));
  const finite = select(q.abs().eq(Infinity), atInfinity, value);
  const atOne = select(x.eq(1), wide(Infinity), select(x.gt(1), finite, wide(NaN)));
  return select(x.isNan().or(q.isNan()), wide(NaN), atOne);
}

function polygammaOf(n: Tile, x: Tile): Tile {
  const size = logGamma(n.add(1))
    .exp()
    .mul(zetaOf(n.add(1), x));
  // Of n, not of n + 1, which is n where it is large.
  const isEven = isWhole(n.mul(0.5));
  const value = select(isEven, size.neg(), size);
  const order = select(n.ge(0).and(isWhole(n)), value, wide(NaN));
  return select(n.eq(0), digammaOf(x), order);
}

const besselTerms = 110;

/** I₁(x)·exp(-|x|): a power series up to 30, an asymptotic one beyond. */
function besselI1e(x: Tile): Tile {
  const size = x.abs();
  const near = size.minimum(30);
  const quarter = near.mul(near).mul(0.25);
  const half = near.mul(0.5);
  const { sum } = loop({ to: besselTerms, carry: { term: half, sum: half } }, (k, carry) => {
    const order = k.cast(f64).add(1);
    const term = carry.term.mul(quarter.div(order.mul(order.add(1))));
    return { term, sum: carry.sum.add(term) };
  });
  const far = size.maximum(30);
  let term: Tile = wide(1);
  let tail: Tile = wide(1);
  for (let k = 1; k <= 20; k++) {
    term = term.mul(-(4 - (2 * k - 1) ** 2) / (8 * k)).div(far);
    tail = tail.add(term);
  }
  const beyond = tail.div(far.mul(2 * Math.PI).sqrt());
  const value = select(size.gt(30), beyond, near.neg().exp().mul(sum));
  const limited = select(size.eq(Infinity), wide(0), value);
  return select(x.isNan(), x, withSignOf(limited, x));
}

/** Rounded to the nearest whole number, halves away from zero. */
export function roundAwayFromZero(x: Tile): Tile {
  const size = x.abs();
  const whole = size.floor();
  const isUp = size.sub(whole).ge(0.5);
  return withSignOf(select(isUp, whole.add(1), whole), x);
}

/** A function of two operands in f64, rounded to their format. */
function inWidePair(f: (x: Tile, y: Tile) => Tile): (x: Tile, y: Tile) => Tile {
  return (x, y) => f(x.cast(f64), y.cast(f64)).cast(x.dtype);
}

export const specialTiles = {
  bessel_i1e: inWide(besselI1e),
  digamma: inWide(digammaOf),
  lgamma: inWide(logGamma),
} satisfies { readonly [name: string]: UnaryTile };

export const specialPairs = {
  polygamma: inWidePair(polygammaOf),
  zeta: inWidePair(zetaOf),
} as const;
