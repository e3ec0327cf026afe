/** Arithmetic in every rounding, held against exact fractions. */
import { expect, test } from "vitest";
import { exact, exactFormat, roundExact } from "../../../test/support/exact-rounding.ts";
import type { Exact, Mode } from "../../../test/support/exact-rounding.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { Random } from "../../support/random.ts";
import { allocateElements, dtypes } from "../dtype.ts";
import type { DType } from "../dtype.ts";
import { readElement, writeElement } from "../values.ts";
import { acceptsFlush, acceptsRounding, directedRoundings, roundedFunctions } from "./functions.ts";
import type { RoundedFunction, RoundingManner } from "./functions.ts";
import { roundedElements } from "./rounded.ts";

const seed = 7;

function sum(a: Exact, b: Exact): Exact {
  return {
    numerator: a.numerator * b.denominator + b.numerator * a.denominator,
    denominator: a.denominator * b.denominator,
  };
}

function product(a: Exact, b: Exact): Exact {
  return {
    numerator: a.numerator * b.numerator,
    denominator: a.denominator * b.denominator,
  };
}

function quotient(a: Exact, b: Exact): Exact {
  const sign = b.numerator < 0n ? -1n : 1n;
  return {
    numerator: sign * a.numerator * b.denominator,
    denominator: sign * a.denominator * b.numerator,
  };
}

const isNegative = (value: number): boolean => value < 0 || Object.is(value, -0);

/** IEEE 754, 6.3: a sum of zero has the sign of its terms where they agree, else a minus where it is rounded down. */
function zeroOf(terms: readonly [boolean, boolean], mode: Mode): number {
  const [first, second] = terms;
  return (first === second ? first : mode === "down") ? -0 : 0;
}

type Reference = (
  operands: readonly [number, number, number],
  finish: (value: Exact, zero: () => number) => number,
  mode: Mode,
) => number;

/** Of finite operands; a quotient's divisor and a root's operand are not zero. */
const references: { readonly [F in RoundedFunction]: Reference } = {
  add: ([a, b], finish, mode) =>
    finish(sum(exact(a), exact(b)), () => zeroOf([isNegative(a), isNegative(b)], mode)),
  sub: ([a, b], finish, mode) =>
    finish(sum(exact(a), exact(-b)), () => zeroOf([isNegative(a), !isNegative(b)], mode)),
  mul: ([a, b], finish) => finish(product(exact(a), exact(b)), () => a * b),
  div: ([a, b], finish) => finish(quotient(exact(a), exact(b)), () => a / b),
  sqrt: ([a], finish) => finish({ ...exact(a), root: true }, () => a),
  fma: ([a, b, c], finish, mode) =>
    finish(sum(product(exact(a), exact(b)), exact(c)), () =>
      zeroOf([isNegative(a) !== isNegative(b), isNegative(c)], mode),
    ),
};

/** What nothing is rounded of: infinite operands, NaN, and what divides by zero. */
const special: { readonly [F in RoundedFunction]: (a: number, b: number, c: number) => number } = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  sqrt: (a) => Math.sqrt(a),
  fma: (a, b, c) => (Number.isFinite(a) && Number.isFinite(b) ? c : a * b + c),
};

function expected(
  fn: RoundedFunction,
  dtype: DType,
  given: readonly number[],
  { rounding, flushToZero: flush = false }: RoundingManner,
): number {
  const format = exactFormat(dtype.name);
  const mode: Mode = rounding ?? "nearest";
  const [a = 0, b = 0, c = 0] = given.map((value) =>
    flush && Math.abs(value) < format.leastNormal ? value * 0 : value,
  );
  const isPlain = [a, b, c].every(Number.isFinite);
  if (!isPlain || (fn === "div" && b === 0) || (fn === "sqrt" && a < 0))
    return special[fn](a, b, c);
  const finish = (value: Exact, zero: () => number): number =>
    value.numerator === 0n ? zero() : roundExact(value, format, mode, flush);
  return references[fn]([a, b, c], finish, mode);
}

/** Numbers of all sizes, around the least normal ones and the ends, and a few that are special. */
function randomNumber(dtype: DType, random: Random): number {
  const { leastNormal, infinity, decode } = exactFormat(dtype.name);
  const sign = random.below(2) === 0 ? 1 : -1;
  const choice = random.below(10);
  if (choice === 0) return sign * random.pick([0, 1, Infinity, leastNormal, NaN]);
  const wide = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  if (choice < 4) return sign * decode(wide % infinity);
  const near = random.pick([1, leastNormal, Math.sqrt(leastNormal), decode(infinity - 1n)]);
  const value = allocateElements(dtype, 1);
  const tail = random.pick([0, 1, 2, 2 ** -11, 2 ** -12, 2 ** -23, 2 ** -24, 2 ** -52, 0.3]);
  writeElement(dtype, value, 0, sign * near * (1 + (random.below(2) === 0 ? tail : -tail / 2)));
  return Number(readElement(dtype, value, 0));
}

const cases = [dtypes.f64, dtypes.f32, dtypes.f16].flatMap((dtype) =>
  roundedFunctions.flatMap((fn) =>
    [undefined, ...directedRoundings].flatMap((rounding) =>
      [false, true]
        .filter(
          (flush) =>
            (rounding === undefined || acceptsRounding(fn, dtype)) &&
            (!flush || acceptsFlush(fn, dtype)) &&
            (flush || rounding !== undefined),
        )
        .map((flushToZero) => ({ fn, dtype, manner: { rounding, flushToZero } })),
    ),
  ),
);

test("all functions, formats and manners", () => {
  expect(new Set(cases.map(({ fn, dtype }) => `${fn} ${dtype.name}`)).size).toBe(16);
  for (const { fn, dtype, manner } of cases) {
    const random = new Random(seed);
    const count = takesAll ? 300 : 40;
    const given = Array.from({ length: count }, () =>
      [0, 1, 2].map(() => randomNumber(dtype, random)),
    );
    // Operands that nearly cancel, and equal ones.
    for (const operands of given.slice(0, count / 4)) operands[1] = -(operands[0] ?? 0);
    const elements = [0, 1, 2].map((position) => {
      const made = allocateElements(dtype, count);
      for (const [index, operands] of given.entries())
        writeElement(dtype, made, index, operands[position] ?? 0);
      return made;
    });
    const target = allocateElements(dtype, count);
    const arity = fn === "fma" ? 3 : fn === "sqrt" ? 1 : 2;
    roundedElements(fn, dtype, elements.slice(0, arity), target, manner);
    for (const [index, operands] of given.entries()) {
      const used = operands.slice(0, arity);
      expect(
        readElement(dtype, target, index),
        `${fn} ${dtype.name} ${JSON.stringify(manner)} of ${used.join(", ")}, seed ${seed}`,
      ).toBe(expected(fn, dtype, used, manner));
    }
  }
});

test("what is below the normal numbers is decided once it is rounded", () => {
  const least = 2 ** -126;
  const one = (fn: RoundedFunction, a: number, b: number, manner: RoundingManner): number => {
    const target = new Float32Array(1);
    const operands = [Float32Array.of(a), Float32Array.of(b)];
    roundedElements(fn, dtypes.f32, operands, target, manner);
    return target[0] ?? NaN;
  };
  // (1 - 2^-24) of it would be rounded to it as a subnormal number.
  expect(one("mul", 1 - 2 ** -24, least, { flushToZero: true })).toBe(0);
  expect(one("mul", 1 - 2 ** -13, least * (1 + 2 ** -13), { flushToZero: true })).toBe(least);
  expect(one("mul", -least / 2, 4, { flushToZero: true })).toBe(-0);
  expect(one("mul", -least / 2, 4, {})).toBe(-2 * least);
});

test("f16 has no other rounding than to the nearest number", () => {
  const elements = new Uint16Array(1);
  expect(() => {
    roundedElements("add", dtypes.f16, [elements, elements], elements, { rounding: "up" });
  }).toThrow("add of f16 is not rounded so");
});
