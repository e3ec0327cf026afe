/**
 * The functions of f16 and bf16 that PTX has, on a lone element and on the two of a word.
 *
 *   | function      | f16   | bf16                                                            |
 *   |---------------|-------|-----------------------------------------------------------------|
 *   | add, sub, mul | all   | sm_90; before, fma with a factor or addend that changes nothing |
 *   | min, max, fma | all   | all                                                             |
 *   | neg, abs      | the sign bit of either, so that a NaN keeps the others                  |
 *   | comparison    | all   | sm_90                                                           |
 *
 * All round once, to nearest even, and know subnormal numbers; those of f16 flush them where that is asked for.
 */
import type { ComparePredicate, RoundingManner } from "../../../formats/arithmetic/functions.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Operand, Register } from "../../module.ts";
import { integer, pair } from "../../operands.ts";
import type { Emission } from "./emission.ts";
import { floatComparison, roundingText } from "./floats.ts";
import type { FloatBinaryFunction, FloatUnaryFunction } from "./floats.ts";

export type HalfType = DType<"f16" | "bf16">;

export function isHalf(dtype: DType): dtype is HalfType {
  return dtype.name === "f16" || dtype.name === "bf16";
}

/** Whether instructions work on a lone element or on a word. */
export type Packing = "element" | "word";

function make(
  { code }: Emission,
  { name }: HalfType,
  packing: Packing,
  operation: string,
  ...operands: readonly Operand[]
): Register {
  return packing === "word"
    ? code.make("b32", `${operation}.${name}x2`, ...operands)
    : code.make("b16", `${operation}.${name}`, ...operands);
}

/** A register with these 16 bits in each element. */
function filled({ code }: Emission, packing: Packing, bits: number): Register {
  return packing === "word"
    ? code.make("b32", "mov.b32", integer(bits * 0x10001))
    : code.make("b16", "mov.b16", integer(bits));
}

/** neg and abs; undefined for other functions. */
export function halfUnary(
  { code }: Emission,
  fn: FloatUnaryFunction,
  packing: Packing,
  value: Register,
): Register | undefined {
  if (fn !== "neg" && fn !== "abs") return undefined;
  const type = packing === "word" ? "b32" : "b16";
  const bits = fn === "neg" ? minusZero : minusZero - 1;
  const mask = integer(packing === "word" ? bits * 0x10001 : bits);
  return code.make(type, `${fn === "neg" ? "xor" : "and"}.${type}`, value, mask);
}

const plainBinary: { readonly [F in FloatBinaryFunction]: string | undefined } = {
  add: "add.rn",
  sub: "sub.rn",
  mul: "mul.rn",
  min: "min.NaN",
  max: "max.NaN",
  fmin: "min",
  fmax: "max",
  div: undefined,
  rem: undefined,
  pow: undefined,
  atan2: undefined,
};

const one = 0x3f80;
const minusOne = 0xbf80;
const minusZero = 0x8000;

/** The function, where there is an instruction for it. */
export function halfBinary(
  emission: Emission,
  fn: FloatBinaryFunction,
  dtype: HalfType,
  packing: Packing,
  left: Register,
  right: Register,
  { flushToZero = false }: RoundingManner = {},
): Register | undefined {
  const operation = plainBinary[fn];
  if (operation === undefined) return undefined;
  if (flushToZero) return make(emission, dtype, packing, `${operation}.ftz`, left, right);
  const lacking = dtype.name === "bf16" && emission.target.architecture < 90;
  const constant = (bits: number): Register => filled(emission, packing, bits);
  if (lacking && fn === "add") return halfFma(emission, dtype, packing, left, constant(one), right);
  if (lacking && fn === "sub")
    return halfFma(emission, dtype, packing, right, constant(minusOne), left);
  if (lacking && fn === "mul")
    return halfFma(emission, dtype, packing, left, right, constant(minusZero));
  return make(emission, dtype, packing, operation, left, right);
}

export function halfFma(
  emission: Emission,
  dtype: HalfType,
  packing: Packing,
  a: Register,
  b: Register,
  c: Register,
  manner: RoundingManner = {},
): Register {
  return make(emission, dtype, packing, `fma.${roundingText(manner)}`, a, b, c);
}

function hasComparison({ target }: Emission, dtype: HalfType): boolean {
  return dtype.name === "f16" || target.architecture >= 90;
}

/** The predicate of lone elements, where there is an instruction for it. */
export function halfCompare(
  emission: Emission,
  predicate: ComparePredicate,
  dtype: HalfType,
  left: Register,
  right: Register,
): Register | undefined {
  if (!hasComparison(emission, dtype)) return undefined;
  const opcode = `setp.${floatComparison(predicate)}.${dtype.name}`;
  return emission.code.make("pred", opcode, left, right);
}

/** The predicates of the two elements, where there is an instruction for it. */
export function halfCompareWords(
  emission: Emission,
  predicate: ComparePredicate,
  dtype: HalfType,
  left: Register,
  right: Register,
): readonly [Register, Register] | undefined {
  if (!hasComparison(emission, dtype)) return undefined;
  const { code } = emission;
  const low = code.register("pred");
  const high = code.register("pred");
  const opcode = `setp.${floatComparison(predicate)}.${dtype.name}x2`;
  code.emit(opcode, [pair(low, high), left, right]);
  return [low, high];
}
