/**
 * Sorts, best elements, distinct elements and histograms of random arrays of every format that they take, against places found
 * one by one. Formats without keys to sort by, as i4, have best elements alone.
 */
import type { Device } from "../../src/device/device.ts";
import {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  i16,
  i32,
  i4,
  i64,
  i8,
  u16,
  u32,
  u4,
  u8,
} from "../../src/formats/dtype.ts";
import type { DType, DTypeName } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { histogram, sort, topK, unique } from "../../src/kernels/index.ts";
import { tensor } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { inOrder, oddNumbers } from "./orders.ts";

const sorted = [
  bool,
  f8e4m3fn,
  f8e5m2,
  f16,
  bf16,
  f32,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
] as const;
const selected = [...sorted, i4, u4, f4e2m1fn] as const;

/** Equal, NaN being equal to itself, and zeros of both signs told apart. */
function requireSame(found: HostArray, expected: readonly number[], text: string): void {
  const numbers = toNumbers(found);
  if (numbers.length !== expected.length)
    throw new Error(`${numbers.length} elements instead of ${expected.length}: ${text}`);
  const index = numbers.findIndex((value, place) => !Object.is(value, expected[place]));
  if (index >= 0)
    throw new Error(`element ${index} is ${numbers[index]} instead of ${expected[index]}: ${text}`);
}

/** Odd numbers, or few whole ones, so that many are equal. */
function numbersOf<D extends DTypeName>(dtype: DType<D>, shape: readonly number[], random: Random) {
  if (random.below(2) === 0) return oddNumbers(dtype, shape, random);
  const least = dtype.kind === "unsigned" || dtype.kind === "bool" ? 0 : -1;
  const drawn = Array.from(
    { length: shape.reduce((all, extent) => all * extent, 1) },
    () => least + random.below(2 - least),
  );
  return fromNumbers(dtype, shape, drawn);
}

function orderOf(x: HostArray, columns: number, descending: boolean, most: number) {
  const values = [...toNumbers(x)];
  const places = Array.from({ length: values.length / columns }, (_, row) =>
    inOrder(values.slice(row * columns, (row + 1) * columns), descending).slice(0, most),
  );
  return {
    indices: places.flat(),
    values: places.flatMap((own, row) => own.map((at) => values[row * columns + at] ?? NaN)),
  };
}

async function checkOrder(device: Device, random: Random, most: number, text: string) {
  const columns = 1 + Math.floor(2 ** (random.uniform() * Math.log2(most)));
  const rows = 1 + random.below(Math.max(1, Math.min(40, Math.floor(most / columns))));
  const descending = random.below(2) === 0;
  const dtype = random.pick(sorted) as unknown as DType<"f32">;
  const x = numbersOf(dtype, [rows, columns], random);
  const own = `${text}, ${dtype.name} [${rows}, ${columns}]`;
  const { out, indices } = await device.run(
    sort({
      ...{ x: tensor(dtype, [rows, columns]), descending, indices: true },
      ...(random.below(2) === 0 && { configuration: { warps: 4, items: 4 } }),
    }),
    { x },
  );
  const expected = orderOf(x, columns, descending, columns);
  requireSame(indices, expected.indices, `places of sort, ${own}`);
  requireSame(out, expected.values, `sort, ${own}`);
  const other = random.pick(selected) as unknown as DType<"f32">;
  const k = 1 + random.below(Math.min(columns, 600));
  const y = numbersOf(other, [rows, columns], random);
  const best = await device.run(
    topK({ x: tensor(other, [rows, columns]), k, largest: descending }),
    {
      x: y,
    },
  );
  const kept = orderOf(y, columns, descending, k);
  const which = `${k} best, ${text}, ${other.name} [${rows}, ${columns}]`;
  requireSame(best.indices, kept.indices, `places of the ${which}`);
  requireSame(best.values, kept.values, which);
}

async function checkDistinct(device: Device, random: Random, most: number, text: string) {
  const length = 1 + Math.floor(2 ** (random.uniform() * Math.log2(most)));
  const dtype = random.pick(sorted) as unknown as DType<"f32">;
  const x = numbersOf(dtype, [length], random);
  const values = [...toNumbers(x)];
  const order = inOrder(values, false);
  // Zeros of both signs are one element, as NaNs are; whichever is first in order stands for both.
  const firsts: { readonly value: number; count: number }[] = [];
  for (const place of order) {
    const value = values[place] ?? NaN;
    const last = firsts.at(-1);
    if (
      last !== undefined &&
      (last.value === value || (last.value !== last.value && value !== value))
    )
      last.count += 1;
    else firsts.push({ value, count: 1 });
  }
  const found = await device.run(
    unique({ x: tensor(dtype, [length]), size: firsts.length, counts: true }),
    { x },
  );
  const own = `${text}, ${dtype.name} [${length}]`;
  requireSame(
    found.values,
    firsts.map(({ value }) => value),
    `unique, ${own}`,
  );
  requireSame(
    found.counts,
    firsts.map(({ count }) => count),
    `counts of unique, ${own}`,
  );
}

/** Counts and edges as NumPy finds them. */
function spreadOf(values: readonly number[], bins: number) {
  let low = values.reduce((one, other) => Math.min(one, other), Infinity);
  let high = values.reduce((one, other) => Math.max(one, other), -Infinity);
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const edges = Array.from({ length: bins + 1 }, (_, at) =>
    at === bins ? high : low + at * ((high - low) / bins),
  );
  const counts = Array.from({ length: bins }, () => 0);
  for (const value of values) {
    let bin = Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins));
    while (bin > 0 && value < (edges[bin] ?? NaN)) bin -= 1;
    while (bin < bins - 1 && value >= (edges[bin + 1] ?? NaN)) bin += 1;
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return { edges, counts };
}

async function checkHistograms(device: Device, random: Random, most: number, text: string) {
  const length = 1 + Math.floor(2 ** (random.uniform() * Math.log2(most)));
  const bins = 1 + random.below(300);
  // Ranges found, of integers and of f64.
  const dtype = random.pick([i8, i32, i64, f64]) as unknown as DType<"f64">;
  const spread = 2 ** (1 + random.below(dtype.bits === 8 ? 7 : dtype.bits === 32 ? 30 : 40));
  const drawn = Array.from({ length }, () => Math.floor((random.uniform() - 0.5) * spread));
  const own = `${text}, ${dtype.name} [${length}] within ${spread} in ${bins} bins`;
  const found = await device.run(histogram({ x: tensor(dtype, [length]), bins }), {
    x: fromNumbers(dtype, [length], drawn),
  });
  const expected = spreadOf(drawn, bins);
  requireSame(found.edges, expected.edges, `edges, ${own}`);
  requireSame(found.out, expected.counts, `histogram, ${own}`);
  // Bins about as narrow as numbers of f32 lie: elements, edges and their products are exact in f64.
  const step = 2 ** -random.below(4);
  const [low, width] = [2 ** 20, 2 ** (3 + random.below(3))];
  const narrow = (width / step) * 2 ** random.below(4);
  const values = Array.from({ length }, () => low + random.below(width / step + 1) * step);
  const counts = Array.from({ length: narrow }, () => 0);
  for (const value of values) {
    const bin = Math.min(narrow - 1, Math.floor(((value - low) * narrow) / width));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const close = await device.run(
    histogram({ x: tensor(f32, [length]), bins: narrow, low, high: low + width }),
    { x: fromNumbers(f32, [length], values) },
  );
  requireSame(close.out, counts, `histogram, ${text}, f32 [${length}] in ${narrow} of ${width}`);
}

/** The case of a seed, of so many elements at most. */
export async function checkRandomOrder(device: Device, seed: number, most: number): Promise<void> {
  const random = new Random(seed);
  const text = `seed ${seed}`;
  await checkOrder(device, random, most, text);
  await checkDistinct(device, random, most, text);
  await checkHistograms(device, random, most, text);
}
