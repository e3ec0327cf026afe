/** Convolutions and their gradients of random sizes, against float64; whole numbers make every sum exact. */
import { deepEqual } from "node:assert/strict";
import type { Device } from "../../src/device/device.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { bf16, f16, f32, f64 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import {
  convolution,
  convolutionBackwardW,
  convolutionBackwardX,
} from "../../src/kernels/convolution/convolution.ts";
import { tensor } from "../../src/lang/index.ts";
import type { Random } from "../../src/support/random.ts";
import { overProducts, resultExtents } from "./convolution-reference.ts";
import type { ReferenceSizes } from "./convolution-reference.ts";
import { wholeNumbers } from "./whole-numbers.ts";

export interface ConvolutionCase extends ReferenceSizes {
  readonly isLast: boolean;
  readonly dtype: DType<"f32">;
  readonly seed: number;
}

export function randomConvolution(random: Random, seed: number): ConvolutionCase {
  const rank = 1 + random.below(3);
  const each = (most: number, least = 0) =>
    Array.from({ length: rank }, () => least + random.below(most));
  const [taps, strides, dilation] = [each(3, 1), each(3, 1), each(2, 1)];
  const [before, after] = [each(3), each(3)];
  const input = each(rank === 1 ? 40 : rank === 2 ? 9 : 5, 1).map((extent, axis) => {
    const reach = (dilation[axis] ?? 1) * ((taps[axis] ?? 1) - 1) + 1;
    return Math.max(extent, reach - (before[axis] ?? 0) - (after[axis] ?? 0));
  });
  const isLast = random.below(3) > 0;
  const dtype = [bf16, f16, f32, f64][random.below(4)] as unknown as DType<"f32">;
  const wide = random.below(4) === 0;
  if (isLast && random.below(4) === 0)
    return {
      ...{ batch: 1 + random.below(3), groups: 2 + random.below(70), taps, strides, dilation },
      ...{ channels: 1, outputs: 1, before, after, input, isLast, dtype, seed },
    };
  return {
    ...{ batch: 1 + random.below(3), groups: 1 + random.below(3), taps, strides, dilation },
    channels: 1 + random.below(wide ? 70 : 9),
    outputs: 1 + random.below(wide ? 9 : 40),
    ...{ before, after, input, isLast, dtype, seed },
  };
}

function shaped(isLast: boolean, first: number, spatial: readonly number[], channels: number) {
  return isLast ? [first, ...spatial, channels] : [first, channels, ...spatial];
}

/** A convolution and both of its gradients, against sums in float64. */
export async function checkConvolution(device: Device, given: ConvolutionCase): Promise<void> {
  const { batch, groups, channels, outputs, input, taps, isLast, dtype } = given;
  const output = resultExtents(given);
  const xs = shaped(isLast, batch, input, groups * channels);
  const ws = shaped(isLast, groups * outputs, taps, channels);
  const outs = shaped(isLast, batch, output, groups * outputs);
  const [x, w, dOut] = [xs, ws, outs].map((shape, index) =>
    wholeNumbers(dtype, shape, given.seed + index),
  );
  if (x === undefined || w === undefined || dOut === undefined) throw new Error("three arrays");
  const spec = {
    x: tensor(dtype, xs),
    w: tensor(dtype, ws),
    channels: isLast ? ("last" as const) : ("first" as const),
    strides: given.strides,
    dilation: given.dilation,
    padding: given.before.map((before, axis) => [before, given.after[axis] ?? 0] as const),
    groups,
    ...(dtype.name === "f32" && { precision: "ieee" as const }),
  };
  const sums = [outs, xs, ws].map((shape) =>
    Array<number>(shape.reduce((all, extent) => all * extent, 1)).fill(0),
  );
  const [out, dx, dw] = sums as [number[], number[], number[]];
  overProducts(given, isLast, (atX, atW, atOut) => {
    const own = x.values[atX] ?? NaN;
    const weight = w.values[atW] ?? NaN;
    const slope = dOut.values[atOut] ?? NaN;
    out[atOut] = (out[atOut] ?? NaN) + own * weight;
    dx[atX] = (dx[atX] ?? NaN) + slope * weight;
    dw[atW] = (dw[atW] ?? NaN) + slope * own;
  });
  const rounded = (values: readonly number[]): readonly number[] => [
    ...toNumbers(fromNumbers(dtype, [values.length], values)),
  ];
  const text = JSON.stringify({ ...given, dtype: dtype.name });
  const forward = await device.run(convolution(spec), { x: x.array, w: w.array });
  deepEqual(forward.out.shape, outs, text);
  requireEqual(forward.out, rounded(out), `forward of ${text}`);
  const backX = await device.run(convolutionBackwardX(spec), { dOut: dOut.array, w: w.array });
  requireEqual(backX.dx, rounded(dx), `gradient of x of ${text}`);
  const backW = await device.run(convolutionBackwardW(spec), { x: x.array, dOut: dOut.array });
  requireEqual(backW.dw, rounded(dw), `gradient of w of ${text}`);
}

/** Throws where an element differs, and says which; NaN is equal to itself. */
export function requireEqual(found: HostArray, expected: readonly number[], text: string): void {
  const numbers = toNumbers(found);
  if (numbers.length !== expected.length)
    throw new Error(`${numbers.length} elements instead of ${expected.length}: ${text}`);
  const index = numbers.findIndex(
    (value, place) => !Object.is(value + 0, (expected[place] ?? NaN) + 0),
  );
  if (index >= 0)
    throw new Error(`element ${index} is ${numbers[index]} instead of ${expected[index]}: ${text}`);
}
