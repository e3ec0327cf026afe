import { describe, expect, test } from "vitest";
import { bf16, f32, f4e2m1fn, fromNumbers } from "tilewright";
import type { DType } from "tilewright";
import { disagreement } from "./compare.ts";
import { tensorOfArray } from "./value.ts";

const compare = (
  dtype: DType,
  ours: readonly number[],
  theirs: readonly number[],
  exact: readonly number[],
): string | undefined => {
  const [a, b] = [ours, theirs].map((each) =>
    tensorOfArray(fromNumbers(dtype, [each.length], each)),
  );
  const reference = tensorOfArray(fromNumbers(f32, [exact.length], exact));
  if (a === undefined || b === undefined) throw new Error("two tensors");
  return disagreement(a, b, reference);
};

describe("floats", () => {
  test("ours may be four times as far from the reference as theirs", () => {
    expect(compare(f32, [1.0004, 1], [1.0001, 1], [1, 1])).toBeUndefined();
    expect(compare(f32, [1.0005, 1], [1.0001, 1], [1, 1])).toContain("element 0");
  });

  test("theirs must be near the reference, which is ours", () => {
    expect(compare(f32, [1, 2], [1, 2.0001], [1, 2])).toBeUndefined();
    expect(compare(f32, [1, 2], [1, 2.002], [1, 2])).toContain("element 1 is 2, not 2.00");
    expect(compare(bf16, [1, 2], [1, 2.0625], [1, 2])).toBeUndefined();
    expect(compare(bf16, [1, 2], [1, 2.5], [1, 2])).toContain("element 1 is 2, not 2.5");
  });

  test("what rounding takes from ours it may take from theirs", () => {
    expect(compare(f32, [1.01, 2], [1, 2.05], [1, 2])).toContain("element 0");
    expect(compare(f32, [1.01, 2], [1.01, 2.05], [1, 2])).toBeUndefined();
  });

  test("formats without infinities end at their largest number", () => {
    expect(compare(f4e2m1fn, [6, 1], [6, 1], [6, 1])).toBeUndefined();
    expect(compare(f4e2m1fn, [6, 1], [6, 1], [Infinity, 1])).toBeUndefined();
    expect(compare(f4e2m1fn, [4, 1], [6, 1], [Infinity, 1])).toContain("element 0");
  });

  test("results of zeros have no scale of their own", () => {
    expect(compare(f32, [0, 0], [1e-7, 0], [0, 0])).toBeUndefined();
    expect(compare(f32, [0, 0], [1e-2, 0], [0, 0])).toContain("element 0");
  });
});
