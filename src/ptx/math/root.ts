/** One over the square root, and the cube root. */
import type { Register } from "../module.ts";
import type { Arithmetic } from "./arithmetic.ts";
import type { FloatArithmetic } from "./float-arithmetic.ts";
import { exp } from "./exponential.ts";
import { log } from "./logarithm.ts";

/** By two correctly rounded operations. */
export function rsqrt<T extends object>(f: FloatArithmetic<T>, x: T): T {
  return f.nearReciprocal(f.sqrt(x));
}

/**
 * Of f32: the GPU's approximation y, put right: with
 * e = x·y² - 1, exact to many more bits than y has, the result is y·(1 - e/2 + 3/8·e²). The last term
 * decides where the others end midway between two numbers.
 */
export function rsqrtOfSingle(f: Arithmetic, x: Register): Register {
  const estimate = f.make("rsqrt.approx", x);
  const product = f.mul(x, estimate);
  const lost = f.fma(x, estimate, f.neg(product));
  const excess = f.fma(lost, estimate, f.fma(product, estimate, -1));
  const factor = f.mul(estimate, f.fma(excess, 0.375, -0.5));
  const corrected = f.fma(factor, excess, estimate);
  // Zeros, infinity and NaN, whose excess is no number, have the estimate as their result.
  return f.select(f.compare("nan", excess, excess), estimate, corrected);
}

/** e^(log x / 3), and a step of Newton's, which leaves the error of its own last terms alone. Zeros, infinity and NaN are their own results. */
export function cbrt<T extends object>(f: FloatArithmetic<T>, x: T): T {
  const size = f.abs(x);
  const start = exp(f, f.mul(log(f, size), 1 / 3));
  const excess = f.sub(start, f.div(size, f.mul(start, start)));
  const root = f.madd(excess, -1 / 3, start);
  const inside = f.compareAnd("lt", size, Infinity, f.compare("gt", size, 0));
  return f.copySign(f.select(inside, root, size), x);
}
