import { describe, expect, expectTypeOf, test } from "vitest";
import * as formats from "./dtype.ts";
import { allocateElements, bool, f16, f32, f4e2m1fn, f64, i64, i8, tf32, u64 } from "./dtype.ts";
import type { DTypeName } from "./dtype.ts";
import { convertValue, readElement, writeElement } from "./values.ts";

describe("an element", () => {
  test("reads as a number, a BigInt or a boolean", () => {
    expect(readElement(f16, new Uint16Array([0, 0x3e00]), 1)).toBe(1.5);
    expect(readElement(i64, new BigInt64Array([-5n]), 0)).toBe(-5n);
    expect(readElement(bool, new Uint8Array([0, 1]), 1)).toBe(true);
    expect(readElement(bool, new Uint8Array([0, 1]), 0)).toBe(false);
    expectTypeOf(readElement(u64, new BigUint64Array(1), 0)).toEqualTypeOf<bigint>();
    expectTypeOf(readElement(bool, new Uint8Array(1), 0)).toEqualTypeOf<boolean>();
  });

  test.each(formats.dtypeNames)("of %s is written and read back", (name) => {
    const dtype = formats.dtypes[name];
    const elements = allocateElements<DTypeName>(dtype, 3);
    writeElement<DTypeName>(dtype, elements, 1, 1);
    expect(Number(readElement<DTypeName>(dtype, elements, 1))).toBe(1);
    expect([Number(elements[0]), Number(elements[2])]).toEqual([0, 0]);
  });

  test("takes numbers as f64, booleans as bool and BigInts as 64-bit integers", () => {
    const bytes = new Int8Array(4);
    writeElement(i8, bytes, 0, 300);
    writeElement(i8, bytes, 1, 300n);
    writeElement(i8, bytes, 2, -129n);
    writeElement(i8, bytes, 3, true);
    expect([...bytes]).toEqual([127, 44, 127, 1]);
  });

  test("refuses a BigInt of more than 64 bits", () => {
    const elements = new BigUint64Array(3);
    expect(() => writeElement(u64, elements, 2, 2n ** 64n)).toThrow(
      /^TW0004: element 2 of a u64 array/,
    );
  });
});

describe("convertValue", () => {
  test("rounds into the first format, then into the second", () => {
    expect(convertValue(f64, f32, 0.1)).toBe(Math.fround(0.1));
    expect(convertValue(f16, f64, 0.1)).toBe(0.0999755859375);
    expect(convertValue(f32, tf32, 1 + 2 ** -20)).toBe(1);
    expect(convertValue(f32, f4e2m1fn, -100)).toBe(-6);
    expect(convertValue(f32, formats.f8e4m3fn, 1e4, { overflow: "nan" })).toBe(NaN);
  });

  test("crosses between numbers, BigInts and booleans", () => {
    expect(convertValue(f64, i64, -3.7)).toBe(-3n);
    expect(convertValue(i64, i8, 2n ** 40n + 5n)).toBe(5);
    expect(convertValue(f32, bool, 0.5)).toBe(true);
    expect(convertValue(bool, u64, true)).toBe(1n);
  });
});
