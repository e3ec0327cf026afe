/** Operations on bits that JavaScript has no operator for, on words and on pairs of words. */
import { pairResult, setWide, toSigned, toUnsigned } from "./wide.ts";

export function populationCount(bits: number): number {
  let x = bits - ((bits >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

export function reverseBits(bits: number): number {
  let x = bits;
  x = ((x >>> 1) & 0x55555555) | ((x & 0x55555555) << 1);
  x = ((x >>> 2) & 0x33333333) | ((x & 0x33333333) << 2);
  x = ((x >>> 4) & 0x0f0f0f0f) | ((x & 0x0f0f0f0f) << 4);
  x = ((x >>> 8) & 0x00ff00ff) | ((x & 0x00ff00ff) << 8);
  return (x >>> 16) | (x << 16);
}

/** The field of `length` bits from `start`, extended by its sign where asked. */
export function extractField(
  value: number,
  start: number,
  length: number,
  signed: boolean,
): number {
  const from = start & 0xff;
  const count = length & 0xff;
  if (count === 0) return 0;
  const sign = value >> 31;
  const shifted = from > 31 ? (signed ? sign : 0) : signed ? value >> from : value >>> from;
  if (count >= 32) return shifted | 0;
  if (!signed) return shifted & ((1 << count) - 1);
  // A field that reaches past the top has the sign of the value itself.
  if (from + count > 32) return shifted;
  return (shifted << (32 - count)) >> (32 - count);
}

/** Start and length count in full here, where those of 32-bit fields are bytes. */
export function extractFieldWide(
  low: number,
  high: number,
  start: number,
  length: number,
  signed: boolean,
): void {
  const from = BigInt(Math.min(start >>> 0, 64));
  const count = BigInt(Math.min(length >>> 0, 64));
  const value = signed ? toSigned(low, high) : toUnsigned(low, high);
  const shifted = value >> from;
  const reachesTop = from + count > 64n;
  if (count === 0n) setWide(0n);
  else if (!signed) setWide(BigInt.asUintN(Number(count), shifted));
  else setWide(reachesTop ? shifted : BigInt.asIntN(Number(count), shifted));
}

/** `base` with `length` bits from `start` replaced by the low bits of `field`. */
export function insertField(field: number, base: number, start: number, length: number): number {
  const from = start & 0xff;
  const count = length & 0xff;
  if (from > 31 || count === 0) return base;
  const ones = count >= 32 ? -1 : (1 << count) - 1;
  const mask = ones << from;
  return (base & ~mask) | ((field << from) & mask);
}

export function insertFieldWide(
  fieldLow: number,
  fieldHigh: number,
  baseLow: number,
  baseHigh: number,
  start: number,
  length: number,
): void {
  const from = BigInt(Math.min(start >>> 0, 64));
  const count = BigInt(Math.min(length >>> 0, 64));
  const field = toUnsigned(fieldLow, fieldHigh);
  const base = toUnsigned(baseLow, baseHigh);
  const mask = ((1n << count) - 1n) << from;
  setWide(from > 63n ? base : (base & ~mask) | ((field << from) & mask));
}

/** Position of the highest bit that differs from the sign; -1 where none does. */
export function findHighest(value: number, signed: boolean): number {
  const magnitude = signed && value < 0 ? ~value : value;
  return 31 - Math.clz32(magnitude);
}

export function findHighestWide(low: number, high: number, signed: boolean): number {
  const flip = signed && high < 0 ? -1 : 0;
  const top = 31 - Math.clz32(high ^ flip);
  return top >= 0 ? top + 32 : 31 - Math.clz32(low ^ flip);
}

/** Position of the n-th set bit from `start` on, upwards for n > 0, downwards for n < 0. */
export function findNthSet(mask: number, start: number, n: number): number {
  if (n === 0) return ((mask >>> (start & 31)) & 1) !== 0 ? start : -1;
  const step = n < 0 ? -1 : 1;
  let left = Math.abs(n);
  for (let at = start; at >= 0 && at < 32; at += step)
    if (((mask >>> at) & 1) !== 0) {
      left -= 1;
      if (left === 0) return at;
    }
  return -1;
}

/** The bytes that a selector picks from {b, a}; bit 3 of a nibble spreads the byte's sign. */
export function permuteBytes(a: number, b: number, selector: number): number {
  let result = 0;
  for (let position = 0; position < 4; position++) {
    const pick = (selector >>> (4 * position)) & 0xf;
    const byte = ((pick & 4) === 0 ? a : b) >>> (8 * (pick & 3));
    const value = (pick & 8) === 0 ? byte & 0xff : (byte & 0x80) === 0 ? 0 : 0xff;
    result |= value << (8 * position);
  }
  return result;
}

export type PermuteMode = "f4e" | "b4e" | "rc8" | "ecl" | "ecr" | "rc16";

const permuteSelectors: { readonly [M in PermuteMode]: readonly number[] } = {
  f4e: [0x3210, 0x4321, 0x5432, 0x6543],
  b4e: [0x5670, 0x6701, 0x7012, 0x0123],
  rc8: [0x0000, 0x1111, 0x2222, 0x3333],
  ecl: [0x3210, 0x3211, 0x3222, 0x3333],
  ecr: [0x0000, 0x1110, 0x2210, 0x3210],
  rc16: [0x1010, 0x3232, 0x1010, 0x3232],
};

export function permuteByMode(a: number, b: number, selector: number, mode: PermuteMode): number {
  return permuteBytes(a, b, permuteSelectors[mode][selector & 3] ?? 0);
}

/** Any function of three bits, bit by bit: the table's bit at 4a + 2b + c. */
export function lookUp3(a: number, b: number, c: number, table: number): number {
  let result = 0;
  for (let entry = 0; entry < 8; entry++) {
    if (((table >>> entry) & 1) === 0) continue;
    result |=
      ((entry & 4) === 0 ? ~a : a) & ((entry & 2) === 0 ? ~b : b) & ((entry & 1) === 0 ? ~c : c);
  }
  return result;
}

/** The middle 32 bits of {high, low} shifted. */
export function funnelShift(
  low: number,
  high: number,
  count: number,
  left: boolean,
  clamped: boolean,
): number {
  const n = clamped ? Math.min(count >>> 0, 32) : count & 31;
  if (left) return n === 0 ? high : n === 32 ? low : (high << n) | (low >>> (32 - n));
  return n === 0 ? low : n === 32 ? high : (low >>> n) | (high << (32 - n));
}

/** Sum of products of four bytes, or of two halves and two bytes of b, and c. */
export function dotProduct4(
  a: number,
  b: number,
  c: number,
  signedA: boolean,
  signedB: boolean,
): number {
  let sum = c;
  for (let byte = 0; byte < 4; byte++) {
    const left = signedA ? (a << (24 - 8 * byte)) >> 24 : (a >>> (8 * byte)) & 0xff;
    const right = signedB ? (b << (24 - 8 * byte)) >> 24 : (b >>> (8 * byte)) & 0xff;
    sum += left * right;
  }
  return sum | 0;
}

export function dotProduct2(
  a: number,
  b: number,
  c: number,
  signedA: boolean,
  signedB: boolean,
  high: boolean,
): number {
  let sum = c;
  for (let half = 0; half < 2; half++) {
    const byte = half + (high ? 2 : 0);
    const left = signedA ? (a << (16 - 16 * half)) >> 16 : (a >>> (16 * half)) & 0xffff;
    const right = signedB ? (b << (24 - 8 * byte)) >> 24 : (b >>> (8 * byte)) & 0xff;
    sum += left * right;
  }
  return sum | 0;
}

/** Keeps the low `width` bits and spreads the sign or zeros above them. */
export function extendFrom(value: number, width: number, signed: boolean, wraps: boolean): number {
  const w = wraps ? width & 31 : Math.min(width >>> 0, 32);
  if (w === 0) return 0;
  if (w === 32) return value;
  return signed ? (value << (32 - w)) >> (32 - w) : value & ((1 << w) - 1);
}

/** `width` ones from `start` on. */
export function maskOfBits(start: number, width: number, wraps: boolean): number {
  const from = wraps ? start & 31 : Math.min(start >>> 0, 32);
  const count = wraps ? width & 31 : Math.min(width >>> 0, 32);
  if (from > 31 || count === 0) return 0;
  return (count >= 32 ? -1 : (1 << count) - 1) << from;
}

export function reverseBitsWide(low: number, high: number): void {
  const reversedLow = reverseBits(high);
  pairResult[1] = reverseBits(low);
  pairResult[0] = reversedLow;
}
