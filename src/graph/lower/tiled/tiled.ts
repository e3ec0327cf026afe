/**
 * Kernels that are more than one result a lane: a grid of their own, tiles of two axes, and stores of their own. An op
 * that has one for its shapes and types takes it instead of its rule at points.
 */
import type { Ref, Scalar } from "../../../lang/index.ts";
import type { GraphValue } from "../../ops/node.ts";
import type { PointContext } from "../context.ts";

/** What the body of a tiled kernel is given. */
export interface TiledParts {
  /** Values at points; inputs that are loaded otherwise are had by `ref`. */
  readonly context: PointContext;
  /** The flat array of an input. */
  readonly ref: (value: GraphValue) => Ref;
  /** The flat arrays of the results. */
  readonly outputs: readonly Ref[];
  /** The block's index along an axis of the grid. */
  readonly at: (axis: string) => Scalar<"i32">;
}

export interface TiledKernel {
  /** What the kernel's name ends with, such as `rows`. */
  readonly title: string;
  readonly grid: { readonly [axis: string]: number };
  /** Whether operands are loaded as whole windows, and so must lie in memory. */
  readonly loadsWindows: boolean;
  body(parts: TiledParts): void;
}

/** The least power of two that is not below a count, within bounds. */
export function tileExtent(count: number, least: number, most: number): number {
  let extent = least;
  while (extent < count && extent < most) extent *= 2;
  return extent;
}
