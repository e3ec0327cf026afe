/** What the device does with the plan of an operation: scratch arrays made, arguments found, launches bound together. */
import type { DType } from "../formats/dtype.ts";
import { runEach } from "../support/run-all.ts";
import type { ArgumentValue, CollectedArguments } from "./arguments.ts";
import type { Backend, Repeatable } from "./backend.ts";
import { DeviceArray, disposeAll } from "./device-array.ts";
import type { LaunchInputs, PlannedArgument, ScratchArrays } from "./launch-inputs.ts";

/** A launch of a plan, with what its kernel is given. */
export interface PlannedCall<L> {
  readonly launch: L;
  readonly args: { readonly [parameter: string]: ArgumentValue };
  readonly dimensions: { readonly [name: string]: number };
}

/** Launches of a plan over the arguments of the operation and fresh arrays for its scratch. */
export function plannedCalls<L extends LaunchInputs>(
  launches: readonly L[],
  needed: ScratchArrays,
  { arrays, scalars }: CollectedArguments,
  allocate: (dtype: DType, shape: readonly number[]) => DeviceArray,
): { readonly calls: readonly PlannedCall<L>[]; readonly scratch: readonly DeviceArray[] } {
  const values = new Map<string, ArgumentValue>([...arrays, ...scalars]);
  const scratch: DeviceArray[] = [];
  try {
    for (const [name, { dtype, shape }] of Object.entries(needed)) {
      const array = allocate(dtype, shape);
      scratch.push(array);
      values.set(name, array);
    }
    const calls = launches.map((launch) => {
      const { arguments: given, dimensions = {} } = launch;
      const args = Object.entries(given).map(
        ([parameter, argument]) => [parameter, valueOf(argument, values)] as const,
      );
      return { launch, args: Object.fromEntries(args), dimensions };
    });
    return { calls, scratch };
  } catch (error) {
    disposeAll(scratch);
    throw error;
  }
}

function valueOf(
  argument: PlannedArgument,
  values: ReadonlyMap<string, ArgumentValue>,
): ArgumentValue {
  if ("scalar" in argument) return argument.scalar;
  const value = values.get(argument.argument);
  if (value === undefined)
    throw new Error(`plans are checked, yet ${argument.argument} is missing`);
  if (!(value instanceof DeviceArray)) return value;
  if ("flat" in argument) return value.span();
  if (argument.shape === undefined) return value;
  // A view lies as the operation declares it, and the launch knows that: it is given the memory.
  return (value.contiguous ? value : value.span()).reshape(argument.shape);
}

/** Launches bound as one piece of work, and how to give back what only that piece uses. */
export interface BoundWork {
  readonly work: Repeatable;
  readonly giveBack: () => void;
}

/** What `bindEach` binds, as one piece of work. */
export function boundTogether(
  backend: Backend,
  scratch: readonly DeviceArray[],
  bindEach: (bound: Repeatable[]) => void,
): BoundWork {
  const bound: Repeatable[] = [];
  const giveBack = (parts: readonly Repeatable[]): void => {
    runEach([
      ...parts.map((part) => () => {
        part.dispose();
      }),
      () => {
        disposeAll(scratch);
      },
    ]);
  };
  try {
    bindEach(bound);
    const [only, ...others] = bound;
    if (only !== undefined && others.length === 0)
      return {
        work: only,
        giveBack: () => {
          giveBack([]);
        },
      };
    return {
      work: backend.record(bound),
      giveBack: () => {
        giveBack(bound);
      },
    };
  } catch (error) {
    giveBack(bound);
    throw error;
  }
}
