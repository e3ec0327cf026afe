import { describe, expect, test } from "vitest";
import {
  codesOf,
  finiteNumbers,
  nanCode,
  neighbour,
  referenceDecode,
  referenceEncode,
} from "../../test/number-reference.ts";
import type { ListedName } from "../../test/number-reference.ts";
import { isTaken } from "../../test/support/sample.ts";
import { Random } from "../support/random.ts";
import { decodeFloat, encodeFloat, floatFormats, roundFloat } from "./floats.ts";
import type { CodedFloatName, Overflow } from "./floats.ts";

const listed = [
  "tf32",
  "f16",
  "bf16",
  "f8e4m3fn",
  "f8e5m2",
  "f8e8m0fnu",
  "f6e2m3fn",
  "f6e3m2fn",
  "f4e2m1fn",
] as const satisfies readonly ListedName[];
const overflows = ["saturate", "nan"] as const satisfies readonly Overflow[];

/** The first few cases in which the format's code is not the reference's. */
function wrongCodes(name: ListedName, values: Iterable<number>, overflow: Overflow): string[] {
  const wrong: string[] = [];
  for (const value of values) {
    const found = encodeFloat(name, value, { overflow });
    const expected = referenceEncode(name, value, overflow);
    if (found !== expected && wrong.length < 5) wrong.push(`${value}: ${found}, not ${expected}`);
  }
  return wrong;
}

/** Around each of them, or around about one in so many of a format that has many. */
function* aroundMidpoints(name: ListedName, oneIn: number): Generator<number> {
  const numbers = finiteNumbers(name);
  for (const [i, low] of numbers.entries()) {
    if (numbers.length > 2 ** 16 && !isTaken(i, oneIn)) continue;
    const beyond = name === "f8e8m0fnu" ? 2 * low : 2 * low - (numbers[i - 1] ?? 0);
    const high = numbers[i + 1] ?? beyond;
    const midpoint = low / 2 + high / 2;
    for (const magnitude of [neighbour(midpoint, -1), midpoint, neighbour(midpoint, 1)]) {
      yield magnitude;
      yield -magnitude;
    }
  }
}

function* extremes(name: ListedName): Generator<number> {
  const { maxFinite, minPositive } = floatFormats[name];
  const magnitudes = [0, Infinity, Number.MAX_VALUE, Number.MIN_VALUE, 2 ** -1022, 2 ** -150, 3e38];
  for (const edge of [maxFinite, minPositive, 3.4028234663852886e38, 2 ** -149, 2 ** -126]) {
    magnitudes.push(edge, neighbour(edge, 1), neighbour(edge, -1), edge / 2, edge * 2);
  }
  for (const magnitude of magnitudes) {
    yield magnitude;
    yield -magnitude;
  }
  yield NaN;
}

describe.each(listed)("%s", (name) => {
  test("decodes every code", () => {
    const wrong = codesOf(name).filter(
      (code) => !Object.is(decodeFloat(name, code), referenceDecode(name, code)),
    );
    expect(wrong).toEqual([]);
  });

  test("encodes every number to its own code, and every NaN to one", () => {
    const wrong = codesOf(name).filter((code) => {
      const value = referenceDecode(name, code);
      if (Number.isNaN(value)) return encodeFloat(name, value) !== nanCode(name);
      // FP8 saturates infinities, which f8e5m2 alone has.
      if (name === "f8e5m2" && !Number.isFinite(value)) return false;
      return encodeFloat(name, value) !== code;
    });
    expect(wrong).toEqual([]);
  });

  test.each(overflows)("rounds to the nearest around every midpoint (overflow: %s)", (overflow) => {
    expect(wrongCodes(name, aroundMidpoints(name, overflow === "nan" ? 16 : 4), overflow)).toEqual(
      [],
    );
  });

  test.each(overflows)("keeps the rules at the extremes (overflow: %s)", (overflow) => {
    expect(wrongCodes(name, extremes(name), overflow)).toEqual([]);
  });

  test("agrees with the reference on random bits", () => {
    const seed = 20240517;
    const random = new Random(seed);
    const words = new Uint32Array(2);
    const double = new Float64Array(words.buffer);
    const values = Array.from({ length: 20_000 }, (_, i) => {
      words[0] = random.bits();
      // Every other value has an exponent that the format can hold.
      words[1] = random.bits();
      if (i % 2 === 0) return double[0] ?? 0;
      const { bias } = floatFormats[name];
      return random.normal() * 2 ** (random.below(2 * bias + 20) - bias - 10);
    });
    expect(wrongCodes(name, values, "saturate"), `seed ${seed}`).toEqual([]);
  });

  test("states its largest and smallest number", () => {
    const numbers = finiteNumbers(name);
    expect(floatFormats[name].maxFinite).toBe(numbers.at(-1));
    expect(floatFormats[name].minPositive).toBe(numbers.find((value) => value > 0));
  });

  test("rounds to what its code stands for", () => {
    for (const value of [1.2345678, -0.07, 1e-3, 5e4, -1e9, NaN, 0, -0]) {
      expect(roundFloat(name, value)).toBe(referenceDecode(name, referenceEncode(name, value)));
    }
  });
});

describe("values known by hand", () => {
  const known: readonly (readonly [CodedFloatName, number, number])[] = [
    ["f16", 1 / 3, 0x3555],
    ["f16", 65504, 0x7bff],
    ["f16", 65519.99, 0x7bff],
    ["f16", 65520, 0x7c00],
    ["f16", 2 ** -25, 0x0000],
    ["f16", -(2 ** -24), 0x8001],
    ["bf16", Math.PI, 0x4049],
    ["bf16", -Infinity, 0xff80],
    ["tf32", Math.PI, 0x40490000],
    ["tf32", -1.0009765625, 0xbf802000],
    ["f32", Math.PI, 0x40490fdb],
    ["f32", -NaN, 0x7fc00000],
    ["f32", -0, 0x80000000],
    ["f8e4m3fn", 1, 0x38],
    ["f8e4m3fn", 448, 0x7e],
    ["f8e4m3fn", -Infinity, 0xfe],
    ["f8e5m2", 1, 0x3c],
    ["f8e5m2", Infinity, 0x7b],
    ["f8e8m0fnu", 1, 127],
    ["f8e8m0fnu", 1.5, 128],
    ["f8e8m0fnu", 1.4999999999999998, 127],
    ["f8e8m0fnu", 0, 255],
    ["f8e8m0fnu", -1, 255],
    ["f8e8m0fnu", 1.5 * 2 ** 127, 255],
    ["f8e8m0fnu", Number.MIN_VALUE, 0],
    ["f8e8m0fnu", 1.5 * 2 ** -127, 1],
    ["f6e2m3fn", 0.0625, 0x00],
    ["f6e2m3fn", 0.1875, 0x02],
    ["f6e2m3fn", 7.4, 0x1f],
    ["f6e2m3fn", -Infinity, 0x3f],
    ["f6e2m3fn", NaN, 0x20],
    ["f6e3m2fn", 2 ** -5, 0x00],
    ["f6e3m2fn", 3 * 2 ** -5, 0x02],
    ["f6e3m2fn", 26, 0x1e],
    ["f6e3m2fn", -1000, 0x3f],
    ["f4e2m1fn", 0.25, 0x0],
    ["f4e2m1fn", 0.75, 0x2],
    ["f4e2m1fn", 2.5, 0x4],
    ["f4e2m1fn", 5, 0x6],
    ["f4e2m1fn", -100, 0xf],
    ["f4e2m1fn", NaN, 0x8],
  ];
  test.each(known)("%s(%d) is %i", (name, value, code) => {
    expect(encodeFloat(name, value)).toBe(code);
  });

  test("FP8 overflow is NaN on request, infinities included", () => {
    const options = { overflow: "nan" } as const;
    expect(encodeFloat("f8e4m3fn", 464, options)).toBe(0x7e);
    expect(encodeFloat("f8e4m3fn", -464.1, options)).toBe(0x7f);
    expect(encodeFloat("f8e5m2", 61439, options)).toBe(0x7b);
    expect(encodeFloat("f8e5m2", 61440, options)).toBe(0x7e);
    expect(encodeFloat("f8e5m2", -Infinity, options)).toBe(0x7e);
    expect(encodeFloat("f16", 1e9, options)).toBe(0x7c00);
    expect(encodeFloat("f4e2m1fn", 1e9, options)).toBe(0x7);
  });
});

describe("f64 is rounded once", () => {
  // The f32 nearest to each of these is a midpoint of the format, which would then go to even.
  const traps: readonly (readonly [CodedFloatName, number, number])[] = [
    ["f16", 1 + 2 ** -11 + 2 ** -40, 0x3c01],
    ["f16", 1 + 2 ** -10 + 2 ** -11 - 2 ** -40, 0x3c01],
    ["bf16", 1 + 2 ** -8 + 2 ** -40, 0x3f81],
    ["bf16", 2 ** -134 * (1 + 2 ** -40), 0x0001],
    ["tf32", 1 + 2 ** -11 + 2 ** -40, 0x3f802000],
    ["f8e4m3fn", 1 + 2 ** -4 + 2 ** -40, 0x39],
    ["f8e5m2", 1 + 2 ** -3 + 2 ** -40, 0x3d],
    ["f8e8m0fnu", 1.5 - 2 ** -40, 127],
    ["f4e2m1fn", 2.5 + 2 ** -40, 0x5],
  ];
  test.each(traps)("%s(%d)", (name, value, code) => {
    expect(encodeFloat(name, value)).toBe(code);
    expect(encodeFloat(name, Math.fround(value))).not.toBe(code);
  });
});
