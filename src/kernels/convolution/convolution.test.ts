/** Convolutions and their gradients of random sizes, against float64; whole numbers make every sum exact. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { overProducts, resultExtents } from "../../../test/support/convolution-reference.ts";
import type { ReferenceSizes } from "../../../test/support/convolution-reference.ts";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import type { DType } from "../../formats/dtype.ts";
import { bf16, f16, f32, f64, i8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { convolution, convolutionBackwardW, convolutionBackwardX } from "./convolution.ts";

interface Case extends ReferenceSizes {
  readonly isLast: boolean;
  readonly dtype: DType<"f32">;
  readonly seed: number;
}

function randomCase(random: Random, seed: number): Case {
  const rank = 1 + random.below(3);
  const each = (most: number, least = 0) =>
    Array.from({ length: rank }, () => least + random.below(most));
  const [taps, stride, dilation] = [each(3, 1), each(3, 1), each(2, 1)];
  const [before, after] = [each(3), each(3)];
  const input = each(rank === 1 ? 40 : rank === 2 ? 9 : 5, 1).map((extent, axis) => {
    const reach = (dilation[axis] ?? 1) * ((taps[axis] ?? 1) - 1) + 1;
    return Math.max(extent, reach - (before[axis] ?? 0) - (after[axis] ?? 0));
  });
  const isLast = random.below(3) > 0;
  const dtype = [bf16, f16, f32, f64][random.below(4)] as unknown as DType<"f32">;
  const wide = random.below(4) === 0;
  return {
    ...{ batch: 1 + random.below(3), groups: 1 + random.below(3), taps, stride, dilation },
    channels: 1 + random.below(wide ? 70 : 9),
    outputs: 1 + random.below(wide ? 9 : 40),
    ...{ before, after, input, isLast, dtype, seed },
  };
}

function shaped(isLast: boolean, first: number, spatial: readonly number[], channels: number) {
  return isLast ? [first, ...spatial, channels] : [first, channels, ...spatial];
}

async function check(device: Device, given: Case): Promise<void> {
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
    x: array(dtype, xs),
    w: array(dtype, ws),
    channels: isLast ? ("last" as const) : ("first" as const),
    stride: given.stride,
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
  expect(forward.out.shape, text).toEqual(outs);
  expect([...toNumbers(forward.out)], text).toEqual(rounded(out));
  const backX = await device.run(convolutionBackwardX(spec), { dOut: dOut.array, w: w.array });
  expect([...toNumbers(backX.dx)], text).toEqual(rounded(dx));
  const backW = await device.run(convolutionBackwardW(spec), { x: x.array, dOut: dOut.array });
  expect([...toNumbers(backW.dw)], text).toEqual(rounded(dw));
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("random sizes, steps, groups, formats and orders of axes", async () => {
    const rounds = kind === "simulator" ? 8 : 4;
    const random = new Random(kind === "simulator" ? 1 : 2);
    for (let seed = 0; seed < rounds; seed += 1) await check(device, randomCase(random, seed));
  });

  test.each([
    { name: "3 × 3", input: [9, 5], taps: [3, 3], padding: 1, channels: 72, outputs: 40 },
    {
      name: "two by two",
      input: [8, 6],
      taps: [3, 3],
      padding: 1,
      channels: 64,
      outputs: 72,
      stride: 2,
    },
    {
      name: "groups",
      input: [7, 4],
      taps: [1, 3],
      padding: 1,
      channels: 64,
      outputs: 64,
      groups: 2,
    },
    { name: "three axes", input: [3, 4, 5], taps: [2, 3, 3], padding: 1, channels: 16, outputs: 8 },
    {
      name: "one axis",
      input: [150],
      taps: [5],
      padding: 2,
      channels: 64,
      outputs: 136,
      dilation: 2,
    },
  ])(
    "by the copy engine: $name",
    async ({ input, taps, padding, channels, outputs, ...others }) => {
      const all = (value: number) => input.map(() => value);
      await check(device, {
        ...{ batch: 3, groups: others.groups ?? 1, channels, outputs, input, taps },
        ...{ stride: all(others.stride ?? 1), dilation: all(others.dilation ?? 1) },
        ...{ before: all(padding), after: all(padding), isLast: true, seed: 1 },
        dtype: bf16 as unknown as DType<"f32">,
      });
    },
  );
});
