/** Products of terms beside the rule in whole numbers: every term a fraction over 2^p, cut off and summed as such. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { decodeFloat, encodeFloat, floatFormats } from "../floats.ts";
import {
  decodeNibbles,
  decodeTerms,
  multiplyBytesExactly,
  multiplyNibbles,
  multiplyTerms,
  scaledTerms,
  termBits,
} from "./tensor-core-terms.ts";
import type { BlockScales, TermFormat } from "./tensor-core-terms.ts";

/** A number as whole / 2^point, and the exponent it is aligned by; undefined for zeros. */
interface Exact {
  readonly whole: bigint;
  readonly exponent: number | undefined;
}

const point = 700;

function exactOf(value: number): bigint {
  let [whole, scale] = [value, 0];
  for (; !Number.isInteger(whole); scale++) whole *= 2;
  return BigInt(whole) << BigInt(point - scale);
}

function exact(format: TermFormat | "f32", code: number): Exact {
  const kept = format === "tf32" ? code & ~0x1fff : code;
  const value = decodeFloat(format === "tf32" ? "f32" : format, kept);
  if (value === 0) return { whole: 0n, exponent: undefined };
  const { exponentBits, mantissaBits, bias } = floatFormats[format === "tf32" ? "f32" : format];
  const field = (kept >>> mantissaBits) & (2 ** exponentBits - 1);
  return { whole: exactOf(value), exponent: Math.max(1, field) - bias };
}

/** Terms cut off towards zero `fraction` bits below the largest exponent, summed, and rounded towards zero to f32. */
function sumOf(terms: readonly Exact[], fraction: number): number {
  const exponents = terms.flatMap(({ exponent }) => exponent ?? []);
  if (exponents.length === 0) return 0;
  const unit = 1n << BigInt(point + Math.max(...exponents) - fraction);
  const sum = terms.reduce((total, { whole }) => total + (whole / unit) * unit, 0n);
  if (sum === 0n) return 0;
  const magnitude = sum < 0n ? -sum : sum;
  const top = magnitude.toString(2).length - 1 - point;
  const last = 1n << BigInt(Math.max(top, -126) - 23 + point);
  const kept = (magnitude / last) * last;
  const value = (sum < 0n ? -1 : 1) * Number(kept >> BigInt(point - 200)) * 2 ** -200;
  return encodeFloat("f32", Math.abs(value) >= 2 ** 128 ? Math.sign(value) * Infinity : value);
}

/** A product of two terms. */
function times(left: Exact, right: Exact): Exact {
  const isZero = left.exponent === undefined || right.exponent === undefined;
  return {
    whole: (left.whole * right.whole) >> BigInt(point),
    exponent: isZero ? undefined : (left.exponent ?? 0) + (right.exponent ?? 0),
  };
}

function finiteCodes(random: Random, format: TermFormat, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, () => {
    for (;;) {
      const code =
        format === "tf32"
          ? encodeFloat("f32", random.normal() * 2 ** (random.below(16) - 8))
          : random.below(2 ** termBits(format));
      const value = decodeFloat(format === "tf32" ? "f32" : format, code);
      const isUsual =
        format !== "bf16" || (Math.abs(value) < 2 ** 30 && Math.abs(value) > 2 ** -30);
      if (value - value === 0 && (isUsual || value === 0)) return code;
    }
  });
}

const seed = 20;
const formats: readonly (readonly [TermFormat, number])[] = [
  ["f16", 16],
  ["bf16", 16],
  ["tf32", 8],
  ["f8e4m3fn", 32],
  ["f8e5m2", 32],
  ["f6e2m3fn", 32],
  ["f6e3m2fn", 32],
  ["f4e2m1fn", 32],
];

describe.each(formats)("%s", (format, k) => {
  test(`a step gives what whole numbers give, seed ${seed}`, () => {
    const random = new Random(seed);
    const [rows, columns] = [6, 7];
    const a = finiteCodes(random, format, rows * k);
    const b = finiteCodes(random, format, columns * k);
    const c = finiteCodes(random, "tf32", rows * columns);
    c[3] = 0;
    const expected = Uint32Array.from(c, (code, index) => {
      const [row, column] = [Math.floor(index / columns), index % columns];
      const terms = Array.from({ length: k }, (_, at) =>
        times(exact(format, a[row * k + at] ?? 0), exact(format, b[column * k + at] ?? 0)),
      );
      return sumOf([...terms, exact("f32", code)], 25);
    });
    multiplyTerms({
      a: decodeTerms(format, a, rows),
      b: decodeTerms(format, b, columns),
      c,
      accumulator: "f32",
    });
    expect([...c]).toEqual([...expected]);
  });

  test(`negated, what was −a · b before, seed ${seed}`, () => {
    const random = new Random(seed);
    const [a, b] = [finiteCodes(random, format, k), finiteCodes(random, format, k)];
    const run = (left: 1 | -1, right: 1 | -1): number => {
      const c = new Uint32Array(1);
      const terms = [decodeTerms(format, a, 1, left), decodeTerms(format, b, 1, right)] as const;
      multiplyTerms({ a: terms[0], b: terms[1], c, accumulator: "f32" });
      return decodeFloat("f32", c[0] ?? 0);
    };
    expect(run(-1, 1)).toBe(-run(1, 1));
    expect(run(-1, -1)).toBe(run(1, 1));
  });
});

function codesOf(values: readonly number[]): Uint16Array {
  return Uint16Array.from(values, (value) => encodeFloat("f16", value));
}

function single(a: readonly number[], b: readonly number[], c: number, rest: object = {}): number {
  const sums = Uint32Array.of(encodeFloat("f32", c));
  const terms = [decodeTerms("f16", codesOf(a), 1), decodeTerms("f16", codesOf(b), 1)] as const;
  multiplyTerms({ a: terms[0], b: terms[1], c: sums, accumulator: "f32", ...rest });
  return sums[0] ?? 0;
}

test("infinities and NaN", () => {
  const [nan, inf] = [0x7fffffff, 0x7f800000];
  expect(single([Infinity, 1], [1, 1], 0)).toBe(inf);
  expect(single([-Infinity, 1], [1, 1], 5)).toBe(0xff800000);
  expect(single([Infinity, 1], [0, 1], 0)).toBe(nan);
  expect(single([Infinity, -Infinity], [1, 1], 0)).toBe(nan);
  expect(single([1, 1], [1, NaN], 0)).toBe(nan);
  expect(single([1, 1], [1, 1], NaN)).toBe(nan);
  expect(single([1, 1], [1, 1], -Infinity)).toBe(0xff800000);
  expect(single([65504, 65504], [65504, 65504], 3.4e38)).not.toBe(nan);
});

test("D is divided by a power of two before anything is added", () => {
  expect(decodeFloat("f32", single([1, 2], [3, 4], 32, { scaleD: 4 }))).toBe(13);
});

test("into f16, to nearest even", () => {
  const c = Uint32Array.of(encodeFloat("f16", 2048));
  const [a, b] = [decodeTerms("f16", codesOf([1, 1]), 1), decodeTerms("f16", codesOf([1, 2]), 1)];
  multiplyTerms({ a, b, c, accumulator: "f16" });
  // 2051 lies between 2050 and 2052.
  expect(decodeFloat("f16", c[0] ?? 0)).toBe(2052);
});

test("scales of ue8m0 count as exponents, far beyond what f32 holds", () => {
  const scales = (code: number): BlockScales => ({
    format: "ue8m0",
    codes: Uint8Array.of(code),
    perRow: 1,
  });
  const ones = decodeTerms("f8e4m3fn", new Uint8Array(32).fill(0x38), 1);
  const run = (left: number, right: number): number => {
    const c = new Uint32Array(1);
    multiplyTerms({
      a: scaledTerms(ones, scales(left)),
      b: scaledTerms(ones, scales(right)),
      c,
      accumulator: "f32",
    });
    return c[0] ?? 0;
  };
  expect(decodeFloat("f32", run(127, 128))).toBe(64);
  expect(decodeFloat("f32", run(254, 0))).toBe(32);
  expect(run(254, 254)).toBe(0x7f800000);
  expect(run(0, 0)).toBe(0);
  expect(run(255, 127)).toBe(0x7fffffff);
});

describe.each([
  ["ue8m0", 2],
  ["ue8m0", 4],
  ["ue4m3", 4],
] as const)("e2m1 with %s, %i scales a row", (format, perRow) => {
  test(`sums of 16 are exact, seed ${seed}`, () => {
    const random = new Random(seed);
    const [rows, columns, k] = [5, 6, 64];
    const codes = (count: number): Uint8Array =>
      Uint8Array.from({ length: count }, () => random.below(16));
    const scales = (count: number): BlockScales => ({
      format,
      perRow,
      codes: Uint8Array.from({ length: count * perRow }, () =>
        format === "ue8m0" ? 107 + random.below(40) : random.below(127),
      ),
    });
    const [a, b] = [codes(rows * k), codes(columns * k)];
    const [scalesA, scalesB] = [scales(rows), scales(columns)];
    const c = finiteCodes(random, "tf32", rows * columns);
    const scaleOf = ({ codes: all }: BlockScales, line: number, group: number): Exact => {
      const code = all[line * perRow + Math.floor((group * perRow) / 4)] ?? 0;
      if (format === "ue4m3") return exact("f8e4m3fn", code);
      return { whole: exactOf(2 ** (code - 127)), exponent: code - 127 };
    };
    const expected = Uint32Array.from(c, (code, index) => {
      const [row, column] = [Math.floor(index / columns), index % columns];
      const terms = Array.from({ length: 4 }, (_, group) => {
        let whole = 0n;
        for (let at = 16 * group; at < 16 * (group + 1); at++)
          whole += times(
            exact("f4e2m1fn", a[row * k + at] ?? 0),
            exact("f4e2m1fn", b[column * k + at] ?? 0),
          ).whole;
        const scale = times(scaleOf(scalesA, row, group), scaleOf(scalesB, column, group));
        return { whole: (whole * scale.whole) >> BigInt(point), exponent: scale.exponent };
      });
      return sumOf([...terms, exact("f32", code)], 35);
    });
    multiplyNibbles(decodeNibbles(a, rows, scalesA), decodeNibbles(b, columns, scalesB), c);
    expect([...c]).toEqual([...expected]);
  });
});

test("integers wrap, or stop at the limits", () => {
  const [a, b] = [
    Int16Array.from({ length: 32 }, () => -128),
    Int16Array.from({ length: 32 }, () => 127),
  ];
  const run = (start: number, saturates: boolean): number => {
    const c = Uint32Array.of(start);
    multiplyBytesExactly(a, b, 1, 1, c, saturates);
    return (c[0] ?? 0) | 0;
  };
  expect(run(5, false)).toBe(5 - 32 * 128 * 127);
  expect(run(0x80000000, true)).toBe(-(2 ** 31));
  expect(run(0x80000000, false)).toBe((-(2 ** 31) - 32 * 128 * 127) | 0);
});

test("a sparse A meets the elements that its indices name", () => {
  const a = decodeTerms("f16", codesOf([1, 10]), 1);
  const b = decodeTerms("f16", codesOf([1, 2, 3, 4]), 1);
  const c = new Uint32Array(1);
  multiplyTerms({ a, b, c, accumulator: "f32", indices: Uint16Array.of(1, 3) });
  expect(decodeFloat("f32", c[0] ?? 0)).toBe(42);
});
