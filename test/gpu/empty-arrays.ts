/**
 * Arrays without elements behind TMA, on any device: loads give their fill, stores change nothing. Each check throws
 * where something is wrong.
 */
import { deepEqual, ok } from "node:assert/strict";
import type { Device } from "../../src/device/device.ts";
import { bf16, f32 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import {
  tensor,
  barrier,
  block,
  cdiv,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  dot,
  full,
  kernel,
  loop,
  pipeline,
  slice,
  smem,
  storeThrough,
  waitGroup,
  zeros,
} from "../../src/lang/index.ts";
import { matmul } from "../../src/kernels/index.ts";

const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];
const batches = dim("batches");
const [rows, columns, depth] = [64, 64, 32];

function ones(shape: readonly number[]) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return fromNumbers(bf16, shape, new Float64Array(count).fill(1));
}

const everySize = [
  [5, 8, 0],
  [130, 72, 0],
  [0, 8, 8],
  [5, 0, 8],
  [0, 0, 0],
  [5, 8, 40],
] as const;

/** A loop that the compiler pipelines with tensor maps. */
const looped = kernel(
  {
    name: "looped",
    grid: { i: cdiv(m, rows), j: cdiv(n, columns) },
    inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
    outputs: { c: tensor(f32, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const steps = { to: cdiv(k, depth), carry: zeros(f32, [rows, columns]) };
    const product = loop(steps, (step, accumulator) => {
      const left = a.at(block(i, rows), block(step, depth)).load();
      const right = b.at(block(step, depth), block(j, columns)).load();
      return dot(left, right, { accumulator });
    });
    c.at(block(i, rows), block(j, columns)).store(product);
  },
);

async function loops(device: Device): Promise<void> {
  for (const [height, width, length] of everySize) {
    const inputs = { a: ones([height, length]), b: ones([length, width]) };
    const { c } = await device.run(looped, inputs);
    deepEqual(toNumbers(c), new Float64Array(height * width).fill(length));
  }
}

/** Sums a fixed number of blocks, however many rows there are. */
const summed = kernel(
  {
    name: "summed",
    inputs: { x: tensor(bf16, [batches, m, 32]) },
    outputs: { out: tensor(f32, [8, 32]) },
  },
  ({ x, out }) => {
    const sum = pipeline(
      {
        grid: { layer: 2, step: 3 },
        inputs: { rows: ({ layer, step }) => x.at(block(layer, 1), block(step, 8)) },
        depth: 2,
        carry: zeros(f32, [8, 32]),
      },
      (blocks, total) => total.add(blocks.rows.load().cast(f32).reshape([8, 32])),
    );
    out.store(sum);
  },
);

async function pipelines(device: Device): Promise<void> {
  for (const [layers, height] of [
    [0, 24],
    [2, 0],
    [0, 0],
    [2, 24],
  ] as const) {
    const { out } = await device.run(summed, { x: ones([layers, height, 32]) });
    deepEqual(toNumbers(out), new Float64Array(8 * 32).fill(layers * height === 0 ? 0 : 6));
  }
}

/** Blocks of an array that may have none, filled with NaN. */
const filled = kernel(
  {
    name: "filled",
    grid: { i: 2 },
    inputs: { x: tensor(f32, [m, 32]) },
    outputs: { out: tensor(f32, [2, 4, 32]) },
    scratch: { buffer: smem(f32, [4, 32]), landed: barrier() },
  },
  ({ i, x, out, buffer, landed }) => {
    copyAsync(x.at(block(i, 4)), buffer, { barrier: landed, fill: "nan" });
    landed.wait();
    out.at(i).store(buffer.load());
  },
);

async function fills(device: Device): Promise<void> {
  const { out } = await device.run(filled, { x: fromNumbers(f32, [0, 32], []) });
  ok(toNumbers(out).every(Number.isNaN));
  const some = await device.run(filled, { x: fromNumbers(f32, [1, 32], Array(32).fill(3)) });
  deepEqual(toNumbers(some.out).subarray(0, 32), new Float64Array(32).fill(3));
  ok(toNumbers(some.out).subarray(32).every(Number.isNaN));
}

/**
 * Every block stores the same, and adds to it, and then loads what an array of no rows still does not have. Blocks race where
 * there is a row, so that it is for none.
 */
const stored = kernel(
  {
    name: "stored",
    grid: { i: 3 },
    outputs: {
      nothing: tensor(f32, [m, 32]),
      sums: tensor(f32, [n, 32]),
      out: tensor(f32, [3, 32]),
    },
    scratch: { buffer: smem(f32, [4, 32]), landed: barrier() },
  },
  ({ i, nothing, sums, out, buffer, landed }) => {
    buffer.store(full(f32, [4, 32], 7));
    commitShared();
    copyAsync(buffer, nothing.at(slice(0, 4)));
    copyAsync(buffer, sums.at(slice(0, 4)), { reduction: "add" });
    commitGroup();
    waitGroup();
    copyAsync(nothing.at(slice(0, 4)), buffer, { barrier: landed });
    landed.wait();
    out.at(i).store(buffer.at(0).load());
  },
);

async function stores(device: Device): Promise<void> {
  const { out } = await device.run(stored, {}, { dimensions: { m: 0, n: 0 } });
  deepEqual(toNumbers(out), new Float64Array(3 * 32));
}

/** As the library stores its results: by copies that run on. */
const through = kernel(
  {
    name: "through",
    grid: { i: 2 },
    outputs: { nothing: tensor(bf16, [m, 64]) },
    scratch: { result: smem(bf16, [2, 8, 64]) },
  },
  ({ nothing, result }) => {
    storeThrough(result, full(bf16, [8, 64], 1), nothing, [0, 0]);
    waitGroup();
  },
);

async function storesThroughBuffers(device: Device): Promise<void> {
  await device.run(through, {}, { dimensions: { m: 0 } });
}

async function products(device: Device): Promise<void> {
  const layered = (count: number | undefined, shape: readonly number[]) =>
    ones(count === undefined ? shape : [count, ...shape]);
  for (const count of [undefined, 0, 2]) {
    const outer = count === undefined ? [] : [batches];
    const op = matmul({
      a: tensor(bf16, [...outer, m, k]),
      b: tensor(bf16, [...outer, k, n]),
      out: f32,
    });
    for (const [height, width, length] of everySize) {
      const { out } = await device.run(op, {
        a: layered(count, [height, length]),
        b: layered(count, [length, width]),
      });
      deepEqual(toNumbers(out), new Float64Array((count ?? 1) * height * width).fill(length));
    }
  }
}

export const emptyArrayChecks: {
  readonly [title: string]: (device: Device) => Promise<void>;
} = {
  "loops over arrays without elements": loops,
  "pipelines over arrays without elements": pipelines,
  "fills instead of an array without elements": fills,
  "stores to arrays without elements": stores,
  "stores through buffers to arrays without elements": storesThroughBuffers,
  "products of no rows, columns, steps or matrices": products,
};
