/**
 * What sequences that compute functions are written with: IEEE arithmetic on values of type T, which are registers of PTX or
 * vectors of WebAssembly. A sequence is one text for all of them:
 *
 *   f.madd(f.polynomial(square, curve), x, x)        fma.rn.f32 %r …        f32x4.mul, f32x4.add
 *
 * Numbers stand for constants. Words are the 32-bit integers of sign and exponent: all the bits of f32, the upper half of f64.
 */
export type Width = 32 | 64;
export type ByWidth<T> = { readonly [W in Width]: T };

/** A value, or a number that becomes a constant. */
export type Term<T extends object> = T | number;

/** What a width's bits look like. */
export interface Format {
  /** Bits of the fraction. */
  readonly fraction: number;
  /** The exponent of 1. */
  readonly bias: number;
  /** Bits of the fraction in the word that holds the exponent. */
  readonly place: number;
  /** Adding and taking away this rounds to an integer, which is in the low bits in between. */
  readonly rounder: number;
}

export const floatLayouts: ByWidth<Format> = {
  32: { fraction: 23, bias: 127, place: 23, rounder: 1.5 * 2 ** 23 },
  64: { fraction: 52, bias: 1023, place: 20, rounder: 1.5 * 2 ** 52 },
};

export type Comparison = "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "nan";

export type WordOperation = "add" | "sub" | "and" | "xor" | "shl" | "shr";
export type WordComparison = "eq" | "ne" | "lt";

export interface FloatArithmetic<T extends object> {
  /** The width of the numbers that are computed with. */
  readonly width: Width;
  readonly format: Format;
  /** The width that results are rounded to: sequences for f32 are short also where they compute in f64. */
  readonly precision: Width;
  /** Whether `fma` is one instruction, so that nothing cheaper is worth looking for. */
  readonly hasFma: boolean;

  add(left: Term<T>, right: Term<T>): T;
  sub(left: Term<T>, right: Term<T>): T;
  mul(left: Term<T>, right: Term<T>): T;
  /** The correctly rounded quotient of any numbers. */
  div(left: Term<T>, right: Term<T>): T;
  sqrt(value: T): T;
  /** a·b + c rounded once, for what depends on that. */
  fma(a: Term<T>, b: Term<T>, c: Term<T>): T;
  /** a·b + c rounded once or twice, whichever is cheaper. */
  madd(a: Term<T>, b: Term<T>, c: Term<T>): T;
  neg(value: T): T;
  abs(value: T): T;
  /** Without its fraction. */
  truncate(value: T): T;
  /** The magnitude of one number with the sign of another. */
  copySign(magnitude: Term<T>, sign: T): T;
  constant(value: number): T;
  compare(comparison: Comparison, left: Term<T>, right: Term<T>): T;
  /** As `compare`, where another condition holds too. */
  compareAnd(comparison: Comparison, left: Term<T>, right: Term<T>, other: T): T;
  select(condition: T, ifTrue: Term<T>, ifFalse: Term<T>): T;
  /** The nearer end for numbers beyond the range; NaN stays. */
  clamp(value: T, least: number | undefined, greatest: number | undefined): T;
  /** c0 + c1·x + c2·x² + …, by Horner's rule; coefficients may be values. */
  polynomial(x: T, coefficients: readonly Term<T>[]): T;
  /** left / right, within 0.51 units, for numbers and a quotient that are far from the format's ends. The divisor may be a sum. */
  quotient(left: Term<T>, right: T, rightLow?: T): T;
  /** 1 / (right + rightLow) as the sum of an estimate and a small correction. */
  reciprocal(right: T, rightLow: T): { readonly estimate: T; readonly correction: T };
  /** 1 / right to about one unit. */
  nearReciprocal(right: T): T;
  /** The word with sign and exponent. */
  highWord(value: T): T;
  /** The other one; of f32 all bits. */
  lowWord(value: T): T;
  /** The float with this word of sign and exponent, and the other word of `rest`, or zero. */
  withHighWord(high: T, rest?: T): T;
  /** Shifts are by numbers; `shr` keeps the sign. */
  words(operation: WordOperation, left: Term<T>, right: Term<T>): T;
  selectWords(condition: T, ifTrue: number, ifFalse: number): T;
  testWords(comparison: WordComparison, left: T, right: Term<T>): T;
  /** A signed word as a float. */
  floatOfWord(word: T): T;
  /** The number with its sign changed where a bit of a word is set. */
  negateByBit(value: T, word: T, bit: number): T;
}

/** An angle x as n·π/2 + rest. */
export interface Angle<T> {
  /** A word: n, in its two low bits. */
  readonly quarters: T;
  readonly rest: T;
  /** What `rest` is too large by, +0 where that is not known. */
  readonly excess: T;
}
