import { describe, expect, test } from "vitest";
import {
  elementsOfNumbers,
  numbersOfElements,
  roundNumber,
  specialNumbers,
} from "../../../test/exact-reference.ts";
import { Random } from "../../support/random.ts";
import { allocateElements, bf16, bool, dtypes, f16, f32, f64, isWide, tf32 } from "../dtype.ts";
import type { DType, Elements } from "../dtype.ts";
import type { Axis } from "./axis.ts";
import type { ReduceFunction } from "./functions.ts";
import { argElements, sortElements } from "./order.ts";
import { reduceElements } from "./reduce.ts";
import { scanElements } from "./scan.ts";

const floats = [f64, f32, tf32, f16, bf16] as const;
const integers = ["i4", "i8", "i16", "i32", "i64", "u4", "u8", "u16", "u32", "u64"] as const;

const axes: readonly Axis[] = [
  { outer: 1, length: 1, inner: 1 },
  { outer: 3, length: 1, inner: 5 },
  { outer: 5, length: 2, inner: 1 },
  { outer: 1, length: 6, inner: 1 },
  { outer: 4, length: 7, inner: 3 },
  { outer: 2, length: 37, inner: 16 },
  { outer: 50, length: 33, inner: 1 },
  { outer: 1, length: 1000, inner: 3 },
];

function positions({ outer, length, inner }: Axis): number[][] {
  const lines: number[][] = [];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      lines.push(Array.from({ length }, (_, k) => (o * length + k) * inner + i));
    }
  }
  return lines;
}

function elementsIn({ outer, length, inner }: Axis): number {
  return outer * length * inner;
}

/** The halving tree, as the documentation tells it. */
function tree<T>(values: readonly T[], step: (left: T, right: T) => T): T {
  let level = values;
  while (level.length > 1) {
    let kept = 1;
    while (kept * 2 < level.length) kept *= 2;
    const previous = level;
    level = previous.slice(0, kept).map((value, i) => {
      const other = previous[i + kept];
      return other === undefined ? value : step(value, other);
    });
  }
  const [root] = level;
  if (root === undefined) throw new Error("an empty tree");
  return root;
}

const numberSteps = {
  sum: (left: number, right: number) => left + right,
  prod: (left: number, right: number) => left * right,
  min: (left: number, right: number) => Math.min(left, right),
  max: (left: number, right: number) => Math.max(left, right),
} as const;
type NumberStep = keyof typeof numberSteps;
const numberFunctions = Object.keys(numberSteps) as readonly NumberStep[];

/** A step in the precision that a format's reductions and scans are taken in. */
function floatStep(dtype: DType, fn: NumberStep): (left: number, right: number) => number {
  const step = numberSteps[fn];
  return dtype === f64 ? step : (left, right) => roundNumber("f32", step(left, right));
}

function randomFloats(name: (typeof floats)[number]["name"], count: number, random: Random) {
  return Array.from({ length: count }, () => roundNumber(name, random.normal()));
}

function randomIntegers(dtype: DType, count: number, random: Random): Elements {
  const elements = allocateElements(dtype, count);
  for (let i = 0; i < count; i++) {
    const word = random.bits() >>> random.below(32);
    if (isWide(dtype))
      (elements as BigInt64Array)[i] = (BigInt(word) << 33n) | BigInt(random.bits());
    else if (dtype.name === "i4") elements[i] = (word % 16) - 8;
    else (elements as Int32Array)[i] = dtype.name === "u4" ? word % 16 : word;
  }
  return elements;
}

function bigints(elements: Elements): bigint[] {
  return Array.from(elements as Int32Array, (element) => BigInt(element));
}

function wrap(dtype: DType, value: bigint): bigint {
  return dtype.kind === "signed"
    ? BigInt.asIntN(dtype.bits, value)
    : BigInt.asUintN(dtype.bits, value);
}

const integerSteps = {
  sum: (left: bigint, right: bigint) => left + right,
  prod: (left: bigint, right: bigint) => left * right,
  min: (left: bigint, right: bigint) => (left < right ? left : right),
  max: (left: bigint, right: bigint) => (left > right ? left : right),
  and: (left: bigint, right: bigint) => left & right,
  or: (left: bigint, right: bigint) => left | right,
  xor: (left: bigint, right: bigint) => left ^ right,
} as const satisfies { readonly [F in ReduceFunction]: unknown };

describe("reductions", () => {
  test.each(floats)("of $name follow the halving tree", (dtype) => {
    const seed = 51;
    const random = new Random(seed);
    for (const axis of axes) {
      const values = randomFloats(dtype.name, elementsIn(axis), random);
      const source = elementsOfNumbers(dtype, values);
      const target = allocateElements(dtype, axis.outer * axis.inner);
      for (const fn of numberFunctions) {
        reduceElements(fn, dtype, source, axis, target);
        const expected = positions(axis).map((line) => {
          const root = tree(
            line.map((at) => values[at] ?? NaN),
            floatStep(dtype, fn),
          );
          return roundNumber(dtype.name, root);
        });
        const message = `${fn} over ${JSON.stringify(axis)}, seed ${seed}`;
        expect(numbersOfElements(dtype, target), message).toEqual(expected);
      }
    }
  });

  test.each(integers)("of %s wrap", (name) => {
    const dtype = dtypes[name];
    const seed = 52;
    const random = new Random(seed);
    for (const axis of axes) {
      const source = randomIntegers(dtype, elementsIn(axis), random);
      const values = bigints(source);
      const target = allocateElements(dtype, axis.outer * axis.inner);
      for (const [fn, step] of Object.entries(integerSteps)) {
        reduceElements(fn as ReduceFunction, dtype, source, axis, target);
        const expected = positions(axis).map((line) =>
          wrap(dtype, line.map((at) => values[at] ?? 0n).reduce(step)),
        );
        const message = `${fn} over ${JSON.stringify(axis)}, seed ${seed}`;
        expect(bigints(target), message).toEqual(expected);
      }
    }
  });

  test("larger than the place where trees are folded", () => {
    const seed = 53;
    const random = new Random(seed);
    for (const axis of [
      { outer: 2, length: 70001, inner: 1 },
      { outer: 1, length: 5, inner: 40000 },
      { outer: 1, length: 300, inner: 200 },
    ]) {
      const values = Float32Array.from({ length: elementsIn(axis) }, () => random.normal());
      const target = new Float32Array(axis.outer * axis.inner);
      reduceElements("sum", f32, values, axis, target);
      const expected = positions(axis).map((line) =>
        tree(
          line.map((at) => values[at] ?? NaN),
          (left, right) => Math.fround(left + right),
        ),
      );
      expect(Array.from(target), `seed ${seed}`).toEqual(expected);
    }
  });

  test("bf16 sums keep in f32 what bf16 would lose", () => {
    // 257 ones: bf16 alone would stop at 256.
    const source = new Uint16Array(257).fill(0x3f80);
    source[256] = 0x4040;
    const target = new Uint16Array(1);
    reduceElements("sum", bf16, source, { outer: 1, length: 257, inner: 1 }, target);
    // 259 lies between 258 and 260: a tie, which goes to even.
    expect(target[0]).toBe(0x4382);
  });

  test("NaN wins minima and maxima, and -0 is below +0", () => {
    const axis = { outer: 3, length: 2, inner: 1 };
    const source = Float32Array.of(1, NaN, 0, -0, -0, 0);
    const target = new Float32Array(3);
    reduceElements("max", f32, source, axis, target);
    expect(Array.from(target)).toEqual([NaN, 0, 0]);
    reduceElements("min", f32, source, axis, target);
    expect(Array.from(target)).toEqual([NaN, -0, -0]);
  });

  test("bool has logic alone", () => {
    const source = Uint8Array.of(1, 0, 1, 1, 1, 1);
    const axis = { outer: 2, length: 3, inner: 1 };
    const target = new Uint8Array(2);
    reduceElements("and", bool, source, axis, target);
    expect(Array.from(target)).toEqual([0, 1]);
    reduceElements("xor", bool, source, axis, target);
    expect(Array.from(target)).toEqual([0, 1]);
    expect(() => reduceElements("sum", bool, source, axis, target)).toThrow(/not defined for bool/);
  });
});

describe("scans", () => {
  function running<T>(line: readonly T[], step: (left: T, right: T) => T, reverse: boolean): T[] {
    const ordered = reverse ? line.toReversed() : line;
    const results: T[] = [];
    for (const value of ordered) {
      const before = results.at(-1);
      results.push(before === undefined ? value : step(before, value));
    }
    return reverse ? results.reverse() : results;
  }

  test.each(floats)("of $name", (dtype) => {
    const seed = 54;
    const random = new Random(seed);
    for (const axis of axes) {
      const values = randomFloats(dtype.name, elementsIn(axis), random);
      const target = allocateElements(dtype, values.length);
      for (const fn of numberFunctions) {
        for (const reverse of [false, true]) {
          scanElements(fn, dtype, elementsOfNumbers(dtype, values), axis, target, reverse);
          const found = numbersOfElements(dtype, target);
          for (const line of positions(axis)) {
            const operands = line.map((at) => values[at] ?? NaN);
            const expected = running(operands, floatStep(dtype, fn), reverse);
            expect(
              line.map((at) => found[at]),
              `${fn} over ${JSON.stringify(axis)}, reverse ${reverse}, seed ${seed}`,
            ).toEqual(expected.map((value) => roundNumber(dtype.name, value)));
          }
        }
      }
    }
  });

  test.each(integers)("of %s, in place", (name) => {
    const dtype = dtypes[name];
    const seed = 55;
    const random = new Random(seed);
    for (const axis of axes) {
      for (const fn of numberFunctions) {
        for (const reverse of [false, true]) {
          const elements = randomIntegers(dtype, elementsIn(axis), random);
          const values = bigints(elements);
          scanElements(fn, dtype, elements, axis, elements, reverse);
          const found = bigints(elements);
          for (const line of positions(axis)) {
            const operands = line.map((at) => values[at] ?? 0n);
            const expected = running(operands, integerSteps[fn], reverse);
            expect(
              line.map((at) => found[at]),
              `${fn} over ${JSON.stringify(axis)}, reverse ${reverse}, seed ${seed}`,
            ).toEqual(expected.map((value) => wrap(dtype, value)));
          }
        }
      }
    }
  });
});

/** The order that sorting is documented to follow, as a number to subtract. */
function compare(left: number | bigint, right: number | bigint): number {
  const rank = (value: number | bigint) => (value !== value ? 2 : Object.is(value, -0) ? 0 : 1);
  if (left !== left || right !== right) return rank(left) - rank(right);
  if (left !== right) return left < right ? -1 : 1;
  return rank(left) - rank(right);
}

function fewKeys(dtype: DType, count: number, random: Random): Elements {
  if (dtype.kind !== "float") {
    const elements = allocateElements(dtype, count);
    for (let i = 0; i < count; i++) {
      const value = random.below(6) - (dtype.kind === "signed" ? 3 : 0);
      if (isWide(dtype)) (elements as BigInt64Array)[i] = BigInt(value) << 40n;
      else elements[i] = value;
    }
    return elements;
  }
  const special = specialNumbers("f16");
  const values = Array.from({ length: count }, () => random.pick([...special, -0, 0, NaN]));
  return elementsOfNumbers(dtype as (typeof floats)[number], values);
}

function keysOf(dtype: DType, elements: Elements): (number | bigint)[] {
  if (dtype.kind === "float") return numbersOfElements(dtype as (typeof floats)[number], elements);
  return bigints(elements);
}

describe("order", () => {
  const ordered: readonly DType[] = [...floats, ...integers.map((name) => dtypes[name])];

  test.each(ordered)("searches of $name give the first extreme", (dtype) => {
    const seed = 56;
    const random = new Random(seed);
    for (const axis of axes) {
      const elements = fewKeys(dtype, elementsIn(axis), random);
      const keys = keysOf(dtype, elements);
      const target = new Int32Array(axis.outer * axis.inner);
      for (const fn of ["argmin", "argmax"] as const) {
        argElements(fn, dtype, elements, axis, target);
        const expected = positions(axis).map((line) => {
          const operands = line.map((at) => keys[at] ?? 0);
          const firstNaN = operands.findIndex((key) => key !== key);
          if (firstNaN >= 0) return firstNaN;
          return operands.findIndex((key) =>
            operands.every((other) => (fn === "argmin" ? key <= other : key >= other)),
          );
        });
        expect(Array.from(target), `${fn}, seed ${seed}`).toEqual(expected);
      }
    }
  });

  test.each(ordered)("sorts of $name are stable and carry payloads along", (dtype) => {
    const seed = 57;
    const random = new Random(seed);
    for (const axis of axes) {
      for (const descending of [false, true]) {
        const elements = fewKeys(dtype, elementsIn(axis), random);
        const keys = keysOf(dtype, elements);
        const places = Int32Array.from(keys, (_, i) => i);
        const wide = BigUint64Array.from(keys, (_, i) => BigInt(i) << 32n);
        sortElements(dtype, elements, [places, wide], axis, descending);
        const found = keysOf(dtype, elements);
        for (const line of positions(axis)) {
          const expected = line.toSorted((left, right) => {
            const order = compare(keys[left] ?? 0, keys[right] ?? 0);
            return (descending ? -order : order) || left - right;
          });
          const message = `descending ${descending}, seed ${seed}`;
          expect(
            line.map((at) => places[at]),
            message,
          ).toEqual(expected);
          expect(
            line.map((at) => Number((wide[at] ?? 0n) >> 32n)),
            message,
          ).toEqual(expected);
          expect(
            line.map((at) => found[at]),
            message,
          ).toEqual(expected.map((at) => keys[at]));
        }
      }
    }
  });

  test("bool has no order", () => {
    const elements = new Uint8Array(2);
    const axis = { outer: 1, length: 2, inner: 1 };
    expect(() => sortElements(bool, elements, [], axis, false)).toThrow(/not defined for bool/);
    expect(() => argElements("argmax", bool, elements, axis, new Int32Array(1))).toThrow(/bool/);
    expect(() => scanElements("sum", bool, elements, axis, elements, false)).toThrow(/bool/);
  });
});
