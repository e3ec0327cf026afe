/**
 * Division by a number that is known now, without dividing: the assembler leaves divisions as they are,
 * about twenty instructions each. Quotients are cut towards zero.
 *
 *   | divisor d           | dividend n        | quotient                              | remainder            |
 *   |---------------------|-------------------|---------------------------------------|----------------------|
 *   | 2^k                 | from 0 on         | n >> k                                | n & (2^k − 1)        |
 *   | 2^k                 | any sign          | (n + bias) >> k, bias = 2^k − 1 if n < 0 | ((n + bias) & (2^k − 1)) − bias |
 *   | another             | from 0 on         | high half of n · m, >> s              | n − q · d            |
 *   | another             | any sign          | the same, and 1 more if n < 0         | n − q · d            |
 *   | −d                  |                   | −(n / d)                              | that by d            |
 *   | 0                   |                   | all bits set                          | n                    |
 *
 * m is 2^p / d rounded up, for p = bits + s: too large by less than 1, it moves the product by less than n / 2^p,
 * which no quotient notices as long as n · (m · d − 2^p) < 2^p. The least such s is taken; where m has a bit
 * more than a register, its lowest 2^bits are added by hand.
 */
import type { Code } from "../../function-builder.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";

/** A divisor, and between what the dividend lies. */
export interface KnownDivision {
  readonly by: bigint;
  readonly least: bigint;
  readonly greatest: bigint;
}

type Operation = "add" | "sub" | "mul.lo" | "mul.hi.s" | "mul.hi.u" | "shr.s" | "shr.u" | "and";

/** Instructions on registers of `bits` bits that wrap around; values of type T are registers. */
export interface WordArithmetic<T> {
  readonly bits: number;
  readonly constant: (value: bigint) => T;
  readonly make: (operation: Operation, left: T, right: T | bigint) => T;
  readonly negate: (value: T) => T;
}

export function quotientBy<T>(words: WordArithmetic<T>, value: T, division: KnownDivision): T {
  const { by } = division;
  if (by === 0n) return words.constant(-1n);
  if (by < 0n) return words.negate(quotientBy(words, value, { ...division, by: -by }));
  if (by === 1n) return value;
  if (isLess(division, by)) return words.constant(0n);
  if (division.least >= 0n) return naturalQuotient(words, value, by, division.greatest);
  const power = exponentOf(by);
  return power === undefined
    ? signedQuotient(words, value, by)
    : words.make("shr.s", words.make("add", value, biasOf(words, value, power)), power);
}

export function remainderBy<T>(words: WordArithmetic<T>, value: T, division: KnownDivision): T {
  const by = division.by < 0n ? -division.by : division.by;
  if (by === 0n) return value;
  if (by === 1n) return words.constant(0n);
  if (isLess(division, by)) return value;
  const power = exponentOf(by);
  if (power !== undefined) {
    if (division.least >= 0n) return words.make("and", value, by - 1n);
    const bias = biasOf(words, value, power);
    const low = words.make("and", words.make("add", value, bias), by - 1n);
    return words.make("sub", low, bias);
  }
  const quotient = quotientBy(words, value, { ...division, by });
  return words.make("sub", value, words.make("mul.lo", quotient, by));
}

/** Whether the magnitude of the dividend is less than a number. */
function isLess({ least, greatest }: KnownDivision, by: bigint): boolean {
  return greatest < by && least > -by;
}

/** k where the number is 2^k. */
function exponentOf(value: bigint): bigint | undefined {
  return (value & (value - 1n)) === 0n ? BigInt(value.toString(2).length - 1) : undefined;
}

/** 2^power − 1 for a negative value, else 0. */
function biasOf<T>(words: WordArithmetic<T>, value: T, power: bigint): T {
  const bits = BigInt(words.bits);
  const sign = power === 1n ? value : words.make("shr.s", value, bits - 1n);
  return words.make("shr.u", sign, bits - power);
}

interface Reciprocal {
  readonly multiplier: bigint;
  /** By how much the high half of the product is shifted. */
  readonly shift: bigint;
}

/** For dividends whose magnitude is at most `greatest`. */
function reciprocalOf(bits: number, by: bigint, greatest: bigint): Reciprocal {
  for (let shift = 0n; ; shift += 1n) {
    const power = 1n << (BigInt(bits) + shift);
    const multiplier = power / by + 1n;
    if (greatest * (multiplier * by - power) < power) return { multiplier, shift };
  }
}

function naturalQuotient<T>(words: WordArithmetic<T>, value: T, by: bigint, greatest: bigint): T {
  const exponent = exponentOf(by);
  if (exponent !== undefined) return words.make("shr.u", value, exponent);
  const { multiplier, shift } = reciprocalOf(words.bits, by, greatest);
  const whole = 1n << BigInt(words.bits);
  if (multiplier < whole)
    return shifted(words, "shr.u", words.make("mul.hi.u", value, multiplier), shift);
  // (n · m) >> bits is n and the high half together, which may carry: half of the one is added to the other.
  const high = words.make("mul.hi.u", value, multiplier - whole);
  const half = words.make("shr.u", words.make("sub", value, high), 1n);
  return shifted(words, "shr.u", words.make("add", half, high), shift - 1n);
}

function signedQuotient<T>(words: WordArithmetic<T>, value: T, by: bigint): T {
  const bits = BigInt(words.bits);
  const { multiplier, shift } = reciprocalOf(words.bits, by, 1n << (bits - 1n));
  const negative = multiplier >= 1n << (bits - 1n);
  const factor = negative ? multiplier - (1n << bits) : multiplier;
  const high = words.make("mul.hi.s", value, factor);
  const sum = negative ? words.make("add", high, value) : high;
  const quotient = shifted(words, "shr.s", sum, shift);
  return words.make("add", quotient, words.make("shr.u", value, bits - 1n));
}

function shifted<T>(
  words: WordArithmetic<T>,
  operation: "shr.s" | "shr.u",
  value: T,
  by: bigint,
): T {
  return by === 0n ? value : words.make(operation, value, by);
}

/** Instructions of 32 or 64 bits. */
export function registerArithmetic(code: Code, bits: 32 | 64): WordArithmetic<Register> {
  const type = `b${bits}` as const;
  const opcodes: { readonly [O in Operation]: string } = {
    add: `add.s${bits}`,
    sub: `sub.s${bits}`,
    "mul.lo": `mul.lo.s${bits}`,
    "mul.hi.s": `mul.hi.s${bits}`,
    "mul.hi.u": `mul.hi.u${bits}`,
    "shr.s": `shr.s${bits}`,
    "shr.u": `shr.u${bits}`,
    and: `and.b${bits}`,
  };
  const operand = (value: Register | bigint): Operand =>
    typeof value === "bigint" ? integer(value) : value;
  return {
    bits,
    constant: (value) => code.make(type, `mov.${type}`, integer(value)),
    make: (operation, left, right) => code.make(type, opcodes[operation], left, operand(right)),
    negate: (value) => code.make(type, `neg.s${bits}`, value),
  };
}

/** b32: the quotient of an index, which is from 0 below 2³¹. */
export function indexQuotient(code: Code, index: Register, by: number): Register {
  return quotientBy(registerArithmetic(code, 32), index, indexDivision(by));
}

/** b32: the remainder of an index, which is from 0 below 2³¹. */
export function indexRemainder(code: Code, index: Register, by: number): Register {
  return remainderBy(registerArithmetic(code, 32), index, indexDivision(by));
}

function indexDivision(by: number): KnownDivision {
  return { by: BigInt(by), least: 0n, greatest: 2n ** 31n - 1n };
}
