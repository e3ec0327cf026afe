/**
 * Floats below 32 bits, and tf32, in vectors: their bits in lanes of i32, their numbers in lanes of f32.
 *
 *   bits of a code, moved to those of f32        |s|   eeee|mmm…          + bias, for normal numbers
 *   subnormal numbers                            (1.mmm - 1)·2^(1 - bias): a difference of normal ones, since
 *                                                processors take long for subnormal operands
 *
 * Narrowing rounds the bits, whose carry moves into the exponent; below the normal numbers a sum with 2^23 units of the least number
 * rounds to multiples of it.
 */
import type { FloatName } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import type { ConversionOptions, Rounding } from "../../formats/floats.ts";
import { i32, op, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";

/** Formats whose elements are bits in lanes of i32. */
export type CodedName = Exclude<FloatName, "f64" | "f32" | "tf32">;
type SignedName = Exclude<FloatName, "f64" | "f32" | "f8e8m0fnu">;

const word = (value: number): Expression => splat("i32x4", value);
const number = (value: number): Expression => splat("f32x4", value);

/** `ifTrue` where the mask is set. */
export function chosen(mask: Expression, ifTrue: Expression, ifFalse: Expression): Expression {
  return op("v128.bitselect", ifTrue, ifFalse, mask);
}

const fractionOfSingle = 23;
const infinityOfSingle = 0x7f800000;
const nanOfSingle = 0x7fc00000;

/** The numbers that codes stand for, as f32. A NaN is some NaN. */
export function singleOfBits(b: FunctionBuilder, name: CodedName, bits: Expression): Expression {
  if (name === "bf16") return b.keep(op("i32x4.shl", bits, i32.of(16)));
  if (name === "f8e8m0fnu") return scaleOfBits(b, bits);
  const { exponentBits, mantissaBits, bias, hasInfinity, nan } = floatFormats[name];
  const sign = 1 << (exponentBits + mantissaBits);
  const magnitude = b.keep(op("v128.and", bits, word(sign - 1)));
  const moved = b.keep(op("i32x4.shl", magnitude, i32.of(fractionOfSingle - mantissaBits)));
  const rebias = 127 - bias;
  const normal = op("i32x4.add", moved, word(rebias << fractionOfSingle));
  const small = op(
    "f32x4.sub",
    op("i32x4.add", moved, word((rebias + 1) << fractionOfSingle)),
    number(2 ** (1 - bias)),
  );
  let value = chosen(op("i32x4.lt_s", magnitude, word(1 << mantissaBits)), small, normal);
  if (hasInfinity) {
    const isSpecial = op("i32x4.ge_s", magnitude, word(((1 << exponentBits) - 1) << mantissaBits));
    value = op("v128.or", value, op("v128.and", isSpecial, word(infinityOfSingle)));
  } else if (nan !== undefined) {
    const isNan = op("i32x4.eq", magnitude, word(nan));
    value = op("v128.or", value, op("v128.and", isNan, word(nanOfSingle)));
  }
  const signs = op("v128.and", bits, word(sign));
  const place = 31 - exponentBits - mantissaBits;
  return b.keep(op("v128.or", value, op("i32x4.shl", signs, i32.of(place))));
}

/** Powers of two: the code is the exponent of f32, but for the least, which is subnormal there, and NaN. */
function scaleOfBits(b: FunctionBuilder, bits: Expression): Expression {
  const moved = op("i32x4.shl", bits, i32.of(fractionOfSingle));
  const withLeast = chosen(op("i32x4.eq", bits, word(0)), word(0x00400000), moved);
  return b.keep(chosen(op("i32x4.eq", bits, word(0xff)), word(nanOfSingle), withLeast));
}

/** The format's bits of numbers of f32; of tf32 the bits are those of f32. */
export function bitsOfSingle(
  b: FunctionBuilder,
  name: Exclude<FloatName, "f64" | "f32">,
  value: Expression,
  options: ConversionOptions = {},
): Expression {
  const x = options.overflow === "unit" ? withinUnit(b, value) : value;
  return name === "f8e8m0fnu" ? bitsOfScale(b, x, options) : roundedBits(b, name, x, options);
}

/** From 0 to 1; NaN and -0 are +0. */
export function withinUnit(b: FunctionBuilder, value: Expression): Expression {
  const isAbove = op("f32x4.gt", value, number(0));
  return b.keep(op("v128.and", isAbove, op("f32x4.pmin", value, number(1))));
}

/** Where a directed rounding leads away from zero, by the signs of 32-bit lanes. */
export function awayMask(
  b: FunctionBuilder,
  rounding: Exclude<Rounding, "nearest" | "away">,
  x: Expression,
): Expression {
  if (rounding === "zero") return word(0);
  const isNegative = op("i32x4.shr_s", x, i32.of(31));
  return b.keep(rounding === "down" ? isNegative : op("v128.not", isNegative));
}

function roundedBits(
  b: FunctionBuilder,
  name: SignedName,
  x: Expression,
  { rounding = "nearest", overflow }: ConversionOptions,
): Expression {
  const {
    exponentBits,
    mantissaBits,
    bias,
    hasInfinity,
    nan,
    overflow: usual,
  } = floatFormats[name];
  const isTf32 = name === "tf32";
  const shift = fractionOfSingle - mantissaBits;
  const signPlace = exponentBits + mantissaBits;
  const infinity = ((1 << exponentBits) - 1) << mantissaBits;
  const largest = hasInfinity ? infinity - 1 : (nan ?? 1 << signPlace) - 1;
  const magnitude = b.keep(op("v128.and", x, word(0x7fffffff)));
  const away = rounding === "nearest" || rounding === "away" ? undefined : awayMask(b, rounding, x);
  let code = normalBits(b, magnitude, { shift, rounding, away });
  if (bias !== 127) {
    code = op("i32x4.sub", code, word((127 - bias) << mantissaBits));
    const isSmall = op("f32x4.lt", magnitude, number(2 ** (1 - bias)));
    code = chosen(isSmall, smallBits(b, magnitude, bias + mantissaBits, away), code);
  }
  code = b.keep(code);
  const isFinite = op("i32x4.lt_s", magnitude, word(infinityOfSingle));
  let isNan: Expression = op("i32x4.gt_s", magnitude, word(infinityOfSingle));
  if (overflow === "nan") isNan = op("v128.or", isNan, op("i32x4.gt_s", code, word(largest)));
  else if (overflow === "saturate" || usual !== "infinity")
    code = op("i32x4.min_s", code, word(largest));
  else if (rounding === "nearest" || rounding === "away")
    code = op("i32x4.min_s", code, word(infinity));
  else {
    const stays = op("v128.andnot", isFinite, away ?? word(0));
    const bound = chosen(stays, word(largest), word(infinity));
    code = op("i32x4.min_s", code, bound);
  }
  const signs = op("i32x4.shl", op("i32x4.shr_u", x, i32.of(31)), i32.of(signPlace));
  // Floats of 4 and 6 bits have no NaN and take -0 instead.
  const nanCode = isTf32 ? nanOfSingle >> shift : (nan ?? 1 << signPlace);
  const bits = chosen(isNan, word(nanCode), op("v128.or", code, signs));
  return b.keep(isTf32 ? op("i32x4.shl", bits, i32.of(shift)) : bits);
}

interface Normal {
  readonly shift: number;
  readonly rounding: Rounding;
  readonly away: Expression | undefined;
}

/** The upper bits of a magnitude, rounded. */
function normalBits(
  b: FunctionBuilder,
  magnitude: Expression,
  { shift, rounding, away }: Normal,
): Expression {
  const half = 1 << (shift - 1);
  let added = word(half);
  if (away !== undefined) added = op("v128.and", away, word((1 << shift) - 1));
  else if (rounding === "nearest") {
    const last = op("v128.and", op("i32x4.shr_u", magnitude, i32.of(shift)), word(1));
    added = op("i32x4.add", last, word(half - 1));
  }
  return b.keep(op("i32x4.shr_u", op("i32x4.add", magnitude, added), i32.of(shift)));
}

/** How many units of 2^(1 - places) a small magnitude is, rounded to the nearest even number or to a side. */
function smallBits(
  b: FunctionBuilder,
  magnitude: Expression,
  places: number,
  away: Expression | undefined,
): Expression {
  const rounder = number(2 ** (fractionOfSingle + 1 - places));
  const sum = b.keep(op("f32x4.add", magnitude, rounder));
  const count = op("i32x4.sub", sum, rounder);
  if (away === undefined) return count;
  const rounded = b.keep(op("f32x4.sub", sum, rounder));
  const isAbove = op("v128.andnot", op("f32x4.gt", rounded, magnitude), away);
  const isBelow = op("v128.and", op("f32x4.lt", rounded, magnitude), away);
  return op("i32x4.sub", op("i32x4.add", count, isAbove), isBelow);
}

/** To the nearest power of two, of two the larger; what is not positive is NaN. */
function bitsOfScale(
  b: FunctionBuilder,
  x: Expression,
  { rounding = "nearest" }: ConversionOptions,
): Expression {
  const { added, least } = scaleRoundings[rounding];
  const rounded = op("i32x4.shr_u", op("i32x4.add", x, word(added)), i32.of(fractionOfSingle));
  const code = chosen(op("i32x4.lt_s", x, word(least)), word(0), rounded);
  return b.keep(chosen(op("f32x4.gt", x, number(0)), code, word(0xff)));
}

/** What is added to the bits before they are cut, and from which on they are above the least power, which is subnormal in f32. */
const scaleRoundings: {
  readonly [R in Rounding]: { readonly added: number; readonly least: number };
} = {
  nearest: { added: 0x00400000, least: 0x00600000 },
  away: { added: 0x00400000, least: 0x00600000 },
  zero: { added: 0, least: 0x00800000 },
  down: { added: 0, least: 0x00800000 },
  up: { added: 0x007fffff, least: 0x00400001 },
};
