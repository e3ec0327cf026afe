/**
 * An operation: what a kernel is to a device, but of one or more launches, whose configuration is chosen when sizes
 * are known. Products split along k, backward passes, sorts and scans take several launches with memory between them:
 *
 *   matmul, split by 4     launch 1   a, b     ──▶ parts (scratch, f32[4, m, n])
 *                          launch 2   parts    ──▶ out
 *
 * The device takes an operation wherever it takes a kernel. It asks for the plan, makes the scratch arrays, and issues
 * the launches in order; bound, all of them are one piece of work.
 */
import type { DType, HostValue } from "../formats/dtype.ts";
import { packedBytes } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { addCosts, kernelCost } from "../ir/cost/index.ts";
import type { Cost } from "../ir/cost/index.ts";
import { allDimensions } from "../ir/dimension-values.ts";
import type { KernelInterface } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import { kernel } from "../lang/index.ts";
import type { ArraySpecs, Empty, InputSpecs, KernelDefinition, Signature } from "../lang/index.ts";
import { madeBy, thisCopy } from "../support/copies.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { Recent } from "../support/recent.ts";
import { requireTarget } from "../targets/given.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { arrayParameters, bindDimensions } from "./binding.ts";
import type { ArrayDescription } from "./binding.ts";

/**
 * An argument of the operation or an array of its scratch, as it is, under another shape, or flat: all that it spans
 * from its first element to its last, for a kernel with strides of its own; or the value of a scalar.
 */
export type PlannedArgument =
  | { readonly argument: string; readonly shape?: readonly number[] | undefined }
  | { readonly argument: string; readonly flat: true }
  | { readonly scalar: HostValue };

export interface PlannedLaunch {
  readonly kernel: KernelDefinition;
  /** What each parameter of the kernel is given. */
  readonly arguments: { readonly [parameter: string]: PlannedArgument };
  /** Dimensions of the kernel that no argument's shape gives. */
  readonly dimensions?: { readonly [name: string]: number } | undefined;
}

/** Where a configuration comes from: the caller, a measurement of the user's, one that is shipped, or a model. */
export type PlanSource = "given" | "tuned" | "shipped" | "heuristic";

export interface ScratchArray {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** How an operation is carried out for some sizes. */
export interface Planned<Configuration = unknown> {
  readonly configuration: Configuration;
  readonly source: PlanSource;
  /** Or a function that makes them, called when they are needed: tracing kernels takes longer than planning. */
  readonly launches: readonly PlannedLaunch[] | (() => readonly PlannedLaunch[]);
  /** Memory that launches hand to later ones, by name. */
  readonly scratch?: { readonly [name: string]: ScratchArray } | undefined;
  /** What makes it slower than it could be, for the user. */
  readonly notes?: readonly string[] | undefined;
}

export interface OperationPlan<Configuration = unknown> extends Planned<Configuration> {
  readonly launches: readonly PlannedLaunch[];
  readonly scratch: { readonly [name: string]: ScratchArray };
  readonly notes: readonly string[];
  readonly scratchBytes: number;
  /** What its launches compute and move, in all. */
  readonly cost: () => Cost;
}

export interface OperationSpec<
  Inputs extends InputSpecs,
  Outputs extends ArraySpecs,
  Inouts extends ArraySpecs,
  Configuration,
> {
  readonly name: string;
  readonly inputs?: Inputs;
  readonly outputs?: Outputs;
  readonly inouts?: Inouts;
  /** Called once for each set of sizes and target. */
  readonly plan: (
    dimensions: { readonly [name: string]: number },
    target: Target,
  ) => Planned<Configuration>;
}

/** Plans that are kept; a program that runs one operation on more sizes than this plans again. */
const keptPlans = 256;

export class Operation<
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends ArraySpecs = ArraySpecs,
  Inouts extends ArraySpecs = ArraySpecs,
  Configuration = unknown,
> implements Signature<Inputs, Outputs, Inouts> {
  readonly inputs: Inputs;
  readonly outputs: Outputs;
  readonly inouts: Inouts;
  readonly #interface: KernelInterface;
  /** @internal The plan for sizes that are known to be right. */
  readonly planFor: (
    dimensions: ReadonlyMap<string, number>,
    target: Target,
  ) => OperationPlan<Configuration>;

  /** @internal */
  constructor(
    declared: KernelDefinition<Inputs, Outputs, Inouts>,
    planner: OperationSpec<Inputs, Outputs, Inouts, Configuration>["plan"],
  ) {
    this.#interface = declared.kernel;
    this.inputs = declared.inputs;
    this.outputs = declared.outputs;
    this.inouts = declared.inouts;
    this.planFor = rememberingPlans(declared.kernel, planner);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  get name(): string {
    return this.#interface.name;
  }

  /** @internal What a caller has to know, in the form of a kernel's. */
  get kernel(): KernelInterface {
    return this.#interface;
  }

  /** How it is carried out for these sizes; no device is needed. */
  plan(
    dimensions: { readonly [name: string]: number } = {},
    target: Target | TargetName = defaultTarget,
  ): OperationPlan<Configuration> {
    const location = captureLocation();
    return this.planFor(
      allDimensions(this.#interface, dimensions),
      requireTarget(target, location),
    );
  }

  /** The kernels of a plan, in the order of their launches; they print as their tile IR. */
  kernels(
    dimensions: { readonly [name: string]: number } = {},
    target: Target | TargetName = defaultTarget,
  ): readonly KernelDefinition[] {
    return this.plan(dimensions, target).launches.map((launch) => launch.kernel);
  }
}

/** The planner, asked once for each set of sizes and target. */
function rememberingPlans<C>(
  declared: KernelInterface,
  planner: (dimensions: { readonly [name: string]: number }, target: Target) => Planned<C>,
): (dimensions: ReadonlyMap<string, number>, target: Target) => OperationPlan<C> {
  const plans = new Recent<string, OperationPlan<C>>(keptPlans);
  return (dimensions, target) => {
    const key = JSON.stringify([target.name, ...dimensions]);
    const known = plans.get(key);
    if (known !== undefined) return known;
    const planned = planner(Object.fromEntries(dimensions), target);
    const plan = completePlan(declared, planned, dimensions, target);
    plans.set(key, plan);
    return plan;
  };
}

/** An operation of one's own: `plan` says which kernels are launched for which sizes. */
export function operation<
  const Inputs extends InputSpecs = Empty,
  const Outputs extends ArraySpecs = Empty,
  const Inouts extends ArraySpecs = Empty,
  Configuration = unknown,
>(
  spec: OperationSpec<Inputs, Outputs, Inouts, Configuration>,
): Operation<Inputs, Outputs, Inouts, Configuration> {
  const location = captureLocation();
  const names = ["name", "inputs", "outputs", "inouts", "plan"];
  requireKnownOptions("operation", spec, names, "TW1033", location);
  const { plan, ...declaration } = spec;
  if (typeof plan !== "function")
    throw wrongPlan(String(spec.name), "plan is not a function", location);
  // A kernel that does nothing declares the arguments, with the checks that every declaration gets.
  const declared = kernel<Empty, readonly [], Inputs, Outputs, Inouts>(
    declaration,
    () => undefined,
  );
  return new Operation(declared, plan);
}

/** Whether a value is what `operation(…)` or a function of the library returns. */
export function isOperation(value: unknown): value is Operation {
  return value instanceof Operation;
}

function completePlan<C>(
  declared: KernelInterface,
  planned: Planned<C>,
  dimensions: ReadonlyMap<string, number>,
  target: Target,
): OperationPlan<C> {
  const { scratch = {}, notes = [] } = planned;
  const arrays = new Map<string, ArrayDescription>(Object.entries(scratch));
  for (const { name, type } of arrayParameters(declared))
    arrays.set(name, {
      dtype: type.dtype,
      shape: type.shape.map((size) => evaluateSize(size, dimensions)),
    });
  const known = new Set([...declared.parameters.map(({ name }) => name), ...arrays.keys()]);
  const scratchBytes = Object.values(scratch).reduce(
    (sum, { dtype, shape }) => sum + packedBytes(dtype, elementCount(shape)),
    0,
  );
  let launches: readonly PlannedLaunch[] | undefined;
  const made = (): readonly PlannedLaunch[] => {
    if (launches !== undefined) return launches;
    const given = typeof planned.launches === "function" ? planned.launches() : planned.launches;
    for (const launch of given) requireArguments(declared, launch, known);
    launches = given;
    return given;
  };
  return {
    configuration: planned.configuration,
    source: planned.source,
    scratch,
    notes,
    scratchBytes,
    cost: () => addCosts(made().map((launch) => launchCost(launch, arrays, target))),
    get launches() {
      return made();
    },
  };
}

/** Every parameter of a launch is given something that the operation has. */
function requireArguments(
  { name, location }: KernelInterface,
  launch: PlannedLaunch,
  known: ReadonlySet<string>,
): void {
  const parameters = launch.kernel.kernel.parameters.map((parameter) => parameter.name);
  const missing = parameters.filter((parameter) => launch.arguments[parameter] === undefined);
  if (missing.length > 0)
    throw wrongPlan(
      name,
      `the launch of ${launch.kernel.name} misses ${missing.join(", ")}`,
      location,
    );
  for (const argument of Object.values(launch.arguments))
    if ("argument" in argument && !known.has(argument.argument))
      throw wrongPlan(
        name,
        `the launch of ${launch.kernel.name} is given ${argument.argument}, which there is not`,
        location,
      );
}

/** The cost of a launch, whose dimensions follow from the shapes of what it is given. */
function launchCost(
  { kernel: definition, arguments: inOrder, dimensions = {} }: PlannedLaunch,
  arrays: ReadonlyMap<string, ArrayDescription>,
  target: Target,
): Cost {
  const descriptions = new Map<string, ArrayDescription>();
  for (const [parameter, argument] of Object.entries(inOrder)) {
    const array = "argument" in argument ? arrays.get(argument.argument) : undefined;
    if (array === undefined || !("argument" in argument)) continue;
    const { dtype, shape } = array;
    const given = "flat" in argument ? [elementCount(shape)] : (argument.shape ?? shape);
    descriptions.set(parameter, { dtype, shape: given });
  }
  const { kernel } = definition;
  return kernelCost(kernel, bindDimensions(kernel, descriptions, dimensions, target));
}

function wrongPlan(name: string, problem: string, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW9008",
    message: `the plan of operation ${name} cannot be carried out: ${problem}`,
    location,
  });
}
