/**
 * `kernel`: runs a body once, recording what it does, and gives the finished kernel.
 *
 *   specification ──check──▶ names, grid, dimensions
 *                 ──trace──▶ parameters, scratch, then whatever the body does
 *                 ──verify─▶ linear accumulators, placement, …
 */
import { kernelCost, ratesOf, roofline } from "../ir/cost/index.ts";
import type { KernelCost, Roofline } from "../ir/cost/index.ts";
import { allDimensions } from "../ir/dimension-values.ts";
import { listedName } from "../ir/listed-names.ts";
import type { Kernel, KernelParameter, ParameterRole, Value } from "../ir/node.ts";
import { printKernel } from "../ir/printer.ts";
import { kernelFor, varyByTarget } from "../ir/target-variants.ts";
import { refType, scalarType } from "../ir/types.ts";
import type { Type } from "../ir/types.ts";
import { verifyKernel } from "../ir/verify/index.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireTarget } from "../targets/given.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { allocate } from "./allocate.ts";
import type { TensorListSpec, TensorSpec, ScalarSpec } from "./arguments.ts";
import { onThreads } from "./control.ts";
import { EarlyExits } from "./early-exits.ts";
import { Ref } from "./ref.ts";
import { ScriptConditions } from "./script-conditions.ts";
import { Scalar } from "./elementwise.ts";
import { checkSpec } from "./spec.ts";
import { specForTarget } from "./spec-for-target.ts";
import type {
  TensorSpecs,
  BodyArgument,
  CheckedSpec,
  ClusterSpec,
  Empty,
  GridSpec,
  InputSpecs,
  KernelSpec,
  ScratchSpecs,
  Signature,
} from "./spec.ts";
import { TensorList } from "./tensor-list.ts";
import { emitOrigin, originOf, Trace, withTrace } from "./trace.ts";
import { callBody } from "./traced.ts";

/** A traced kernel, ready to be run on a device; its type knows the names and dtypes of its arguments. */
export class KernelDefinition<
  Inputs extends InputSpecs = InputSpecs,
  Outputs extends TensorSpecs = TensorSpecs,
  Inouts extends TensorSpecs = TensorSpecs,
> implements Signature<Inputs, Outputs, Inouts> {
  /** The kernel's tile IR. */
  readonly kernel: Kernel;
  /** What the specification said of the arguments that the kernel reads. */
  readonly inputs: Inputs;
  /** What it said of the arrays that the kernel makes. */
  readonly outputs: Outputs;
  /** What it said of the arrays that the kernel updates. */
  readonly inouts: Inouts;

  /** @internal */
  constructor(kernel: Kernel, { inputs, outputs, inouts }: Signature<Inputs, Outputs, Inouts>) {
    this.kernel = kernel;
    this.inputs = inputs;
    this.outputs = outputs;
    this.inouts = inouts;
    Object.freeze(this);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** The kernel's name. */
  get name(): string {
    return this.kernel.name;
  }

  /** What a launch with these values of the kernel's dimensions computes and moves; no device is needed. */
  cost(dimensions: { readonly [name: string]: number } = {}): KernelCost {
    return kernelCost(this.kernel, allDimensions(this.kernel, dimensions));
  }

  /** The kernel's tile IR for a target: that of every target, where nothing in it differs by target. */
  kernelFor(target: Target | TargetName): Kernel {
    return kernelFor(this.kernel, requireTarget(target, captureLocation()));
  }

  /** The least time that such a launch can take on the usual board of a target. */
  roofline(
    dimensions: { readonly [name: string]: number } = {},
    target: Target | TargetName = defaultTarget,
  ): Roofline {
    const own = requireTarget(target, captureLocation());
    const kernel = kernelFor(this.kernel, own);
    return roofline(kernelCost(kernel, allDimensions(kernel, dimensions)), ratesOf(own));
  }

  /** The kernel's tile IR as text. */
  toString(): string {
    return printKernel(this.kernel);
  }
}

/** Whether a value is what `kernel(…)` returns. */
export function isKernelDefinition(value: unknown): value is KernelDefinition {
  return value instanceof KernelDefinition;
}

/** Traces a kernel: `body` runs once, now, and what it does is recorded. */
export function kernel<
  const Grid extends GridSpec = Empty,
  const Threads extends readonly string[] = readonly [],
  const Inputs extends InputSpecs = Empty,
  const Outputs extends TensorSpecs = Empty,
  const Inouts extends TensorSpecs = Empty,
  const Scratch extends ScratchSpecs = Empty,
  const Cluster extends ClusterSpec = Empty,
>(
  spec: KernelSpec<Grid, Threads, Inputs, Outputs, Inouts, Scratch, Cluster>,
  body: (
    argument: BodyArgument<Grid, Threads, Inputs, Outputs, Inouts, Scratch, Cluster>,
  ) => unknown,
): KernelDefinition<Inputs, Outputs, Inouts> {
  const location = captureLocation();
  const run = body as (argument: { readonly [name: string]: unknown }) => unknown;
  const traceFor = (target: Target): TracedForTarget => {
    const { spec: own, varies } = specForTarget(spec, target, location);
    const checked = checkSpec(own, location);
    return withinStack(checked.name, location, () => {
      const traced = traceKernel(checked, run, target, location);
      verifyKernel(traced.kernel);
      return { checked, kernel: traced.kernel, varies: varies || traced.asksTarget };
    });
  };
  const { checked, kernel: traced, varies } = traceFor(defaultTarget);
  if (varies)
    varyByTarget(traced, (target) => (target === defaultTarget ? traced : traceFor(target).kernel));
  // The specification's records are the type's own; where one is missing its type has no names.
  const signature = checked as unknown as Signature<Inputs, Outputs, Inouts>;
  return new KernelDefinition(traced, signature);
}

/** Reports a body that nests too deeply as what it is; everything else that it throws is its own. */
function withinStack<T>(name: string, location: Location, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError) || !/call stack/.test(error.message)) throw error;
    throw new TilewrightError({
      code: "TW1035",
      message: `tracing kernel ${name} ran out of stack`,
      location,
      expected: "calls and bodies that nest a few thousand deep at most",
      found: error.message,
    });
  }
}

interface Parameter {
  readonly name: string;
  readonly role: ParameterRole;
  readonly spec: TensorSpec | ScalarSpec;
}

function parametersOf({ inputs, outputs, inouts }: CheckedSpec): readonly Parameter[] {
  const list = (role: "input" | "output" | "inout", specs: InputSpecs): readonly Parameter[] =>
    Object.entries(specs).flatMap(([name, spec]): readonly Parameter[] => {
      if (spec.kind === "scalar") return [{ name, role: "scalar", spec }];
      return spec.kind === "array" ? [{ name, role, spec }] : listed(name, role, spec);
    });
  return [...list("input", inputs), ...list("output", outputs), ...list("inout", inouts)];
}

function listed(
  name: string,
  role: ParameterRole,
  { count, dtype, shape }: TensorListSpec,
): readonly Parameter[] {
  const spec: TensorSpec = { kind: "array", dtype, shape, strides: undefined };
  return Array.from({ length: count }, (_, index) => ({
    name: listedName(name, index),
    role,
    spec,
  }));
}

function parameterType(spec: TensorSpec | ScalarSpec): Type {
  if (spec.kind === "scalar") return scalarType(spec.dtype);
  return refType("gmem", spec.dtype, spec.shape);
}

interface TracedForTarget {
  readonly checked: CheckedSpec;
  readonly kernel: Kernel;
  /** Whether another target may have another kernel. */
  readonly varies: boolean;
}

function traceKernel(
  checked: CheckedSpec,
  body: (argument: { readonly [name: string]: unknown }) => unknown,
  target: Target,
  location: Location,
): { readonly kernel: Kernel; readonly asksTarget: boolean } {
  const { name, threads, warps, resident } = checked;
  const trace = new Trace(name, { ...checked, target });
  const parameters = parametersOf(checked);
  const types = parameters.map(({ spec }) => parameterType(spec));
  const label = `the body of kernel ${name}`;
  let conditions: ScriptConditions | undefined;
  const region = withTrace(trace, () =>
    trace.region(label, types, location, (values) => {
      const argument = bodyArgument(trace, checked, parameters, values, location);
      conditions = new ScriptConditions(body, argument, location);
      conditions.refuseEndless();
      const exits = EarlyExits.ofKernel(trace, label);
      callBody(label, location, body, argument);
      return exits.finish([]);
    }),
  );
  trace.requireUsedConditions();
  conditions?.refuseAll();
  // Tiles may have given it a grid.
  const { grid, dimensions } = trace.context;
  const kernel = Object.freeze({
    name,
    grid: Object.freeze([...grid]),
    threads: Object.freeze([...threads]),
    warps,
    ...(resident !== undefined && { resident }),
    dimensions: Object.freeze([...dimensions]),
    parameters: Object.freeze(
      parameters.flatMap((parameter, position) => {
        const value = region.parameters[position];
        return value === undefined ? [] : [irParameter(parameter, value)];
      }),
    ),
    body: region,
    location,
  });
  return { kernel, asksTarget: trace.asksTarget };
}

function irParameter({ name, role, spec }: Parameter, value: Value): KernelParameter {
  const strides = spec.kind === "array" ? spec.strides : undefined;
  return Object.freeze({ name, role, value, ...(strides !== undefined && { strides }) });
}

/** Everything the specification names, as the objects that the body works with. */
function bodyArgument(
  trace: Trace,
  {
    grid,
    threads,
    hasThreads,
    inputs,
    outputs,
    inouts,
    scratch,
    name: kernelName,
    names,
  }: CheckedSpec,
  parameters: readonly Parameter[],
  values: readonly Value[],
  location: Location,
): { readonly [name: string]: unknown } {
  const argument: { [name: string]: unknown } = {};
  for (const [position, { name, spec }] of parameters.entries()) {
    const value = values[position];
    if (value === undefined) throw new Error(`parameter ${name} has no value`);
    const made = originOf(value, location);
    argument[name] = spec.kind === "scalar" ? new Scalar(made) : new Ref(made);
  }
  const lists = Object.entries({ ...inputs, ...outputs, ...inouts });
  for (const [name, spec] of lists)
    if (spec.kind === "arrays") argument[name] = listArgument(name, spec.count, argument);
  for (const { name } of grid)
    argument[name] = new Scalar(emitOrigin("block_index", {}, { axis: name }, location));
  for (const [name, spec] of Object.entries(scratch)) argument[name] = allocate(name, spec);
  if (hasThreads)
    for (const [position, name] of threads.entries())
      argument[name] = (body: () => void) => {
        onThreads(trace, name, [position], body, captureLocation());
      };
  return refuseUnknownNames(argument, kernelName, names);
}

/** The list whose arrays are arguments by names of their own. */
function listArgument(
  name: string,
  count: number,
  argument: { readonly [name: string]: unknown },
): TensorList {
  const all = Array.from({ length: count }, (_, index) => argument[listedName(name, index)]);
  const arrays: readonly Ref[] = all.filter((array) => array instanceof Ref);
  return new TensorList(name, arrays);
}

/** A name that the specification does not have is a mistake, not `undefined`. */
function refuseUnknownNames(
  argument: { readonly [name: string]: unknown },
  kernelName: string,
  names: readonly string[],
): { readonly [name: string]: unknown } {
  return new Proxy(argument, {
    get(target, name): unknown {
      if (typeof name === "symbol" || Object.hasOwn(target, name)) return Reflect.get(target, name);
      throw new TilewrightError({
        code: "TW1022",
        message: `kernel ${kernelName} has nothing called ${name}`,
        expected: `one of ${names.join(", ") || "no names"}`,
        found: name,
      });
    },
  });
}
