import { describe, expect, test } from "vitest";
import {
  add,
  divide,
  fixedFunctions,
  fixedOf,
  isExactName,
  elementsOfNumbers,
  multiply,
  numbersOfElements,
  pairs,
  randomNumbers,
  rationalOf,
  rationalOfFixed,
  roundNumber,
  roundRational,
  specialNumbers,
} from "../../../test/exact-reference.ts";
import type { ExactName, Rational } from "../../../test/exact-reference.ts";
import type {
  BoundedUnary,
  ExactBinary,
  ExactUnary,
} from "../../../test/support/inexact-functions.ts";
import { nanCode, referenceDecode, referenceEncode } from "../../../test/number-reference.ts";
import {
  complementaryErrorIntegral,
  precise,
  unitsBetween as preciseUnits,
} from "../../../test/support/precise.ts";
import { Random } from "../../support/random.ts";
import { allocateElements, bf16, dtypes, f16, f32, f64, tf32 } from "../dtype.ts";
import { binaryElements, classifyElements, compareElements, unaryElements } from "./elementwise.ts";
import type { BinaryFunction, ComparePredicate, UnaryFunction } from "./functions.ts";
import { binaryFunctions, comparePredicates, unaryFunctions } from "./functions.ts";

const floats = [f64, f32, tf32, f16, bf16] as const;
const narrow = [f16, bf16] as const;

/** Halves to even, by BigInt. */
function roundedInteger(value: number, choose: (floor: bigint, isHalf: number) => bigint): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const { numerator, denominator } = rationalOf(value);
  const rest = ((numerator % denominator) + denominator) % denominator;
  const floor = (numerator - rest) / denominator;
  const doubled = 2n * rest;
  const side = rest === 0n ? -2 : doubled < denominator ? -1 : doubled > denominator ? 1 : 0;
  const integer = choose(floor, side);
  return integer === 0n && value < 0 ? -0 : Number(integer);
}

function exactSquareRoot(name: ExactName, value: number): number {
  if (value === 0 || Number.isNaN(value)) return value;
  if (value < 0) return NaN;
  if (value === Infinity) return value;
  // More bits than the format has, and one where there is a rest, which tells a tie from its like.
  const scale = 1n << (name === "f64" ? 600n : 160n);
  const { numerator, denominator } = rationalOf(value);
  const square = (numerator * scale * scale) / denominator;
  let root = 1n << BigInt((square.toString(2).length + 1) >> 1);
  for (let next = (root + square / root) >> 1n; next < root; next = (root + square / root) >> 1n) {
    root = next;
  }
  const rest = root * root === square ? 0n : 1n;
  return roundRational(name, { numerator: 2n * root + rest, denominator: 2n * scale });
}

/** What f64 gives, for the functions that are defined by it; undefined where JavaScript has none. */
const hostFunctions: { readonly [F in BoundedUnary]: ((value: number) => number) | undefined } = {
  rsqrt: (value) => 1 / Math.sqrt(value),
  exp: Math.exp,
  exp2: (value) => Math.pow(2, value),
  expm1: Math.expm1,
  log: Math.log,
  log2: Math.log2,
  log1p: Math.log1p,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  atan: Math.atan,
  asin: Math.asin,
  acos: Math.acos,
  tanh: Math.tanh,
  sinh: Math.sinh,
  cosh: Math.cosh,
  asinh: Math.asinh,
  acosh: Math.acosh,
  atanh: Math.atanh,
  cbrt: Math.cbrt,
  erf: undefined, // held against a series below
  erf_inv: undefined, // held against erf below
  erfc: undefined, // held against more digits below
  logistic: (value) => 1 / (1 + Math.exp(-value)),
};

/** Exact results, rounded once. `neg` and `abs` change bits, and have tests of their own. */
const exactUnary: {
  readonly [F in Exclude<ExactUnary, "neg" | "abs">]: (value: number, name: ExactName) => number;
} = {
  sign: (value) => (value > 0 ? 1 : value < 0 ? -1 : value),
  floor: (value) => roundedInteger(value, (floor) => floor),
  ceil: (value) => roundedInteger(value, (floor, side) => (side === -2 ? floor : floor + 1n)),
  round: (value) =>
    roundedInteger(value, (floor, side) =>
      side > 0 || (side === 0 && floor % 2n !== 0n) ? floor + 1n : floor,
    ),
  trunc: (value) =>
    roundedInteger(value, (floor, side) => (value > 0 || side === -2 ? floor : floor + 1n)),
  sqrt: (value, name) => exactSquareRoot(name, value),
};

type Reference = (value: number, name: ExactName) => number;

/** The functions that have a reference. What f64 gives is rounded by the search for its code. */
function referencesIn(table: { readonly [F in UnaryFunction]?: Reference | undefined }) {
  return unaryFunctions.flatMap((fn) => {
    const reference = table[fn];
    return reference === undefined ? [] : [[fn, reference] as const];
  });
}

describe("functions of one float", () => {
  for (const dtype of narrow) {
    const codes = Uint16Array.from({ length: 65536 }, (_, code) => code);
    const values = Array.from(codes, (code) => referenceDecode(dtype.name, code));

    test.each(referencesIn({ ...exactUnary, ...hostFunctions }))(
      `%s of every ${dtype.name}`,
      (fn, reference) => {
        const found = new Uint16Array(65536);
        unaryElements(fn, dtype, codes, found);
        const wrong: string[] = [];
        for (const [code, value] of values.entries()) {
          const expected = referenceEncode(dtype.name, reference(value, dtype.name));
          if (found[code] !== expected)
            wrong.push(`${fn}(${value}): ${found[code]}, not ${expected}`);
        }
        expect(wrong.slice(0, 5)).toEqual([]);
      },
    );

    test(`neg and abs of every ${dtype.name} change the sign bit alone`, () => {
      const found = new Uint16Array(65536);
      unaryElements("neg", dtype, codes, found);
      expect(found.every((code, i) => code === (i ^ 0x8000))).toBe(true);
      unaryElements("abs", dtype, codes, found);
      expect(found.every((code, i) => code === (i & 0x7fff))).toBe(true);
    });
  }

  test.each([f32, f64])("neg and abs keep the payload of a NaN: $name", (dtype) => {
    const elements = allocateElements(dtype, 2);
    const words = new Uint32Array(elements.buffer);
    const top = words.length / 2 - 1;
    words[top] = dtype === f32 ? 0xffc12345 : 0xfff81234;
    words[words.length - 1] = 0x80000000;
    const target = allocateElements(dtype, 2);
    const found = new Uint32Array(target.buffer);
    unaryElements("neg", dtype, elements, target);
    expect(found[top]).toBe((words[top] ?? 0) & 0x7fffffff);
    expect(Array.from(target)[1]).toBe(0);
    unaryElements("abs", dtype, elements, target);
    expect(found[top]).toBe((words[top] ?? 0) & 0x7fffffff);
    unaryElements("neg", dtype, target, target);
    expect(found[top]).toBe(words[top]);
  });

  test.each([f32, tf32, f64])("exact functions of $name", (dtype) => {
    const seed = 11;
    const values = [
      ...specialNumbers(dtype.name),
      ...randomNumbers(dtype.name, 3000, new Random(seed)),
    ];
    const source = elementsOfNumbers(dtype, values);
    const target = allocateElements(dtype, values.length);
    for (const [fn, reference] of referencesIn(exactUnary)) {
      unaryElements(fn, dtype, source, target);
      const found = numbersOfElements(dtype, target);
      const expected = values.map((value) => reference(value, dtype.name));
      expect(found, `${fn}, seed ${seed}`).toEqual(expected);
    }
  });

  test("halves of f64 beyond 2^51 round to even", () => {
    const source = Float64Array.of(2 ** 51 + 0.5, 2 ** 51 + 1.5, -(2 ** 51) - 1.5, 0.5, -0.5, -2.5);
    const target = new Float64Array(source.length);
    unaryElements("round", f64, source, target);
    const expected = [2 ** 51, 2 ** 51 + 2, -(2 ** 51) - 2, 0, -0, -2];
    expect(Array.from(target)).toEqual(expected);
  });
});

/** Arguments for which a function is neither trivial nor extreme. */
const argumentRanges: { readonly [F in keyof typeof fixedFunctions]: readonly [number, number] } = {
  exp: [-40, 40],
  exp2: [-40, 40],
  expm1: [-20, 20],
  log: [2 ** -14, 2 ** 15],
  log2: [2 ** -14, 2 ** 15],
  log1p: [-0.999, 100],
  sin: [-50, 50],
  cos: [-50, 50],
  tan: [-50, 50],
  tanh: [-10, 10],
  erf: [-5, 5],
  logistic: [-30, 30],
  rsqrt: [2 ** -14, 2 ** 15],
  sqrt: [2 ** -14, 2 ** 15],
};

describe("transcendental functions against series of 200 bits", () => {
  test.each(Object.keys(fixedFunctions) as (keyof typeof fixedFunctions)[])("%s", (fn) => {
    const seed = 12;
    const random = new Random(seed);
    const [low, high] = argumentRanges[fn];
    for (const dtype of floats) {
      const values = Array.from({ length: 150 }, (_, i) => {
        const value = low + random.uniform() * (high - low);
        // Half of the arguments near zero, where relative errors show.
        return roundNumber(dtype.name, i % 2 === 0 || low > 0 ? value : value / 1000);
      });
      const target = allocateElements(dtype, values.length);
      unaryElements(fn, dtype, elementsOfNumbers(dtype, values), target);
      for (const [i, found] of numbersOfElements(dtype, target).entries()) {
        const value = values[i] ?? NaN;
        const exact = rationalOfFixed(fixedFunctions[fn](fixedOf(value)));
        const message = `${fn}(${value}) in ${dtype.name}, seed ${seed}`;
        if (dtype === f64) expect(unitsApart(found, exact), message).toBeLessThan(1.6);
        else expect(found, message).toBe(roundRational(dtype.name, exact));
      }
    }
  });

  test("erf is within a unit of f64", () => {
    const seed = 13;
    const random = new Random(seed);
    const values = Float64Array.from({ length: 2000 }, () => (random.uniform() - 0.5) * 8);
    const target = new Float64Array(values.length);
    unaryElements("erf", f64, values, target);
    for (const [i, value] of values.entries()) {
      const exact = rationalOfFixed(fixedFunctions.erf(fixedOf(value)));
      expect(unitsApart(target[i] ?? NaN, exact), `erf(${value}), seed ${seed}`).toBeLessThan(1);
    }
  });

  test("erf_inv is within a unit and a half of f64", () => {
    const seed = 14;
    const random = new Random(seed);
    const values = Float64Array.from({ length: 300 }, (_, i) =>
      i % 3 === 0 ? 1 - 2 ** (-50 * random.uniform()) : random.uniform() * 2 ** -(i % 5),
    );
    const target = new Float64Array(values.length);
    unaryElements("erf_inv", f64, values, target);
    const slopeOf = (x: number): number => (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x);
    for (const [i, value] of values.entries()) {
      // The result is so near that the slope turns the difference of erf into its own.
      const found = target[i] ?? NaN;
      const reached = rationalOfFixed(fixedFunctions.erf(fixedOf(found)) - fixedOf(value));
      const off = roundRational("f64", reached) / slopeOf(found);
      const unit = 2 ** (Math.floor(Math.log2(found)) - 52);
      expect(Math.abs(off) / unit, `erf_inv(${value}), seed ${seed}`).toBeLessThan(1.5);
    }
  });

  test("erfc is within four units of f64", () => {
    const seed = 15;
    const random = new Random(seed);
    const values = Float64Array.from({ length: 300 }, (_, i) =>
      i % 3 === 0 ? 26.5 * random.uniform() : 8 * random.uniform() - 4,
    );
    const target = new Float64Array(values.length);
    unaryElements("erfc", f64, values, target);
    for (const [i, value] of values.entries()) {
      const off = preciseUnits(target[i] ?? NaN, complementaryErrorIntegral(precise(value)));
      expect(off, `erfc(${value}), seed ${seed}`).toBeLessThan(4);
    }
  });

  test("values at the ends", () => {
    const ends: readonly (readonly [UnaryFunction, number, number])[] = [
      ["erf", 0, 0],
      ["erf", -0, -0],
      ["erf", Infinity, 1],
      ["erf", -Infinity, -1],
      ["erf", 5.95, 1],
      ["erf", NaN, NaN],
      ["erfc", -0, 1],
      ["erfc", Infinity, 0],
      ["erfc", -Infinity, 2],
      ["erfc", NaN, NaN],
      ["erf_inv", -0, -0],
      ["erf_inv", -1, -Infinity],
      ["erf_inv", 1.5, NaN],
      ["asin", 1.5, NaN],
      ["acos", 1, 0],
      ["acosh", 0.5, NaN],
      ["atanh", -1, -Infinity],
      ["cbrt", -27, -3],
      ["exp2", -1074, 2 ** -1074],
      ["exp2", -1074.9, 2 ** -1074],
      ["exp2", -1076, 0],
      ["exp2", 1023, 2 ** 1023],
      ["exp2", 1024, Infinity],
      ["exp2", -Infinity, 0],
      ["exp2", NaN, NaN],
      ["logistic", -Infinity, 0],
      ["logistic", Infinity, 1],
      ["logistic", -745, 5e-324],
      ["rsqrt", 0, Infinity],
      ["rsqrt", -0, -Infinity],
      ["rsqrt", Infinity, 0],
      ["rsqrt", -1, NaN],
      ["log", 0, -Infinity],
      ["log", -1, NaN],
      ["log1p", -1, -Infinity],
      ["expm1", -0, -0],
      ["sin", -0, -0],
      ["sin", Infinity, NaN],
      ["tanh", -Infinity, -1],
    ];
    for (const [fn, value, expected] of ends) {
      const elements = Float64Array.of(value);
      unaryElements(fn, f64, elements, elements);
      expect(elements[0], `${fn}(${value})`).toBe(expected);
    }
  });
});

/** How many units in the last place of f64 lie between a number and the exact value. */
function unitsApart(found: number, exact: Rational): number {
  const difference = add(rationalOf(-found), exact);
  const { numerator, denominator } = exact;
  const size = roundRational("f64", {
    numerator: numerator < 0n ? -numerator : numerator,
    denominator,
  });
  const unit = 2 ** Math.max(Math.floor(Math.log2(size)) - 52, -1074);
  return Math.abs(roundRational("f64", divide(difference, rationalOf(unit))));
}

/** Exact results of numbers that are no NaN, rounded once. */
const exactBinary: {
  readonly [F in ExactBinary]: (left: number, right: number, name: ExactName) => number;
} = {
  add: rounded((x, y) => x + y, add),
  sub: rounded(
    (x, y) => x - y,
    (x, y) => add(x, { ...y, numerator: -y.numerator }),
  ),
  mul: rounded((x, y) => x * y, multiply),
  div: rounded((x, y) => x / y, divide),
  rem: (left, right) => (isSpecial(left, right) ? left % right : exactRemainder(left, right)),
  min: (left, right) => (isLess(left, right) ? left : right),
  max: (left, right) => (isLess(left, right) ? right : left),
  fmin: (left, right) => (isLess(left, right) ? left : right),
  fmax: (left, right) => (isLess(left, right) ? right : left),
};

function isExact(fn: BinaryFunction): fn is ExactBinary {
  return Object.hasOwn(exactBinary, fn);
}

function isLess(left: number, right: number): boolean {
  return left < right || (left === right && Object.is(left, -0));
}

function isSpecial(left: number, right: number): boolean {
  return !Number.isFinite(left) || !Number.isFinite(right) || left === 0 || right === 0;
}

/** With an operand that is infinite or zero the host's f64 rounds nothing. */
function rounded(
  host: (left: number, right: number) => number,
  exact: (left: Rational, right: Rational) => Rational,
): (left: number, right: number, name: ExactName) => number {
  return (left, right, name) =>
    isSpecial(left, right)
      ? host(left, right)
      : roundRational(name, exact(rationalOf(left), rationalOf(right)));
}

function referenceBinary(fn: ExactBinary, name: ExactName, left: number, right: number): number {
  if (!Number.isNaN(left) && !Number.isNaN(right)) return exactBinary[fn](left, right, name);
  return fn !== "fmin" && fn !== "fmax" ? NaN : Number.isNaN(left) ? right : left;
}

function exactRemainder(left: number, right: number): number {
  const { numerator: a, denominator: b } = rationalOf(left);
  const { numerator: c, denominator: d } = rationalOf(right);
  const remainder = (a * d) % (c * b);
  const result = roundRational("f64", { numerator: remainder, denominator: b * d });
  return result === 0 && left < 0 ? -0 : result;
}

describe("functions of two floats", () => {
  test.each(floats)("exact functions of $name", (dtype) => {
    const seed = 21;
    const random = new Random(seed);
    const operands = [
      ...pairs(specialNumbers(dtype.name)),
      ...randomNumbers(dtype.name, 2500, random).map(
        (left, _, all) => [left, all[random.below(all.length)] ?? 0] as const,
      ),
    ];
    const left = elementsOfNumbers(
      dtype,
      operands.map(([value]) => value),
    );
    const right = elementsOfNumbers(
      dtype,
      operands.map(([, value]) => value),
    );
    const target = allocateElements(dtype, operands.length);
    for (const fn of binaryFunctions) {
      if (!isExact(fn)) continue;
      binaryElements(fn, dtype, left, right, target);
      const wrong: string[] = [];
      for (const [i, found] of numbersOfElements(dtype, target).entries()) {
        const [x, y] = operands[i] ?? [NaN, NaN];
        const expected = referenceBinary(fn, dtype.name, x, y);
        if (!Object.is(found, expected)) wrong.push(`${fn}(${x}, ${y}): ${found}, not ${expected}`);
      }
      expect(wrong.slice(0, 5), `seed ${seed}`).toEqual([]);
    }
  });

  test.each(narrow)("products and quotients of $name that are subnormal round once", (dtype) => {
    const seed = 22;
    const random = new Random(seed);
    const smallest = dtype === f16 ? 2 ** -24 : 2 ** -133;
    const operands = Array.from({ length: 4000 }, () => {
      const left = roundNumber(dtype.name, (1 + random.uniform()) * 2 ** (random.below(6) - 3));
      const right = roundNumber(dtype.name, smallest * (1 + random.below(255)));
      return [left, right] as const;
    });
    const left = elementsOfNumbers(
      dtype,
      operands.map(([value]) => value),
    );
    const right = elementsOfNumbers(
      dtype,
      operands.map(([, value]) => value),
    );
    const target = allocateElements(dtype, operands.length);
    binaryElements("mul", dtype, left, right, target);
    for (const [i, found] of numbersOfElements(dtype, target).entries()) {
      const [x, y] = operands[i] ?? [NaN, NaN];
      expect(found, `${x} · ${y}, seed ${seed}`).toBe(referenceBinary("mul", dtype.name, x, y));
    }
  });

  test("pow follows C, and is rounded once", () => {
    const cases: readonly (readonly [number, number, number])[] = [
      [1, NaN, 1],
      [NaN, 0, 1],
      [-1, Infinity, 1],
      [-1, -Infinity, 1],
      [1, Infinity, 1],
      [-2, 3, -8],
      [-8, 1 / 3, NaN],
      [0, -1, Infinity],
      [-0, -3, -Infinity],
      [2, -1074, 2 ** -1074],
      [Infinity, -1, 0],
    ];
    const left = Float64Array.from(cases, ([base]) => base);
    const right = Float64Array.from(cases, ([, exponent]) => exponent);
    binaryElements("pow", f64, left, right, left);
    expect(Array.from(left)).toEqual(cases.map(([, , result]) => result));

    const seed = 23;
    const random = new Random(seed);
    for (let i = 0; i < 500; i++) {
      const base = Math.fround(0.5 + random.uniform());
      const exponent = 1 + random.below(12);
      let exact = rationalOf(1);
      for (let n = 0; n < exponent; n++) exact = multiply(exact, rationalOf(base));
      const elements = Float32Array.of(base);
      binaryElements("pow", f32, elements, Float32Array.of(exponent), elements);
      expect(elements[0], `${base}^${exponent}, seed ${seed}`).toBe(roundRational("f32", exact));
    }
  });

  test("atan2 knows the signs of zeros", () => {
    const left = Float32Array.of(0, -0, 0, -0, 1, NaN);
    const right = Float32Array.of(0, 0, -0, -0, 0, 1);
    binaryElements("atan2", f32, left, right, left);
    const pi = Math.fround(Math.PI);
    expect(Array.from(left)).toEqual([0, -0, pi, -pi, Math.fround(Math.PI / 2), NaN]);
  });

  test.each(floats)("a NaN that arithmetic makes is the one NaN of $name", (dtype) => {
    const left = elementsOfNumbers(dtype, [Infinity, 0, -1]);
    const right = elementsOfNumbers(dtype, [Infinity, 0, NaN]);
    const target = allocateElements(dtype, 3);
    for (const fn of ["sub", "rem", "div"] as const) {
      binaryElements(fn, dtype, left, right, target);
      const bits = new Uint8Array(target.buffer);
      const expected = elementsOfNumbers(dtype, [NaN]);
      if (isExactName(dtype.name) && dtype.bits === 16) {
        expect(Array.from(target as Uint16Array)).toContain(nanCode(dtype.name as "f16"));
      }
      const size = bits.length / 3;
      expect(Array.from(bits.subarray(2 * size))).toEqual(
        Array.from(new Uint8Array(expected.buffer)),
      );
    }
  });
});

const holds: { readonly [P in ComparePredicate]: (left: number, right: number) => boolean } = {
  eq: (left, right) => left === right,
  ne: (left, right) => left !== right,
  lt: (left, right) => left < right,
  le: (left, right) => left <= right,
  gt: (left, right) => left > right,
  ge: (left, right) => left >= right,
};

describe("comparison and classification of floats", () => {
  test.each(floats)("predicates of $name", (dtype) => {
    const operands = pairs(specialNumbers(dtype.name));
    const left = elementsOfNumbers(
      dtype,
      operands.map(([value]) => value),
    );
    const right = elementsOfNumbers(
      dtype,
      operands.map(([, value]) => value),
    );
    const target = new Uint8Array(operands.length);
    for (const predicate of comparePredicates) {
      compareElements(predicate, dtype, left, right, target);
      const expected = operands.map(([x, y]) => Number(holds[predicate](x, y)));
      expect(Array.from(target), predicate).toEqual(expected);
    }
  });

  test.each(floats)("classes of $name", (dtype) => {
    const values = specialNumbers(dtype.name);
    const elements = elementsOfNumbers(dtype, values);
    const target = new Uint8Array(values.length);
    classifyElements("is_nan", dtype, elements, target);
    expect(Array.from(target)).toEqual(values.map((value) => Number(Number.isNaN(value))));
    classifyElements("is_finite", dtype, elements, target);
    expect(Array.from(target)).toEqual(values.map((value) => Number(Number.isFinite(value))));
  });
});

test("functions outside of a format's domain are refused", () => {
  const eight = new Uint8Array(1);
  const refused: readonly (() => void)[] = [
    () => unaryElements("neg", dtypes.f8e4m3fn, eight, eight),
    () => unaryElements("exp", dtypes.i32, new Int32Array(1), new Int32Array(1)),
    () => binaryElements("add", dtypes.bool, eight, eight, eight),
    () => binaryElements("and", f32, new Float32Array(1), new Float32Array(1), new Float32Array(1)),
    () => compareElements("lt", dtypes.bool, eight, eight, eight),
    () => classifyElements("is_nan", dtypes.u8, eight, eight),
    () => unaryElements("abs", f32, new Float32Array(2), new Float32Array(3)),
  ];
  for (const call of refused) expect(call).toThrow(/not defined for|elements/);
});
