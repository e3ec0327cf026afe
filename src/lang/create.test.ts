/** Sizes as values, and axes that count from the end. */
import { describe, expect, test } from "vitest";
import { bodyText, testMistakes, trace } from "../../test/language.ts";
import { f16, f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import {
  tensor,
  cdiv,
  concatenate,
  constant,
  dim,
  dot,
  full,
  iota,
  kernel,
  zeros,
} from "./index.ts";
import type { Tile } from "./index.ts";

describe("sizes as values", () => {
  const n = dim("n");

  test("are i32 scalars, cast to other dtypes and repeated in a tile", async () => {
    const sizes = kernel(
      {
        name: "sizes",
        inputs: { x: tensor(f32, [n]) },
        outputs: { whole: tensor(i32, [2]), half: tensor(f32, [1]), tile: tensor(f32, [4]) },
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
    ["sum", (tile, axis) => tile.sum({ axis })],
    ["max, kept", (tile, axis) => tile.max({ axis, keepDims: true })],
    ["cumsum", (tile, axis) => tile.cumsum({ axis })],
    ["sort", (tile, axis) => tile.sort({ axis })],
    ["argmax", (tile, axis) => tile.argmax({ axis })],
    ["concatenate", (tile, axis) => concatenate([tile, tile], { axis })],
    ["iota", (tile, axis) => iota(i32, tile.shape, { axis })],
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
      for (const axis of [-1, -2, -3]) shapes.push(matrix.expand({ axis }).shape);
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
      make: () => trace(({ matrix }) => matrix.sum({ axis: -3 })), // <- here
      message: "no axis -3",
    },
    {
      name: "of expand",
      code: "TW1008",
      make: () => trace(({ matrix }) => matrix.expand({ axis: -4 })), // <- here
      expected: "an axis from -3 to 2",
    },
  ]);
});

test("dot with leading axes is a product for each of their items", async () => {
  const [m, k, n] = [16, 16, 8];
  const items = [2, 3];
  const shapes = { x: [...items, m, k], y: [...items, k, n], z: [...items, m, n] };
  const products = kernel(
    {
      name: "products",
      inputs: { x: tensor(f16, shapes.x), y: tensor(f16, shapes.y), z: tensor(f32, shapes.z) },
      outputs: { plain: tensor(f32, shapes.z), added: tensor(f32, shapes.z) },
    },
    ({ x, y, z, plain, added }) => {
      plain.store(dot(x.load(), y.load()));
      added.store(dot(x.load(), y.load(), { accumulator: z.load() }));
    },
  );
  const numbers = (shape: readonly number[], seed: number): readonly number[] =>
    Array.from(
      { length: shape.reduce((all, extent) => all * extent, 1) },
      (_, at) => ((at * 7 + seed) % 13) - 6,
    );
  const [x, y, z] = [numbers(shapes.x, 1), numbers(shapes.y, 2), numbers(shapes.z, 3)];
  const expected = z.map((_, at) => {
    const [item, row, column] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
    let sum = 0;
    for (let inner = 0; inner < k; inner++)
      sum += (x[(item * m + row) * k + inner] ?? NaN) * (y[(item * k + inner) * n + column] ?? NaN);
    return sum;
  });
  for (const name of ["simulator", "emulator"] as const) {
    const device = await open(name);
    const found = await device.run(products, {
      x: fromNumbers(f16, shapes.x, x),
      y: fromNumbers(f16, shapes.y, y),
      z: fromNumbers(f32, shapes.z, z),
    });
    expect([...toNumbers(found.plain)], name).toEqual(expected);
    expect([...toNumbers(found.added)], name).toEqual(
      expected.map((sum, at) => sum + (z[at] ?? NaN)),
    );
    device.dispose();
  }
});

testMistakes("leading axes of dot", [
  {
    name: "items of one operand alone",
    code: "TW1010",
    make: () =>
      trace(() => {
        dot(zeros(f16, [2, 16, 16]), zeros(f16, [3, 16, 8])); // <- here
      }),
    message: "left and right operands of dot have different leading axes",
    expected: "[2]",
    found: "[3]",
  },
  {
    name: "a precision that nobody knows",
    code: "TW2001",
    make: () =>
      trace(() => {
        dot(zeros(f32, [16, 16]), zeros(f32, [16, 8]), { precision: "fp32" as "ieee" }); // <- here
      }),
    message: "precision of dot is not one of native, ieee, tf32, tf32x3, bf16x3, bf16x6, bf16x9",
    expected: "one of native, ieee, tf32, tf32x3, bf16x3, bf16x6, bf16x9",
    found: 'the text "fp32"',
  },
  {
    name: "formats that do not multiply",
    code: "TW2031",
    make: () =>
      trace(() => {
        dot(zeros(f16, [16, 16]), zeros(i32, [16, 8])); // <- here
      }),
    message: "dot does not multiply f16 by i32",
    expected:
      "two of f64, f32, tf32, f16, bf16 or f4e2m1fn, two of f8e4m3fn and f8e5m2, two of i4 and u4, or two of i8 and u8",
    found: "f16 and i32",
  },
]);
