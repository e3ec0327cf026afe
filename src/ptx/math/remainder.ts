/**
 * The exact remainder of floats, C's fmod: long division of the significands. With |x| = a·2^i and
 * |y| = b·2^j, a and b integers, the remainder is (a·2^(i-j) mod b)·2^j: a is shifted by as many bits as fit
 * into a word and reduced, until i - j bits are spent.
 *
 *   f32   24 bits of a and 8 more fill 32         f64   53 bits and 11 more fill 64
 *
 * A number below |y| is its own remainder, and takes no turn of the loop.
 */
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { integer } from "../operands.ts";
import { Arithmetic } from "./arithmetic.ts";
import type { Width } from "./float-arithmetic.ts";

interface Parts {
  /** b32: the exponent of its last bit, counted from the least subnormal number's. */
  readonly exponent: Register;
  /** The significand, an integer of the format's width. */
  readonly significand: Register;
}

class Remainder {
  readonly f: Arithmetic;
  readonly type: "b32" | "b64";

  constructor(f: Arithmetic) {
    this.f = f;
    this.type = `b${f.width}`;
  }

  /** An operation of integers of the format's width. */
  integers(operation: string, ...operands: readonly (Register | number | bigint)[]): Register {
    const terms = operands.map((term) => (typeof term === "object" ? term : integer(term)));
    return this.f.code.make(this.type, operation, ...terms);
  }

  /** Takes the magnitude of a number apart. */
  takeApart(magnitude: Register): Parts {
    const { f, type } = this;
    const { fraction, place } = f.format;
    const biased = f.integers("shr.u32", f.highWord(magnitude), place);
    const isSubnormal = f.testIntegers("setp.eq.s32", biased, 0);
    const below = this.integers(`and.${type}`, magnitude, 2n ** BigInt(fraction) - 1n);
    const normal = this.integers(`or.${type}`, below, 2n ** BigInt(fraction));
    const significand = f.code.make(type, `selp.${type}`, below, normal, isSubnormal);
    const exponent = f.integers("max.s32", f.integers("sub.s32", biased, 1), 0);
    return { exponent, significand };
  }

  /** a·2^distance mod b, in place of a. */
  reduce(a: Register, b: Register, distance: Register): void {
    const { f, type } = this;
    const { code, width } = f;
    const step = width - f.format.fraction - 1;
    const again = code.label("remainder");
    const done = code.label("remainder_end");
    code.emit(`rem.u${width}`, [a, a, b]);
    code.place(again);
    code.jumpIf(f.testIntegers("setp.le.s32", distance, 0), done, { uniform: false });
    const taken = f.integers("min.s32", distance, step);
    code.emit(`shl.${type}`, [a, a, taken]);
    code.emit(`rem.u${width}`, [a, a, b]);
    code.emit("sub.s32", [distance, distance, taken]);
    code.jump(again);
    code.place(done);
  }

  /** significand·2^exponent; the integer as a float has its leading bit in its place. */
  putTogether(significand: Register, exponent: Register): Register {
    const { f } = this;
    const { place, bias, fraction } = f.format;
    const whole = f.code.make(this.type, `cvt.rn.f${f.width}.u${f.width}`, significand);
    // The factor 2^(exponent - bias - fraction + 1) may be subnormal; its two halves are not.
    const first = f.integers("shr.u32", exponent, 1);
    const second = f.integers("sub.s32", exponent, first);
    const low = bias - 1 + fraction;
    const half = low >> 1;
    const factor = (part: Register, shift: number): Register =>
      f.withHighWord(f.integers("shl.b32", f.integers("add.s32", part, bias - shift), place));
    return f.mul(f.mul(whole, factor(first, half)), factor(second, low - half));
  }
}

export function rem(code: Code, width: Width, x: Register, y: Register): Register {
  const f = new Arithmetic(code, width);
  const remainder = new Remainder(f);
  const result = code.register(`b${width}`);
  const dividend = f.abs(x);
  const divisor = f.abs(y);
  const done = code.label("remainder_known");
  code.emit(`mov.b${width}`, [result, x]);
  // Also with an infinite divisor; NaN goes on.
  code.jumpIf(f.compare("lt", dividend, divisor), done, { uniform: false });
  code.emit(`mov.b${width}`, [result, f.constant(NaN)]);
  const finite = f.compare("lt", dividend, Infinity);
  code.jumpIf(f.compareAnd("gt", divisor, 0, finite), done, { negated: true, uniform: false });
  const { exponent: high, significand } = remainder.takeApart(dividend);
  const { exponent: low, significand: modulus } = remainder.takeApart(divisor);
  remainder.reduce(significand, modulus, f.integers("sub.s32", high, low));
  const magnitude = remainder.putTogether(significand, low);
  code.emit(`mov.b${width}`, [result, f.copySign(magnitude, x)]);
  code.place(done);
  return result;
}
