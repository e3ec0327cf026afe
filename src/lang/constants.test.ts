import { expect, test } from "vitest";
import { bodyText, testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f8e4m3fn,
  f8e8m0fnu,
  i32,
  i64,
  i8,
  u64,
  u8,
} from "../formats/dtype.ts";
import { constant, full, kernel } from "./index.ts";

const constants: readonly Mistake[] = [
  {
    name: "fraction beside integers",
    code: "TW1007",
    make: () => trace(({ i }) => i.add(0.5)), // <- here
    message: "0.5 is not a value of i32",
    expected: "a whole number from -2147483648 to 2147483647",
  },
  {
    name: "NaN beside integers",
    code: "TW1007",
    make: () => trace(({ i }) => i.mul(NaN)), // <- here
  },
  {
    name: "integer out of range",
    code: "TW1007",
    make: () => trace(() => full(u8, [4], 256)), // <- here
    expected: "a whole number from 0 to 255",
  },
  {
    name: "negative unsigned integer",
    code: "TW1007",
    make: () => trace(() => full(u8, [4], -1)), // <- here
  },
  {
    name: "inexact 64-bit integer",
    code: "TW1007",
    make: () => trace(() => constant(i64, 2 ** 60)), // <- here
    expected: "as a bigint where a number is not exact",
  },
  {
    name: "64-bit integer out of range",
    code: "TW1007",
    make: () => trace(() => constant(i64, 2n ** 63n)), // <- here
    message: "9223372036854775808n is not a value of i64",
  },
  {
    name: "number for a bool",
    code: "TW1007",
    make: () => trace(() => constant(bool, 1)), // <- here
    expected: "true or false",
  },
  {
    name: "boolean for a float",
    code: "TW1007",
    make: () => trace(() => constant(f32, wrong(true))), // <- here
  },
  {
    name: "float beyond the format",
    code: "TW1007",
    make: () => trace(({ row }) => row.add(1e39)), // <- here
    message: "1e+39 is not a value of f32",
  },
  {
    name: "infinity where the format has none",
    code: "TW1007",
    make: () => trace(() => constant(f8e4m3fn, Infinity)), // <- here
    message: "Infinity is not a value of f8e4m3fn",
  },
  {
    name: "NaN where the format has none",
    code: "TW1007",
    make: () => trace(() => constant(f4e2m1fn, NaN)), // <- here
  },
  {
    name: "zero where the format has none",
    code: "TW1007",
    make: () => trace(() => constant(f8e8m0fnu, 0)), // <- here
  },
];

testMistakes("constants", constants);

/** The literal that the constant of a traced value has. */
function literal(make: () => unknown): string {
  const text = bodyText(kernel({ name: "constants" }, make));
  return /value = ([^,}]+)/.exec(text)?.[1] ?? text;
}

test("plain numbers become constants of the dtype", () => {
  expect(literal(() => constant(i32, -5))).toBe("-5");
  expect(literal(() => constant(u8, 255))).toBe("255");
  expect(literal(() => constant(i8, wrong(-128n)))).toBe("-128");
  expect(literal(() => constant(bool, true))).toBe("true");
  expect(literal(() => constant(i64, -(2n ** 63n)))).toBe("-9223372036854775808n");
  expect(literal(() => constant(u64, 7))).toBe("7n");
});

test("floats are rounded to the format", () => {
  expect(literal(() => constant(f32, 0.1))).toBe(String(Math.fround(0.1)));
  expect(literal(() => constant(bf16, 1.003))).toBe("1");
  expect(literal(() => constant(f16, 65519))).toBe("65504");
  expect(literal(() => constant(f8e4m3fn, 0.3))).toBe("0.3125");
});

test("infinities and NaN are constants of formats that have them", () => {
  const values: unknown[] = [];
  const { kernel: ir } = kernel({ name: "special" }, () => {
    constant(f32, -Infinity);
    constant(f8e4m3fn, NaN);
  });
  for (const op of ir.body.ops) if (op.kind === "constant") values.push(op.attributes.value);
  expect(values).toEqual([-Infinity, NaN]);
});
