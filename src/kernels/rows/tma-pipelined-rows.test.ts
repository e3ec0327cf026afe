/** TMA-pipelined rows: every way of dividing them, against float64, and when they are chosen. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { dealtTo } from "../../../test/support/sample.ts";
import { checkWeighedSoftmax } from "../../../test/support/weighed-softmax.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, i8 } from "../../formats/dtype.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import type { PipelinedRowsConfiguration } from "./choose-pipelined-rows.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { quantize } from "./quantize.ts";
import { planPipelinedRows } from "./tma-pipelined-rows.ts";
import { softmaxBackward } from "./softmax-backward.ts";
import { logSoftmax, softmax } from "./softmax.ts";

interface Case {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly form: Omit<PipelinedRowsConfiguration, "rows">;
}

const cases: readonly Case[] = [
  {
    name: "pieces, the last of which is ragged, and stages that wrap around within rows",
    rows: 5,
    columns: 3 * 512 - 64,
    form: {
      columns: 512,
      blocks: 1,
      pieces: 3,
      stages: 5,
      warps: 2,
      workers: 2,
      held: 0,
    },
  },
  {
    name: "rows that stay in registers",
    rows: 7,
    columns: 1024,
    form: {
      columns: 1024,
      blocks: 1,
      pieces: 1,
      stages: 2,
      warps: 4,
      workers: 2,
      held: 1,
    },
  },
  {
    name: "blocks that share rows, the last of which is empty",
    rows: 5,
    columns: 64 * 23,
    form: {
      columns: 512,
      blocks: 4,
      pieces: 1,
      stages: 2,
      warps: 4,
      workers: 1,
      held: 1,
    },
  },
  {
    name: "pieces of blocks that share rows",
    rows: 6,
    columns: 2048,
    form: {
      columns: 512,
      blocks: 2,
      pieces: 2,
      stages: 3,
      warps: 2,
      workers: 2,
      held: 0,
    },
  },
  {
    name: "registers that hold some pieces of rows, while the others stay in a queue that has no room for all",
    rows: 7,
    columns: 5 * 512 - 64,
    form: {
      columns: 512,
      blocks: 1,
      pieces: 5,
      stages: 4,
      warps: 2,
      workers: 2,
      held: 2,
    },
  },
  {
    name: "stages that are refilled together, of pieces in registers and of others",
    rows: 7,
    columns: 5 * 512,
    form: {
      columns: 512,
      blocks: 1,
      pieces: 5,
      stages: 9,
      warps: 2,
      workers: 2,
      held: 3,
    },
  },
  {
    name: "registers that hold some pieces of rows that blocks share",
    rows: 6,
    columns: 3072,
    form: {
      columns: 512,
      blocks: 2,
      pieces: 3,
      stages: 7,
      warps: 2,
      workers: 2,
      held: 1,
    },
  },
  {
    name: "more blocks that share rows than a block has warps",
    rows: 5,
    columns: 4 * 1024,
    form: {
      columns: 512,
      blocks: 4,
      pieces: 2,
      stages: 3,
      warps: 2,
      workers: 2,
      held: 2,
    },
  },
  {
    name: "shared memory that keeps what belongs to the columns of a single piece",
    rows: 5,
    columns: 2 * 512 - 64,
    form: {
      columns: 512,
      blocks: 2,
      pieces: 1,
      stages: 3,
      warps: 2,
      workers: 2,
      held: 1,
      keepsColumns: true,
    },
  },
  {
    name: "shared memory that keeps what belongs to columns, of which the last are not there",
    rows: 6,
    columns: 4 * 512 - 64,
    form: {
      columns: 512,
      blocks: 2,
      pieces: 2,
      stages: 3,
      warps: 2,
      workers: 2,
      held: 2,
      keepsColumns: true,
    },
  },
  {
    name: "registers that hold several pieces of rows, while a queue shorter than these fills again",
    rows: 7,
    columns: 3 * 512 - 64,
    form: {
      columns: 512,
      blocks: 1,
      pieces: 3,
      stages: 2,
      warps: 2,
      workers: 2,
      held: 3,
    },
  },
  {
    name: "registers that hold several pieces of rows that blocks share",
    rows: 6,
    columns: 2048,
    form: {
      columns: 512,
      blocks: 2,
      pieces: 2,
      stages: 3,
      warps: 2,
      workers: 2,
      held: 2,
    },
  },
];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test.each(dealtTo(kind, cases))("$name", async ({ rows, columns, form }) => {
    await checkWeighedSoftmax(device, { rows, columns }, (op, axes) =>
      planPipelinedRows(op, axes, { rows: 1, ...form }, new Map()),
    );
  });

  // Rows that do not fill registers: pipelined, and with per-column inputs loaded beside them.
  const norms = [
    { by: f32, rows: 3, columns: 6144, form: { columns: 8192, pieces: 1, warps: 8 } },
    { by: bf16, rows: 3, columns: 6144, form: { columns: 8192, pieces: 1, warps: 8 } },
    {
      by: f32,
      rows: 67,
      columns: 1100,
      form: { columns: 2048, early: { minBlocksPerMultiprocessor: 9 } },
    },
    {
      by: bf16,
      rows: 67,
      columns: 1100,
      form: { columns: 2048, early: { minBlocksPerMultiprocessor: 9 } },
    },
  ];
  test.each(dealtTo(kind, norms))(
    "a layer norm of $rows × $columns with $by.name",
    async ({ by, rows, columns, form }) => {
      const norm = layerNorm({ x: tensor(bf16, [rows, columns]), scale: by, bias: by });
      expect(norm.plan({}).configuration).toMatchObject(form);
      const x = randomNumbers(bf16, [rows, columns], 1, 2, 3);
      const [scale, bias] = [2, 3].map((seed) => randomNumbers(by, [columns], seed, 1));
      if (scale === undefined || bias === undefined) throw new Error("two arrays of columns");
      const { out } = await device.run(norm, {
        ...{ x: x.array, scale: scale.array, bias: bias.array },
      });
      const expected = Array.from({ length: rows }, (_, row) => {
        const own = x.values.slice(row * columns, (row + 1) * columns);
        const mean = own.reduce((sum, value) => sum + value, 0) / columns;
        const variance = own.reduce((sum, value) => sum + (value - mean) ** 2, 0) / columns;
        return own.map(
          (value, at) =>
            ((value - mean) / Math.sqrt(variance + 1e-5)) * (scale.values[at] ?? NaN) +
            (bias.values[at] ?? NaN),
        );
      });
      expectClose(out, expected.flat(), { relative: 2, absolute: 1e-5 });
    },
  );
});

test("per-column inputs are loaded with the rows where registers hold them for three blocks; otherwise rows are pipelined", () => {
  const of = (dtype: typeof bf16 | typeof f32, n: number) =>
    layerNorm({ x: bf16, scale: dtype, bias: dtype }).plan({ m: 16_384, n }).configuration;
  const whole = { rows: 1, blocks: 1, pieces: 1 };
  expect(of(bf16, 2048)).toEqual({
    ...whole,
    columns: 2048,
    early: { minBlocksPerMultiprocessor: 9 },
  });
  expect(of(bf16, 5120)).toEqual({
    ...whole,
    columns: 5120,
    early: { minBlocksPerMultiprocessor: 4 },
  });
  expect(of(bf16, 7168)).toEqual({
    ...whole,
    columns: 7168,
    early: { minBlocksPerMultiprocessor: 3 },
  });
  const held = { ...whole, columns: 8192, held: 1 };
  expect(of(f32, 8192)).toMatchObject({ ...held, warps: 8, stages: 13, workers: 132 });
  expect(of(bf16, 10_240)).toMatchObject({ keepsColumns: true });
});

test("per-column inputs of some long rows stay in shared memory where a few blocks can hold them", () => {
  const kept = { columns: 8192, stages: 5, pieces: 4, held: 4, keepsColumns: true };
  const of = (bias: boolean, dtype: typeof bf16 | typeof f32, m: number, n: number) =>
    layerNorm({ x: bf16, scale: dtype, ...(bias && { bias: dtype }) }).plan({ m, n }).configuration;
  expect(of(true, bf16, 400, 32_768)).toMatchObject({ ...kept, blocks: 1 });
  expect(of(true, bf16, 56, 131_072)).toMatchObject({ ...kept, blocks: 4, workers: 28 });
  expect(of(false, bf16, 400, 32_768)).toMatchObject({ ...kept, stages: 9, blocks: 1 });
  const others = [of(false, bf16, 200, 65_536), of(true, f32, 400, 32_768)];
  for (const each of [...others, of(true, bf16, 60, 262_144)])
    expect(each).not.toHaveProperty("keepsColumns");
});

test("short rows have two loads a thread, unless they leave threads idle or have several per-column inputs", () => {
  const of = (n: number) => softmax({ x: bf16 }).plan({ m: 131_072, n }).configuration;
  expect(of(512)).toMatchObject({ rows: 4, columns: 512 });
  expect(of(400)).toMatchObject({ rows: 8, columns: 512 });
  const norm = layerNorm({ x: bf16, scale: bf16, bias: bf16 });
  expect(norm.plan({ m: 131_072, n: 512 }).configuration).toMatchObject({ rows: 8 });
});

test("many long rows are pipelined, by as few blocks as fit", () => {
  const of = (rows: number, columns: number) =>
    quantize({ x: tensor(bf16, [rows, columns]), out: i8 }).plan({}).configuration;
  // All of it in registers, half of it, and half of a block's share.
  expect(of(2048, 65_536)).toMatchObject({ columns: 8192, pieces: 8, held: 8, stages: 9 });
  // As few workers as take no more turns.
  expect(of(1024, 131_072)).toMatchObject({ blocks: 1, pieces: 16, held: 8, workers: 128 });
  expect(of(512, 262_144)).toMatchObject({ blocks: 2, pieces: 16, held: 8, workers: 64 });
  // Fewer clusters of 4 than processors would make: groups of processors may leave two over each.
  expect(of(512, 524_288)).toMatchObject({ blocks: 4, pieces: 16, held: 8, workers: 29 });
  // Few rows cannot be pipelined, and TMA needs starts at multiples of 16 bytes.
  for (const found of [of(8, 65_536), of(2048, 65_537), of(16_384, 8192)])
    expect(found).not.toHaveProperty("stages");
  const entropy = crossEntropy({ logits: tensor(f32, [4096, 65_536]), gradient: true });
  expect(entropy.plan({}).configuration).toMatchObject({
    columns: 4096,
    blocks: 1,
    pieces: 16,
    held: 7,
  });
});

test.skipIf(!hasPtxas)("no registers are spilled", { timeout: 600_000 }, () => {
  const columns = { scale: bf16, bias: bf16 };
  const kernels = [
    softmax({ x: bf16 }).kernels({ m: 480, n: 65_536 }),
    logSoftmax({ x: bf16 }).kernels({ m: 480, n: 65_536 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 12, n: 262_144 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 200, n: 65_536 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 2048, n: 7168 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 2048, n: 6144 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 2048, n: 5120 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 2048, n: 2048 }),
    rmsNorm({ x: bf16, residual: bf16, scale: f32 }).kernels({ m: 2048, n: 131_072 }),
    crossEntropy({ logits: bf16, gradient: true }).kernels({ m: 480, n: 65_536 }),
    crossEntropy({ logits: bf16, gradient: true }).kernels({ m: 2048, n: 16_384 }),
    softmaxBackward({ out: bf16 }).kernels({ m: 2048, n: 131_072 }),
  ];
  expect(assemblyProblems(kernels.flat())).toEqual([]);
});
