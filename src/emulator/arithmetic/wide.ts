/**
 * 64-bit integers as two words. Results that are pairs are left in `pairResult`, low word first, so that
 * nothing is allocated: `multiplyWide(a, b); low = pairResult[0]; high = pairResult[1];`
 */

const scratchBuffer = new ArrayBuffer(8);
/** One 64-bit place under every view; also the way from bits to numbers and back. */
export const pairResult = new Int32Array(scratchBuffer);
export const singleResult = new Float32Array(scratchBuffer);
export const doubleResult = new Float64Array(scratchBuffer);
const wideResult = new BigInt64Array(scratchBuffer);

/** The high word of the unsigned product. */
export function multiplyHighUnsigned(a: number, b: number): number {
  const lowA = a & 0xffff;
  const highA = a >>> 16;
  const lowB = b & 0xffff;
  const highB = b >>> 16;
  const cross = lowA * highB;
  const otherCross = highA * lowB;
  const middle = ((lowA * lowB) >>> 16) + (cross & 0xffff) + (otherCross & 0xffff);
  return (highA * highB + (cross >>> 16) + (otherCross >>> 16) + (middle >>> 16)) | 0;
}

/** The high word of the signed product. */
export function multiplyHigh(a: number, b: number): number {
  let high = multiplyHighUnsigned(a, b);
  if (a < 0) high = (high - b) | 0;
  if (b < 0) high = (high - a) | 0;
  return high;
}

/** The low 64 bits of a product. */
export function multiplyLow(lowA: number, highA: number, lowB: number, highB: number): void {
  const high = multiplyHighUnsigned(lowA, lowB) + Math.imul(lowA, highB) + Math.imul(highA, lowB);
  pairResult[0] = Math.imul(lowA, lowB);
  pairResult[1] = high;
}

export function shiftLeft(low: number, high: number, count: number): void {
  const n = count >>> 0;
  if (n >= 64) {
    pairResult[0] = 0;
    pairResult[1] = 0;
  } else if (n >= 32) {
    pairResult[0] = 0;
    pairResult[1] = low << (n - 32);
  } else {
    pairResult[0] = low << n;
    pairResult[1] = n === 0 ? high : (high << n) | (low >>> (32 - n));
  }
}

export function shiftRight(low: number, high: number, count: number, signed: boolean): void {
  const n = count >>> 0;
  const fill = signed ? high >> 31 : 0;
  if (n >= 64) {
    pairResult[0] = fill;
    pairResult[1] = fill;
  } else if (n >= 32) {
    pairResult[0] = signed ? high >> (n - 32) : high >>> (n - 32);
    pairResult[1] = fill;
  } else {
    pairResult[0] = n === 0 ? low : (low >>> n) | (high << (32 - n));
    pairResult[1] = signed ? high >> n : high >>> n;
  }
}

export function toSigned(low: number, high: number): bigint {
  pairResult[0] = low;
  pairResult[1] = high;
  return wideResult[0] as bigint;
}

export function toUnsigned(low: number, high: number): bigint {
  return BigInt.asUintN(64, toSigned(low, high));
}

export function setWide(value: bigint): void {
  wideResult[0] = BigInt.asIntN(64, value);
}

/** A number below 2^53 in size as a pair. */
export function setWideNumber(value: number): void {
  pairResult[0] = value;
  pairResult[1] = Math.floor(value / 4294967296);
}

export function multiplyHighWide(
  lowA: number,
  highA: number,
  lowB: number,
  highB: number,
  signed: boolean,
): void {
  const a = signed ? toSigned(lowA, highA) : toUnsigned(lowA, highA);
  const b = signed ? toSigned(lowB, highB) : toUnsigned(lowB, highB);
  setWide((a * b) >> 64n);
}

/** Quotient or remainder; a division by zero gives what the hardware was seen to give. */
export function divideWide(
  lowA: number,
  highA: number,
  lowB: number,
  highB: number,
  signed: boolean,
  remainder: boolean,
): void {
  const a = signed ? toSigned(lowA, highA) : toUnsigned(lowA, highA);
  const b = signed ? toSigned(lowB, highB) : toUnsigned(lowB, highB);
  if (b === 0n) setWide(remainder ? a : -1n);
  else setWide(remainder ? a % b : a / b);
}

export function divideUnsigned(a: number, b: number): number {
  return b === 0 ? -1 : ((a >>> 0) / (b >>> 0)) | 0;
}

export function divideSigned(a: number, b: number): number {
  return b === 0 ? -1 : (a / b) | 0;
}

export function remainderUnsigned(a: number, b: number): number {
  return b === 0 ? a : ((a >>> 0) % (b >>> 0)) | 0;
}

export function remainderSigned(a: number, b: number): number {
  return b === 0 ? a : (a % b) | 0;
}

/** Adds with a carry; the carry out is given back. */
export function addWide(
  lowA: number,
  highA: number,
  lowB: number,
  highB: number,
  carry: number,
): number {
  const low = (lowA >>> 0) + (lowB >>> 0) + carry;
  const high = (highA >>> 0) + (highB >>> 0) + (low > 0xffffffff ? 1 : 0);
  pairResult[0] = low;
  pairResult[1] = high;
  return high > 0xffffffff ? 1 : 0;
}

/** Subtracts with a borrow; the borrow out is given back. */
export function subtractWide(
  lowA: number,
  highA: number,
  lowB: number,
  highB: number,
  borrow: number,
): number {
  const low = (lowA >>> 0) - (lowB >>> 0) - borrow;
  const high = (highA >>> 0) - (highB >>> 0) - (low < 0 ? 1 : 0);
  pairResult[0] = low;
  pairResult[1] = high;
  return high < 0 ? 1 : 0;
}
