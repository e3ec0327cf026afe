/**
 * The kernels of histograms. Counts are integers, which may be added in any order: a block counts in shared memory and adds its counts to the result
 * atomically; with too many bins for shared memory, elements are added to the result directly. Sums of weights depend on the order, so each
 * thread of a block, which is a single warp, has private bins and adds in order; then the bins of threads are added, then those of blocks:
 *
 *   thread 0    element 0, 32, 64, …      its own bins   ┐
 *   thread 1    element 1, 33, 65, …      its own bins   ├ a block's bins, added thread by thread ──▶ parts[block] ──▶ out
 *   …                                                  ┘
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  tensor,
  assert,
  cdiv,
  dim,
  full,
  iota,
  kernel,
  loop,
  slice,
  smem,
  zeros,
} from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition } from "../../lang/index.ts";
import { computed } from "../support/numbers.ts";
import { threadsPerBlock, powerOfTwoFrom } from "../support/sizes.ts";
import type { Binning } from "./binning.ts";

const { i32 } = dtypes;

export interface HistogramForm {
  readonly name: string;
  readonly dtype: DType;
  readonly bins: number;
  readonly binning: Binning;
  readonly edges: TensorSpec | undefined;
}

/** Elements that a block takes at a time. */
export const span = 8 * threadsPerBlock;

/** Bins that fit in the shared memory of a block. */
export const mostShared = 8192;

const [count, blocks] = [dim("count"), dim("blocks")];

function edgesOf({ edges, bins }: HistogramForm): { readonly edges?: TensorSpec } {
  return edges === undefined ? {} : { edges: tensor(edges.dtype, [bins + 1]) };
}

/** Arrays: x [count], edges where there are such, and out, which is added to. */
export function countKernel(form: HistogramForm): KernelDefinition {
  const { name, dtype, bins, binning } = form;
  const shared = bins <= mostShared;
  const width = shared ? powerOfTwoFrom(bins) : 1;
  return kernel(
    {
      name,
      grid: { block: blocks },
      inputs: { x: tensor(dtype, [count]), ...edgesOf(form) },
      inouts: { out: tensor(i32, [bins]) },
      scratch: { counts: smem(i32, [width]) },
    },
    ({ block, x, out, counts, ...given }) => {
      const { edges } = given;
      if (shared) counts.store(zeros(i32, [width]));
      const ones = full(i32, [span], 1);
      loop({ from: block, to: cdiv(count, span), step: blocks }, (piece) => {
        const start = piece.mul(span);
        const { bin, isIn } = binning(x.at(slice(start, span)).load(), bins, edges);
        const where = isIn.and(iota(i32, [span], { axis: 0 }).add(start).lt(count));
        (shared ? counts : out).at(bin).atomicAdd(ones, { where });
      });
      if (shared) out.at(slice(0, width)).atomicAdd(counts.load());
    },
  );
}

/** Elements of a thread at a time. */
const items = 8;

/** Elements that a block of weights takes at a time. */
export const weighedSpan = 32 * items;

/** Bytes of shared memory for the bins of a block's threads. */
const mostBytes = 2 ** 17;

/** Bins of weights that fit in shared memory 32 times. */
export function mostWeighed(compute: DType): number {
  return mostBytes / (32 * (compute.bits / 8));
}

/** Arrays: x and weights [count], edges where there are such, and parts [blocks, bins]. */
export function weighKernel(
  form: HistogramForm,
  weights: DType,
  compute: DType<"f32">,
): KernelDefinition {
  const { name, dtype, bins, binning } = form;
  const width = powerOfTwoFrom(bins);
  return kernel(
    {
      name: `${name}_weighed`,
      grid: { block: blocks },
      warps: 1,
      inputs: { x: tensor(dtype, [count]), weights: tensor(weights, [count]), ...edgesOf(form) },
      outputs: { parts: tensor(compute, [blocks, bins]) },
      scratch: { sums: smem(compute, [32, width]) },
    },
    ({ block, x, weights: given, parts, sums, ...more }) => {
      const { edges } = more;
      sums.store(zeros(compute, [32, width]));
      const lane = iota(i32, [32], { axis: 0 });
      loop({ from: block, to: cdiv(count, weighedSpan), step: blocks }, (piece) => {
        for (let item = 0; item < items; item += 1) {
          const start = piece.mul(weighedSpan).add(32 * item);
          const here = slice(start, 32);
          const { bin, isIn } = binning(x.at(here).load(), bins, edges);
          const where = isIn.and(lane.add(start).lt(count));
          const own = sums.at(lane, bin);
          own.store(own.load().add(computed(given.at(here).load(), compute)), { where });
        }
      });
      parts.at(block, slice(0, width)).store(sums.load().sum({ axis: 0 }));
    },
  );
}

/** Arrays: x [count], edges where there are such, and out [count]: the bin of each element, or −1. */
export function binKernel(form: HistogramForm): KernelDefinition {
  const { name, dtype, bins, binning } = form;
  return kernel(
    {
      name: `${name}_bins`,
      grid: { i: cdiv(count, span) },
      inputs: { x: tensor(dtype, [count]), ...edgesOf(form) },
      outputs: { out: tensor(i32, [count]) },
    },
    ({ i, x, out, ...given }) => {
      const { edges } = given;
      const here = slice(i.mul(span), span);
      const { bin, isIn } = binning(x.at(here).load(), bins, edges);
      out.at(here).store(isIn.select(bin, full(i32, [1], -1)));
    },
  );
}

/** Edges that a block finds. */
const edgesEach = 8 * threadsPerBlock;

/**
 * Arrays: the least and the greatest element [1], and edges [bins + 1], all as far apart. As in NumPy, elements that are all equal are
 * in the middle of bins that are 1 wide together, and no elements have bins from 0 to 1; a range has to end.
 */
export function edgesKernel(dtype: DType, out: DType, bins: number): KernelDefinition {
  const { f64 } = dtypes;
  return kernel(
    {
      name: "histogram_edges",
      grid: { i: cdiv(bins + 1, edgesEach) },
      inputs: { least: tensor(dtype, [1]), greatest: tensor(dtype, [1]) },
      outputs: { edges: tensor(out, [bins + 1]) },
    },
    ({ i, least, greatest, edges }) => {
      const [low, high] = [least.load().cast(f64), greatest.load().cast(f64)];
      // Nothing has been found where the least is greater than the greatest.
      const [isNothing, isOne] = [low.gt(high), low.eq(high)];
      assert(
        isNothing.or(low.abs().lt(Infinity).and(high.abs().lt(Infinity))),
        "the least and the greatest element of a histogram without a range are finite",
      );
      const end = (own: typeof low, apart: number, nothing: number) =>
        isNothing.select(full(f64, [1], nothing), isOne.select(own.add(apart), own));
      const [first, last] = [end(low, -0.5, 0), end(high, 0.5, 1)];
      const width = last.sub(first).div(bins);
      const number = iota(i32, [edgesEach], { axis: 0 }).add(i.mul(edgesEach));
      const between = number.cast(f64).mul(width).add(first);
      const edge = number.eq(bins).select(last, between);
      edges.at(slice(i.mul(edgesEach), edgesEach)).store(edge.cast(out));
    },
  );
}
