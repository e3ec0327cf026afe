/**
 * The functions that PTX has no exact instruction for, as sequences of IEEE operations: f32 and f64, one and
 * two operands, and the GPU's own approximations of f32.
 *
 *   mathFunctions.f32.unary.exp(code, x)              writes it, and gives the register of the result
 *   mathFunctions.f32.binary.pow(code, base, exponent)
 *   mathFunctions.approximate.unary.exp(code, x)
 *   mathBounds.f32.exp                                { ulp: 1, note: "" }
 *
 * `bounds.ts` says how far from the exact results they are.
 */
import { mapRecord } from "../../support/records.ts";
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { approximateBinary, approximateUnary } from "./approximate.ts";
import { acos, asin, atan, atan2 } from "./arctangent.ts";
import { reduceAngle } from "./angle.ts";
import { Arithmetic } from "./arithmetic.ts";
import { erf, erfc } from "./error-function.ts";
import { exp, exp2, expm1, logistic, tanh } from "./exponential.ts";
import { acosh, asinh, atanh, cosh, sinh } from "./hyperbolic.ts";
import type { Width } from "./float-arithmetic.ts";
import { erfInv, erfInvOfSingle } from "./inverse-error.ts";
import { log, log1p, log2 } from "./logarithm.ts";
import { pow } from "./power.ts";
import { rem } from "./remainder.ts";
import { cbrt, rsqrt, rsqrtOfSingle } from "./root.ts";
import { cos, sin, tan } from "./trigonometric.ts";

export { mathBounds } from "./bounds.ts";
export {
  halfFunction,
  halfFunctions,
  isHalfFunction,
  isSingleFunction,
  singleFunction,
  singleFunctions,
} from "./half-precision.ts";
export type { HalfFormat } from "./half-precision.ts";
export type { ErrorBound } from "./bounds.ts";

const unary = {
  rsqrt: (f: Arithmetic, x: Register) => (f.width === 32 ? rsqrtOfSingle : rsqrt<Register>)(f, x),
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sin: (f: Arithmetic, x: Register) => sin(f, reduceAngle(f, x)),
  cos: (f: Arithmetic, x: Register) => cos(f, reduceAngle(f, x)),
  tan: (f: Arithmetic, x: Register) => tan(f, reduceAngle(f, x)),
  atan,
  asin,
  acos,
  tanh,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  cbrt,
  erf: (f: Arithmetic, x: Register) =>
    f.width === 32 ? erf(f, x, (_, power) => f.make("ex2.approx.ftz", power)) : erf(f, x),
  erf_inv: (f: Arithmetic, x: Register) =>
    (f.width === 32 ? erfInvOfSingle : erfInv<Register>)(f, x),
  erfc,
  logistic,
} as const;
const binary = {
  pow,
  atan2,
  rem: (f: Arithmetic, x: Register, y: Register) => rem(f.code, f.width, x, y),
} as const;

export type UnaryMath = keyof typeof unary;
export type BinaryMath = keyof typeof binary;

type UnaryEmitter = (code: Code, x: Register) => Register;
type BinaryEmitter = (code: Code, left: Register, right: Register) => Register;

/** All functions of a width. */
interface MathOfWidth {
  readonly unary: { readonly [F in UnaryMath]: UnaryEmitter };
  readonly binary: { readonly [F in BinaryMath]: BinaryEmitter };
}

function ofWidth(width: Width): MathOfWidth {
  return {
    unary: mapRecord<UnaryMath, SharedUnary, UnaryEmitter>(
      unary,
      (fn) => (code, x) => fn(new Arithmetic(code, width), x),
    ),
    binary: mapRecord<BinaryMath, SharedBinary, BinaryEmitter>(
      binary,
      (fn) => (code, left, right) => fn(new Arithmetic(code, width), left, right),
    ),
  };
}

type SharedUnary = (f: Arithmetic, x: Register) => Register;
type SharedBinary = (f: Arithmetic, left: Register, right: Register) => Register;

export const mathFunctions = {
  f32: ofWidth(32),
  f64: ofWidth(64),
  approximate: { unary: approximateUnary, binary: approximateBinary },
} as const;
