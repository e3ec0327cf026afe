/** The occupancy that a kernel asks for, worked out by hand from the registers of its tiles. */
import { expect, test } from "vitest";
import {
  tensor,
  bf16,
  constant,
  f32,
  kernel,
  loop,
  slice,
  smem,
  targets,
  when,
  zeros,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { lower } from "../../lower/stages.ts";

function blocksOf({ kernel: traced }: KernelDefinition): number | undefined {
  const { declarations } = lower(traced, targets.sm_90a).module;
  const [entry] = declarations.flatMap((each) => (each.kind === "function" ? [each] : []));
  return entry?.directives.find(({ name }) => name === "minnctapersm")?.values[0];
}

const rows = 4;
const softmax = (columns: number, warps: number) =>
  kernel(
    {
      name: "softmax",
      grid: { i: rows },
      warps,
      inputs: { x: tensor(bf16, [rows, columns]) },
      outputs: { out: tensor(bf16, [rows, columns]) },
    },
    ({ i, x, out }) => {
      const row = x.at(i).load().cast(f32);
      const powers = row.sub(row.max()).exp();
      out.at(i).store(powers.mul(constant(f32, 1).div(powers.sum())).cast(bf16));
    },
  );

// Registers a lane: twice the row's, 64 at least; 65536 of a processor for all lanes.
test.each([
  [8192, 4, 4], // 64 for the row: 128 · 128 lanes
  [8192, 8, 4], // 32: 64 · 256
  [4096, 4, 8], // 32: 64 · 128
  [1024, 1, 32], // 32: 64 · 32, and a processor has no more than 32 blocks
  [16384, 4, 2], // 128: 256, of which a lane can name 255
  [8192, 16, 2], // 16: 64 all the same, · 512
])("a softmax of rows of %i by %i warps asks for %i blocks", (columns, warps, blocks) => {
  expect(blocksOf(softmax(columns, warps))).toBe(blocks);
});

test("tiles that are held together count together", () => {
  const held = (count: number) =>
    kernel(
      {
        name: "held",
        grid: { i: rows },
        inputs: { x: tensor(f32, [rows, count, 4096]) },
        outputs: { out: tensor(f32, [rows, 4096]) },
      },
      ({ i, x, out }) => {
        const tiles = Array.from({ length: count }, (_, index) => x.at(i, index).load());
        const total = tiles.map((tile) => tile.sum()).reduce((all, each) => all.add(each));
        out.at(i).store(tiles.reduce((all, tile) => all.add(tile)).mul(total));
      },
    );
  expect([1, 2, 3].map((count) => blocksOf(held(count)))).toEqual([8, 4, 2]);
});

test("tiles of branches count as those outside", () => {
  const guarded = (columns: number) =>
    kernel(
      {
        name: "guarded",
        grid: { i: rows },
        inputs: { x: tensor(f32, [rows, columns]) },
        outputs: { out: tensor(f32, [rows, columns]) },
      },
      ({ i, x, out }) => {
        when(i.lt(2), () => {
          const row = x.at(i).load();
          out.at(i).store(row.sub(row.max()));
        });
      },
    );
  expect([4096, 8192, 16384].map((columns) => blocksOf(guarded(columns)))).toEqual([8, 4, 2]);
});

test("shared memory bounds the blocks", () => {
  const staged = kernel(
    {
      name: "staged",
      inputs: { x: tensor(f32, [8192]) },
      outputs: { out: tensor(f32, [8192]) },
      scratch: { buffer: smem(f32, [16384]) },
    },
    ({ x, out, buffer }) => {
      buffer.at(slice(0, 8192)).store(x.load());
      out.store(buffer.at(slice(0, 8192)).load());
    },
  );
  expect(blocksOf(staged)).toBe(3);
});

test("kernels with loops, several threads or clusters are left alone", () => {
  const arrays = {
    inputs: { x: tensor(f32, [8, 64]) },
    outputs: { out: tensor(f32, [8, 64]) },
  };
  const looping = kernel({ name: "looping", ...arrays }, ({ x, out }) => {
    out.at(0).store(loop({ to: 8, carry: zeros(f32, [64]) }, (k, sum) => sum.add(x.at(k).load())));
  });
  const branching = kernel({ name: "branching", grid: { i: 4 }, ...arrays }, ({ i, x, out }) => {
    when(i.lt(2), () => {
      const sums = loop({ to: 8, carry: zeros(f32, [64]) }, (k, sum) => sum.add(x.at(k).load()));
      out.at(i).store(sums);
    });
  });
  const threads = kernel(
    { name: "threads", ...arrays, threads: ["a", "b"] },
    ({ x, out, a, b }) => {
      a(() => out.at(0).store(x.at(0).load()));
      b(() => out.at(1).store(x.at(1).load()));
    },
  );
  const clusters = kernel(
    { name: "clusters", ...arrays, grid: { i: 8 }, cluster: { i: 2 } },
    ({ i, x, out }) => {
      out.at(i).store(x.at(i).load());
    },
  );
  const sorting = kernel({ name: "sorting", ...arrays }, ({ x, out }) => {
    out.store(x.load().sort({ axis: 1 }));
  });
  expect([looping, branching, threads, clusters, sorting].map(blocksOf)).toEqual([1, 1, 1, 1, 1]);
});
