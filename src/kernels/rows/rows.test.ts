/** Operations on rows against float64, for rows of every form: several a block, one, shared by a cluster, looped. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f64, i32, i8 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { logSoftmax, softmax } from "./softmax.ts";
import { logSoftmaxBackward, softmaxBackward } from "./softmax-backward.ts";

const [b, m, n] = [dim("b"), dim("m"), dim("n")];

/** Rows of a [rows, columns] matrix. */
const rowsOf = (values: ArrayLike<number>, columns: number): readonly (readonly number[])[] =>
  Array.from({ length: values.length / Math.max(1, columns) }, (_, row) =>
    Array.from({ length: columns }, (__, column) => values[row * columns + column] ?? NaN),
  );

function softmaxOf(row: readonly number[]): readonly number[] {
  const high = row.reduce((one, other) => Math.max(one, other), -Infinity);
  const powers = row.map((value) => Math.exp(value - high));
  const sum = powers.reduce((one, other) => one + other, 0);
  return powers.map((power) => power / sum);
}

interface Case {
  readonly name: string;
  readonly sizes: readonly [rows: number, columns: number];
  readonly dtype?: DType<FloatName>;
  /** What the chosen form is expected to have. */
  readonly form?: {
    readonly rows?: number;
    readonly blocks?: number;
    readonly pieces?: number;
  };
}

const cases: readonly Case[] = [
  { name: "one element", sizes: [1, 1] },
  { name: "several rows a block", sizes: [9, 40], dtype: bf16 },
  { name: "many short rows", sizes: [3000, 4], form: { blocks: 1, pieces: 1 } },
  { name: "odd rows", sizes: [5, 781], dtype: f16 },
  {
    name: "a row a block",
    sizes: [20, 600],
    form: { rows: 1, blocks: 1, pieces: 1 },
  },
  {
    name: "few rows, shared by a cluster",
    sizes: [2, 3000],
    form: { blocks: 4, pieces: 1 },
  },
  {
    name: "whole pieces of a cluster",
    sizes: [1, 4096],
    dtype: bf16,
    form: { blocks: 2 },
  },
  { name: "f64", sizes: [3, 300], dtype: f64 },
  { name: "no rows", sizes: [0, 8] },
  { name: "no columns", sizes: [8, 0] },
];

/** Rows that are too long to be held are too long for a test: on a target without clusters shorter ones are looped. */
const looped: readonly Case[] = [{ name: "looped", sizes: [1, 17000], dtype: bf16 }];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });
  const emulated = ["odd rows", "few rows, shared by a cluster", "several rows a block"];
  const chosen = kind === "simulator" ? cases : cases.filter(({ name }) => emulated.includes(name));

  test.each(chosen)("softmax, its logarithm and gradients: $name", async (one) => {
    const { dtype = f32, form } = one;
    const [rows, columns] = one.sizes;
    const x = randomNumbers(dtype, [rows, columns], 1, 6);
    const op = softmax({ x: dtype });
    if (form !== undefined)
      expect(op.plan({ m: rows, n: columns }).configuration).toMatchObject(form);
    const { out } = await device.run(op, { x: x.array });
    const shares = rowsOf(x.values, columns).flatMap(softmaxOf);
    // The difference to the greatest element is rounded, and an exponential makes that its relative error.
    expectClose(out, shares, { relative: dtype.bits > 16 ? 16 : 2 });
    const { out: logs } = await device.run(logSoftmax({ x: dtype }), {
      x: x.array,
    });
    expectClose(logs, shares.map(Math.log), { relative: 2, absolute: 1e-6 });

    const dOut = randomNumbers(dtype, [rows, columns], 2, 1);
    const { dx } = await device.run(softmaxBackward({ out: dtype }), {
      out,
      dOut: dOut.array,
    });
    const given = rowsOf(toNumbers(out), columns);
    const gradients = rowsOf(dOut.values, columns);
    const dot = (left: readonly number[] = [], right: readonly number[] = []): number =>
      left.reduce((sum, value, index) => sum + value * (right[index] ?? NaN), 0);
    expectClose(
      dx,
      given.flatMap((row, i) => {
        const sum = dot(row, gradients[i]);
        return row.map((value, j) => value * ((gradients[i]?.[j] ?? NaN) - sum));
      }),
      { relative: 4, absolute: 1e-6 },
    );
    const { dx: dLogs } = await device.run(logSoftmaxBackward({ out: dtype }), {
      out: logs,
      dOut: dOut.array,
    });
    const logRows = rowsOf(toNumbers(logs), columns);
    expectClose(
      dLogs,
      logRows.flatMap((row, i) => {
        const sum = (gradients[i] ?? []).reduce((total, value) => total + value, 0);
        return row.map((value, j) => (gradients[i]?.[j] ?? NaN) - Math.exp(value) * sum);
      }),
      { relative: 4, absolute: 1e-5 },
    );
  });

  test.each(chosen)("norms: $name", async (one) => {
    const { dtype = f32 } = one;
    const [rows, columns] = one.sizes;
    const x = randomNumbers(dtype, [rows, columns], 1, 2, 3);
    const residual = randomNumbers(dtype, [rows, columns], 2, 2);
    const [scale, bias] = [
      randomNumbers(f32, [columns], 3, 1),
      randomNumbers(f32, [columns], 4, 1),
    ];
    const given = { x: x.array, residual: residual.array, scale: scale.array };
    const layer = layerNorm({
      x: dtype,
      residual: dtype,
      scale: f32,
      bias: f32,
      statistics: true,
      epsilon: 1e-3,
    });
    const results = await device.run(layer, { ...given, bias: bias.array });
    const sums = x.values.map((value, index) => value + (residual.values[index] ?? NaN));
    expectClose(results.sum, sums, { relative: 1 });
    const held = rowsOf(toNumbers(results.sum), columns);
    const means = Array.from({ length: rows }, (_, i) =>
      (held[i] ?? []).reduce((sum, value) => sum + value / columns, 0),
    );
    const deviations = held.map((row, i) => {
      const total = row.reduce((sum, value) => sum + (value - (means[i] ?? NaN)) ** 2, 0);
      return 1 / Math.sqrt(total / columns + 1e-3);
    });
    if (columns > 0) {
      expectClose(results.mean, means, { relative: 4, absolute: 1e-6 });
      expectClose(results.inverseDeviation, deviations, { relative: 8 });
    } else {
      expect([...toNumbers(results.mean)]).toEqual(means.map(() => 0));
      expect([...toNumbers(results.inverseDeviation)]).toEqual(means.map(() => NaN));
    }
    expectClose(
      results.out,
      held.flatMap((row, i) =>
        row.map(
          (value, j) =>
            (value - (means[i] ?? NaN)) * (deviations[i] ?? NaN) * (scale.values[j] ?? NaN) +
            (bias.values[j] ?? NaN),
        ),
      ),
      { relative: 4, absolute: 4e-6 },
    );
    const { out } = await device.run(rmsNorm({ x: dtype, scale: f32 }), {
      x: x.array,
      scale: scale.array,
    });
    expectClose(
      out,
      rowsOf(x.values, columns).flatMap((row) => {
        const mean = row.reduce((sum, value) => sum + value ** 2, 0) / columns;
        return row.map((value, j) => (value / Math.sqrt(mean + 1e-5)) * (scale.values[j] ?? NaN));
      }),
      { relative: 4 },
    );
  });

  test.each(chosen)("cross-entropy with its gradient: $name", async (one) => {
    const { dtype = f32 } = one;
    const [rows, columns] = one.sizes;
    if (columns === 0) return;
    const x = randomNumbers(dtype, [rows, columns], 1, 6);
    const chosenLabels = Array.from({ length: rows }, (_, row) =>
      row % 4 === 3 ? -100 : (row * 7 + 3) % columns,
    );
    const labels = fromNumbers(i32, [rows], chosenLabels);
    const dLoss = randomNumbers(f32, [rows], 3, 1);
    const op = crossEntropy({
      logits: dtype,
      gradient: true,
      dLoss: f32,
      ignored: -100,
    });
    const { loss, gradient } = await device.run(op, {
      logits: x.array,
      labels,
      dLoss: dLoss.array,
    });
    const shares = rowsOf(x.values, columns).map(softmaxOf);
    const isCounted = (row: number): boolean => chosenLabels[row] !== -100;
    expectClose(
      loss,
      shares.map((row, i) => (isCounted(i) ? -Math.log(row[chosenLabels[i] ?? 0] ?? NaN) : 0)),
      { relative: 8, absolute: 4e-6 },
    );
    expectClose(
      gradient,
      shares.flatMap((row, i) =>
        row.map((value, j) => {
          const target = j === chosenLabels[i] ? 1 : 0;
          return isCounted(i) ? (value - target) * (dLoss.values[i] ?? NaN) : 0;
        }),
      ),
      { relative: 4, absolute: 1e-6 },
    );
    const alone = await device.run(crossEntropy({ logits: dtype, ignored: -100 }), {
      logits: x.array,
      labels,
    });
    expect(toNumbers(alone.loss)).toEqual(toNumbers(loss));
  });

  test("rows along any axis, and of arrays with strides", async () => {
    for (const [axis, sizes] of [
      [0, [6, 5, 9]],
      [1, [3, 150, 70]],
      [-2, [2, 7, 1]],
    ] as const) {
      if (kind === "emulator" && axis === 1) continue;
      const [batches, rows, columns] = sizes;
      const x = randomNumbers(f32, sizes, 1, 4);
      const { out } = await device.run(softmax({ x: tensor(f32, [b, m, n]), axis }), {
        x: x.array,
      });
      const found = toNumbers(out);
      const along = axis === 0 ? batches : rows;
      const step = axis === 0 ? rows * columns : columns;
      for (const start of [0, 3 % columns, columns - 1]) {
        const places = Array.from({ length: along }, (_, index) => start + index * step);
        const expected = softmaxOf(places.map((place) => x.values[place] ?? NaN));
        for (const [index, place] of places.entries())
          expect(found[place]).toBeCloseTo(expected[index] ?? NaN, 6);
      }
    }
    const turned = randomNumbers(f32, [40, 12], 2, 4);
    const { out } = await device.run(
      softmax({ x: tensor(f32, [m, n], { strides: [1, m] }) }),
      { x: turned.array },
      { dimensions: { m: 12, n: 40 } },
    );
    const first = softmaxOf(Array.from({ length: 40 }, (_, j) => turned.values[j * 12] ?? NaN));
    expectClose(fromNumbers(f32, [40], toNumbers(out).slice(0, 40)), first, { relative: 16 });
  });

  test("infinite elements", async () => {
    const low = -Infinity;
    const x = fromNumbers(f32, [3, 4], [low, 1, low, 2, low, low, low, 3, low, low, low, low]);
    const { out } = await device.run(softmax({ x: f32 }), { x });
    const found = [...toNumbers(out)];
    expect(found.slice(4, 8)).toEqual([0, 0, 0, 1]);
    expect(found[0]).toBe(0);
    expect(found.slice(8).every(Number.isNaN)).toBe(true);
    const wide = Array.from({ length: 3000 }, (_, index) => (index === 2999 ? 5 : low));
    const shared = await device.run(softmax({ x: f32 }), {
      x: fromNumbers(f32, [1, 3000], wide),
    });
    expect(toNumbers(shared.out)[2999]).toBe(1);
    expect(toNumbers(shared.out)[0]).toBe(0);
  });

  test.each([bf16, f16])("elements of 16 bits of any magnitude: $name", async (dtype) => {
    const most = dtype === bf16 ? 3.3e38 : 65_504;
    const sizes = [1, 99, 3000, 30_000, 65_280, 65_536, 65_600, 1e6, 1e10, 1e30, 2.5e38, most];
    const highs = sizes.filter((each) => each <= most).flatMap((each) => [each, -each]);
    // The greatest element thrice, what is just beneath it in this format, and what is a little or much beneath.
    const lower = [0, 0, 0, 2 ** -8, 2 ** -7, 2 ** -6, 1, 5];
    const given = highs.flatMap((high) =>
      lower.map((less) => (less < 1 ? high - less * Math.abs(high) : Math.max(high - less, -most))),
    );
    const x = fromNumbers(dtype, [highs.length, lower.length], given);
    const rows = rowsOf(toNumbers(x), lower.length);
    const { out } = await device.run(softmax({ x: dtype }), { x });
    expectClose(out, rows.flatMap(softmaxOf), { relative: 0.51, absolute: 1e-30 });
    const labels = fromNumbers(i32, [highs.length], new Array<number>(highs.length).fill(0));
    const { loss } = await device.run(crossEntropy({ logits: dtype }), { logits: x, labels });
    // The label is the greatest element, which leaves the logarithm of the sum alone.
    const losses = rows.map((row) => -Math.log(softmaxOf(row)[0] ?? NaN));
    const off = Array.from(toNumbers(loss), (found, row) => found - (losses[row] ?? NaN));
    rows.forEach((row, index) => {
      expect(Math.abs(off[index] ?? NaN)).toBeLessThan(2 ** -20 + 2 ** -23 * Math.abs(row[0] ?? 0));
    });
  });
});

test.each(looped)("rows that no block holds are gone through twice: $name", async ({ sizes }) => {
  // A single processor, with which no other shares a row.
  const target = { ...targets.sm_80, processors: 1 };
  const device = await open("simulator", { target });
  const [rows, columns] = sizes;
  const x = randomNumbers(bf16, [rows, columns], 1, 2, 1);
  const op = softmax({ x: bf16, out: f32 });
  expect(op.plan({ m: rows, n: columns }, target).configuration.pieces).toBeGreaterThan(1);
  const { out } = await device.run(op, { x: x.array });
  expectClose(out, rowsOf(x.values, columns).flatMap(softmaxOf), {
    relative: 4,
  });
  const norm = await device.run(layerNorm({ x: bf16, out: f32 }), {
    x: x.array,
  });
  const [row = []] = rowsOf(x.values, columns);
  const mean = row.reduce((sum, value) => sum + value, 0) / columns;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / columns;
  expectClose(
    norm.out,
    row.map((value) => (value - mean) / Math.sqrt(variance + 1e-5)),
    { relative: 8, absolute: 1e-6 },
  );
  device.dispose();
});

describe.each([
  { kind: "simulator", sizes: [3, 7000], workers: 2, blocks: 1 },
  { kind: "emulator", sizes: [3, 6200], workers: 2, blocks: 1 },
] as const)("blocks that stay, on the $kind", ({ kind, sizes, workers, blocks }) => {
  test("go through all rows", async () => {
    // So few processors that a worker has several rows.
    const device = await open(kind, { target: { ...targets.sm_90a, processors: 2 } });
    const [rows, columns] = sizes;
    const x = randomNumbers(bf16, [rows, columns], 1, 2, 1);
    const [scale, bias] = [2, 3].map((seed) => randomNumbers(f32, [columns], seed, 1));
    if (scale === undefined || bias === undefined) throw new Error("two arrays");
    const op = layerNorm({ x: bf16, out: f32, scale: f32, bias: f32, statistics: true });
    const plan = op.plan({ m: rows, n: columns }, { ...targets.sm_90a, processors: 2 });
    expect(plan.configuration).toMatchObject({ workers, blocks });
    const given = { x: x.array, scale: scale.array, bias: bias.array };
    const found = await device.run(op, given);
    const means: number[] = [];
    const expected = rowsOf(x.values, columns).flatMap((row) => {
      const mean = row.reduce((sum, value) => sum + value, 0) / columns;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / columns;
      means.push(mean);
      return row.map(
        (value, column) =>
          ((value - mean) / Math.sqrt(variance + 1e-5)) * (scale.values[column] ?? NaN) +
          (bias.values[column] ?? NaN),
      );
    });
    expectClose(found.out, expected, { relative: 8, absolute: 2e-6 });
    expectClose(found.mean, means, { relative: 8, absolute: 1e-6 });
    device.dispose();
  });
});

test("few rows that are long are held by clusters", async () => {
  // So few processors that no more blocks than a cluster has could share a row.
  const target = { ...targets.sm_90a, processors: 16 };
  const device = await open("simulator", { target });
  const [rows, columns] = [2, 65_600];
  const x = randomNumbers(bf16, [rows, columns], 1, 2, 1);
  const op = softmax({ x: bf16, out: f32 });
  expect(op.plan({ m: rows, n: columns }, target).configuration).toMatchObject({
    ...{ blocks: 8, pieces: 1, workers: 2 },
  });
  const { out } = await device.run(op, { x: x.array });
  expectClose(out, rowsOf(x.values, columns).flatMap(softmaxOf), { relative: 8 });
  device.dispose();
});

test.each(["simulator", "emulator"] as const)(
  "a long row of a cross-entropy is held by more warps, on the %s",
  async (kind) => {
    const target = { ...targets.sm_90a, processors: 1 };
    const device = await open(kind, { target });
    const columns = 16_384;
    const op = crossEntropy({ logits: bf16, gradient: true });
    const wide = { warps: 16, minBlocksPerMultiprocessor: 2 };
    expect(op.plan({ m: 1, n: columns }, target).configuration).toMatchObject({ blocks: 1, wide });
    expect(op.plan({ m: 1, n: columns - 8 }, target).configuration).not.toHaveProperty("wide");
    const logits = randomNumbers(bf16, [1, columns], 1, 4);
    const label = 9_999;
    const { loss, gradient } = await device.run(op, { logits: logits.array, labels: [label] });
    const shares = softmaxOf(logits.values);
    expectClose(loss, [-Math.log(shares[label] ?? NaN)], { relative: 8 });
    const expected = shares.map((share, column) => share - (column === label ? 1 : 0));
    expectClose(gradient, expected, { relative: 2 });
    device.dispose();
  },
);

test("rows of 8,192 with one per-column input are held by eight warps, and start before the previous kernel has ended", async () => {
  const [rows, columns] = [1, 8192];
  const op = rmsNorm({ x: bf16, scale: bf16, epsilon: 0 });
  const target = { ...targets.sm_90a, processors: 1 };
  const wide = { warps: 8, minBlocksPerMultiprocessor: 4 };
  expect(op.plan({ m: rows, n: columns }, target).configuration).toMatchObject({ wide });
  for (const other of [softmax({ x: bf16 }), rmsNorm({ x: bf16 }), rmsNorm({ x: f32, scale: f32 })])
    expect(other.plan({ m: rows, n: columns }, target).configuration).not.toHaveProperty("wide");
  const [kernel] = op.kernels({ m: rows, n: columns }, target);
  if (kernel === undefined) throw new Error("there is a launch");
  expect(printPtx(lower(kernel.kernel, target).module)).toContain("griddepcontrol.wait");
  const device = await open("simulator", { target });
  const x = randomNumbers(bf16, [rows, columns], 1, 2);
  const scale = randomNumbers(bf16, [columns], 1, 3);
  const { out } = await device.run(op, { x: x.array, scale: scale.array });
  const mean = x.values.reduce((sum, value) => sum + value * value, 0) / columns;
  const expected = x.values.map((value, i) => (value / Math.sqrt(mean)) * (scale.values[i] ?? 0));
  expectClose(out, expected, { relative: 2 });
  device.dispose();
});

test("a label that is no class stops the kernel", async () => {
  const device = await open("simulator");
  const logits = fromNumbers(f32, [1, 4], [1, 2, 3, 4]);
  const labels = fromNumbers(i32, [1], [4]);
  await expect(device.run(crossEntropy({ logits: f32 }), { logits, labels })).rejects.toThrow(
    /every label of crossEntropy/,
  );
  device.dispose();
});

test("a residual of f64 is added in f64, and statistics are f64", async () => {
  const device = await open("simulator");
  const [x, residual] = [randomNumbers(f32, [3, 40], 1, 2), randomNumbers(f64, [3, 40], 2, 2)];
  const op = layerNorm({ x: f32, residual: f64, statistics: true });
  const given = { x: x.array, residual: residual.array };
  const { sum, mean } = await device.run(op, given);
  device.dispose();
  const sums = x.values.map((value, index) => value + (residual.values[index] ?? NaN));
  expect([...toNumbers(sum)]).toEqual(sums);
  expect(mean.dtype).toBe(f64);
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => softmax({ x: i8 as never })],
    ["TW9901", () => layerNorm({ x: f32, scale: i32 as never })],
    ["TW9902", () => softmax({ x: f32, axis: 2 })],
    ["TW9902", () => softmax({ x: "f32" as never })],
    ["TW9902", () => layerNorm({ x: f32, scale: tensor(f32, [m]) })],
    ["TW9902", () => rmsNorm({ x: f32, residual: tensor(f32, [n, m]) })],
    ["TW9902", () => softmaxBackward({ out: f32, dOut: tensor(f32, [n, m]) })],
    ["TW9902", () => crossEntropy({ logits: f32, dLoss: tensor(f32, [n]) })],
    ["TW9902", () => crossEntropy({ logits: f32 }).plan({ m: 2, n: 0 })],
    ["TW9902", () => crossEntropy({ logits: f32 }).plan({ m: 2, n: 2 ** 24 + 1 })],
    ["TW9904", () => rmsNorm({ x: f32, epsilon: -1 })],
    ["TW9904", () => crossEntropy({ logits: f32, ignored: 0.5 })],
    ["TW1033", () => rmsNorm({ x: f32, bias: f32 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
