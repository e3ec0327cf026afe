/** Arrays by name as the values of a program: what does not fit is refused, and says how. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { bf16, f32, f64, i32, tf32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers } from "../../formats/hostarray.ts";
import { tensorType } from "../ops/index.ts";
import { namedTensors, tensorOfArray } from "./index.ts";

const two = (dtype: DType) => fromNumbers(dtype, [2], [1, 2]);
const real = [tensorType("bf16", [2])];
const complex = [tensorType("complex<f64>", [1])];

describe("arrays by name", () => {
  test("one array each, as it is or of the type that its name has", () => {
    const others = { in1: two(f32), in10: two(i32) };
    expect(namedTensors({ "in0.bfloat16": two(f32), ...others }, "in", real)).toEqual([
      { kind: "tensor", element: "bf16", shape: [2], data: Uint16Array.of(0x3f80, 0x4000) },
    ]);
    expect(namedTensors({ in0: fromNumbers(f64, [1, 2], [3, 4]) }, "in", complex)).toEqual([
      { kind: "tensor", element: "complex<f64>", shape: [1], data: Float64Array.of(3, 4) },
    ]);
  });

  test.each([
    ["an array as it is and another of its type", { in0: two(bf16), "in0.bfloat16": two(f32) }],
    ["arrays of two types", { "in0.float16": two(f32), "in0.bfloat16": two(f32) }],
    ["a format that programs do not have", { in0: two(tf32) }],
    ["a type that nobody knows", { "in0.float7": two(f32) }],
    ["a number that its type does not have", { "in0.int4": fromNumbers(f32, [2], [7, 8]) }],
    ["a fraction of an integer", { "in0.uint2": fromNumbers(f32, [2], [3, 0.5]) }],
    ["none", { in1: two(f32) }],
  ])("refused: %s", (_, arrays) => {
    expect(codeOf(() => namedTensors(arrays, "in", real))).toBe("TW9505");
  });

  test.each([
    ["whole numbers", fromNumbers(i32, [1, 2], [3, 4])],
    ["numbers of 16 bits", fromNumbers(bf16, [1, 2], [3, 4])],
    ["a last axis of three", fromNumbers(f32, [1, 3], [3, 4, 5])],
    ["a number without axes", fromNumbers(f32, [], [3])],
  ])("refused as complex numbers: %s", (_, array) => {
    expect(codeOf(() => namedTensors({ in0: array }, "in", complex))).toBe("TW9505");
    expect(codeOf(() => tensorOfArray(array, true))).toBe("TW9505");
  });
});
