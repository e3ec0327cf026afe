/** Reductions and scans of random arrays over random axes, against float64; whole numbers exactly. */
import type { Device } from "../../src/device/device.ts";
import { bf16, f16, f32, f64, i32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { rowMajorStrides } from "../../src/formats/shape.ts";
import { argReduce, reduce, scan } from "../../src/kernels/index.ts";
import { tensor } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { requireEqual } from "./convolution-check.ts";
import { wholeNumbers } from "./whole-numbers.ts";

interface ReduceCase {
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly axis: number;
  readonly reverse: boolean;
  readonly dtype: DType<"bf16" | "f16" | "f32" | "f64" | "i32">;
}

function randomCase(number: number, most: number): ReduceCase {
  const random = new Random(number);
  const rank = 1 + random.below(4);
  let left = most;
  const drawn = Array.from({ length: rank }, () => {
    const extent = Math.floor(2 ** (random.uniform() * Math.log2(left)));
    left = Math.max(1, left / extent);
    return extent;
  });
  const turn = random.below(rank);
  const shape = [...drawn.slice(turn), ...drawn.slice(0, turn)];
  const axes = shape.flatMap((_, axis) => (random.uniform() < 0.5 ? [axis] : []));
  return {
    shape,
    axes: axes.length === 0 ? [random.below(rank)] : axes,
    axis: random.below(rank),
    reverse: random.uniform() < 0.5,
    dtype: random.pick([bf16, f16, f32, f64, i32]),
  };
}

/** For every element in order: where it lies along each axis. */
function places(shape: readonly number[]): readonly (readonly number[])[] {
  const strides = rowMajorStrides(shape);
  const total = shape.reduce((product, extent) => product * extent, 1);
  return Array.from({ length: total }, (_, element) =>
    shape.map((extent, axis) => Math.floor(element / (strides[axis] ?? 1)) % extent),
  );
}

/** Sums and extremes over several axes. */
async function checkReductions(device: Device, one: ReduceCase, text: string, number: number) {
  const { shape, axes, dtype } = one;
  const { array: x, values } = wholeNumbers(dtype, shape, number);
  const keptShape = shape.map((extent, own) => (axes.includes(own) ? 1 : extent));
  const keptStrides = rowMajorStrides(keptShape);
  const target = (place: readonly number[]): number =>
    place.reduce(
      (sum, at, own) => sum + (axes.includes(own) ? 0 : at * (keptStrides[own] ?? 1)),
      0,
    );
  const sums = new Array<number>(keptShape.reduce((a, b) => a * b, 1)).fill(0);
  const highs = sums.map(() => -Infinity);
  for (const [element, place] of places(shape).entries()) {
    const at = target(place);
    sums[at] = (sums[at] ?? 0) + (values[element] ?? NaN);
    highs[at] = Math.max(highs[at] ?? NaN, values[element] ?? NaN);
  }
  const spec = tensor(dtype, shape);
  const total = await device.run(reduce({ x: spec, axis: axes, out: wideFormat(dtype) }), { x });
  requireEqual(
    total.out,
    sums.map((sum) => sum + 0),
    text,
  );
  const most = await device.run(reduce({ x: spec, axis: axes, combine: "max" }), { x });
  requireEqual(most.out, highs, text);
}

/** Sums of whole numbers are exact in f32, in f64 and in i32. */
function wideFormat(dtype: DType): DType<"i32" | "f64" | "f32"> {
  return dtype === i32 ? i32 : dtype === f64 ? f64 : f32;
}

/** Running sums along an axis. */
async function checkScan(device: Device, one: ReduceCase, text: string, number: number) {
  const { shape, axis, reverse, dtype } = one;
  const { array: x, values } = wholeNumbers(dtype, shape, number);
  const all = places(shape);
  const stride = rowMajorStrides(shape)[axis] ?? 1;
  const extent = shape[axis] ?? 1;
  const running = new Array<number>(values.length).fill(0);
  const order = [...all.keys()];
  for (const element of reverse ? order.reverse() : order) {
    const isFirst = (all[element]?.[axis] ?? 0) === (reverse ? extent - 1 : 0);
    const before = isFirst ? 0 : (running[element + (reverse ? stride : -stride)] ?? NaN);
    running[element] = before + (values[element] ?? NaN);
  }
  const spec = tensor(dtype, shape);
  const { out } = await device.run(scan({ x: spec, axis, reverse, out: wideFormat(dtype) }), { x });
  requireEqual(out, running, text);
}

/** The place of the first greatest element along an axis. */
async function checkPlaces(device: Device, one: ReduceCase, text: string, number: number) {
  const { shape, axis, dtype } = one;
  const { array: x, values } = wholeNumbers(dtype, shape, number);
  const best = argReduce({ x: tensor(dtype, shape), axis, find: "max" });
  const { index } = await device.run(best, { x });
  const firsts = new Map<string, readonly [value: number, index: number]>();
  for (const [element, place] of places(shape).entries()) {
    const line = place.map((at, own) => (own === axis ? 0 : at)).join(" ");
    const value = values[element] ?? NaN;
    const known = firsts.get(line);
    if (known === undefined || value > known[0]) firsts.set(line, [value, place[axis] ?? 0]);
  }
  requireEqual(
    index,
    [...firsts.values()].map(([, at]) => at),
    text,
  );
}

/** The case of a seed, of so many elements at most. */
export async function checkRandomReductions(
  device: Device,
  seed: number,
  most: number,
): Promise<void> {
  const one = randomCase(seed, most);
  const text = `seed ${seed}: ${JSON.stringify({ ...one, dtype: one.dtype.name })}`;
  await checkReductions(device, one, `reduction of ${text}`, seed);
  await checkScan(device, one, `scan of ${text}`, seed);
  await checkPlaces(device, one, `places of ${text}`, seed);
}
