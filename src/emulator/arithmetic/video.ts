/**
 * What video instructions are made of: parts of words, clamps, merges, and the product of `vmad`. One number
 * at a time they are sequences of the assembler, which differ from the manual; these do what an H200 did.
 */

const word = 2 ** 32;

/** A byte or half of a word, or all of it, as a number. */
export function selectPart(value: number, shift: number, bits: number, signed: boolean): number {
  const up = 32 - bits - shift;
  return signed ? (value << up) >> (32 - bits) : (value << up) >>> (32 - bits);
}

/** The nearest number that so many bits hold. */
export function clampToBits(value: number, bits: number, signed: boolean): number {
  const lowest = signed ? -(2 ** (bits - 1)) : 0;
  const highest = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  return Math.max(lowest, Math.min(highest, value));
}

/** Clamps as unsigned numbers do: what is negative is large. */
export function clampToHighest(value: number, highest: number): number {
  return value < 0 || value > highest ? highest : value;
}

/** Clamps a product by a power of two to a word, by its lowest 34 bits. */
export function clampShifted(value: number, signed: boolean): number {
  const high = ((Math.floor(value / word) & 3) << 30) >> 30;
  return clampToBits(high * word + (value >>> 0), 32, signed);
}

/** `base` with so many bits replaced by the lowest ones of a value. */
export function mergePart(value: number, shift: number, bits: number, base: number): number {
  const mask = bits === 32 ? -1 : (2 ** bits - 1) << shift;
  return ((value << shift) & mask) | (base & ~mask);
}

/** The lesser or the greater of two numbers of 64 bits, of which the second is a word; unsigned ones are not negative. */
export function extremeWord(
  value: number,
  other: number,
  takesLesser: boolean,
  signed: boolean,
): number {
  const wrapped = signed && value >= word ** 2 / 2 ? value - word ** 2 : value;
  const left = !signed && value < 0 ? value + word ** 2 : wrapped;
  const right = signed ? other | 0 : other >>> 0;
  return (left < right === takesLesser ? value : other) | 0;
}

/** What `vmad` does besides multiplying and adding. */
export interface VideoProduct {
  readonly shift: number;
  readonly saturates: boolean;
  /** `.po`: one more. */
  readonly plusOne: boolean;
  readonly negatesProduct: boolean;
  readonly negatesAddend: boolean;
  /** Of the clamp. */
  readonly signed: boolean;
}

/** The word that `a * b + c` gives, with all bits of the product and the sum in between. */
export function videoProduct(a: number, b: number, c: number, form: VideoProduct): number {
  const { shift, saturates, plusOne, negatesProduct, negatesAddend, signed } = form;
  const product = BigInt(a) * BigInt(b);
  const sum =
    (negatesProduct ? ~product : product) +
    BigInt(negatesAddend ? ~c : c) +
    (plusOne || negatesProduct || negatesAddend ? 1n : 0n);
  const scaled = sum >> BigInt(shift);
  if (!saturates) return Number(BigInt.asIntN(32, scaled));
  // Shifted without a sign, a negative number is large.
  if (!signed && shift > 0 && scaled < 0n) return -1;
  return clampToBits(Number(scaled), 32, signed) | 0;
}
