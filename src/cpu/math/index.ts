/**
 * Functions of vectors: of four f32 or two f64, as expressions that stand wherever their value is needed.
 *
 *   const code = { builder, relaxed: true };
 *   vectorMath.f32.unary.exp(code, x)       b.keep'd operations; the result may be read again
 *   vectorMath.f64.binary.pow(code, x, y)
 *
 * They are within the bounds of `mathBounds`, with relaxed multiply-adds, whether the engine fuses them, and without. A function
 * of f32 is computed in f32 where that keeps its bound, or in f64, half a vector at a time, where nothing can be lost. NaN comes
 * out with any bits: `canonicalNan` makes them the one NaN of the format where bits show.
 */
import type { Angle, FloatArithmetic } from "../../ptx/math/float-arithmetic.ts";
import { acos, asin, atan, atan2 } from "../../ptx/math/arctangent.ts";
import { erf, erfc } from "../../ptx/math/error-function.ts";
import { exp, exp2, expm1, logistic, tanh } from "../../ptx/math/exponential.ts";
import { acosh, asinh, atanh, cosh, sinh } from "../../ptx/math/hyperbolic.ts";
import type { BinaryMath, UnaryMath } from "../../ptx/math/index.ts";
import { erfInv } from "../../ptx/math/inverse-error.ts";
import { log, log1p, log2 } from "../../ptx/math/logarithm.ts";
import { pow } from "../../ptx/math/power.ts";
import { cbrt, rsqrt } from "../../ptx/math/root.ts";
import { cos, sin, tan } from "../../ptx/math/trigonometric.ts";
import { mapRecord } from "../../support/records.ts";
import { op, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { reduceAngle } from "./angle.ts";
import { remainder } from "./remainder.ts";
import { VectorArithmetic } from "./vector-arithmetic.ts";
import type { VectorOptions } from "./vector-arithmetic.ts";

/** Where expressions go, and whether relaxed SIMD may be used. */
export interface VectorCode {
  readonly builder: FunctionBuilder;
  readonly relaxed: boolean;
}

export type VectorUnary = (code: VectorCode, x: Expression) => Expression;
export type VectorBinary = (code: VectorCode, left: Expression, right: Expression) => Expression;

type Sequence = (f: VectorArithmetic, x: Expression) => Expression;

/** A function of an angle. */
function ofAngle(
  fn: (f: FloatArithmetic<Expression>, angle: Angle<Expression>) => Expression,
): Sequence {
  return (f, x) => fn(f, reduceAngle(f, x));
}

const sequences: { readonly [F in UnaryMath]: Sequence } = {
  rsqrt,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sin: ofAngle(sin),
  cos: ofAngle(cos),
  tan: ofAngle(tan),
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
  erf: (f, x) => erf(f, x),
  erf_inv: erfInv,
  erfc,
  logistic,
};

type PairSequence = (f: VectorArithmetic, left: Expression, right: Expression) => Expression;

const pairSequences: { readonly [F in BinaryMath]: PairSequence } = {
  pow,
  atan2,
  rem: remainder,
};

/** Those of f32 that keep their bound in f32, without products that would have to be exact. */
const inSingle: ReadonlySet<UnaryMath> = new Set<UnaryMath>([
  "exp",
  "exp2",
  "expm1",
  "log",
  "log1p",
  "tanh",
  "logistic",
  "atan",
  "sinh",
  "cosh",
  "asinh",
  "atanh",
  "cbrt",
  "erf",
]);

function arithmetic({ builder, relaxed }: VectorCode, options: Omit<VectorOptions, "relaxed">) {
  return new VectorArithmetic(builder, { ...options, relaxed });
}

/** The first two lanes of f32 as f64, and the last two. */
export function promoteHalves(
  builder: FunctionBuilder,
  x: Expression,
): readonly [Expression, Expression] {
  const upper = builder.keep(shuffleLanes(x, x, [2, 3, 2, 3]));
  return [
    builder.keep(op("f64x2.promote_low_f32x4", x)),
    builder.keep(op("f64x2.promote_low_f32x4", upper)),
  ];
}

/** Two vectors of f64 rounded to one of f32. */
export function demoteHalves(
  builder: FunctionBuilder,
  low: Expression,
  high: Expression,
): Expression {
  const demote = (half: Expression): Expression =>
    builder.keep(op("f32x4.demote_f64x2_zero", half));
  return builder.keep(shuffleLanes(demote(low), demote(high), [0, 1, 4, 5]));
}

/** In f64, half a vector at a time. */
function throughDouble(
  code: VectorCode,
  operands: readonly Expression[],
  fn: (f: VectorArithmetic, ...operands: readonly Expression[]) => Expression,
): Expression {
  const { builder } = code;
  const f = arithmetic(code, { width: 64, precision: 32 });
  const halves = operands.map((operand) => promoteHalves(builder, operand));
  const low = fn(f, ...halves.map(([half]) => half));
  const high = fn(f, ...halves.map(([, half]) => half));
  return demoteHalves(builder, low, high);
}

function unaryOfSingle(sequence: Sequence, fn: UnaryMath): VectorUnary {
  if (inSingle.has(fn)) return (code, x) => sequence(arithmetic(code, { width: 32 }), x);
  return (code, x) => throughDouble(code, [x], (f, half) => sequence(f, half ?? x));
}

export const vectorMath = {
  f32: {
    unary: mapRecord<UnaryMath, Sequence, VectorUnary>(sequences, unaryOfSingle),
    binary: mapRecord<BinaryMath, PairSequence, VectorBinary>(
      pairSequences,
      (sequence) => (code, left, right) =>
        throughDouble(code, [left, right], (f, x, y) => sequence(f, x ?? left, y ?? right)),
    ),
  },
  f64: {
    unary: mapRecord<UnaryMath, Sequence, VectorUnary>(
      sequences,
      (sequence) => (code, x) => sequence(arithmetic(code, { width: 64 }), x),
    ),
    binary: mapRecord<BinaryMath, PairSequence, VectorBinary>(
      pairSequences,
      (sequence) => (code, left, right) => sequence(arithmetic(code, { width: 64 }), left, right),
    ),
  },
} as const;

/** The same numbers, every NaN as the one that operations make. */
export function canonicalNan({ builder }: VectorCode, width: 32 | 64, x: Expression): Expression {
  const isNumber = builder.keep(op(width === 32 ? "f32x4.eq" : "f64x2.eq", x, x));
  const nan = width === 32 ? splat("i32x4", 0x7fc00000) : splat("i64x2", 0x7ff8000000000000n);
  return builder.keep(op("v128.bitselect", x, nan, isNumber));
}
