/** Operations on rows of random sizes, against float64: every case goes through all operations. */
import type { Device } from "../../src/device/device.ts";
import { bf16, f16, f32, i32, i8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import {
  crossEntropy,
  layerNorm,
  logSoftmax,
  quantize,
  rmsNorm,
  softmax,
  softmaxBackward,
} from "../../src/kernels/index.ts";
import { tensor } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { expectClose, randomNumbers } from "./library-checks.ts";

interface RowCase {
  readonly rows: number;
  readonly columns: number;
  readonly dtype: DType<"bf16" | "f16" | "f32">;
}

function randomCase(number: number, isLarge: boolean): RowCase {
  const random = new Random(number);
  const most = isLarge ? 2 ** 21 : 2 ** 11;
  const columns = Math.floor(2 ** (random.uniform() * Math.log2(isLarge ? 400_000 : 2000)));
  const multiple = random.pick([1, 1, 8, 64, 256]);
  const wide = Math.max(multiple, Math.floor(columns / multiple) * multiple);
  const rows = 1 + random.below(Math.max(1, Math.min(300, Math.floor(most / wide))));
  return { rows, columns: wide, dtype: random.pick([bf16, f16, f32]) };
}

const rowsOf = (values: readonly number[], columns: number): readonly (readonly number[])[] =>
  Array.from({ length: values.length / columns }, (_, row) =>
    values.slice(row * columns, (row + 1) * columns),
  );

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** The logarithm of the sum of exponentials. */
function logSum(row: readonly number[]): number {
  const high = row.reduce((one, other) => Math.max(one, other), -Infinity);
  return high + Math.log(sumOf(row.map((value) => Math.exp(value - high))));
}

async function checkSoftmax(device: Device, { rows, columns, dtype }: RowCase, number: number) {
  const x = randomNumbers(dtype, [rows, columns], number, 6);
  const given = tensor(dtype, [rows, columns]);
  const logs = rowsOf(x.values, columns).flatMap((row) => {
    const all = logSum(row);
    return row.map((value) => value - all);
  });
  const { out } = await device.run(softmax({ x: given }), { x: x.array });
  // What is subtracted before the exponential is rounded at its own size, up to 20.
  const powers = { relative: dtype.bits > 16 ? 64 : 2 };
  expectClose(out, logs.map(Math.exp), powers);
  const { out: found } = await device.run(logSoftmax({ x: given }), { x: x.array });
  expectClose(found, logs, { relative: 2, absolute: 4e-6 });

  const dOut = randomNumbers(dtype, [rows, columns], number + 1, 1);
  const { dx } = await device.run(softmaxBackward({ out: given }), { out, dOut: dOut.array });
  const gradients = rowsOf(dOut.values, columns);
  const expected = rowsOf([...toNumbers(out)], columns).flatMap((row, index) => {
    const own = gradients[index] ?? [];
    const sum = sumOf(row.map((value, column) => value * (own[column] ?? NaN)));
    return row.map((value, column) => value * ((own[column] ?? NaN) - sum));
  });
  expectClose(dx, expected, { relative: 8, absolute: 1e-6 });
}

async function checkNorms(device: Device, { rows, columns, dtype }: RowCase, number: number) {
  const x = randomNumbers(dtype, [rows, columns], number, 2, 1);
  const residual = randomNumbers(dtype, [rows, columns], number + 1, 2);
  const [scale, bias] = [2, 3].map((each) => randomNumbers(f32, [columns], number + each, 1));
  if (scale === undefined || bias === undefined) throw new Error("there are two arrays of columns");
  const given = tensor(dtype, [rows, columns]);
  const layer = layerNorm({ x: given, residual: dtype, scale: f32, bias: f32 });
  const { out, sum } = await device.run(layer, {
    ...{ x: x.array, residual: residual.array, scale: scale.array, bias: bias.array },
  });
  const normal = (row: readonly number[], mean: number) => {
    const variance = sumOf(row.map((value) => (value - mean) ** 2)) / columns;
    return (value: number): number => (value - mean) / Math.sqrt(variance + 1e-5);
  };
  const expected = rowsOf([...toNumbers(sum)], columns).flatMap((row) => {
    const of = normal(row, sumOf(row) / columns);
    return row.map((value, at) => of(value) * (scale.values[at] ?? NaN) + (bias.values[at] ?? NaN));
  });
  // What is left of a row without its mean is rounded at the row's own size, and grows where the row hardly varies.
  const growth = rowsOf([...toNumbers(sum)], columns).map((row) => {
    const of = normal(row, sumOf(row) / columns);
    const size = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return Math.abs(of(size) - of(0));
  });
  const steepest = scale.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const greatest = Math.max(...growth) * steepest;
  expectClose(out, expected, { relative: 4, absolute: 1e-5 + 2 ** -23 * greatest });
  const { out: roots } = await device.run(rmsNorm({ x: given, scale: f32 }), {
    x: x.array,
    scale: scale.array,
  });
  const rooted = rowsOf(x.values, columns).flatMap((row) => {
    const of = normal(row, 0);
    return row.map((value, at) => of(value) * (scale.values[at] ?? NaN));
  });
  expectClose(roots, rooted, { relative: 4, absolute: 1e-5 });
}

async function checkOthers(device: Device, { rows, columns, dtype }: RowCase, number: number) {
  const random = new Random(number);
  const x = randomNumbers(dtype, [rows, columns], number, 6);
  const given = tensor(dtype, [rows, columns]);
  const labels = Array.from({ length: rows }, () => random.below(columns));
  const entropy = crossEntropy({ logits: given, gradient: true });
  const { loss, gradient } = await device.run(entropy, {
    logits: x.array,
    labels: fromNumbers(i32, [rows], labels),
  });
  const all = rowsOf(x.values, columns);
  const sums = all.map(logSum);
  const losses = all.map((row, index) => (sums[index] ?? NaN) - (row[labels[index] ?? 0] ?? NaN));
  expectClose(loss, losses, { relative: 8, absolute: 4e-6 });
  const shares = all.flatMap((row, index) =>
    row.map(
      (value, column) =>
        Math.exp(value - (sums[index] ?? NaN)) - (column === labels[index] ? 1 : 0),
    ),
  );
  expectClose(gradient, shares, { relative: 64, absolute: 1e-6 });

  const { out, scale } = await device.run(quantize({ x: given, out: i8 }), { x: x.array });
  const [bytes, scales] = [toNumbers(out), toNumbers(scale)];
  for (const [index, value] of x.values.entries()) {
    const own = scales[Math.floor(index / columns)] ?? NaN;
    if (!(Math.abs((bytes[index] ?? NaN) * own - value) <= own * 0.5001))
      throw new Error(`element ${index} is ${bytes[index]} times ${own} instead of ${value}`);
  }
}

/** The case of a seed; large ones take more than emulators have time for. */
export async function checkRandomRows(
  device: Device,
  seed: number,
  isLarge: boolean,
): Promise<void> {
  const one = randomCase(seed, isLarge);
  try {
    await checkSoftmax(device, one, seed);
    await checkNorms(device, one, seed);
    await checkOthers(device, one, seed);
  } catch (cause) {
    const told = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${told}: seed ${seed}, ${one.rows}x${one.columns} ${one.dtype.name}`, {
      cause,
    });
  }
}
