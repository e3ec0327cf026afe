/** Copies between global and shared memory. */
import {
  barrier,
  bf16,
  block,
  cdiv,
  commitGroup,
  commitShared,
  copyAsync,
  defaultTarget,
  dim,
  f16,
  f32,
  f64,
  i32,
  i64,
  i8,
  kernel,
  loop,
  open,
  pipeline,
  placeKernel,
  slice,
  smem,
  tensor,
  u32,
  waitGroup,
  warpSpecialized,
  when,
} from "tilewright";
import type { CopyOptions, DType, DTypeName } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const numbers = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, place) => (place % 113) - 50);

const long: Feature = {
  name: "Copies of any length and number of axes, by several of TMA",
  written: ["x.at(i, block(step, length))"],
  page: "pipelines.md#copies-of-any-size",
  cases: () => [
    {
      name: "multicast in a pipeline",
      kernel: () =>
        kernel(
          {
            name: "handed_around",
            grid: { rank: 2 },
            cluster: { rank: 2 },
            inputs: { x: tensor(i8, [1000, 16]) },
            outputs: { y: tensor(i8, [2, 1120, 16]) },
          },
          ({ rank, x, y }) => {
            pipeline(
              {
                grid: { step: 2 },
                inputs: { tile: { at: ({ step }) => x.at(block(step, 560)), multicast: "rank" } },
              },
              ({ step, tile }) => {
                y.at(rank, block(step, 560)).store(tile.load());
              },
            );
          },
        ),
      inputs: { x: fromNumbers(i8, [1000, 16], numbers(16000)) },
      expected: {
        y: [0, 1].flatMap(() => [...numbers(16000), ...Array.from({ length: 1920 }, () => 0)]),
      },
    },
    {
      name: "in and out by specialized threads",
      kernel: () =>
        kernel(
          {
            name: "doubled",
            threads: ["copy", "compute"],
            inputs: { x: tensor(f32, [4, 600]) },
            outputs: { y: tensor(f32, [4, 600]) },
          },
          ({ x, y }) => {
            warpSpecialized(
              {
                grid: { step: 4 },
                inputs: { row: ({ step }) => x.at(step) },
                outputs: { result: ({ step }) => y.at(step) },
              },
              ({ steps }) => {
                steps(({ row, result }) => {
                  result.store(row.load().mul(2));
                });
              },
            );
          },
        ),
      inputs: { x: fromNumbers(f32, [4, 600], numbers(2400)) },
      expected: { y: numbers(2400).map((value) => value * 2) },
    },
    {
      name: "of six axes",
      kernel: () =>
        kernel(
          {
            name: "six_axes",
            inputs: { x: tensor(f32, [2, 3, 2, 2, 3, 4]) },
            outputs: { y: tensor(f32, [2, 3, 2, 2, 3, 4]) },
            scratch: { buffer: smem(f32, [2, 3, 2, 2, 3, 4]), landed: barrier() },
          },
          ({ x, y, buffer, landed }) => {
            copyAsync(x, buffer, { barrier: landed });
            landed.wait();
            y.store(buffer.load());
          },
        ),
      inputs: { x: fromNumbers(f32, [2, 3, 2, 2, 3, 4], numbers(288)) },
      expected: { y: numbers(288) },
    },
  ],
  refused: [
    {
      code: "TW2064",
      by: () =>
        kernel(
          {
            name: "thin",
            inputs: { x: tensor(f32, [1000, 3]) },
            scratch: { buffer: smem(f32, [3]), landed: barrier() },
          },
          ({ x, buffer, landed }) => {
            copyAsync(x.at(0), buffer, { barrier: landed });
          },
        ),
    },
  ],
};

const runs: Feature = {
  name: "Linear bulk copies, where rows follow on in both memories",
  written: ["copyAsync(x.at(block(i, 8)), buffer, { barrier: landed }); // one run of 192 bytes"],
  page: "pipelines.md#runs-of-bytes",
  cases: () => [
    {
      name: "of rows that no tensor map describes",
      kernel: () =>
        kernel(
          {
            name: "thin_rows",
            grid: { i: 2 },
            inputs: { x: tensor(f16, [16, 12]) },
            outputs: { out: tensor(f16, [16, 12]) },
            scratch: { buffer: smem(f16, [8, 12]), landed: barrier() },
          },
          ({ i, x, out, buffer, landed }) => {
            copyAsync(x.at(block(i, 8)), buffer, { barrier: landed });
            landed.wait();
            copyAsync(buffer, out.at(block(i, 8)));
            commitGroup();
            waitGroup();
          },
        ),
      inputs: { x: fromNumbers(f16, [16, 12], numbers(192)) },
      expected: { out: numbers(192) },
    },
    {
      name: "of one axis, multicast",
      kernel: () =>
        kernel(
          {
            name: "handed_on",
            grid: { i: 2 },
            cluster: { i: 2 },
            inputs: { x: tensor(f32, [1024]) },
            outputs: { out: tensor(f32, [2, 1024]) },
            scratch: { buffer: smem(f32, [1024]), landed: barrier() },
          },
          ({ i, x, out, buffer, landed }) => {
            when(i.eq(0), () => {
              copyAsync(x, buffer, { barrier: landed, multicast: "i" });
            });
            landed.wait();
            out.at(i).store(buffer.load());
          },
        ),
      inputs: { x: fromNumbers(f32, [1024], numbers(1024)) },
      expected: { out: [...numbers(1024), ...numbers(1024)] },
    },
  ],
  refused: [
    {
      code: "TW2064",
      by: () =>
        kernel(
          {
            name: "short",
            inputs: { x: tensor(f32, [1000, 3]) },
            scratch: { buffer: smem(f32, [5, 3]), landed: barrier() },
          },
          ({ x, buffer, landed }) => {
            copyAsync(x.at(slice(0, 5)), buffer, { barrier: landed });
          },
        ),
    },
  ],
};

/** Rows of four blocks are combined with one row. */
function combining<D extends DTypeName>(
  dtype: DType<D>,
  width: number,
  reduction: NonNullable<CopyOptions["reduction"]>,
) {
  return kernel(
    {
      name: `combining_${reduction}`,
      grid: { i: 4 },
      inputs: { x: tensor(dtype, [4, width]) },
      inouts: { all: tensor(dtype, [width]) },
      scratch: { row: smem(dtype, [width]) },
    },
    ({ i, x, all, row }) => {
      row.store(x.at(i).load());
      commitShared();
      copyAsync(row, all, { reduction });
      commitGroup();
      waitGroup();
    },
  );
}

/** Rows, a first result, and what becomes of it whatever the order of rows. */
function combined(
  dtype: DType,
  width: number,
  reduction: NonNullable<CopyOptions["reduction"]>,
  combine: (old: number, operand: number) => number,
): FeatureCase {
  // Rows are alike, so that counting does not depend on their order.
  const row = Array.from({ length: width }, (_, place) => (place * 13) % 61);
  const before = row.map((_, place) => (place * 7) % 53);
  const after = before.map((old, place) =>
    [0, 1, 2, 3].reduce((value) => combine(value, row[place] ?? NaN), old),
  );
  const isWide = dtype.bits === 64 && dtype.kind !== "float";
  return {
    name: `${reduction} of ${width} ${dtype.name}`,
    kernel: () => combining(dtype, width, reduction),
    inputs: {
      x: fromNumbers(dtype, [4, width], [row, row, row, row].flat()),
      all: fromNumbers(dtype, [width], before),
    },
    expected: { all: isWide ? after.map(BigInt) : after },
  };
}

const reductions: Feature = {
  name: "Copies that combine: every reduction that TMA has",
  written: ['copyAsync(row, sums, { reduction: "add" })'],
  page: "pipelines.md#copies-that-combine",
  cases: () => [
    combined(f64, 32, "add", (old, operand) => old + operand),
    combined(bf16, 64, "max", Math.max),
    combined(i64, 32, "xor", (old, operand) => old ^ operand),
    combined(i32, 512, "and", (old, operand) => old & operand),
    combined(u32, 32, "inc", (old, operand) => (old >= operand ? 0 : old + 1)),
    combined(u32, 512, "dec", (old, operand) => (old === 0 || old > operand ? operand : old - 1)),
  ],
  refused: [
    { code: "TW2071", by: () => combining(f32, 32, "max") },
    {
      code: "TW7002",
      by: () => {
        const n = dim("n");
        const { kernel: bad } = kernel(
          {
            name: "overhanging",
            grid: { i: cdiv(n, 32) },
            inouts: { all: tensor(f64, [n]) },
            scratch: { row: smem(f64, [32]) },
          },
          ({ i, all, row }) => {
            row.store(all.at(block(i, 32)).load());
            commitShared();
            copyAsync(row, all.at(block(i, 32)), { reduction: "add" });
            commitGroup();
            waitGroup();
          },
        );
        placeKernel(bad, defaultTarget);
      },
    },
  ],
};

/** Rows leave through one buffer, which is written again once it has been read. */
const leaving = (end: () => void) =>
  kernel(
    {
      name: "leaving",
      inputs: { x: tensor(f32, [4, 32]) },
      outputs: { out: tensor(f32, [4, 32]), sum: tensor(f32, [32]) },
      scratch: { row: smem(f32, [32]), last: smem(f32, [32]) },
    },
    ({ x, out, sum, row, last }) => {
      loop(4, (i) => {
        waitGroup(0, { read: true });
        row.store(x.at(i).load().mul(2));
        commitShared();
        copyAsync(row, out.at(i));
      });
      end();
      last.store(out.load().sum({ axis: 0 }));
      commitShared();
      copyAsync(last, sum); // the end of the kernel waits for it
    },
  );

const stores: Feature = {
  name: "Stores that are awaited without groups, and by the end of the kernel",
  written: [
    "waitGroup(0, { read: true }); // the row before has left",
    "copyAsync(row, out.at(i));",
  ],
  page: "pipelines.md#stores",
  cases: () => [
    {
      name: "read and landed",
      kernel: () => leaving(waitGroup),
      inputs: { x: fromNumbers(f32, [4, 32], numbers(128)) },
      expected: {
        out: numbers(128).map((value) => value * 2),
        sum: numbers(32).map((_, column) =>
          [0, 1, 2, 3].reduce((sum, row) => sum + 2 * (numbers(128)[32 * row + column] ?? NaN), 0),
        ),
      },
    },
  ],
  refused: [
    {
      code: "TW3001",
      by: async () => {
        const device = await open("simulator");
        try {
          await device.run(
            leaving(() => undefined),
            {
              x: fromNumbers(f32, [4, 32], numbers(128)),
            },
          );
        } finally {
          device.dispose();
        }
      },
    },
  ],
};

export const copyFeatures: readonly Feature[] = [long, runs, reductions, stores];
