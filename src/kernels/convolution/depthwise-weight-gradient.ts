/**
 * The gradient of the weights of a depthwise convolution:
 *
 *   dw[c, tap] = Σ over places of x[p · stride + tap, c] · dOut[p, c]
 *
 * Strips of a few rows and the columns of a block are assigned to splits, whose threads keep a sum for every tap. A second launch adds up the
 * partial sums in order, and transposes [taps, channels] to [channels, taps].
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { tensor, cdiv, constant, full, kernel, loop, slice, when } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { alignedDimension, threadsPerBlock, powerOfTwoFrom } from "../support/sizes.ts";
import { elementsOf, readingsOf, sideShape, windowAt } from "./depthwise-block.ts";
import type { Place } from "./depthwise-block.ts";
import {
  blocksPerProcessor,
  chooseRows,
  chooseSides,
  found,
  gridsOf,
  mostTaps,
  sideOf,
  tapCount,
} from "./depthwise.ts";
import type { DepthwiseConfiguration } from "./depthwise.ts";
import type { ConvolutionProblem, Geometry } from "./problem.ts";
import { tapAt } from "./windows.ts";

const { i32 } = dtypes;

export interface DepthwiseWeightsConfiguration extends DepthwiseConfiguration {
  /** Parts of the places, whose sums a second launch adds up. */
  readonly parts: number;
  /** Taps whose sums a block makes. */
  readonly taps: number;
}

/** Strips that a part has at least. */
const leastStrips = 4;
/** Rows of a strip at most: their slopes are kept beside the sums. Rows that lie apart share little, and would spill some. */
function mostStripRows(stride: number): number {
  return stride === 1 ? 3 : 1;
}

export function chooseDepthwiseWeights(
  { groups, taps, batch, output }: Geometry,
  { x, accumulator, stride, dilation }: ConvolutionProblem,
  processors: number,
): DepthwiseWeightsConfiguration {
  const tapGroups = Math.ceil(tapCount(taps) / mostTaps);
  const sides = chooseSides(groups, output[2], x.dtype, accumulator.bits === 64 ? 1 : 8);
  const reach = dilation[1] * (taps[1] - 1) + 1;
  const rows = chooseRows(
    { stride: stride[1], reach, extent: output[1], step: 1 },
    (each) => tapGroups === 1 && each <= mostStripRows(stride[1]),
  );
  const strips =
    batch * output[0] * Math.ceil(output[1] / rows) * Math.ceil(output[2] / sides.places);
  const blocks = Math.ceil(groups / sides.columns) * tapGroups;
  const wanted = Math.floor((blocksPerProcessor * processors) / blocks);
  const parts = Math.max(1, Math.min(wanted, Math.floor(strips / leastStrips)));
  return {
    kernel: "depthwise",
    ...sides,
    block: [1, rows, 1],
    parts,
    taps: Math.ceil(tapCount(taps) / tapGroups),
  };
}

/** Where a strip begins in the result, from its number. */
function stripStart(
  number: Scalar<"i32">,
  [depth, height, width]: readonly (ReturnType<typeof cdiv> | number)[],
) {
  const split = (
    given: Scalar<"i32">,
    by: typeof depth,
  ): readonly [Scalar<"i32">, Scalar<"i32">] => {
    const above = given.div(by as never);
    return [above, given.sub(above.mul(by as never))];
  };
  const [overWidth, x] = split(number, width);
  const [overHeight, y] = split(overWidth, height);
  const [outer, z] = split(overHeight, depth);
  return { outer, at: [z, y, x] as const };
}

interface Arguments {
  readonly part: Scalar<"i32">;
  readonly group: Scalar<"i32">;
  readonly few: Scalar<"i32">;
  readonly x: Ref;
  readonly dOut: Ref;
  readonly sums: Ref;
}

/** Arrays: x, dOut, and `sums`, [parts, taps, channels]. */
export function depthwiseWeightsKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  { places, columns, block, parts, taps }: DepthwiseWeightsConfiguration,
): KernelDefinition {
  const { from, to } = gridsOf("forward", geometry);
  const { dtype } = problem.x;
  const compute = problem.accumulator as DType<"f32">;
  const all = tapCount(geometry.taps);
  const [depth = 1, height = 1, width = 1] = to.spatial;
  const strips = [depth, cdiv(height, block[1]), cdiv(width, places)] as const;
  const elements = elementsOf(block);
  const ofX = sideOf(from, problem.stride[2], geometry.input, taps === all);
  const ofOut = sideOf(to, 1, geometry.output, true);
  return kernel(
    {
      name: "depthwise_weights_gradient",
      minBlocksPerMultiprocessor: blocksPerProcessor,
      grid: { group: cdiv(to.inner, columns), few: Math.ceil(all / taps), part: parts },
      inputs: { x: tensor(dtype, sideShape(ofX)), dOut: tensor(dtype, sideShape(ofOut)) },
      outputs: { sums: tensor(compute, [parts, all, to.inner]) },
    },
    (given) => {
      const { part, group, few, x, dOut, sums } = given as unknown as Arguments;
      followPrevious();
      const channel = group.mul(columns);
      const count = strips.reduce(
        (product, each) => product.mul(each as never),
        constant(i32, 1).mul(to.outer as never),
      );
      const numbers = Array.from({ length: taps }, (_, tap): Place =>
        taps === all ? tap : few.mul(taps).add(tap),
      );
      const readings = readingsOf(
        problem,
        "forward",
        elements,
        numbers.map((number) => tapAt(geometry.taps, number)),
      );
      const carry = numbers.map((): Tile<"f32"> => full(compute, [1, 1, places, columns], 0));
      const end = loop({ from: part, to: count, step: parts, carry }, (strip, before) => {
        const { outer, at } = stripStart(strip, strips);
        const [plane, row, across] = at;
        const common = { outer, group: across.mul(places), channel, places, columns };
        const target = { ...common, plane, row: row.mul(block[1]) };
        const source = {
          ...common,
          plane: plane.mul(problem.stride[0]),
          row: row.mul(block[1] * problem.stride[1]),
        };
        const slopes = elements.map((at) =>
          windowAt(dOut, ofOut, target, { at }).window.load().cast(compute),
        );
        const after = [...before];
        for (const { spot, uses } of readings) {
          const { window, options } = windowAt(x, ofX, source, spot);
          const own = window.load(options).cast(compute);
          for (const { element, tap } of uses)
            after[tap] = own.fma(found(slopes, element), found(after, tap));
        }
        return after;
      });
      for (const [index, number] of numbers.entries()) {
        const store = (): void => {
          const sum = found(end, index).reshape([places, columns]).sum({ axis: 0 });
          sums.at(part, number, slice(channel, columns)).store(sum as never);
        };
        if (typeof number === "number") store();
        else when(number.lt(all), store);
      }
    },
  ) as unknown as KernelDefinition;
}

/** Elements of a thread of the launch that adds up. */
const partialsPerThread = 64;

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
    Math.min((threadsPerBlock * partialsPerThread) / rows, powerOfTwoFrom(geometry.groups)),
  );
  return kernel(
    {
      name: "depthwise_weights_sum",
      grid: { tap: taps, i: cdiv(inner, columns) },
      inputs: { sums: tensor(problem.accumulator, [parts, taps, inner]) },
      outputs: { dw: tensor(problem.w.dtype, [inner, taps]) },
    },
    ({ tap, i, sums, dw }) => {
      followPrevious();
      const here = slice(i.mul(columns), columns);
      const all = sums.at(slice(0, rows), tap, here).load();
      dw.at(here, tap).store(all.sum({ axis: 0 }).cast(problem.w.dtype));
    },
  );
}
