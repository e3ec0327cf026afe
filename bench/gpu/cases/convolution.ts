/**
 * Convolutions of square images with channels last, and both of their gradients, beside cuDNN: windows of 3 × 3 side by side
 * and two apart, of 1 × 1, and of single channels (depthwise), at the sizes of residual networks.
 *
 *   convolution dw bf16 3x3 stride 2 64x56x56x128      the gradient of the weights of 128 by 128 channels, of 64 images
 */
import { tensor, bf16, toNumbers } from "tilewright";
import type { Device, DeviceArray, Operation } from "tilewright";
import { convolution, convolutionBackwardW, convolutionBackwardX } from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray } from "../random.ts";
import { prepared } from "./memory.ts";
import { columnNumbers, positions } from "./product-sample.ts";

export interface ConvolutionTask {
  readonly made: "forward" | "dx" | "dw";
  readonly images: number;
  /** Rows and columns of an image. */
  readonly size: number;
  /** As many are read as are made. */
  readonly channels: number;
  /** Rows and columns of a window. */
  readonly window: number;
  readonly stride: number;
  readonly depthwise: boolean;
}

type Arrays = { readonly [N in "x" | "w" | "out"]: DeviceArray<"bf16"> };

/** Zeros that keep windows of one stride within the image. */
function paddingOf({ window }: ConvolutionTask): number {
  return (window - 1) / 2;
}

function madeSize(task: ConvolutionTask): number {
  return Math.floor((task.size + 2 * paddingOf(task) - task.window) / task.stride) + 1;
}

/** The arrays of a convolution: x, w and the result, of which one is made from the other two. */
function shapesOf(task: ConvolutionTask) {
  const { images, size, channels, window, depthwise } = task;
  const side = madeSize(task);
  return {
    x: [images, size, size, channels],
    w: [channels, window, window, depthwise ? 1 : channels],
    out: [images, side, side, channels],
  } as const;
}

const madeArray = { forward: "out", dx: "x", dw: "w" } as const;

/** The operation, and its arrays by its own names. */
function workOf(task: ConvolutionTask) {
  const { x, w } = shapesOf(task);
  const spec = {
    ...{ x: tensor(bf16, x), w: tensor(bf16, w) },
    ...{ strides: task.stride, padding: paddingOf(task) },
    groups: task.depthwise ? task.channels : 1,
  };
  const operations = {
    forward: () => convolution(spec) as unknown as Operation,
    dx: () => convolutionBackwardX(spec) as unknown as Operation,
    dw: () => convolutionBackwardW(spec) as unknown as Operation,
  };
  const named = {
    forward: (arrays: Arrays) => arrays,
    dx: (arrays: Arrays) => ({ dOut: arrays.out, w: arrays.w, dx: arrays.x }),
    dw: (arrays: Arrays) => ({ x: arrays.x, dOut: arrays.out, dw: arrays.w }),
  };
  return { operation: operations[task.made](), named: named[task.made] };
}

export function convolutionCase(task: ConvolutionTask): BenchCase {
  const { images, size, channels, window, stride, depthwise } = task;
  const shapes = shapesOf(task);
  const count = (shape: readonly number[]): number => shape.reduce((all, each) => all * each, 1);
  const bytes = 2 * (count(shapes.x) + count(shapes.w) + count(shapes.out));
  const kind = `${window}x${window}${depthwise ? " depthwise" : ""}${stride > 1 ? ` stride ${stride}` : ""}`;
  return {
    name: `convolution ${task.made} bf16 ${kind} ${images}x${size}x${size}x${channels}`,
    task: {
      ...{ op: "convolution", made: task.made, images, size, channels, window, stride },
      ...{ padding: paddingOf(task), groups: depthwise ? channels : 1, dtype: "bf16" },
    },
    ...(depthwise
      ? { unit: "TB/s", work: bytes }
      : { unit: "TFLOP/s", work: 2 * count(shapes.out) * channels * window * window }),
    setBytes: bytes,
    prepare: (device, sets) => {
      const { operation, named } = workOf(task);
      const arrayOf = (name: keyof Arrays, seed: number) =>
        name === madeArray[task.made]
          ? device.allocate(bf16, shapes[name])
          : randomArray(device, bf16, shapes[name], seed);
      return prepared(
        device,
        Array.from({ length: sets }, (_, seed) => ({
          x: arrayOf("x", seed),
          w: arrayOf("w", seed + 50),
          out: arrayOf("out", seed + 100),
        })),
        (arrays) => device.bind(operation, named(arrays) as never),
        (arrays) => checks[task.made](device, task, arrays),
      );
    },
  };
}

async function numbersOf(device: Device, of: DeviceArray<"bf16">): Promise<Float64Array> {
  return toNumbers(await device.download(of));
}

/** A sum of products in float64, beside what was found; tensor cores keep 22 bits of sums, and bf16 has 8. */
class Sum {
  private value = 0;
  private magnitude = 0;

  add(left: number | undefined, right: number | undefined): void {
    const term = (left ?? NaN) * (right ?? NaN);
    this.value += term;
    this.magnitude += Math.abs(term);
  }

  require(name: string, found: number | undefined): void {
    const bound = this.magnitude * 2 ** -16 + Math.abs(this.value) * 2 ** -8;
    if (!(Math.abs((found ?? NaN) - this.value) <= bound))
      throw new Error(`${name} is ${found}, not ${this.value}`);
  }
}

/** The rows or columns of x that a window's taps meet, those outside of it left out. */
function meeting(
  task: ConvolutionTask,
  place: number,
): readonly (readonly [tap: number, at: number])[] {
  return Array.from({ length: task.window }, (_, tap) => tap)
    .map((tap) => [tap, place * task.stride + tap - paddingOf(task)] as const)
    .filter(([, at]) => at >= 0 && at < task.size);
}

/** The windows that a row or column of x is in. */
function windowsOf(
  task: ConvolutionTask,
  at: number,
): readonly (readonly [tap: number, place: number])[] {
  return Array.from({ length: task.window }, (_, tap) => tap)
    .map((tap) => [tap, (at + paddingOf(task) - tap) / task.stride] as const)
    .filter(([, place]) => Number.isInteger(place) && place >= 0 && place < madeSize(task));
}

type Check = (device: Device, task: ConvolutionTask, arrays: Arrays) => Promise<void>;

/** Channels that meet a channel: all, or itself alone. */
function partners({ channels, depthwise }: ConvolutionTask, own: number): readonly number[] {
  return depthwise ? [own] : Array.from({ length: channels }, (_, channel) => channel);
}

/** Where the weight of an output, a tap and a channel lies. */
function weightAt(
  { window, channels, depthwise }: ConvolutionTask,
  output: number,
  [y, x]: readonly [number, number],
  channel: number,
): number {
  const row = (output * window + y) * window + x;
  return depthwise ? row : row * channels + channel;
}

type Along = (task: ConvolutionTask, at: number) => readonly (readonly [number, number])[];

/** Taps of a window at a place, and which rows and columns of the other array they meet. */
function tapsAt(task: ConvolutionTask, along: Along, row: number, column: number) {
  return along(task, row).flatMap(([y, top]) =>
    along(task, column).map(([x, left]) => ({ tap: [y, x] as const, top, left })),
  );
}

/** Some places of the last image: what `along` gives are the taps and places that each meets. */
const checkImage =
  (name: "out" | "x", along: Along): Check =>
  async (device, task, { x, w, out }) => {
    const { images, channels } = task;
    const isForward = name === "out";
    const last = (of: DeviceArray<"bf16">) => numbersOf(device, of.slice(images - 1, images));
    const [found, given] = [await last(isForward ? out : x), await last(isForward ? x : out)];
    const weights = await numbersOf(device, w);
    const [side, width] = isForward ? [madeSize(task), task.size] : [task.size, madeSize(task)];
    const expected = (row: number, column: number, own: number): Sum => {
      const sum = new Sum();
      for (const { tap, top, left } of tapsAt(task, along, row, column))
        for (const other of partners(task, own)) {
          const [output, channel] = isForward ? [own, other] : [other, own];
          const at = (top * width + left) * channels + other;
          sum.add(given[at], weights[weightAt(task, output, tap, channel)]);
        }
      return sum;
    };
    for (const row of positions(side, 4))
      for (const column of positions(side, 4))
        for (const own of positions(channels, 5))
          expected(row, column, own).require(
            `${name}[${images - 1}, ${row}, ${column}, ${own}]`,
            found[(row * side + column) * channels + own],
          );
  };

/** The gradients of one output's weights of one channel, from all places of both. */
function weightSums(
  task: ConvolutionTask,
  gradient: Float64Array,
  values: Float64Array,
): readonly Sum[] {
  const { images, size, window } = task;
  const side = madeSize(task);
  const sums = Array.from({ length: window ** 2 }, () => new Sum());
  for (let place = 0; place < side * side; place += 1)
    for (const { tap, top, left } of tapsAt(task, meeting, Math.floor(place / side), place % side))
      for (let image = 0; image < images; image += 1)
        sums[tap[0] * window + tap[1]]?.add(
          gradient[image * side * side + place],
          values[(image * size + top) * size + left],
        );
  return sums;
}

/** Some weights' gradients, each from all places of a channel of x and of one of the result. */
const checkWeights: Check = async (device, task, { x, w, out }) => {
  const { images, size, channels, window } = task;
  const found = await numbersOf(device, w);
  const column = (of: DeviceArray<"bf16">, own: number, side: number) =>
    columnNumbers(device, of.reshape([images * side * side, channels]), own);
  for (const output of positions(channels, 3)) {
    const gradient = await column(out, output, madeSize(task));
    for (const channel of task.depthwise ? [output] : positions(channels, 3)) {
      const values = await column(x, channel, size);
      for (const [tap, sum] of weightSums(task, gradient, values).entries()) {
        const at = [Math.floor(tap / window), tap % window] as const;
        const name = `dw[${output}, ${at.join(", ")}, ${channel}]`;
        sum.require(name, found[weightAt(task, output, at, channel)]);
      }
    }
  }
};

const checks: { readonly [M in ConvolutionTask["made"]]: Check } = {
  forward: checkImage("out", meeting),
  dx: checkImage("x", windowsOf),
  dw: checkWeights,
};

/** A kind of windows, with channels and sizes of images that it is timed at. */
const kinds: readonly (readonly [
  Pick<ConvolutionTask, "window" | "stride" | "depthwise">,
  readonly (readonly [channels: number, size: number])[],
])[] = [
  [
    { window: 3, stride: 1, depthwise: false },
    [
      [64, 56],
      [128, 28],
      [256, 28],
      [256, 14],
      [512, 14],
    ],
  ],
  [
    { window: 3, stride: 2, depthwise: false },
    [
      [64, 56],
      [128, 56],
      [256, 28],
      [512, 14],
    ],
  ],
  [
    { window: 1, stride: 1, depthwise: false },
    [
      [64, 56],
      [256, 56],
      [512, 28],
      [512, 14],
    ],
  ],
  [{ window: 1, stride: 2, depthwise: false }, [[256, 56]]],
  [
    { window: 3, stride: 1, depthwise: true },
    [
      [128, 56],
      [256, 28],
      [512, 14],
    ],
  ],
  [
    { window: 3, stride: 2, depthwise: true },
    [
      [128, 56],
      [256, 28],
    ],
  ],
];

/** The parts of the benchmark: cuDNN tries its ways anew for every case, so that all in one would take too long. */
export const convolutionParts: readonly (readonly [string, readonly BenchCase[]])[] = (
  ["forward", "dx", "dw"] as const
).map((made) => [
  `convolution-${made}`,
  kinds.flatMap(([kind, shapes]) =>
    shapes.map(([channels, size]) =>
      convolutionCase({ ...kind, made, images: 64, size, channels }),
    ),
  ),
]);
