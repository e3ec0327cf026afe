/** Complex numbers in pairs of f64: their arithmetic, and the functions of `ops/complex-functions.ts` on them. */
import * as formulas from "../../ops/complex-functions.ts";
import type { Complex } from "../scalars.ts";
import { plain, plainPair } from "./complex-formulas.ts";

export function complex(re: number, im: number): Complex {
  return { re, im };
}

export const one = complex(1, 0);

export function add(a: Complex, b: Complex): Complex {
  return complex(a.re + b.re, a.im + b.im);
}

export function subtract(a: Complex, b: Complex): Complex {
  return complex(a.re - b.re, a.im - b.im);
}

export function multiply(a: Complex, b: Complex): Complex {
  return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

export function negate({ re, im }: Complex): Complex {
  return complex(-re, -im);
}

export function conjugate({ re, im }: Complex): Complex {
  return complex(re, -im);
}

export function magnitude({ re, im }: Complex): number {
  return Math.hypot(re, im);
}

export const square = plain(formulas.square);
export const sign = plain(formulas.sign);
export const exponential = plain(formulas.exponential);
export const exponentialMinusOne = plain(formulas.exponentialMinusOne);
export const log = plain(formulas.log);
export const logPlusOne = plain(formulas.logPlusOne);
export const squareRoot = plain(formulas.squareRoot);
export const reciprocalRoot = plain(formulas.reciprocalRoot);
export const cubeRoot = plain(formulas.cubeRoot);
export const sine = plain(formulas.sine);
export const cosine = plain(formulas.cosine);
export const hyperbolicSine = plain(formulas.hyperbolicSine);
export const hyperbolicCosine = plain(formulas.hyperbolicCosine);
export const hyperbolicTangent = plain(formulas.hyperbolicTangent);
export const tangent = plain(formulas.tangent);
export const logistic = plain(formulas.logistic);
export const arcCosine = plain(formulas.arcCosine);
export const arcSine = plain(formulas.arcSine);
export const hyperbolicArcSine = plain(formulas.hyperbolicArcSine);
export const hyperbolicArcCosine = plain(formulas.hyperbolicArcCosine);
export const hyperbolicArcTangent = plain(formulas.hyperbolicArcTangent);
export const arcTangent = plain(formulas.arcTangent);
export const divide = plainPair(formulas.divide);
export const power = plainPair(formulas.power);
export const arcTangent2 = plainPair(formulas.arcTangent2);
