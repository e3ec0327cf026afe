/**
 * Integer functions in the width of the registers: 32 bits for all formats up to that, 64 for the others.
 * A narrow operand comes extended by its sign or by zeros, so that one instruction serves all widths; what
 * comes out is right in the format's own bits and arbitrary above them. `wrapInteger` extends it again
 * where it stays a lone element; packing into a word takes the low bits alone and needs no such thing.
 *
 *   i8   100 + 100  add.s32  200    wrapped: -56
 *   u4     9 · 9    mul.lo    81    wrapped: 1
 */
import type { BinaryIn, UnaryIn } from "../../../formats/arithmetic/functions.ts";
import type { ComparePredicate } from "../../../formats/arithmetic/functions.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { quotientBy, registerArithmetic, remainderBy } from "./division.ts";
import type { KnownDivision } from "./division.ts";

export type IntegerUnaryFunction = UnaryIn<"integer" | "number" | "logic">;
export type IntegerBinaryFunction = BinaryIn<"integer" | "number" | "logic">;

/** The instructions of a format: of 32 bits, or of 64. */
class Form {
  readonly code: Code;
  readonly signed: boolean;
  /** Of the format. */
  readonly width: number;
  /** Of the registers. */
  readonly size: 32 | 64;
  readonly register: "b32" | "b64";
  /** The type of instructions to which the sign matters. */
  readonly type: string;

  constructor(code: Code, { kind, bits }: DType) {
    this.code = code;
    this.signed = kind === "signed";
    this.width = bits;
    this.size = bits === 64 ? 64 : 32;
    this.register = `b${this.size}`;
    this.type = `${this.signed ? "s" : "u"}${this.size}`;
  }

  get fillsRegister(): boolean {
    return this.width === this.size;
  }

  make(opcode: string, ...operands: readonly Operand[]): Register {
    return this.code.make(this.register, opcode, ...operands);
  }

  typed(operation: string, ...operands: readonly Operand[]): Register {
    return this.make(`${operation}.${this.type}`, ...operands);
  }

  bits(operation: string, ...operands: readonly Operand[]): Register {
    return this.make(`${operation}.${this.register}`, ...operands);
  }

  test(comparison: string, left: Register, right: Operand): Register {
    return this.code.make("pred", `setp.${comparison}.${this.type}`, left, right);
  }

  choose(predicate: Register, ifTrue: Operand, ifFalse: Operand): Register {
    return this.bits("selp", ifTrue, ifFalse, predicate);
  }

  /** The format's own bits, zeros above. */
  masked(value: Register): Register {
    if (this.fillsRegister) return value;
    return this.bits("and", value, integer(2 ** this.width - 1));
  }

  /** A count that an instruction gives as 32 bits. */
  count(operation: string, value: Register): Register {
    const counted = this.code.make("b32", `${operation}.${this.register}`, value);
    return this.size === 64 ? this.make("cvt.u64.u32", counted) : counted;
  }
}

const unaryEmitters: {
  readonly [F in IntegerUnaryFunction]: (form: Form, value: Register) => Register;
} = {
  neg: (form, value) => form.make(`neg.s${form.size}`, value),
  abs: (form, value) => (form.signed ? form.typed("abs", value) : value),
  sign(form, value) {
    const atMostOne = form.typed("min", value, integer(1));
    return form.signed ? form.typed("max", atMostOne, integer(-1)) : atMostOne;
  },
  not: (form, value) => form.bits("not", value),
  clz(form, value) {
    const zeros = form.count("clz", form.masked(value));
    const surplus = form.size - form.width;
    return surplus === 0 ? zeros : form.typed("sub", zeros, integer(surplus));
  },
  popcount: (form, value) => form.count("popc", form.masked(value)),
  bit_reverse(form, value) {
    const reversed = form.bits("brev", value);
    const surplus = form.size - form.width;
    return surplus === 0 ? reversed : form.make(`shr.u${form.size}`, reversed, integer(surplus));
  },
};

/** Between what a dividend and its divisor lie. */
export interface Division {
  readonly dividend: Interval;
  readonly divisor: Interval;
}

interface Interval {
  readonly least: bigint;
  readonly greatest: bigint;
}

function includes({ least, greatest }: Interval, value: bigint): boolean {
  return least <= value && value <= greatest;
}

/** A divisor that no division can fail with, and where it stands for another. */
interface Divisor {
  readonly safe: Register;
  /** Undefined where it is not zero. */
  readonly zero: Register | undefined;
  /** Where the quotient of the least number would overflow the register. */
  readonly minusOne: Register | undefined;
}

function safeDivisor(form: Form, divisor: Register, division: Division | undefined): Divisor {
  const mayBe = (value: bigint): boolean =>
    division === undefined || includes(division.divisor, value);
  const zero = mayBe(0n) ? form.test("eq", divisor, integer(0)) : undefined;
  const safe = zero === undefined ? divisor : form.choose(zero, integer(1), divisor);
  if (!form.signed || !form.fillsRegister || !mayBe(-1n))
    return { safe, zero, minusOne: undefined };
  const minusOne = form.test("eq", divisor, integer(-1));
  return { safe: form.choose(minusOne, integer(1), safe), zero, minusOne };
}

/** Without signs the division is shorter. */
function divided(
  form: Form,
  operation: "div" | "rem",
  left: Register,
  right: Register,
  division: Division | undefined,
): Register {
  const natural =
    division !== undefined && division.dividend.least >= 0n && division.divisor.least >= 0n;
  return natural
    ? form.make(`${operation}.u${form.size}`, left, right)
    : form.typed(operation, left, right);
}

/** Shift amounts are unsigned in the format's bits; instructions take 32 bits and clamp them. */
function shiftAmount(form: Form, amount: Register): Register {
  if (form.size === 32) return form.masked(amount);
  const clamped = form.make("min.u64", amount, integer(64));
  return form.code.make("b32", "cvt.u32.u64", clamped);
}

/** By squaring; an exponent is read as unsigned, which for a base of 1 or -1 is right for all. */
function power(form: Form, base: Register, exponent: Register): Register {
  const { code } = form;
  const result = form.bits("mov", integer(1));
  const square = form.bits("mov", base);
  const rest = form.bits("mov", exponent);
  const again = code.label("power");
  const done = code.label("powerDone");
  code.place(again);
  const ended = form.test("eq", rest, integer(0));
  code.jumpIf(ended, done, { uniform: false });
  const odd = form.test("ne", form.bits("and", rest, integer(1)), integer(0));
  const factor = form.choose(odd, square, integer(1));
  code.emit(`mul.lo.${form.type}`, [result, result, factor]);
  code.emit(`mul.lo.${form.type}`, [square, square, square]);
  code.emit(`shr.u${form.size}`, [rest, rest, integer(1)]);
  code.jump(again);
  code.place(done);
  return form.signed ? withNegativeExponents(form, base, exponent, result) : result;
}

/** A negative power is a fraction, which becomes 0, except for those of 1 and -1. */
function withNegativeExponents(
  form: Form,
  base: Register,
  exponent: Register,
  result: Register,
): Register {
  const size = form.typed("abs", base);
  const negative = form.test("lt", exponent, integer(0));
  const fraction = form.code.make("pred", `setp.ne.and.${form.type}`, size, integer(1), negative);
  return form.choose(fraction, integer(0), result);
}

const binaryEmitters: {
  readonly [F in IntegerBinaryFunction]: (
    form: Form,
    left: Register,
    right: Register,
    division?: Division,
  ) => Register;
} = {
  add: (form, left, right) => form.typed("add", left, right),
  sub: (form, left, right) => form.typed("sub", left, right),
  mul: (form, left, right) => form.typed("mul.lo", left, right),
  div(form, left, right, division) {
    const { safe, zero, minusOne } = safeDivisor(form, right, division);
    const quotient = divided(form, "div", left, safe, division);
    const negated =
      minusOne === undefined ? quotient : form.choose(minusOne, form.typed("neg", left), quotient);
    return zero === undefined ? negated : form.choose(zero, integer(-1), negated);
  },
  rem(form, left, right, division) {
    // The remainder by 1, for which -1 stands, is the 0 that it should be.
    const { safe, zero } = safeDivisor(form, right, division);
    const rest = divided(form, "rem", left, safe, division);
    return zero === undefined ? rest : form.choose(zero, left, rest);
  },
  min: (form, left, right) => form.typed("min", left, right),
  max: (form, left, right) => form.typed("max", left, right),
  pow: power,
  and: (form, left, right) => form.bits("and", left, right),
  or: (form, left, right) => form.bits("or", left, right),
  xor: (form, left, right) => form.bits("xor", left, right),
  shl: (form, left, right) => form.bits("shl", left, shiftAmount(form, right)),
  shr: (form, left, right) => form.typed("shr", left, shiftAmount(form, right)),
  mul_high(form, left, right) {
    if (form.fillsRegister) return form.typed("mul.hi", left, right);
    return form.typed("shr", form.typed("mul.lo", left, right), integer(form.width));
  },
};

export function integerUnary(
  code: Code,
  fn: IntegerUnaryFunction,
  dtype: DType,
  value: Register,
): Register {
  return unaryEmitters[fn](new Form(code, dtype), value);
}

/** With `division`, what is known of the operands of `div` and `rem`. */
export function integerBinary(
  code: Code,
  fn: IntegerBinaryFunction,
  dtype: DType,
  left: Register,
  right: Register,
  division?: Division,
): Register {
  const form = new Form(code, dtype);
  const known = division && byConstant(division);
  if (known !== undefined && (fn === "div" || fn === "rem")) {
    const divide = fn === "div" ? quotientBy : remainderBy;
    return divide(registerArithmetic(code, form.size), left, known);
  }
  return binaryEmitters[fn](form, left, right, division);
}

function byConstant({ dividend, divisor }: Division): KnownDivision | undefined {
  return divisor.least === divisor.greatest ? { ...dividend, by: divisor.least } : undefined;
}

export function integerCompare(
  code: Code,
  predicate: ComparePredicate,
  dtype: DType,
  left: Register,
  right: Register,
): Register {
  return new Form(code, dtype).test(predicate, left, right);
}

/* ---- between registers and the format's width ---- */

/** A lone element in the register that the functions above take. */
export function extendInteger(code: Code, { bits, kind }: DType, element: Register): Register {
  if (bits !== 16) return element;
  return code.make("b32", kind === "signed" ? "cvt.s32.s16" : "cvt.u32.u16", element);
}

/** The lone element whose bits are the low ones of the register. */
export function wrapInteger(code: Code, { bits, kind }: DType, value: Register): Register {
  const signed = kind === "signed";
  if (bits === 16) return code.make("b16", "cvt.u16.u32", value);
  if (bits === 8 && signed) return code.make("b32", "cvt.s32.s8", value);
  if (bits === 4 && signed) return code.make("b32", "bfe.s32", value, integer(0), integer(4));
  return bits < 16 ? code.make("b32", "and.b32", value, integer(2 ** bits - 1)) : value;
}
