/** Products against sums in float64, exactly: operands are small whole numbers, so that every sum is exact. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectWithin } from "../../../test/support/processor-time.ts";
import { productOf } from "../../../test/support/exact-product.ts";
import type { Matrix } from "../../../test/support/exact-product.ts";
import { openFake } from "../../../test/support/fake-driver/harness.ts";
import { dealtTo, notEmulated, takesAll, usually } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f64, f8e4m3fn, f8e5m2, i32, i8, u8 } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { place } from "../../lower/stages.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { matmul } from "./matmul.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import type { Accumulation, MatmulPrecision } from "./problem.ts";

const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];

interface Case {
  readonly name: string;
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly dtype?: DType;
  readonly dtypeB?: DType;
  readonly out?: DType;
  /** Which operands lie by columns. */
  readonly byColumns?: readonly ("a" | "b")[];
  /** Which operands have batches, and how many there are. */
  readonly batches?: { readonly count: number; readonly of: readonly ("a" | "b")[] };
  readonly precision?: MatmulPrecision;
  readonly accumulation?: Accumulation;
  readonly configuration?: MatmulConfiguration;
  /** Which kernel is expected to be chosen. */
  readonly kernel?: "persistent" | "plain";
}

const small: MatmulConfiguration = {
  kernel: "persistent",
  consumers: 1,
  columns: 64,
  stages: 3,
  schedule: "tiles",
  swapAB: false,
  cluster: 1,
};
const wide: MatmulConfiguration = {
  kernel: "persistent",
  consumers: 2,
  columns: 128,
  stages: 2,
  schedule: "tiles",
  swapAB: false,
  cluster: 1,
};

const split: MatmulConfiguration = { ...small, schedule: "stream-k" };
const pair: MatmulConfiguration = { ...small, cluster: 2 };

const cases: readonly Case[] = [
  { name: "tails of every size", sizes: [70, 136, 72], kernel: "persistent" },
  { name: "one element", sizes: [1, 1, 1], kernel: "plain" },
  { name: "one row", sizes: [1, 64, 128], kernel: "persistent" },
  { name: "odd sizes", sizes: [5, 67, 33] },
  {
    name: "odd sizes, plain",
    sizes: [5, 67, 33],
    configuration: { kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 1 },
  },
  { name: "nothing to sum", sizes: [4, 8, 0] },
  { name: "no rows", sizes: [0, 8, 8] },
  { name: "b by columns", sizes: [65, 72, 80], byColumns: ["b"], kernel: "persistent" },
  { name: "a by columns", sizes: [72, 65, 40], byColumns: ["a"], configuration: small },
  { name: "rows that are not aligned", sizes: [30, 35, 75], configuration: small },
  {
    name: "columns that are not aligned",
    sizes: [19, 21, 75],
    byColumns: ["a", "b"],
    configuration: small,
  },
  {
    name: "batches that are not aligned",
    sizes: [19, 21, 75],
    batches: { count: 2, of: ["a", "b"] },
    configuration: split,
  },
  {
    name: "bytes by rows, which are transposed",
    sizes: [17, 35, 150],
    dtype: i8,
    dtypeB: u8,
    out: i32,
    configuration: small,
  },
  {
    name: "FP8, promoted",
    sizes: [17, 35, 300],
    dtype: f8e4m3fn,
    dtypeB: f8e4m3fn,
    out: f32,
    accumulation: "promoted",
    configuration: { ...wide, stages: 3 },
  },
  {
    name: "FP8, promoted, in pairs",
    sizes: [70, 200, 150],
    dtype: f8e4m3fn,
    dtypeB: f8e4m3fn,
    byColumns: ["b"],
    out: f32,
    accumulation: "promoted",
    configuration: { ...small, columns: 192, cluster: 2 },
  },
  {
    name: "FP8, promoted, split along k",
    sizes: [20, 200, 520],
    dtype: f8e4m3fn,
    dtypeB: f8e4m3fn,
    out: f32,
    accumulation: "promoted",
    configuration: { ...split, columns: 192 },
  },
  ...(["tf32", "tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const).map((precision) => ({
    name: `f32 as ${precision}`,
    sizes: [20, 24, 150] as const,
    ...{ dtype: f32, precision },
    // Two parts have stages for two steps, three have not.
    configuration: { ...small, columns: 64 as const, stages: 4 },
  })),
  ...(
    [
      ["rows of b", [20, 136, 72], [], { ...wide, columns: 32, swapAB: true }],
      ["rows of a", [72, 40, 38], ["a", "b"], { ...small, columns: 64 }],
      ["odd and split, both", [33, 69, 201], ["a"], { ...split, columns: 32, swapAB: true }],
    ] as const
  ).map(([name, sizes, byColumns, configuration]) => ({
    ...{ name: `f32 as tf32, ${name} across k`, sizes, byColumns, configuration },
    ...{ dtype: f32, precision: "tf32" as const },
  })),
  { name: "both by columns", sizes: [72, 65, 40], byColumns: ["a", "b"], kernel: "persistent" },
  { name: "odd and by columns", sizes: [7, 9, 11], byColumns: ["a", "b"], kernel: "plain" },
  { name: "two consumers", sizes: [130, 136, 136], configuration: wide },
  { name: "split along k", sizes: [70, 72, 200], configuration: split },
  { name: "a pair of blocks, b by rows", sizes: [70, 136, 136], configuration: pair },
  {
    name: "a pair of blocks, b by columns",
    sizes: [200, 72, 136],
    byColumns: ["b"],
    configuration: { ...wide, cluster: 2 },
  },
  {
    name: "a pair of blocks for few rows",
    sizes: [20, 136, 136],
    configuration: { ...pair, columns: 16, swapAB: true },
  },
  {
    name: "pairs of blocks, split along k",
    sizes: [100, 40, 328],
    configuration: { ...split, cluster: 2 },
  },
  { name: "split, with less steps than processors", sizes: [8, 8, 64], configuration: split },
  {
    name: "plain, split along k",
    sizes: [9, 10, 300],
    configuration: { kernel: "plain", rows: 64, columns: 32, depth: 16, splitK: 3 },
  },
  {
    name: "A and B swapped, a by columns",
    sizes: [16, 136, 200],
    byColumns: ["a"],
    configuration: { ...split, columns: 16, swapAB: true },
  },
  {
    name: "A and B swapped, b by columns",
    sizes: [5, 136, 72],
    byColumns: ["b"],
    configuration: { ...wide, columns: 8, swapAB: true },
  },
  {
    name: "A and B swapped, both by rows",
    sizes: [33, 72, 72],
    configuration: { ...small, columns: 32, swapAB: true },
  },
  { name: "batches", sizes: [20, 24, 40], batches: { count: 3, of: ["a", "b"] } },
  { name: "batches of a alone, odd", sizes: [5, 7, 9], batches: { count: 2, of: ["a"] } },
  {
    name: "batches of b alone, split",
    sizes: [8, 8, 200],
    batches: { count: 2, of: ["b"] },
    configuration: split,
  },
  { name: "f16", sizes: [33, 40, 48], dtype: f16 },
  { name: "f32, exactly", sizes: [17, 19, 23], dtype: f32, kernel: "plain" },
  { name: "f64", sizes: [17, 19, 23], dtype: f64, kernel: "plain" },
  ...([[], ["a"], ["b"], ["a", "b"]] as const).map((byColumns) => ({
    name: `f64 on tensor cores, ${byColumns.join(" and ") || "nothing"} by columns`,
    sizes: [70, 72, 24] as const,
    dtype: f64,
    byColumns,
    configuration: { ...small, columns: 64 as const },
  })),
  { name: "f64, one of k", sizes: [3, 5, 1], dtype: f64, configuration: wide },
  {
    name: "f64, batches and odd rows",
    sizes: [19, 67, 35],
    dtype: f64,
    batches: { count: 2, of: ["a", "b"] },
    configuration: { ...wide, columns: 64 },
  },
  {
    name: "f64, split along k",
    sizes: [70, 40, 100],
    dtype: f64,
    configuration: { ...split, columns: 32 },
  },
  {
    name: "f64, A and B swapped",
    sizes: [20, 136, 34],
    dtype: f64,
    configuration: { ...wide, columns: 32, swapAB: true },
  },
  {
    name: "FP8 of two formats",
    sizes: [17, 32, 160],
    dtype: f8e4m3fn,
    dtypeB: f8e5m2,
    out: f32,
    byColumns: ["b"],
  },
  { name: "bytes", sizes: [17, 32, 48], dtype: i8, dtypeB: u8, out: i32, byColumns: ["b"] },
  { name: "bytes by rows", sizes: [9, 12, 20], dtype: i8, dtypeB: i8, out: i32, kernel: "plain" },
];

/** Small whole numbers; without a sign for formats that have none. */
function numbers<N extends DTypeName>(dtype: DType<N>, shape: readonly number[], seed: number) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const values: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const value = ((index * 7 + seed * 3 + (index >> 4)) % 5) - 2;
    values.push(dtype.name === "u8" ? Math.abs(value) : value);
  }
  return { array: fromNumbers(dtype, shape, values), values };
}

/** An operand of a case: how it lies, and its numbers. */
function operandOf(one: Case, name: "a" | "b") {
  const { dtype = bf16, dtypeB = dtype, byColumns = [], batches } = one;
  const [rows, columns, depth] = one.sizes;
  const [height, width] = name === "a" ? [rows, depth] : [depth, columns];
  const isByColumns = byColumns.includes(name);
  const own = batches?.of.includes(name) ?? false;
  const shape = [
    ...(own ? [batches?.count ?? 1] : []),
    ...(isByColumns ? [width, height] : [height, width]),
  ];
  const { array: given, values } = numbers(
    name === "a" ? dtype : dtypeB,
    shape,
    name === "a" ? 1 : 2,
  );
  const [down, along] = name === "a" ? [m, k] : [k, n];
  const spec = tensor(
    given.dtype,
    own ? [batch, down, along] : [down, along],
    isByColumns ? { strides: [1, down] } : {},
  );
  const matrix = (layer: number): Matrix => ({
    values: values.slice(own ? layer * height * width : 0),
    down: isByColumns ? 1 : width,
    along: isByColumns ? height : 1,
  });
  return { spec, given, matrix };
}

async function check(device: Device, one: Case): Promise<void> {
  const { dtype = bf16, configuration } = one;
  const [rows, columns, depth] = one.sizes;
  const [a, b] = [operandOf(one, "a"), operandOf(one, "b")];
  const op = matmul({
    a: a.spec,
    b: b.spec,
    out: one.out ?? (dtype.bits === 16 ? f32 : dtype),
    ...(dtype === f32 && { precision: one.precision ?? ("ieee" as const) }),
    ...(dtype === f8e4m3fn && { accumulation: one.accumulation ?? ("fast" as const) }),
    ...(configuration && { configuration }),
  });
  const count = one.batches?.count ?? 1;
  const sizes = { m: rows, n: columns, k: depth, ...(one.batches && { batch: count }) };
  if (one.kernel !== undefined) expect(op.plan(sizes).configuration.kernel).toBe(one.kernel);
  const { out } = await device.run(op, { a: a.given, b: b.given }, { dimensions: sizes });
  const expected = new Float64Array(count * rows * columns);
  for (let layer = 0; layer < count; layer += 1)
    expected.set(productOf(a.matrix(layer), b.matrix(layer), one.sizes), layer * rows * columns);
  expect(toNumbers(out)).toEqual(expected);
}

const emulated = usually(
  [
    ...["both by columns", "split along k", "a pair of blocks, b by rows", "odd sizes"],
    ...["pairs of blocks, split along k", "FP8 of two formats", "rows that are not aligned"],
    ...["f32 as bf16x3", "f64 on tensor cores, nothing by columns", "f64, split along k"],
    ...["f64, A and B swapped", "FP8, promoted, in pairs"],
    ...cases.flatMap(({ name }) => (name.endsWith("across k") ? [name] : [])),
  ],
  ["f64 on tensor cores, a and b by columns", "f64, batches and odd rows", "f32 as tf32"],
);

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(notEmulated(cases, emulated))("$name", (one) => check(device, one));

  test("an epilogue sees its part of rows, columns and matrices", async () => {
    const configurations = [small, split, pair, wide, { ...small, swapAB: true }, undefined];
    for (const configuration of configurations) {
      const op = matmul({
        a: bf16,
        b: bf16,
        out: f32,
        inputs: { bias: tensor(f32, [n]), scale: tensor(f32, [m]), residual: tensor(bf16, [m, n]) },
        epilogue: ({ sums, bias, scale, residual }) =>
          sums.add(bias).maximum(0).mul(scale).add(residual.cast(f32)),
        ...(configuration && { configuration }),
      });
      const [rows, columns, depth] = [70, 72, 136];
      const a = numbers(bf16, [rows, depth], 1);
      const b = numbers(bf16, [depth, columns], 2);
      const bias = numbers(f32, [columns], 3);
      const scale = numbers(f32, [rows], 4);
      const residual = numbers(bf16, [rows, columns], 5);
      const { out } = await device.run(op, {
        a: a.array,
        b: b.array,
        bias: bias.array,
        scale: scale.array,
        residual: residual.array,
      });
      const expected = Float64Array.from({ length: rows * columns }, (_, index) => {
        const [i, j] = [Math.floor(index / columns), index % columns];
        let sum = 0;
        for (let l = 0; l < depth; l += 1)
          sum += (a.values[i * depth + l] ?? NaN) * (b.values[l * columns + j] ?? NaN);
        const kept = Math.max(0, sum + (bias.values[j] ?? NaN));
        return kept * (scale.values[i] ?? NaN) + (residual.values[index] ?? NaN);
      });
      expect(toNumbers(out).map((value) => value + 0)).toEqual(expected.map((value) => value + 0));
    }
  });
});

test.each(["a", "b"] as const)("a batch of 1 of %s is for all of the other's", async (one) => {
  const [rows, columns, depth, count] = [5, 16, 8, 3];
  const batchOf = (name: "a" | "b") => (name === one ? 1 : count);
  const op = matmul({
    a: tensor(bf16, [one === "a" ? 1 : batch, m, k]),
    b: tensor(bf16, [one === "b" ? 1 : batch, k, n]),
  });
  const a = numbers(bf16, [batchOf("a"), rows, depth], 1);
  const b = numbers(bf16, [batchOf("b"), depth, columns], 2);
  const device = await open("simulator");
  const { out } = await device.run(op, { a: a.array, b: b.array });
  device.dispose();
  const expected = Array.from({ length: count * rows * columns }, (_, index) => {
    const [layer, within] = [Math.floor(index / (rows * columns)), index % (rows * columns)];
    const [i, j] = [Math.floor(within / columns), within % columns];
    const ofA = (one === "a" ? 0 : layer) * rows * depth + i * depth;
    const ofB = (one === "b" ? 0 : layer) * depth * columns + j;
    let sum = 0;
    for (let l = 0; l < depth; l += 1)
      sum += (a.values[ofA + l] ?? NaN) * (b.values[ofB + l * columns] ?? NaN);
    return sum;
  });
  expect([...toNumbers(out)]).toEqual(expected.map((value) => value + 0));
});

describe("blocks with several tiles each", () => {
  const tiles = [
    { name: "of one piece", configuration: small },
    { name: "of two pieces", configuration: wide },
    { name: "of many steps", configuration: small, depth: 2056 },
    { name: "of three pieces", configuration: { ...small, columns: 192 } },
    { name: "the last of which are split", configuration: split },
    { name: "the last of which are halved", configuration: { ...split, columns: 256 }, depth: 392 },
    { name: "in pairs", configuration: { ...small, columns: 128, cluster: 2 } },
    { name: "stored by lanes", configuration: { ...small, columns: 16, swapAB: true } },
    { name: "of many steps, wide", configuration: wide, depth: 2056 },
    { name: "finished by two threads", configuration: wide, shift: 3 },
    { name: "finished by two threads, of one step each", configuration: wide, shift: 3, depth: 40 },
    {
      name: "finished by two threads, the last of which are split",
      configuration: { ...wide, schedule: "stream-k" },
      shift: 3,
    },
  ] as const satisfies readonly (Given & { name: string; configuration: MatmulConfiguration })[];
  // What is wide does with many steps and with an epilogue what others do, for longer.
  const long = ["of many steps, wide", "finished by two threads"];
  const usual = tiles.filter(({ name }) => takesAll || !long.includes(name));
  const places = ["simulator", "emulator"] as const;
  type Given = { shift?: number; depth?: number };

  test.each(places.flatMap((place) => dealtTo(place, usual).map((one) => ({ ...one, place }))))(
    "$name, on the $place",
    async ({ configuration, place, ...given }) => {
      const { columns, swapAB, cluster, consumers, schedule } = configuration;
      const { shift = 0, depth: deep = schedule === "stream-k" ? 200 : 72 } = given as Given;
      // Five tiles, the last of them cut, for two blocks or pairs.
      const [height, width] = [64 * consumers * cluster - 3, 5 * columns - 8];
      const [rows, across, depth] = swapAB ? [16, 5 * 64 - 8, deep] : [height, width, deep];
      const op = matmul({
        ...{ a: bf16, b: bf16, configuration },
        ...(shift !== 0 && { epilogue: ({ sums }) => sums.add(shift).cast(bf16) }),
      });
      const few = { ...targets.sm_90a, processors: 2 * cluster };
      const [launched] = op.kernels({ m: rows, n: across, k: depth }, few);
      const a = numbers(bf16, [rows, depth], 1);
      const b = numbers(bf16, [depth, across], 2);
      const device = await open(place);
      const dimensions = { m: rows, n: across, k: depth, workers: 2 };
      if (launched === undefined) throw new Error("a product has a launch");
      const { out } = await device.run(launched, { a: a.array, b: b.array }, { dimensions });
      device.dispose();
      if (out === undefined) throw new Error("a product has a result");
      const expected = productOf(
        { values: a.values, down: depth, along: 1 },
        { values: b.values, down: across, along: 1 },
        [rows, across, depth],
      ).map((sum) => sum + shift);
      expect(toNumbers(out)).toEqual(toNumbers(fromNumbers(bf16, [rows, across], expected)));
    },
  );
});

describe("on the emulator", () => {
  test.each(cases.filter(({ name }) => emulated.includes(name)))("$name", async (one) => {
    const device = await open("emulator");
    await check(device, one);
    device.dispose();
  });
});

describe("plans", () => {
  test("sums of f64 that blocks hand to each other leave room for what they exchange", () => {
    const columns = tensor(f64, [k, n], { strides: [1, k] });
    const schedules: unknown[] = [];
    for (const [b, rows, width, depth] of [
      [f64, 20, 8192, 4096],
      [columns, 1000, 1000, 1000],
      [columns, 4096, 32, 4096],
    ] as const) {
      const op = matmul({ a: f64, b });
      const sizes = { m: rows, n: width, k: depth };
      schedules.push(op.plan(sizes).configuration);
      for (const { kernel } of op.kernels(sizes)) place(kernel, targets.sm_90a);
    }
    expect(schedules).toContainEqual(expect.objectContaining({ schedule: "stream-k" }));
  });

  const op = matmul({ a: bf16, b: bf16 });
  const sizes = [1, 16, 64, 1000, 4096, 16384].flatMap((rows) =>
    [512, 4096, 28672].flatMap((columns) =>
      [64, 2048, 28672].map((depth) => [rows, columns, depth] as const),
    ),
  );

  test("fit on the GPU, and are made in a few milliseconds", () => {
    for (const [rows, columns, depth] of sizes) {
      const { configuration, source } = op.plan({ m: rows, n: columns, k: depth });
      expect(source).toBe("heuristic");
      expect(configuration.kernel).toBe("persistent");
    }
    // One takes 1.2 to 2.4 ms on the machine of an H200; 10 are allowed.
    expectWithin(100 * 10, () => {
      for (let rows = 1; rows <= 100; rows += 1) op.plan({ m: rows, n: 4096, k: 4096 });
    });
  });

  test("large products take wide tiles, few rows take one consumer, a thin last round is split, few tiles have parts", () => {
    const configurationOf = (rows: number, columns: number, depth: number) =>
      op.plan({ m: rows, n: columns, k: depth }).configuration;
    expect(configurationOf(4096, 4096, 4096)).toMatchObject({ consumers: 2, columns: 256 });
    expect(configurationOf(16, 8192, 28672)).toMatchObject({ consumers: 1 });
    expect(configurationOf(1664, 2816, 16384)).toMatchObject({ schedule: "stream-k" });
    expect(configurationOf(128, 128, 65536)).toMatchObject({ schedule: "split-k" });
  });

  test("say why a slow kernel is used", () => {
    expect(op.plan({ m: 8, n: 8, k: 1001 }).notes.join()).toMatch(/k = 1001 .* pad it to 1008/);
    expect(op.plan({ m: 8, n: 8, k: 8 }, "sm_80").notes.join()).toMatch(/sm_80 has no wgmma/);
    expect(op.plan({ m: 8, n: 8, k: 8 }).notes).toEqual([]);
  });

  test("count what is computed, for any number of blocks", () => {
    // Four tiles are cut into four parts each, so that three of them are handed over.
    const handed = 4 * 3;
    for (const schedule of ["tiles", "stream-k"] as const) {
      const pinned = matmul({ a: bf16, b: bf16, configuration: { ...wide, schedule } });
      const { flops, products } = pinned.plan({ m: 256, n: 256, k: 1024 }).cost();
      expect(products.half).toBe(2 * 256 * 256 * 1024);
      expect(flops - products.half).toBe(schedule === "tiles" ? 0 : handed * 128 * 128);
    }
  });

  test("are bound and recorded as one piece", () => {
    const { device } = openFake();
    const arrays = {
      a: device.allocate(bf16, [64, 64]),
      b: device.allocate(bf16, [64, 64]),
      out: device.allocate(bf16, [64, 64]),
    };
    expect(() => device.bind(op, { ...arrays, out: arrays.a })).toThrow("TW4014");
    for (const each of Object.values(arrays)) each.dispose();
    device.dispose();
  });
});

test("mistakes are reported", () => {
  const codeOf = (make: () => unknown): string => {
    try {
      make();
    } catch (error) {
      if (error instanceof TilewrightError) return error.code;
      throw error;
    }
    return "nothing was thrown";
  };
  const fits = { m: 64, n: 64, k: 64 };
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => matmul({ a: bf16, b: f16 })],
    ["TW9902", () => matmul({ a: bf16, b: 5 as never })],
    ["TW9902", () => matmul({ a: tensor(bf16, [m, k]), b: tensor(bf16, [n, k]) })],
    ["TW9902", () => matmul({ a: tensor(bf16, [2, m, k]), b: tensor(bf16, [3, k, n]) })],
    ["TW9902", () => matmul({ a: tensor(bf16, [m]), b: bf16 })],
    ["TW9902", () => matmul({ a: tensor(bf16, [m, k], { strides: [2, 1] }), b: bf16 })],
    ["TW9902", () => matmul({ a: bf16, b: bf16, inputs: { bias: tensor(f32, [k]) } })],
    ["TW9903", () => matmul({ a: f32, b: f32 })],
    ["TW9903", () => matmul({ a: bf16, b: bf16, precision: "ieee" })],
    ["TW9903", () => matmul({ a: f8e4m3fn, b: f8e4m3fn })],
    [
      "TW9904",
      () => matmul({ a: bf16, b: bf16, configuration: { ...wide, stages: 40 } }).plan(fits),
    ],
    [
      "TW9904",
      () =>
        matmul({
          a: bf16,
          b: bf16,
          configuration: { kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 0 },
        }).plan(fits),
    ],
    [
      "TW9904",
      () =>
        matmul({ a: bf16, b: bf16, configuration: { ...wide, schedule: "old" as never } }).plan(
          fits,
        ),
    ],
    [
      "TW9904",
      () => matmul({ a: bf16, b: bf16, configuration: { ...pair, columns: 8 } }).plan(fits),
    ],
    ["TW9904", () => matmul({ a: bf16, b: bf16, configuration: {} as never }).plan(fits)],
    [
      "TW9904",
      () => matmul({ a: f64, b: f64, configuration: { ...wide, columns: 16 } }).plan(fits),
    ],
    [
      "TW9904",
      () => matmul({ a: f64, b: f64, configuration: { ...wide, columns: 256 } }).plan(fits),
    ],
    [
      "TW9904",
      () =>
        matmul({
          a: f8e4m3fn,
          b: f8e4m3fn,
          accumulation: "promoted",
          configuration: { ...wide, columns: 256 },
        }).plan(fits),
    ],
    [
      "TW9905",
      () => matmul({ a: bf16, b: bf16, epilogue: ({ sums }) => sums as never }).kernels(fits),
    ],
    ["TW9905", () => matmul({ a: bf16, b: bf16, epilogue: () => 5 as never }).kernels(fits)],
    ["TW1033", () => matmul({ a: bf16, b: bf16, transpose: true } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make)).toBe(code);
});
