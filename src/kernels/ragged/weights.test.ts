/**
 * Matrices of groups in few bits, with scales of columns, groups along k and blocks, and with zero points, against float64: every
 * kernel of a dense product with such weights is one of groups of rows.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f8e4m3fn, i32, i4, i8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { codeOf } from "../../../test/support/library-checks.ts";
import { checkWeights, randomRaggedWeights } from "../../../test/support/ragged-checks.ts";
import type { WeightsCase } from "../../../test/support/ragged-checks.ts";
import type { MatmulConfiguration } from "../matmul/configuration.ts";
import { dequantizeWeights, quantizeWeights } from "../matmul/weights/quantize-weights.ts";
import { quantized } from "../matmul/weights/quantized.ts";
import { sparse24 } from "../matmul/weights/sparse-weights.ts";
import { raggedDot } from "./ragged-dot.ts";

const swapAB: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 16, stages: 2 },
  ...{ schedule: "tiles", swapAB: true, cluster: 1 },
};
/** Tiles of several pieces, the last of which reaches beyond its group. */
const tall: MatmulConfiguration = { ...swapAB, consumers: 1, columns: 96 };
const plain: MatmulConfiguration = {
  kernel: "plain",
  rows: 64,
  columns: 32,
  depth: 128,
  splitK: 1,
};

const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];

/** Seeds whose weights are i4, i8, FP8 of both kinds, of every form of scales, with zero points and without (`quantizedOperand`). */
const seeds = [1, 2, 3, 4, 5, 6, 7, 11, 12];
const small: WeightsCase = { groups: [3, 0, 1, 20], sizes: [27, 64, 264], seed: 0 };

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator", { onNotes: () => undefined });
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(seeds)("on tensor cores that take weights from registers, seed %s", (seed) =>
    checkWeights(device, { ...small, seed, configuration: swapAB, epilogue: seed % 2 === 0 }),
  );
  test.each(seeds)("by blocks that read memory themselves, seed %s", (seed) =>
    checkWeights(device, { ...small, seed, configuration: plain, half: seed % 2 === 0 }),
  );
  test("tiles of several pieces", () =>
    checkWeights(device, {
      ...{ groups: [100, 97], sizes: [200, 80, 130], seed: 5 },
      ...{ configuration: tall, epilogue: true },
    }));
  test.each([21, 22, 23])("what is chosen, seed %s", (seed) => {
    const one = randomRaggedWeights(seed, 10);
    const [rows, columns, depth] = one.sizes;
    return checkWeights(device, { ...one, sizes: [rows, Math.min(100, columns), depth] });
  });
});

describe("on the emulator", { timeout: 300_000 }, () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("emulator", { onNotes: () => undefined });
  });
  afterAll(() => {
    device.dispose();
  });
  test.each([
    [3, swapAB],
    [7, swapAB],
    [12, plain],
  ] as const)("seed %s", (seed, configuration) =>
    checkWeights(device, { ...small, seed, configuration, epilogue: true }),
  );
});

test("weights of a batch are stored and read matrix by matrix", async () => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const [depth, columns] = [136, 70];
  const values = Float64Array.from({ length: 3 * depth * columns }, (_, index) =>
    Math.sin(index + 1),
  );
  const x = fromNumbers(f32, [3, depth, columns], values);
  for (const [b, alone] of [
    [
      quantized(i4, [g, k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 }),
      quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 }),
    ],
    [
      quantized(f8e4m3fn, [g, k, n], { blockSize: [128, 64], scale: f32, as: bf16 }),
      quantized(f8e4m3fn, [k, n], { blockSize: [128, 64], scale: f32, as: bf16 }),
    ],
  ] as const) {
    const stored = await device.run(quantizeWeights({ x: f32, b: b as never }), { x } as never);
    const back = await device.run(
      dequantizeWeights({ x: f32, b: b as never }),
      stored as never,
      { dimensions: { k: depth } } as never,
    );
    const all = toNumbers((back as never as { x: never }).x);
    const matrix = depth * columns;
    for (const layer of [0, 1, 2]) {
      const own = fromNumbers(
        f32,
        [depth, columns],
        [...values.slice(layer * matrix, (layer + 1) * matrix)],
      );
      const one = { x: f32, b: alone as never } as const;
      const kept = await device.run(quantizeWeights(one), { x: own } as never);
      const read = await device.run(
        dequantizeWeights(one),
        kept as never,
        { dimensions: { k: depth } } as never,
      );
      expect(all.slice(layer * matrix, (layer + 1) * matrix)).toEqual(
        toNumbers((read as never as { x: never }).x),
      );
    }
  }
});

test.skipIf(!hasPtxas)("no registers are spilled, of few rows a group and of many", () => {
  const few = raggedDot({ a: bf16, b: quantized(i4, [g, k, n], { groupSize: 128, scale: bf16 }) });
  const many = raggedDot({
    a: bf16,
    b: quantized(f8e4m3fn, [g, k, n], { blockSize: [128, 128], scale: f32, as: bf16 }),
    inputs: { residual: tensor(bf16, [m, n]) },
    epilogue: ({ sums, residual }) => sums.add(residual.cast(f32)).cast(bf16),
  });
  const sizes = { n: 2048, k: 2048, g: 8 };
  expect(assemblyProblems(few.kernels({ ...sizes, m: 64 }))).toEqual([]);
  expect(assemblyProblems(many.kernels({ ...sizes, m: 16384 }))).toEqual([]);
});

describe("what cannot be done is refused", () => {
  const never = (value: unknown): never => value as never;
  const refusals: readonly [name: string, code: string, make: () => unknown][] = [
    [
      "one matrix for all groups",
      "TW9902",
      () => raggedDot({ a: bf16, b: quantized(i4, [k, n], { scale: bf16 }) }),
    ],
    ["sparse weights", "TW9902", () => raggedDot({ a: bf16, b: never(sparse24(bf16, [k, n])) })],
    [
      "rows of another format",
      "TW9901",
      () => raggedDot({ a: f32, b: quantized(i8, [g, k, n], { scale: bf16 }) }),
    ],
    [
      "rows of the other half",
      "TW9901",
      () => raggedDot({ a: f16, b: quantized(i8, [g, k, n], { scale: bf16 }) }),
    ],
    [
      "an input called as scales are",
      "TW9905",
      () =>
        raggedDot({
          ...{ a: bf16, b: quantized(i4, [g, k, n], { scale: bf16 }) },
          inputs: { bScale: tensor(f32, [n]) },
        }),
    ],
    [
      "sizes of other groups",
      "TW9902",
      () =>
        raggedDot({
          ...{ a: bf16, b: quantized(i4, [g, k, n], { scale: bf16 }) },
          groupSizes: tensor(i32, [7]),
        }),
    ],
    [
      "weights along columns of tiles",
      "TW9904",
      () =>
        raggedDot({
          ...{ a: bf16, b: quantized(i4, [g, k, n], { scale: bf16 }) },
          configuration: { ...swapAB, swapAB: false, columns: 64 },
        }).plan({ m: 8, n: 64, k: 128, g: 2 }),
    ],
    ["four axes of weights", "TW9902", () => quantized(i4, never([g, g, k, n]), { scale: bf16 })],
  ];
  test.each(refusals)("%s", (_, code, make) => {
    expect(codeOf(make)).toBe(code);
  });
});
