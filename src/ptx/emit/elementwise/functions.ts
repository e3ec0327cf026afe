/**
 * Arithmetic on lone elements of every format, bit for bit as docs/arithmetic.md says.
 *
 *   | formats         | computed in                                                               |
 *   |-----------------|---------------------------------------------------------------------------|
 *   | bool            | predicates                                                                |
 *   | integers        | 32 or 64 bits, cut to the format's width                                  |
 *   | f32, f64        | themselves                                                                |
 *   | f16, bf16       | themselves where there is an instruction (`half-precision.ts`), else in f32       |
 *   | tf32            | f32                                                                       |
 *   | f8e8m0fnu       | its exponents, in 32 bits (`scales.ts`)                                   |
 *
 * In f32 the operands of narrow formats are exact, and its 24 bits are two more than twice the 11 of f16 and
 * tf32: a sum, quotient or root that is rounded to f32 and then to the format is what one rounding gives.
 * Products of tf32 are exact but where they are subnormal, which f32 cuts at 2^-149, near to tf32's 2^-136;
 * they and fused sums are rounded to odd in between.
 */
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  RoundingManner,
  UnaryFunction,
} from "../../../formats/arithmetic/functions.ts";
import { functionNatures, isScale } from "../../../formats/arithmetic/functions.ts";
import { isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { elementClass } from "../values.ts";
import type { Emission } from "./emission.ts";
import {
  floatBinary,
  floatClassify,
  floatCompare,
  floatFma,
  floatUnary,
  narrowFloatUnary,
} from "./floats.ts";
import type { FloatBinaryFunction, FloatManner, FloatUnaryFunction } from "./floats.ts";
import { elementFromF32 } from "./from-f32.ts";
import { halfBinary, halfCompare, halfFma, halfUnary, isHalf } from "./half-precision.ts";
import {
  extendInteger,
  integerBinary,
  integerCompare,
  integerUnary,
  wrapInteger,
} from "./integers.ts";
import type { Division, IntegerBinaryFunction, IntegerUnaryFunction } from "./integers.ts";
import { oddResult } from "./round-to-odd.ts";
import { scaleBinary, scaleClassify, scaleCompare, scaleRoot } from "./scales.ts";
import { elementToF32 } from "./to-f32.ts";

/** Results that are numbers of tf32 already have nothing left to round. */
function roundNarrow(
  emission: Emission,
  dtype: DType,
  fn: UnaryFunction | BinaryFunction,
  value: Register,
): Register {
  if (dtype.name === "tf32" && functionNatures[fn] === "exact") return value;
  return elementFromF32(emission, dtype, value);
}

export function emitUnary(
  emission: Emission,
  fn: UnaryFunction,
  dtype: DType,
  value: Register,
  manner: FloatManner = {},
): Register {
  const { code } = emission;
  if (dtype.kind === "bool") return code.make("pred", "not.pred", value);
  if (isInteger(dtype)) {
    const extended = extendInteger(code, dtype, value);
    const result = integerUnary(code, fn as IntegerUnaryFunction, dtype, extended);
    return wrapInteger(code, dtype, result);
  }
  if (isScale(dtype)) return scaleRoot(code, value);
  const floatFunction = fn as FloatUnaryFunction;
  if (dtype.name === "f64") return floatUnary(code, floatFunction, 64, value, manner);
  if (dtype.name === "f32") return floatUnary(code, floatFunction, 32, value, manner);
  const direct = isHalf(dtype) ? halfUnary(emission, floatFunction, "element", value) : undefined;
  if (direct !== undefined) return direct;
  const operand = elementToF32(emission, dtype, value);
  const wide = narrowFloatUnary(code, floatFunction, dtype, operand, manner);
  return roundNarrow(emission, dtype, fn, wide);
}

/** How a function of two numbers is to be computed, where there is a choice. */
export interface BinaryManner extends FloatManner {
  /** What is known of the operands of a division. */
  readonly division?: Division | undefined;
}

export function emitBinary(
  emission: Emission,
  fn: BinaryFunction,
  dtype: DType,
  left: Register,
  right: Register,
  manner: BinaryManner = {},
): Register {
  const { code } = emission;
  if (dtype.kind === "bool") return code.make("pred", `${fn}.pred`, left, right);
  if (isInteger(dtype)) {
    const first = extendInteger(code, dtype, left);
    const second = extendInteger(code, dtype, right);
    const { division } = manner;
    const result = integerBinary(code, fn as IntegerBinaryFunction, dtype, first, second, division);
    return wrapInteger(code, dtype, result);
  }
  if (isScale(dtype)) return scaleBinary(code, fn, left, right);
  const floatFunction = fn as FloatBinaryFunction;
  if (dtype.name === "f64") return floatBinary(code, floatFunction, 64, left, right, manner);
  if (dtype.name === "f32") return floatBinary(code, floatFunction, 32, left, right, manner);
  const direct = isHalf(dtype)
    ? halfBinary(emission, floatFunction, dtype, "element", left, right, manner)
    : undefined;
  return direct ?? narrowBinary(emission, floatFunction, dtype, left, right, manner);
}

function narrowBinary(
  emission: Emission,
  fn: FloatBinaryFunction,
  dtype: DType,
  left: Register,
  right: Register,
  manner: FloatManner,
): Register {
  const { code } = emission;
  const first = elementToF32(emission, dtype, left);
  const second = elementToF32(emission, dtype, right);
  const wide =
    dtype.name === "tf32" && fn === "mul"
      ? oddResult(code, "mul", [first, second])
      : floatBinary(code, fn, 32, first, second, manner);
  return roundNarrow(emission, dtype, fn, wide);
}

/** a · b + c, rounded once. */
export function emitFma(
  emission: Emission,
  dtype: DType,
  a: Register,
  b: Register,
  c: Register,
  manner: RoundingManner = {},
): Register {
  const { code } = emission;
  if (dtype.name === "f64") return floatFma(code, 64, a, b, c, manner);
  if (dtype.name === "f32") return floatFma(code, 32, a, b, c, manner);
  if (isHalf(dtype)) return halfFma(emission, dtype, "element", a, b, c, manner);
  return elementFromF32(emission, dtype, oddResult(code, "fma", [a, b, c]));
}

export function emitCompare(
  emission: Emission,
  predicate: ComparePredicate,
  dtype: DType,
  left: Register,
  right: Register,
): Register {
  const { code } = emission;
  if (dtype.kind === "bool") return comparePredicates(code, predicate, left, right);
  if (isInteger(dtype)) {
    const first = extendInteger(code, dtype, left);
    return integerCompare(code, predicate, dtype, first, extendInteger(code, dtype, right));
  }
  if (isScale(dtype)) return scaleCompare(code, predicate, left, right);
  if (dtype.name === "f64") return floatCompare(code, predicate, 64, left, right);
  const direct = isHalf(dtype) ? halfCompare(emission, predicate, dtype, left, right) : undefined;
  if (direct !== undefined) return direct;
  const first = elementToF32(emission, dtype, left);
  return floatCompare(code, predicate, 32, first, elementToF32(emission, dtype, right));
}

/** bool is equal or not, and has no order. */
function comparePredicates(
  code: Code,
  predicate: ComparePredicate,
  left: Register,
  right: Register,
): Register {
  const differ = code.make("pred", "xor.pred", left, right);
  return predicate === "ne" ? differ : code.make("pred", "not.pred", differ);
}

export function emitClassify(
  emission: Emission,
  fn: ClassifyFunction,
  dtype: DType,
  value: Register,
): Register {
  const { code } = emission;
  if (isScale(dtype)) return scaleClassify(code, fn, value);
  if (dtype.name === "f64") return floatClassify(code, fn, 64, value);
  return floatClassify(code, fn, 32, elementToF32(emission, dtype, value));
}

/** One of two elements of any format, bit for bit. */
export function emitSelect(
  { code }: Emission,
  dtype: DType,
  condition: Register,
  ifTrue: Register,
  ifFalse: Register,
): Register {
  const type = elementClass(dtype);
  if (type !== "pred") return code.make(type, `selp.${type}`, ifTrue, ifFalse, condition);
  const otherwise = code.make("pred", "not.pred", condition);
  const first = code.make("pred", "and.pred", condition, ifTrue);
  const second = code.make("pred", "and.pred", otherwise, ifFalse);
  return code.make("pred", "or.pred", first, second);
}
