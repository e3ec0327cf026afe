/**
 * The shape of a tensor map once a launch's dimensions are known. A tensor map cannot have extent 0: for an empty array all extents are 1, and
 * the map points to a dummy element (`cuda/empty-arrays.ts`):
 *
 *   x bf16 [m, k], k = 0     extents [0, m], strides [0]   ──▶   extents [1, 1], strides [16], isEmpty
 *     loads must give the map's fill there, and stores must change nothing that anybody reads
 */
import { evaluateSize } from "../ir/size.ts";
import type { DimensionValues } from "../ir/size.ts";
import type { TensorMapPlan } from "./executable.ts";

export interface TensorMapShape {
  readonly extents: readonly number[];
  /** In bytes, of every axis but the innermost. */
  readonly strides: readonly number[];
  /** Whether the array has no elements, so that the numbers are those of what stands in for it. */
  readonly isEmpty: boolean;
}

/** What strides are multiples of. */
export const strideUnit = 16;

export function tensorMapShape(plan: TensorMapPlan, dimensions: DimensionValues): TensorMapShape {
  const extents = plan.extents.map((extent) => evaluateSize(extent, dimensions));
  if (extents.includes(0))
    return {
      extents: extents.map(() => 1),
      strides: plan.strides.map(() => strideUnit),
      isEmpty: true,
    };
  const strides = plan.strides.map((stride) => evaluateSize(stride, dimensions));
  return { extents, strides, isEmpty: false };
}
