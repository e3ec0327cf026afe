/**
 * Short ways to write IEEE arithmetic of one width, for sequences that compute functions:
 *
 *   const f = new Arithmetic(code, 32);
 *   f.fma(x, x, 1)                 fma.rn.f32 %r1, %r0, %r0, 0f3F800000;
 *
 * Every operation rounds once, to nearest, and keeps subnormal numbers. Numbers stand for immediates of
 * the width; integer operations work on the bits, of f64 on its high word, where sign and exponent are.
 */
import type { Code, RegisterClass } from "../function-builder.ts";
import type { Operand, Register } from "../module.ts";
import { floatLayouts } from "./float-arithmetic.ts";
import type {
  Comparison,
  FloatArithmetic,
  Format,
  Term,
  Width,
  WordComparison,
  WordOperation,
} from "./float-arithmetic.ts";
import { braces, float32, float64, integer } from "../operands.ts";

const wordOperations: { readonly [O in WordOperation]: string } = {
  add: "add.s32",
  sub: "sub.s32",
  and: "and.b32",
  xor: "xor.b32",
  shl: "shl.b32",
  shr: "shr.s32",
};

export class Arithmetic implements FloatArithmetic<Register> {
  readonly hasFma = true;
  readonly code: Code;
  readonly width: Width;
  readonly precision: Width;
  readonly format: Format;
  readonly #register: RegisterClass;

  constructor(code: Code, width: Width) {
    this.code = code;
    this.width = width;
    this.precision = width;
    this.format = floatLayouts[width];
    this.#register = `b${width}`;
  }

  #operand(term: Term<Register>): Operand {
    if (typeof term !== "number") return term;
    return this.width === 32 ? float32(term) : float64(term);
  }

  /** An operation of floats, by its opcode without the type. */
  make(operation: string, ...terms: readonly Term<Register>[]): Register {
    const operands = terms.map((term) => this.#operand(term));
    return this.code.make(this.#register, `${operation}.f${this.width}`, ...operands);
  }

  add(left: Term<Register>, right: Term<Register>): Register {
    return this.make("add.rn", left, right);
  }

  sub(left: Term<Register>, right: Term<Register>): Register {
    return this.make("sub.rn", left, right);
  }

  mul(left: Term<Register>, right: Term<Register>): Register {
    return this.make("mul.rn", left, right);
  }

  fma(a: Term<Register>, b: Term<Register>, c: Term<Register>): Register {
    return this.make("fma.rn", a, b, c);
  }

  madd(a: Term<Register>, b: Term<Register>, c: Term<Register>): Register {
    return this.fma(a, b, c);
  }

  sqrt(value: Register): Register {
    return this.make("sqrt.rn", value);
  }

  truncate(value: Register): Register {
    return this.make(`cvt.rzi.f${this.width}`, value);
  }

  div(left: Term<Register>, right: Term<Register>): Register {
    return this.make("div.rn", left, right);
  }

  neg(value: Register): Register {
    return this.make("neg", value);
  }

  abs(value: Register): Register {
    return this.make("abs", value);
  }

  /** The magnitude of one number with the sign of another. */
  copySign(magnitude: Term<Register>, sign: Register): Register {
    return this.make("copysign", sign, magnitude);
  }

  /** A number in a register. */
  constant(value: number): Register {
    return this.code.make(this.#register, `mov.b${this.width}`, this.#operand(value));
  }

  compare(comparison: Comparison, left: Term<Register>, right: Term<Register>): Register {
    const operands = [left, right].map((term) => this.#operand(term));
    return this.code.make("pred", `setp.${comparison}.f${this.width}`, ...operands);
  }

  /** As `compare`, where another predicate holds too. */
  compareAnd(
    comparison: Comparison,
    left: Term<Register>,
    right: Term<Register>,
    other: Register,
  ): Register {
    const operands = [left, right].map((term) => this.#operand(term));
    return this.code.make("pred", `setp.${comparison}.and.f${this.width}`, ...operands, other);
  }

  select(condition: Register, ifTrue: Term<Register>, ifFalse: Term<Register>): Register {
    const operands = [ifTrue, ifFalse].map((term) => this.#operand(term));
    return this.code.make(this.#register, `selp.b${this.width}`, ...operands, condition);
  }

  /** The nearer end for numbers beyond the range; NaN stays. */
  clamp(value: Register, least: number | undefined, greatest: number | undefined): Register {
    let clamped = value;
    if (greatest !== undefined) clamped = this.#bound("min", "gt", clamped, greatest);
    if (least !== undefined) clamped = this.#bound("max", "lt", clamped, least);
    return clamped;
  }

  #bound(fn: "min" | "max", beyond: Comparison, value: Register, bound: number): Register {
    // f64 has no min.NaN.
    if (this.width === 32) return this.make(`${fn}.NaN`, value, bound);
    return this.select(this.compare(beyond, value, bound), bound, value);
  }

  /** c0 + c1·x + c2·x² + …, by Horner's rule; coefficients may be registers. */
  polynomial(x: Register, coefficients: readonly Term<Register>[]): Register {
    const descending = [...coefficients].reverse();
    const [first = 0, ...others] = descending;
    let sum: Term<Register> = first;
    for (const coefficient of others) sum = this.fma(sum, x, coefficient);
    return typeof sum === "number" ? this.constant(sum) : sum;
  }

  /**
   * left / right for numbers and a quotient that are far from the format's ends. An estimate, in f32 by
   * the GPU's reciprocal, which is good to one unit, is put right by its remainder; what comes out is
   * within 0.51 units. The divisor may be the sum of two floats.
   */
  quotient(left: Term<Register>, right: Register, rightLow?: Register): Register {
    if (this.width === 64 && rightLow === undefined) return this.div(left, right);
    const reciprocal = this.nearReciprocal(right);
    const estimate = left === 1 ? reciprocal : this.mul(left, reciprocal);
    let remainder = this.fma(this.neg(right), estimate, left);
    if (rightLow !== undefined) remainder = this.fma(this.neg(rightLow), estimate, remainder);
    return this.fma(remainder, reciprocal, estimate);
  }

  /** 1 / (right + rightLow) as the sum of an estimate and a small correction. */
  reciprocal(
    right: Register,
    rightLow: Register,
  ): { readonly estimate: Register; readonly correction: Register } {
    const estimate = this.nearReciprocal(right);
    const remainder = this.fma(this.neg(right), estimate, 1);
    const whole = this.fma(this.neg(rightLow), estimate, remainder);
    return { estimate, correction: this.mul(whole, estimate) };
  }

  /** 1 / right: good to one unit in f32, correctly rounded in f64. */
  nearReciprocal(right: Register): Register {
    return this.make(this.width === 32 ? "rcp.approx.ftz" : "rcp.rn", right);
  }

  /** The word with sign and exponent. */
  highWord(value: Register): Register {
    if (this.width === 32) return value;
    const [low, high] = this.code.registers("b32", 2) as [Register, Register];
    this.code.emit("mov.b64", [braces([low, high]), value]);
    return high;
  }

  lowWord(value: Register): Register {
    if (this.width === 32) return value;
    const [low, high] = this.code.registers("b32", 2) as [Register, Register];
    this.code.emit("mov.b64", [braces([low, high]), value]);
    return low;
  }

  /** The float with this word of sign and exponent, and the other word of `rest`, or zero. */
  withHighWord(high: Register, rest?: Register): Register {
    if (this.width === 32) return high;
    const low = rest === undefined ? integer(0) : this.lowWord(rest);
    return this.code.make("b64", "mov.b64", braces([low, high]));
  }

  words(operation: WordOperation, left: Term<Register>, right: Term<Register>): Register {
    return this.integers(wordOperations[operation], left, right);
  }

  selectWords(condition: Register, ifTrue: number, ifFalse: number): Register {
    return this.code.make("b32", "selp.b32", integer(ifTrue), integer(ifFalse), condition);
  }

  testWords(comparison: WordComparison, left: Register, right: Term<Register>): Register {
    return this.testIntegers(`setp.${comparison}.s32`, left, right);
  }

  floatOfWord(word: Register): Register {
    return this.code.make(this.#register, `cvt.rn.f${this.width}.s32`, word);
  }

  /** An operation of 32-bit integers. */
  integers(operation: string, ...operands: readonly (Register | number)[]): Register {
    const terms = operands.map((term) => (typeof term === "number" ? integer(term) : term));
    return this.code.make("b32", operation, ...terms);
  }

  /** A test of 32-bit integers. */
  testIntegers(operation: string, left: Register, right: Register | number): Register {
    const other = typeof right === "number" ? integer(right) : right;
    return this.code.make("pred", operation, left, other);
  }

  /** The number with its sign changed where a bit of an integer is set. */
  negateByBit(value: Register, word: Register, bit: number): Register {
    const selected = this.integers("and.b32", word, 2 ** bit);
    const sign = this.integers("shl.b32", selected, 31 - bit);
    return this.withHighWord(this.integers("xor.b32", this.highWord(value), sign), value);
  }
}
