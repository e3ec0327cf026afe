/** The quick comparison of arrays says what a slow one says, or nothing. */
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { sameValues } from "./support/equal-arrays.ts";

const scalars = [0, -0, 1, NaN, Infinity, 2n, "1", true, null, undefined, {}, [1]];
const values: readonly unknown[] = [
  ...scalars,
  ...scalars.map((value) => [3, value]),
  [],
  [3, , 4],
  [3, undefined, 4],
  [3, 3, 4],
  ...[Float32Array, Float64Array, Int32Array, Uint8Array].flatMap((Type) => [
    new Type([]),
    new Type([0, 1]),
    new Type([-0, 1]),
    new Type([NaN, 2]),
    new Type([0, 1, 2]),
  ]),
  new BigInt64Array([0n, 1n]),
  new DataView(new ArrayBuffer(8)),
  { length: 0 },
];

test("arrays that are quickly found to be the same are the same", () => {
  for (const a of values)
    for (const b of values)
      if (sameValues(a, b) === true) expect(isDeepStrictEqual(a, b)).toBe(true);
});

test("arrays of values alone are quickly found to be the same as their copies", () => {
  for (const value of values) {
    const copy: unknown = structuredClone(value);
    const isSimple =
      (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) &&
      [...(value as readonly unknown[])].every((one) => one !== undefined && Object(one) !== one);
    expect(sameValues(value, copy)).toBe(isSimple ? true : undefined);
  }
});

test("what differs is refused", () => {
  const pairs = [
    [
      [1, 2],
      [1, 3],
    ],
    [new Float32Array([1, 2]), new Float32Array([1, 3])],
    [new Float32Array([0]), new Float32Array([-0])],
    [new Float32Array([1]), new Float64Array([1])],
    [new Float32Array([1]), [1]],
    [
      [[1], [2]],
      [[1], [3]],
    ],
  ] as const;
  for (const [a, b] of pairs) {
    expect(() => {
      expect(a).toEqual(b);
    }).toThrow(/to deeply equal/);
    expect(a).toEqual(structuredClone(a));
  }
});
