import { describe, expect, expectTypeOf, test } from "vitest";
import * as formats from "./dtype.ts";
import { allocateLanes, bool, f16, f32, f4e2m1fn, f64, i64, i8, tf32, u64 } from "./dtype.ts";
import type { DTypeName } from "./dtype.ts";
import { convertValue, readLane, writeLane } from "./values.ts";

describe("a lane", () => {
  test("reads as a number, a BigInt or a boolean", () => {
    expect(readLane(f16, new Uint16Array([0, 0x3e00]), 1)).toBe(1.5);
    expect(readLane(i64, new BigInt64Array([-5n]), 0)).toBe(-5n);
    expect(readLane(bool, new Uint8Array([0, 1]), 1)).toBe(true);
    expect(readLane(bool, new Uint8Array([0, 1]), 0)).toBe(false);
    expectTypeOf(readLane(u64, new BigUint64Array(1), 0)).toEqualTypeOf<bigint>();
    expectTypeOf(readLane(bool, new Uint8Array(1), 0)).toEqualTypeOf<boolean>();
  });

  test.each(formats.dtypeNames)("of %s is written and read back", (name) => {
    const dtype = formats.dtypes[name];
    const lanes = allocateLanes<DTypeName>(dtype, 3);
    writeLane<DTypeName>(dtype, lanes, 1, 1);
    expect(Number(readLane<DTypeName>(dtype, lanes, 1))).toBe(1);
    expect([Number(lanes[0]), Number(lanes[2])]).toEqual([0, 0]);
  });

  test("takes numbers as f64, booleans as bool and BigInts as 64-bit integers", () => {
    const bytes = new Int8Array(4);
    writeLane(i8, bytes, 0, 300);
    writeLane(i8, bytes, 1, 300n);
    writeLane(i8, bytes, 2, -129n);
    writeLane(i8, bytes, 3, true);
    expect([...bytes]).toEqual([127, 44, 127, 1]);
  });

  test("refuses a BigInt of more than 64 bits", () => {
    const lanes = new BigUint64Array(3);
    expect(() => writeLane(u64, lanes, 2, 2n ** 64n)).toThrow(/^TW0004: element 2 of a u64 array/);
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
