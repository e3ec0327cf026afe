/**
 * Reductions and scans of random arrays over random axes, against float64; whole numbers exactly.
 *
 *   REDUCE_CASES=200 REDUCE_DEVICE=gpu REDUCE_SEED=7 npx vitest run src/kernels/reduce/random.test.ts
 */
import { expect, test } from "vitest";
import { wholeNumbers } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f64, i32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { rowMajorStrides } from "../../formats/shape.ts";
import { array } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { scan } from "../scan/scan.ts";
import { argReduce } from "./arg-reduce.ts";
import { reduce } from "./reduce.ts";

const count = Number(process.env["REDUCE_CASES"] ?? 3);
const seed = Number(process.env["REDUCE_SEED"] ?? 1);
const kind = (process.env["REDUCE_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";

interface ReduceCase {
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly axis: number;
  readonly reverse: boolean;
  readonly dtype: DType<"bf16" | "f16" | "f32" | "f64" | "i32">;
}

function randomCase(number: number): ReduceCase {
  const random = new Random(number);
  const rank = 1 + random.below(4);
  let left = kind === "gpu" ? 2 ** 21 : 2 ** 14;
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
  const spec = array(dtype, shape);
  const total = await device.run(reduce({ x: spec, axes, out: wideFormat(dtype) }), { x });
  expect([...toNumbers(total.out)], text).toEqual(sums.map((sum) => sum + 0));
  const most = await device.run(reduce({ x: spec, axes, combine: "max" }), { x });
  expect([...toNumbers(most.out)], text).toEqual(highs);
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
  const spec = array(dtype, shape);
  const { out } = await device.run(scan({ x: spec, axis, reverse, out: wideFormat(dtype) }), { x });
  expect([...toNumbers(out)], text).toEqual(running);
}

/** The place of the first greatest element along an axis. */
async function checkPlaces(device: Device, one: ReduceCase, text: string, number: number) {
  const { shape, axis, dtype } = one;
  const { array: x, values } = wholeNumbers(dtype, shape, number);
  const best = argReduce({ x: array(dtype, shape), axis, find: "greatest" });
  const { index } = await device.run(best, { x });
  const firsts = new Map<string, readonly [value: number, index: number]>();
  for (const [element, place] of places(shape).entries()) {
    const line = place.map((at, own) => (own === axis ? 0 : at)).join(" ");
    const value = values[element] ?? NaN;
    const known = firsts.get(line);
    if (known === undefined || value > known[0]) firsts.set(line, [value, place[axis] ?? 0]);
  }
  expect([...toNumbers(index)], text).toEqual([...firsts.values()].map(([, at]) => at));
}

test(`random reductions on the ${kind}, from seed ${seed}`, { timeout: 600_000 }, async () => {
  const device = await open(kind);
  for (let number = seed; number < seed + count; number += 1) {
    const one = randomCase(number);
    const text = `seed ${number}: ${JSON.stringify({ ...one, dtype: one.dtype.name })}`;
    await checkReductions(device, one, text, number);
    await checkScan(device, one, text, number);
    await checkPlaces(device, one, text, number);
    if (kind === "gpu") console.log(`${text}: right`);
  }
  device.dispose();
});
