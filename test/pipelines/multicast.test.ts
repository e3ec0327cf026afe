/** Multicasts of pipelines: blocks of every size, along one axis of the cluster or several. */
import { expect, test } from "vitest";
import { barrier, block, clusterSync, commitShared, copyAsync, f16, f32 } from "tilewright";
import { fromNumbers, i8, kernel, loop, pipeline, slice, smem, tensor } from "tilewright";
import { threadIndex, TilewrightError, warpSpecialized, when } from "tilewright";
import type { DType, DTypeName, KernelDefinition } from "tilewright";
import { runKernel } from "../simulation.ts";
import { requireClean, requireEmulated } from "./run.ts";

const rows = 32;

interface Sizes {
  readonly height: number;
  readonly width: number;
  readonly threads?: number;
}

/** Every block of the cluster writes what it was handed. */
function copying<D extends DTypeName>(
  dtype: DType<D>,
  { height, width, threads = 1 }: Sizes,
): KernelDefinition {
  const part = height / threads;
  return kernel(
    {
      name: "copying",
      grid: { rank: 2 },
      cluster: { rank: 2 },
      threads: Array.from({ length: threads }, (_, thread) => `thread${thread}`),
      inputs: { x: tensor(dtype, [rows, width]) },
      outputs: { y: tensor(dtype, [2, rows, width]) },
    },
    ({ rank, x, y }) => {
      pipeline(
        {
          grid: { step: rows / height },
          inputs: { tile: { at: ({ step }) => x.at(block(step, height)), multicast: "rank" } },
        },
        ({ step, tile }) => {
          const start = threads === 1 ? slice(0, part) : slice(threadIndex().mul(part), part);
          const into = y.at(rank, block(step, height)).at(start);
          into.store(tile.at(start).load());
        },
      );
    },
  );
}

function expectation(dtype: DType, width: number, copies = 2) {
  const given = Array.from({ length: rows * width }, (_, place) => place % 100);
  return {
    inputs: { x: fromNumbers(dtype, [rows, width], given) },
    results: { y: Array.from({ length: copies }, () => given).flat() },
  };
}

const cases: readonly (readonly [DType, Sizes])[] = [
  [i8, { height: 8, width: 16 }],
  [i8, { height: 16, width: 16 }],
  [f16, { height: 8, width: 8 }],
  [f32, { height: 8, width: 4 }],
  [f16, { height: 8, width: 24 }],
  [f16, { height: 8, width: 8, threads: 2 }],
  [f32, { height: 16, width: 4, threads: 2 }],
];

for (const [dtype, sizes] of cases) {
  const { height, width, threads = 1 } = sizes;
  test(`${height} × ${width} of ${dtype.name}, ${threads} threads`, async () => {
    const [definition, expected] = [copying(dtype, sizes), expectation(dtype, width)];
    await requireClean(definition, expected);
    await requireEmulated(definition, expected);
  });
}

test("an extent that blocks cannot divide", async () => {
  const [height, width] = [1, 32];
  const definition = kernel(
    {
      name: "rowwise",
      grid: { rank: 3 },
      cluster: { rank: 3 },
      inputs: { x: tensor(f32, [rows, width]) },
      outputs: { y: tensor(f32, [3, rows, width]) },
    },
    ({ rank, x, y }) => {
      pipeline(
        {
          grid: { step: rows },
          inputs: { tile: { at: ({ step }) => x.at(block(step, height)), multicast: "rank" } },
        },
        ({ step, tile }) => {
          y.at(rank, block(step, height)).store(tile.load());
        },
      );
    },
  );
  const expected = expectation(f32, width, 3);
  await requireClean(definition, expected);
  await requireEmulated(definition, expected);
});

for (const [height, axes] of [
  [16, ["i", "j"]],
  [16, ["j", "i"]],
  [8, ["i", "j"]],
  [16, "j"],
] as const)
  test(`along ${String(axes)} of a cluster of two axes, ${height} rows`, async () => {
    const width = 8;
    const definition = kernel(
      {
        name: "meshed",
        grid: { i: 2, j: 2 },
        cluster: { i: 2, j: 2 },
        inputs: { x: tensor(f16, [rows, width]) },
        outputs: { y: tensor(f16, [2, 2, rows, width]) },
      },
      ({ i, j, x, y }) => {
        pipeline(
          {
            grid: { step: rows / height },
            inputs: { tile: { at: ({ step }) => x.at(block(step, height)), multicast: axes } },
          },
          ({ step, tile }) => {
            y.at(i, j, block(step, height)).store(tile.load());
          },
        );
      },
    );
    const expected = expectation(f16, width, 4);
    await requireClean(definition, expected);
    await requireEmulated(definition, expected);
  });

test("a warp that copies for the other block, too", async () => {
  const [height, width] = [8, 8];
  const definition = kernel(
    {
      name: "handed",
      grid: { rank: 2 },
      cluster: { rank: 2 },
      threads: ["copy", "compute"],
      inputs: { x: tensor(f16, [rows, width]) },
      outputs: { y: tensor(f16, [2, rows, width]) },
    },
    ({ rank, x, y }) => {
      warpSpecialized(
        {
          grid: { step: rows / height },
          inputs: { tile: { at: ({ step }) => x.at(block(step, height)), multicast: "rank" } },
        },
        ({ steps }) => {
          steps(({ step, tile }) => {
            y.at(rank, block(step, height)).store(tile.load());
          });
        },
      );
    },
  );
  const expected = expectation(f16, width);
  await requireClean(definition, expected);
  await requireEmulated(definition, expected);
});

test("copyAsync names one axis as a pipeline does", async () => {
  const width = 16;
  const definition = kernel(
    {
      name: "whole",
      grid: { rank: 2 },
      cluster: { rank: 2 },
      inputs: { x: tensor(i8, [rows, width]) },
      outputs: { y: tensor(i8, [2, rows, width]) },
      scratch: { tile: smem(i8, [rows, width]), landed: barrier() },
    },
    ({ rank, x, y, tile, landed }) => {
      when(rank.eq(0), () => {
        copyAsync(x, tile, { barrier: landed, multicast: "rank" });
      });
      landed.wait();
      y.at(rank).store(tile.load());
      clusterSync();
    },
  );
  const expected = expectation(i8, width);
  await requireClean(definition, expected);
  await requireEmulated(definition, expected);
});

test("slots that would not begin where a multicast can", () => {
  const refused = (): unknown => copying(f16, { height: 4, width: 8 });
  expect(refused).toThrow(TilewrightError);
  expect(refused).toThrow(/TW1105[\s\S]*it takes 64 bytes[\s\S]*a multiple of 128 bytes/);
});

/** Two windows one after the other, which two blocks copy together; between them the blocks meet, or do not. */
function collective(meets: boolean): KernelDefinition {
  return kernel(
    {
      name: "collective",
      cluster: { half: 2 },
      inputs: { x: tensor(f32, [rows, 16]) },
      outputs: { y: tensor(f32, [2, rows, 16]) },
      scratch: { tile: smem(f32, [8, 16]), landed: barrier() },
    },
    ({ half, x, y, tile, landed }) => {
      loop(rows / 8, (step) => {
        const window = x.at(block(step, 8));
        copyAsync(window, tile, { barrier: landed, multicast: "half", collective: true });
        landed.wait();
        y.at(half, block(step, 8)).store(tile.load());
        commitShared();
        if (meets) clusterSync();
      });
      clusterSync();
    },
  );
}

test("blocks that copy together meet before they copy again", async () => {
  const expected = expectation(f32, 16);
  await requireClean(collective(true), expected);
  await requireEmulated(collective(true), expected);
  const { findings } = await runKernel(collective(false), expected.inputs, { schedule: "random" });
  expect(findings.map(({ code }) => code)).toContain("TW3001");
});
