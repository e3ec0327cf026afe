/**
 * Attention against float64. The bound: scores are sums of d products in f32, powers are rounded to the format of v, and
 * values are averages of v with weights that sum to 1, so an error of a weight is one of the result in units of the
 * largest value. 2⁻⁸ (bf16) for the powers and 2⁻⁸ for the result leave room for approximate exponentials.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f8e4m3fn, f8e5m2, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { checkForward } from "../../../test/support/attention-checks.ts";
import { inputsOf } from "../../../test/support/attention-reference.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import { codeOf } from "../../../test/support/library-checks.ts";
import { notEmulated, scheduleSeeds, usually } from "../../../test/support/sample.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";
import type { AttentionConfiguration } from "./configuration.ts";
import type { AttentionSpec } from "./problem.ts";

const small: AttentionConfiguration = {
  kernel: "warp-specialized",
  consumers: 1,
  columns: 32,
  stages: 2,
};

const cases: readonly AttentionCase[] = [
  { name: "one tile", sizes: [1, 64, 64, 1, 1, 16, 16], kernel: "warp-specialized" },
  {
    name: "tails of rows and columns",
    sizes: [1, 70, 150, 1, 1, 16, 16],
    kernel: "warp-specialized",
  },
  { name: "causal", sizes: [1, 200, 200, 1, 1, 16, 16], causal: true },
  {
    name: "causal, more columns",
    sizes: [1, 40, 100, 2, 1, 16, 16],
    causal: true,
    configuration: small,
  },
  {
    name: "causal, more rows",
    sizes: [1, 100, 40, 2, 1, 16, 16],
    causal: true,
    configuration: small,
  },
  { name: "groups of heads", sizes: [2, 66, 33, 4, 2, 16, 24], configuration: small },
  {
    name: "a window",
    sizes: [1, 150, 150, 1, 1, 16, 16],
    window: { left: 10, right: 5 },
    configuration: small,
  },
  {
    name: "a window to the left",
    sizes: [1, 150, 70, 1, 1, 16, 16],
    window: { left: 20, right: 0 },
    configuration: small,
  },
  {
    name: "a window ahead",
    sizes: [1, 70, 150, 1, 1, 16, 16],
    window: { right: 33 },
    configuration: small,
  },
  {
    name: "three consumers",
    sizes: [1, 193, 40, 1, 1, 16, 16],
    configuration: { kernel: "warp-specialized", consumers: 3, columns: 32, stages: 2 },
  },
  {
    name: "three consumers, whole tiles and short ones behind them",
    sizes: [1, 450, 70, 2, 1, 16, 16],
    configuration: { kernel: "warp-specialized", consumers: 3, columns: 32, stages: 2, workers: 2 },
  },
  {
    name: "three consumers, of which each sees another last tile",
    sizes: [1, 250, 240, 1, 1, 16, 16],
    causal: true,
    configuration: { kernel: "warp-specialized", consumers: 3, columns: 32, stages: 2, workers: 2 },
  },
  {
    name: "two consumers, of which each sees another last tile, one stage",
    sizes: [2, 150, 300, 1, 1, 16, 16],
    window: { left: 90, right: 40 },
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 32, stages: 1, workers: 1 },
  },
  {
    name: "two consumers, four stages",
    sizes: [1, 129, 260, 1, 1, 16, 16],
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 32, stages: 4 },
  },
  {
    name: "tile after tile",
    sizes: [2, 200, 100, 2, 1, 16, 16],
    causal: true,
    configuration: { ...small, workers: 3 },
  },
  {
    name: "in pairs, of an odd number of blocks",
    sizes: [2, 150, 90, 3, 1, 16, 16],
    causal: true,
    configuration: { ...small, workers: 4, schedule: "paired" },
  },
  {
    name: "in pairs, of an odd number of blocks that see all columns, the last tile not full",
    sizes: [1, 42, 68, 1, 1, 16, 16],
    configuration: { ...small, stages: 1, workers: 8, schedule: "paired" },
  },
  {
    name: "in pairs, by a mask",
    sizes: [1, 64, 58, 3, 1, 16, 16],
    ...{ mask: "dilated", window: { left: 40, right: 54 } },
    configuration: { ...small, workers: 18, schedule: "paired" },
  },
  {
    name: "in pairs, of an even number of blocks",
    sizes: [1, 250, 200, 2, 1, 16, 16],
    causal: true,
    configuration: { ...small, workers: 3, schedule: "paired" },
  },
  {
    name: "tile after tile, two consumers",
    sizes: [1, 300, 70, 2, 2, 16, 16],
    window: { left: 50, right: 20 },
    configuration: { ...small, consumers: 2, workers: 2 },
  },
  {
    name: "tile after tile, values of another size",
    sizes: [1, 150, 40, 2, 2, 16, 40],
    configuration: { ...small, workers: 1, schedule: "longest-first" },
  },
  { name: "one stage", sizes: [1, 70, 100, 1, 1, 16, 16], configuration: { ...small, stages: 1 } },
  { name: "values of another size", sizes: [1, 64, 64, 1, 1, 16, 80], configuration: small },
  {
    name: "160 columns at a time",
    sizes: [1, 130, 170, 1, 1, 16, 24],
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 160, stages: 2 },
  },
  {
    name: "a last tile of half the columns, all of which are there",
    sizes: [1, 130, 144, 2, 1, 16, 24],
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 96, stages: 2, workers: 1 },
  },
  {
    name: "fewer columns than a tile has",
    sizes: [1, 70, 75, 1, 1, 16, 16],
    configuration: { kernel: "warp-specialized", consumers: 1, columns: 160, stages: 2 },
  },
  {
    name: "FP8, a last tile of a third of the columns",
    sizes: [1, 70, 128, 1, 1, 32, 32],
    ...{ dtype: f8e4m3fn },
    configuration: { kernel: "warp-specialized", consumers: 1, columns: 96, stages: 2 },
  },
  {
    name: "80 columns at a time, causal",
    sizes: [1, 130, 170, 1, 1, 16, 24],
    causal: true,
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 80, stages: 2 },
  },
  {
    name: "FP8, three consumers over 96 columns",
    sizes: [1, 200, 110, 2, 1, 32, 32],
    ...{ dtype: f8e4m3fn, scales: true },
    configuration: { kernel: "warp-specialized", consumers: 3, columns: 96, stages: 2 },
  },
  { name: "odd heads", sizes: [1, 17, 33, 1, 1, 5, 3], kernel: "plain" },
  {
    name: "FP8, tails of rows and columns",
    sizes: [2, 70, 150, 1, 1, 32, 32],
    dtype: f8e4m3fn,
    kernel: "warp-specialized",
  },
  {
    name: "FP8, causal, with scales",
    sizes: [1, 70, 50, 4, 2, 16, 48],
    ...{ dtype: f8e4m3fn, causal: true, scales: true },
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 32, stages: 2 },
  },
  {
    name: "FP8 of two bits, sinks",
    sizes: [1, 40, 70, 2, 2, 32, 16],
    ...{ dtype: f8e5m2, sinks: true, scales: true, window: { left: 20 } },
    configuration: small,
  },
  {
    name: "FP8, capped",
    sizes: [1, 40, 70, 2, 2, 32, 16],
    ...{ dtype: f8e4m3fn, softCap: 2, scales: true },
    configuration: small,
  },
  {
    name: "FP8, plain",
    sizes: [1, 20, 37, 2, 1, 12, 10],
    ...{ dtype: f8e4m3fn, scales: true, causal: true, kernel: "plain" as const },
  },
  {
    name: "a negative scale",
    sizes: [1, 70, 40, 1, 1, 16, 16],
    ...{ scale: -2, causal: true, configuration: small },
  },
  {
    name: "a scale of 0",
    sizes: [1, 20, 40, 1, 1, 16, 16],
    ...{ scale: 0, causal: true, configuration: small },
  },
  { name: "f16", sizes: [1, 33, 40, 1, 1, 24, 8], dtype: f16, configuration: small },
  { name: "f32", sizes: [1, 20, 37, 2, 1, 12, 12], dtype: f32, causal: true, kernel: "plain" },
  { name: "f32, heads in parts", sizes: [1, 20, 37, 2, 1, 40, 20], dtype: f32, kernel: "plain" },
  {
    name: "capped, with sinks",
    sizes: [1, 64, 40, 2, 2, 16, 16],
    softCap: 2,
    sinks: true,
    configuration: small,
  },
  {
    name: "sinks, plain",
    sizes: [1, 20, 40, 2, 2, 7, 7],
    softCap: 2,
    sinks: true,
    kernel: "plain",
  },
  {
    name: "a bias of all",
    sizes: [2, 33, 40, 2, 1, 16, 16],
    bias: [true, true, true, true],
    configuration: small,
  },
  {
    name: "a bias of columns",
    sizes: [2, 33, 40, 2, 1, 16, 16],
    bias: [false, false, false, true],
    configuration: small,
  },
  {
    name: "a mask, and rows that see nothing",
    sizes: [1, 70, 2, 1, 1, 16, 16],
    mask: "remainders",
    configuration: small,
  },
  {
    name: "scores of one's own, scaled",
    sizes: [1, 66, 40, 4, 2, 16, 16],
    slopes: true,
    scale: 0.3,
    configuration: small,
  },
  {
    name: "plain, everything",
    sizes: [2, 33, 70, 2, 1, 9, 20],
    causal: true,
    window: { left: 40 },
    slopes: true,
    mask: "remainders",
    softCap: 3,
    bias: [true, false, false, true],
    sinks: true,
    kernel: "plain",
  },
  {
    ...{ name: "dropout", sizes: [2, 20, 40, 1, 1, 16, 16], dropout: 0.2, sinks: true },
    configuration: small,
  },
  {
    ...{ name: "dropout of one tile", sizes: [2, 20, 25, 1, 1, 16, 16], dropout: 0.2, sinks: true },
    configuration: small,
  },
  { name: "dropout, plain", sizes: [1, 20, 40, 2, 2, 7, 7], dropout: 0.5, kernel: "plain" },
  { name: "no columns", sizes: [1, 3, 0, 1, 1, 16, 16], kernel: "plain" },
  { name: "no rows", sizes: [1, 0, 3, 1, 1, 16, 16] },
];

const emulated = usually(
  [
    "80 columns at a time, causal",
    "dropout of one tile",
    "three consumers, whole tiles and short ones behind them",
    "plain, everything",
    "FP8, causal, with scales",
  ],
  [
    "a last tile of half the columns, all of which are there",
    "FP8, a last tile of a third of the columns",
    "a window",
    "FP8 of two bits, sinks",
  ],
);

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(notEmulated(cases, emulated))("$name", (one) => checkForward(device, one));
});

describe("on the emulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("emulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases.filter(({ name }) => emulated.includes(name)))("$name", (one) =>
    checkForward(device, one),
  );
});

test("schedules give the same bits, and nothing is found", async () => {
  const one = cases.find(({ name }) => name === "tile after tile, two consumers");
  if (one === undefined) throw new Error("a case is missing");
  const [b, s, t, h, kv, d, e] = one.sizes;
  const op = attention({
    ...{ q: bf16, k: bf16, v: bf16, causal: true },
    ...(one.configuration && { configuration: one.configuration }),
  });
  const { q, k, v } = inputsOf(one);
  const results = new Set<string>();
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", {
      schedule: seed % 2 === 0 ? "random" : "adversarial",
      seed,
    });
    onTestFinished(() => {
      device.dispose();
    });
    const { out } = await device.run(op, { q: q.array, k: k.array, v: v.array } as never, {
      dimensions: { b, s, t, h, kv, d, e },
    });
    results.add(Array.from(toNumbers(out)).join());
  }
  expect(results.size).toBe(1);
});

test("a scale that is not more than 0 stops the kernel", async () => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const one: AttentionCase = {
    ...{ name: "no scale", sizes: [1, 8, 8, 2, 1, 16, 16] },
    ...{ dtype: f8e4m3fn, scales: true },
  };
  const op = attention({ q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16, scales: true });
  const given = inputsOf(one);
  const ones = (heads: number) => fromNumbers(f32, [heads], new Float64Array(heads).fill(1));
  const { q, k, v } = { q: given.q.array, k: given.k.array, v: given.v.array } as {
    readonly [N in "q" | "k" | "v"]: HostArray<"f8e4m3fn">;
  };
  const qScale = fromNumbers(f32, [2], [1, 0]);
  await expect(
    device.run(op, { q, k, v, qScale, kScale: ones(1), vScale: ones(1) }),
  ).rejects.toThrow(/scales of q and k/);
});

describe("what cannot be done is refused", () => {
  const operands = { q: bf16, k: bf16, v: bf16 };
  const [b, s, t, h] = [dim("b"), dim("s"), dim("t"), dim("h")];
  const refusals: readonly [name: string, code: string, make: () => unknown][] = [
    ["a format", "TW9901", () => attention({ ...operands, q: i32 })],
    ["two formats", "TW9901", () => attention({ ...operands, v: f16 })],
    ["a result", "TW9901", () => attention({ ...operands, out: i32 })],
    ["an FP8 result", "TW9901", () => attention({ q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn })],
    ["scales of bf16", "TW9902", () => attention({ ...operands, scales: true })],
    [
      "gradients of FP8",
      "TW9901",
      () => attentionBackward({ q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn }),
    ],
    ["no array", "TW9902", () => attention({ ...operands, q: "bf16" as never })],
    ["three axes", "TW9902", () => attention({ ...operands, q: tensor(bf16, [b, s, 64]) })],
    [
      "strides",
      "TW9902",
      () => attention({ ...operands, q: tensor(bf16, [b, s, h, 64], { strides: [1, b, s, h] }) }),
    ],
    [
      "two head sizes",
      "TW9902",
      () =>
        attention({
          q: tensor(bf16, [b, s, h, 64]),
          k: tensor(bf16, [b, t, h, 32]),
          v: tensor(bf16, [b, t, h, 32]),
        }),
    ],
    ["a window", "TW9902", () => attention({ ...operands, window: { left: -1 } })],
    ["causal", "TW1008", () => attention({ ...operands, causal: 1 as never })],
    ["dropout of all", "TW9902", () => attention({ ...operands, dropout: 1 })],
    ["a cap", "TW9902", () => attention({ ...operands, softCap: 0 })],
    ["a scale", "TW9902", () => attention({ ...operands, scale: NaN })],
    ["a bias", "TW9902", () => attention({ ...operands, bias: tensor(f32, [s, t]) })],
    ["sinks", "TW9902", () => attention({ ...operands, sinks: tensor(f32, [3, 4]) })],
    ["a mask", "TW1008", () => attention({ ...operands, mask: true as never })],
    ["an option", "TW1033", () => attention({ ...operands, maks: 1 } as never)],
    ["heads", "TW9902", () => plan({}, { h: 5, kv: 2 })],
    ["a large head", "TW9902", () => plan({}, { d: 264 })],
    ["a configuration", "TW9904", () => plan({ configuration: { kernel: "fast" } as never })],
    ["an order", "TW9904", () => plan({ configuration: { ...small, schedule: "any" as never } })],
    ["tiles", "TW9904", () => plan({ configuration: { kernel: "plain", rows: 48 } as never })],
    ["columns", "TW9904", () => plan({ configuration: { ...small, columns: 72 } })],
    [
      "registers",
      "TW9904",
      () => plan({ configuration: { kernel: "plain", rows: 128, columns: 16 } }, { e: 256 }),
    ],
    [
      "columns of FP8",
      "TW9904",
      () => {
        const f8 = { q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16 };
        plan({ ...f8, configuration: { ...small, columns: 80 } });
      },
    ],
    [
      "shared memory",
      "TW9904",
      () => plan({ configuration: { ...small, columns: 128, stages: 4 } }, { d: 256, e: 256 }),
    ],
    ["an odd head on TMA", "TW9904", () => plan({ configuration: small }, { d: 15, e: 15 })],
    ["a mask of numbers", "TW9905", () => plan({ mask: ({ row }) => row as never })],
    [
      "a score of another shape",
      "TW9905",
      () => plan({ score: ({ score }) => score.max({ axis: 1 }) }),
    ],
  ];
  const plan = (
    more: Partial<AttentionSpec> & { configuration?: AttentionConfiguration },
    sizes: { [name: string]: number } = {},
  ) =>
    attention({ ...operands, ...more }).plan({
      ...{ b: 1, s: 64, t: 64, h: 2, kv: 1, d: 16, e: 16 },
      ...sizes,
    }).launches;
  test.each(refusals)("%s", (_, code, make) => {
    expect(codeOf(make)).toBe(code);
  });
});

test("wide heads and FP8 have as many columns as registers and shared memory hold", () => {
  const sizes = { b: 1, s: 4096, t: 4096, h: 8, kv: 8, d: 256, e: 256 };
  const tilesOf = (spec: AttentionSpec, head: number) =>
    attention(spec).plan({ ...sizes, d: head, e: head }).configuration;
  const half = { q: bf16, k: bf16, v: bf16 };
  const f8 = { q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16 };
  expect(tilesOf(half, 256)).toMatchObject({ consumers: 2, columns: 80 });
  expect(tilesOf({ ...half, softCap: 2 }, 256)).toMatchObject({ consumers: 2, columns: 64 });
  expect(tilesOf(half, 128)).toMatchObject({ consumers: 2, columns: 192 });
  expect(tilesOf({ ...half, causal: true }, 128)).toMatchObject({ consumers: 2, columns: 128 });
  expect(tilesOf(f8, 128)).toMatchObject({ consumers: 3, columns: 96 });
  expect(tilesOf(f8, 256)).toMatchObject({ consumers: 2, columns: 64 });
});

test("tensor cores sum rounded powers where no logarithms are asked for and nothing is dropped", () => {
  const sizes = { b: 1, s: 256, t: 256, h: 1, kv: 1, d: 32, e: 32 };
  const textOf = (more: Partial<AttentionSpec>) => {
    const configuration = {
      kernel: "warp-specialized",
      consumers: 1,
      columns: 32,
      stages: 2,
    } as const;
    const given = { q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16 } as const;
    const spec = { ...given, configuration, ...more } as const;
    const made = attention(spec)
      .kernels(sizes)
      .find(({ name }) => name === "attention");
    if (made === undefined) throw new Error("attention is a kernel of this name");
    return printPtx(lower(made.kernel, targets.sm_90a).module);
  };
  // Each step from nothing: the sum of all columns would lose powers, which are cut to the last of fourteen bits of it.
  expect(textOf({})).toContain("wgmma.mma_async.sync.aligned.m64n8k32");
  expect(textOf({ logSumExp: true })).not.toContain("m64n8k32");
  expect(textOf({ dropout: 0.5 })).not.toContain("m64n8k32");
  expect(textOf({ q: bf16, k: bf16, v: bf16 })).not.toContain("m64n8k");
});

test("of a last tile of columns as much is multiplied as there is", () => {
  const widthsOf = (t: number, more: Partial<AttentionSpec> = {}) => {
    const configuration = {
      kernel: "warp-specialized",
      consumers: 1,
      columns: 96,
      stages: 2,
    } as const;
    const [made] = attention({ q: bf16, k: bf16, v: bf16, configuration, ...more }).kernels({
      ...{ b: 1, s: 64, t, h: 1, kv: 1, d: 16, e: 24 },
    });
    if (made === undefined) throw new Error("attention has a kernel");
    const text = printPtx(lower(made.kernel, targets.sm_90a).module);
    const found = [...text.matchAll(/m64n(\d+)k16/g)].map(([, width]) => Number(width));
    return [...new Set(found)].sort((one, other) => one - other);
  };
  expect(widthsOf(192)).toEqual([32, 96]); // values of 24 are 32 wide
  expect(widthsOf(96 + 33)).toEqual([32, 48, 96]);
  expect(widthsOf(33)).toEqual([32, 48]);
  expect(widthsOf(96 + 33, { causal: true })).toEqual([32, 96]);
});

test("a plan says why it is slow", () => {
  const { notes } = attention({ q: f32, k: f32, v: f32 }).plan({
    ...{ b: 1, s: 64, t: 64, h: 2, kv: 1, d: 16, e: 16 },
  });
  expect(notes.join()).toContain("wgmma does not multiply f32");
});
