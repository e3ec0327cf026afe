/**
 * Which bin an element falls into. Bins are half open, but for the last, which has both of its ends; what is in none, and NaN, is left out:
 *
 *   by range     4 bins from 0 to 4       [0, 1) [1, 2) [2, 3) [3, 4]
 *   by edges     0 1 10 100               [0, 1) [1, 10) [10, 100]
 *   by number    whole numbers below 4    0 1 2 3
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { full, loop, zeros } from "../../lang/index.ts";
import type { Ref, Tile } from "../../lang/index.ts";
import { searchSteps } from "../sort/search-sorted.ts";
import { computed } from "../support/numbers.ts";

export interface Binned {
  /** From 0 to bins − 1, whatever the element. */
  readonly bin: Tile<"i32">;
  readonly isIn: Tile<"bool">;
}

/** Finds the bins of a tile of one axis; edges are an array of the kernel, where there are such. */
export type Binning = (x: Tile, bins: number, edges: Ref | undefined) => Binned;

/** Bins that are all as wide: edge i is low + i · width, rounded as `compute` rounds. */
export function byRange(low: number, high: number, compute: DType<"f32">): Binning {
  return (x, bins) => {
    const own = computed(x, compute);
    const isIn = own.ge(low).and(own.le(high));
    const width = (high - low) / bins;
    // An element in no bin may have no integer position.
    const place = isIn.select(own.sub(low).mul(1 / width), full(compute, [1], 0));
    const near = place
      .floor()
      .cast(dtypes.i32)
      .maximum(0)
      .minimum(bins - 1);
    // The position was rounded; the edges decide.
    const edge = (of: Tile<"i32">): Tile<"f32"> => of.cast(compute).mul(width).add(low);
    const isBelow = own.lt(edge(near)).and(near.gt(0));
    const isAbove = own.ge(edge(near.add(1))).and(near.lt(bins - 1));
    const step = isBelow.select(
      full(dtypes.i32, [1], -1),
      isAbove.select(full(dtypes.i32, [1], 1), full(dtypes.i32, [1], 0)),
    );
    return { bin: near.add(step), isIn };
  };
}

/** Bins between edges that are in order, found by halving. */
export function byEdges(compute: DType<"f32">): Binning {
  return (x, bins, edges) => {
    if (edges === undefined) throw new Error("bins between edges need the edges");
    const own = computed(x, compute);
    const { shape } = own;
    const carry = {
      low: zeros(dtypes.i32, shape),
      high: full(dtypes.i32, shape, bins + 1),
    };
    const { low } = loop({ to: searchSteps(bins + 1), carry }, (_, range) => {
      const middle = range.low.add(range.high.sub(range.low).shr(1));
      const isOpen = range.low.lt(range.high);
      const edge = computed(edges.at(middle.minimum(bins)).load(), compute);
      const isRight = isOpen.and(edge.le(own));
      return {
        low: isRight.select(middle.add(1), range.low),
        high: isOpen.and(isRight.not()).select(middle, range.high),
      };
    });
    const last = edges.at(full(dtypes.i32, shape, bins)).load();
    return {
      bin: low
        .sub(1)
        .maximum(0)
        .minimum(bins - 1),
      isIn: low.gt(0).and(own.le(computed(last, compute))),
    };
  };
}

/** Whole numbers are their own bins. */
export const byNumber: Binning = (x, bins) => {
  const own = x.cast(dtypes.i64);
  return {
    bin: own
      .cast(dtypes.i32)
      .maximum(0)
      .minimum(bins - 1),
    isIn: own.ge(0n).and(own.lt(BigInt(bins))),
  };
};
