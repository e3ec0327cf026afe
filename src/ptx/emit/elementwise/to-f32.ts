/**
 * Numbers of narrow formats as f32, which holds every one of them. Conversions and the functions that PTX
 * has no narrow instruction for go through here.
 *
 * Integers become floats by addition, which runs at several times the rate of a conversion: placed in the
 * mantissa of 2^23, an unsigned integer n reads as 2^23 + n, exactly. Signed ones are made unsigned first,
 * by flipping the sign, which adds half their range.
 *
 *   u8 word  d c b a    prmt with 0x4b000000    4b 00 00 a  =  2^23 + a    - 2^23  =  a
 *
 * Narrow floats are put where f32 has its exponent and mantissa, subnormal numbers too, and multiplied by
 * the power of two by which the biases differ.
 */
import { isInteger } from "../../../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../../../formats/dtype.ts";
import { floatFormats } from "../../../formats/floats.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { float32, integer } from "../../operands.ts";
import { unpackHalves, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import type { Emission } from "./emission.ts";
import { extendInteger } from "./integers.ts";

const beyondF32: ReadonlySet<DTypeName> = new Set(["f64", "i32", "u32", "i64", "u64", "bool"]);

/** Whether f32 holds every number of the format. */
export function fitsF32(dtype: DType): boolean {
  return !beyondF32.has(dtype.name);
}

/** The FP8 conversions of PTX. */
export function convertsFp8({ target }: Emission): boolean {
  return target.architecture >= 89;
}

type WordReader = (emission: Emission, word: Register, used: number) => Register[];

/* ---- floats ---- */

function halvesToF32({ code }: Emission, word: Register, used: number): Register[] {
  return unpackHalves(code, word)
    .slice(0, used)
    .map((half) => code.make("b32", "cvt.f32.f16", half));
}

function upperHalvesToF32({ code }: Emission, word: Register, used: number): Register[] {
  const first = code.make("b32", "shl.b32", word, integer(16));
  return used === 1 ? [first] : [first, code.make("b32", "and.b32", word, integer(0xffff0000))];
}

/** The f16 words of an FP8 word; undefined where the target cannot convert them. */
export function fp8ToHalves(
  emission: Emission,
  dtype: DType,
  word: Register,
  used: number,
): Register[] | undefined {
  const { code } = emission;
  if (dtype.name === "f8e5m2") {
    // An f16 without its low byte.
    const selectors = used > 2 ? [0x1404, 0x3424] : [0x1404];
    return selectors.map((selector) =>
      code.make("b32", "prmt.b32", word, integer(0), integer(selector)),
    );
  }
  if (dtype.name !== "f8e4m3fn" || !convertsFp8(emission)) return undefined;
  return unpackHalves(code, word)
    .slice(0, used > 2 ? 2 : 1)
    .map((pair) => code.make("b32", "cvt.rn.f16x2.e4m3x2", pair));
}

function fp8ToF32(dtype: DType<"f8e4m3fn" | "f8e5m2">): WordReader {
  return (emission, word, used) => {
    const halves = fp8ToHalves(emission, dtype, word, used);
    if (halves === undefined) return codesToF32(dtype)(emission, word, used);
    return halves.flatMap((pair, index) =>
      halvesToF32(emission, pair, Math.min(2, used - 2 * index)),
    );
  };
}

/** Codes without infinities, of four, six and eight bits. */
function codesToF32(dtype: DType<FloatName>): WordReader {
  return ({ code }, word, used) =>
    unpackWord(code, dtype, word, used).map((element) => codeToF32(code, dtype, element));
}

function codeToF32(code: Code, dtype: DType<FloatName>, element: Register): Register {
  const { exponentBits, mantissaBits, bias, nan } = floatFormats[dtype.name];
  const signPlace = exponentBits + mantissaBits;
  const magnitude = code.make("b32", "and.b32", element, integer(2 ** signPlace - 1));
  const placed = code.make("b32", "shl.b32", magnitude, integer(23 - mantissaBits));
  const shifted = code.make("b32", "shl.b32", element, integer(31 - signPlace));
  const sign = code.make("b32", "and.b32", shifted, integer(2 ** 31));
  const joined = code.make("b32", "or.b32", placed, sign);
  const value = code.make("b32", "mul.rn.f32", joined, float32(2 ** (127 - bias)));
  if (nan === undefined) return value;
  const isNan = code.make("pred", "setp.eq.u32", magnitude, integer(nan));
  return code.make("b32", "selp.b32", float32(NaN), value, isNan);
}

/** The exponent alone; 2^-127 is subnormal in f32. */
function scalesToF32(dtype: DType): WordReader {
  return ({ code }, word, used) =>
    unpackWord(code, dtype, word, used).map((element) => {
      const placed = code.make("b32", "shl.b32", element, integer(23));
      const value = code.make("b32", "max.u32", placed, integer(0x00400000));
      const isNan = code.make("pred", "setp.eq.u32", element, integer(0xff));
      return code.make("b32", "selp.b32", float32(NaN), value, isNan);
    });
}

/* ---- integers ---- */

const magicWord = 0x4b000000;
const magicNumber = 2 ** 23;

/** The word with the signs of its elements flipped, which adds half of the range to each. */
export function unsignedWord(code: Code, { kind, bits }: DType, word: Register): Register {
  if (kind !== "signed") return word;
  const signs = { 4: 0x88888888, 8: 0x80808080, 16: 0x80008000, 32: 2 ** 31, 64: 2 ** 31 }[bits];
  return code.make("b32", "xor.b32", word, integer(signs));
}

/** What `unsignedWord` added. */
export function addedHalf({ kind, bits }: DType): number {
  return kind === "signed" ? 2 ** (bits - 1) : 0;
}

function integersToF32(dtype: DType): WordReader {
  return ({ code }, word, used) =>
    placedIntegers(code, dtype, unsignedWord(code, dtype, word), used).map((placed) =>
      code.make("b32", "add.rn.f32", placed, float32(-magicNumber - addedHalf(dtype))),
    );
}

/** Each element below 2^23 as an f32. */
function placedIntegers(code: Code, { bits }: DType, word: Register, used: number): Register[] {
  const place = (source: Register, selector: number): Register =>
    code.make("b32", "prmt.b32", source, integer(magicWord), integer(selector));
  if (bits === 16) return [0x7410, 0x7432].slice(0, used).map((each) => place(word, each));
  const byte = (source: Register, index: number): Register => place(source, 0x7440 + index);
  if (bits === 8) return Array.from({ length: used }, (_, index) => byte(word, index));
  const even = code.make("b32", "and.b32", word, integer(0x0f0f0f0f));
  const moved = code.make("b32", "shr.u32", word, integer(4));
  const odd = code.make("b32", "and.b32", moved, integer(0x0f0f0f0f));
  return Array.from({ length: used }, (_, index) => byte(index % 2 === 0 ? even : odd, index >> 1));
}

/* ---- words and elements ---- */

const identity: WordReader = (_, word) => [word];

function wordReader(dtype: DType): WordReader {
  if (isInteger(dtype)) return integersToF32(dtype);
  switch (dtype.name as FloatName) {
    case "f64":
      throw new Error("f32 cannot hold f64");
    case "f32":
    case "tf32":
      return identity;
    case "f16":
      return halvesToF32;
    case "bf16":
      return upperHalvesToF32;
    case "f8e4m3fn":
    case "f8e5m2":
      return fp8ToF32(dtype as DType<"f8e4m3fn" | "f8e5m2">);
    case "f8e8m0fnu":
      return scalesToF32(dtype);
    case "f6e2m3fn":
    case "f6e3m2fn":
    case "f4e2m1fn":
      return codesToF32(dtype as DType<FloatName>);
  }
}

/** The first `used` elements of a word as f32; the format must fit. */
export function wordToF32(
  emission: Emission,
  dtype: DType,
  word: Register,
  used: number = slotsOf(dtype),
): Register[] {
  return wordReader(dtype)(emission, word, used);
}

/** A lone element as f32; the format must fit. */
export function elementToF32(emission: Emission, dtype: DType, element: Register): Register {
  const { code } = emission;
  if (dtype.name === "f16") return code.make("b32", "cvt.f32.f16", element);
  if (isInteger(dtype)) {
    const type = dtype.kind === "signed" ? "s32" : "u32";
    return code.make("b32", `cvt.rn.f32.${type}`, extendInteger(code, dtype, element));
  }
  const word = dtype.bits === 16 ? code.make("b32", "cvt.u32.u16", element) : element;
  const [value] = wordToF32(emission, dtype, word, 1);
  if (value === undefined) throw new Error(`an element of ${dtype.name} gave none`);
  return value;
}
