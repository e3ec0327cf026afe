/** Integer functions that are more than an operator, for numbers up to 32 bits and for big integers. */
import type { IntegerWidth } from "./forms.ts";

/** The bits of a number as one without sign. */
export function unsignedBits(value: number, { bits }: IntegerWidth): number {
  return bits === 32 ? value >>> 0 : value & ((1 << bits) - 1);
}

function signedBits(value: number, { bits }: IntegerWidth): number {
  return (value << (32 - bits)) >> (32 - bits);
}

/** Truncated; all ones where the divisor is zero. */
export function divideIntegers(left: number, right: number): number {
  return right === 0 ? -1 : Math.trunc(left / right);
}

export function divideWide(left: bigint, right: bigint): bigint {
  return right === 0n ? -1n : left / right;
}

export function remainderOfIntegers(left: number, right: number): number {
  return right === 0 ? left : left % right;
}

export function remainderOfWide(left: bigint, right: bigint): bigint {
  return right === 0n ? left : left % right;
}

/** A power modulo 2^32; with a negative exponent only those of 1 and -1 are not zero. */
export function powerOfInteger(base: number, exponent: number): number {
  if (exponent < 0) return base === 1 ? 1 : base === -1 ? (exponent % 2 === 0 ? 1 : -1) : 0;
  let result = 1;
  let square = base;
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = Math.imul(result, square);
    square = Math.imul(square, square);
  }
  return result;
}

export function powerOfWide(base: bigint, exponent: bigint): bigint {
  if (exponent < 0n)
    return base === 1n ? 1n : base === -1n ? (exponent % 2n === 0n ? 1n : -1n) : 0n;
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = BigInt.asUintN(64, result * square);
    square = BigInt.asUintN(64, square * square);
  }
  return result;
}

/** Whether a shift leaves anything; a negative amount counts as a large one. */
function isShift(amount: number | bigint, bits: number): boolean {
  return amount >= 0 && amount < bits;
}

export function shiftLeft(width: IntegerWidth): (value: number, amount: number) => number {
  return (value, amount) => (isShift(amount, width.bits) ? value << amount : 0);
}

export function shiftLeftWide(value: bigint, amount: bigint): bigint {
  return isShift(amount, 64) ? value << amount : 0n;
}

export function shiftRightLogical(width: IntegerWidth): (value: number, amount: number) => number {
  return (value, amount) =>
    isShift(amount, width.bits) ? unsignedBits(value, width) >>> amount : 0;
}

export function shiftRightLogicalWide(value: bigint, amount: bigint): bigint {
  return isShift(amount, 64) ? BigInt.asUintN(64, value) >> amount : 0n;
}

export function shiftRightArithmetic(
  width: IntegerWidth,
): (value: number, amount: number) => number {
  return (value, amount) =>
    signedBits(value, width) >> (isShift(amount, width.bits) ? amount : width.bits - 1);
}

export function shiftRightArithmeticWide(value: bigint, amount: bigint): bigint {
  return BigInt.asIntN(64, value) >> (isShift(amount, 64) ? amount : 63n);
}

export function leadingZeros(width: IntegerWidth): (value: number) => number {
  return (value) => Math.clz32(unsignedBits(value, width)) - (32 - width.bits);
}

export function leadingZerosWide(value: bigint): bigint {
  const bits = BigInt.asUintN(64, value);
  return bits === 0n ? 64n : BigInt(64 - bits.toString(2).length);
}

export function populationCount(width: IntegerWidth): (value: number) => number {
  return (value) => onesOf(unsignedBits(value, width));
}

function onesOf(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++;
  return count;
}

export function populationCountWide(value: bigint): bigint {
  const bits = BigInt.asUintN(64, value);
  return BigInt(onesOf(Number(bits & 0xffffffffn)) + onesOf(Number(bits >> 32n)));
}

export function highProduct({ bits }: IntegerWidth): (left: number, right: number) => number {
  return (left, right) => Number((BigInt(left) * BigInt(right)) >> BigInt(bits));
}

export function highProductWide(left: bigint, right: bigint): bigint {
  return (left * right) >> 64n;
}
