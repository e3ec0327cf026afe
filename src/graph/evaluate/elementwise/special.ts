/**
 * Functions of real numbers that JavaScript lacks, in f64. Narrower elements round them once more.
 *
 * | function         | how                                                                         |
 * |------------------|-----------------------------------------------------------------------------|
 * | lgamma           | Stirling's series from 10 on, recurrence below, reflection for negatives;   |
 * |                  | a series around 2 near its zeros at 1 and 2                                 |
 * | digamma          | asymptotic series from 10 on, recurrence below, reflection for negatives    |
 * | zeta, polygamma  | Euler–Maclaurin summation                                                   |
 * | bessel_i1e       | power series up to 30, asymptotic series beyond                             |
 */
import {
  digammaSeries,
  eulerGamma,
  logGammaAroundTwo,
  stirling,
  zetaDivisors,
} from "../../../support/gamma-series.ts";

/** Horner's scheme on the coefficients from the lowest power up. */
function polynomial(coefficients: readonly number[], x: number): number {
  return coefficients.reduceRight((sum, coefficient) => sum * x + coefficient, 0);
}

/** |sin(πx)| by the distance from the nearest whole number, which is exact. */
function sinPiSize(x: number): number {
  return Math.sin(Math.PI * Math.abs(x - Math.round(x)));
}

export function lgamma(x: number): number {
  if (x !== x) return NaN;
  if (!Number.isFinite(x)) return Infinity;
  if (x <= 0) {
    if (Number.isInteger(x)) return Infinity;
    if (x > -1e-8) return -Math.log(-x) - eulerGamma * x;
    return Math.log(Math.PI / (-x * sinPiSize(x))) - lgamma(-x);
  }
  if (Math.abs(x - 2) <= 0.25) return (x - 2) * polynomial(logGammaAroundTwo, x - 2);
  if (Math.abs(x - 1) <= 0.25)
    return (x - 1) * polynomial(logGammaAroundTwo, x - 1) - Math.log1p(x - 1);
  let shifted = x;
  let product = 1;
  while (shifted < 10) product *= shifted++;
  const inverse = 1 / shifted;
  const series = inverse * polynomial(stirling, inverse * inverse);
  const asymptotic = (shifted - 0.5) * Math.log(shifted) - shifted + Math.log(2 * Math.PI) / 2;
  return asymptotic + series - Math.log(product);
}

export function digamma(x: number): number {
  if (x !== x || x === -Infinity) return NaN;
  if (x === 0) return -Infinity;
  if (x < 0) {
    if (Number.isInteger(x)) return NaN;
    // From the nearest whole number on: a fraction of the next one below would lose what a small number has.
    const fraction = x - Math.floor(x + 0.5);
    return digamma(1 - x) - Math.PI / Math.tan(Math.PI * fraction);
  }
  if (x === Infinity) return Infinity;
  let shifted = x;
  let sum = 0;
  while (shifted < 10) sum += 1 / shifted++;
  const square = 1 / (shifted * shifted);
  return Math.log(shifted) - 0.5 / shifted - square * polynomial(digammaSeries, square) - sum;
}

/** Σ (q + k)^-x over k from 0. */
export function zeta(x: number, q: number): number {
  if (x !== x || q !== q || x < 1) return NaN;
  if (x === 1) return Infinity;
  if (q <= 0) {
    if (Number.isInteger(q)) return x % 2 === 0 ? Infinity : NaN;
    if (!Number.isInteger(x)) return NaN;
  }
  let sum = Math.pow(q, -x);
  let base = q;
  let term = sum;
  for (let k = 0; k < 9 || base <= 9; k++) {
    base++;
    term = Math.pow(base, -x);
    sum += term;
    if (Math.abs(term) < Number.EPSILON * Math.abs(sum)) return sum;
  }
  sum += (term * base) / (x - 1) - term / 2;
  let factor = 1;
  let k = 0;
  for (const divisor of zetaDivisors) {
    factor *= x + k;
    term /= base;
    const correction = (factor * term) / divisor;
    sum += correction;
    if (Math.abs(correction) < Number.EPSILON * Math.abs(sum)) return sum;
    factor *= x + k + 1;
    term /= base;
    k += 2;
  }
  return sum;
}

export function polygamma(n: number, x: number): number {
  if (n === 0) return digamma(x);
  if (n < 0 || !Number.isInteger(n)) return NaN;
  const magnitude = Math.exp(lgamma(n + 1)) * zeta(n + 1, x);
  return n % 2 === 1 ? magnitude : -magnitude;
}

export function besselI1e(x: number): number {
  const magnitude = Math.abs(x);
  if (magnitude > 30) return Math.sign(x) * besselTail(magnitude);
  const quarter = (magnitude * magnitude) / 4;
  let term = x / 2;
  let sum = term;
  for (let k = 1; Math.abs(term) > Number.EPSILON * Math.abs(sum) * 1e-3; k++) {
    term *= quarter / (k * (k + 1));
    sum += term;
  }
  return Math.exp(-magnitude) * sum;
}

function besselTail(x: number): number {
  if (x === Infinity) return 0;
  let term = 1;
  let sum = 1;
  for (let k = 1; k <= 20; k++) {
    term *= -(4 - (2 * k - 1) ** 2) / (k * 8 * x);
    sum += term;
  }
  return sum / Math.sqrt(2 * Math.PI * x);
}

export function roundAwayFromZero(x: number): number {
  const magnitude = Math.abs(x);
  const floor = Math.floor(magnitude);
  const rounded = magnitude - floor >= 0.5 ? floor + 1 : floor;
  return x < 0 || Object.is(x, -0) ? -rounded : rounded;
}
