/**
 * Conversions to f16 and bf16 that make two elements at a time, without going through f32: those that
 * dequantise weights.
 *
 * Placed in the mantissa of 2^10, an integer n reads as 2^10 + n in f16; with n shifted left by 4 it is
 * 2^10 + 16 n. In bf16 the number is 2^7. A packed subtraction or fma leaves n, exactly. Signed integers have
 * their sign flipped on the way, which adds half their range.
 *
 *   u4 word  … b a   byte 0 twice   00 ba 00 ba   and, xor   64 b0 64 0a   fma {1/16, 1}   {b, a}
 */
import type { DType } from "../../../formats/dtype.ts";
import { bf16, f16, f8e8m0fnu, isInteger } from "../../../formats/dtype.ts";
import { encodeFloat } from "../../../formats/floats.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { slotsOf } from "../values.ts";
import type { Emission } from "./emission.ts";
import { halfBinary, halfFma } from "./half-precision.ts";
import type { HalfType } from "./half-precision.ts";
import { addedHalf, fp8ToHalves, unsignedWord } from "./to-f32.ts";

/** A pair of the word's elements, by its number, as a word of the target. */
type PairReader = (pair: number) => Register;

/**
 * Words of 4 bits as f16 or bf16, with elements of each that are half a word apart side by side: 0 and 4, 1 and 5 … A mask takes both of
 * them out of the word where they lie, and an fma makes numbers of them, so that a shift is needed for every second pair alone:
 *
 *   u4 word  h g f e d c b a    and, xor   64 0e 64 0a   fma 1      {e, a}      f16: 2^10 + n
 *                               and, xor   64 f0 64 b0   fma 1/16   {f, b}      f16: 2^10 + 16 n
 *                               and        00 f0 00 b0   fma 2^127  {f, b} / 4  bf16: n 2^-129, a subnormal number
 *
 * bf16 has no room for a second number in its mantissa, but its numbers below 2^-125 lie as evenly as integers. The factor that brings
 * them back is beyond bf16, unless they are to be multiplied by a quarter or less (`scaled-casts.ts`). Otherwise all but the first pair
 * are shifted.
 */
export function halvesCast(
  emission: Emission,
  from: DType,
  to: HalfType,
  words: readonly Register[],
  /** A power of two that the numbers are multiplied by. */
  factor = 1,
): readonly Register[] {
  if (!isInteger(from)) return words.flatMap((word) => floatPairs(emission, to, word));
  return words.flatMap((word) => {
    const upper = (): Register => emission.code.make("b32", "shr.u32", word, integer(8));
    const inPlace = to === f16 || factor <= greatestFactor;
    return inPlace
      ? [word, upper()].flatMap((each) => pairsInPlace(emission, from, to, each, factor))
      : shiftedPairs(emission, from, to, word);
  });
}

/**
 * Floats of 4 bits, half a word apart: their sign goes to the top of a half, and exponent and mantissa to the lowest place of an exponent and the highest of a
 * mantissa, where they are the number times a power of two, which a product takes back. Subnormal numbers are right as well.
 *
 *   f4e2m1fn   s ee m  ──▶  bf16  s 000000ee m000000  · 2^126     f16  s 000ee m000000000  · 2^14
 *
 * A sign is 6 bits further from its place than the rest is, 3 of f16. The signs of two pairs may be moved that far towards their numbers without meeting bits of
 * either: one mask puts together the word and the word rotated, and a rotation and a mask for each pair are all that is left. The last one is where it belongs.
 */
function floatPairs(emission: Emission, to: HalfType, word: Register): readonly Register[] {
  const { code } = emission;
  const [place, factor, neighbor] = to === f16 ? [9, 2 ** 14, 2] : [6, 2 ** 126, 1];
  const rotated = (given: Register, distance: number): Register =>
    distance === 0 ? given : code.make("b32", "shf.l.wrap.b32", given, given, integer(distance));
  const bits = encodeFloat(to.name, factor);
  const numbers = rotated(word, 32 + place - 12);
  const joined = [0, 3 - neighbor].map((first) => {
    const signs = integer(0x00080008 * (16 ** first + 16 ** (first + neighbor)));
    return code.make("b32", "lop3.b32", word, signs, numbers, integer(bitSelect));
  });
  return [0, 1, 2, 3].map((pair) => {
    const both = joined[neighbor === 1 ? pair >> 1 : pair & 1];
    if (both === undefined) throw new Error("a word has four pairs");
    const mask = integer(0x80008000 + 0x00070007 * 2 ** place);
    const placed = code.make("b32", "and.b32", rotated(both, 12 - 4 * pair), mask);
    const back = bothHalves(emission, bits, bits);
    const result = halfBinary(emission, "mul", to, "word", placed, back);
    if (result === undefined) throw new Error(`${to.name} has no product`);
    return result;
  });
}

/** What numbers in the second place may be multiplied by at most: 2^127 brings back a quarter of them. */
export const greatestFactor = 1 / 4;

/** Words of 4 bits as bf16 of n 2^-133, and of every second pair n 2^-129: what `scaledHalves` makes numbers of. */
export function placedHalves(
  emission: Emission,
  from: DType,
  words: readonly Register[],
): readonly Register[] {
  const added = addedHalf(from);
  return words.flatMap((word) => {
    const upper = emission.code.make("b32", "shr.u32", word, integer(8));
    return [word, upper].flatMap((each) => [
      placeNibbles(emission, each, 0x000f000f, 0x00010001 * added),
      placeNibbles(emission, each, 0x00f000f0, 0x00100010 * added),
    ]);
  });
}

/**
 * The products of placed numbers, a factor and scales, each by one fma. The scale brings numbers back to where they belong, and takes
 * away with it what flipping their sign added: eight times a scale is as exact as the scale.
 */
export function scaledHalves(
  emission: Emission,
  placed: readonly Register[],
  scales: readonly Register[],
  { factor, added }: { readonly factor: number; readonly added: number },
): readonly Register[] {
  const known = new Map<string, Register>();
  const times = (scale: Register, value: number): Register => {
    const key = `${scale.name} ${value}`;
    const bits = encodeFloat("bf16", value);
    const constant = (): Register => bothHalves(emission, bits, bits);
    const made = known.get(key) ?? halfBinary(emission, "mul", bf16, "word", scale, constant());
    if (made === undefined) throw new Error("bf16 has no product");
    known.set(key, made);
    return made;
  };
  return placed.map((word, index) => {
    const scale = scales[index];
    if (scale === undefined) throw new Error("a word has no scale");
    const back = times(scale, factor * 2 ** (index % 2 === 0 ? 133 : 129));
    return halfFma(emission, bf16, "word", word, back, times(scale, -added * factor));
  });
}

/** The two pairs of the lower bytes of a word's halves. */
function pairsInPlace(
  emission: Emission,
  from: DType,
  to: HalfType,
  word: Register,
  factor: number,
): readonly Register[] {
  const added = addedHalf(from);
  const base = to === f16 ? 1024 : 128;
  const exponents = encodeFloat(to.name, base) * 0x10001;
  const both = (value: number): Register => {
    const bits = encodeFloat(to.name, value);
    return bothHalves(emission, bits, bits);
  };
  const made = (mask: number, flipped: number, scale: number, offset: number): Register => {
    const placed = placeNibbles(emission, word, mask, flipped);
    return halfFma(emission, to, "word", placed, both(scale), both(-offset));
  };
  const second = 0x00100010 * added;
  return [
    made(0x000f000f, exponents + 0x00010001 * added, factor, (base + added) * factor),
    to === f16
      ? made(0x00f000f0, exponents + second, factor / 16, (base / 16 + added) * factor)
      : made(0x00f000f0, second, factor * 2 ** 129, added * factor),
  ];
}

function shiftedPairs(
  emission: Emission,
  from: DType,
  to: HalfType,
  word: Register,
): readonly Register[] {
  const { code } = emission;
  const added = addedHalf(from);
  const base = 128;
  const exponents = encodeFloat(to.name, base) * 0x10001 + 0x00010001 * added;
  return [0, 1, 2, 3].map((pair) => {
    const moved = pair === 0 ? word : code.make("b32", "shr.u32", word, integer(4 * pair));
    const placed = placeNibbles(emission, moved, 0x000f000f, exponents);
    return subtracted(emission, to, placed, base + added);
  });
}

/** The words of `count` elements, or undefined where pairs have no way of their own. */
export function pairedCast(
  emission: Emission,
  from: DType,
  to: DType,
  words: readonly Register[],
  count: number,
): readonly Register[] | undefined {
  const slots = slotsOf(from);
  const results: Register[] = [];
  for (const [index, word] of words.entries()) {
    const used = Math.min(slots, count - index * slots);
    const pairs = pairsOf(emission, from, to, word, used);
    if (pairs === undefined) return undefined;
    results.push(...pairs);
  }
  return results;
}

function pairsOf(
  emission: Emission,
  from: DType,
  to: DType,
  word: Register,
  used: number,
): readonly Register[] | undefined {
  if (from === f8e8m0fnu && to === bf16 && emission.target.architecture >= 90)
    return scalesToBf16(emission, word, used);
  if (to === f16 && !isInteger(from)) return fp8ToHalves(emission, from, word, used);
  const reader = integerPairs(emission, from, to, word);
  if (reader === undefined) return undefined;
  return Array.from({ length: Math.ceil(used / 2) }, (_, pair) => reader(pair));
}

/**
 * Scales by their exponent alone: 2^-127 is subnormal, and the exponent above all numbers is NaN, which an infinity times zero is.
 *
 *   word  d c b a    0b00 0a00, shifted    0 bbbbbbbb 0000000  0 aaaaaaaa 0000000    x · 0 + x
 */
function scalesToBf16(emission: Emission, word: Register, used: number): readonly Register[] {
  const { code } = emission;
  const zero = bothHalves(emission, 0, 0);
  // No instruction on halves takes a number as it is.
  const least = bothHalves(emission, 0x40, 0x40);
  const selectors = used > 2 ? [0x1404, 0x3424] : [0x1404];
  return selectors.map((selector) => {
    const apart = code.make("b32", "prmt.b32", word, integer(0), integer(selector));
    const placed = code.make("b32", "shr.u32", apart, integer(1));
    const power = code.make("b32", "max.u16x2", placed, least);
    return halfFma(emission, bf16, "word", power, zero, power);
  });
}

function integerPairs(
  emission: Emission,
  from: DType,
  to: DType,
  word: Register,
): PairReader | undefined {
  if (!isInteger(from) || from.bits > 8) return undefined;
  if (to === f16) return (from.bits === 8 ? bytesToF16 : nibblesToF16)(emission, from, word);
  return to === bf16 && from.bits === 4 ? nibblesToBf16(emission, from, word) : undefined;
}

function bothHalves(emission: Emission, low: number, high: number): Register {
  return emission.code.make("b32", "mov.b32", integer(high * 0x10000 + low));
}

function subtracted(
  emission: Emission,
  dtype: typeof f16 | typeof bf16,
  placed: Register,
  value: number,
): Register {
  const bits = encodeFloat(dtype.name, value);
  const constant = bothHalves(emission, bits, bits);
  const result = halfBinary(emission, "sub", dtype, "word", placed, constant);
  if (result === undefined) throw new Error(`${dtype.name} has no difference`);
  return result;
}

function bytesToF16(emission: Emission, from: DType, word: Register): PairReader {
  const { code } = emission;
  const source = unsignedWord(code, from, word);
  return (pair) => {
    const selector = integer(pair === 0 ? 0x4140 : 0x4342);
    const placed = code.make("b32", "prmt.b32", source, integer(0x64646464), selector);
    return subtracted(emission, f16, placed, 1024 + addedHalf(from));
  };
}

/** The tables of `(a & b) ^ c` and `(a & b) | (c & ~b)` for lop3. */
const [andXor, bitSelect] = [0x6a, 0xe2];

/** `(spread & mask) ^ exponents`, where the exponents' word also flips the sign of both nibbles where they have one. */
function placeNibbles(
  { code }: Emission,
  spread: Register,
  mask: number,
  exponents: number,
): Register {
  return code.make("b32", "lop3.b32", spread, integer(mask), integer(exponents), integer(andXor));
}

function nibblesToF16(emission: Emission, from: DType, word: Register): PairReader {
  const { code } = emission;
  const half = (value: number): number => encodeFloat("f16", value);
  const added = addedHalf(from);
  return (pair) => {
    const selector = integer(0x4040 + 0x101 * pair);
    const spread = code.make("b32", "prmt.b32", word, integer(0), selector);
    const placed = placeNibbles(emission, spread, 0x00f0000f, 0x64006400 + 0x00100001 * added);
    const scales = bothHalves(emission, half(1), half(1 / 16));
    const offsets = bothHalves(emission, half(-1024 - added), half(-64 - added));
    return halfFma(emission, f16, "word", placed, scales, offsets);
  };
}

function nibblesToBf16(emission: Emission, from: DType, word: Register): PairReader {
  const { code } = emission;
  const added = addedHalf(from);
  const moved = code.make("b32", "shr.u32", word, integer(4));
  return (pair) => {
    const selector = integer(0x0400 + 0x0101 * pair);
    const spread = code.make("b32", "prmt.b32", word, moved, selector);
    const placed = placeNibbles(emission, spread, 0x000f000f, 0x43004300 + 0x00010001 * added);
    return subtracted(emission, bf16, placed, 128 + added);
  };
}
