/** Several short rows for a block, divided evenly over its threads: against float64, and when they are chosen. */
import { describe, expect, test } from "vitest";
import { bf16, f16, f32, i32 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { fromNumbers } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { crossEntropy } from "./cross-entropy.ts";
import { layerNorm, rmsNorm } from "./norm.ts";
import { softmax } from "./softmax.ts";

/** So few processors that few rows keep them busy. */
const target = { ...targets.sm_90a, processors: 1 };

function rowsOf(values: ArrayLike<number>, columns: number): readonly (readonly number[])[] {
  return Array.from({ length: values.length / columns }, (_, row) =>
    Array.from({ length: columns }, (__, column) => values[row * columns + column] ?? NaN),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((one, other) => one + other, 0);
}

function softmaxOf(row: readonly number[]): readonly number[] {
  const high = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - high));
  const all = sum(powers);
  return powers.map((power) => power / all);
}

interface NormCase {
  readonly dtype: DType<FloatName>;
  readonly sizes: readonly [rows: number, columns: number];
  readonly form: { readonly rows: number; readonly columns: number };
}

const norms: readonly NormCase[] = [
  { dtype: bf16, sizes: [67, 320], form: { rows: 16, columns: 320 } },
  { dtype: bf16, sizes: [35, 384], form: { rows: 8, columns: 384 } },
  { dtype: bf16, sizes: [19, 1280], form: { rows: 4, columns: 1280 } },
  { dtype: bf16, sizes: [9, 1536], form: { rows: 2, columns: 1536 } },
  { dtype: f16, sizes: [33, 640], form: { rows: 8, columns: 640 } },
];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test.each(norms)("norms of $sizes in $dtype.name", async ({ dtype, sizes, form }) => {
    const [m, n] = sizes;
    const device = await open(kind, { target });
    const [x, scale, bias] = [
      randomNumbers(dtype, [m, n], 1, 2, 1),
      randomNumbers(f32, [n], 2, 1),
      randomNumbers(f32, [n], 3, 1),
    ];
    const given = { x: x.array, scale: scale.array };
    const layer = layerNorm({ x: dtype, out: f32, scale: f32, bias: f32, statistics: true });
    expect(layer.plan({ m, n }, target).configuration).toMatchObject(form);
    const found = await device.run(layer, { ...given, bias: bias.array });
    const rows = rowsOf(x.values, n);
    const means = rows.map((row) => sum(row) / n);
    const expected = rows.flatMap((row, index) => {
      const mean = means[index] ?? NaN;
      const variance = sum(row.map((value) => (value - mean) ** 2)) / n;
      return row.map(
        (value, column) =>
          ((value - mean) / Math.sqrt(variance + 1e-5)) * (scale.values[column] ?? NaN) +
          (bias.values[column] ?? NaN),
      );
    });
    expectClose(found.out, expected, { relative: 8, absolute: 2e-6 });
    expectClose(found.mean, means, { relative: 8, absolute: 1e-6 });
    const squares = rmsNorm({ x: dtype, out: f32, scale: f32 });
    const { out } = await device.run(squares, given);
    const roots = rows.flatMap((row) => {
      const root = Math.sqrt(sum(row.map((value) => value ** 2)) / n + 1e-5);
      return row.map((value, column) => (value / root) * (scale.values[column] ?? NaN));
    });
    expectClose(out, roots, { relative: 8, absolute: 2e-6 });
    device.dispose();
  });

  test("softmax and cross-entropy", async () => {
    const [m, n] = [19, 1280];
    const device = await open(kind, { target });
    const x = randomNumbers(bf16, [m, n], 1, 2, 1);
    const op = softmax({ x: bf16, out: f32 });
    const form = { rows: 4, columns: 1280 };
    expect(op.plan({ m, n }, target).configuration).toMatchObject(form);
    const shares = rowsOf(x.values, n).map(softmaxOf);
    const { out } = await device.run(op, { x: x.array });
    expectClose(out, shares.flat(), { relative: 8 });
    const entropy = crossEntropy({ logits: bf16, gradient: true });
    const chosen = Array.from({ length: m }, (_, row) => (row * 71) % n);
    const labels = fromNumbers(i32, [m], chosen);
    const { loss, gradient } = await device.run(entropy, { logits: x.array, labels });
    expectClose(
      loss,
      shares.map((row, index) => -Math.log(row[chosen[index] ?? 0] ?? NaN)),
      { relative: 8, absolute: 1e-5 },
    );
    const slopes = shares.flatMap((row, index) =>
      row.map((share, column) => share - (column === chosen[index] ? 1 : 0)),
    );
    expectClose(gradient, slopes, { relative: 2 });
    device.dispose();
  });
});

test("rows are divided evenly where many threads would be idle, sooner with per-column inputs", () => {
  const m = 131_072;
  const alone = (n: number) => softmax({ x: bf16 }).plan({ m, n }).configuration;
  expect(alone(1280)).toMatchObject({ rows: 4, columns: 1280 });
  expect(alone(1536)).toMatchObject({ rows: 1, columns: 2048 });
  expect(alone(640)).toMatchObject({ rows: 4, columns: 1024 });
  const scaled = (n: number) => rmsNorm({ x: bf16, scale: bf16 }).plan({ m, n }).configuration;
  expect(scaled(640)).toMatchObject({ rows: 8, columns: 640 });
  expect(scaled(1536)).toMatchObject({ rows: 2, columns: 1536 });
  expect(scaled(896)).toMatchObject({ rows: 4, columns: 1024 });
  const columns = { scale: bf16, bias: bf16 };
  const moved = (n: number, rows = m) =>
    layerNorm({ x: bf16, ...columns }).plan({ m: rows, n }).configuration;
  expect(moved(896)).toMatchObject({ rows: 8, columns: 896 });
  expect(moved(3584)).toMatchObject({ rows: 2, columns: 3584 });
  // Nearly all threads are busy; rows that do not divide evenly; too few rows; more than registers hold; wide elements.
  expect(moved(1000)).toMatchObject({ rows: 4, columns: 1024 });
  expect(moved(781)).toMatchObject({ rows: 4, columns: 1024 });
  expect(moved(2304)).toMatchObject({ rows: 1, columns: 3072 });
  expect(moved(1280, 1024)).toMatchObject({ rows: 1, columns: 2048 });
  const wide = layerNorm({ x: bf16, scale: f32, bias: f32 });
  expect(wide.plan({ m, n: 1792 }).configuration).toMatchObject({ rows: 1, columns: 2048 });
  const [full, added] = [{ x: f32 }, { x: bf16, residual: bf16 }];
  for (const inputs of [full, added])
    expect(layerNorm({ ...inputs, ...columns }).plan({ m, n: 1536 }).configuration).toMatchObject({
      rows: 1,
    });
});
