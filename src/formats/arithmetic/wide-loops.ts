/**
 * Functions of i64 and u64, as loops over the wide registers, in which an element is two 32-bit words, the
 * low one first:
 *
 *   element i    words[2i] = low    words[2i + 1] = high
 *
 * Arithmetic on words is some twenty times faster than on BigInt, which allocates each result. Division,
 * powers and the high half of products are rare enough to use BigInt all the same.
 */
import type { LoopPredicate } from "./float-loops.ts";
import { multiplyHigh, reverseBits } from "./integer-loops.ts";
import type { IntegerBinaryFunction, IntegerUnaryFunction } from "./integer-loops.ts";
import { flagRegister, registerElements, wideRegisters } from "./registers.ts";

const words = wideRegisters;
const flags = flagRegister;
const second = 2 * registerElements;
/** The same registers by elements. */
const signedElements = new BigInt64Array(words.buffer);
const unsignedElements = new BigUint64Array(words.buffer);
const secondElement = registerElements;

/** A loop over the first `count` elements of the registers; u64 where not `signed`. */
export type WideLoop = (count: number, signed: boolean) => void;

/** What to flip in high words so that comparing them as signed numbers orders the elements. */
function orderFlip(signed: boolean): number {
  return signed ? 0 : 0x80000000;
}

function negateElement(low: number): void {
  const value = -(words[low] as number) | 0;
  words[low] = value;
  words[low + 1] = (~(words[low + 1] as number) + Number(value === 0)) | 0;
}

function countOnes(word: number): number {
  let sums = word - ((word >>> 1) & 0x55555555);
  sums = (sums & 0x33333333) + ((sums >>> 2) & 0x33333333);
  sums = (sums + (sums >>> 4)) & 0x0f0f0f0f;
  return Math.imul(sums, 0x01010101) >>> 24;
}

export const wideUnaryLoops: { readonly [F in IntegerUnaryFunction]: WideLoop } = {
  neg(count) {
    for (let i = 0; i < 2 * count; i += 2) negateElement(i);
  },
  abs(count, signed) {
    if (!signed) return;
    for (let i = 0; i < 2 * count; i += 2) if ((words[i + 1] as number) < 0) negateElement(i);
  },
  sign(count, signed) {
    for (let i = 0; i < 2 * count; i += 2) {
      const high = words[i + 1] as number;
      const fill = signed ? high >> 31 : 0;
      words[i] = fill | Number(((words[i] as number) | high) !== 0);
      words[i + 1] = fill;
    }
  },
  not(count) {
    for (let i = 0; i < 2 * count; i++) words[i] = ~(words[i] as number);
  },
  clz(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const high = words[i + 1] as number;
      words[i] = high === 0 ? 32 + Math.clz32(words[i] as number) : Math.clz32(high);
      words[i + 1] = 0;
    }
  },
  popcount(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      words[i] = countOnes(words[i] as number) + countOnes(words[i + 1] as number);
      words[i + 1] = 0;
    }
  },
  bit_reverse(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const low = words[i] as number;
      words[i] = reverseBits(words[i + 1] as number);
      words[i + 1] = reverseBits(low);
    }
  },
};

/** Keeps the lesser element in the first register, or the greater one. */
function keepExtreme(count: number, signed: boolean, greater: boolean): void {
  const flip = orderFlip(signed);
  const whenLess = Number(!greater);
  for (let i = 0; i < 2 * count; i += 2) {
    const left = words[i] as number;
    const right = words[second + i] as number;
    const leftHigh = words[i + 1] as number;
    const rightHigh = words[second + i + 1] as number;
    const rightIsGreater =
      Number((leftHigh ^ flip) < (rightHigh ^ flip)) |
      (Number(leftHigh === rightHigh) & Number(left >>> 0 < right >>> 0));
    const taken = -(rightIsGreater ^ whenLess);
    words[i] = left ^ ((left ^ right) & taken);
    words[i + 1] = leftHigh ^ ((leftHigh ^ rightHigh) & taken);
  }
}

/** `base` to the power of `exponent` modulo 2^64; negative powers as for the narrower formats. */
function widePower(base: bigint, exponent: bigint): bigint {
  if (exponent < 0n) {
    if (base === -1n) return exponent % 2n === 0n ? 1n : -1n;
    return base === 1n ? 1n : 0n;
  }
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest !== 0n; rest >>= 1n) {
    if ((rest & 1n) !== 0n) result = BigInt.asUintN(64, result * square);
    square = BigInt.asUintN(64, square * square);
  }
  return result;
}

function eachPair(
  count: number,
  signed: boolean,
  combine: (left: bigint, right: bigint) => bigint,
): void {
  const elements = signed ? signedElements : unsignedElements;
  for (let i = 0; i < count; i++) {
    elements[i] = combine(elements[i] as bigint, elements[secondElement + i] as bigint);
  }
}

/** The shift amount of the element whose low word is at `low` in the second register; 64 for any beyond. */
function shiftAmount(low: number): number {
  const amount = (words[second + low] as number) >>> 0;
  return words[second + low + 1] === 0 && amount < 64 ? amount : 64;
}

export const wideBinaryLoops: { readonly [F in IntegerBinaryFunction]: WideLoop } = {
  add(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const left = (words[i] as number) >>> 0;
      const sum = (left + (words[second + i] as number)) >>> 0;
      words[i] = sum;
      const carry = Number(sum < left);
      words[i + 1] = ((words[i + 1] as number) + (words[second + i + 1] as number) + carry) | 0;
    }
  },
  sub(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const left = (words[i] as number) >>> 0;
      const right = (words[second + i] as number) >>> 0;
      words[i] = (left - right) | 0;
      const borrow = Number(left < right);
      words[i + 1] = ((words[i + 1] as number) - (words[second + i + 1] as number) - borrow) | 0;
    }
  },
  mul(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const left = words[i] as number;
      const right = words[second + i] as number;
      const crossed =
        Math.imul(left, words[second + i + 1] as number) + Math.imul(words[i + 1] as number, right);
      words[i] = Math.imul(left, right);
      words[i + 1] = (multiplyHigh(left, right) + crossed) | 0;
    }
  },
  div(count, signed) {
    eachPair(count, signed, (left, right) => (right === 0n ? -1n : left / right));
  },
  rem(count, signed) {
    eachPair(count, signed, (left, right) => (right === 0n ? left : left % right));
  },
  min(count, signed) {
    keepExtreme(count, signed, false);
  },
  max(count, signed) {
    keepExtreme(count, signed, true);
  },
  pow(count, signed) {
    eachPair(count, signed, widePower);
  },
  and(count) {
    for (let i = 0; i < 2 * count; i++) {
      words[i] = (words[i] as number) & (words[second + i] as number);
    }
  },
  or(count) {
    for (let i = 0; i < 2 * count; i++) {
      words[i] = (words[i] as number) | (words[second + i] as number);
    }
  },
  xor(count) {
    for (let i = 0; i < 2 * count; i++) {
      words[i] = (words[i] as number) ^ (words[second + i] as number);
    }
  },
  shl(count) {
    for (let i = 0; i < 2 * count; i += 2) {
      const amount = shiftAmount(i);
      const low = words[i] as number;
      if (amount >= 32) {
        words[i + 1] = amount === 64 ? 0 : low << (amount - 32);
        words[i] = 0;
      } else if (amount > 0) {
        words[i + 1] = ((words[i + 1] as number) << amount) | (low >>> (32 - amount));
        words[i] = low << amount;
      }
    }
  },
  shr(count, signed) {
    for (let i = 0; i < 2 * count; i += 2) {
      const amount = shiftAmount(i);
      const high = words[i + 1] as number;
      const fill = signed ? high >> 31 : 0;
      if (amount === 64) {
        words[i] = fill;
        words[i + 1] = fill;
      } else if (amount >= 32) {
        words[i] = signed ? high >> (amount - 32) : high >>> (amount - 32);
        words[i + 1] = fill;
      } else if (amount > 0) {
        words[i] = ((words[i] as number) >>> amount) | (high << (32 - amount));
        words[i + 1] = signed ? high >> amount : high >>> amount;
      }
    }
  },
  mul_high(count, signed) {
    eachPair(count, signed, (left, right) => (left * right) >> 64n);
  },
};

/** Sets flags where the first operand is the lesser, or equal where `orEqual`. */
function flagOrder(count: number, signed: boolean, orEqual: boolean): void {
  const flip = orderFlip(signed);
  const whenEqual = Number(orEqual);
  for (let i = 0; i < count; i++) {
    const leftHigh = (words[2 * i + 1] as number) ^ flip;
    const rightHigh = (words[second + 2 * i + 1] as number) ^ flip;
    const left = (words[2 * i] as number) >>> 0;
    const right = (words[second + 2 * i] as number) >>> 0;
    const below = Number(left < right) | (whenEqual & Number(left === right));
    flags[i] = Number(leftHigh < rightHigh) | (Number(leftHigh === rightHigh) & below);
  }
}

/** Sets flags to `whenEqual` where the operands are equal, else to its opposite. */
function flagEquality(count: number, whenEqual: 0 | 1): void {
  const flip = 1 - whenEqual;
  for (let i = 0; i < count; i++) {
    const low = (words[2 * i] as number) ^ (words[second + 2 * i] as number);
    const high = (words[2 * i + 1] as number) ^ (words[second + 2 * i + 1] as number);
    flags[i] = Number((low | high) === 0) ^ flip;
  }
}

export const wideCompareLoops: { readonly [P in LoopPredicate]: WideLoop } = {
  eq: (count) => flagEquality(count, 1),
  ne: (count) => flagEquality(count, 0),
  lt: (count, signed) => flagOrder(count, signed, false),
  le: (count, signed) => flagOrder(count, signed, true),
};
