/** Grid-cooperative rows: every way of dividing them, against float64, and when they are chosen. */
import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { dealtTo, scheduleSeeds } from "../../../test/support/sample.ts";
import { checkWeighedSoftmax } from "../../../test/support/weighed-softmax.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f64 } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { targets } from "../../targets/target.ts";
import type { GridCooperativeRowsConfiguration } from "./choose-pipelined-rows.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { logSoftmax, softmax } from "./softmax.ts";
import { planGridCooperativeRows } from "./grid-cooperative-rows.ts";

interface Case {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly configuration: GridCooperativeRowsConfiguration;
}

const cooperative = (form: {
  readonly columns: number;
  readonly blocks: number;
  readonly workers: number;
  readonly stages: number;
  readonly lookahead: number;
}): GridCooperativeRowsConfiguration => ({ rows: 1, pieces: 1, held: 0, warps: 4, ...form });

const small: Case = {
  name: "more rows than stages",
  ...{ rows: 5, columns: 512 },
  configuration: cooperative({ columns: 256, blocks: 2, workers: 1, stages: 3, lookahead: 1 }),
};

const cases: readonly Case[] = [
  small,
  {
    name: "workers with fewer rows than the lookahead, ragged shares and a block with none",
    ...{ rows: 5, columns: 2 * 256 + 64 },
    configuration: cooperative({ columns: 256, blocks: 4, workers: 2, stages: 4, lookahead: 3 }),
  },
  {
    name: "one block for each row",
    ...{ rows: 7, columns: 192 },
    configuration: cooperative({ columns: 256, blocks: 1, workers: 2, stages: 3, lookahead: 2 }),
  },
  {
    name: "stages that wrap around out of step with statistics",
    ...{ rows: 19, columns: 768 },
    configuration: cooperative({ columns: 256, blocks: 3, workers: 2, stages: 5, lookahead: 2 }),
  },
];

function check(device: Device, { configuration, ...size }: Case): Promise<void> {
  return checkWeighedSoftmax(device, size, (op, axes, target) =>
    planGridCooperativeRows(op, axes, configuration, new Map(), target),
  );
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test.each(dealtTo(kind, cases))("$name", async (one) => {
    const device = await open(kind);
    await check(device, one);
    device.dispose();
  });
});

test.each(scheduleSeeds)("under schedule %i", async (seed) => {
  const schedule = seed % 2 === 0 ? "random" : "adversarial";
  const device = await open("simulator", { schedule, seed });
  await check(device, small);
  device.dispose();
});

test("many long rows are shared by blocks with whole pieces, and rows of one piece where per-column inputs are worth it", () => {
  const norm = layerNorm({ x: bf16, scale: bf16, bias: bf16 });
  const of = (m: number, n: number) => norm.plan({ m, n }).configuration;
  const far = { columns: 8192, stages: 9, lookahead: 4 };
  const near = { columns: 8192, stages: 8, lookahead: 3 };
  expect(of(512, 262_144)).toMatchObject({ ...far, blocks: 32, workers: 4 });
  expect(of(2048, 65_536)).toMatchObject({ ...far, blocks: 8, workers: 16 });
  expect(of(16_384, 8192)).toMatchObject({ ...near, blocks: 1, workers: 132 });
  const share = (n: number, m = 2 ** 27 / n) => softmax({ x: bf16 }).plan({ m, n }).configuration;
  expect(share(262_144)).toMatchObject({ ...far, blocks: 32, workers: 4 });
  expect(share(16_384)).toMatchObject({ ...near, blocks: 2, workers: 66 });
  expect(softmax({ x: f32 }).plan({ m: 512, n: 131_072 }).configuration).toMatchObject({
    columns: 4096,
    blocks: 32,
    lookahead: 4,
  });
  // Fewer rows are worth it where rows are long or have per-column inputs.
  expect(share(262_144, 16)).toMatchObject({ ...far, workers: 4 });
  expect(share(131_072, 64)).toMatchObject({ ...far, workers: 8 });
  expect(of(256, 65_536)).toMatchObject({ ...far, workers: 16 });
  // Too few rows, idle threads, more columns than registers hold, a single piece, a row that 16 warps hold, exact exponentials, a loss alone.
  const others = [
    of(240, 65_536),
    of(1000, 32_768),
    share(65_536, 1000),
    share(262_144, 12),
    share(131_072, 56),
    of(8192, 8192),
    of(8192, 12_288),
    of(16_384, 8128),
    layerNorm({ x: bf16, scale: f32, bias: f32 }).plan({ m: 2048, n: 65_536 }).configuration,
    layerNorm({ x: bf16, scale: bf16 }).plan({ m: 16_384, n: 8192 }).configuration,
    rmsNorm({ x: bf16, scale: bf16 }).plan({ m: 8192, n: 16_384 }).configuration,
    softmax({ x: f32 }).plan({ m: 2048, n: 65_536 }).configuration,
    softmax({ x: f64 }).plan({ m: 2048, n: 65_536 }).configuration,
    crossEntropy({ logits: bf16 }).plan({ m: 2048, n: 65_536 }).configuration,
  ];
  for (const found of others) expect(found).not.toHaveProperty("lookahead");
});

test("warps never synchronize while they work: each would wait for the slowest twice a row", () => {
  const kernels = softmax({ x: bf16 }).kernels({ m: 512, n: 262_144 });
  const texts = kernels.map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module));
  const barriers = texts.flatMap((text) => text.match(/bar\.sync.*/g) ?? []);
  const expected = /barriers are ready|warps (begin|have ended)/;
  expect(barriers.filter((line) => !expected.test(line))).toEqual([]);
});

test.skipIf(!hasPtxas)("no registers are spilled", { timeout: 600_000 }, () => {
  const columns = { scale: bf16, bias: bf16 };
  const long = { m: 2048, n: 65_536 };
  const kernels = [
    layerNorm({ x: bf16, ...columns }).kernels(long),
    layerNorm({ x: bf16, ...columns, statistics: true }).kernels({ m: 16_384, n: 8192 }),
    layerNorm({ x: bf16, ...columns }).kernels({ m: 2048, n: 65_000 }),
    layerNorm({ x: bf16, residual: bf16, ...columns }).kernels(long),
    layerNorm({ x: f64, scale: f64, bias: f64 }).kernels(long),
    rmsNorm({ x: bf16, scale: f32 }).kernels(long),
    rmsNorm({ x: f32, scale: f32 }).kernels({ m: 8192, n: 16_384 }),
    softmax({ x: bf16 }).kernels(long),
    logSoftmax({ x: bf16 }).kernels(long),
    softmax({ x: f32 }).kernels({ m: 512, n: 130_048 }),
    crossEntropy({ logits: bf16, gradient: true }).kernels({ m: 8192, n: 16_384 }),
  ];
  expect(assemblyProblems(kernels.flat())).toEqual([]);
});
