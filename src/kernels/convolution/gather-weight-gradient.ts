/**
 * The gradient of the weights, for any sizes and strides: a product for each tap of the window, summed over all positions of the result. With
 * too few blocks the positions are split (split-K), and the partial sums are added in a fixed order afterwards:
 *
 *   dw[o, tap, c] = Σ p   dOut[p, o] · x[p · stride + tap · dilation − before, c]
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import { tensor, cdiv, dim, dot, iota, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import {
  batchSize,
  extentsFrom,
  pixelViews,
  placesFrom,
  readRows,
  weightView,
} from "./gather-implicit-gemm.ts";
import type { ConvolutionProblem, Geometry } from "./problem.ts";
import { View, extentSize } from "./view.ts";

export interface GatherWeightsConfiguration {
  readonly kernel: "gather";
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Parts of the places that are summed apart. */
  readonly parts: number;
}

export interface WeightViews {
  readonly x: View;
  readonly dOut: View;
  /** [part, group, outputs, taps…, channels]; parts lie one after the other, each as w lies. */
  readonly made: View;
}

export function weightViews(geometry: Geometry, parts: number): WeightViews {
  const { x, out } = pixelViews(geometry, "forward", { x: "x", out: "dOut" });
  const weights = weightView("made", geometry);
  const elements = weights.axes.reduce((product, { extent }) => product * extent, 1);
  const part = { name: "part", extent: parts, stride: elements };
  return { x, dOut: out, made: new View("made", [part, ...weights.axes]) };
}

export function gatherWeightsKernel(
  problem: ConvolutionProblem,
  { x, dOut, made }: WeightViews,
  { rows, columns, depth, parts }: GatherWeightsConfiguration,
): KernelDefinition {
  const [, group, outputs, , , , channels] = made.axes;
  if (group === undefined || outputs === undefined || channels === undefined)
    throw new Error("weights have outputs and channels");
  const inResult = extentsFrom(dOut, 1);
  const inX = extentsFrom(x, 1);
  const [tapsDepth, tapsHeight, tapsWidth] = extentsFrom(made, 3);
  const places = multiplySizes(batchSize(dOut), ...inResult);
  const dtype = problem.accumulator;
  const output = parts === 1 ? problem.w.dtype : dtype;
  const precision = problem.precision === undefined ? {} : { precision: problem.precision };
  return kernel(
    {
      name: "convolution_backward_w",
      grid: {
        part: parts,
        own: extentSize(group),
        z: tapsDepth,
        y: tapsHeight,
        tap: tapsWidth,
        i: cdiv(extentSize(outputs), rows),
        j: cdiv(extentSize(channels), columns),
      },
      inputs: { x: x.spec(problem.x.dtype), dOut: dOut.spec(problem.x.dtype) },
      outputs: { made: made.spec(output) },
    },
    ({ part, own, z, y, tap, i, j, ...arrays }) => {
      const at = [z, y, tap] as const;
      const columnsHere = { from: j.mul(columns), size: columns };
      const down = slice(i.mul(rows), rows);
      const steps = cdiv(places, depth * parts);
      const first = part.mul(steps);
      const sums = loop(
        { to: steps, carry: zeros(dtype, [rows, columns]) },
        (step, accumulator) => {
          const from = first.add(step).mul(depth);
          const here = placesFrom(from, depth, inResult);
          const within = iota(dtypes.i32, [depth], { axis: 0 }).add(from).lt(places);
          const where = { taps: at, group: own };
          const right = readRows(
            ...([arrays.x, "forward", problem, here, where, inX, columnsHere] as const),
            within,
          );
          const [depthAt, height, width] = here.spatial;
          const left = arrays.dOut
            .at(here.batch, depthAt, height, width, here.batch.mul(0).add(own), down)
            .load({ where: within.expand({ axis: 1 }) });
          return dot(left.transpose(), right, {
            accumulator,
            dtype,
            ...precision,
          });
        },
      );
      const target = arrays.made.at(part, own, down, ...at, slice(columnsHere.from, columns));
      target.store(sums.cast(output));
    },
  );
}

/** Adds up what parts of the places came to, always in the same order. */
export function sumSplitsKernel(dtype: DType, accumulator: DType, parts: number): KernelDefinition {
  const block = 1024;
  const count = dim("count");
  return kernel(
    {
      name: "convolution_sum_parts",
      grid: { i: cdiv(count, block) },
      inputs: { parts: tensor(accumulator, [parts, count]) },
      outputs: { out: tensor(dtype, [count]) },
    },
    (argument) => {
      const here = slice(argument.i.mul(block), block);
      const sums = loop(
        { from: 1, to: parts, carry: argument.parts.at(0, here).load() },
        (part, sum) => sum.add(argument.parts.at(part, here).load()),
      );
      argument.out.at(here).store(sums.cast(dtype));
    },
  );
}
