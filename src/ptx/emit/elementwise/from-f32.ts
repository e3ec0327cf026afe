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
 *
 * A rounding or bound that was chosen is a modifier of the conversion where there is one:
 *
 *   f16, bf16   `.rn` and `.rz` also in pairs and with `.satfinite`; `.rm` and `.rp` one by one, cut before
 *   tf32        `.rna` everywhere, `.rn` and `.rz` from sm_90 on, `.satfinite` from sm_100 on; others written out
 */
import type { DType, FloatName } from "../../../formats/dtype.ts";
import { floatFormats } from "../../../formats/floats.ts";
import type { ConversionOptions, Overflow, Rounding } from "../../../formats/floats.ts";
import type { Code } from "../../function-builder.ts";
import type { Operand, Register } from "../../module.ts";
import { float32, integer } from "../../operands.ts";
import { packHalves, packWord } from "../elements.ts";
import type { Emission } from "./emission.ts";
import { fourBitWord, sixBitWord } from "./small-floats.ts";
import { convertsFp8 } from "./to-f32.ts";

/* ---- instructions ---- */

/** The modifiers of PTX for the ways to round to a float. */
export const roundingModifiers: { readonly [R in Rounding]: string } = {
  nearest: "rn",
  away: "rna",
  zero: "rz",
  down: "rm",
  up: "rp",
};

function halfModifiers({ rounding = "nearest", overflow }: ConversionOptions): string {
  return `${roundingModifiers[rounding]}${overflow === "saturate" ? ".satfinite" : ""}`;
}

function packedHalves(
  { code }: Emission,
  name: "f16" | "bf16",
  values: readonly [Register, ...Register[]],
  choices: ConversionOptions,
): Register {
  const [low, high = low] = values;
  return code.make("b32", `cvt.${halfModifiers(choices)}.${name}x2.f32`, high, low);
}

/** Pairs, and `.satfinite`, are for the two roundings that are used most. */
function isDirected(rounding: Rounding | undefined): boolean {
  return rounding === "down" || rounding === "up";
}

function halfElement(
  { code }: Emission,
  dtype: DType,
  value: Register,
  choices: ConversionOptions,
): Register {
  const { rounding, overflow } = choices;
  const isCut = overflow === "saturate" && isDirected(rounding);
  const bounded = isCut ? cutToFinite(code, dtype, value) : value;
  const modifiers = halfModifiers(isCut ? { rounding } : choices);
  return code.make("b16", `cvt.${modifiers}.${dtype.name}.f32`, bounded);
}

/** Within the finite numbers of a format; NaN stays NaN. */
function cutToFinite(code: Code, dtype: DType, value: Register): Register {
  const { maxFinite } = floatFormats[dtype.name as FloatName];
  const below = code.make("b32", "min.NaN.f32", value, float32(maxFinite));
  return code.make("b32", "max.NaN.f32", below, float32(-maxFinite));
}

/** From 0 to 1, NaN 0, where that was chosen. */
function unitF32(code: Code, value: Register, { overflow }: ConversionOptions): Register {
  return overflow === "unit" ? code.make("b32", "cvt.sat.f32.f32", value) : value;
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
  overflow: Overflow | undefined,
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
function roundToTf32(
  { code, target }: Emission,
  dtype: DType,
  value: Register,
  { rounding = "nearest", overflow }: ConversionOptions,
): Register {
  const saturates = overflow === "saturate";
  const hasInstruction = rounding === "nearest" || rounding === "zero";
  const modifier = roundingModifiers[rounding];
  if (hasInstruction && saturates && target.architecture >= 100)
    return code.make("b32", `cvt.${modifier}.satfinite.tf32.f32`, value);
  const source = saturates ? cutToFinite(code, dtype, value) : value;
  if (hasInstruction && target.architecture >= 90)
    return code.make("b32", `cvt.${modifier}.tf32.f32`, source);
  const cut =
    rounding === "away"
      ? code.make("b32", "cvt.rna.tf32.f32", source)
      : code.make("b32", "and.b32", tf32Sum(code, source, rounding), integer(0xffffe000));
  // Cutting digits, which `.rna` does too, may leave none of those that make a NaN.
  const isNan = code.make("pred", "setp.nan.f32", source, source);
  return code.make("b32", "selp.b32", float32(NaN), cut, isNan);
}

/** Bits to which so much was added that cutting the last 13 rounds. */
function tf32Sum(code: Code, value: Register, rounding: Exclude<Rounding, "away">): Register {
  if (rounding === "nearest") return roundedBits(code, value, 13);
  if (rounding === "zero") return value;
  // All ones for a negative number, so that what is added is 2^13 - 1 where the number rounds away from zero.
  const sign = code.make("b32", "shr.s32", value, integer(31));
  const table = rounding === "down" ? andTable : andNotTable;
  const added = code.make("b32", "lop3.b32", integer(0x1fff), sign, integer(0), integer(table));
  return code.make("b32", "add.u32", value, added);
}

/** Tables of `a & b` and `a & ~b` for lop3. */
const andTable = 0xc0;
const andNotTable = 0x30;

/** `bits` with half of the last place above `shift` added, or one less to break a tie to even. */
function roundedBits(code: Code, bits: Register, shift: number): Register {
  const last = code.make("b32", "bfe.u32", bits, integer(shift), integer(1));
  const half = code.make("b32", "add.u32", last, integer(2 ** (shift - 1) - 1));
  return code.make("b32", "add.u32", bits, half);
}

type SequenceName = "f8e4m3fn" | "f8e5m2" | "f6e2m3fn" | "f6e3m2fn" | "f4e2m1fn";

/** The code, as a lone element. */
function roundToCode(
  code: Code,
  name: SequenceName,
  value: Register,
  overflow: Overflow | undefined,
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
  // Floats of 4 and 6 bits have no NaN and take -0 instead.
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
 * How the exponent of a power of two is read: `raised` is added to the bits before they are cut. f32 has the same bias, but
 * below 2^-126 its mantissa has no leading one, and what is below `least` is 2^-127: 1.5 · 2^-127 is 0x600000.
 */
const scaleRoundings: {
  readonly [R in Exclude<Rounding, "away">]: { readonly raised: number; readonly least: number };
} = {
  nearest: { raised: 0x00400000, least: 0x00600000 },
  zero: { raised: 0, least: 0x00800000 },
  down: { raised: 0, least: 0x00800000 },
  up: { raised: 0x007fffff, least: 0x00400001 },
};

/** The exponent of a power of two, of two equally near ones the larger. */
function roundToScale(code: Code, value: Register, rounding: Exclude<Rounding, "away">): Register {
  const { raised: added, least } = scaleRoundings[rounding];
  const isLeast = code.make("pred", "setp.lt.u32", value, integer(least));
  const raised = code.make("b32", "add.u32", value, integer(added));
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
  choices: ConversionOptions = {},
): Register {
  const { code } = emission;
  const [first, ...others] = values;
  if (first === undefined) throw new Error("a word of no elements");
  const { name } = dtype;
  if ((name === "f16" || name === "bf16") && !isDirected(choices.rounding)) {
    const rounded: [Register, ...Register[]] = [unitF32(code, first, choices)];
    for (const value of others) rounded.push(unitF32(code, value, choices));
    return packedHalves(emission, name, rounded, choices);
  }
  if ((name === "f8e4m3fn" || name === "f8e5m2") && convertsFp8(emission))
    return fp8Word(emission, name, [first, ...others], choices.overflow);
  if (convertsFp8(emission)) {
    if (name === "f4e2m1fn") return fourBitWord(code, [first, ...others]);
    if (name === "f6e2m3fn" || name === "f6e3m2fn")
      return sixBitWord(code, name, [first, ...others]);
  }
  const elements = values.map((value) => elementFromF32(emission, dtype, value, choices));
  return packWord(code, dtype, elements);
}

/** A lone element: f32 rounded to the format. */
export function elementFromF32(
  emission: Emission,
  dtype: DType,
  value: Register,
  choices: ConversionOptions = {},
): Register {
  const { code } = emission;
  const { overflow, rounding = "nearest" } = choices;
  const bounded = unitF32(code, value, choices);
  const name = dtype.name as Exclude<FloatName, "f64">;
  switch (name) {
    case "f32":
      return bounded;
    case "tf32":
      return roundToTf32(emission, dtype, bounded, choices);
    case "f16":
    case "bf16":
      return halfElement(emission, dtype, bounded, choices);
    case "f8e4m3fn":
    case "f8e5m2":
      return fp8Element(emission, name, value, overflow);
    case "f6e2m3fn":
    case "f6e3m2fn":
    case "f4e2m1fn":
      return roundToCode(code, name, value, overflow);
    case "f8e8m0fnu":
      return roundToScale(code, value, rounding === "away" ? "nearest" : rounding);
  }
}

function fp8Element(
  emission: Emission,
  name: Fp8Name,
  value: Register,
  overflow: Overflow | undefined,
): Register {
  const { code } = emission;
  if (!convertsFp8(emission)) return roundToCode(code, name, value, overflow);
  const bounded = overflow === "nan" ? overflowToNan(code, name, value) : value;
  const pair = fp8Pair(code, name, bounded, float32(0));
  return code.make("b32", "cvt.u32.u16", pair);
}
