/**
 * Arithmetic on the words of tiles. A word of 32 or 64 bits is a lone element; of narrower formats it holds
 * several, which are computed together where PTX or the bits allow it and one by one otherwise:
 *
 *   | formats         | together                                     | one by one                     |
 *   |-----------------|----------------------------------------------|--------------------------------|
 *   | f16, bf16       | add … fma, min, max, neg, abs, comparison    | in f32, packed by one `cvt`    |
 *   | 4 to 16 bits    | and, or, xor, not, select                    | extended to 32 bits            |
 *
 * `used` counts the elements of the word that are not padding.
 */
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  RoundingManner,
  UnaryFunction,
} from "../../../formats/arithmetic/functions.ts";
import { isScale } from "../../../formats/arithmetic/functions.ts";
import { isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { packWord, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import type { Emission } from "./emission.ts";
import { floatBinary, floatClassify, floatCompare, narrowFloatUnary } from "./floats.ts";
import type { FloatBinaryFunction, FloatManner, FloatUnaryFunction } from "./floats.ts";
import { wordFromF32 } from "./from-f32.ts";
import {
  emitBinary,
  emitClassify,
  emitCompare,
  emitFma,
  emitSelect,
  emitUnary,
} from "./functions.ts";
import type { BinaryManner } from "./functions.ts";
import { halfBinary, halfCompareWords, halfFma, halfUnary, isHalf } from "./half-precision.ts";
import { integerBinary, integerCompare, integerUnary } from "./integers.ts";
import type { IntegerBinaryFunction, IntegerUnaryFunction } from "./integers.ts";
import { scaleBinary, scaleClassify, scaleCompare, scaleRoot } from "./scales.ts";
import { wordToF32 } from "./to-f32.ts";

/** The elements of a word of narrow integers, each extended to 32 bits. */
export function extendWord(code: Code, dtype: DType, word: Register, used: number): Register[] {
  if (dtype.bits !== 16) return unpackWord(code, dtype, word, used);
  const signed = dtype.kind === "signed";
  const low = signed
    ? code.make("b32", "cvt.s32.s16", word)
    : code.make("b32", "and.b32", word, integer(0xffff));
  if (used === 1) return [low];
  return [low, code.make("b32", signed ? "shr.s32" : "shr.u32", word, integer(16))];
}

/** The word of the low bits of these registers. */
export function joinWord(code: Code, dtype: DType, values: readonly Register[]): Register {
  if (dtype.bits !== 16) return packWord(code, dtype, values);
  const [low, high] = values;
  if (low === undefined) throw new Error("a word of no elements");
  if (high === undefined) return low;
  return code.make("b32", "prmt.b32", low, high, integer(0x5410));
}

function zip(
  first: readonly Register[],
  second: readonly Register[],
  combine: (first: Register, second: Register) => Register,
): Register[] {
  return first.flatMap((one, index) => {
    const other = second[index];
    return other === undefined ? [] : [combine(one, other)];
  });
}

export function unaryWord(
  emission: Emission,
  fn: UnaryFunction,
  dtype: DType,
  word: Register,
  used: number,
  manner: FloatManner = {},
): Register {
  const { code } = emission;
  if (slotsOf(dtype) === 1) return emitUnary(emission, fn, dtype, word, manner);
  if (fn === "not") return code.make("b32", "not.b32", word);
  if (isInteger(dtype)) {
    const results = extendWord(code, dtype, word, used).map((element) =>
      integerUnary(code, fn as IntegerUnaryFunction, dtype, element),
    );
    return joinWord(code, dtype, results);
  }
  if (isScale(dtype)) {
    const roots = unpackWord(code, dtype, word, used).map((element) => scaleRoot(code, element));
    return packWord(code, dtype, roots);
  }
  const floatFunction = fn as FloatUnaryFunction;
  const direct = isHalf(dtype) ? halfUnary(emission, floatFunction, "word", word) : undefined;
  if (direct !== undefined) return direct;
  const results = wordToF32(emission, dtype, word, used).map((value) =>
    narrowFloatUnary(code, floatFunction, dtype, value, manner),
  );
  return wordFromF32(emission, dtype, results);
}

const bitwise: ReadonlySet<BinaryFunction> = new Set(["and", "or", "xor"]);

export function binaryWord(
  emission: Emission,
  fn: BinaryFunction,
  dtype: DType,
  left: Register,
  right: Register,
  used: number,
  manner: BinaryManner = {},
): Register {
  const { code } = emission;
  if (slotsOf(dtype) === 1) return emitBinary(emission, fn, dtype, left, right, manner);
  if (bitwise.has(fn)) return code.make("b32", `${fn}.b32`, left, right);
  if (isInteger(dtype)) {
    const results = zip(
      extendWord(code, dtype, left, used),
      extendWord(code, dtype, right, used),
      (first, second) =>
        integerBinary(code, fn as IntegerBinaryFunction, dtype, first, second, manner.division),
    );
    return joinWord(code, dtype, results);
  }
  if (isScale(dtype)) {
    const [first, second] = [left, right].map((word) => unpackWord(code, dtype, word, used));
    const scales = zip(first ?? [], second ?? [], (a, b) => scaleBinary(code, fn, a, b));
    return packWord(code, dtype, scales);
  }
  const floatFunction = fn as FloatBinaryFunction;
  const direct = isHalf(dtype)
    ? halfBinary(emission, floatFunction, dtype, "word", left, right, manner)
    : undefined;
  if (direct !== undefined) return direct;
  const results = zip(
    wordToF32(emission, dtype, left, used),
    wordToF32(emission, dtype, right, used),
    (first, second) => floatBinary(code, floatFunction, 32, first, second, manner),
  );
  return wordFromF32(emission, dtype, results);
}

export function fmaWord(
  emission: Emission,
  dtype: DType,
  a: Register,
  b: Register,
  c: Register,
  manner: RoundingManner = {},
): Register {
  return isHalf(dtype)
    ? halfFma(emission, dtype, "word", a, b, c, manner)
    : emitFma(emission, dtype, a, b, c, manner);
}

/** A predicate for each element that is not padding. */
export function compareWord(
  emission: Emission,
  predicate: ComparePredicate,
  dtype: DType,
  left: Register,
  right: Register,
  used: number,
): Register[] {
  const { code } = emission;
  if (slotsOf(dtype) === 1) return [emitCompare(emission, predicate, dtype, left, right)];
  if (isInteger(dtype))
    return zip(
      extendWord(code, dtype, left, used),
      extendWord(code, dtype, right, used),
      (first, second) => integerCompare(code, predicate, dtype, first, second),
    );
  if (isScale(dtype))
    return zip(
      unpackWord(code, dtype, left, used),
      unpackWord(code, dtype, right, used),
      (first, second) => scaleCompare(code, predicate, first, second),
    );
  const direct = isHalf(dtype)
    ? halfCompareWords(emission, predicate, dtype, left, right)
    : undefined;
  if (direct !== undefined) return direct.slice(0, used);
  return zip(
    wordToF32(emission, dtype, left, used),
    wordToF32(emission, dtype, right, used),
    (first, second) => floatCompare(code, predicate, 32, first, second),
  );
}

/** A predicate for each element that is not padding. */
export function classifyWord(
  emission: Emission,
  fn: ClassifyFunction,
  dtype: DType,
  word: Register,
  used: number,
): Register[] {
  if (slotsOf(dtype) === 1) return [emitClassify(emission, fn, dtype, word)];
  const { code } = emission;
  if (isScale(dtype))
    return unpackWord(code, dtype, word, used).map((element) => scaleClassify(code, fn, element));
  return wordToF32(emission, dtype, word, used).map((value) => floatClassify(code, fn, 32, value));
}

/** Each element from one of two words, by a predicate each. */
export function selectWord(
  emission: Emission,
  dtype: DType,
  conditions: readonly Register[],
  ifTrue: Register,
  ifFalse: Register,
): Register {
  const { code } = emission;
  const [first] = conditions;
  if (first === undefined) throw new Error("a word of no elements");
  if (slotsOf(dtype) === 1) return emitSelect(emission, dtype, first, ifTrue, ifFalse);
  if (conditions.every((condition) => condition === first))
    return code.make("b32", "selp.b32", ifTrue, ifFalse, first);
  const masks = conditions.map((condition, place) => {
    const ones = (2 ** dtype.bits - 1) * 2 ** (dtype.bits * place);
    return code.make("b32", "selp.b32", integer(ones), integer(0), condition);
  });
  const mask = masks.reduce((joined, next) => code.make("b32", "or.b32", joined, next));
  // Bit by bit: mask ? ifTrue : ifFalse.
  return code.make("b32", "lop3.b32", ifTrue, ifFalse, mask, integer(0xe4));
}
