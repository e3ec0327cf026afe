/** The basic row kernel with rows shared by blocks anywhere on the GPU, which exchange statistics through a mailbox: against float64, and when it is chosen. */
import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { dealtTo, scheduleSeeds } from "../../../test/support/sample.ts";
import { checkWeighedSoftmax } from "../../../test/support/weighed-softmax.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f64 } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { layerNormBackward } from "./norm-backward.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import type { RowKernelConfiguration } from "./row-kernel.ts";
import { planGridCooperativeRowKernel } from "./row-plan.ts";
import { logSoftmax, softmax } from "./softmax.ts";

interface Case {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly configuration: RowKernelConfiguration;
}

const cooperative = (columns: number, blocks: number, warps: number): RowKernelConfiguration => ({
  ...{ rows: 1, columns, blocks, pieces: 1, gridCooperative: { warps } },
});

const small: Case = {
  name: "whole shares",
  rows: 2,
  columns: 256,
  configuration: cooperative(128, 2, 1),
};

const cases: readonly Case[] = [
  small,
  {
    name: "a ragged share, and a block with none",
    ...{ rows: 1, columns: 2 * 128 + 77, configuration: cooperative(128, 4, 2) },
  },
];

function check(device: Device, { configuration, ...size }: Case): Promise<void> {
  return checkWeighedSoftmax(device, size, (op, axes, target) =>
    planGridCooperativeRowKernel(op, axes, configuration, new Map(), target),
  );
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  // Schedules have the other one on the simulator.
  test.each(dealtTo(kind, cases.toReversed()))("$name", async (one) => {
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

test("a softmax and a norm of a long row on a GPU without clusters", async () => {
  const target = { ...targets.sm_80, processors: 4 };
  const device = await open("simulator", { target });
  const columns = 17_000;
  const x = randomNumbers(bf16, [1, columns], 1, 2, 1);
  const op = softmax({ x: bf16, out: f32 });
  expect(op.plan({ m: 1, n: columns }, target).configuration).toMatchObject(
    cooperative(8192, 4, 16),
  );
  const { out } = await device.run(op, { x: x.array });
  const sum = x.values.reduce((sofar, value) => sofar + Math.exp(value), 0);
  expectClose(
    out,
    x.values.map((value) => Math.exp(value) / sum),
    { relative: 8 },
  );
  const norm = await device.run(layerNorm({ x: bf16, out: f32 }), { x: x.array });
  const mean = x.values.reduce((sofar, value) => sofar + value, 0) / columns;
  const variance = x.values.reduce((sofar, value) => sofar + (value - mean) ** 2, 0) / columns;
  expectClose(
    norm.out,
    x.values.map((value) => (value - mean) / Math.sqrt(variance + 1e-5)),
    { relative: 8, absolute: 1e-6 },
  );
  device.dispose();
});

test("few long rows are shared by as many blocks as are resident at once, unless clusters are as fast", () => {
  const of = (rows: number, columns: number) =>
    layerNorm({ x: bf16, scale: bf16, bias: bf16 }).plan({ m: rows, n: columns }).configuration;
  expect(of(8, 262_144)).toEqual(cooperative(16_384, 16, 16));
  expect(of(1, 262_144)).toEqual(cooperative(4096, 64, 16));
  expect(of(5, 250_000)).toEqual(cooperative(16_384, 16, 16));
  // As fast with clusters; no more blocks than a cluster has; more elements than threads hold.
  for (const found of [of(8, 65_536), of(16, 262_144), of(1, 2 ** 22)])
    expect(found).not.toHaveProperty("gridCooperative");
});

test.skipIf(!hasPtxas)("no registers are spilled", { timeout: 600_000 }, () => {
  const columns = { scale: bf16, bias: bf16 };
  const [few, one] = [
    { m: 8, n: 262_144 },
    { m: 1, n: 2 ** 21 },
  ];
  const kernels = [
    layerNorm({ x: bf16, ...columns }).kernels(few),
    rmsNorm({ x: bf16, scale: f32 }).kernels(few),
    softmax({ x: bf16 }).kernels(one),
    softmax({ x: f32 }).kernels(one),
    softmax({ x: f64 }).kernels({ m: 1, n: 2 ** 19 }),
    logSoftmax({ x: bf16 }).kernels(one),
    crossEntropy({ logits: bf16, gradient: true }).kernels(few),
    layerNormBackward({ x: bf16 }).kernels(few),
  ];
  expect(assemblyProblems(kernels.flat())).toEqual([]);
});
