/**
 * Facts of results, from facts of operands: one rule for each function on integers. A rule computes in
 * exact integers and knows nothing of wrapping, which `stored` sees to behind it.
 *
 *   [0, 9], 0 mod 3   plus    [1, 5], 1 mod 4       [1, 14], 0 mod 1
 *   [0, 9], 0 mod 3   times   exactly 4             [0, 36], 0 mod 12
 *   [−7, 9]           over    exactly −2            [−4, 3]
 *   [−7, 9]           over    [0, 2]                [−7, 9]     a quotient by 0 is −1
 *   [−7, 9]           modulo  [0, 4]                [−7, 9]     a remainder by 0 is the dividend
 *   [−7, 9]           and     exactly 6             [0, 6], 0 mod 2
 */
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import { multiplySizes } from "../size.ts";
import type { SymbolicSize } from "../size.ts";
import {
  anyOf,
  between,
  constantOf,
  divisorOf,
  either,
  exactly,
  gcd,
  powerOfTwoIn,
  residueOf,
  stored,
  tightened,
} from "./fact.ts";
import type { Fact, Range } from "./fact.ts";
import {
  isPositiveFor,
  leftOver,
  productBelow,
  quotientBelow,
  sizeOf,
  sizeOfSum,
  sumBelow,
} from "./sizes.ts";

type BinaryRule = (left: Fact, right: Fact, range: Range) => Fact;
type UnaryRule = (source: Fact, range: Range) => Fact;

function least(...values: readonly bigint[]): bigint {
  return values.reduce((a, b) => (b < a ? b : a));
}

function greatest(...values: readonly bigint[]): bigint {
  return values.reduce((a, b) => (b > a ? b : a));
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function add(left: Fact, right: Fact): Fact {
  return {
    least: left.least + right.least,
    greatest: left.greatest + right.greatest,
    modulus: gcd(left.modulus, right.modulus),
    residue: left.residue + right.residue,
    below: [...sumBelow(left, right), ...sumBelow(right, left)],
    size: left.least + right.least < 0n ? undefined : sizeOfSum(sizeOf(left), sizeOf(right)),
  };
}

/** Where what is taken away lies below a size, so much is left at least, and it may lie below that size itself. */
function subtract(left: Fact, right: Fact): Fact {
  const difference = add(left, negate(right));
  const rests = leftOver(left, right);
  const low = greatest(difference.least, ...rests.map((rest) => rest.least));
  const taken = low < 0n ? undefined : sizeOf(right);
  return {
    ...difference,
    least: low,
    below: [...difference.below, ...rests.flatMap((rest) => rest.below)],
    size: taken === undefined ? undefined : sizeOfSum(sizeOf(left), multiplySizes(-1, taken)),
  };
}

function negate(source: Fact): Fact {
  return {
    least: -source.greatest,
    greatest: -source.least,
    modulus: source.modulus,
    residue: -source.residue,
    below: [],
    size: undefined,
  };
}

function multiply(left: Fact, right: Fact): Fact {
  const corners = [
    left.least * right.least,
    left.least * right.greatest,
    left.greatest * right.least,
    left.greatest * right.greatest,
  ];
  const m = left.modulus;
  const n = right.modulus;
  const sized = left.size !== undefined && right.size !== undefined;
  return {
    least: least(...corners),
    greatest: greatest(...corners),
    modulus: gcd(gcd(m * n, m * right.residue), n * left.residue),
    residue: left.residue * right.residue,
    below: [...scaledBelow(left, right), ...scaledBelow(right, left)],
    size: sized ? multiplySizes(left.size, right.size) : undefined,
  };
}

function scaledBelow(value: Fact, factor: Fact): readonly SymbolicSize[] {
  return factor.size === undefined || factor.least < 1n ? [] : productBelow(value, factor.size);
}

/** The divisor without 0, where the dividend says that it is not 0. */
function knownDivisor(dividend: Fact, divisor: Fact): Fact {
  if (divisor.size === undefined || divisor.least > 0n) return divisor;
  return isPositiveFor(dividend, divisor.size) ? tightened({ ...divisor, least: 1n }) : divisor;
}

/** The values at the ends of a divisor's parts below and above 0; none where it is 0. */
function divisorEnds({ least: low, greatest: high }: Fact): readonly bigint[] {
  const below = low < 0n ? [low, least(high, -1n)] : [];
  const above = high > 0n ? [greatest(low, 1n), high] : [];
  return [...below, ...above];
}

function includesZero({ least: low, greatest: high, modulus, residue }: Fact): boolean {
  return low <= 0n && high >= 0n && residueOf(0n, modulus) === residue;
}

function divide(left: Fact, given: Fact, range: Range): Fact {
  const right = knownDivisor(left, given);
  // Quotients are monotonic in the dividend, and in the divisor on either side of 0.
  const corners: bigint[] = [];
  for (const by of divisorEnds(right)) corners.push(left.least / by, left.greatest / by);
  // Quotients by zero have all bits set.
  if (includesZero(right)) corners.push(range.least < 0n ? -1n : range.greatest);
  if (corners.length === 0) return anyOf(range);
  const positive = right.least > 0n && right.size !== undefined;
  return {
    least: least(...corners),
    greatest: greatest(...corners),
    ...quotientCongruence(left, constantOf(right)),
    below: positive ? quotientBelow(left, right.size) : [],
  };
}

/** Multiples of the divisor are divided; from 0 on, what lies between two multiples too. */
function quotientCongruence(
  { modulus, residue, least: low }: Fact,
  by: bigint | undefined,
): Pick<Fact, "modulus" | "residue"> {
  if (by === undefined || by === 0n) return { modulus: 1n, residue: 0n };
  const whole = modulus % by === 0n && (residue % by === 0n || (low >= 0n && by > 0n));
  if (!whole) return { modulus: 1n, residue: 0n };
  return { modulus: magnitude(modulus / by), residue: residue / by };
}

function remainder(left: Fact, given: Fact): Fact {
  const right = knownDivisor(left, given);
  const most = greatest(magnitude(right.least), magnitude(right.greatest)) - 1n;
  const bounded: Fact = {
    least: left.least < 0n ? greatest(left.least, -most) : 0n,
    greatest: left.greatest > 0n ? least(left.greatest, most) : 0n,
    modulus: gcd(left.modulus, divisorOf(right)),
    residue: left.residue,
    below: left.least < 0n ? [] : left.below,
  };
  if (left.least >= 0n && left.greatest < right.least) return left;
  if (includesZero(right)) return most < 0n ? left : either(tightened(bounded), left);
  const { size } = right;
  if (size === undefined || typeof size === "number" || left.least < 0n || right.least < 1n)
    return bounded;
  return { ...bounded, below: [...bounded.below, size] };
}

function minimum(left: Fact, right: Fact): Fact {
  return {
    ...either(left, right),
    least: least(left.least, right.least),
    greatest: least(left.greatest, right.greatest),
    below: [...left.below, ...right.below],
  };
}

function maximum(left: Fact, right: Fact): Fact {
  return {
    ...either(left, right),
    least: greatest(left.least, right.least),
    greatest: greatest(left.greatest, right.greatest),
  };
}

/** How many low bits of a value are known: all that its modulus fixes, as a power of two. */
function knownBits({ modulus }: Fact, range: Range): bigint {
  const all = range.greatest - range.least + 1n;
  return modulus === 0n ? all : least(all, powerOfTwoIn(modulus));
}

/** The low bits of a bitwise function of two values, as far as both are known. */
function lowBits(
  left: Fact,
  right: Fact,
  range: Range,
  combine: (left: bigint, right: bigint) => bigint,
): Pick<Fact, "modulus" | "residue"> {
  const modulus = least(knownBits(left, range), knownBits(right, range));
  return { modulus, residue: combine(left.residue, right.residue) };
}

function and(left: Fact, right: Fact, range: Range): Fact {
  const sides = [left, right].filter((side) => side.least >= 0n);
  const bits = lowBits(left, right, range, (a, b) => a & b);
  // A low bit that is 0 on one side is 0.
  const [clear = 1n] = [left, right]
    .map((side) =>
      divisorOf(side) === 0n ? knownBits(side, range) : powerOfTwoIn(divisorOf(side)),
    )
    .sort((a, b) => (a < b ? 1 : -1));
  return {
    least: sides.length > 0 ? 0n : range.least,
    greatest:
      sides.length > 0
        ? least(...sides.map((side) => side.greatest))
        : greatest(left.greatest, right.greatest),
    ...(clear > bits.modulus ? { modulus: clear, residue: 0n } : bits),
    below: sides.flatMap((side) => side.below),
  };
}

/** All values of the bits that either side may have; the whole range where a side may be negative. */
function spread(left: Fact, right: Fact, range: Range): Range {
  if (left.least < 0n || right.least < 0n) return range;
  const top = greatest(left.greatest, right.greatest).toString(2).length;
  return { least: 0n, greatest: least(range.greatest, (1n << BigInt(top)) - 1n) };
}

function or(left: Fact, right: Fact, range: Range): Fact {
  const ends = spread(left, right, range);
  const low = ends.least < 0n ? ends.least : greatest(left.least, right.least);
  const bits = lowBits(left, right, range, (a, b) => a | b);
  return { ...ends, least: low, ...bits, below: [] };
}

function xor(left: Fact, right: Fact, range: Range): Fact {
  const bits = lowBits(left, right, range, (a, b) => a ^ b);
  return { ...spread(left, right, range), ...bits, below: [] };
}

/** The number of bits of the range. */
function width({ least: low, greatest: high }: Range): bigint {
  return BigInt((high - low).toString(2).length);
}

function shiftLeft(left: Fact, right: Fact, range: Range): Fact {
  const by = constantOf(right);
  if (by === undefined) return anyOf(range);
  return by < 0n || by >= width(range) ? exactly(0n) : multiply(left, exactly(1n << by));
}

/** Shifts to the right round down. */
function shiftRight(left: Fact, right: Fact, range: Range): Fact {
  const given = constantOf(right);
  if (given === undefined)
    return between(least(left.least, 0n), greatest(left.greatest, left.least < 0n ? -1n : 0n));
  const by = given < 0n || given >= width(range) ? width(range) : given;
  const scale = 1n << by;
  const whole = left.modulus % scale === 0n;
  return {
    least: left.least >> by,
    greatest: left.greatest >> by,
    modulus: whole ? left.modulus / scale : 1n,
    residue: whole ? left.residue >> by : 0n,
    below: quotientBelow(left, Number(scale)),
  };
}

function highHalf(left: Fact, right: Fact, range: Range): Fact {
  const product = multiply(left, right);
  const by = width(range);
  return between(product.least >> by, product.greatest >> by);
}

const binaryRules: { readonly [F in BinaryFunction]?: BinaryRule } = {
  add,
  sub: subtract,
  mul: multiply,
  div: divide,
  rem: remainder,
  min: minimum,
  max: maximum,
  and,
  or,
  xor,
  shl: shiftLeft,
  shr: shiftRight,
  mul_high: highHalf,
};

/** Of functions that have no rule, as `pow`, nothing is known. */
export function binaryFact(fn: BinaryFunction, left: Fact, right: Fact, range: Range): Fact {
  return stored(binaryRules[fn]?.(left, right, range) ?? anyOf(range), range);
}

const bitCount: UnaryRule = (_, range) => between(0n, width(range));

const unaryRules: { readonly [F in UnaryFunction]?: UnaryRule } = {
  neg: negate,
  abs: (source) => {
    if (source.least >= 0n) return source;
    if (source.greatest <= 0n) return negate(source);
    return { ...either(source, negate(source)), least: 0n };
  },
  sign: (source) =>
    between(
      source.least > 0n ? 1n : source.least < 0n ? -1n : 0n,
      source.greatest > 0n ? 1n : source.greatest < 0n ? -1n : 0n,
    ),
  // Every bit is turned over: −1 − x, or the greatest less x where nothing is negative.
  not: (source, range) => add(exactly(range.least + range.greatest), negate(source)),
  clz: bitCount,
  popcount: bitCount,
};

export function unaryFact(fn: UnaryFunction, source: Fact, range: Range): Fact {
  return stored(unaryRules[fn]?.(source, range) ?? anyOf(range), range);
}
