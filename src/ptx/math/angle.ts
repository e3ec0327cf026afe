/**
 * Reducing an angle: x = n·π/2 + r with |r| ≤ π/4, where n is wanted modulo 4.
 *
 * Up to a limit, r is x - n·π/2 with π/2 as the sum of three floats. The first product is a multiple of
 * its last place as x is, so the first difference is exact, and the others lose little. What rounding took from r is
 * told apart, unless r is so small that the difference which would tell it is not exact.
 *
 * Beyond it (Payne and Hanek), x·2/π is computed modulo 4 with integers. With x = m·2^k, m a word, the bits
 * of 2/π whose products with x are multiples of 4 are left out, and three words from there on are enough:
 *
 *   2/π    0. 1010001011111001 10000011011011100 100111001000100 0001010100101…
 *              left out        | first word      | second        | third
 *   m × them, modulo 1         |nn|fraction, 62 bits |              as quarters of the circle
 */
import type { Register } from "../module.ts";
import { braces, float64, integer } from "../operands.ts";
import type { Arithmetic } from "./arithmetic.ts";
import type { Angle, ByWidth } from "./float-arithmetic.ts";

type Reduction = Omit<Angle<Register>, "excess">;

const twoOverPi: ByWidth<number> = { 32: 0.6366197466850281, 64: 0.6366197723675814 };
/** -π/2 as the sum of three floats of one sign: all products with n = 0 are -0, and an x of -0 stays. */
const minusHalfPi: ByWidth<readonly [number, number, number]> = {
  32: [-1.570796251296997, -7.549789415861596e-8, -5.390302529957765e-15],
  64: [-1.5707963267948966, -6.123233995736765e-17, -1.0828566739219139e-32],
};
/** Up to here the products with three floats are good. */
export const farFrom: ByWidth<number> = { 32: 2 ** 16, 64: 2 ** 27 };

export function reduceAngle(f: Arithmetic, x: Register): Angle<Register> {
  const { code } = f;
  const quarters = code.register("b32");
  const rest = code.register(`b${f.width}`);
  const excess = code.register(`b${f.width}`);
  const near = nearAngle(f, x);
  code.emit("mov.b32", [quarters, near.quarters]);
  code.emit(`mov.b${f.width}`, [rest, near.rest]);
  code.emit(`mov.b${f.width}`, [excess, near.excess]);
  const done = code.label("angle");
  // NaN is not beyond the limit.
  const far = f.compare("gt", f.abs(x), farFrom[f.width]);
  code.jumpIf(far, done, { negated: true, uniform: false });
  const angle = f.width === 32 ? farAngle(f, x) : farAngleOfF64(f, x);
  code.emit("mov.b32", [quarters, angle.quarters]);
  code.emit(`mov.b${f.width}`, [rest, angle.rest]);
  code.emit(`mov.b${f.width}`, [excess, f.constant(0)]);
  code.place(done);
  return { quarters, rest, excess };
}

function nearAngle(f: Arithmetic, x: Register): Angle<Register> {
  const { rounder } = f.format;
  const [first, second, third] = minusHalfPi[f.width];
  const shifted = f.fma(x, twoOverPi[f.width], rounder);
  const n = f.sub(shifted, rounder);
  const exact = f.fma(n, first, x);
  const rest = f.fma(n, third, f.fma(n, second, exact));
  // Next to this, n times the small floats is less than half of r, so that the difference is exact.
  const isLarge = f.compare("gt", f.abs(rest), 2 ** -6);
  const change = f.fma(n, -second, f.sub(rest, exact));
  const excess = f.select(isLarge, f.fma(n, -third, change), 0);
  return { quarters: f.lowWord(shifted), rest, excess };
}

/* ---- far angles ---- */

/** 2/π behind the point, after a word of zeros. */
const words = [
  0n,
  0xa2f9836e4e441529n,
  0xfc2757d1f534ddc0n,
  0xdb6295993c439041n,
  0xfe5163abdebbc561n,
  0xb7246e3a424dd2e0n,
  0x06492eea09d1921cn,
  0xfe1deb1cb129a73en,
  0xe88235f52ebb4484n,
  0xe99c7026b45f7e41n,
  0x3991d639835339f4n,
  0x9c845f8bbdf9283bn,
  0x1ff897ffde05980fn,
  0xef2f118b5a0a6d1fn,
  0x6d367ecf27cb09b7n,
  0x4f463f669e5fea2dn,
  0x7527bac7ebe5f17bn,
  0x3d0739f78a5292ean,
  0x6bfb5fb11f8d5d08n,
];
/** The same as one number of so many bits. */
export const twoOverPiBits = words.reduce((sum, word) => (sum << 64n) | word, 0n);
export const twoOverPiLength = 64 * (words.length - 1);
const halfWords = [0n, ...words.slice(1).flatMap((word) => [word >> 32n, word & 0xffffffffn])];

/**
 * Three words of 2/π from bit `start` on. `start` is taken apart into its bits: where one that stands for
 * whole words is set, the table moves by as many, and what is left is a shift within words.
 */
function window(f: Arithmetic, start: Register): readonly [Register, Register, Register] {
  const { code, width } = f;
  const type = `b${width}` as const;
  const moves = width === 32 ? [2, 1] : [8, 4, 2, 1];
  const reach = moves.reduce((sum, move) => sum + move, 0) + 4;
  let table: readonly (Register | bigint)[] = (width === 32 ? halfWords : words).slice(0, reach);
  for (const move of moves) {
    const bit = f.integers("and.b32", start, move * width);
    const taken = f.testIntegers("setp.ne.s32", bit, 0);
    table = table.slice(move).map((further, index) => {
      const choices = [further, table[index] ?? 0n].map((word) =>
        typeof word === "bigint" ? integer(word) : word,
      );
      return code.make(type, `selp.${type}`, ...choices, taken);
    });
  }
  const shift = f.integers("and.b32", start, width - 1);
  const opposite = f.integers("sub.s32", width - 1, shift);
  const [a, b, c, d] = table as readonly Register[] as [Register, Register, Register, Register];
  const join = (left: Register, right: Register): Register => {
    const upper = code.make(type, `shl.${type}`, left, shift);
    // In two steps: a shift by the whole width is none that an exponent could ask for.
    const halved = code.make(type, `shr.u${width}`, right, integer(1));
    const lower = code.make(type, `shr.u${width}`, halved, opposite);
    return code.make(type, `or.${type}`, upper, lower);
  };
  return [join(a, b), join(b, c), join(c, d)];
}

/** The bit of the table at which the window of |x| starts. */
function windowStart(f: Arithmetic, x: Register): Register {
  const { place, bias } = f.format;
  const word = f.integers("and.b32", f.highWord(x), 0x7fffffff);
  const exponent = f.integers("shr.u32", word, place);
  return f.integers("sub.s32", exponent, bias + 1);
}

/** n and r of x from those of |x|; NaN for infinite numbers. */
function signedAngle(f: Arithmetic, x: Register, quarters: Register, rest: Register): Reduction {
  const negative = f.testIntegers("setp.lt.s32", f.highWord(x), 0);
  const opposite = f.integers("neg.s32", quarters);
  const finite = f.compare("lt", f.abs(x), Infinity);
  return {
    quarters: f.code.make("b32", "selp.b32", opposite, quarters, negative),
    rest: f.select(finite, f.select(negative, f.neg(rest), rest), NaN),
  };
}

/** Of f32. */
export function farAngle(f: Arithmetic, x: Register): Reduction {
  const { code } = f;
  const [first, second, third] = window(f, windowStart(f, x));
  const fraction = f.integers("shl.b32", x, 8);
  const mantissa = f.integers("or.b32", fraction, 2 ** 31);
  const high = code.make("b32", "mul.lo.u32", mantissa, first);
  const middle = code.make("b64", "mul.wide.u32", mantissa, second);
  const low = code.make("b32", "mul.hi.u32", mantissa, third);
  const upper = code.make("b64", "mov.b64", braces([integer(0), high]));
  const lower = code.make("b64", "cvt.u64.u32", low);
  const sum = code.make("b64", "add.s64", code.make("b64", "add.s64", upper, middle), lower);
  const rounded = code.make("b64", "add.s64", sum, integer(2n ** 61n));
  const quarters = code.make("b64", "shr.u64", rounded, integer(62));
  // As a signed number, what is behind the quarters is the nearer of the two distances.
  const distance = code.make("b64", "shl.b64", sum, integer(2));
  const asFloat = code.make("b64", "cvt.rn.f64.s64", distance);
  const radians = code.make("b64", "mul.rn.f64", asFloat, float64((Math.PI / 2) * 2 ** -64));
  const rest = code.make("b32", "cvt.rn.f32.f64", radians);
  return signedAngle(f, x, code.make("b32", "cvt.u32.u64", quarters), rest);
}

/** As `farAngle`, with words of 64 bits and a fraction of 126: it may begin with sixty zeros. */
function farAngleOfF64(f: Arithmetic, x: Register): Reduction {
  const { code } = f;
  const make = (opcode: string, ...operands: readonly (Register | bigint | number)[]): Register =>
    code.make(
      "b64",
      opcode,
      ...operands.map((term) => (typeof term === "object" ? term : integer(term))),
    );
  const [first, second, third] = window(f, windowStart(f, x));
  const mantissa = make("or.b64", make("shl.b64", x, 11), 2n ** 63n);
  const middleLow = make("mul.lo.u64", mantissa, second);
  const low = make("add.s64", middleLow, make("mul.hi.u64", mantissa, third));
  const carried = code.make("pred", "setp.lt.u64", low, middleLow);
  const middle = make("mul.hi.u64", mantissa, second);
  const carry = code.make("b64", "selp.b64", integer(1), integer(0), carried);
  const high = make("add.s64", make("mul.lo.u64", mantissa, first), make("add.s64", middle, carry));
  const quarters = make("shr.u64", make("add.s64", high, 2n ** 61n), 62);
  const top = make("or.b64", make("shl.b64", high, 2), make("shr.u64", low, 62));
  const bottom = make("shl.b64", low, 2);
  // The magnitude by inverting all bits is one unit of 2^-126 too small.
  const sign = make("shr.s64", top, 63);
  const rest = radiansOfF64(f, make("xor.b64", top, sign), make("xor.b64", bottom, sign));
  const negative = code.make("pred", "setp.lt.s64", top, integer(0));
  const signedRest = f.select(negative, f.neg(rest), rest);
  return signedAngle(f, x, code.make("b32", "cvt.u32.u64", quarters), signedRest);
}

/** (top·2^64 + bottom)·2^-128 quarters in radians: the upper 53 bits and the others apart. */
function radiansOfF64(f: Arithmetic, top: Register, bottom: Register): Register {
  const { code } = f;
  const [first, second] = minusHalfPi[64];
  const upperBits = code.make("b64", "and.b64", top, integer(-2048));
  const lowerBits = code.make("b64", "and.b64", top, integer(2047));
  const upper = f.mul(code.make("b64", "cvt.rn.f64.u64", upperBits), 2 ** -64);
  const lower = f.fma(
    code.make("b64", "cvt.rn.f64.u64", bottom),
    2 ** -128,
    f.mul(code.make("b64", "cvt.rn.f64.u64", lowerBits), 2 ** -64),
  );
  const product = f.mul(upper, -first);
  const lost = f.fma(upper, -first, f.neg(product));
  return f.add(product, f.fma(lower, -first, f.fma(upper, -second, lost)));
}
