/** Elementwise functions of one operand whose result has the operand's element type. */
import {
  complementaryErrorFunction,
  errorFunction,
  inverseErrorFunction,
  logistic,
  roundHalfEven,
} from "../../../formats/arithmetic/special.ts";
import * as complex from "./complex.ts";
import type { Forms } from "./forms.ts";
import * as integers from "./integers.ts";
import * as special from "./special.ts";

const wideMagnitude = (x: bigint): bigint => (x < 0n ? -x : x);
const wideSign = (x: bigint): bigint => (x < 0n ? -1n : x > 0n ? 1n : 0n);

export const unaryForms = {
  "stablehlo.abs": {
    integer: () => Math.abs,
    wide: () => wideMagnitude,
    real: Math.abs,
    complex: complex.magnitude,
  },
  "stablehlo.cbrt": { real: Math.cbrt, complex: complex.cubeRoot },
  "stablehlo.ceil": { real: Math.ceil },
  "stablehlo.count_leading_zeros": {
    integer: integers.leadingZeros,
    wide: () => integers.leadingZerosWide,
  },
  "stablehlo.cosine": { real: Math.cos, complex: complex.cosine },
  "stablehlo.exponential": { real: Math.exp, complex: complex.exponential },
  "stablehlo.exponential_minus_one": { real: Math.expm1, complex: complex.exponentialMinusOne },
  "stablehlo.floor": { real: Math.floor },
  "stablehlo.imag": { real: () => 0, complex: ({ im }) => im },
  "stablehlo.log": { real: Math.log, complex: complex.log },
  "stablehlo.log_plus_one": { real: Math.log1p, complex: complex.logPlusOne },
  "stablehlo.logistic": { real: logistic, complex: complex.logistic },
  "stablehlo.negate": {
    integer: () => (x) => -x,
    wide: () => (x) => -x,
    real: (x) => -x,
    complex: complex.negate,
  },
  "stablehlo.not": {
    bool: (x) => 1 - x,
    integer: () => (x) => ~x,
    wide: () => (x) => ~x,
  },
  "stablehlo.popcnt": {
    integer: integers.populationCount,
    wide: () => integers.populationCountWide,
  },
  "stablehlo.real": { real: (x) => x, complex: ({ re }) => re },
  "stablehlo.round_nearest_afz": { real: special.roundAwayFromZero },
  "stablehlo.round_nearest_even": { real: roundHalfEven },
  "stablehlo.rsqrt": { real: (x) => 1 / Math.sqrt(x), complex: complex.reciprocalRoot },
  "stablehlo.sign": {
    integer: () => Math.sign,
    wide: () => wideSign,
    real: Math.sign,
    complex: complex.sign,
  },
  "stablehlo.sine": { real: Math.sin, complex: complex.sine },
  "stablehlo.sqrt": { real: Math.sqrt, complex: complex.squareRoot },
  "stablehlo.tan": { real: Math.tan, complex: complex.tangent },
  "stablehlo.tanh": { real: Math.tanh, complex: complex.hyperbolicTangent },
  "stablehlo.is_finite": { real: (x) => Number(Number.isFinite(x)) },
  "chlo.acos": { real: Math.acos, complex: complex.arcCosine },
  "chlo.acosh": { real: Math.acosh, complex: complex.hyperbolicArcCosine },
  "chlo.asin": { real: Math.asin, complex: complex.arcSine },
  "chlo.asinh": { real: Math.asinh, complex: complex.hyperbolicArcSine },
  "chlo.atan": { real: Math.atan, complex: complex.arcTangent },
  "chlo.atanh": { real: Math.atanh, complex: complex.hyperbolicArcTangent },
  "chlo.bessel_i1e": { real: special.besselI1e },
  "chlo.conj": { real: (x) => x, complex: complex.conjugate },
  "chlo.cosh": { real: Math.cosh, complex: complex.hyperbolicCosine },
  "chlo.digamma": { real: special.digamma },
  "chlo.erf": { real: errorFunction },
  "chlo.erf_inv": { real: inverseErrorFunction },
  "chlo.erfc": { real: complementaryErrorFunction },
  "chlo.is_inf": { real: (x) => Number(Math.abs(x) === Infinity) },
  "chlo.is_neg_inf": { real: (x) => Number(x === -Infinity) },
  "chlo.is_pos_inf": { real: (x) => Number(x === Infinity) },
  "chlo.lgamma": { real: special.lgamma },
  "chlo.sinh": { real: Math.sinh, complex: complex.hyperbolicSine },
  "chlo.square": {
    integer: () => (x) => Math.imul(x, x),
    wide: () => (x) => x * x,
    real: (x) => x * x,
    complex: complex.square,
  },
  "chlo.tan": { real: Math.tan, complex: complex.tangent },
} satisfies { readonly [kind: string]: Forms<1> };
