/**
 * A fact says what holds of an integer whenever the kernel runs: between what it lies, what it leaves when
 * divided, and which sizes of the launch it is below. It speaks of the *stored* value, the bits in the
 * register read in their format, so arithmetic that wraps around is no exception to it.
 *
 *   | value                               | least | greatest | congruent     | below          |
 *   |-------------------------------------|-------|----------|---------------|----------------|
 *   | 12                                  | 12    | 12       | 12            |                |
 *   | i of grid ceildiv(n, 64)            | 0     | 2²⁵ − 1  | 0 mod 1       | ceildiv(n, 64) |
 *   | 64 i                                | 0     | 2³¹ − 64 | 0 mod 64      | n              |
 *   | 64 i + 8                            | 8     | 2³¹ − 56 | 8 mod 64      |                |
 *   | 192 i, which may wrap               | −2³¹  | 2³¹ − 64 | 0 mod 64      |                |
 *   | something loaded                    | −2³¹  | 2³¹ − 1  | 0 mod 1       |                |
 *
 * Rules compute a fact in exact integers and then store it: where the interval may leave the format, the
 * value may have wrapped, which subtracts a multiple of 2^bits. Then the interval is the whole format, sizes
 * are forgotten, and the modulus keeps its power of two alone.
 */
import type { DType } from "../../formats/dtype.ts";
import { onceForEach } from "../../support/memo.ts";
import { sameSize } from "../size.ts";
import type { Size, SymbolicSize } from "../size.ts";

export interface Fact {
  readonly least: bigint;
  readonly greatest: bigint;
  /** The value leaves `residue` when divided by it; 0 where it is the residue itself. */
  readonly modulus: bigint;
  /** From 0 below the modulus, where that is not 0. */
  readonly residue: bigint;
  /** It is below each of these, whatever the launch. */
  readonly below: readonly SymbolicSize[];
  /** The size that it is, where it is one. */
  readonly size?: Size | undefined;
}

/** The integers that a format holds. */
export interface Range {
  readonly least: bigint;
  readonly greatest: bigint;
}

/** Undefined for floats, of which there are no facts. */
export const rangeOf = onceForEach(({ kind, bits }: DType): Range | undefined => {
  if (kind === "float") return undefined;
  if (kind === "bool") return { least: 0n, greatest: 1n };
  const count = 1n << BigInt(bits);
  return kind === "signed"
    ? { least: -count / 2n, greatest: count / 2n - 1n }
    : { least: 0n, greatest: count - 1n };
});

/** Every value of the range. */
export function anyOf({ least, greatest }: Range): Fact {
  return { least, greatest, modulus: 1n, residue: 0n, below: [], size: undefined };
}

export function exactly(value: bigint, below: Fact["below"] = []): Fact {
  const number = Number(value);
  const size = number >= 0 && Number.isSafeInteger(number) ? number : undefined;
  return { least: value, greatest: value, modulus: 0n, residue: value, below, size };
}

export function between(least: bigint, greatest: bigint, below: Fact["below"] = []): Fact {
  return tightened({ least, greatest, modulus: 1n, residue: 0n, below, size: undefined });
}

export function gcd(left: bigint, right: bigint): bigint {
  let divisor = left < 0n ? -left : left;
  let rest = right < 0n ? -right : right;
  while (rest !== 0n) {
    const next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  return divisor;
}

/** What is left of a value from 0 below the modulus; the value itself for the modulus 0. */
export function residueOf(value: bigint, modulus: bigint): bigint {
  if (modulus === 0n) return value;
  if (modulus === 1n) return 0n;
  const rest = value % modulus;
  return rest < 0n ? rest + modulus : rest;
}

/** The greatest power of two that divides a number which is not 0. */
export function powerOfTwoIn(value: bigint): bigint {
  return value & -value;
}

/**
 * The same fact with the ends of the interval moved to values that the congruence allows. Of a value that
 * cannot be, as in a loop that never runs, anything may be said; it is left as it came.
 */
export function tightened(fact: Fact): Fact {
  const { modulus, below, size } = fact;
  if (modulus === 0n) return exactly(fact.residue, below);
  const residue = residueOf(fact.residue, modulus);
  const least = fact.least + residueOf(residue - fact.least, modulus);
  const greatest = fact.greatest - residueOf(fact.greatest - residue, modulus);
  if (least > greatest) return anyOf(fact);
  if (least === greatest) return exactly(least, below);
  // Written out: rules run for every scalar of a kernel, and a copy of what has many shapes takes longer than they do.
  return { least, greatest, modulus, residue, below, size };
}

/** The fact of the exact value once it is stored in a format of this range. */
export function stored(exact: Fact, range: Range): Fact {
  if (exact.least >= range.least && exact.greatest <= range.greatest) return tightened(exact);
  const count = range.greatest - range.least + 1n;
  const power = exact.modulus === 0n ? count : powerOfTwoIn(exact.modulus);
  const modulus = power < count ? power : count;
  const { least, greatest } = range;
  return tightened({
    least,
    greatest,
    modulus,
    residue: exact.residue,
    below: [],
    size: undefined,
  });
}

/** What holds of a value of which one of the two facts holds. */
export function either(left: Fact, right: Fact): Fact {
  const same = left.size !== undefined && right.size !== undefined;
  return tightened({
    least: left.least < right.least ? left.least : right.least,
    greatest: left.greatest > right.greatest ? left.greatest : right.greatest,
    modulus: gcd(gcd(left.modulus, right.modulus), left.residue - right.residue),
    residue: left.residue,
    below: left.below.filter((bound) => right.below.some((other) => sameSize(bound, other))),
    size: same && sameSize(left.size, right.size) ? left.size : undefined,
  });
}

/** The constant that the value is, if it is one. */
export function constantOf({ modulus, residue }: Fact): bigint | undefined {
  return modulus === 0n ? residue : undefined;
}

/** Divides the value; 0 where it is 0, which everything divides. */
export function divisorOf({ modulus, residue }: Fact): bigint {
  return gcd(modulus, residue);
}

/** Whether the fact allows the value, for a launch in which `evaluate` says what sizes are. */
export function allows(fact: Fact, value: bigint, evaluate: (size: Size) => number): boolean {
  return (
    value >= fact.least &&
    value <= fact.greatest &&
    residueOf(value, fact.modulus) === fact.residue &&
    fact.below.every((bound) => value < BigInt(evaluate(bound))) &&
    (fact.size === undefined || value === BigInt(evaluate(fact.size)))
  );
}
