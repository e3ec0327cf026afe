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
import { packedBytes } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { addCosts, kernelCost } from "../ir/cost/index.ts";
import type { KernelCost } from "../ir/cost/index.ts";
import { allDimensions } from "../ir/dimension-values.ts";
import { dependentLaunchOf } from "../ir/programmatic-dependent-launch.ts";
import type { KernelInterface } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import { isKernelDefinition, kernel } from "../lang/index.ts";
import type { TensorSpecs, Empty, InputSpecs, KernelDefinition, Signature } from "../lang/index.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { fieldsOf } from "../support/checked-call.ts";
import { isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import { LruCache } from "../support/lru-cache.ts";
import { requireTarget } from "../targets/given.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { arrayParameters, bindDimensions } from "./binding.ts";
import type { ArrayDescription } from "./binding.ts";
import type { LaunchInputs, ScratchArrays } from "./launch-inputs.ts";
import { specText } from "./spec-text.ts";
import { tunedChoice } from "./tuning/advice.ts";
import type { DeviceTuning, OperationChoices, TunedChoice } from "./tuning/advice.ts";
import type { Choice } from "./tuning/line.ts";

export type { PlannedArgument, ScratchArray } from "./launch-inputs.ts";

/** One launch of a planned operation. */
export interface PlannedLaunch extends LaunchInputs {
  /** The kernel. */
  readonly kernel: KernelDefinition;
}

/** Where a configuration comes from: the caller, a measurement of the user's, one that is shipped, or a model. */
export type PlanSource = "given" | "tuned" | "shipped" | "heuristic";

/** Tiles of work that are known to be empty before anything runs, those that are whole, and those that are looked at closely. */
export interface TileCounts {
  /** Tiles that no work is done for. */
  readonly skipped: number;
  /** Tiles without an element that is masked. */
  readonly whole: number;
  /** Tiles of which some elements are masked. */
  readonly masked: number;
}

/** How an operation is carried out for some sizes. */
export interface Planned<Configuration = unknown> {
  /** The choices that were made. */
  readonly configuration: Configuration;
  /** Where the choices come from. */
  readonly source: PlanSource;
  /** Or a function that makes them, called when they are needed: tracing kernels takes longer than planning. */
  readonly launches: readonly PlannedLaunch[] | (() => readonly PlannedLaunch[]);
  /** Memory that launches hand to later ones, by name. */
  readonly scratch?: ScratchArrays | undefined;
  /** What makes it slower than it could be, for the user. */
  readonly notes?: readonly string[] | undefined;
  /** How its work is divided into tiles, of operations that skip some. */
  readonly tiles?: (() => TileCounts) | undefined;
}

/** How an operation is carried out for some sizes: its configuration, its kernels, and their launches. */
export interface OperationPlan<Configuration = unknown> extends Planned<Configuration> {
  /** Traced when they are first asked for, where the planner gives a function. */
  readonly launches: readonly PlannedLaunch[];
  /** @internal Tells its launches from those of every other plan for the target; undefined where only tracing them does. */
  readonly text: string | undefined;
  readonly scratch: ScratchArrays;
  readonly notes: readonly string[];
  /** Bytes of scratch memory that it needs. */
  readonly scratchBytes: number;
  /** What its launches compute and move, in all, and which of their loops could not be counted. */
  readonly cost: () => KernelCost;
  /** How many blocks each launch has. */
  readonly blocks: () => readonly number[];
  /** @internal The values of each launch's dimensions. */
  readonly sizes: () => readonly ReadonlyMap<string, number>[];
}

/** What `operation` makes an operation of: its arguments, and how it is planned. */
export interface OperationSpec<
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
  Configuration,
> {
  /** Its name, in messages and profiles. */
  readonly name: string;
  /** The inputs, by name. */
  readonly inputs?: Inputs;
  /** The outputs, by name. */
  readonly outputs?: Outputs;
  /** Arrays that are read and written, by name. */
  readonly inouts?: Inouts;
  /** Called once for each set of sizes and target; with a choice where one is given or was measured. */
  readonly plan: Planner<Configuration>;
  /** What there is to choose, where tuning can improve it. */
  readonly choices?: OperationChoices | undefined;
}

/** Says how an operation is carried out; its source is told apart by whoever gives the choice. */
export type Planner<Configuration> = (
  dimensions: { readonly [name: string]: number },
  target: Target,
  choice?: Choice,
) => Planned<Configuration>;

/** A plan that has been made, and what gives the key of its launches; see `OperationPlan`. */
type KeyedPlan<Configuration> = Planned<Configuration> & { readonly keyText: PlanKey };

type PlanKey = () => string | undefined;

/** A plan that may never have to be made: the key of its launches is known before. */
interface PlanToMake<Configuration> {
  readonly keyText: PlanKey;
  readonly make: () => KeyedPlan<Configuration>;
}

type KeyedPlanner<Configuration> = (
  ...of: Parameters<Planner<Configuration>>
) => PlanToMake<Configuration>;

/** Where something is planned for: a target, or a device with what it knows from measurements. */
export type PlanTarget =
  | Target
  | TargetName
  | { readonly target: Target; readonly tuning: DeviceTuning | undefined };

/** Plans that are kept; a program that runs one operation on more sizes than this plans again. */
const keptPlans = 256;

/** Work of any size, planned as one or more kernels when its shapes are known; launched as a kernel is. */
export class Operation<
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends TensorSpecs = TensorSpecs,
  Inouts extends TensorSpecs = TensorSpecs,
  Configuration = unknown,
> implements Signature<Inputs, Outputs, Inouts> {
  /** The inputs, by name. */
  readonly inputs: Inputs;
  /** The outputs, by name. */
  readonly outputs: Outputs;
  /** Arrays that are read and written, by name. */
  readonly inouts: Inouts;
  /** What there is to choose; undefined where there is nothing. */
  readonly choices: OperationChoices | undefined;
  readonly #declared: KernelDefinition<Inputs, Outputs, Inouts>;
  readonly #planner: KeyedPlanner<Configuration>;
  /** @internal The plan for sizes that are known to be right, made when something but its text is asked for. */
  readonly planFor: PlanFor<Configuration>;

  /** @internal */
  constructor(
    declared: KernelDefinition<Inputs, Outputs, Inouts>,
    planner: KeyedPlanner<Configuration>,
    choices?: OperationChoices,
  ) {
    this.#declared = declared;
    this.#planner = planner;
    this.inputs = declared.inputs;
    this.outputs = declared.outputs;
    this.inouts = declared.inouts;
    this.choices = choices;
    this.planFor = rememberingPlans(declared.kernel, planner, choices);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** Its name, in messages and profiles. */
  get name(): string {
    return this.#declared.kernel.name;
  }

  /** @internal What a caller has to know, in the form of a kernel's. */
  get kernel(): KernelInterface {
    return this.#declared.kernel;
  }

  /** How it is carried out for these sizes; no device is needed. */
  plan(
    dimensions: { readonly [name: string]: number } = {},
    target: PlanTarget = defaultTarget,
  ): OperationPlan<Configuration> {
    const location = captureLocation();
    const sizes = allDimensions(this.#declared.kernel, dimensions);
    const plan = isDeviceLike(target)
      ? this.planFor(sizes, target.target, target.tuning)
      : this.planFor(sizes, requireTarget(target, location));
    // What cannot be planned is said here, not where the plan is looked at.
    void plan.configuration;
    return plan;
  }

  /** The same operation with a choice that is made. Refused where there is nothing to choose: the choice would change nothing. */
  with(choice: Choice): Operation<Inputs, Outputs, Inouts, Configuration> {
    if (this.choices === undefined)
      throw new TilewrightError({
        code: "TW9812",
        message: `${this.name} has nothing to choose`,
        location: captureLocation(),
        expected: "an operation with choices, none of which was made",
        found: `${this.name}, whose choices are undefined`,
        remedy:
          "leave with(…) out; operations that take a configuration take it where they are made",
      });
    return new Operation(this.#declared, (dimensions, target) => {
      const { keyText, make } = this.#planner(dimensions, target, choice);
      return { keyText, make: () => ({ ...make(), source: "given" }) };
    });
  }

  /** The kernels of a plan, in the order of their launches; they print as their tile IR. */
  kernels(
    dimensions: { readonly [name: string]: number } = {},
    target: PlanTarget = defaultTarget,
  ): readonly KernelDefinition[] {
    return this.plan(dimensions, target).launches.map((launch) => launch.kernel);
  }
}

function isDeviceLike(target: PlanTarget): target is Exclude<PlanTarget, Target | TargetName> {
  return typeof target === "object" && target !== null && "target" in target;
}

type PlanFor<C> = (
  dimensions: ReadonlyMap<string, number>,
  target: Target,
  tuning?: DeviceTuning,
) => OperationPlan<C>;

/** Texts of targets that were asked for: every launch asks for one, and to make it takes longer than to find a plan by it. */
const targetTexts = new WeakMap<Target, string>();

/** All of a target, since GPUs of one name have different numbers of processors. */
function targetText(target: Target): string {
  const text = targetTexts.get(target) ?? JSON.stringify(target);
  targetTexts.set(target, text);
  return text;
}

/** The planner, asked once for each set of sizes, target and what is known from measurements. */
function rememberingPlans<C>(
  declared: KernelInterface,
  planner: KeyedPlanner<C>,
  choices: OperationChoices | undefined,
): PlanFor<C> {
  const untuned = {};
  const plansBy = new WeakMap<object, LruCache<string, OperationPlan<C>>>();
  return (dimensions, target, tuning) => {
    const known = choices === undefined ? untuned : (tuning ?? untuned);
    const plans = plansBy.get(known) ?? new LruCache<string, OperationPlan<C>>(keptPlans);
    plansBy.set(known, plans);
    const key = targetText(target) + JSON.stringify([...dimensions]);
    const found = plans.get(key);
    if (found !== undefined) return found;
    const sizes = Object.fromEntries(dimensions);
    const tuned =
      choices === undefined || tuning === undefined
        ? undefined
        : tunedChoice(declared.name, choices, sizes, tuning);
    const plan = completePlan(declared, planned(planner, sizes, target, tuned), dimensions, target);
    plans.set(key, plan);
    return plan;
  };
}

/** The plan with what was measured; where that can no longer be carried out, the plan without, and a note. */
function planned<C>(
  planner: KeyedPlanner<C>,
  sizes: { readonly [name: string]: number },
  target: Target,
  tuned: TunedChoice | undefined,
): PlanToMake<C> {
  if (tuned === undefined) return planner(sizes, target);
  const { keyText, make: makeTuned } = planner(sizes, target, tuned.choice);
  const make = (): KeyedPlan<C> => {
    try {
      const plan = makeTuned();
      return { ...plan, source: "tuned", notes: [...(plan.notes ?? []), ...tuned.notes] };
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      const plan = planner(sizes, target).make();
      const note = `what was measured cannot be used (${error.code}: ${error.message}): tune again`;
      return { ...plan, notes: [...(plan.notes ?? []), note] };
    }
  };
  return { keyText, make };
}

/** An operation of one's own: `plan` says which kernels are launched for which sizes. */
export function operation<
  const Inputs extends InputSpecs = Empty,
  const Outputs extends TensorSpecs = Empty,
  const Inouts extends TensorSpecs = Empty,
  Configuration = unknown,
>(
  spec: OperationSpec<Inputs, Outputs, Inouts, Configuration>,
): Operation<Inputs, Outputs, Inouts, Configuration> {
  const location = captureLocation();
  const names = ["name", "inputs", "outputs", "inouts", "plan", "choices"];
  requireKnownOptions("operation", spec, names, "TW1033", location);
  if (typeof spec.plan !== "function")
    throw wrongPlan(String(spec.name), "plan is not a function", location);
  return declaredOperation(spec, () => undefined);
}

/**
 * @internal An operation of the library, all of whose plans follow from what the caller gave, the sizes, the target and the choice:
 * where `given` is plain data, a device may find what an earlier process made of it.
 */
export function libraryOperation<
  const Inputs extends InputSpecs = Empty,
  const Outputs extends TensorSpecs = Empty,
  const Inouts extends TensorSpecs = Empty,
  Configuration = unknown,
>(
  spec: OperationSpec<Inputs, Outputs, Inouts, Configuration>,
  given: unknown,
): Operation<Inputs, Outputs, Inouts, Configuration> {
  const before = specText(given);
  // What is changed afterwards may or may not have been looked at before.
  return declaredOperation(spec, () => (specText(given) === before ? before : undefined));
}

function declaredOperation<
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
  Configuration,
>(
  spec: OperationSpec<Inputs, Outputs, Inouts, Configuration>,
  givenText: () => string | undefined,
): Operation<Inputs, Outputs, Inouts, Configuration> {
  const { plan, choices, ...declaration } = spec;
  // A kernel that does nothing declares the arguments, with the checks that every declaration gets.
  const declared = kernel<Empty, readonly [], Inputs, Outputs, Inouts>(
    declaration,
    () => undefined,
  );
  const keyed: KeyedPlanner<Configuration> = (dimensions, target, choice) => {
    const chosen = specText(choice);
    const keyText = (): string | undefined => {
      const given = chosen === undefined ? undefined : givenText();
      return given && [spec.name, given, specText(dimensions), chosen].join("\n");
    };
    const make = (): KeyedPlan<Configuration> => {
      const made = plan(dimensions, target, choice);
      requirePlanned(spec.name, made);
      // Launches that were there at once may be anything that the planner knows of.
      return { ...made, keyText: typeof made.launches === "function" ? keyText : () => undefined };
    };
    return { keyText, make };
  };
  return new Operation(declared, keyed, choices);
}

/** @internal A kernel as an operation of one launch, which gets what the operation is given. */
export function kernelOperation(definition: KernelDefinition): Operation {
  const names = definition.kernel.parameters.map(({ name }) => name);
  const launch = {
    kernel: definition,
    arguments: Object.fromEntries(names.map((argument) => [argument, { argument }])),
  };
  const keyText = (): undefined => undefined;
  const plan = { configuration: undefined, source: "given", launches: [launch], keyText } as const;
  return new Operation(definition, () => ({ keyText, make: () => plan }));
}

/** Whether a value is what `operation(…)` or a function of the library returns. */
export function isOperation(value: unknown): value is Operation {
  return value instanceof Operation;
}

function completePlan<C>(
  declared: KernelInterface,
  toMake: PlanToMake<C>,
  dimensions: ReadonlyMap<string, number>,
  target: Target,
): OperationPlan<C> {
  let planned: KeyedPlan<C> | undefined;
  const plan = (): KeyedPlan<C> => (planned ??= toMake.make());
  const scratch = (): ScratchArrays => plan().scratch ?? {};
  const arrays = (): ReadonlyMap<string, ArrayDescription> => {
    const all = new Map<string, ArrayDescription>(Object.entries(scratch()));
    for (const { name, type } of arrayParameters(declared))
      all.set(name, {
        dtype: type.dtype,
        shape: type.shape.map((size) => evaluateSize(size, dimensions)),
      });
    return all;
  };
  let launches: readonly PlannedLaunch[] | undefined;
  const made = (): readonly PlannedLaunch[] => {
    if (launches !== undefined) return launches;
    const given = plan().launches;
    const traced = typeof given === "function" ? given() : given;
    requireLaunches(declared.name, traced);
    requireOwnScratch(declared, scratch());
    const known = new Set([...declared.parameters.map(({ name }) => name), ...arrays().keys()]);
    for (const [position, launch] of traced.entries()) {
      requireArguments(declared, launch, known);
      requireSettled(declared, launch, traced[position - 1]);
    }
    launches = traced;
    return traced;
  };
  const launchSizes = (launch: PlannedLaunch): ReadonlyMap<string, number> =>
    launchDimensions(launch, arrays(), target);
  return {
    get configuration() {
      return plan().configuration;
    },
    get source() {
      return plan().source;
    },
    get tiles() {
      return plan().tiles;
    },
    // Asked again whenever it matters: what the caller gave may have changed since.
    get text() {
      return (planned ?? toMake).keyText();
    },
    get scratch() {
      return scratch();
    },
    get notes() {
      return plan().notes ?? [];
    },
    get scratchBytes() {
      return Object.values(scratch()).reduce(
        (sum, { dtype, shape }) => sum + packedBytes(dtype, elementCount(shape)),
        0,
      );
    },
    cost: () => {
      const costs = made().map((each) => kernelCost(each.kernel.kernel, launchSizes(each)));
      const unknownLoops = costs.flatMap((each) => each.unknownLoops);
      const memoryBytes = costs.reduce((sum, each) => sum + each.memoryBytes, 0);
      return { ...addCosts(costs), memoryBytes, unknownLoops };
    },
    sizes: () => made().map(launchSizes),
    blocks: () =>
      made().map((launch) => {
        const values = launchSizes(launch);
        const { grid } = launch.kernel.kernel;
        return grid.reduce((all, { extent }) => all * evaluateSize(extent, values), 1);
      }),
    get launches() {
      return made();
    },
  };
}

/** Scratch that is called as an argument is would be given in its place. */
function requireOwnScratch({ name, parameters, location }: KernelInterface, scratch: object): void {
  const taken = parameters.find((parameter) => Object.hasOwn(scratch, parameter.name));
  if (taken !== undefined)
    throw wrongPlan(name, `${taken.name} names both an argument and scratch`, location);
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

/**
 * What a launch reads before the one before it has ended must be left alone by that one, and be there when that one starts: it has to have waited
 * for all that came before it, where it lets this one go.
 */
function requireSettled(
  { name, location }: KernelInterface,
  launch: PlannedLaunch,
  before: PlannedLaunch | undefined,
): void {
  const { settled } = dependentLaunchOf(launch.kernel.kernel);
  if (settled.length === 0) return;
  const what = `the launch of ${launch.kernel.name} reads ${settled.join(", ")} before it waits`;
  if (before === undefined) throw wrongPlan(name, `${what}, and is the first`, location);
  const { kernel: traced } = before.kernel;
  if (!dependentLaunchOf(traced).launchesNextAfterWait)
    throw wrongPlan(name, `${what}, and ${traced.name} lets it go before it waits`, location);
  const written = traced.parameters
    .filter(({ role }) => role === "output" || role === "inout")
    .map((parameter) => argumentName(before, parameter.name));
  for (const parameter of settled)
    if (written.includes(argumentName(launch, parameter)))
      throw wrongPlan(name, `${what}, and ${traced.name} writes it`, location);
}

/** Which argument of the operation a parameter of a launch is given. */
function argumentName(launch: PlannedLaunch, parameter: string): string | undefined {
  const given = launch.arguments[parameter];
  return given !== undefined && "argument" in given ? given.argument : undefined;
}

/** The dimensions of a launch, which follow from the shapes of what it is given. */
function launchDimensions(
  { kernel: definition, arguments: inOrder, dimensions = {} }: PlannedLaunch,
  arrays: ReadonlyMap<string, ArrayDescription>,
  target: Target,
): ReadonlyMap<string, number> {
  const descriptions = new Map<string, ArrayDescription>();
  for (const [parameter, argument] of Object.entries(inOrder)) {
    const array = "argument" in argument ? arrays.get(argument.argument) : undefined;
    if (array === undefined || !("argument" in argument)) continue;
    const { dtype, shape } = array;
    const given = "flat" in argument ? [elementCount(shape)] : (argument.shape ?? shape);
    descriptions.set(parameter, { dtype, shape: given });
  }
  const { kernel } = definition;
  return bindDimensions(kernel, descriptions, dimensions, target);
}

/** A planner is the user's own function, which may return anything. */
function requirePlanned(name: string, planned: unknown): void {
  const { launches } = fieldsOf(planned, ["launches", "scratch"]);
  if (!isRecord(planned) || !(Array.isArray(launches) || typeof launches === "function"))
    throw wrongPlan(name, `plan returned ${optionText(planned)}`, captureLocation());
}

function requireLaunches(name: string, launches: unknown): void {
  const isLaunch = (each: unknown): boolean => {
    const { kernel: launched, arguments: given } = fieldsOf(each, ["kernel", "arguments"]);
    return isKernelDefinition(launched) && isRecord(given);
  };
  if (!Array.isArray(launches))
    throw wrongPlan(name, `launches gave ${optionText(launches)}`, captureLocation());
  const wrong = launches.findIndex((each) => !isLaunch(each));
  if (wrong >= 0)
    throw wrongPlan(
      name,
      `launch ${wrong} is no kernel with its arguments by name`,
      captureLocation(),
    );
}

function wrongPlan(name: string, problem: string, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW9908",
    message: `the plan of operation ${name} cannot be carried out: ${problem}`,
    location,
    expected: "launches whose arguments are arrays of the operation, its scratch or scalars",
    found: problem,
  });
}
