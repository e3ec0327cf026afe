import { describe, expect, test } from "vitest";
import { expectWithin } from "../../test/support/processor-time.ts";
import { neighbour, referenceDecode, referenceElement } from "../../test/number-reference.ts";
import type { ListedName } from "../../test/number-reference.ts";
import { isTaken } from "../../test/support/sample.ts";
import { Random } from "../support/random.ts";
import { convertInto, convertElements } from "./convert.ts";
import * as formats from "./dtype.ts";
import { allocateElements, dtypeNames, dtypes, isWide } from "./dtype.ts";
import type { DType, DTypeName, Elements } from "./dtype.ts";

type Exact = number | bigint | boolean;

/** Elements with what they stand for: floats as numbers, integers as BigInts, bools as booleans. */
interface Sample {
  readonly elements: Elements;
  readonly values: readonly Exact[];
}

/** Of many codes about one in so many. */
function someOf({ elements, values }: Sample, oneIn: number): Sample {
  const isKept = (_: unknown, place: number): boolean =>
    values.length <= 2 ** 8 || isTaken(place, oneIn);
  return {
    elements: (elements as Uint16Array).filter(isKept),
    values: values.filter(isKept),
  };
}

/** Every code of a format of 16 bits or fewer. */
function everyCode(dtype: DType): Sample {
  const count = dtype.kind === "bool" ? 2 : 2 ** dtype.bits;
  const elements = allocateElements(dtype, count);
  const values = Array.from({ length: count }, (_, code): Exact => {
    if (dtype.kind === "float") {
      (elements as Uint16Array)[code] = code;
      return referenceDecode(dtype.name as ListedName, code);
    }
    const number = dtype.kind === "signed" ? code - count / 2 : code;
    (elements as Int16Array)[code] = number;
    return dtype.kind === "bool" ? code === 1 : BigInt(number);
  });
  return { elements, values };
}

function convertSample(from: DType, to: DType, sample: Sample, overflow?: "nan") {
  const target = allocateElements(to, sample.elements.length);
  convertElements(from, to, sample.elements, target, { overflow });
  const wrong: string[] = [];
  for (const [i, value] of sample.values.entries()) {
    const expected = from === to ? sample.elements[i] : referenceElement(value, to.name, overflow);
    if (!Object.is(target[i], expected) && wrong.length < 5) {
      wrong.push(`${to.name}(${value}): ${target[i]}, not ${expected}`);
    }
  }
  return wrong;
}

const narrow = Object.values(dtypes).filter(({ bits }) => bits <= 16);
const targets: readonly DType[] = Object.values(dtypes);

describe("every code of every narrow format to every format", () => {
  test.each(narrow.map(({ name }) => name))("%s", (name) => {
    // Integers of 16 bits are all alike where floats have their special codes.
    const oneIn = dtypes[name].kind === "float" ? 1 : 6;
    const sample = someOf(everyCode(dtypes[name]), oneIn);
    const wrong = targets.flatMap((to) => convertSample(dtypes[name], to, sample));
    expect(wrong).toEqual([]);
  });

  test.each(["f16", "bf16", "f8e5m2", "i16"] as const)("%s with overflow to NaN", (name) => {
    const sample = someOf(everyCode(dtypes[name]), 4);
    const wrong = targets.flatMap((to) => convertSample(dtypes[name], to, sample, "nan"));
    expect(wrong).toEqual([]);
  });
});

/** Powers of two, what lies beside and between them, and random ones, by the width of the format. */
function wideIntegers(dtype: DType, random: Random): readonly bigint[] {
  const values: bigint[] = [];
  const cut = (value: bigint) =>
    dtype.kind === "signed" ? BigInt.asIntN(dtype.bits, value) : BigInt.asUintN(dtype.bits, value);
  for (let bit = 0n; bit < dtype.bits; bit++) {
    for (const offset of [-1n, 0n, 1n]) values.push((1n << bit) + offset, -(1n << bit) + offset);
    // Midpoints of each float's numbers, and beside them.
    for (const precision of [2n, 3n, 4n, 8n, 11n, 24n, 53n]) {
      if (bit < precision) continue;
      const half = 1n << (bit - precision);
      for (const steps of [1n, 3n]) {
        const midpoint = (1n << bit) + steps * half;
        values.push(midpoint - 1n, midpoint, midpoint + 1n, -midpoint - 1n, -midpoint);
      }
    }
  }
  for (let i = 0; i < 2000; i++) {
    const bits = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
    values.push(bits >> BigInt(random.below(64)));
  }
  return values.map(cut);
}

function wideFloats(random: Random): readonly number[] {
  const values = [0, -0, NaN, Infinity, -Infinity, Number.MAX_VALUE, Number.MIN_VALUE, -0.5, 0.5];
  for (const bits of [3, 4, 7, 8, 15, 16, 31, 32, 63, 64]) {
    for (const edge of [2 ** bits, 2 ** bits - 1, 2 ** bits + 1, 2 ** bits - 0.5]) {
      for (const value of [edge, neighbour(edge, 1), neighbour(edge, -1)])
        values.push(value, -value);
    }
  }
  for (let i = 0; i < 4000; i++) values.push(random.normal() * 2 ** (random.below(300) - 150));
  return values;
}

function wideSample(dtype: DType, random: Random): Sample {
  const values = dtype.kind === "float" ? wideFloats(random) : wideIntegers(dtype, random);
  const elements = allocateElements(dtype, values.length);
  for (const [i, value] of values.entries()) {
    if (isWide(dtype)) (elements as BigInt64Array)[i] = value as bigint;
    else (elements as Float64Array)[i] = Number(value);
  }
  if (dtype.kind === "float") return { elements, values: [...(elements as Float64Array)] };
  return { elements, values };
}

describe("wide formats to every format", () => {
  test.each(["f64", "f32", "i32", "u32", "i64", "u64"] as const)("%s", (name) => {
    const seed = 7;
    const sample = wideSample(dtypes[name], new Random(seed));
    const wrong = targets.flatMap((to) => convertSample(dtypes[name], to, sample));
    expect(wrong, `seed ${seed}`).toEqual([]);
  });
});

describe("the table's rules, by example", () => {
  function convert(from: DTypeName, to: DTypeName, element: number | bigint): unknown {
    const source = allocateElements(dtypes[from], 1);
    const target = allocateElements(dtypes[to], 1);
    source.fill(element as never);
    convertElements(dtypes[from], dtypes[to], source, target);
    return target[0];
  }

  test("floats to integers truncate and saturate, and NaN is 0", () => {
    expect(convert("f32", "i8", -1.9)).toBe(-1);
    expect(convert("f32", "i8", 300)).toBe(127);
    expect(convert("f32", "u8", -3)).toBe(0);
    expect(convert("f64", "i4", -9)).toBe(-8);
    expect(convert("f64", "i64", 1e30)).toBe(2n ** 63n - 1n);
    expect(convert("f64", "i64", -1e30)).toBe(-(2n ** 63n));
    expect(convert("f64", "u64", Infinity)).toBe(2n ** 64n - 1n);
    expect(convert("f64", "u64", NaN)).toBe(0n);
    expect(convert("f64", "i32", NaN)).toBe(0);
  });

  test("integers to integers wrap", () => {
    expect(convert("i32", "i8", 200)).toBe(-56);
    expect(convert("i8", "u64", -1)).toBe(2n ** 64n - 1n);
    expect(convert("u8", "i4", 0xf8)).toBe(-8);
    expect(convert("i64", "u4", -1n)).toBe(15);
    expect(convert("u64", "i64", 2n ** 64n - 2n)).toBe(-2n);
  });

  test("64-bit integers are rounded once", () => {
    // The nearest f64 is the midpoint 2^60 + 2^36 of two f32 numbers; the integer is above it.
    const value = 2n ** 60n + 2n ** 36n + 1n;
    expect(convert("i64", "f32", value)).toBe(2 ** 60 + 2 ** 37);
    expect(convert("u64", "f32", value)).toBe(2 ** 60 + 2 ** 37);
    expect(convert("i64", "f32", -value)).toBe(-(2 ** 60 + 2 ** 37));
  });

  test("whatever differs from zero is true", () => {
    expect(convert("f32", "bool", NaN)).toBe(1);
    expect(convert("f32", "bool", -0)).toBe(0);
    expect(convert("f16", "bool", 0x8000)).toBe(0);
    expect(convert("i64", "bool", 2n ** 40n)).toBe(1);
  });

  test("NaN is made without sign", () => {
    const source = new Uint16Array([0xffff]);
    const single = new Float32Array(1);
    const double = new Float64Array(1);
    convertElements(formats.f16, formats.f32, source, single);
    convertElements(formats.f16, formats.f64, source, double);
    expect(new Uint32Array(single.buffer)[0]).toBe(0x7fc00000);
    expect(new BigUint64Array(double.buffer)[0]).toBe(0x7ff8000000000000n);
    const signed = new Float32Array(new Uint32Array([0xffc00001]).buffer);
    convertElements(formats.f32, formats.f64, signed, double);
    expect(new BigUint64Array(double.buffer)[0]).toBe(0x7ff8000000000000n);
  });

  test("a format to itself keeps every bit", () => {
    const source = new Float32Array(new Uint32Array([0xff800001, 0x80000000]).buffer);
    const target = new Float32Array(2);
    convertElements(formats.f32, formats.f32, source, target);
    expect([...new Uint32Array(target.buffer)]).toEqual([0xff800001, 0x80000000]);
  });
});

describe("elements", () => {
  test("of any number are converted, each once", () => {
    for (const count of [0, 1, 1023, 1024, 1025, 5000]) {
      const source = Int32Array.from({ length: count }, (_, i) => i - 7);
      const target = new Float64Array(count);
      convertElements(formats.i32, formats.f64, source, target);
      expect([...target]).toEqual([...source]);
    }
  });

  test("go into the middle of others", () => {
    const target = new BigInt64Array([9n, 9n, 9n, 9n]);
    convertInto(formats.f32, formats.i64, new Float32Array([1.5, -2.5]), target, 1);
    expect([...target]).toEqual([9n, 1n, -2n, 9n]);
  });

  test("of 64 bits may lie anywhere in a buffer", () => {
    const source = new BigInt64Array([5n, -6n, 7n]).subarray(1);
    const target = new Float32Array(2);
    convertElements(formats.i64, formats.f32, source, target);
    expect([...target]).toEqual([-6, 7]);
  });

  test("must be as many as the source's", () => {
    const convert = () =>
      convertElements(formats.f32, formats.bf16, new Float32Array(8), new Uint16Array(4));
    expect(convert).toThrow(/^TW0005: .*\n.*\n  expected: 8 target elements\n  found: {4}4\n/);
  });

  test("are converted by the million in no time", () => {
    const source = Float32Array.from({ length: 1 << 20 }, (_, i) => i * 0.37 - 1e5);
    const target = new Uint16Array(source.length);
    expectWithin(300, () => {
      convertElements(formats.f32, formats.bf16, source, target);
    });
  });
});

test("the names of all formats are listed", () => {
  expect(dtypeNames).toHaveLength(22);
});
