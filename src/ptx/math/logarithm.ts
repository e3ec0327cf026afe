/**
 * Logarithms. x is 2^e·(1 + f) with 1 + f from 2/3 to 4/3, so that log x = e·ln 2 + log(1 + f), and near 1
 * nothing cancels. log(1 + f) = f + f²·(c2 + c3·f + …).
 *
 *   bits of x - bits of 2/3      |  e  |  fraction of 1 + f, relative to 2/3  |
 *
 * e and f, exact so far, are added so that what is lost by rounding joins the small terms.
 */
import type { ByWidth, FloatArithmetic } from "./float-arithmetic.ts";
import { logCurve } from "./coefficients.ts";

/** The word with the exponent of 2/3. */
const twoThirds: ByWidth<number> = { 32: 0x3f2aaaab, 64: 0x3fe55555 };

/** ln 2 as the sum of two floats, the first so short that its product with an exponent is exact. */
const ln2: ByWidth<readonly [high: number, low: number]> = {
  32: [0.693145751953125, 1.428606765330187e-6],
  64: [0.693147180559890330187045, 5.497923018708371e-14],
};
/** 1 / ln 2 as the sum of two floats. */
const log2e: ByWidth<readonly [high: number, low: number]> = {
  32: [1.4426950216293335, 1.925963033500011e-8],
  64: [1.4426950408889634, 2.0355273740931033e-17],
};

export interface Parts<T> {
  /** e, as a float. */
  readonly exponent: T;
  /** 1 + f. */
  readonly mantissa: T;
}

/** Takes a positive finite number apart; subnormal ones are made larger first. */
export function takeApart<T extends object>(f: FloatArithmetic<T>, x: T): Parts<T> {
  const { fraction, bias, place } = f.format;
  const up = fraction + 1;
  const isSubnormal = f.compare("lt", x, 2 ** (1 - bias));
  const normal = f.select(isSubnormal, f.mul(x, 2 ** up), x);
  const least = twoThirds[f.width];
  const origin = f.selectWords(isSubnormal, least + up * 2 ** place, least);
  const distance = f.words("sub", f.highWord(normal), origin);
  const above = f.words("and", distance, 2 ** place - 1);
  const mantissa = f.withHighWord(f.words("add", above, least), normal);
  return { exponent: exponentNumber(f, distance), mantissa };
}

/** e in the place of the exponent. */
function exponentBits<T extends object>(f: FloatArithmetic<T>, distance: T): T {
  return f.words("and", distance, -(2 ** f.format.place));
}

function exponentNumber<T extends object>(f: FloatArithmetic<T>, distance: T): T {
  const whole = f.words("shr", distance, f.format.place);
  return f.floatOfWord(whole);
}

/** The logarithm where x is beyond `zero` and finite; NaN, infinite or -infinite elsewhere. */
function withSpecial<T extends object>(f: FloatArithmetic<T>, x: T, zero: number, logarithm: T): T {
  const inside = f.compareAnd("lt", x, Infinity, f.compare("gt", x, zero));
  // Infinity for itself, NaN for NaN and for numbers below.
  const special = f.select(inside, logarithm, f.madd(x, Infinity, Infinity));
  return f.select(f.compare("eq", x, zero), -Infinity, special);
}

/** e·ln 2 + f + small. */
function assemble<T extends object>(f: FloatArithmetic<T>, exponent: T, rest: T, curve: T): T {
  const [high, low] = ln2[f.width];
  const leading = f.mul(exponent, high);
  const sum = f.add(leading, rest);
  const lost = f.sub(rest, f.sub(sum, leading));
  return f.add(sum, f.add(f.madd(exponent, low, curve), lost));
}

/** f²·(c2 + c3·f + …). */
function curveOf<T extends object>(f: FloatArithmetic<T>, rest: T): T {
  return f.mul(f.polynomial(rest, logCurve[f.precision]), f.mul(rest, rest));
}

export function log<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { exponent, mantissa } = takeApart(f, x);
  const rest = f.sub(mantissa, 1);
  return withSpecial(f, x, 0, assemble(f, exponent, rest, curveOf(f, rest)));
}

/** e + log(1 + f) / ln 2, where f - f²/2 and its product with 1 / ln 2 are sums of two floats. */
export function log2<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const [high, low] = log2e[f.width];
  const { exponent, mantissa } = takeApart(f, x);
  const rest = f.sub(mantissa, 1);
  const minusHalf = f.mul(rest, -0.5);
  const bent = f.madd(minusHalf, rest, rest);
  const bentLow = f.fma(minusHalf, rest, f.sub(rest, bent));
  const [, ...cubic] = logCurve[f.precision];
  const cube = f.mul(f.mul(rest, rest), rest);
  const small = f.madd(f.polynomial(rest, cubic), cube, bentLow);
  const leading = f.mul(bent, high);
  const leadingLow = f.madd(bent, low, f.fma(bent, high, f.neg(leading)));
  const sum = f.add(exponent, leading);
  const lost = f.sub(leading, f.sub(sum, exponent));
  return withSpecial(f, x, 0, f.add(sum, f.add(f.madd(small, high, leadingLow), lost)));
}

/**
 * e is that of 1 + x as rounded; f is computed from x itself as x·2^-e + (2^-e - 1), where only the sum
 * rounds. The factors are kept normal: x·2^-e is x with another exponent, and 2^-e is taken four times as
 * large.
 */
export function log1p<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const { bias, place, fraction } = f.format;
  const distance = f.words("sub", f.highWord(f.add(x, 1)), twoThirds[f.width]);
  const scaled = exponentBits(f, distance);
  const exponent = exponentNumber(f, distance);
  const four = (bias + 2) * 2 ** place;
  const fourfold = f.withHighWord(f.words("sub", four, scaled));
  const offset = f.madd(fourfold, 0.25, -1);
  const part = f.withHighWord(f.words("sub", f.highWord(x), scaled), x);
  const rest = f.add(part, offset);
  const inner = assemble(f, exponent, rest, curveOf(f, rest));
  const tiny = f.compare("lt", f.abs(x), 2 ** -(fraction + 2));
  return f.select(tiny, x, withSpecial(f, x, -1, inner));
}
