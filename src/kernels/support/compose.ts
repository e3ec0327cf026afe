/**
 * Composes operations into one. The arrays of a step are arguments or scratch of the whole under other names, and its own scratch becomes
 * scratch of the whole:
 *
 *   sort along axis 0     step 0   permute   x ──▶ rows         step 1   …   rows ──▶ sorted         step 2   permute   sorted ──▶ out
 */
import type {
  Operation,
  PlannedArgument,
  PlannedLaunch,
  ScratchArray,
} from "../../device/operation.ts";
import type { Target } from "../../targets/target.ts";
import { laidOut } from "./sizes.ts";

export interface OperationStep {
  /** @internal Of an operation's plans its users know only `plan`. */
  readonly operation: Pick<Operation, "planFor" | "inputs" | "outputs" | "inouts">;
  readonly dimensions: { readonly [name: string]: number };
  /** What each array of the step's operation is called in the whole. */
  readonly arrays: { readonly [name: string]: string };
}

/** A step that is an operation, or launches of the whole's own. */
export type Step = OperationStep | (() => readonly PlannedLaunch[]);

export interface Composed {
  readonly launches: () => readonly PlannedLaunch[];
  readonly scratch: { readonly [name: string]: ScratchArray };
}

/** The launches of all steps in their order, and the scratch that their operations need. */
export function composed(steps: readonly Step[], target: Target): Composed {
  const scratch: { [name: string]: ScratchArray } = {};
  const parts = steps.map((step, number) => {
    if (typeof step === "function") return step;
    const { operation, dimensions, arrays } = step;
    const plan = operation.planFor(new Map(Object.entries(dimensions)), target);
    // No array of a user's has a name with a space.
    const own = (name: string): string => `step ${number} ${name}`;
    for (const [name, array] of Object.entries(plan.scratch)) scratch[own(name)] = array;
    const specs = { ...operation.inputs, ...operation.outputs, ...operation.inouts };
    const renamed = (argument: PlannedArgument): PlannedArgument => {
      if ("scalar" in argument) return argument;
      const name = arrays[argument.argument] ?? own(argument.argument);
      if ("flat" in argument || argument.shape !== undefined)
        return { ...argument, argument: name };
      const spec = specs[argument.argument];
      const shape =
        spec?.kind === "array"
          ? laidOut(spec, dimensions).shape
          : plan.scratch[argument.argument]?.shape;
      return { argument: name, shape };
    };
    return () =>
      plan.launches.map((launch) => ({
        ...launch,
        arguments: Object.fromEntries(
          Object.entries(launch.arguments).map(([name, given]) => [name, renamed(given)]),
        ),
      }));
  });
  return { scratch, launches: () => parts.flatMap((part) => part()) };
}
