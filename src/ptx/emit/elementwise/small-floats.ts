/**
 * f32 rounded to the words of floats of 4 and 6 bits by the instructions that round to FP8, of which two numbers take one. With a power of two as factor the exponents of
 * both formats have the same bits, and so have their subnormal numbers:
 *
 *   f6e3m2fn   x · 2^-12 as e5m2   s 00eee mm        f6e2m3fn   x · 2^-6 as e4m3   s 00ee mmm
 *   f4e2m1fn   x · 2^-14 as e5m2   s 000ee m0
 *
 * Bytes of 6 bits are bounded afterwards, four at once; the instruction tells NaN by a byte of ones. Of 4 bits one bit fewer is kept than e5m2 has, so numbers are rounded before:
 * beside 2^22 times its own power of two, and 2^22 at least, the last place of a number is the format's.
 *
 *   2.75   +   2^22 · 2   =   8388611 (of 8388610.75)   −   2^22 · 2   =   3
 */
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { float32, integer } from "../../operands.ts";
import { packHalves } from "../elements.ts";

/** The numbers of a word, at least one; those that are missing are padding. */
type Numbers = readonly [Register, ...Register[]];

/** Tables of lop3: `(a & b) | (c & ~b)`, `(a | b) & c`, `(a & b) | c`, `(a & ~b) | c` and `a | (~b & c)`. */
const tables = { choose: 0xe2, orAnd: 0xa8, andOr: 0xea, andNotOr: 0xba, orNotAnd: 0xf2 } as const;

function lop3(
  code: Code,
  table: keyof typeof tables,
  a: Register,
  b: Register | number,
  c: Register | number,
): Register {
  const given = [a, b, c].map((each) => (typeof each === "number" ? integer(each) : each));
  return code.make("b32", "lop3.b32", ...given, integer(tables[table]));
}

/** Four numbers as bytes of FP8, of which the first is the lowest. */
function bytesOf(
  code: Code,
  type: "e4m3x2" | "e5m2x2",
  [first, second = first, third = second, fourth = third]: Numbers,
): Register {
  const pairOf = (low: Register, high: Register): Register =>
    code.make("b16", `cvt.rn.satfinite.${type}.f32`, high, low);
  const low = pairOf(first, second);
  return packHalves(code, low, third === second ? low : pairOf(third, fourth));
}

const sixBits = {
  f6e2m3fn: { type: "e4m3x2", factor: 2 ** -6 },
  f6e3m2fn: { type: "e5m2x2", factor: 2 ** -12 },
} as const;

/** Up to four numbers in 6 bits, a byte each: beyond the largest it, and -0 for NaN. */
export function sixBitWord(code: Code, name: keyof typeof sixBits, numbers: Numbers): Register {
  const { type, factor } = sixBits[name];
  const [first, ...others] = numbers;
  const placed = (number: Register): Register =>
    code.make("b32", "mul.rn.f32", number, float32(factor));
  const bytes = bytesOf(code, type, [placed(first), ...others.map(placed)]);
  const magnitudes = code.make("b32", "and.b32", bytes, integer(0x7f7f7f7f));
  const half = code.make("b32", "shr.u32", magnitudes, integer(1));
  const beyond = lop3(code, "orAnd", half, magnitudes, 0x20202020);
  const bounded = lop3(code, "andOr", magnitudes, 0x1f1f1f1f, fiveOnes(code, beyond));
  const carried = code.make("b32", "add.u32", magnitudes, integer(0x01010101));
  const carries = code.make("b32", "and.b32", carried, integer(0x80808080));
  const isNan = code.make("b32", "shr.u32", carries, integer(2));
  const signs = code.make("b32", "shr.u32", bytes, integer(2));
  const signed = lop3(code, "andOr", signs, 0x20202020, isNan);
  return lop3(code, "andNotOr", bounded, fiveOnes(code, isNan), signed);
}

/** The five bits below each bit of these. */
function fiveOnes(code: Code, bits: Register): Register {
  return code.make("b32", "sub.u32", bits, code.make("b32", "shr.u32", bits, integer(5)));
}

const [fourBitFactor, largestFourBit] = [2 ** -14, 6];

/** Up to eight numbers in 4 bits: beyond the largest it, and -0 for NaN. */
export function fourBitWord(code: Code, numbers: Numbers): Register {
  const [filler] = numbers;
  const at = (place: number): Register => numbers[place] ?? filler;
  const places = [0, 2, 4, 6] as const;
  // Every second number, so that one shift brings four of them to their places.
  const bytes = [0, 1].map((odd) => {
    const [a, b, c, d] = places.map((place) => rounded(code, at(place + odd)));
    return bytesOf(code, "e5m2x2", [a ?? filler, b ?? filler, c ?? filler, d ?? filler]);
  });
  const signs = [0, 1].map((odd) =>
    highBytes(
      code,
      places.map((place) => at(place + odd)),
    ),
  );
  const [even = filler, odd = filler] = bytes;
  const [evenSigns = filler, oddSigns = filler] = signs;
  const low = code.make("b32", "shr.u32", even, integer(1));
  const magnitudes = code.make("b32", "mad.lo.s32", odd, integer(8), low);
  const lowSigns = code.make("b32", "shr.u32", evenSigns, integer(4));
  const positive = lop3(code, "choose", lowSigns, 0x0f0f0f0f, oddSigns);
  return lop3(code, "orNotAnd", magnitudes, positive, 0x88888888);
}

/** A magnitude rounded to 4 bits, times a power of two; NaN is 0. */
function rounded(code: Code, number: Register): Register {
  const magnitude = code.make("b32", "abs.f32", number);
  const small = code.make("b32", "mul.rn.sat.f32", magnitude, float32(fourBitFactor));
  const most = float32(largestFourBit * fourBitFactor);
  const bounded = code.make("b32", "min.f32", small, most);
  const power = code.make("b32", "and.b32", bounded, integer(0x7f800000));
  const place = code.make("b32", "max.f32", power, float32(fourBitFactor));
  const sum = code.make("b32", "fma.rn.f32", place, float32(2 ** 22), bounded);
  return code.make("b32", "fma.rn.f32", place, float32(-(2 ** 22)), sum);
}

/** The highest bytes of four numbers times -1: of those that are positive, and of no NaN, the highest bit is set. */
function highBytes(code: Code, numbers: readonly Register[]): Register {
  const negated = numbers.map((number) =>
    code.make("b32", "mul.rn.f32", number, float32(-fourBitFactor)),
  );
  const [a, b, c, d] = negated;
  if (a === undefined || b === undefined || c === undefined || d === undefined)
    throw new Error("a word has four bytes");
  const low = code.make("b32", "prmt.b32", a, b, integer(0x0073));
  const high = code.make("b32", "prmt.b32", c, d, integer(0x0073));
  return code.make("b32", "prmt.b32", low, high, integer(0x5410));
}
