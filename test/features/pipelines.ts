/** Clusters, persistent tiles and pipelines. */
import { all, barrier, block, clusterSync, commitShared, copyAsync, dim, f32 } from "tilewright";
import { i8, kernel, pipeline, smem, tensor, tiles, warpSpecialized, when } from "tilewright";
import type { KernelDefinition, Ref, Scalar } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature } from "./feature.ts";

const [rows, columns] = [6, 64];
const numbers = Array.from({ length: rows * columns }, (_, index) => (index % 61) - 30);
const x = fromNumbers(f32, [rows, columns], numbers);
const arrays = {
  inputs: { x: tensor(f32, [rows, columns]) },
  outputs: { out: tensor(f32, [rows, 2, columns]) },
};

/** Two of each row, of which `of` makes the elements. */
function twoOfEach(of: (value: number, part: number) => number): readonly number[] {
  return Array.from({ length: rows * 2 * columns }, (_, index) => {
    const row = Math.floor(index / (2 * columns));
    const value = numbers[row * columns + (index % columns)] ?? NaN;
    return of(value, Math.floor(index / columns) % 2);
  });
}

/** What the other block of a cluster of its own holds. */
function exchanged(): KernelDefinition {
  return kernel(
    {
      name: "exchanged",
      grid: { row: rows },
      cluster: { part: 2 },
      ...arrays,
      scratch: { buffer: smem(f32, [columns]) },
    },
    ({ row, part, x: from, out, buffer }) => {
      buffer.store(from.at(row).load().add(part.cast(f32)));
      clusterSync();
      out.at(row, part).store(buffer.peer(part.xor(1)).load());
      clusterSync();
    },
  );
}

/** Clusters of two rows of the grid with two blocks each; a row is copied once for both of its blocks. */
function multicast(): KernelDefinition {
  return kernel(
    {
      name: "multicast_own_axis",
      grid: { row: rows },
      cluster: { row: 2, part: 2 },
      ...arrays,
      scratch: { buffer: smem(f32, [columns]), landed: barrier() },
    },
    ({ row, part, x: from, out, buffer, landed }) => {
      when(part.eq(0), () => {
        copyAsync(from.at(row), buffer, { barrier: landed, multicast: "part" });
      });
      landed.wait();
      out.at(row, part).store(buffer.load().mul(part.add(1).cast(f32)));
    },
  );
}

const short = 16;

/** Rows by persistent blocks of a kernel that names no grid; halves of them by the blocks of a cluster. */
function persistent(inCluster: boolean): KernelDefinition {
  const count = dim("count");
  const doubled = {
    name: "persistent_rows",
    inputs: { x: tensor(f32, [count, 2, short]) },
    outputs: { out: tensor(f32, [count, 2, short]) },
  };
  if (!inCluster)
    return kernel(doubled, ({ x: from, out }) => {
      tiles({ row: count, half: 2 }, { order: "snake" }).each(({ row, half }) => {
        out.at(row, half).store(from.at(row, half).load().mul(2));
      });
    });
  return kernel({ ...doubled, cluster: { half: 2 } }, ({ half, x: from, out }) => {
    tiles({ row: count }).each(({ row }) => {
      out.at(row, half).store(from.at(row, half).load().mul(2));
    });
  });
}

/** In parts by rows, along a row, and too small for parts. */
const sharedWindows = [
  [16, 32, f32],
  [1, 128, f32],
  [8, 16, i8],
] as const;

/** Windows that blocks of clusters of four copy together, along two axes and then along one. */
function collective(
  height: number,
  width: number,
  dtype: typeof f32 | typeof i8,
): KernelDefinition {
  return kernel(
    {
      name: "collective",
      cluster: { c: 2, d: 2 },
      inputs: { x: tensor(dtype, [2 * height - 1, width]) },
      outputs: { out: tensor(dtype, [2, 2, 2, height, width]) },
      scratch: { buffer: smem(dtype, [height, width]), landed: barrier() },
    },
    ({ c, d, x: from, out, buffer, landed }) => {
      for (const [step, axes] of [["c", "d"], ["d"]].entries()) {
        const window = from.at(block(step, height), all);
        copyAsync(window, buffer, { barrier: landed, multicast: axes, collective: true });
        landed.wait();
        out.at(c, d, step).store(buffer.load());
        commitShared();
        clusterSync();
      }
    },
  );
}

const gains = Array.from({ length: columns }, (_, index) => (index % 5) - 2);

/** Rows times an input that stays, and their sum in an output that stays. */
function stationary(isSpecialized: boolean): KernelDefinition {
  const spec = {
    name: "stationary",
    inputs: { x: tensor(f32, [rows, columns]), gain: tensor(f32, [columns]) },
    outputs: { out: tensor(f32, [rows, columns]), sums: tensor(f32, [columns]) },
  };
  interface Blocks {
    readonly row: Ref<"f32">;
    readonly scale: Ref<"f32">;
    readonly result: Ref<"f32">;
    readonly total: Ref<"f32">;
    readonly step: Scalar<"i32">;
  }
  const work = ({ row, scale, result, total, step }: Blocks): void => {
    result.store(row.load().mul(scale.load()));
    when(
      step.eq(0),
      () => {
        total.store(row.load());
      },
      () => {
        total.store(total.load().add(row.load()));
      },
    );
  };
  const copies = (from: Ref<"f32">, gain: Ref<"f32">, out: Ref<"f32">, sums: Ref<"f32">) => {
    const at = (array: Ref<"f32">) => (axes: { readonly step: Scalar<"i32"> }) =>
      array.at(axes.step);
    const whole = (array: Ref<"f32">) => ({ at: () => array.at(all), stationary: true });
    return {
      grid: { step: rows },
      inputs: { row: at(from), scale: whole(gain) },
      outputs: { result: at(out), total: whole(sums) },
    };
  };
  if (!isSpecialized)
    return kernel(spec, ({ x: from, gain, out, sums }) => {
      pipeline(copies(from, gain, out, sums), work);
    });
  return kernel({ ...spec, threads: ["copy", "compute"] }, ({ x: from, gain, out, sums }) => {
    warpSpecialized(copies(from, gain, out, sums), ({ steps }) => {
      steps(work);
    });
  });
}

const many = Array.from({ length: 140 * 2 * short }, (_, index) => (index % 97) - 48);

export const pipelineFeatures: readonly Feature[] = [
  {
    name: "Axes of a cluster that are none of the grid",
    written: ["cluster: { part: 2 }", "sum.peer(part.xor(1))"],
    page: "language.md#clusters",
    cases: () => [
      {
        name: "blocks that read each other's memory",
        kernel: exchanged,
        inputs: { x },
        expected: { out: twoOfEach((value, part) => value + 1 - part) },
      },
      {
        name: "a copy for all blocks along it, beside clusters along the grid",
        kernel: multicast,
        inputs: { x },
        expected: { out: twoOfEach((value, part) => value * (part + 1)) },
      },
    ],
    refused: [
      { code: "TW1024", by: () => kernel({ name: "none", cluster: { part: 0 } }, () => undefined) },
      {
        code: "TW1021",
        by: () =>
          kernel({ name: "same", cluster: { part: 2 }, threads: ["part"] }, () => undefined),
      },
    ],
  },
  {
    name: "Tiles of a kernel without a grid",
    written: ["tiles({ row: rows }).each("],
    page: "pipelines.md#tiles-without-a-grid",
    cases: () =>
      [false, true].map((inCluster) => ({
        name: inCluster ? "in clusters" : "of two axes",
        kernel: () => persistent(inCluster),
        inputs: { x: fromNumbers(f32, [140, 2, short], many) },
        expected: { out: many.map((value) => value * 2) },
      })),
    refused: [
      {
        code: "TW1110",
        by: () =>
          kernel({ name: "along", outputs: { out: tensor(f32, [4]) } }, () => {
            tiles({ row: 4 }, { along: "row" });
          }),
      },
    ],
  },
  {
    name: "Stationary blocks of pipelines",
    written: ["stationary: true"],
    page: "pipelines.md#stationary-blocks",
    cases: () =>
      [false, true].map((isSpecialized) => ({
        name: isSpecialized ? "warpSpecialized" : "pipeline",
        kernel: () => stationary(isSpecialized),
        inputs: { x, gain: fromNumbers(f32, [columns], gains) },
        expected: {
          out: numbers.map((value, index) => value * (gains[index % columns] ?? NaN)),
          sums: Array.from({ length: columns }, (_, column) =>
            numbers.reduce((sum, value, at) => (at % columns === column ? sum + value : sum), 0),
          ),
        },
      })),
    refused: [
      {
        code: "TW1113",
        by: () =>
          kernel({ name: "moves", inputs: { x: tensor(f32, [rows, columns]) } }, ({ x: from }) => {
            const row = { at: ({ k }: { k: Scalar<"i32"> }) => from.at(k), stationary: true };
            pipeline({ grid: { k: rows }, inputs: { row } }, () => undefined);
          }),
      },
    ],
  },
  {
    name: "Multicasts that all blocks start, each its share",
    written: ['multicast: "half", collective: true'],
    page: "language.md#collective-multicasts",
    cases: () =>
      sharedWindows.map(([height, width, dtype]) => {
        const count = (2 * height - 1) * width;
        const given = Array.from({ length: count }, (_, index) => (index % 101) - 50);
        const padded = [...given, ...Array.from({ length: width }, () => 0)];
        const size = height * width;
        return {
          name: `${height} × ${width} of ${dtype.name} to two blocks and to four`,
          kernel: () => collective(height, width, dtype),
          inputs: { x: fromNumbers(dtype, [2 * height - 1, width], given) },
          expected: {
            out: Array.from(
              { length: 4 * 2 * size },
              (_, index) => padded[index % (2 * size)] ?? NaN,
            ),
          },
        };
      }),
    refused: [
      {
        code: "TW2069",
        by: () =>
          kernel(
            {
              name: "alone",
              inputs: arrays.inputs,
              scratch: { row: smem(f32, [columns]), landed: barrier() },
            },
            ({ x: from, row, landed }) => {
              copyAsync(from.at(0), row, { barrier: landed, collective: true });
            },
          ),
      },
    ],
  },
  {
    name: "What compiling would refuse, told by the simulator",
    written: ["onNotes: (name, notes)"],
    page: "simulator.md#kernels-that-would-not-compile",
    cases: { none: "a note of the simulator" },
    refused: { none: "the run goes on" },
  },
];
