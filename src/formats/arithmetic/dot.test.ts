import { describe, expect, test } from "vitest";
import { roundNumber } from "../../../test/exact-reference.ts";
import { referenceDecode, referenceEncode } from "../../../test/number-reference.ts";
import type { ListedName } from "../../../test/number-reference.ts";
import { Random } from "../../support/random.ts";
import { allocateElements, dtypes } from "../dtype.ts";
import type { DType, DTypeName, Elements } from "../dtype.ts";
import { acceptsDot, dotElements, dotStep } from "./dot.ts";
import type { DotPrecision, DotShape } from "./dot.ts";

const coded = new Set<DTypeName>(["f16", "bf16", "f8e4m3fn", "f8e5m2", "f4e2m1fn"]);

function randomElements(dtype: DType, count: number, random: Random): Elements {
  const elements = allocateElements(dtype, count) as Float64Array;
  for (let i = 0; i < count; i++) {
    // Magnitudes apart from one another, so that the order of a sum shows in its result.
    const value = random.normal() * 2 ** random.below(8);
    if (coded.has(dtype.name)) elements[i] = referenceEncode(dtype.name as ListedName, value);
    else if (dtype.name === "tf32") elements[i] = roundNumber("tf32", value);
    else if (dtype.name === "i4") elements[i] = random.below(16) - 8;
    else if (dtype.name === "u4") elements[i] = random.below(16);
    else elements[i] = dtype.kind === "float" ? value : random.bits();
  }
  return elements;
}

function decode(dtype: DType, elements: Elements): number[] {
  return Array.from(elements as Float64Array, (element) =>
    coded.has(dtype.name) ? referenceDecode(dtype.name as ListedName, element) : element,
  );
}

/** How a tensor core adds operands of a format: fraction bits kept, mantissa bits of an f32 result. */
const tensorRules: { readonly [N in DTypeName]?: readonly [fraction: number, mantissa: number] } = {
  f16: [25, 23],
  bf16: [25, 23],
  tf32: [25, 23],
  f8e4m3fn: [13, 13],
  f8e5m2: [13, 13],
};
const smallestExponents: { readonly [N in DTypeName]?: number } = {
  f32: -126,
  tf32: -126,
  bf16: -126,
  f16: -14,
  f8e5m2: -14,
  f8e4m3fn: -6,
};

const fixedBits = 400n;

/** A number as a whole multiple of 2^-400. */
function fixed(value: number): bigint {
  const bits = new BigUint64Array(Float64Array.of(Math.abs(value)).buffer)[0] ?? 0n;
  const exponent = Number(bits >> 52n);
  const significand = (bits & ((1n << 52n) - 1n)) | (exponent === 0 ? 0n : 1n << 52n);
  const magnitude = (significand << fixedBits) >> BigInt(1075 - Math.max(1, exponent));
  return value < 0 ? -magnitude : magnitude;
}

/** Cut off below a power of two, towards zero. */
function cut(value: bigint, exponent: number): bigint {
  const grid = fixedBits + BigInt(exponent);
  return value < 0n ? -((-value >> grid) << grid) : (value >> grid) << grid;
}

function exponentOf(name: DTypeName, value: number): number {
  return Math.max(Math.floor(Math.log2(Math.abs(value))), smallestExponents[name] ?? 0);
}

/** One multiply-add of f64 with one rounding: that of a whole number to the nearest one that f64 has. */
function fusedStep(sum: number, [left, right]: readonly [number, number]): number {
  const exact = fixed(left) * fixed(right) + (fixed(sum) << fixedBits);
  return Number(exact) / 2 ** Number(2n * fixedBits);
}

/** One step as a tensor core computes it, in whole numbers. */
function tensorStep(
  { operand, operandB = operand, accumulator, precision }: DotShape,
  sum: number,
  pairs: readonly (readonly [number, number])[],
): number {
  if (!Number.isFinite(sum)) return sum;
  const format = precision === "tf32" ? "tf32" : operand.name;
  const formatB = precision === "tf32" ? "tf32" : operandB.name;
  const [fraction, mantissa] = tensorRules[format] ?? [0, 0];
  const exponents = pairs
    .filter(([left, right]) => left !== 0 && right !== 0)
    .map(([left, right]) => exponentOf(format, left) + exponentOf(formatB, right));
  if (sum !== 0) exponents.push(exponentOf(accumulator.name, sum));
  if (exponents.length === 0) return 0;
  const grid = Math.max(...exponents) - fraction;
  const total = pairs.reduce(
    (all, [left, right]) => all + cut(fixed(left * right), grid),
    cut(fixed(sum), grid),
  );
  const exact = Number(total) / 2 ** Number(fixedBits);
  if (accumulator.name === "f16") return roundNumber("f16", exact);
  return exact === 0
    ? 0
    : Number(cut(total, exponentOf("f32", exact) - mantissa)) / 2 ** Number(fixedBits);
}

/** The model as the table in dot.ts has it, one element at a time. */
function naive(shape: DotShape, step: number, a: Elements, b: Elements, c: Elements): number[] {
  const { n, k, operand, operandB = operand, accumulator, precision } = shape;
  const rounded = (value: number) =>
    precision === "tf32" && operand.name === "f32" ? roundNumber("tf32", value) : value;
  const left = decode(operand, a).map(rounded);
  const right = decode(operandB, b).map(rounded);
  const isTensor = tensorRules[operand.name] !== undefined || precision === "tf32";
  return decode(accumulator, c).map((start, at) => {
    const row = Math.floor(at / n);
    const column = at % n;
    let sum = start;
    for (let depth = 0; depth < k; depth += step) {
      const pairs = Array.from(
        { length: Math.min(step, k - depth) },
        (_, i) =>
          [left[row * k + depth + i] ?? NaN, right[(depth + i) * n + column] ?? NaN] as const,
      );
      if (isTensor) sum = tensorStep(shape, sum, pairs);
      else if (operand.name === "f64") sum = pairs.reduce(fusedStep, sum);
      else {
        for (const [one, other] of pairs) sum += one * other;
        if (accumulator.name === "f32") sum = roundNumber("f32", sum);
      }
    }
    return accumulator.name === "i32" ? Number(BigInt.asIntN(32, BigInt(sum))) : sum;
  });
}

interface Case {
  readonly a: DTypeName;
  readonly b: DTypeName;
  readonly accumulator: DTypeName;
  readonly step: number;
  readonly precision?: DotPrecision;
}

const cases: readonly Case[] = [
  { a: "f16", b: "f16", accumulator: "f32", step: 16 },
  { a: "f16", b: "f16", accumulator: "f16", step: 16 },
  { a: "bf16", b: "bf16", accumulator: "f32", step: 16 },
  { a: "tf32", b: "tf32", accumulator: "f32", step: 8 },
  { a: "f32", b: "f32", accumulator: "f32", step: 8, precision: "tf32" },
  { a: "f32", b: "f32", accumulator: "f32", step: 1, precision: "ieee" },
  { a: "f32", b: "f32", accumulator: "f32", step: 1 },
  { a: "f8e4m3fn", b: "f8e4m3fn", accumulator: "f32", step: 32 },
  { a: "f8e4m3fn", b: "f8e5m2", accumulator: "f32", step: 32 },
  { a: "f8e5m2", b: "f8e4m3fn", accumulator: "f16", step: 32 },
  { a: "f4e2m1fn", b: "f4e2m1fn", accumulator: "f32", step: 64 },
  { a: "f64", b: "f64", accumulator: "f64", step: 1 },
  { a: "i8", b: "i8", accumulator: "i32", step: Infinity },
  { a: "u8", b: "i8", accumulator: "i32", step: Infinity },
  { a: "i4", b: "u4", accumulator: "i32", step: Infinity },
];

const sizes = [
  { m: 1, n: 1, k: 1 },
  { m: 4, n: 4, k: 16 },
  { m: 5, n: 7, k: 70 },
  { m: 16, n: 8, k: 100 },
  { m: 130, n: 12, k: 20 },
  { m: 3, n: 133, k: 65 },
] as const;

describe.each(cases)("$a by $b in $accumulator, precision $precision", (pair) => {
  test("accumulates in steps", () => {
    const seed = 61;
    const random = new Random(seed);
    for (const size of sizes) {
      const shape: DotShape = {
        ...size,
        operand: dtypes[pair.a],
        operandB: pair.a === pair.b ? undefined : dtypes[pair.b],
        accumulator: dtypes[pair.accumulator],
        precision: pair.precision,
      };
      const a = randomElements(dtypes[pair.a], size.m * size.k, random);
      const b = randomElements(dtypes[pair.b], size.k * size.n, random);
      const c = randomElements(shape.accumulator, size.m * size.n, random);
      const expected = naive(shape, pair.step, a, b, c);
      dotElements(shape, a, b, c);
      const message = `${JSON.stringify(size)}, seed ${seed}`;
      expect(decode(shape.accumulator, c), message).toEqual(expected);
    }
  });

  test("has the step of the table", () => {
    expect(dotStep(dtypes[pair.a], pair.precision)).toBe(pair.step);
  });
});

test("integer sums wrap", () => {
  const c = Int32Array.of(2 ** 31 - 1);
  const shape = { m: 1, n: 1, k: 2, operand: dtypes.i8, accumulator: dtypes.i32 };
  dotElements(shape, Int8Array.of(1, 127), Int8Array.of(1, 127), c);
  expect(c[0]).toBe(-(2 ** 31) + 127 * 127);
});

test("a sum within a step is rounded once", () => {
  // 2^24 + 1 + 1: rounded after each product, f32 would stay at 2^24.
  const one = 0x3f80;
  const c = Float32Array.of(2 ** 24);
  const shape = { m: 1, n: 1, k: 2, operand: dtypes.bf16, accumulator: dtypes.f32 };
  dotElements(shape, Uint16Array.of(one, one), Uint16Array.of(one, one), c);
  expect(c[0]).toBe(2 ** 24 + 2);
});

test("numbers too large for the fast way take the slow one", () => {
  const large = dtypes.bf16;
  const shape = { m: 1, n: 2, k: 2, operand: large, accumulator: dtypes.f32 };
  const code = (value: number): number => referenceEncode("bf16", value);
  const c = Float32Array.of(0, 1);
  const a = Uint16Array.of(code(2 ** 100), code(2 ** 60));
  const b = Uint16Array.of(code(2 ** 20), code(2 ** 100), code(1), code(2 ** 70));
  dotElements(shape, a, b, c);
  expect(Array.from(c)).toEqual([2 ** 120, Infinity]);
});

test("infinite and no numbers stay in their row and column", () => {
  const shape = { m: 2, n: 2, k: 1, operand: dtypes.f32, accumulator: dtypes.f32 };
  const c = new Float32Array(4);
  dotElements(shape, Float32Array.of(Infinity, 1), Float32Array.of(0, 2), c);
  expect(Array.from(c)).toEqual([NaN, Infinity, 0, 2]);
});

test("operands and accumulators that do not go together are refused", () => {
  const { f32, bf16, f16, i8, i32, f8e8m0fnu } = dtypes;
  expect(acceptsDot(bf16, bf16, f32)).toBe(true);
  expect(acceptsDot(bf16, f16, f32)).toBe(false);
  expect(acceptsDot(bf16, bf16, f16)).toBe(false);
  expect(acceptsDot(i8, i8, i32)).toBe(true);
  expect(acceptsDot(i32, i32, i32)).toBe(false);
  expect(acceptsDot(f8e8m0fnu, f8e8m0fnu, f32)).toBe(false);
  const elements = new Uint16Array(1);
  const shape = { m: 1, n: 1, k: 1, operand: bf16, accumulator: f16 };
  expect(() => dotElements(shape, elements, elements, elements)).toThrow(
    /dot of bf16 and bf16 in f16/,
  );
  const larger = { ...shape, m: 2, accumulator: f32 };
  expect(() => dotElements(larger, elements, elements, new Float32Array(2))).toThrow(/elements/);
});
