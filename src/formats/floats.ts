/**
 * The float formats: their parameters, and exact encoding and decoding of the ones narrower than f64.
 *
 * A code is a format's bit pattern as a number. Decoding reads a table; encoding rounds once, straight
 * from the pattern of the f64 that JavaScript has:
 *
 *   f64 value    1.00048828125000022…   just above the midpoint of two f16 numbers
 *   via f32      1.00048828125          the midpoint; a second rounding would go to even: 0x3c00
 *   here         high word 0x3ff00200, low word not zero: 0x3ff00201
 *   f16          0x3c01                 the last bit breaks the tie the right way
 *
 * The high word holds every bit that a narrower format keeps and the first that it drops. Of the low
 * word it only matters whether anything is there, and a last bit says that.
 */
import type { FloatName } from "./dtype.ts";

/** The formats with codes that fit a number. */
export type CodedFloatName = Exclude<FloatName, "f64">;

/** What becomes of a number beyond the range of the target. */
export const overflows = ["saturate", "nan", "unit"] as const;
export type Overflow = (typeof overflows)[number];

/** Which of two neighbours a number between them becomes. */
export const roundings = ["nearest", "away", "zero", "down", "up"] as const;
export type Rounding = (typeof roundings)[number];

/** Choices that not every conversion has: `conversionChoices` says which. */
export interface ConversionOptions {
  /**
   * "saturate" gives the number of the range that is nearest: the largest finite float, the greatest or least
   * integer. "nan" gives NaN, "unit" cuts to 0 … 1 and makes NaN 0. Without it the conversion table decides.
   */
  readonly overflow?: Overflow | undefined;
  /** "nearest", to even where two are; "away" likewise, but from zero; "zero", "down" and "up" to that side. */
  readonly rounding?: Rounding | undefined;
}

export interface FloatFormat {
  /** Whether the topmost bit is a sign. */
  readonly signed: boolean;
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  readonly hasInfinity: boolean;
  readonly hasZero: boolean;
  readonly maxFinite: number;
  /** The smallest positive number, a subnormal one where the format has them. */
  readonly minPositive: number;
  /** The code of the one NaN that conversions make; undefined where the format has none. */
  readonly nan: number | undefined;
  /** Which neighbour a number exactly halfway becomes. */
  readonly ties: "to even" | "up";
  /** What a number beyond `maxFinite` becomes; "chosen" is the caller's `overflow`. */
  readonly overflow: "infinity" | "chosen" | "saturate" | "nan";
}

const ieee = {
  signed: true,
  hasInfinity: true,
  hasZero: true,
  ties: "to even",
  overflow: "infinity",
} as const;

export const floatFormats: { readonly [N in FloatName]: FloatFormat } = Object.freeze({
  f64: {
    ...ieee,
    exponentBits: 11,
    mantissaBits: 52,
    bias: 1023,
    maxFinite: Number.MAX_VALUE,
    minPositive: Number.MIN_VALUE,
    nan: 0x7ff8000000000000,
  },
  f32: {
    ...ieee,
    exponentBits: 8,
    mantissaBits: 23,
    bias: 127,
    maxFinite: (2 - 2 ** -23) * 2 ** 127,
    minPositive: 2 ** -149,
    nan: 0x7fc00000,
  },
  tf32: {
    ...ieee,
    exponentBits: 8,
    mantissaBits: 10,
    bias: 127,
    maxFinite: (2 - 2 ** -10) * 2 ** 127,
    minPositive: 2 ** -136,
    nan: 0x7fc00000,
  },
  f16: {
    ...ieee,
    exponentBits: 5,
    mantissaBits: 10,
    bias: 15,
    maxFinite: 65504,
    minPositive: 2 ** -24,
    nan: 0x7e00,
  },
  bf16: {
    ...ieee,
    exponentBits: 8,
    mantissaBits: 7,
    bias: 127,
    maxFinite: (2 - 2 ** -7) * 2 ** 127,
    minPositive: 2 ** -133,
    nan: 0x7fc0,
  },
  f8e4m3fn: {
    ...ieee,
    exponentBits: 4,
    mantissaBits: 3,
    bias: 7,
    hasInfinity: false,
    maxFinite: 448,
    minPositive: 2 ** -9,
    nan: 0x7f,
    overflow: "chosen",
  },
  f8e5m2: {
    ...ieee,
    exponentBits: 5,
    mantissaBits: 2,
    bias: 15,
    maxFinite: 57344,
    minPositive: 2 ** -16,
    nan: 0x7e,
    overflow: "chosen",
  },
  f8e8m0fnu: {
    signed: false,
    exponentBits: 8,
    mantissaBits: 0,
    bias: 127,
    hasInfinity: false,
    hasZero: false,
    maxFinite: 2 ** 127,
    minPositive: 2 ** -127,
    nan: 0xff,
    ties: "up",
    overflow: "nan",
  },
  f6e2m3fn: {
    ...ieee,
    exponentBits: 2,
    mantissaBits: 3,
    bias: 1,
    hasInfinity: false,
    maxFinite: 7.5,
    minPositive: 0.125,
    nan: undefined,
    overflow: "saturate",
  },
  f6e3m2fn: {
    ...ieee,
    exponentBits: 3,
    mantissaBits: 2,
    bias: 3,
    hasInfinity: false,
    maxFinite: 28,
    minPositive: 2 ** -4,
    nan: undefined,
    overflow: "saturate",
  },
  f4e2m1fn: {
    ...ieee,
    exponentBits: 2,
    mantissaBits: 1,
    bias: 1,
    hasInfinity: false,
    maxFinite: 6,
    minPositive: 0.5,
    nan: undefined,
    overflow: "saturate",
  },
});

/** One f64 seen as a number and as its low and high word. */
const scratchNumber = new Float64Array(1);
const scratchWords = new Int32Array(scratchNumber.buffer);
/** One f32 seen as a number and as bits. */
const scratchFloat = new Float32Array(1);
const scratchBits = new Int32Array(scratchFloat.buffer);

type RoundedName = Exclude<CodedFloatName, "f32" | "f8e8m0fnu">;

/** The constants with which `roundToCode` turns the words of an f64 into a code, one set a format. */
interface CodeRounding {
  /** Mantissa bits that the high word has and the format has not. */
  readonly shift: number;
  readonly belowHalf: number;
  /** The high word of the smallest normal number. */
  readonly minNormal: number;
  /** What the smaller bias takes off a shifted high word. */
  readonly rebias: number;
  /** Subnormal numbers times this are their codes. */
  readonly subnormalScale: number;
  /** The codes, without sign, of the largest finite number, of what lies beyond, and of NaN. */
  readonly maxCode: number;
  readonly overflowCode: number;
  readonly nanCode: number;
  readonly sign: number;
  readonly overflowIsChosen: boolean;
}

function planRounding(name: RoundedName): CodeRounding {
  const { exponentBits, mantissaBits, bias, hasInfinity, nan, overflow } = floatFormats[name];
  const sign = 1 << (exponentBits + mantissaBits);
  const infinity = ((1 << exponentBits) - 1) << mantissaBits;
  const withoutInfinity = nan === undefined ? sign - 1 : nan - 1;
  const maxCode = hasInfinity ? infinity - 1 : withoutInfinity;
  const shift = 20 - mantissaBits;
  return Object.freeze({
    shift,
    belowHalf: (1 << (shift - 1)) - 1,
    minNormal: (1024 - bias) << 20,
    rebias: (1023 - bias) << mantissaBits,
    subnormalScale: 2 ** (bias - 1 + mantissaBits),
    maxCode,
    overflowCode: overflow === "infinity" ? infinity : maxCode,
    // Floats of 4 and 6 bits have no NaN and take -0 instead. A tf32 code here is without its 13 low zeros.
    nanCode: name === "tf32" ? 0x3fe00 : (nan ?? sign),
    sign,
    overflowIsChosen: overflow === "chosen",
  });
}

const codeRoundings: { readonly [N in RoundedName]: CodeRounding } = {
  tf32: planRounding("tf32"),
  f16: planRounding("f16"),
  bf16: planRounding("bf16"),
  f8e4m3fn: planRounding("f8e4m3fn"),
  f8e5m2: planRounding("f8e5m2"),
  f6e2m3fn: planRounding("f6e2m3fn"),
  f6e3m2fn: planRounding("f6e3m2fn"),
  f4e2m1fn: planRounding("f4e2m1fn"),
};

/** Adding and subtracting this rounds a number below 2^51 to the nearest even integer. */
const integerRounder = 2 ** 52;

/** The code, without the zeros below it for tf32, of the number with these words. */
function roundToCode(
  rounding: CodeRounding,
  low: number,
  high: number,
  value: number,
  overflowToNaN: boolean,
): number {
  if (value !== value) return rounding.nanCode;
  const magnitude = high & 0x7fffffff;
  let code: number;
  if (magnitude < rounding.minNormal) {
    code = (Math.abs(value) * rounding.subnormalScale + integerRounder - integerRounder) | 0;
  } else {
    const { shift } = rounding;
    const kept = low === 0 ? magnitude : magnitude | 1;
    const toEven = rounding.belowHalf + ((kept >>> shift) & 1);
    code = ((kept + toEven) >>> shift) - rounding.rebias;
    if (code > rounding.maxCode) {
      if (overflowToNaN && rounding.overflowIsChosen) return rounding.nanCode;
      code = rounding.overflowCode;
    }
  }
  return high < 0 ? code | rounding.sign : code;
}

/** tf32 elements hold numbers, whose bits end in 13 zeros. */
const tf32Padding = 13;

/** The power of two that is nearest, the larger of two; below 2^-127 that is 2^-127. */
function roundToScale(high: number, value: number): number {
  if (!(value > 0)) return 0xff;
  const code = ((high + 0x80000) >> 20) - (1023 - 127);
  return code < 0 ? 0 : Math.min(code, 0xff);
}

function encodeFloat32(value: number): number {
  if (value !== value) return 0x7fc00000;
  scratchFloat[0] = value;
  return (scratchBits[0] as number) >>> 0;
}

/** The code of the number of the format that `value` rounds to. */
export function encodeFloat(
  name: CodedFloatName,
  value: number,
  options?: ConversionOptions,
): number {
  if (name === "f32") return encodeFloat32(value);
  scratchNumber[0] = value;
  const low = scratchWords[0] as number;
  const high = scratchWords[1] as number;
  if (name === "f8e8m0fnu") return roundToScale(high, value);
  const code = roundToCode(codeRoundings[name], low, high, value, options?.overflow === "nan");
  return name === "tf32" ? (code << tf32Padding) >>> 0 : code;
}

/** The number that a code stands for. */
export function decodeFloat(name: CodedFloatName, code: number): number {
  if (name === "f32" || name === "tf32") {
    scratchBits[0] = code;
    return scratchFloat[0] as number;
  }
  return decodeTable(name)[code] as number;
}

/** `value` rounded to a number of the format: what decoding its code gives. */
export function roundFloat(name: FloatName, value: number, options?: ConversionOptions): number {
  if (name === "f64") return value;
  if (name === "f32") return Math.fround(value);
  const code = encodeFloat(name, value, options);
  if (name === "tf32") return decodeFloat(name, code);
  // A table is made for many numbers; making one takes ten milliseconds, which a process that compiles one kernel need not wait.
  return decodeTables[name]?.[code] ?? decodeCode(name, code);
}

/** The formats whose elements hold codes. */
export type TableFloatName = Exclude<FloatName, "f64" | "f32" | "tf32">;

const decodeTables: { [N in TableFloatName]: Float32Array | undefined } = {
  f16: undefined,
  bf16: undefined,
  f8e4m3fn: undefined,
  f8e5m2: undefined,
  f8e8m0fnu: undefined,
  f6e2m3fn: undefined,
  f6e3m2fn: undefined,
  f4e2m1fn: undefined,
};

/** The numbers of all codes of a format, in order; not to be written to. */
export function decodeTable(name: TableFloatName): Float32Array {
  return decodeTables[name] ?? buildDecodeTable(name);
}

function buildDecodeTable(name: TableFloatName): Float32Array {
  const { signed, exponentBits, mantissaBits } = floatFormats[name];
  const bits = exponentBits + mantissaBits + (signed ? 1 : 0);
  // Elements of 6 bits are bytes, whose upper two bits are not looked at.
  const codes = 1 << (bits === 6 ? 8 : bits);
  const table = new Float32Array(codes);
  for (let code = 0; code < codes; code += 1) table[code] = decodeCode(name, code);
  decodeTables[name] = table;
  return table;
}

function decodeCode(name: TableFloatName, code: number): number {
  const { signed, exponentBits, mantissaBits, bias, hasInfinity, hasZero, nan } =
    floatFormats[name];
  const maxExponent = (1 << exponentBits) - 1;
  const exponent = (code >>> mantissaBits) & maxExponent;
  const mantissa = code & ((1 << mantissaBits) - 1);
  const sign = signed && ((code >>> (exponentBits + mantissaBits)) & 1) !== 0 ? -1 : 1;
  if (hasInfinity && exponent === maxExponent) return mantissa === 0 ? sign * Infinity : NaN;
  const nanMantissa = nan === undefined ? undefined : nan & ((1 << mantissaBits) - 1);
  if (exponent === maxExponent && mantissa === nanMantissa) return NaN;
  const fraction = mantissa / (1 << mantissaBits);
  if (exponent === 0 && hasZero) return sign * fraction * 2 ** (1 - bias);
  return sign * (1 + fraction) * 2 ** (exponent - bias);
}

/** Any typed array that holds codes or, for f32, tf32 and f64, numbers. */
export type FloatElements = Float64Array | Float32Array | Uint16Array | Uint8Array;

/** Encodes `values[0 .. count)` into elements from `start` on. */
export function encodeFloatElements(
  name: FloatName,
  values: Float64Array,
  target: FloatElements,
  start: number,
  count: number,
  options?: ConversionOptions,
): void {
  if (name === "f64" || name === "f32") {
    storeNumbers(values, target, start, count);
  } else if (name === "f8e8m0fnu") {
    storeScales(values, target, start, count);
  } else if (name === "tf32") {
    const bits = new Int32Array(target.buffer, target.byteOffset + 4 * start, count);
    storeCodes(codeRoundings.tf32, values, bits, false);
    for (let i = 0; i < count; i++) bits[i] = (bits[i] as number) << tf32Padding;
  } else {
    const codes = target.subarray(start, start + count);
    storeCodes(codeRoundings[name], values, codes, options?.overflow === "nan");
  }
}

function storeNumbers(
  values: Float64Array,
  target: FloatElements,
  start: number,
  count: number,
): void {
  for (let i = 0; i < count; i++) {
    const value = values[i] as number;
    // A NaN that the processor made may carry a sign; the literal does not.
    target[start + i] = value === value ? value : NaN;
  }
}

function storeScales(
  values: Float64Array,
  target: FloatElements,
  start: number,
  count: number,
): void {
  const words = wordsOf(values);
  for (let i = 0; i < count; i++) {
    target[start + i] = roundToScale(words[2 * i + 1] as number, values[i] as number);
  }
}

function storeCodes(
  rounding: CodeRounding,
  values: Float64Array,
  target: FloatElements | Int32Array,
  overflowToNaN: boolean,
): void {
  const words = wordsOf(values);
  for (let i = 0; i < target.length; i++) {
    const low = words[2 * i] as number;
    const high = words[2 * i + 1] as number;
    target[i] = roundToCode(rounding, low, high, values[i] as number, overflowToNaN);
  }
}

function wordsOf(values: Float64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, 2 * values.length);
}

/** Decodes `count` elements from `start` on into `values[0 .. count)`. */
export function decodeFloatElements(
  name: FloatName,
  source: FloatElements,
  start: number,
  count: number,
  values: Float64Array,
): void {
  if (name === "f64" || name === "f32" || name === "tf32") {
    for (let i = 0; i < count; i++) values[i] = source[start + i] as number;
  } else {
    const table = decodeTable(name);
    for (let i = 0; i < count; i++) values[i] = table[source[start + i] as number] as number;
  }
}
