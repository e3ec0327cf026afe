import { expect, test } from "vitest";
import { bf16, f32, i32, u64, u8 } from "../formats/dtype.ts";
import { parseArgument } from "./launch-arguments.ts";

const array = { kind: "array", dtype: f32, shape: [4], contents: undefined, map: undefined };

test.each([
  ["1024", { kind: "scalar", dtype: undefined, value: 1024n }],
  ["-0x10", { kind: "scalar", dtype: undefined, value: -16n }],
  ["18446744073709551615", { kind: "scalar", dtype: undefined, value: 2n ** 64n - 1n }],
  ["0.5", { kind: "scalar", dtype: undefined, value: 0.5 }],
  ["-1e-3", { kind: "scalar", dtype: undefined, value: -0.001 }],
  ["-inf", { kind: "scalar", dtype: undefined, value: -Infinity }],
  ["nan", { kind: "scalar", dtype: undefined, value: NaN }],
  ["f32:2", { kind: "scalar", dtype: f32, value: 2n }],
  ["i32:-3", { kind: "scalar", dtype: i32, value: -3n }],
  ["u64:0xffffffffffffffff", { kind: "scalar", dtype: u64, value: 2n ** 64n - 1n }],
  ["null", { kind: "null" }],
  ["bytes:a/b.bin", { kind: "bytes", path: "a/b.bin" }],
  ["f32[4]", array],
  ["f32[4]:zeros", { ...array, contents: "zeros" }],
  ["f32[4]:random", { ...array, contents: "random" }],
  [
    "u8[2,3x4]:dir/x:1.bin",
    { ...array, dtype: u8, shape: [2, 3, 4], contents: { path: "dir/x:1.bin" } },
  ],
  [
    "map:64x8,swizzle=128,fill=nan:bf16[64,256]:random",
    {
      ...array,
      dtype: bf16,
      shape: [64, 256],
      contents: "random",
      map: { box: [64, 8], swizzle: 128, fill: "nan" },
    },
  ],
  ["map:16:f32[64]", { ...array, shape: [64], map: { box: [16], swizzle: 0, fill: "zero" } }],
])("%s", (text, expected) => {
  expect(parseArgument(text)).toEqual([{ ...expected, name: undefined }]);
  expect(parseArgument(`x_1=${text}`)).toEqual([{ ...expected, name: "x_1" }]);
});

test("arguments are taken in order", () => {
  const first = parseArgument("1");
  expect(parseArgument("y=null", first)).toEqual([...first, { kind: "null", name: "y" }]);
});

test.each([
  "",
  "f32",
  "f32:",
  "f32[]",
  "f32[4]:",
  "f33[4]",
  "f32:x",
  "1..2",
  "map:4x:f32[4]",
  "map:4,swizzle=5:f32[4]",
  "map:4:1024",
  "bytes:",
])("%j is none", (text) => {
  expect(() => parseArgument(text)).toThrow("It must look like 1024");
});
