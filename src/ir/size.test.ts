import { describe, expect, test } from "vitest";
import {
  ceilDivSize,
  dimension,
  dimensionsOf,
  divideSizeExactly,
  evaluateIndexSize,
  evaluateSize,
  knownDivisor,
  multiplySizes,
  sameShape,
  sameSize,
  sizeText,
} from "./size.ts";

const n = dimension("n");
const m = dimension("m", 8);
const values = new Map([
  ["n", 10],
  ["m", 16],
]);

describe("sizes", () => {
  test("have one form, whatever order they were multiplied in", () => {
    const left = multiplySizes(2, n, multiplySizes(m, 3));
    expect(sizeText(left)).toBe("6*m*n");
    expect(sameSize(left, multiplySizes(m, 6, n))).toBe(true);
    expect(multiplySizes(n, 1)).toBe(n);
    expect(multiplySizes(n, 0)).toBe(0);
    expect(evaluateSize(left, values)).toBe(960);
  });

  test.each([
    [0, 4, 0],
    [1, 4, 1],
    [8, 4, 2],
    [9, 4, 3],
  ])("%i in groups of %i are %i", (size, by, groups) => {
    expect(ceilDivSize(size, by)).toBe(groups);
    expect(evaluateSize(ceilDivSize(n, by), new Map([["n", size]]))).toBe(groups);
  });

  test("are divided at once only where the quotient is exact", () => {
    expect(sizeText(ceilDivSize(multiplySizes(4, n), 2))).toBe("2*n");
    expect(sizeText(ceilDivSize(multiplySizes(3, n), 2))).toBe("ceildiv(3*n, 2)");
    expect(evaluateSize(ceilDivSize(multiplySizes(3, n), 4), values)).toBe(8);
    expect(ceilDivSize(n, 1)).toBe(n);
    expect(() => ceilDivSize(n, 0)).toThrow(RangeError);
  });

  test("cancel equal factors", () => {
    const area = multiplySizes(6, n, m);
    expect(divideSizeExactly(area, multiplySizes(2, m))).toEqual(multiplySizes(3, n));
    expect(divideSizeExactly(area, 4)).toBeUndefined();
    expect(divideSizeExactly(n, m)).toBeUndefined();
    expect(divideSizeExactly(n, 0)).toBeUndefined();
  });

  test("know what divides them", () => {
    expect(knownDivisor(multiplySizes(3, m, n))).toBe(24);
    expect(knownDivisor(ceilDivSize(m, 4))).toBe(1);
    expect(dimensionsOf(multiplySizes(m, ceilDivSize(n, 4)))).toEqual(
      expect.arrayContaining([m, n]),
    );
  });

  test("make shapes that are compared axis by axis", () => {
    expect(sameShape([n, 4], [dimension("n"), 4])).toBe(true);
    expect(sameShape([n, 4], [n])).toBe(false);
    expect(sameShape([n, 4], [4, n])).toBe(false);
  });
});

test("a size that is an index is below 2^31", () => {
  const product = multiplySizes(dimension("n"), dimension("m"));
  const values = (n: number) =>
    new Map([
      ["n", n],
      ["m", 2 ** 16],
    ]);
  expect(evaluateIndexSize(product, values(2 ** 15 - 1))).toBe(2 ** 31 - 2 ** 16);
  expect(() => evaluateIndexSize(product, values(2 ** 15))).toThrow("TW4028");
});
