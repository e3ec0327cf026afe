import { describe, expect, test } from "vitest";
import { runKernel } from "../../test/simulation.ts";
import { bf16, bool, f32, i32, i64, u4, u8, u32 } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import {
  tensor,
  concatenate,
  constant,
  dim,
  dot,
  full,
  gridSize,
  iota,
  kernel,
  scalar,
  threadIndex,
  zeros,
} from "../lang/index.ts";
import type { Ref, Tile } from "../lang/index.ts";
import type { DType } from "../formats/dtype.ts";

/** Runs a kernel of one block that maps one tile to another. */
async function mapTile<A extends DTypeName, B extends DTypeName>(
  from: { readonly dtype: DType<A>; readonly shape: readonly number[] },
  values: readonly (number | bigint)[],
  to: { readonly dtype: DType<B>; readonly shape: readonly number[] },
  body: (tile: Tile<A>) => Parameters<Ref<B>["store"]>[0],
): Promise<readonly number[]> {
  const k = kernel(
    {
      name: "map",
      inputs: { x: tensor(from.dtype, from.shape) },
      outputs: { out: tensor(to.dtype, to.shape) },
    },
    ({ x, out }) => {
      out.store(body(x.load()));
    },
  );
  const run = await runKernel(k, { x: fromNumbers(from.dtype, from.shape, values) });
  expect(run.findings).toEqual([]);
  return run.numbers("out");
}

const four = { dtype: f32, shape: [4] };

describe("elementwise ops", () => {
  test("unary functions act on every element", async () => {
    const out = await mapTile(four, [0, 1, 4, 9], four, (x) => x.sqrt().neg());
    expect(out).toEqual([-0, -1, -2, -3]);
  });

  test("binary functions round in the format", async () => {
    const out = await mapTile(four, [1, 2 ** 24, 0.1, 3], four, (x) => x.add(1).mul(x));
    const reference = [1, 2 ** 24, 0.1, 3].map((value) => {
      const x = Math.fround(value);
      return Math.fround(Math.fround(x + 1) * x);
    });
    expect(out).toEqual(reference);
  });

  test("comparison, select and classification", async () => {
    const out = await mapTile(four, [1, NaN, Infinity, -2], four, (x) =>
      x.isNan().select(0, x.gt(0).and(x.isFinite()).select(x, -1)),
    );
    expect(out).toEqual([1, 0, -1, -1]);
  });

  test("a scalar condition chooses a whole tile", async () => {
    const out = await mapTile(four, [1, 2, 3, 4], four, (x) => x.sum().gt(5).select(x, x.neg()));
    expect(out).toEqual([1, 2, 3, 4]);
  });

  test("fma rounds once", async () => {
    const x = 1 + 2 ** -12;
    const out = await mapTile(four, [x, 2, 3, 4], four, (tile) => tile.fma(tile, -1));
    const exact = 2 ** -11 + 2 ** -24;
    expect(out).toEqual([exact, 3, 8, 15]);
  });

  test("casts follow the conversion table", async () => {
    const out = await mapTile(four, [300, -3, 2.9, NaN], { dtype: u8, shape: [4] }, (x) =>
      x.cast(u8),
    );
    expect(out).toEqual([255, 0, 2, 0]);
  });

  test("bitcast keeps bits, of tiles, scalars and 4-bit elements", async () => {
    const ones = await mapTile(four, [1, -0, 0, 2], { dtype: u32, shape: [4] }, (x) =>
      x.bitcast(u32),
    );
    expect(ones).toEqual([0x3f800000, 0x80000000, 0, 0x40000000]);
    const scalarBits = await mapTile(four, [1, 1, 1, 1], { dtype: u32, shape: [] }, (x) =>
      x.min().bitcast(u32),
    );
    expect(scalarBits).toEqual([0x3f800000]);
  });

  test("i64 arithmetic is exact, on tiles and scalars", async () => {
    const k = kernel(
      {
        name: "wide",
        inputs: { x: tensor(i64, [2]), s: scalar(i64) },
        outputs: { out: tensor(i64, [2]) },
      },
      ({ x, s, out }) => {
        out.store(x.load().mul(s.add(1n)));
      },
    );
    const run = await runKernel(k, { x: fromNumbers(i64, [2], [2n ** 40n + 1n, -3n]), s: 1000n });
    expect([...(run.results["out"]?.data ?? [])]).toEqual([(2n ** 40n + 1n) * 1001n, -3003n]);
  });

  test("4-bit elements are packed in memory and whole in registers", async () => {
    const k = kernel(
      { name: "nibbles", inputs: { x: tensor(u4, [6]) }, outputs: { out: tensor(u4, [6]) } },
      ({ x, out }) => {
        out.store(x.load().add(1));
      },
    );
    const run = await runKernel(k, { x: fromNumbers(u4, [6], [0, 1, 2, 13, 14, 15]) });
    expect([...(run.results["out"]?.data ?? [])]).toEqual([0x21, 0xe3, 0x0f]);
  });
});

describe("values of the launch", () => {
  test("block and thread indices, grid and dimension sizes, scalars", async () => {
    const n = dim("n");
    const k = kernel(
      {
        name: "indices",
        grid: { i: n, j: 2 },
        inputs: { s: scalar(i32) },
        outputs: { out: tensor(i32, [n, 2]) },
      },
      ({ i, j, s, out }) => {
        const sizes = gridSize("i").mul(1000).add(gridSize("j").mul(100));
        out.at(i, j).store(sizes.add(i.mul(10)).add(j).add(s).add(threadIndex()));
      },
    );
    const run = await runKernel(k, { s: 5 }, { dimensions: { n: 3 } });
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual([3205, 3206, 3215, 3216, 3225, 3226]);
  });

  test("constants, full and iota", async () => {
    const k = kernel(
      { name: "made", outputs: { out: tensor(i32, [2, 3]), flag: tensor(bool, []) } },
      ({ out, flag }) => {
        out.store(
          iota(i32, [2, 3], { axis: 1 })
            .add(iota(i32, [2, 3], { axis: 0 }).mul(10))
            .add(full(i32, [2, 3], 7)),
        );
        flag.store(constant(bool, true));
      },
    );
    const run = await runKernel(k);
    expect(run.numbers("out")).toEqual([7, 8, 9, 17, 18, 19]);
    expect(run.numbers("flag")).toEqual([1]);
  });
});

const matrix = { dtype: f32, shape: [2, 3] };
const six = [1, 2, 3, 4, 5, 6];

describe("tile ops", () => {
  test("transpose, reshape, slice and concatenate", async () => {
    const flipped = { dtype: f32, shape: [3, 2] };
    expect(await mapTile(matrix, six, flipped, (x) => x.transpose())).toEqual([1, 4, 2, 5, 3, 6]);
    expect(await mapTile(matrix, six, flipped, (x) => x.reshape([3, 2]))).toEqual(six);
    const part = { dtype: f32, shape: [2, 2] };
    expect(await mapTile(matrix, six, part, (x) => x.slice([0, 1], [2, 2]))).toEqual([2, 3, 5, 6]);
    const wide = { dtype: f32, shape: [2, 6] };
    expect(await mapTile(matrix, six, wide, (x) => concatenate([x, x.neg()], { axis: 1 }))).toEqual(
      [1, 2, 3, -1, -2, -3, 4, 5, 6, -4, -5, -6],
    );
    const tall = { dtype: f32, shape: [4, 3] };
    expect(await mapTile(matrix, six, tall, (x) => concatenate([x, x], { axis: 0 }))).toEqual([
      ...six,
      ...six,
    ]);
  });

  test("a transpose of three axes", async () => {
    const shape = [2, 3, 4];
    const values = Array.from({ length: 24 }, (_, i) => i);
    const out = await mapTile(
      { dtype: i32, shape },
      values,
      { dtype: i32, shape: [4, 2, 3] },
      (x) => x.transpose([2, 0, 1]),
    );
    const reference = [];
    for (let c = 0; c < 4; c++)
      for (let a = 0; a < 2; a++) for (let b = 0; b < 3; b++) reference.push(a * 12 + b * 4 + c);
    expect(out).toEqual(reference);
  });

  test("broadcasts of scalars, rows and columns", async () => {
    const out = await mapTile(matrix, six, matrix, (x) =>
      x
        .sub(x.min({ axis: 1, keepDims: true }))
        .add(x.max({ axis: 0 }))
        .add(x.sum()),
    );
    expect(out).toEqual([25, 27, 29, 25, 27, 29]);
  });

  test("reductions over one, several and separated axes", async () => {
    const shape = [2, 3, 4];
    const values = Array.from({ length: 24 }, (_, i) => i);
    const from = { dtype: i32, shape };
    const sumOver = (axes: readonly number[]): number[] => {
      const sums: number[] = [];
      const kept = [0, 1, 2].filter((axis) => !axes.includes(axis));
      values.forEach((value, element) => {
        const index = [Math.floor(element / 12), Math.floor(element / 4) % 3, element % 4];
        let position = 0;
        for (const axis of kept) position = position * (shape[axis] ?? 1) + (index[axis] ?? 0);
        sums[position] = (sums[position] ?? 0) + value;
      });
      return sums;
    };
    expect(
      await mapTile(from, values, { dtype: i32, shape: [2, 4] }, (x) => x.sum({ axis: 1 })),
    ).toEqual(sumOver([1]));
    expect(await mapTile(from, values, { dtype: i32, shape: [] }, (x) => x.sum())).toEqual([276]);
    expect(
      await mapTile(from, values, { dtype: i32, shape: [3] }, (x) =>
        x.sum({ axis: 2 }).sum({ axis: 0 }),
      ),
    ).toEqual(sumOver([0, 2]));
  });

  test("logical and bitwise reductions", async () => {
    const out = await mapTile(four, [1, 2, 3, -4], { dtype: bool, shape: [] }, (x) =>
      x.gt(0).all(),
    );
    expect(out).toEqual([0]);
    const any = await mapTile(four, [1, 2, 3, -4], { dtype: bool, shape: [] }, (x) =>
      x.lt(0).any(),
    );
    expect(any).toEqual([1]);
    const bits = await mapTile(
      { dtype: i32, shape: [3] },
      [1, 2, 6],
      { dtype: i32, shape: [] },
      (x) => x.reduce("xor"),
    );
    expect(bits).toEqual([5]);
  });

  test("scans in both directions", async () => {
    expect(await mapTile(matrix, six, matrix, (x) => x.cumsum({ axis: 1 }))).toEqual([
      1, 3, 6, 4, 9, 15,
    ]);
    expect(await mapTile(matrix, six, matrix, (x) => x.cumsum({ axis: 0, reverse: true }))).toEqual(
      [5, 7, 9, 4, 5, 6],
    );
  });

  test("the index of the extreme, and sorting with payloads", async () => {
    const values = [3, 1, 2, 9, 9, 7];
    expect(
      await mapTile(matrix, values, { dtype: i32, shape: [2] }, (x) => x.argmax({ axis: 1 })),
    ).toEqual([0, 0]);
    expect(await mapTile(matrix, values, matrix, (x) => x.sort({ axis: 1 }))).toEqual([
      1, 2, 3, 7, 9, 9,
    ]);
    const order = await mapTile(matrix, values, { dtype: i32, shape: [2, 3] }, (x) => {
      const [, payload] = x.sortWith([iota(i32, [2, 3], { axis: 1 })], {
        axis: 1,
        descending: true,
      });
      return payload;
    });
    expect(order).toEqual([0, 2, 1, 0, 1, 2]);
  });

  test("dot, alone and onto an accumulator", async () => {
    const k = kernel(
      {
        name: "product",
        inputs: { a: tensor(bf16, [16, 16]), b: tensor(bf16, [16, 8]) },
        outputs: { out: tensor(f32, [16, 8]) },
      },
      ({ a, b, out }) => {
        const once = dot(a.load(), b.load());
        out.store(dot(a.load(), b.load(), { accumulator: once.add(zeros(f32, [16, 8])) }));
      },
    );
    const a = Array.from({ length: 256 }, (_, i) => (i % 7) - 3);
    const b = Array.from({ length: 128 }, (_, i) => (i % 5) - 2);
    const run = await runKernel(k, {
      a: fromNumbers(bf16, [16, 16], a),
      b: fromNumbers(bf16, [16, 8], b),
    });
    const reference = Array.from({ length: 128 }, (_, element) => {
      const [row, column] = [Math.floor(element / 8), element % 8];
      let sum = 0;
      for (let i = 0; i < 16; i++) sum += (a[row * 16 + i] ?? 0) * (b[i * 8 + column] ?? 0);
      return 2 * sum;
    });
    expect(run.numbers("out")).toEqual(reference);
  });
});
