/**
 * Products with weights in few bits beside those with bf16 weights, in turns, for few rows and for many. Results are
 * first held against bf16 products of the weights that stored ones stand for.
 *
 *   node dist/cli/main.js run bench/gpu/weights.ts [-- ROWS …]
 */
import { bf16, dim, f4e2m1fn, f8e4m3fn, f8e8m0fnu, i4, i8, open, toNumbers } from "tilewright";
import type { DeviceArray, DType } from "tilewright";
import { dequantizeWeights, matmul, quantized, quantizeWeights } from "tilewright/kernels";
import type { WeightFormat } from "tilewright/kernels";
import { bench } from "tilewright/bench";
import { randomArray } from "./random.ts";

const [n, k] = [8192, 28672];
/** Sets of arrays, so that no cache holds the weights until they are used again. */
const sets = 3;
/** Rounding of scaled weights, of sums and of results, in parts of the greatest result. */
const tolerance = 2 ** -6;
const given = process.argv.slice(2).map(Number).filter(Boolean);

const device = await open("gpu");
const plain = Array.from({ length: sets }, (_, seed) =>
  randomArray(device, bf16, [k, n], seed + 50),
);

/** Weights in a format, with a scale for so many along k: stored, the product that takes them, and the weights that they stand for. */
function weightsOf<D extends WeightFormat, S extends "bf16" | "f8e8m0fnu" | "f8e4m3fn">(
  dtype: DType<D>,
  group: number,
  scale: DType<S>,
) {
  const spec = quantized(dtype, [dim("k"), dim("n")], { groupSize: group, scale, as: bf16 });
  // Scales of parts of 128 elements lie side by side.
  const unit = Math.max(group, 128);
  const stored = plain.map((x) => {
    const b = device.allocate(dtype, [n, k]);
    const bScale = device.allocate(scale, [k / unit, (n * unit) / group]);
    device.launch(quantizeWeights({ x: bf16, b: spec }), { x, b, bScale });
    return { b, bScale };
  });
  const back = device.allocate(bf16, [k, n]);
  device.launch(dequantizeWeights({ x: bf16, b: spec }), { ...at(stored, 0), x: back });
  const quantised = matmul({ a: bf16, b: spec });
  const arrays = (set: number, a: DeviceArray<"bf16">, out: DeviceArray<"bf16">) => ({
    ...{ a, out },
    ...at(stored, set),
  });
  return {
    back,
    launch: (...given: Parameters<typeof arrays>) => {
      device.launch(quantised, arrays(...given));
    },
    bind: (...given: Parameters<typeof arrays>) => device.bind(quantised, arrays(...given)),
    dispose: () => {
      for (const each of [...stored.flatMap(({ b, bScale }) => [b, bScale]), back]) each.dispose();
    },
  };
}

function at<T>(all: readonly T[], set: number): T {
  const found = all[set % all.length];
  if (found === undefined) throw new RangeError("there are no arrays");
  return found;
}

async function requireAlike(
  name: string,
  found: DeviceArray<"bf16">,
  expected: DeviceArray<"bf16">,
): Promise<void> {
  const numbers = toNumbers(await device.download(expected));
  const greatest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  toNumbers(await device.download(found)).forEach((value, index) => {
    const wanted = numbers[index] ?? NaN;
    if (!(Math.abs(value - wanted) <= tolerance * greatest))
      throw new Error(`${name}: element ${index} is ${value}, not ${wanted}`);
  });
}

const product = matmul({ a: bf16, b: bf16 });
const quantised = {
  i4: weightsOf(i4, 128, bf16),
  i8: weightsOf(i8, 128, bf16),
  f8e4m3fn: weightsOf(f8e4m3fn, 128, bf16),
  mxfp4: weightsOf(f4e2m1fn, 32, f8e8m0fnu),
  nvfp4: weightsOf(f4e2m1fn, 16, f8e4m3fn),
};

for (const m of given.length > 0 ? given : [1, 8, 16, 32, 64, 4096]) {
  const rows = plain.map((_, seed) => randomArray(device, bf16, [m, k], seed));
  const [out, expected] = [device.allocate(bf16, [m, n]), device.allocate(bf16, [m, n])];
  for (const [name, one] of Object.entries(quantised)) {
    one.launch(0, at(rows, 0), out);
    device.launch(product, { a: at(rows, 0), b: one.back, out: expected });
    await requireAlike(`${name}, ${m} rows`, out, expected);
  }
  const entries = Object.entries(quantised).map(
    ([name, one]) => [name, (set: number) => one.bind(set, at(rows, set), out)] as const,
  );
  const result = await bench(
    device,
    {
      bf16: (set: number) => device.bind(product, { a: at(rows, set), b: at(plain, set), out }),
      ...Object.fromEntries(entries),
    },
    { sets },
  );
  process.stdout.write(`${m} rows\n${result.table()}\n`);
  for (const each of [...rows, out, expected]) each.dispose();
}
for (const each of [...Object.values(quantised), ...plain]) each.dispose();
device.dispose();
