/** What the model chooses, held against what was timed on a GPU, and what makes pairs of blocks worth it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bf16, f32, i4, i8 } from "../../../formats/dtype.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { lower, place } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { captureLocation } from "../../../support/location.ts";
import { targets } from "../../../targets/target.ts";
import {
  isHeldOut,
  readTimedProducts,
  timedConfiguration,
} from "../../../../test/support/products/timed-products.ts";
import type { TimedProduct } from "../../../../test/support/products/timed-products.ts";
import { candidateConfigurations, chooseConfiguration } from "../heuristics/all-configurations.ts";
import type {
  MatmulConfiguration,
  SkinnyConfiguration,
  PersistentConfiguration,
  ProductSizes,
} from "../configuration.ts";
import { matmul, problemOf } from "../matmul.ts";
import { tiledModel } from "./model.ts";
import { quantized } from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";
import { sharedBytes } from "../tile-shapes.ts";

interface Measured {
  readonly bucket: { readonly m: number; readonly n: number; readonly k: number };
  readonly choice: MatmulConfiguration;
  /** How operands lie, in words. */
  readonly variant?: string;
  /** Undefined where it was left out. */
  readonly us?: number;
}

function linesOf(path: string): readonly Measured[] {
  const text = readFileSync(new URL(`../../../../${path}`, import.meta.url)).toString();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Measured)
    .filter((line) => "bucket" in line);
}

/** For each size the fastest time, as a part of that of what is chosen, where this was timed. */
function reachedOf(timed: readonly Measured[], problem = byRows): readonly number[] {
  const sizes = new Map<string, Measured[]>();
  for (const each of timed) {
    const { m, n, k } = each.bucket;
    const known = sizes.get(`${m} ${n} ${k}`) ?? [];
    sizes.set(`${m} ${n} ${k}`, [...known, each]);
  }
  return [...sizes.values()].flatMap((all) => {
    const [{ bucket } = { bucket: { m: 0, n: 0, k: 0 } }] = all;
    const choice = chooseConfiguration(problem, { ...bucket, batch: 1 }, targets.sm_90a);
    const times = all.flatMap(({ us }) => (us === undefined ? [] : [us]));
    const own = all.find((each) => isSame(each.choice, choice))?.us;
    return own === undefined ? [] : [Math.min(...times) / own];
  });
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, each) => sum + Math.log(each), 0) / values.length);
}

const byRows = problemOf("matmul", { a: bf16, b: bf16 }, captureLocation());
const [k, n] = [dim("k"), dim("n")];
const byColumns = problemOf(
  "matmul",
  { a: bf16, b: tensor(bf16, [k, n], { strides: [1, k] }) },
  captureLocation(),
);

function isSame(left: MatmulConfiguration, right: MatmulConfiguration): boolean {
  const sorted = (each: object): string =>
    JSON.stringify(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  return sorted(left) === sorted(right);
}

test("what is chosen was among the fastest that were timed", () => {
  const timed = linesOf("docs/benchmarks/h200-matmul.jsonl");
  for (const [problem, lies, count, least] of [
    [byRows, "b bf16 by n", 15, 0.97],
    [byColumns, "b bf16 by k", 15, 0.97],
  ] as const) {
    const own = timed.filter(({ variant }) => variant?.includes(lies));
    const reached = reachedOf(own, problem);
    expect(reached.length, lies).toBe(count);
    expect(Math.min(...reached), lies).toBeGreaterThan(least);
    expect(geometricMean(reached), lies).toBeGreaterThan(0.985);
  }
});

function isOther(product: TimedProduct): boolean {
  return !isUsual(product);
}

/** Whether TMA takes the rows of all operands as they are, and no axis but that of rows is short. */
function isUsual({ sizes: [, across, along] }: TimedProduct): boolean {
  return [across, along].every((size) => size >= 256 && size % 8 === 0);
}

test.each([
  ["of usual sizes, b by rows", byRows, "kn", isUsual, 350, 0.97, 0.99],
  ["of usual sizes, b by columns", byColumns, "nk", isUsual, 318, 0.97, 0.99],
  ["of other sizes, b by rows", byRows, "kn", isOther, 87, 0.88, 0.98],
  ["of other sizes, b by columns", byColumns, "nk", isOther, 89, 0.88, 0.98],
] as const)(
  "also for random products %s, that nothing was fitted to, of which some choices each were timed",
  (_, problem, lies, belongs, count, share, mean) => {
    const others = readTimedProducts().filter((each) => each.b === lies && isHeldOut(each));
    const timed = others.filter(belongs).flatMap(({ sizes: [m, across, along], us }) =>
      Object.entries(us).map(([text, time]) => ({
        bucket: { m, n: across, k: along },
        choice: timedConfiguration(text),
        us: time,
      })),
    );
    const reached = reachedOf(timed, problem);
    const near = reached.filter((each) => each >= 0.95).length;
    expect(reached.length).toBe(count);
    expect(near / reached.length).toBeGreaterThanOrEqual(share);
    expect(Math.min(...reached)).toBeGreaterThan(0.75);
    expect(geometricMean(reached)).toBeGreaterThan(mean);
  },
);

test("few rows have stages that leave room for two blocks, and are timed with eight, as many as leave room, and all that fit", () => {
  const stages = (m: number, columns: number): readonly number[] =>
    candidateConfigurations(byRows, { m, n: 8192, k: 28672, batch: 1 }, targets.sm_90a).flatMap(
      (each) =>
        each.kernel === "persistent" &&
        each.swapAB &&
        each.consumers === 1 &&
        each.columns === columns &&
        each.schedule === "tiles"
          ? [each.stages]
          : [],
    );
  expect(stages(1, 8)).toEqual([8, 20, 12]);
  expect(stages(64, 64)).toEqual([8, 14, 7]);
  for (const m of [1, 16]) {
    const chosen = chooseConfiguration(byRows, { m, n: 8192, k: 28672, batch: 1 }, targets.sm_90a);
    expect(chosen).toMatchObject({ consumers: 1, schedule: "tiles" });
    expect(chosen).toHaveProperty(
      "stages",
      expect.toSatisfy((stages) => stages <= 12),
    );
  }
});

test("few rows of few steps have no more stages than these, and two blocks have room on a processor", () => {
  const sizes = { m: 152, n: 768, k: 640, batch: 1 };
  const chosen = chooseConfiguration(byColumns, sizes, targets.sm_90a);
  if (chosen.kernel !== "persistent") throw new Error("the persistent kernel is chosen");
  expect(chosen.stages).toBeLessThanOrEqual(10);
  const bytes = sharedBytes(byColumns, chosen);
  expect(2 * (bytes + 1024)).toBeLessThanOrEqual(targets.sm_90a.sharedMemoryPerProcessor);
});

test("tiles that are too few for the processors are multiplied in parts", () => {
  const chosen = (m: number, n: number, k: number): MatmulConfiguration =>
    chooseConfiguration(byRows, { m, n, k, batch: 1 }, targets.sm_90a);
  const inParts = { consumers: 1, schedule: "split-k", swapAB: true };
  expect(chosen(24, 576, 8128)).toMatchObject(inParts);
  expect(chosen(1, 8192, 28672)).toMatchObject({ schedule: "tiles" });
  // 9.1 µs on an H200, and 9.7 in parts.
  expect(chosen(1, 4096, 4096)).toMatchObject({ schedule: "tiles", swapAB: true });
  // 4.8, and 7.5 where blocks hand sums to each other; 16.8 and 18.0; 33.4 and 46.4.
  for (const [m, n, k] of [
    [7, 608, 5568],
    [704, 832, 5440],
    [512, 512, 32768],
  ] as const)
    expect(chosen(m, n, k)).toMatchObject({ schedule: "split-k" });
});

test("up to 64 rows have the skinny kernel where weights are of 4 bits", () => {
  const b = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
  const problem = problemOf("matmul", { a: bf16, b }, captureLocation());
  const chosen = (m: number, across: number, along: number): MatmulConfiguration =>
    chooseConfiguration(problem, { m, n: across, k: along, batch: 1 }, targets.sm_90a);
  // With 32 rows 40.5 µs on an H200, in blocks that have 64 columns and all of k, and 51.3 in parts of k by the persistent kernel.
  for (const m of [17, 32])
    for (const along of [8192, 28672])
      expect(chosen(m, 8192, along)).toMatchObject({
        ...{ kernel: "skinny", rows: 32, columns: 16, sliceK: 4, splitK: 1 },
      });
  // 44.5 µs and 47.3; with 64 rows 57.2 and 59.8, 20.8 and 21.4, 58.0 and 58.5, 18.9 and 19.8.
  for (const [m, across, along] of [
    [32, 28672, 8192],
    [64, 8192, 28672],
    [64, 8192, 8192],
    [64, 28672, 8192],
    [64, 4096, 14336],
  ] as const)
    expect(chosen(m, across, along)).toMatchObject({
      ...{ kernel: "skinny", rows: m, columns: 16, sliceK: 1 },
    });
  expect(chosen(65, 8192, 28672)).toMatchObject({ kernel: "persistent" });
});

/** What may be chosen for few rows with all of k. */
function wholeSkinny(b: QuantizedSpec, sizes: ProductSizes): readonly SkinnyConfiguration[] {
  const problem = problemOf("matmul", { a: bf16, b }, captureLocation());
  return candidateConfigurations(problem, sizes, targets.sm_90a).flatMap((each) =>
    each.kernel === "skinny" && each.splitK === 1 ? [each] : [],
  );
}

test("blocks of 64 columns are for products that they fill the processors with, once", () => {
  const b = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
  const found = [96, 104, 132, 133].map((blocks) =>
    wholeSkinny(b, { m: 16, n: 64 * blocks, k: 8192, batch: 1 }).some(
      ({ columns, sliceK }) => columns === 16 && sliceK === 4,
    ),
  );
  expect(found).toEqual([false, true, true, false]);
});

test("whatever may be chosen for few rows has room in shared memory", () => {
  for (const b of [
    quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 }),
    quantized(i8, [k, n], { groupSize: 128, scale: bf16 }),
  ])
    for (const m of [8, 32, 64]) {
      const sizes = { m, n: 8192, k: 8192, batch: 1 };
      for (const configuration of wholeSkinny(b as QuantizedSpec, sizes)) {
        const op = matmul({ a: bf16, b: b as QuantizedSpec, configuration } as never);
        for (const { kernel } of op.kernels({ m, n: 8192, k: 8192 }))
          expect(() => place(kernel, targets.sm_90a)).not.toThrow();
      }
    }
});

test("weights in 8 bits are multiplied in parts from 33 rows on", () => {
  const problem = problemOf(
    "matmul",
    { a: bf16, b: quantized(i8, [k, n], { groupSize: 128, scale: bf16 }) },
    captureLocation(),
  );
  const chosen = (m: number): MatmulConfiguration =>
    chooseConfiguration(problem, { m, n: 8192, k: 8192, batch: 1 }, targets.sm_90a);
  // 27.5 µs with 64 rows, and 31.2 where blocks hand sums to each other; with 32, 26.4 and by the skinny kernel 24.9.
  expect(chosen(64)).toMatchObject({ consumers: 4, columns: 64, schedule: "split-k" });
  expect(chosen(32)).toMatchObject({ kernel: "skinny" });
});

test("rows that lie across sectors of the cache are fetched by pairs of blocks", () => {
  const chosen = (n: number): MatmulConfiguration =>
    chooseConfiguration(byRows, { m: 1024, n, k: 2048, batch: 1 }, targets.sm_90a);
  expect(chosen(3000)).toMatchObject({ consumers: 2, columns: 192, cluster: 2 });
  expect(chosen(3072)).toMatchObject({ consumers: 2, columns: 192, cluster: 1 });
  // 3008 is no multiple of a line's 64 elements, but of a sector's 16.
  expect(chosen(3008)).toMatchObject({ consumers: 2, columns: 192, cluster: 1 });
});

/** What the model gives a configuration of single blocks, in µs. */
function microseconds(
  [m, n, k]: readonly [number, number, number],
  [consumers, columns, stages]: readonly [1 | 2, 8 | 16 | 64 | 128, number],
  { swapAB = false }: { readonly swapAB?: boolean } = {},
): number {
  const configuration: PersistentConfiguration = {
    ...{ kernel: "persistent", consumers, columns, stages },
    ...{ schedule: "tiles", swapAB, cluster: 1 },
  };
  return 1e6 * (tiledModel(byRows, { m, n, k, batch: 1 }, targets.sm_90a)?.(configuration) ?? NaN);
}

test("rows across sectors take the longer the more blocks ask for the same, and rows across lines hardly", () => {
  const longer = (k: number, columns: 64 | 128, stages: number): number =>
    microseconds([64, 5376, k], [1, columns, stages]) -
    microseconds([64, 5376, 448], [1, columns, stages]);
  // On an H200 84 blocks took 1.08 µs longer with k = 440, and 0.08 with 432; 42 blocks 0.26.
  expect(longer(440, 64, 13)).toBeGreaterThan(0.35);
  expect(longer(432, 64, 13)).toBeLessThan(0.15);
  expect(longer(440, 128, 8)).toBeLessThan(0.6 * longer(440, 64, 13));
});

test("blocks that have no room beside those of the launch before wait, unless there are processors for both", () => {
  const seconds = (n: number, k: number, stages: number): number =>
    microseconds([4, n, k], [1, 8, stages], { swapAB: true });
  // 87 blocks took 11.1 µs on an H200, and 14.0 with 20 stages; 42 blocks 6.07 and 5.79.
  expect(seconds(5552, 3712, 20) / seconds(5552, 3712, 12)).toBeGreaterThan(1.05);
  expect(seconds(2688, 2048, 20)).toBeLessThanOrEqual(seconds(2688, 2048, 12));
});

test("steps come in waves of as many as there are slots", () => {
  const seconds = (stages: number): number =>
    microseconds([13, 2560, 1152], [1, 16, stages], { swapAB: true });
  // 18 steps took 3.81 µs on an H200 in three waves, with 8 slots; 3.61 and 3.42 in two, with 9 and 11; and 3.41 in one.
  expect(seconds(8)).toBeGreaterThan(1.02 * seconds(9));
  expect(seconds(9) - seconds(11)).toBeGreaterThanOrEqual(0);
  expect(seconds(9) - seconds(11)).toBeLessThan(0.2);
  expect(seconds(11)).toBeGreaterThanOrEqual(seconds(18));
});

test("tiles that reach beyond the last column take longer where many do at once, unless their windows end with it", () => {
  const seconds = (
    problem: typeof byRows,
    [m, n]: readonly [number, number],
    consumers: 1 | 2,
    columns: 160 | 192 | 224,
    cluster: 1 | 2 = 2,
  ): number =>
    tiledModel(
      problem,
      { m, n, k: 4096, batch: 1 },
      targets.sm_90a,
    )?.({
      ...{ kernel: "persistent", consumers, columns, schedule: "tiles" },
      stages: consumers === 1 && cluster === 1 ? 6 : 4,
      ...{ swapAB: false, cluster },
    }) ?? NaN;
  // Functions of users are given whole tiles. On an H200 these took 30.3, 86.7 and 26.8 µs; with half as many tiles 28.8 and 48.3.
  const whole = problemOf(
    "matmul",
    { a: bf16, b: bf16, epilogue: ({ sums }: { sums: Tile<"f32"> }) => sums.cast(bf16) },
    captureLocation(),
  );
  const [inside, beyond] = [
    seconds(whole, [2816, 672], 1, 224),
    seconds(whole, [2816, 480], 1, 224),
  ];
  expect(beyond / inside).toBeGreaterThan(1.8);
  expect(seconds(whole, [2816, 480], 2, 160)).toBeLessThan(beyond / 1.8);
  const ofFew = seconds(whole, [1408, 480], 1, 224) / seconds(whole, [1408, 672], 1, 224);
  expect(ofFew).toBeGreaterThan(1.1);
  expect(ofFew).toBeLessThan(0.7 * (beyond / inside));
  // Rows beyond the last one are few tiles' at once: 29.0 µs.
  expect(seconds(whole, [2752, 672], 1, 224)).toBeLessThanOrEqual(inside);
  // 46.6 µs whole, 32.9 with windows of 64 columns; 32.4 with three whole tiles across.
  const windows = seconds(byRows, [5632, 448], 2, 192, 1);
  expect(seconds(whole, [5632, 448], 2, 192, 1) / windows).toBeGreaterThan(1.15);
  expect(windows).toBeLessThanOrEqual(seconds(byRows, [5632, 576], 2, 192, 1));
  // A box that the array ends in is asked for as a whole: 19.7 µs without one, 25.3 with.
  const [none, one] = [
    seconds(byRows, [2816, 576], 1, 192, 1),
    seconds(byRows, [2816, 480], 1, 192, 1),
  ];
  expect(one / none).toBeGreaterThan(1.03);
});

test("tiles are split along k only where that saves more than handing sums over takes, and where some are", () => {
  const chosen = (m: number, n: number, k: number): MatmulConfiguration =>
    chooseConfiguration(byRows, { m, n, k, batch: 1 }, targets.sm_90a);
  // 128 tiles of 128 × 192 took 11.0 µs on an H200, and 14.7 with what is done for tiles that might be split.
  expect(chosen(448, 6144, 1024)).toMatchObject({
    ...{ consumers: 2, columns: 192, schedule: "tiles" },
  });
  expect(chosen(2176, 2048, 8192)).toMatchObject({ schedule: "stream-k" });
  // Two rounds of whole tiles of 128 × 256, of which none is left to be split.
  const whole = { m: 4224, n: 2048, k: 4096, batch: 1 };
  const split = candidateConfigurations(byRows, whole, targets.sm_90a).filter(
    (each) => each.kernel === "persistent" && each.schedule === "stream-k",
  );
  expect(split.length).toBeGreaterThan(0);
  expect(split).not.toContainEqual(expect.objectContaining({ consumers: 2, columns: 256 }));
});

test("tiles are as wide as fills the processors in one round", () => {
  const sizes = { m: 1536, n: 1536, k: 1536, batch: 1 };
  // 12 by 11 tiles for 132 processors, where 192 columns leave 36 of them idle.
  expect(chooseConfiguration(byColumns, sizes, targets.sm_90a)).toMatchObject({
    ...{ consumers: 2, columns: 144, schedule: "tiles" },
  });
});

test("lanes that write memory come in no pairs", () => {
  const pairs = (given: typeof byRows, sizes: ProductSizes, schedule: string): boolean =>
    candidateConfigurations(given, sizes, targets.sm_90a).some(
      (each) => each.kernel === "persistent" && each.cluster > 1 && each.schedule === schedule,
    );
  const sizes = { m: 4096, n: 4096, k: 4096, batch: 1 };
  const further = problemOf(
    "matmul",
    {
      ...{ a: bf16, b: bf16, outputs: { sum: tensor(f32, [dim("m"), dim("n")]) } },
      epilogue: (): unknown => undefined,
    },
    captureLocation(),
  );
  expect(pairs(byRows, sizes, "tiles")).toBe(true);
  expect(pairs(byRows, sizes, "stream-k")).toBe(false);
  expect(pairs(byRows, { ...sizes, n: 4095 }, "tiles")).toBe(false);
  expect(pairs(further, sizes, "tiles")).toBe(false);
});

test.each([
  [2, 160, false],
  [2, 192, false],
  [2, 256, false],
  [1, 16, true],
] as const)(
  "TMA writes all of a tile of %i consumers and %i columns, so that pairs of blocks need no flush",
  (consumers, columns, swapAB) => {
    const configuration: MatmulConfiguration = {
      ...{ kernel: "persistent", consumers, columns, stages: 4 },
      ...{ schedule: "tiles", swapAB, cluster: 2 },
    };
    const op = matmul({ a: bf16, b: bf16, configuration });
    for (const { kernel } of op.kernels({ m: 1000, n: 3000, k: 2000 })) {
      const text = printPtx(lower(kernel, targets.sm_90a).module);
      expect(text).not.toMatch(/st\.global|\.release\.cluster\.shared/);
    }
  },
);

test("f32 in parts is multiplied by pairs of blocks, which fetch less", () => {
  const sizes = { m: 4096, n: 4096, k: 4096, batch: 1 };
  for (const precision of ["bf16x3", "bf16x6", "bf16x9"] as const) {
    const problem = problemOf("matmul", { a: f32, b: f32, precision }, captureLocation());
    const chosen = chooseConfiguration(problem, sizes, targets.sm_90a);
    expect(chosen, precision).toMatchObject({ columns: 128, cluster: 2 });
  }
});
