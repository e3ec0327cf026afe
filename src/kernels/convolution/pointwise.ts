/**
 * Pointwise (1 × 1) convolutions are matrix products, and are planned as those:
 *
 *   forward          out[p, o] = Σ c   x[p, c] · w[o, c]           p counts through all places of all images
 *   gradient of x    dx[p, c]  = Σ o   dOut[p, o] · w[o, c]
 *
 * The gradient of w sums over all positions, by far the longest axis, and has a kernel of its own
 * (`tma-weight-gradient.ts`).
 */
import type { Planned, PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import type { MatmulConfiguration } from "../matmul/configuration.ts";
import { problemOf } from "../matmul/matmul.ts";
import { planOf } from "../matmul/plan.ts";
import { liesByRows } from "./choose.ts";
import type { Direction } from "./gather-implicit-gemm.ts";
import { hasSinglePlaces } from "./problem.ts";
import type { ConvolutionProblem, Geometry } from "./problem.ts";

/** Whether a convolution is one product. */
export function isProduct(problem: ConvolutionProblem, geometry: Geometry): boolean {
  const { x, w, out, groups } = geometry;
  return groups === 1 && hasSinglePlaces(problem, geometry) && [x, w, out].every(liesByRows);
}

export function planProduct(
  problem: ConvolutionProblem,
  direction: Direction,
  { batch, input, channels, outputs }: Geometry,
  target: Target,
): Planned<MatmulConfiguration> {
  const isForward = direction === "forward";
  const { dtype } = problem.x;
  const [m, n, k] = [dim("m"), dim("n"), dim("k")];
  const product = problemOf(
    isForward ? "convolution" : "convolutionBackwardX",
    {
      a: tensor(dtype, [m, k]),
      b: tensor(dtype, [k, n], isForward ? { strides: [1, k] } : {}),
      out: (isForward ? problem.out : problem.x).dtype,
      ...(problem.precision && { precision: problem.precision }),
    },
    problem.location,
  );
  const places = batch * input[0] * input[1] * input[2];
  const [made, summed] = isForward ? [outputs, channels] : [channels, outputs];
  const sizes = { m: places, n: made, k: summed };
  const planned = planOf(product, undefined, sizes, target, problem.location);
  const names = new Map([
    ["a", isForward ? "x" : "dOut"],
    ["b", "w"],
    ["out", isForward ? "out" : "dx"],
  ]);
  const renamed = (given: PlannedArgument): PlannedArgument => {
    if (!("argument" in given)) return given;
    const argument = names.get(given.argument);
    if (argument === undefined) return given;
    return given.argument === "out" ? { argument, shape: [places, made] } : { ...given, argument };
  };
  const { launches } = planned;
  return {
    ...planned,
    launches: () =>
      (typeof launches === "function" ? launches() : launches).map((launch): PlannedLaunch => ({
        ...launch,
        arguments: Object.fromEntries(
          Object.entries(launch.arguments).map(([name, given]) => [name, renamed(given)]),
        ),
      })),
  };
}
