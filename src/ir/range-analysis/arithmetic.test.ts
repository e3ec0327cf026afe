/**
 * Facts against evaluation: whatever values the facts of the operands allow, the fact of the result allows
 * what the function gives. All facts of 4 bits, which are the progressions a, a + d, … b, and random ones of 8.
 */
import { describe, expect, test } from "vitest";
import { i4, i8, u4, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { Random } from "../../support/random.ts";
import { binaryFact, unaryFact } from "./arithmetic.ts";
import { allows, between, either, exactly, rangeOf, stored, tightened } from "./fact.ts";
import type { Fact, Range } from "./fact.ts";

interface Case {
  readonly fact: Fact;
  /** The values that it allows. */
  readonly values: readonly number[];
}

function progression(first: number, last: number, step: number): Case {
  const values: number[] = [];
  for (let value = first; value <= last; value += step) values.push(value);
  const fact = tightened({
    least: BigInt(first),
    greatest: BigInt(last),
    modulus: BigInt(step),
    residue: BigInt(first),
    below: [],
  });
  return { fact, values };
}

function required(dtype: DType): Range {
  const range = rangeOf(dtype);
  if (range === undefined) throw new Error(`${dtype.name} has no range`);
  return range;
}

function everyFact(dtype: DType): readonly Case[] {
  const range = required(dtype);
  const [least, greatest] = [Number(range.least), Number(range.greatest)];
  const cases: Case[] = [];
  for (let first = least; first <= greatest; first += 1) {
    cases.push({ fact: exactly(BigInt(first)), values: [first] });
    for (let last = first + 1; last <= greatest; last += 1)
      for (let step = 1; step <= last - first; step += 1)
        if ((last - first) % step === 0) cases.push(progression(first, last, step));
  }
  return cases;
}

/** What the language means, in plain numbers of few bits. */
function meaning(fn: BinaryFunction, a: number, b: number, { bits, kind }: DType): number {
  const signed = kind === "signed";
  const amount = b < 0 || b >= bits ? bits : b;
  return wrapped(exact[fn]?.(a, b, amount, bits) ?? 0, bits, signed);
}

type Exact = (a: number, b: number, amount: number, bits: number) => number;

const exact: { readonly [F in BinaryFunction]?: Exact } = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => (b === 0 ? -1 : Math.trunc(a / b)),
  rem: (a, b) => (b === 0 ? a : a - b * Math.trunc(a / b)),
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, _, amount) => a * 2 ** amount,
  shr: (a, _, amount) => Math.floor(a / 2 ** amount),
  pow: () => 0,
  mul_high: (a, b, _, bits) => Math.floor((a * b) / 2 ** bits),
};

function wrapped(value: number, bits: number, signed: boolean): number {
  const count = 2 ** bits;
  const low = ((value % count) + count) % count;
  return signed && low >= count / 2 ? low - count : low;
}

const commutative = ["add", "mul", "min", "max", "and", "or", "xor", "mul_high"] as const;
const others = ["sub", "div", "rem", "shl", "shr"] as const;

/** Throws where the fact does not allow a value. Written out, since it runs for millions. */
function requireAllowed(fact: Fact, values: Iterable<number>, text: () => string): void {
  const [least, greatest] = [Number(fact.least), Number(fact.greatest)];
  const [modulus, residue] = [Number(fact.modulus), Number(fact.residue)];
  for (const value of values) {
    const rest = modulus === 0 ? value : ((value % modulus) + modulus) % modulus;
    if (value < least || value > greatest || rest !== residue)
      throw new Error(`${text()}: ${value} is not in ${factText(fact)}`);
  }
}

function factText({ least, greatest, modulus, residue }: Fact): string {
  return `[${least}, ${greatest}] ${residue} mod ${modulus}`;
}

describe.each([i4, u4])("all facts of $name", (dtype) => {
  const facts = everyFact(dtype);
  const range = required(dtype);
  const offset = Number(range.least);
  const [count] = [2 ** dtype.bits];

  test("there are as many as progressions", () => {
    expect(facts).toHaveLength(330);
  });

  // Unsigned formats differ where a number may be negative on the way, or bits are read.
  const functions: readonly BinaryFunction[] =
    dtype === i4
      ? [...commutative, ...others]
      : ["sub", "div", "rem", "and", "or", "xor", "shr", "mul_high"];
  test.each(functions)("%s", (fn) => {
    const halved = (commutative as readonly string[]).includes(fn);
    // The results of one left value with each right fact, as a set of bits.
    const images = Array.from({ length: count }, (_, left) =>
      facts.map(({ values }) =>
        values.reduce(
          (set, right) => set | (1 << (meaning(fn, left + offset, right, dtype) - offset)),
          0,
        ),
      ),
    );
    facts.forEach((left, position) => {
      const ofLeft = left.values.map((a) => images[a - offset] ?? []);
      facts.forEach((right, other) => {
        if (halved && other < position) return;
        let set = 0;
        for (const image of ofLeft) set |= image[other] ?? 0;
        const results: number[] = [];
        for (let bit = 0; bit < count; bit += 1) if ((set >> bit) & 1) results.push(bit + offset);
        const fact = binaryFact(fn, left.fact, right.fact, range);
        requireAllowed(
          fact,
          results,
          () => `${fn} of ${factText(left.fact)} and ${factText(right.fact)}`,
        );
      });
    });
  });

  const unary: { readonly [F in UnaryFunction]?: (value: number) => number } = {
    neg: (value) => -value,
    abs: Math.abs,
    sign: Math.sign,
    not: (value) => ~value,
    clz: (value) => Math.clz32(value & (count - 1)) - (32 - dtype.bits),
    popcount: (value) => (value & (count - 1)).toString(2).replaceAll("0", "").length,
  };

  test.each(Object.entries(unary))("%s", (fn, compute) => {
    for (const { fact, values } of facts)
      requireAllowed(
        unaryFact(fn as UnaryFunction, fact, range),
        values.map((value) => wrapped(compute(value), dtype.bits, dtype.kind === "signed")),
        () => `${fn} of ${factText(fact)}`,
      );
  });

  test("one of two", () => {
    for (const left of facts)
      for (const right of facts)
        requireAllowed(
          either(left.fact, right.fact),
          [...left.values, ...right.values],
          () => `${factText(left.fact)} or ${factText(right.fact)}`,
        );
  });

  test("stored in fewer bits", () => {
    for (const wide of [i8, u8])
      for (let seed = 0; seed < 300; seed += 1) {
        const { fact, values } = randomFact(new Random(seed), wide);
        requireAllowed(
          stored(fact, range),
          values.map((value) => wrapped(value, dtype.bits, dtype.kind === "signed")),
          () => `${factText(fact)} in ${dtype.name}`,
        );
      }
  });
});

function randomFact(random: Random, dtype: DType): Case {
  const range = required(dtype);
  const [least, count] = [Number(range.least), 2 ** dtype.bits];
  const first = least + random.below(count);
  const step = 1 + random.below(random.pick([4, 16, 64]));
  const steps = random.below(1 + Math.min(24, Math.floor((least + count - 1 - first) / step)));
  return steps === 0
    ? { fact: exactly(BigInt(first)), values: [first] }
    : progression(first, first + steps * step, step);
}

describe.each([i8, u8])("random facts of $name", (dtype) => {
  test.each([...commutative, ...others])("%s", (fn) => {
    for (let seed = 0; seed < (takesAll ? 1500 : 300); seed += 1) {
      const random = new Random(seed);
      const [left, right] = [randomFact(random, dtype), randomFact(random, dtype)];
      const results = left.values.flatMap((a) => right.values.map((b) => meaning(fn, a, b, dtype)));
      requireAllowed(
        binaryFact(fn, left.fact, right.fact, required(dtype)),
        new Set(results),
        () => `seed ${seed}: ${fn} of ${factText(left.fact)} and ${factText(right.fact)}`,
      );
    }
  });
});

describe("what is kept", () => {
  const i32Range = { least: -(2n ** 31n), greatest: 2n ** 31n - 1n };
  const index = between(0n, 2n ** 25n - 1n);
  test("a multiple that cannot wrap keeps its interval and its factor", () => {
    expect(factText(binaryFact("mul", index, exactly(64n), i32Range))).toBe(
      "[0, 2147483584] 0 mod 64",
    );
  });

  test("one that may wrap keeps its power of two", () => {
    expect(factText(binaryFact("mul", index, exactly(192n), i32Range))).toBe(
      "[-2147483648, 2147483584] 0 mod 64",
    );
  });

  test("low bits that are known on both sides are known of their conjunction, be they set or not", () => {
    const eights = between(0n, 2n ** 20n - 1n);
    const [left, right] = [3n, 6n].map((rest) =>
      binaryFact("add", binaryFact("mul", eights, exactly(8n), i32Range), exactly(rest), i32Range),
    );
    if (left === undefined || right === undefined) throw new Error("two sides");
    expect(factText(binaryFact("and", left, right, i32Range))).toMatch(/ 2 mod 8$/);
  });

  test("a constant that wraps is a constant", () => {
    const greatest = exactly(2n ** 31n - 1n);
    expect(factText(binaryFact("add", greatest, exactly(1n), i32Range))).toBe(
      "[-2147483648, -2147483648] -2147483648 mod 0",
    );
  });

  test("a fact that nothing fulfils allows nothing but may be reckoned with", () => {
    const never = between(5n, 2n);
    expect(allows(never, 3n, () => 0)).toBe(false);
    expect(() => binaryFact("div", exactly(1n), never, i32Range)).not.toThrow();
  });
});
