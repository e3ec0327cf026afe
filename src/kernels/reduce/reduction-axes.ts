/** The axes of a reduction: neighbours that are kept, and neighbours that are reduced, become one where arrays allow it. */
import type { Planned } from "../../device/operation.ts";
import type { Size } from "../../ir/size.ts";
import type { TensorSpec, KernelDefinition } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { collapsedAxes } from "../support/collapse.ts";
import { broadcastStrides, laidOut } from "../support/sizes.ts";
import { planReduction } from "./plan-reduction.ts";
import type { ReduceAxis, ReduceProblem } from "./plan-reduction.ts";
import type { ReduceConfiguration } from "./reduce-kernel.ts";

/** What is reduced: arrays that broadcast to a shape, along some of its axes. */
export interface Reduced {
  readonly specs: { readonly [name: string]: TensorSpec };
  readonly shape: readonly Size[];
  readonly axes: readonly number[];
}

export function planOver(
  problem: ReduceProblem,
  { specs, shape, axes }: Reduced,
  kernels: Map<string, KernelDefinition>,
  dimensions: { readonly [name: string]: number },
  target: Target,
): Planned<ReduceConfiguration> {
  const { shape: extents } = laidOut({ shape, strides: undefined }, dimensions);
  const isReduced = extents.map((_, axis) => axes.includes(axis));
  const results = keptStrides(extents, isReduced);
  const strides = problem.arrays.map(({ name, role }) =>
    role === "output" ? results : broadcastStrides(specs[name], extents, dimensions),
  );
  return planReduction(problem, mergedAxes(extents, strides, isReduced), kernels, target);
}

/** The strides of a result by rows, with 0 along reduced axes. */
function keptStrides(extents: readonly number[], reduced: readonly boolean[]): readonly number[] {
  let step = 1;
  return extents
    .map((extent, axis): readonly [number, boolean] => [extent, reduced[axis] === true])
    .reverse()
    .map(([extent, isReduced]) => {
      if (isReduced) return 0;
      const own = step;
      step *= extent;
      return extent === 1 ? 0 : own;
    })
    .reverse();
}

function mergedAxes(
  extents: readonly number[],
  strides: readonly (readonly number[])[],
  reduced: readonly boolean[],
): readonly ReduceAxis[] {
  const axes = reduced.flatMap((isReduced, axis) => (isReduced ? [axis] : []));
  return collapsedAxes(extents, strides, axes).map(({ extent, strides: own, isApart }) => ({
    extent,
    strides: own,
    reduced: isApart,
  }));
}
