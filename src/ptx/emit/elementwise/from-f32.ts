/**
 * f32 rounded once to a narrower float, ties and overflow as the conversion table says. f16 and bf16 have
 * instructions everywhere, FP8 from sm_89 on, tf32 to nearest even from sm_90 on. The rest is written out:
 *
 *   normal      bits of |x|, plus half of the last place kept (less one where that is even), shifted, with
 *               the difference of the biases taken off
 *   subnormal   |x| + C, C such that the sum's last place is the format's smallest number: the addition
 *               rounds, and the low bits of the sum are the code
 *
 *   e4m3 of 2^-9 · 2.5    C = 2^14    2^14 + 2^-8 (to even)    code 2
 */
import type { DType, FloatName } from "../../../formats/dtype.ts";
import { floatFormats } from "../../../formats/floats.ts";
import type { Overflow } from "../../../formats/floats.ts";
import type { Code } from "../../code.ts";
import type { Operand, Register } from "../../module.ts";
import { float32, integer } from "../../operands.ts";
import { packHalves, packWord } from "../elements.ts";
import type { Emission } from "./emission.ts";
import { convertsFp8 } from "./to-f32.ts";

/* ---- instructions ---- */

function packedHalves(
  { code }: Emission,
  name: "f16" | "bf16",
  values: readonly [Register, ...Register[]],
): Register {
  const [low, high = low] = values;
  return code.make("b32", `cvt.rn.${name}x2.f32`, high, low);
}

const fp8Instructions = {
  f8e4m3fn: { type: "e4m3x2", comparison: "gt", limit: 464 },
  f8e5m2: { type: "e5m2x2", comparison: "ge", limit: 61440 },
} as const;
type Fp8Name = keyof typeof fp8Instructions;

/** What rounds to a number beyond the largest becomes NaN before it is converted. */
function overflowToNan(code: Code, name: Fp8Name, value: Register): Register {
  const { comparison, limit } = fp8Instructions[name];
  const size = code.make("b32", "abs.f32", value);
  const beyond = code.make("pred", `setp.${comparison}.f32`, size, float32(limit));
  return code.make("b32", "selp.b32", float32(NaN), value, beyond);
}

/** A b16 with the codes of two numbers. */
function fp8Pair(code: Code, name: Fp8Name, low: Register, high: Operand): Register {
  return code.make("b16", `cvt.rn.satfinite.${fp8Instructions[name].type}.f32`, high, low);
}

function fp8Word(
  { code }: Emission,
  name: Fp8Name,
  values: readonly [Register, ...Register[]],
  overflow: Overflow,
): Register {
  const bounded =
    overflow === "nan" ? values.map((value) => overflowToNan(code, name, value)) : values;
  const [first = values[0], second = first, third = first, fourth = third] = bounded;
  const low = fp8Pair(code, name, first, second);
  const high = values.length > 2 ? fp8Pair(code, name, third, fourth) : low;
  return packHalves(code, low, high);
}

/* ---- sequences ---- */

/** f32 whose last 13 bits are zero. */
function roundToTf32({ code, target }: Emission, value: Register): Register {
  if (target.architecture >= 90) return code.make("b32", "cvt.rn.tf32.f32", value);
  const rounded = roundedBits(code, value, 13);
  const cut = code.make("b32", "and.b32", rounded, integer(0xffffe000));
  const isNan = code.make("pred", "setp.nan.f32", value, value);
  return code.make("b32", "selp.b32", float32(NaN), cut, isNan);
}

/** `bits` with half of the last place above `shift` added, or one less to break a tie to even. */
function roundedBits(code: Code, bits: Register, shift: number): Register {
  const last = code.make("b32", "bfe.u32", bits, integer(shift), integer(1));
  const half = code.make("b32", "add.u32", last, integer(2 ** (shift - 1) - 1));
  return code.make("b32", "add.u32", bits, half);
}

type SequenceName = "f8e4m3fn" | "f8e5m2" | "f4e2m1fn";

/** The code, as a lone element. */
function roundToCode(
  code: Code,
  name: SequenceName,
  value: Register,
  overflow: Overflow,
): Register {
  const { mantissaBits, exponentBits, bias, hasInfinity, nan } = floatFormats[name];
  const signPlace = exponentBits + mantissaBits;
  const maxCode = hasInfinity
    ? ((2 ** exponentBits - 1) << mantissaBits) - 1
    : (nan ?? 2 ** signPlace) - 1;
  const magnitude = code.make("b32", "and.b32", value, integer(0x7fffffff));
  const shift = 23 - mantissaBits;
  const kept = code.make("b32", "shr.u32", roundedBits(code, magnitude, shift), integer(shift));
  const normal = code.make("b32", "sub.u32", kept, integer((127 - bias) << mantissaBits));
  const rounder = 2 ** (23 - (bias - 1 + mantissaBits));
  const sum = code.make("b32", "add.rn.f32", magnitude, float32(rounder));
  const subnormal = code.make("b32", "sub.u32", sum, integer(float32(rounder).bits));
  const least = (128 - bias) * 2 ** 23;
  const isSmall = code.make("pred", "setp.lt.u32", magnitude, integer(least));
  const rounded = code.make("b32", "selp.b32", subnormal, normal, isSmall);
  const beyond = beyondLargest(code, rounded, maxCode, overflow === "nan" ? nan : undefined);
  const shifted = code.make("b32", "shr.u32", value, integer(31 - signPlace));
  const sign = code.make("b32", "and.b32", shifted, integer(2 ** signPlace));
  const signed = code.make("b32", "or.b32", beyond, sign);
  const isNan = code.make("pred", "setp.nan.f32", value, value);
  // F4E2M1FN has no NaN and takes -0 instead.
  return code.make("b32", "selp.b32", integer(nan ?? 2 ** signPlace), signed, isNan);
}

function beyondLargest(
  code: Code,
  rounded: Register,
  maxCode: number,
  nan: number | undefined,
): Register {
  if (nan === undefined) return code.make("b32", "min.u32", rounded, integer(maxCode));
  const beyond = code.make("pred", "setp.gt.u32", rounded, integer(maxCode));
  return code.make("b32", "selp.b32", integer(nan), rounded, beyond);
}

/**
 * The exponent of the nearest power of two, the larger of two. f32 has the same bias, but below 2^-126 its
 * mantissa has no leading one: 1.5 · 2^-127 is 0x600000.
 */
function roundToScale(code: Code, value: Register): Register {
  const isLeast = code.make("pred", "setp.lt.u32", value, integer(0x00600000));
  const raised = code.make("b32", "add.u32", value, integer(0x00400000));
  const exponent = code.make("b32", "shr.u32", raised, integer(23));
  const rounded = code.make("b32", "selp.b32", integer(0), exponent, isLeast);
  const positive = code.make("pred", "setp.gt.f32", value, float32(0));
  return code.make("b32", "selp.b32", rounded, integer(0xff), positive);
}

/* ---- words and elements ---- */

/** The word of these f32, at least one, rounded to the format. */
export function wordFromF32(
  emission: Emission,
  dtype: DType,
  values: readonly Register[],
  overflow: Overflow = "saturate",
): Register {
  const [first, ...others] = values;
  if (first === undefined) throw new Error("a word of no elements");
  const { name } = dtype;
  if (name === "f16" || name === "bf16") return packedHalves(emission, name, [first, ...others]);
  if ((name === "f8e4m3fn" || name === "f8e5m2") && convertsFp8(emission))
    return fp8Word(emission, name, [first, ...others], overflow);
  const elements = values.map((value) => elementFromF32(emission, dtype, value, overflow));
  return packWord(emission.code, dtype, elements);
}

/** A lone element: f32 rounded to the format. */
export function elementFromF32(
  emission: Emission,
  dtype: DType,
  value: Register,
  overflow: Overflow = "saturate",
): Register {
  const { code } = emission;
  switch (dtype.name as Exclude<FloatName, "f64">) {
    case "f32":
      return value;
    case "tf32":
      return roundToTf32(emission, value);
    case "f16":
    case "bf16":
      return code.make("b16", `cvt.rn.${dtype.name}.f32`, value);
    case "f8e4m3fn":
    case "f8e5m2":
      return fp8Element(emission, dtype.name as Fp8Name, value, overflow);
    case "f4e2m1fn":
      return roundToCode(code, "f4e2m1fn", value, overflow);
    case "f8e8m0fnu":
      return roundToScale(code, value);
  }
}

function fp8Element(
  emission: Emission,
  name: Fp8Name,
  value: Register,
  overflow: Overflow,
): Register {
  const { code } = emission;
  if (!convertsFp8(emission)) return roundToCode(code, name, value, overflow);
  const bounded = overflow === "nan" ? overflowToNan(code, name, value) : value;
  const pair = fp8Pair(code, name, bounded, float32(0));
  return code.make("b32", "cvt.u32.u16", pair);
}
