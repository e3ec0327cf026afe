/**
 * Depthwise convolutions, where every channel is a group of its own: no product of matrices, but a window of each channel times the
 * few weights of that channel. Memory bounds them, so a block has some places and some channels side by side, and
 * goes through the taps; what neighbours read again comes from the cache.
 *
 *   forward          out[p, c] = Σ over taps of x[p · stride + tap, c] · w[c, tap]
 *   gradient of x    dx[p, c]  = Σ over taps of dOut[the window that p is this tap of, c] · w[c, tap]
 *   gradient of w    dw[c, tap] = Σ over places of x[p · stride + tap, c] · dOut[p, c]      parts of the places, then their sum
 *
 * Weights are turned to [taps, channels] first, and sums of the gradient of w are turned back, so that lanes read along channels.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { array, cdiv, constant, full, iota, kernel, loop, slice, when } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import {
  alignedDimension,
  alignment,
  lanes,
  powerOfTwoFrom,
  widestAccess,
} from "../support/sizes.ts";
import type { Direction } from "./gathered.ts";
import type { ConvolutionProblem, Geometry, Triple } from "./problem.ts";
import { WindowGrid, overTaps, source, tapAt, windowsOf } from "./windows.ts";
import type { FiveExtents } from "./windows.ts";

const { i32 } = dtypes;

export interface DepthwiseConfiguration {
  readonly kernel: "depthwise";
  /** Elements of a block: places, and channels. */
  readonly places: number;
  readonly columns: number;
}

export interface DepthwiseWeightsConfiguration extends DepthwiseConfiguration {
  /** Parts of the places, whose sums a second launch adds up. */
  readonly parts: number;
  /** Taps whose sums a block makes. */
  readonly taps: number;
}

/** Whether every channel is a group, channels are last, and products are made as f32 and f64 are. */
export function isDepthwise(problem: ConvolutionProblem, geometry: Geometry): boolean {
  const { channels, outputs, groups } = geometry;
  return (
    channels === 1 &&
    outputs === 1 &&
    groups > 1 &&
    problem.isLast &&
    (problem.precision === undefined || problem.precision === "ieee") &&
    [problem.x, problem.w, problem.out].every(({ strides }) => strides === undefined)
  );
}

export function tapCount([depth, height, width]: Triple): number {
  return depth * height * width;
}

/** Channels of a block: as many as lie side by side, but for what would overhang. */
function columnsFor(channels: number, dtype: DType): number {
  const wide = (8 * widestAccess) / dtype.bits;
  const overhang = (columns: number): number => Math.ceil(channels / columns) * columns - channels;
  const most = Math.min(powerOfTwoFrom(channels), 8 * wide);
  let columns = most;
  while (columns > 2 * wide && overhang(columns) > channels / 8) columns /= 2;
  return columns;
}

export function chooseDepthwise({ groups }: Geometry, dtype: DType): DepthwiseConfiguration {
  const columns = columnsFor(groups, dtype);
  const each = Math.min((8 * widestAccess) / dtype.bits, Math.max(2, columns));
  return { kernel: "depthwise", columns, places: Math.max(1, (2 * lanes * each) / columns) };
}

/** Taps whose sums a block holds at most. */
const mostTaps = 12;
/** Blocks of a processor. */
const blocksPerProcessor = 4;
/** Steps that a part has at least. */
const leastSteps = 8;

export function chooseDepthwiseWeights(
  { groups, taps, batch, output }: Geometry,
  { x, accumulator }: Pick<ConvolutionProblem, "x" | "accumulator">,
  processors: number,
): DepthwiseWeightsConfiguration {
  const columns = columnsFor(groups, x.dtype);
  const each = (8 * widestAccess) / Math.max(x.dtype.bits, accumulator.bits / 2);
  const tapGroups = Math.ceil(tapCount(taps) / mostTaps);
  const places = Math.max(1, (lanes * each) / columns);
  const steps = Math.ceil((batch * output[0] * output[1] * output[2]) / places);
  const blocks = Math.ceil(groups / columns) * tapGroups;
  const wanted = Math.floor((blocksPerProcessor * processors) / blocks);
  const parts = Math.max(1, Math.min(wanted, Math.floor(steps / leastSteps)));
  return {
    kernel: "depthwise",
    columns,
    places,
    parts,
    taps: Math.ceil(tapCount(taps) / tapGroups),
  };
}

function extentsOf({ batch, groups }: Geometry, spatial: Triple): FiveExtents {
  return { outer: batch, spatial, inner: groups };
}

/** Arrays as the kernels declare them, for the sizes of a launch. */
export function depthwiseShapes(geometry: Geometry) {
  const { batch, groups, input, output } = geometry;
  return {
    input: [batch, ...input, groups],
    output: [batch, ...output, groups],
    weights: [groups, tapCount(geometry.taps)],
    turned: [tapCount(geometry.taps), groups],
  };
}

/** Weights by taps: [channels, taps] to [taps, channels], or sums of parts of these back. */
export function turnWeightsKernel(dtype: DType, taps: number, channels: number): KernelDefinition {
  const inner = alignedDimension("inner", channels);
  return kernel(
    {
      name: "depthwise_weights",
      grid: { i: cdiv(inner, lanes) },
      inputs: { w: array(dtype, [inner, taps]) },
      outputs: { turned: array(dtype, [taps, inner]) },
    },
    ({ i, w, turned }) => {
      const here = slice(i.mul(lanes), lanes);
      for (let tap = 0; tap < taps; tap += 1) turned.at(tap, here).store(w.at(here, tap).load());
    },
  ) as unknown as KernelDefinition;
}

/** What the kernels depend on besides their configuration. */
export function depthwiseText({ groups, taps, input, output }: Geometry): string {
  const known = [...input, ...output].map((extent) => extent === 1);
  return JSON.stringify([alignment(groups), groups === 1, taps, known]);
}

/** Arrays: `read`, x or the gradient of the result; `turned`, the weights; `made`. */
export function depthwiseKernel(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  { places, columns }: DepthwiseConfiguration,
): KernelDefinition {
  const isForward = direction === "forward";
  const [input, output] = [geometry.input, geometry.output].map((spatial) =>
    extentsOf(geometry, spatial),
  );
  if (input === undefined || output === undefined) throw new Error("a convolution has two sides");
  const [ofInput, ofOutput] = [new WindowGrid("input", input), new WindowGrid("output", output)];
  const [from, to] = isForward ? [ofInput, ofOutput] : [ofOutput, ofInput];
  const { dtype } = problem.x;
  const compute = problem.accumulator as DType<"f32">;
  return kernel(
    {
      name: isForward ? "depthwise_convolution" : "depthwise_convolution_backward",
      grid: { tile: cdiv(to.places, places), part: cdiv(to.inner, columns) },
      inputs: {
        read: array(dtype, from.shape),
        turned: array(dtype, [tapCount(geometry.taps), to.inner]),
      },
      outputs: { made: array(isForward ? problem.out.dtype : dtype, to.shape) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const [tile, part] = [argument["tile"], argument["part"]] as [Scalar<"i32">, Scalar<"i32">];
      const numbers = iota(i32, [places], 0).add(tile.mul(places));
      const [outer, ...at] = to.coordinates(numbers);
      const isPlace = numbers.lt(to.places as never);
      const inner = slice(part.mul(columns), columns);
      const [rows, turned] = [from.rows(argument["read"] as Ref), argument["turned"] as Ref];
      const start = { sum: full(compute, [places, columns], 0) };
      const { sum } = overTaps(geometry.taps, start, (tap, number, carry) => {
        const spot = isForward
          ? sourceOf(problem, at, tap, from)
          : windowsOf(problem, at, tap, from);
        const where = spot.isIn.and(isPlace).expand(1);
        const own = rows.at(from.row(outer, spot.windows), inner).load({ where }).cast(compute);
        const weight = turned.at(number, inner).load().cast(compute).expand(0);
        return { sum: own.fma(weight, carry.sum) };
      });
      const target = to.rows(argument["made"] as Ref);
      target
        .at(slice(tile.mul(places), places), inner)
        .store(sum.cast(isForward ? problem.out.dtype : dtype));
    },
  ) as unknown as KernelDefinition;
}

function sourceOf(
  problem: ConvolutionProblem,
  at: readonly Tile<"i32">[],
  tap: Parameters<typeof source>[2],
  from: WindowGrid,
) {
  const windows = source(problem, at, tap);
  return { windows, isIn: from.isIn(windows) };
}

/** Arrays: x, dOut, and `sums`, [parts, taps, channels]. */
export function depthwiseWeightsKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  { places, columns, parts, taps }: DepthwiseWeightsConfiguration,
): KernelDefinition {
  const from = new WindowGrid("input", extentsOf(geometry, geometry.input));
  const to = new WindowGrid("output", extentsOf(geometry, geometry.output));
  const { dtype } = problem.x;
  const compute = problem.accumulator as DType<"f32">;
  const all = tapCount(geometry.taps);
  return kernel(
    {
      name: "depthwise_weights_gradient",
      grid: { part: parts, group: cdiv(to.inner, columns), few: Math.ceil(all / taps) },
      inputs: { x: array(dtype, from.shape), dOut: array(dtype, to.shape) },
      outputs: { sums: array(compute, [parts, all, to.inner]) },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const [part, group, few] = ["part", "group", "few"].map((name) => argument[name]) as [
        Scalar<"i32">,
        Scalar<"i32">,
        Scalar<"i32">,
      ];
      const inner = slice(group.mul(columns), columns);
      const [x, dOut] = [from.rows(argument["x"] as Ref), to.rows(argument["dOut"] as Ref)];
      const steps = constant(i32, 0).add(cdiv(to.places, places) as never);
      const own = Array.from({ length: taps }, (_, tap) =>
        taps === all ? tap : few.mul(taps).add(tap),
      );
      const carry = own.map((): Tile<"f32"> => full(compute, [places, columns], 0));
      const end = loop({ from: part, to: steps, step: parts, carry }, (step, sums) => {
        const numbers = iota(i32, [places], 0).add(step.mul(places));
        const [outer, ...at] = to.coordinates(numbers);
        const isPlace = numbers.lt(to.places as never);
        const slope = dOut
          .at(slice(step.mul(places), places), inner)
          .load()
          .cast(compute);
        return own.map((number, index) => {
          const spot = sourceOf(problem, at, tapAt(geometry.taps, number), from);
          const where = spot.isIn.and(isPlace).expand(1);
          const read = x.at(from.row(outer, spot.windows), inner).load({ where }).cast(compute);
          const sum = sums[index];
          if (sum === undefined) throw new Error("every tap has a sum");
          return read.fma(slope, sum);
        });
      });
      for (const [index, number] of own.entries()) {
        const store = (): void => {
          const sum = end[index];
          if (sum !== undefined)
            (argument["sums"] as Ref).at(part, number, inner).store(sum.sum(0));
        };
        if (typeof number === "number") store();
        else when(number.lt(all), store);
      }
    },
  ) as unknown as KernelDefinition;
}

/** Elements of a lane of the launch that adds up. */
const addedPerLane = 64;

/** The sums of all parts, by channels: [parts, taps, channels] to [channels, taps]. */
export function addWeightsKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  parts: number,
): KernelDefinition {
  const inner = alignedDimension("inner", geometry.groups);
  const taps = tapCount(geometry.taps);
  const rows = powerOfTwoFrom(parts);
  const columns = Math.max(
    1,
    Math.min((lanes * addedPerLane) / rows, powerOfTwoFrom(geometry.groups)),
  );
  return kernel(
    {
      name: "depthwise_weights_sum",
      grid: { tap: taps, i: cdiv(inner, columns) },
      inputs: { sums: array(problem.accumulator, [parts, taps, inner]) },
      outputs: { dw: array(problem.w.dtype, [inner, taps]) },
    },
    ({ tap, i, sums, dw }) => {
      const here = slice(i.mul(columns), columns);
      const all = sums.at(slice(0, rows), tap, here).load() as Tile<"f32">;
      dw.at(here, tap).store(all.sum(0).cast(problem.w.dtype));
    },
  ) as unknown as KernelDefinition;
}
