/**
 * Integer functions of formats up to 32 bits, as loops over the integer registers.
 *
 * A register holds an element extended to 32 bits, by its sign or by zeros. What comes out is right in the
 * format's own bits and arbitrary above them; the store cuts those off:
 *
 *   i8   100 + 100  =  200   stored as  -56
 *   u4     9 · 9    =   81   stored as    1
 *   i8  -128 / -1   =  128   stored as -128
 *
 * So one loop serves all formats, except that a u32 fills the register and looks like an i32: where
 * the sign matters it has loops of its own.
 */
import type { LoopPredicate } from "./float-loops.ts";
import type { BinaryIn, UnaryIn } from "./functions.ts";
import { flagRegister, integerRegisters, registerElements } from "./registers.ts";

const elements = integerRegisters;
const flags = flagRegister;
const second = registerElements;

/** A loop over the first `count` elements of the registers, which hold a format of `width` bits. */
export type IntegerLoop = (count: number, width: number) => void;

export type IntegerUnaryFunction = UnaryIn<"integer" | "number" | "logic">;

/** Ones in the format's bits. */
function widthMask(width: number): number {
  return width === 32 ? -1 : (1 << width) - 1;
}

/** The bits of a word in the opposite order. */
export function reverseBits(word: number): number {
  let bits = ((word >>> 1) & 0x55555555) | ((word & 0x55555555) << 1);
  bits = ((bits >>> 2) & 0x33333333) | ((bits & 0x33333333) << 2);
  bits = ((bits >>> 4) & 0x0f0f0f0f) | ((bits & 0x0f0f0f0f) << 4);
  bits = ((bits >>> 8) & 0x00ff00ff) | ((bits & 0x00ff00ff) << 8);
  return (bits >>> 16) | (bits << 16);
}

export const integerUnaryLoops: { readonly [F in IntegerUnaryFunction]: IntegerLoop } = {
  neg(count) {
    for (let i = 0; i < count; i++) elements[i] = -(elements[i] as number) | 0;
  },
  abs(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.abs(elements[i] as number) | 0;
  },
  sign(count) {
    for (let i = 0; i < count; i++) {
      const value = elements[i] as number;
      elements[i] = (value >> 31) | (-value >>> 31);
    }
  },
  not(count) {
    for (let i = 0; i < count; i++) elements[i] = ~(elements[i] as number);
  },
  clz(count, width) {
    const mask = widthMask(width);
    const surplus = 32 - width;
    for (let i = 0; i < count; i++)
      elements[i] = Math.clz32((elements[i] as number) & mask) - surplus;
  },
  popcount(count, width) {
    const mask = widthMask(width);
    for (let i = 0; i < count; i++) {
      let sums = (elements[i] as number) & mask;
      sums -= (sums >>> 1) & 0x55555555;
      sums = (sums & 0x33333333) + ((sums >>> 2) & 0x33333333);
      sums = (sums + (sums >>> 4)) & 0x0f0f0f0f;
      elements[i] = Math.imul(sums, 0x01010101) >>> 24;
    }
  },
  bit_reverse(count, width) {
    for (let i = 0; i < count; i++)
      elements[i] = reverseBits(elements[i] as number) >>> (32 - width);
  },
};

export const unsignedUnaryLoops: { readonly [F in IntegerUnaryFunction]: IntegerLoop } = {
  ...integerUnaryLoops,
  abs() {
    // Nothing to do: an unsigned number is its own magnitude.
  },
  sign(count) {
    for (let i = 0; i < count; i++) elements[i] = Number(elements[i] !== 0);
  },
};

/** bool holds 0 and 1 and nothing else. */
export function invertBools(count: number): void {
  for (let i = 0; i < count; i++) elements[i] = (elements[i] as number) ^ 1;
}

export type IntegerBinaryFunction = BinaryIn<"integer" | "number" | "logic">;

/** `base` to the power of `exponent`, an unsigned 32-bit number, modulo 2^32. */
function integerPower(base: number, exponent: number): number {
  let result = 1;
  let square = base;
  for (let rest = exponent; rest !== 0; rest >>>= 1) {
    if ((rest & 1) !== 0) result = Math.imul(result, square);
    square = Math.imul(square, square);
  }
  return result;
}

/** A negative power is a fraction, which becomes 0, except for those of 1 and -1. */
function signedPower(base: number, exponent: number): number {
  if (exponent >= 0) return integerPower(base, exponent);
  if (base === -1) return (exponent & 1) === 0 ? 1 : -1;
  return base === 1 ? 1 : 0;
}

/** The high word of the product of two unsigned words. */
export function multiplyHigh(left: number, right: number): number {
  const leftLow = left & 0xffff;
  const leftHigh = left >>> 16;
  const rightLow = right & 0xffff;
  const rightHigh = right >>> 16;
  const lowest = Math.imul(leftLow, rightLow) >>> 0;
  // No sum reaches 2^32.
  const middle = leftHigh * rightLow + (lowest >>> 16);
  const crossed = leftLow * rightHigh + (middle & 0xffff);
  return (leftHigh * rightHigh + (middle >>> 16) + (crossed >>> 16)) | 0;
}

/** The high word of the product of two signed words. */
function signedHigh(left: number, right: number): number {
  return multiplyHigh(left, right) - ((left >> 31) & right) - ((right >> 31) & left);
}

export const integerBinaryLoops: { readonly [F in IntegerBinaryFunction]: IntegerLoop } = {
  add(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = ((elements[i] as number) + (elements[second + i] as number)) | 0;
    }
  },
  sub(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = ((elements[i] as number) - (elements[second + i] as number)) | 0;
    }
  },
  mul(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = Math.imul(elements[i] as number, elements[second + i] as number);
    }
  },
  div(count) {
    for (let i = 0; i < count; i++) {
      const divisor = elements[second + i] as number;
      elements[i] = divisor === 0 ? -1 : ((elements[i] as number) / divisor) | 0;
    }
  },
  rem(count) {
    for (let i = 0; i < count; i++) {
      const divisor = elements[second + i] as number;
      if (divisor !== 0) elements[i] = ((elements[i] as number) % divisor) | 0;
    }
  },
  min(count) {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = left ^ ((left ^ right) & -Number(right < left));
    }
  },
  max(count) {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = left ^ ((left ^ right) & -Number(right > left));
    }
  },
  pow(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = signedPower(elements[i] as number, elements[second + i] as number);
    }
  },
  and(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) & (elements[second + i] as number);
    }
  },
  or(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) | (elements[second + i] as number);
    }
  },
  xor(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) ^ (elements[second + i] as number);
    }
  },
  shl(count, width) {
    const mask = widthMask(width);
    for (let i = 0; i < count; i++) {
      const amount = ((elements[second + i] as number) & mask) >>> 0;
      elements[i] = amount < width ? (elements[i] as number) << amount : 0;
    }
  },
  shr(count, width) {
    const mask = widthMask(width);
    for (let i = 0; i < count; i++) {
      const amount = ((elements[second + i] as number) & mask) >>> 0;
      elements[i] = (elements[i] as number) >> (amount < width ? amount : 31);
    }
  },
  mul_high(count, width) {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = width === 32 ? signedHigh(left, right) : Math.imul(left, right) >> width;
    }
  },
};

export const unsignedBinaryLoops: { readonly [F in IntegerBinaryFunction]: IntegerLoop } = {
  ...integerBinaryLoops,
  mul_high(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = multiplyHigh(elements[i] as number, elements[second + i] as number);
    }
  },
  div(count) {
    for (let i = 0; i < count; i++) {
      const divisor = (elements[second + i] as number) >>> 0;
      elements[i] = divisor === 0 ? -1 : (((elements[i] as number) >>> 0) / divisor) | 0;
    }
  },
  rem(count) {
    for (let i = 0; i < count; i++) {
      const divisor = (elements[second + i] as number) >>> 0;
      if (divisor !== 0) elements[i] = (((elements[i] as number) >>> 0) % divisor) | 0;
    }
  },
  min(count) {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = left ^ ((left ^ right) & -Number(right >>> 0 < left >>> 0));
    }
  },
  max(count) {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = left ^ ((left ^ right) & -Number(right >>> 0 > left >>> 0));
    }
  },
  pow(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = integerPower(elements[i] as number, (elements[second + i] as number) >>> 0);
    }
  },
  shr(count) {
    for (let i = 0; i < count; i++) {
      const amount = (elements[second + i] as number) >>> 0;
      elements[i] = amount < 32 ? (elements[i] as number) >>> amount : 0;
    }
  },
};

export const integerCompareLoops: { readonly [P in LoopPredicate]: IntegerLoop } = {
  eq(count) {
    for (let i = 0; i < count; i++) flags[i] = Number(elements[i] === elements[second + i]);
  },
  ne(count) {
    for (let i = 0; i < count; i++) flags[i] = Number(elements[i] !== elements[second + i]);
  },
  lt(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) < (elements[second + i] as number));
    }
  },
  le(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) <= (elements[second + i] as number));
    }
  },
};

export const unsignedCompareLoops: { readonly [P in LoopPredicate]: IntegerLoop } = {
  ...integerCompareLoops,
  lt(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) >>> 0 < (elements[second + i] as number) >>> 0);
    }
  },
  le(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) >>> 0 <= (elements[second + i] as number) >>> 0);
    }
  },
};
