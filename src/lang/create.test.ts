/** Sizes as values, and axes that count from the end. */
import { describe, expect, test } from "vitest";
import { bodyText, testMistakes, trace } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { array, cdiv, concatenate, constant, dim, full, iota, kernel } from "./index.ts";
import type { Tile } from "./index.ts";

describe("sizes as values", () => {
  const n = dim("n");

  test("are i32 scalars, cast to other dtypes and repeated in a tile", async () => {
    const sizes = kernel(
      {
        name: "sizes",
        inputs: { x: array(f32, [n]) },
        outputs: { whole: array(i32, [2]), half: array(f32, [1]), tile: array(f32, [4]) },
      },
      ({ whole, half, tile }) => {
        whole.at(0).store(constant(i32, n));
        whole.at(1).store(constant(i32, cdiv(n, 4)));
        half.at(0).store(constant(f32, n).div(2));
        tile.store(full(f32, [4], n));
      },
    );
    const device = await open("simulator");
    try {
      const x = fromNumbers(f32, [7], new Float32Array(7));
      const { whole, half, tile } = await device.run(sizes, { x });
      expect([...toNumbers(whole)]).toEqual([7, 2]);
      expect([...toNumbers(half)]).toEqual([3.5]);
      expect([...toNumbers(tile)]).toEqual([7, 7, 7, 7]);
    } finally {
      device.dispose();
    }
  });
});

describe("negative axes", () => {
  const cases: readonly (readonly [string, (tile: Tile<"f32">, axis: number) => unknown])[] = [
    ["sum", (tile, axis) => tile.sum(axis)],
    ["max, kept", (tile, axis) => tile.max(axis, { keep: true })],
    ["cumsum", (tile, axis) => tile.cumsum(axis)],
    ["sort", (tile, axis) => tile.sort(axis)],
    ["argmax", (tile, axis) => tile.argmax(axis)],
    ["concatenate", (tile, axis) => concatenate([tile, tile], axis)],
    ["iota", (tile, axis) => iota(i32, tile.shape, axis)],
  ];

  test.each(cases)("count from the end: %s", (_, make) => {
    for (const axis of [0, 1]) {
      const fromStart = trace(({ matrix }) => make(matrix, axis));
      const fromEnd = trace(({ matrix }) => make(matrix, axis - 2));
      expect(bodyText(fromEnd)).toBe(bodyText(fromStart));
    }
  });

  test("of expand count the new axis too", () => {
    const shapes: (readonly number[])[] = [];
    trace(({ matrix }) => {
      for (const axis of [-1, -2, -3]) shapes.push(matrix.expand(axis).shape);
    });
    expect(shapes).toEqual([
      [8, 64, 1],
      [8, 1, 64],
      [1, 8, 64],
    ]);
  });

  testMistakes("that do not exist", [
    {
      name: "before the first",
      code: "TW2020",
      make: () => trace(({ matrix }) => matrix.sum(-3)), // <- here
      message: "no axis -3",
    },
    {
      name: "of expand",
      code: "TW1008",
      make: () => trace(({ matrix }) => matrix.expand(-4)), // <- here
      expected: "an axis from -3 to 2",
    },
    {
      name: "the only one",
      code: "TW1015",
      make: () => trace(({ row }) => row.sum(-1)), // <- here
      message: "sum(-1)",
    },
  ]);
});
