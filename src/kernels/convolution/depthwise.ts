/**
 * Depthwise convolutions, where every channel is a group of its own: no product of matrices, but a window of each channel times the
 * few weights of that channel. They are memory-bound, so a thread has some channels of a few rows and reads every row once for all of its taps
 * (`depthwise-block.ts`), and neighbouring threads have neighbouring columns:
 *
 *   forward          out[p, c] = Σ over taps of x[p · stride + tap, c] · w[c, tap]
 *   gradient of x    dx[p, c]  = Σ over taps of dOut[the window that p is this tap of, c] · w[c, tap]
 *
 * Weights are transposed to [taps, channels] first, so that threads read along channels.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { addSizes, floorDivSize, multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, cdiv, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import {
  alignedDimension,
  alignment,
  threadsPerBlock,
  powerOfTwoFrom,
  widestAccess,
} from "../support/sizes.ts";
import { elementsOf, readingsOf, sideShape, windowAt } from "./depthwise-block.ts";
import type { Place, Side } from "./depthwise-block.ts";
import type { Direction } from "./gather-implicit-gemm.ts";
import type { ConvolutionProblem, Geometry, Triple } from "./problem.ts";
import { WindowGrid, tapAt } from "./windows.ts";
import type { Tap } from "./windows.ts";

export interface DepthwiseConfiguration {
  /** Which kernel runs it. */
  readonly kernel: "depthwise";
  /** Threads along the width, and channels of a block. */
  readonly places: number;
  /** Columns of a block's part of the result. */
  readonly columns: number;
  /** Elements of a thread along depth, height and width, for each of its channels. */
  readonly block: Triple;
}

/** Whether every channel is a group, channels are last, and products are made as f32 and f64 are. */
export function isDepthwise(problem: ConvolutionProblem, geometry: Geometry): boolean {
  const { channels, outputs, groups } = geometry;
  return (
    channels === 1 &&
    outputs === 1 &&
    groups > 1 &&
    problem.isLast &&
    problem.stride.reduce((all, stride) => all * stride, 1) <= mostElements &&
    (problem.precision === undefined || problem.precision === "ieee") &&
    [problem.x, problem.w, problem.out].every(({ strides }) => strides === undefined)
  );
}

export function tapCount([depth, height, width]: Triple): number {
  return depth * height * width;
}

/** Elements that a thread may have of one channel, and sums that it may have in all. */
const mostElements = 64;
const mostSums = 64;

/** By how much a block of `size` overhangs an extent, as a factor. */
function overhang(extent: number, size: number): number {
  return (Math.ceil(extent / size) * size) / Math.max(1, extent);
}

/** Places and channels of a block: what overhangs least, and of those what has most channels side by side. */
export function chooseSides(
  channels: number,
  places: number,
  dtype: DType,
  most: number,
): Pick<DepthwiseConfiguration, "places" | "columns"> {
  const wide = (8 * widestAccess) / dtype.bits;
  const each = Math.max(1, Math.min(wide, most, powerOfTwoFrom(channels)));
  const sides = [1, 2, 4, 8, 16].map((factor) => ({
    columns: each * factor,
    places: threadsPerBlock / factor,
  }));
  const cost = ({ columns, places: across }: (typeof sides)[number]): number =>
    overhang(channels, columns) * overhang(places, across);
  return sides.reduce((best, side) => (cost(side) <= cost(best) ? side : best));
}

/** Elements of a row that is one run, of which a thread has as many as it reads at once. */
function chooseRun(
  length: number,
  dtype: DType,
  most: number,
): Pick<DepthwiseConfiguration, "places" | "columns"> {
  const each = Math.max(1, Math.min((8 * widestAccess) / dtype.bits, most));
  return {
    places: 1,
    columns: Math.max(1, Math.min(threadsPerBlock * each, powerOfTwoFrom(length))),
  };
}

/** Reads of a thread that are written out at most. */
const mostReadings = 32;
/** Rows of a thread at most, and elements of one of its channels: more would spill registers. */
const [mostRows, mostOwn] = [7, 8];

/** Rows of a thread: what reads least, counting rows that overhang, with blocks for all processors. */
export function chooseRows(
  { stride, reach, extent, step }: RowChoice,
  isEnough: (rows: number) => boolean,
): number {
  const cost = (rows: number): number =>
    Math.ceil(extent / rows) * ((rows / step - 1) * stride + reach);
  let best = step;
  for (let rows = step; rows <= mostRows; rows += step)
    if (cost(rows) <= cost(best) && isEnough(rows)) best = rows;
  return best;
}

interface RowChoice {
  /** Rows that are read further on for the next `step` rows that are made, and rows read for the first. */
  readonly stride: number;
  readonly reach: number;
  readonly extent: number;
  /** Rows that a block has a multiple of. */
  readonly step: number;
}

export function chooseDepthwise(
  { stride, dilation }: ConvolutionProblem,
  direction: Direction,
  { batch, groups, input, output, taps }: Geometry,
  dtype: DType,
  processors: number,
): DepthwiseConfiguration {
  const isForward = direction === "forward";
  const made = isForward ? output : input;
  const [deep, step, across] = isForward ? [1, 1, 1] : stride;
  const few = deep * step * across;
  const sides =
    stride[2] === 1
      ? chooseRun(made[2] * groups, dtype, mostSums / powerOfTwoFrom(few))
      : chooseSides(groups, Math.ceil(made[2] / across), dtype, mostSums / powerOfTwoFrom(few));
  const blocks =
    batch *
    Math.ceil(made[0] / deep) *
    (sides.places === 1
      ? Math.ceil((made[2] * groups) / sides.columns)
      : Math.ceil(Math.ceil(made[2] / across) / sides.places) * Math.ceil(groups / sides.columns));
  const reach = dilation[1] * (taps[1] - 1) + 1;
  const isShared = tapCount(taps) <= mostTaps;
  const rows = chooseRows(
    {
      ...{ extent: made[1], step },
      ...(isForward ? { stride: stride[1], reach } : { stride: 1, reach: Math.ceil(reach / step) }),
    },
    (each) =>
      deep * each * across <= (isShared ? mostOwn : mostOwn / 4) &&
      taps[2] * (isShared ? (each / step - 1) * (isForward ? stride[1] : 1) + reach : each) <=
        mostReadings &&
      blocks * Math.ceil(made[1] / each) >= blocksPerProcessor * processors,
  );
  return { kernel: "depthwise", ...sides, block: [deep, rows, across] };
}

/** Blocks of a processor. */
export const blocksPerProcessor = 3;

/** Values of the dimensions that the kernels declare. */
export function depthwiseDimensions({ batch, groups, input, output }: Geometry) {
  const [[inputDepth, inputHeight, inputWidth], [depth, height, width]] = [input, output];
  return {
    ...{ outer: batch, inner: groups },
    ...{ input_depth: inputDepth, input_height: inputHeight, input_width: inputWidth },
    ...{ output_depth: depth, output_height: height, output_width: width },
  };
}

/** Both sides of a convolution; gradients of x read the result's. */
export function gridsOf(direction: Direction, { batch, groups, input, output }: Geometry) {
  const x = new WindowGrid("input", { outer: batch, spatial: input, inner: groups });
  const out = new WindowGrid("output", { outer: batch, spatial: output, inner: groups });
  return direction === "forward" ? { from: x, to: out } : { from: out, to: x };
}

/** How a block sees an array whose threads lie apart, or side by side. */
export function sideOf(
  grid: WindowGrid,
  between: number,
  [, , width]: Triple,
  areTapsKnown: boolean,
): Side {
  if (between === 1) return { grid, between, by: "columns" };
  return { grid, between, by: areTapsKnown && width % between === 0 ? "groups" : "numbers" };
}

/**
 * Weights by taps: [channels, taps] to [taps, channels], which begin anew for blocks that go from the last channel of a column to the first
 * of the next.
 */
export function transposeWeightsKernel(
  dtype: DType,
  taps: number,
  channels: number,
  repeated: number,
): KernelDefinition {
  const inner = alignedDimension("inner", channels);
  const length = addSizes(inner, repeated);
  return kernel(
    {
      name: "depthwise_weights",
      grid: { tap: taps, i: cdiv(length, threadsPerBlock) },
      inputs: { w: tensor(dtype, [inner, taps]) },
      outputs: { turned: tensor(dtype, [taps, length]) },
    },
    ({ tap, i, w, turned }) => {
      followPrevious();
      const number = iota(dtypes.i32, [threadsPerBlock], { axis: 0 }).add(i.mul(threadsPerBlock));
      const channel = number.rem(inner);
      turned
        .at(tap, slice(i.mul(threadsPerBlock), threadsPerBlock))
        .store(w.at(channel, tap).load());
    },
  );
}

/** Elements by which turned weights are repeated. */
export function repeatedWeights({ places, columns }: DepthwiseConfiguration): number {
  return places === 1 ? columns : 0;
}

/** What the kernels depend on besides their configuration. */
export function depthwiseText(
  { stride }: ConvolutionProblem,
  { groups, taps, input, output }: Geometry,
): string {
  const known = [...input, ...output].map((extent) => extent === 1);
  const isWhole = input[2] % stride[2] === 0;
  return JSON.stringify([alignment(groups), groups === 1, taps, known, isWhole]);
}

/** Taps whose weights a thread keeps, which are then written out. */
export const mostTaps = 12;

/** Taps of which a loop goes through a row at a time, or one where rows are long. */
function tapsAtOnce([, , width]: Triple): number {
  return width <= mostTaps ? width : 1;
}

/** Goes through the taps: all at once where they are few. */
function overTapGroups(
  taps: Triple,
  start: readonly Tile<"f32">[],
  body: (
    taps: readonly Tap[],
    numbers: readonly Place[],
    before: readonly Tile<"f32">[],
  ) => readonly Tile<"f32">[],
): readonly Tile<"f32">[] {
  const count = tapCount(taps);
  const numbers = Array.from({ length: count }, (_, number) => number);
  if (count <= mostTaps)
    return body(
      numbers.map((number) => tapAt(taps, number)),
      numbers,
      start,
    );
  const together = tapsAtOnce(taps);
  return loop({ to: count / together, carry: [...start] }, (row, carry) => {
    const own = Array.from({ length: together }, (_, column) => row.mul(together).add(column));
    const [depth, height] = [row.div(taps[1]), row.rem(taps[1])];
    const of = own.map((number, column): Tap =>
      together === 1 ? tapAt(taps, number) : [depth, height, column],
    );
    return [...body(of, own, carry)];
  });
}

/** What the kernel is called with: where the block begins, and arrays. */
interface Arguments {
  readonly outer: Scalar<"i32">;
  readonly z: Scalar<"i32">;
  readonly y: Scalar<"i32">;
  readonly x: Scalar<"i32">;
  readonly part: Scalar<"i32">;
  readonly read: Ref;
  readonly turned: Ref;
  readonly made: Ref;
}

export function found<T>(list: readonly T[], index: number): T {
  const item = list[index];
  if (item === undefined) throw new Error("there is no such item");
  return item;
}

/** How the kernel sees both of its arrays, and what a row of the made one has for blocks: elements in a run, and groups of columns. */
function sidesOf(
  { stride }: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  { places, block }: DepthwiseConfiguration,
) {
  const isForward = direction === "forward";
  const { input, output, taps } = geometry;
  const { from, to } = gridsOf(direction, geometry);
  const [, , across] = block;
  const width = to.spatial[2] ?? 1;
  if (places === 1)
    return {
      source: { grid: from, between: 1, by: "flat" },
      target: { grid: to, between: 1, by: "flat" },
      run: multiplySizes(width, to.inner),
      groups: 1,
    } as const;
  const isKnown = tapCount(taps) <= mostTaps || tapsAtOnce(taps) > 1;
  return {
    source: isForward ? sideOf(from, stride[2], input, isKnown) : sideOf(from, 1, output, isKnown),
    target: sideOf(to, across, isForward ? output : input, true),
    run: to.inner,
    groups: cdiv(width, across),
  } as const;
}

/** Where the weights of a block begin: at its first channel, which is a multiple of what all channels are. */
function weightsFrom(
  part: Scalar<"i32">,
  { places, columns }: DepthwiseConfiguration,
  channels: number,
  inner: Size,
): Scalar<"i32"> {
  if (places > 1) return part.mul(columns);
  const aligned = Math.min(columns, alignment(channels));
  return part
    .mul(columns / aligned)
    .rem(floorDivSize(inner, aligned))
    .mul(aligned);
}

/** Arrays: `read`, x or the gradient of the result; `turned`, the weights; `made`. */
export function depthwiseKernel(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  configuration: DepthwiseConfiguration,
): KernelDefinition {
  const { places, columns, block } = configuration;
  const isForward = direction === "forward";
  const { source, target, run, groups } = sidesOf(problem, direction, geometry, configuration);
  const { spatial, inner, outer } = target.grid;
  const [depth = 1, height = 1] = spatial;
  const [deep, rows] = block;
  const compute = problem.accumulator as DType<"f32">;
  const made = isForward ? problem.out.dtype : problem.x.dtype;
  const length = addSizes(inner, repeatedWeights(configuration));
  return kernel(
    {
      name: isForward ? "depthwise_convolution" : "depthwise_convolution_backward",
      minBlocksPerMultiprocessor: blocksPerProcessor,
      grid: {
        ...{ outer, z: cdiv(depth, deep), y: cdiv(height, rows) },
        ...{ x: cdiv(groups, places), part: cdiv(run, columns) },
      },
      inputs: {
        read: tensor(problem.x.dtype, sideShape(source)),
        turned: tensor(problem.w.dtype, [tapCount(geometry.taps), length]),
      },
      outputs: { made: tensor(made, sideShape(target)) },
    },
    (given) => {
      const { z, y, x, part, ...arrays } = given as unknown as Arguments;
      followPrevious();
      const channel = part.mul(columns);
      const common = { outer: arrays.outer, group: x.mul(places), channel, places, columns };
      const start = {
        ...common,
        plane: z.mul(isForward ? problem.stride[0] : 1),
        row: y.mul(isForward ? rows * problem.stride[1] : rows / problem.stride[1]),
      };
      const end = { ...common, plane: z.mul(deep), row: y.mul(rows) };
      const first = weightsFrom(part, configuration, geometry.groups, inner);
      const weightOf = (number: Place): Tile<"f32"> => {
        const own = arrays.turned.at(number, slice(first, columns)).load().cast(compute);
        return own.reshape([1, 1, 1, columns]);
      };
      const elements = elementsOf(block);
      const zeros = elements.map((): Tile<"f32"> => full(compute, [1, 1, places, columns], 0));
      const sums = overTapGroups(geometry.taps, zeros, (taps, numbers, before) => {
        const weights = numbers.map(weightOf);
        const after = [...before];
        for (const { spot, uses } of readingsOf(problem, direction, elements, taps)) {
          const { window, options } = windowAt(arrays.read, source, start, spot);
          const own = window.load(options).cast(compute);
          for (const { element, tap } of uses)
            after[element] = own.fma(found(weights, tap), found(after, element));
        }
        return after;
      });
      for (const [index, element] of elements.entries()) {
        const { window, options } = windowAt(arrays.made, target, end, { at: element });
        window.store(found(sums, index).cast(made) as never, options);
      }
    },
  ) as unknown as KernelDefinition;
}
