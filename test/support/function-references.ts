/** The functions of one float in f64, which are far better than what is measured against them. */
import {
  complementaryErrorFunction,
  errorFunction,
  exponential2,
  inverseErrorFunction,
  logistic,
} from "../../src/formats/arithmetic/special.ts";
import type { UnaryMath } from "../../src/ptx/math/index.ts";

export const functionReferences: { readonly [F in UnaryMath]: (x: number) => number } = {
  rsqrt: (x) => 1 / Math.sqrt(x),
  exp: Math.exp,
  exp2: exponential2,
  expm1: Math.expm1,
  log: Math.log,
  log2: Math.log2,
  log1p: Math.log1p,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  atan: Math.atan,
  asin: Math.asin,
  acos: Math.acos,
  tanh: Math.tanh,
  sinh: Math.sinh,
  cosh: Math.cosh,
  asinh: Math.asinh,
  acosh: Math.acosh,
  atanh: Math.atanh,
  cbrt: Math.cbrt,
  erf: errorFunction,
  erf_inv: inverseErrorFunction,
  erfc: complementaryErrorFunction,
  logistic,
};
