/** What video instructions are made of: parts of words, clamps, merges, and the product of `vmad`. */

/** A byte or half of a word, or all of it, as a number. */
export function selectPart(word: number, shift: number, bits: number, signed: boolean): number {
  const up = 32 - bits - shift;
  return signed ? (word << up) >> (32 - bits) : (word << up) >>> (32 - bits);
}

/** The nearest number that so many bits hold. */
export function clampToBits(value: number, bits: number, signed: boolean): number {
  const lowest = signed ? -(2 ** (bits - 1)) : 0;
  const highest = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  return Math.max(lowest, Math.min(highest, value));
}

/** `base` with so many bits replaced by the lowest ones of a value. */
export function mergePart(value: number, shift: number, bits: number, base: number): number {
  const mask = bits === 32 ? -1 : (2 ** bits - 1) << shift;
  return ((value << shift) & mask) | (base & ~mask);
}

const words = { signed: [-(2n ** 31n), 2n ** 31n - 1n], unsigned: [0n, 2n ** 32n - 1n] } as const;

/** What `vmad` does besides multiplying and adding. */
export interface VideoProduct {
  readonly shift: number;
  readonly saturates: boolean;
  /** `.po`: one more. */
  readonly plusOne: boolean;
  readonly negatesProduct: boolean;
  readonly negatesAddend: boolean;
  readonly signed: boolean;
}

/** The word that `a * b + c` gives, with all bits of the product and the sum in between. */
export function videoProduct(a: number, b: number, c: number, form: VideoProduct): number {
  const { shift, saturates, plusOne, negatesProduct, negatesAddend, signed } = form;
  const product = BigInt(a) * BigInt(b);
  const addend = negatesAddend ? ~c : c;
  const sum =
    (negatesProduct ? ~product : product) +
    BigInt(signed ? addend : addend >>> 0) +
    (plusOne || negatesProduct || negatesAddend ? 1n : 0n);
  const scaled = sum >> BigInt(shift);
  if (!saturates) return Number(BigInt.asIntN(32, scaled));
  const [lowest, highest] = signed ? words.signed : words.unsigned;
  const clamped = scaled < lowest ? lowest : scaled > highest ? highest : scaled;
  return Number(BigInt.asIntN(32, clamped));
}
