/** What the launches of a product are given: operands as they lie in memory, further inputs, and sizes. */
import type { PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import type { ProductSizes } from "./configuration.ts";
import { namedArguments } from "./user-array-names.ts";
import type { MatmulProblem } from "./problem.ts";
import { weightScaleShape } from "./weights/quantized.ts";
import { storedHalf } from "./weights/sparse-weights.ts";

type Arguments = PlannedLaunch["arguments"];

/** The operand as it lies in memory, whatever its axes are called. */
export function operandArgument(
  problem: MatmulProblem,
  name: "a" | "b",
  { m, n, k, batch }: ProductSizes,
): PlannedArgument {
  if (problem.views?.[name] !== undefined) return { argument: name, flat: true };
  const extent = name === "a" ? m : n;
  const depth = storedElements(problem, name, k);
  const matrix = problem.major[name] === "k" ? [extent, depth] : [depth, extent];
  return { argument: name, shape: problem.batched[name] ? [batch, ...matrix] : matrix };
}

/** Elements along k as the operand is stored. */
function storedElements({ prologues, sparse }: MatmulProblem, name: "a" | "b", k: number): number {
  if (sparse && name === "b") return Number(storedHalf(k));
  const unit = prologues[name]?.unit ?? 1;
  return Math.ceil(k / unit) * unit;
}

/** What prologues read, as they call it. */
export function prologueArguments(
  { prologueInputs, weights, batched }: MatmulProblem,
  { n, k }: ProductSizes,
): Arguments {
  const given = namedArguments(Object.keys(prologueInputs));
  if (weights?.batch === undefined || batched.b) return given;
  // Weights of a batch of 1 are those of all matrices, and have no axis for it in kernels.
  const shape = weightScaleShape(weights, k, n, undefined).map(Number);
  return Object.fromEntries(
    Object.entries(given).map(([name, argument]) => [name, { ...argument, shape }]),
  );
}

export function inputArguments({ inputs }: MatmulProblem): Arguments {
  return namedArguments(Object.keys(inputs));
}

/** A launch, with those of the values that its kernel has dimensions for. */
export function launched(
  kernel: PlannedLaunch["kernel"],
  given: PlannedLaunch["arguments"],
  values: { readonly [name: string]: number },
): PlannedLaunch {
  const dimensions = Object.fromEntries(
    kernel.kernel.dimensions.flatMap(({ name }) => {
      const value = values[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
  return { kernel, arguments: given, dimensions };
}
