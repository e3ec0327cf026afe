import { describe, expect, test } from "vitest";
import {
  addSizes,
  ceilDivSize,
  dimension,
  dimensionsOf,
  divideSizeExactly,
  evaluateIndexSize,
  evaluateSize,
  floorDivSize,
  knownDivisor,
  multiplySizes,
  sameShape,
  sameSize,
  sizeText,
  solveSize,
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
    expect(divideSizeExactly(area, 5)).toBeUndefined();
    expect(divideSizeExactly(n, m)).toBeUndefined();
    expect(divideSizeExactly(n, 0)).toBeUndefined();
  });

  test("know what divides them", () => {
    expect(knownDivisor(multiplySizes(3, m, n))).toBe(24);
    expect(knownDivisor(ceilDivSize(m, 4))).toBe(2);
    expect(knownDivisor(ceilDivSize(m, 3))).toBe(1);
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

describe("sums of sizes", () => {
  const difference = addSizes(n, multiplySizes(-4, m), 1);

  test("have one form, whatever order they were added in", () => {
    expect(sizeText(difference)).toBe("n - 4*m + 1");
    expect(sameSize(difference, addSizes(1, addSizes(multiplySizes(m, -4), n)))).toBe(true);
    expect(addSizes(difference, multiplySizes(4, m), -1)).toEqual(n);
    expect(addSizes(n, multiplySizes(-1, n))).toBe(0);
    expect(sizeText(multiplySizes(2, addSizes(n, 1), m))).toBe("2*m + 2*m*n");
  });

  test("are evaluated exactly, and an extent is not below 0", () => {
    expect(evaluateIndexSize(difference, values)).toBe(10 - 64 + 1);
    expect(() => evaluateSize(difference, values)).toThrow("TW4033");
    expect(evaluateSize(addSizes(n, 1), values)).toBe(11);
    expect(() => evaluateIndexSize(multiplySizes(2 ** 30, addSizes(n, 1)), values)).toThrow(
      "TW4028",
    );
  });

  test("are divided term by term, or as a whole", () => {
    expect(sizeText(ceilDivSize(addSizes(multiplySizes(4, n), 8), 4))).toBe("n + 2");
    expect(sizeText(ceilDivSize(addSizes(n, 1), 4))).toBe("ceildiv(n + 1, 4)");
    expect(sizeText(floorDivSize(addSizes(n, 1), 4))).toBe("floordiv(n + 1, 4)");
    expect(evaluateSize(floorDivSize(addSizes(n, 1), 4), values)).toBe(2);
    expect(evaluateIndexSize(floorDivSize(addSizes(n, -13), 2), values)).toBe(-2);
    expect(divideSizeExactly(addSizes(multiplySizes(2, n, m), multiplySizes(4, m)), m)).toEqual(
      addSizes(multiplySizes(2, n), 4),
    );
  });

  test("know what divides them", () => {
    expect(knownDivisor(addSizes(m, 4))).toBe(4);
    expect(knownDivisor(addSizes(multiplySizes(-3, m), 48))).toBe(24);
  });
});

test("a promised divisor makes quotients exact", () => {
  const eighth = ceilDivSize(m, 8);
  expect(floorDivSize(m, 8)).toEqual(eighth);
  expect(multiplySizes(8, eighth)).toEqual(m);
  expect(multiplySizes(16, eighth, n)).toEqual(multiplySizes(2, m, n));
  expect(divideSizeExactly(m, 4)).toEqual(ceilDivSize(m, 4));
  expect(divideSizeExactly(multiplySizes(2, m, n), multiplySizes(16, n))).toEqual(eighth);
  expect(divideSizeExactly(m, 16)).toBeUndefined();
  // Without the promise there may be a rest, and so many groups of 4 hold more than n.
  expect(sizeText(multiplySizes(4, ceilDivSize(n, 4)))).toBe("4*ceildiv(n, 4)");
  expect(evaluateSize(multiplySizes(4, ceilDivSize(n, 4)), values)).toBe(12);
  expect(sizeText(multiplySizes(16, ceilDivSize(m, 16)))).toBe("16*ceildiv(m, 16)");
  expect(knownDivisor(ceilDivSize(dimension("k", 64), 16))).toBe(4);
});

test("quotients without a rest that come together are what was divided", () => {
  const whole = addSizes(m, 8);
  const eighth = ceilDivSize(whole, 8);
  expect(addSizes(multiplySizes(3, eighth), multiplySizes(5, eighth))).toEqual(whole);
  const sum = addSizes(multiplySizes(9, eighth), n, multiplySizes(-1, eighth));
  expect(sum).toEqual(addSizes(whole, n));
  const rest = addSizes(multiplySizes(9, eighth), m, multiplySizes(-1, eighth));
  expect(rest).toEqual(addSizes(multiplySizes(2, m), 8));
  expect(addSizes(multiplySizes(8, eighth), multiplySizes(-1, whole))).toBe(0);
  const part = ceilDivSize(m, 8);
  const parts = [multiplySizes(3, part), multiplySizes(5, part)];
  expect(addSizes(...parts, m)).toEqual(multiplySizes(2, m));
  expect(addSizes(...parts, multiplySizes(-1, m))).toBe(0);
});

test("an extent says what its one dimension is", () => {
  expect(solveSize(addSizes(multiplySizes(2, n), 3), 13)).toEqual({ dimension: n, value: 5 });
  expect(solveSize(addSizes(n, m), 13)).toBeUndefined();
  expect(solveSize(ceilDivSize(n, 2), 13)).toBeUndefined();
});
