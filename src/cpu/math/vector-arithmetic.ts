/**
 * IEEE arithmetic on vectors, for the sequences of `src/ptx/math` that compute functions:
 *
 *   exp(new VectorArithmetic(builder, { width: 32, relaxed: false }), x)      an expression of four f32
 *
 * WebAssembly has no fused multiply-add that can be relied on: relaxed SIMD fuses or does not, as the engine likes. `madd` may
 * be either, and sequences are within their bounds both ways; `fma` is made of additions and products (Dekker, 1971), and is
 * meant for operands whose products are far from the ends of the format.
 */
import { floatLayouts } from "../../ptx/math/float-arithmetic.ts";
import type {
  ByWidth,
  Comparison,
  FloatArithmetic,
  Format,
  Term,
  Width,
  WordComparison,
  WordOperation,
} from "../../ptx/math/float-arithmetic.ts";
import { i32, op, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";

export interface VectorOptions {
  readonly width: Width;
  /** The width that results are rounded to; without it that of the computation. */
  readonly precision?: Width;
  /** Whether relaxed SIMD may be used. */
  readonly relaxed: boolean;
}

const floatShapes = { 32: "f32x4", 64: "f64x2" } as const;
const wordShapes = { 32: "i32x4", 64: "i64x2" } as const;
const signMasks: ByWidth<bigint> = { 32: -(2n ** 31n), 64: -(2n ** 63n) };
/** Times this, a number gives its upper half of digits. */
const splitters: ByWidth<number> = { 32: 2 ** 12 + 1, 64: 2 ** 27 + 1 };

export class VectorArithmetic implements FloatArithmetic<Expression> {
  readonly builder: FunctionBuilder;
  readonly width: Width;
  readonly precision: Width;
  readonly format: Format;
  readonly hasFma = false;
  readonly #relaxed: boolean;
  readonly #floats: "f32x4" | "f64x2";
  readonly #words: "i32x4" | "i64x2";

  constructor(builder: FunctionBuilder, { width, precision = width, relaxed }: VectorOptions) {
    this.builder = builder;
    this.width = width;
    this.precision = precision;
    this.format = floatLayouts[width];
    this.#relaxed = relaxed;
    this.#floats = floatShapes[width];
    this.#words = wordShapes[width];
  }

  #term(term: Term<Expression>): Expression {
    return typeof term === "number" ? splat(this.#floats, term) : term;
  }

  #word(term: Term<Expression>): Expression {
    return typeof term === "number" ? splat(this.#words, term | 0) : term;
  }

  #keep(expression: Expression): Expression {
    return this.builder.keep(expression);
  }

  #float(
    operation: "add" | "sub" | "mul" | "div",
    left: Term<Expression>,
    right: Term<Expression>,
  ): Expression {
    return this.#keep(op(`${this.#floats}.${operation}`, this.#term(left), this.#term(right)));
  }

  add(left: Term<Expression>, right: Term<Expression>): Expression {
    return this.#float("add", left, right);
  }

  sub(left: Term<Expression>, right: Term<Expression>): Expression {
    return this.#float("sub", left, right);
  }

  mul(left: Term<Expression>, right: Term<Expression>): Expression {
    return this.#float("mul", left, right);
  }

  div(left: Term<Expression>, right: Term<Expression>): Expression {
    return this.#float("div", left, right);
  }

  sqrt(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.sqrt`, value));
  }

  madd(a: Term<Expression>, b: Term<Expression>, c: Term<Expression>): Expression {
    if (!this.#relaxed) return this.add(this.mul(a, b), c);
    const terms = [a, b, c].map((term) => this.#term(term));
    return this.#keep(op(`${this.#floats}.relaxed_madd`, ...terms));
  }

  /** With p + e = a·b and s + d = p + c exactly, s + (d + e). Where p is infinite or no number, s is the result. */
  fma(a: Term<Expression>, b: Term<Expression>, c: Term<Expression>): Expression {
    const { high: product, low: productLow } = this.exactProduct(a, b);
    const { high: sum, low: sumLow } = this.exactSum(product, c);
    const lost = this.add(sumLow, productLow);
    return this.select(this.compare("eq", lost, lost), this.add(sum, lost), sum);
  }

  /** a·b as the sum of two floats. */
  exactProduct(
    a: Term<Expression>,
    b: Term<Expression>,
  ): { readonly high: Expression; readonly low: Expression } {
    const high = this.mul(a, b);
    const [left, right] = [this.#halves(a), this.#halves(b)];
    const corner = this.sub(this.mul(left.high, right.high), high);
    const edges = this.add(
      this.add(corner, this.mul(left.high, right.low)),
      this.mul(left.low, right.high),
    );
    return { high, low: this.add(edges, this.mul(left.low, right.low)) };
  }

  #halves(term: Term<Expression>): {
    readonly high: Term<Expression>;
    readonly low: Term<Expression>;
  } {
    const splitter = splitters[this.width];
    if (typeof term === "number") {
      const round = this.width === 32 ? Math.fround : (value: number) => value;
      const far = round(term * splitter);
      const high = round(far - round(far - term));
      return { high, low: round(term - high) };
    }
    const far = this.mul(term, splitter);
    const high = this.sub(far, this.sub(far, term));
    return { high, low: this.sub(term, high) };
  }

  /** a + b as the sum of two floats (Knuth). */
  exactSum(
    a: Term<Expression>,
    b: Term<Expression>,
  ): { readonly high: Expression; readonly low: Expression } {
    const high = this.add(a, b);
    const ofRight = this.sub(high, a);
    const ofLeft = this.sub(high, ofRight);
    return { high, low: this.add(this.sub(a, ofLeft), this.sub(b, ofRight)) };
  }

  neg(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.neg`, value));
  }

  abs(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.abs`, value));
  }

  truncate(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.trunc`, value));
  }

  floor(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.floor`, value));
  }

  /** To a whole number, ties to even. */
  nearest(value: Expression): Expression {
    return this.#keep(op(`${this.#floats}.nearest`, value));
  }

  copySign(magnitude: Term<Expression>, sign: Expression): Expression {
    const mask = splat(this.#words, signMasks[this.width]);
    return this.#keep(op("v128.bitselect", sign, this.#term(magnitude), mask));
  }

  constant(value: number): Expression {
    return this.#term(value);
  }

  compare(comparison: Comparison, left: Term<Expression>, right: Term<Expression>): Expression {
    if (comparison !== "nan")
      return this.#keep(op(`${this.#floats}.${comparison}`, this.#term(left), this.#term(right)));
    const isNan = this.compare("ne", left, left);
    return left === right ? isNan : this.or(isNan, this.compare("ne", right, right));
  }

  compareAnd(
    comparison: Comparison,
    left: Term<Expression>,
    right: Term<Expression>,
    other: Expression,
  ): Expression {
    return this.#keep(op("v128.and", this.compare(comparison, left, right), other));
  }

  or(left: Expression, right: Expression): Expression {
    return this.#keep(op("v128.or", left, right));
  }

  select(condition: Expression, ifTrue: Term<Expression>, ifFalse: Term<Expression>): Expression {
    return this.#keep(op("v128.bitselect", this.#term(ifTrue), this.#term(ifFalse), condition));
  }

  /** The pseudo-minimum gives its first operand where one is NaN. */
  clamp(value: Expression, least: number | undefined, greatest: number | undefined): Expression {
    let clamped = value;
    if (greatest !== undefined)
      clamped = this.#keep(op(`${this.#floats}.pmin`, clamped, this.#term(greatest)));
    if (least !== undefined)
      clamped = this.#keep(op(`${this.#floats}.pmax`, clamped, this.#term(least)));
    return clamped;
  }

  polynomial(x: Expression, coefficients: readonly Term<Expression>[]): Expression {
    const [first = 0, ...others] = coefficients.toReversed();
    let sum = this.#term(first);
    for (const coefficient of others) sum = this.madd(sum, x, coefficient);
    return sum;
  }

  /** Of a sum as divisor, left/right less what its second part changes. */
  quotient(left: Term<Expression>, right: Expression, rightLow?: Expression): Expression {
    const whole = this.div(left, right);
    if (rightLow === undefined) return whole;
    return this.sub(whole, this.div(this.mul(whole, rightLow), right));
  }

  reciprocal(
    right: Expression,
    rightLow: Expression,
  ): { readonly estimate: Expression; readonly correction: Expression } {
    const estimate = this.div(1, right);
    const share = this.neg(this.mul(rightLow, estimate));
    return { estimate, correction: this.mul(share, estimate) };
  }

  nearReciprocal(right: Expression): Expression {
    return this.div(1, right);
  }

  /* ---- words: of f64 signed integers in lanes of 64 bits, of which the lower half counts ---- */

  highWord(value: Expression): Expression {
    return this.width === 32 ? value : this.#shift("shr_s", value, 32);
  }

  lowWord(value: Expression): Expression {
    return value;
  }

  withHighWord(high: Expression, rest?: Expression): Expression {
    if (this.width === 32) return high;
    const placed = this.#shift("shl", high, 32);
    if (rest === undefined) return placed;
    const low = this.#keep(op("v128.and", rest, splat("i64x2", 0xffffffffn)));
    return this.or(placed, low);
  }

  #shift(operation: "shl" | "shr_s", value: Expression, amount: number): Expression {
    return this.#keep(op(`${this.#words}.${operation}`, value, i32.of(amount)));
  }

  words(operation: WordOperation, left: Term<Expression>, right: Term<Expression>): Expression {
    if (typeof right === "number" && (operation === "shl" || operation === "shr"))
      return this.#shift(operation === "shl" ? "shl" : "shr_s", this.#word(left), right);
    if (operation === "shl" || operation === "shr") throw new Error("shifts are by numbers");
    const name =
      operation === "and" || operation === "xor"
        ? (`v128.${operation}` as const)
        : (`${this.#words}.${operation}` as const);
    return this.#keep(op(name, this.#word(left), this.#word(right)));
  }

  selectWords(condition: Expression, ifTrue: number, ifFalse: number): Expression {
    return this.#keep(op("v128.bitselect", this.#word(ifTrue), this.#word(ifFalse), condition));
  }

  testWords(comparison: WordComparison, left: Expression, right: Term<Expression>): Expression {
    const name = comparison === "lt" ? "lt_s" : comparison;
    return this.#keep(op(`${this.#words}.${name}`, left, this.#word(right)));
  }

  /** In lanes of 64 bits: as the last bits of 1.5·2^52, which is taken away again. */
  floatOfWord(word: Expression): Expression {
    if (this.width === 32) return this.#keep(op("f32x4.convert_i32x4_s", word));
    const { rounder } = this.format;
    const placed = this.#keep(op("i64x2.add", word, splat("f64x2", rounder)));
    return this.sub(placed, rounder);
  }

  negateByBit(value: Expression, word: Expression, bit: number): Expression {
    const sign = this.#shift("shl", this.words("and", word, 2 ** bit), this.width - 1 - bit);
    return this.#keep(op("v128.xor", value, sign));
  }
}
