/**
 * Functions of complex numbers as formulas over their parts: those of `ops/complex-functions.ts` over values of programs. Parts in f32 are computed in f64 and rounded once, so that neither overflow nor cancellation of a formula shows.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { convert, typeOfValue } from "../../transform/arithmetic.ts";
import type { Parts } from "./parts.ts";
import * as complex from "../../ops/complex-functions.ts";
import type { ComplexNumber } from "../../ops/complex-functions.ts";
import { Real } from "./real.ts";

export type ComplexReal = ComplexNumber<Real>;

/** The parts in f64, for formulas. */
export function opened(builder: GraphBuilder, { re, im }: Parts): ComplexReal {
  return {
    re: new Real(builder, convert(builder, re, "f64")),
    im: new Real(builder, convert(builder, im, "f64")),
  };
}

/** The results of a formula in the format of the values that it was given. */
export function closed(builder: GraphBuilder, { re, im }: ComplexReal, like: Parts): Parts {
  const { element } = typeOfValue(like.re);
  return { re: convert(builder, re.value, element), im: convert(builder, im.value, element) };
}

export const unaryFunctions = {
  "stablehlo.cbrt": complex.cubeRoot,
  "stablehlo.cosine": complex.cosine,
  "stablehlo.exponential": complex.exponential,
  "stablehlo.exponential_minus_one": complex.exponentialMinusOne,
  "stablehlo.log": complex.log,
  "stablehlo.log_plus_one": complex.logPlusOne,
  "stablehlo.logistic": complex.logistic,
  "stablehlo.rsqrt": complex.reciprocalRoot,
  "stablehlo.sign": complex.sign,
  "stablehlo.sine": complex.sine,
  "stablehlo.sqrt": complex.squareRoot,
  "stablehlo.tan": complex.tangent,
  "stablehlo.tanh": complex.hyperbolicTangent,
  "chlo.acos": complex.arcCosine,
  "chlo.acosh": complex.hyperbolicArcCosine,
  "chlo.asin": complex.arcSine,
  "chlo.asinh": complex.hyperbolicArcSine,
  "chlo.atan": complex.arcTangent,
  "chlo.atanh": complex.hyperbolicArcTangent,
  "chlo.cosh": complex.hyperbolicCosine,
  "chlo.sinh": complex.hyperbolicSine,
  "chlo.square": complex.square,
  "chlo.tan": complex.tangent,
} as const;

export const binaryFunctions = {
  "stablehlo.atan2": complex.arcTangent2,
  "stablehlo.divide": complex.divide,
  "stablehlo.maximum": complex.larger,
  "stablehlo.minimum": complex.smaller,
  "stablehlo.multiply": complex.multiply,
  "stablehlo.power": complex.power,
} as const;
