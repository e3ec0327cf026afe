/**
 * The simulator's entry: runs a kernel on arguments, in slices of time, so that a page or a server goes
 * on responding meanwhile.
 *
 *   kernel --assemble--> program --Machine--> arrays written in place, findings
 */
import { allocateElements } from "../formats/dtype.ts";
import type { DType, HostValue, Elements } from "../formats/dtype.ts";
import { writeElement } from "../formats/values.ts";
import type { Kernel, KernelParameter } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import type { DimensionValues } from "../ir/size.ts";
import { EventLoopYield } from "../support/event-loop-yield.ts";
import type { TilewrightError } from "../support/diagnostics.ts";
import { LimitWatch } from "../support/run-limits.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { assemble } from "./assemble.ts";
import { stoppedRun } from "./deadlock.ts";
import type { WaitGraph } from "./deadlock.ts";
import { Grid } from "./grid.ts";
import { requireLimits } from "./target-limits.ts";
import { Machine } from "./machine.ts";
import { Memory } from "./memory.ts";
import type { Observer } from "./program.ts";
import type { Statistics } from "./reports.ts";
import type { ScheduleName } from "./scheduler.ts";
import type { RunTimeline } from "./timeline.ts";
import { toScalar } from "./values.ts";
import type { SlotValue } from "./values.ts";
import { wholeView } from "./view.ts";

/** An array of global memory in packed form: elements, or two elements a byte for 4-bit formats. */
export interface SimulatedBuffer {
  readonly dtype: DType;
  readonly data: Elements;
  /** Whether the kernel may read it before writing it. */
  readonly initialised: boolean;
}

export interface SimulationArguments {
  readonly arrays: ReadonlyMap<string, SimulatedBuffer>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: DimensionValues;
}

export interface SimulationOptions {
  readonly target?: Target | undefined;
  readonly schedule?: ScheduleName | undefined;
  readonly seed?: number | undefined;
  /** Whether to look for races and the like; true where absent. */
  readonly checks?: boolean | undefined;
  readonly onPrint?: ((line: string) => void) | undefined;
  /** The run stops at this many findings. */
  readonly maxFindings?: number | undefined;
  /** Sees every value that is computed; the run rejects with what it throws. */
  readonly observe?: Observer | undefined;
  /** Records what happens when. */
  readonly timeline?: RunTimeline | undefined;
  /** Hears who waits for whom when a run ends in a deadlock, before it is reported. */
  readonly onDeadlock?: ((waits: WaitGraph) => void) | undefined;
  /** When to stop a run that has not come to its end. */
  readonly limits?: RunLimits | undefined;
}

export interface SimulationResult {
  readonly findings: readonly TilewrightError[];
  readonly statistics: Readonly<Statistics>;
}

const defaultMaxFindings = 20;

export async function simulate(
  kernel: Kernel,
  args: SimulationArguments,
  options: SimulationOptions = {},
): Promise<SimulationResult> {
  const checks = options.checks ?? true;
  const target = options.target ?? defaultTarget;
  requireLimits(kernel, target);
  const machine = new Machine(
    assemble(kernel, args.dimensions, options.observe),
    new Grid(kernel, args.dimensions),
    bindParameters(kernel, args, checks),
    {
      target,
      schedule: options.schedule ?? "fixed",
      seed: options.seed ?? 0,
      checks,
      maxFindings: options.maxFindings ?? defaultMaxFindings,
      onPrint: options.onPrint ?? ignore,
      timeline: options.timeline,
      onDeadlock: options.onDeadlock,
    },
  );
  await runInSlices(machine, new LimitWatch(options.limits));
  return { findings: machine.findings.errors, statistics: machine.statistics };
}

function ignore(): void {
  // Printing is for those who ask for it.
}

/** A run that was stopped rejects, and with it goes what was found before. */
async function runInSlices(machine: Machine, watch: LimitWatch): Promise<void> {
  const yields = new EventLoopYield();
  const isPaused = (): boolean =>
    yields.isDue || watch.reached(machine.statistics.steps) !== undefined;
  while (!machine.run(isPaused)) {
    const reached = watch.reached(machine.statistics.steps);
    if (reached !== undefined) throw stoppedRun(machine, reached);
    await yields.giveWay();
  }
}

function bindParameters(
  kernel: Kernel,
  args: SimulationArguments,
  checks: boolean,
): readonly SlotValue[] {
  // An array passed twice is one memory.
  const memories = new Map<Elements, Memory>();
  return kernel.parameters.map((parameter) =>
    parameter.value.type.kind === "ref"
      ? bindArray(parameter, args, checks, memories)
      : bindScalar(parameter, args),
  );
}

function bindScalar({ name, value }: KernelParameter, { scalars }: SimulationArguments): SlotValue {
  const given = scalars.get(name);
  if (value.type.kind !== "scalar" || given === undefined)
    throw new Error(`argument ${name} is missing`);
  const elements = allocateElements(value.type.dtype, 1);
  writeElement(value.type.dtype, elements, 0, given);
  return toScalar(elements);
}

function bindArray(
  { name, value, strides }: KernelParameter,
  { arrays, dimensions }: SimulationArguments,
  checks: boolean,
  memories: Map<Elements, Memory>,
): SlotValue {
  const given = arrays.get(name);
  if (value.type.kind !== "ref" || given === undefined)
    throw new Error(`argument ${name} is missing`);
  const { dtype, shape } = value.type;
  const { buffer, byteOffset, byteLength } = given.data;
  const granuleBytes = dtype.bits / 8;
  const { initialised } = given;
  let memory = memories.get(given.data);
  if (memory === undefined) {
    memory = new Memory(
      { name, space: "gmem", location: undefined, site: -1 },
      new Uint8Array(buffer, byteOffset, byteLength),
      checks ? { granuleBytes, initialised } : undefined,
    );
    memories.set(given.data, memory);
  }
  const sizes = shape.map((size) => evaluateSize(size, dimensions));
  return wholeView(memory, dtype, sizes, {
    ...(strides !== undefined && {
      strides: strides.map((stride) => evaluateSize(stride, dimensions)),
    }),
  });
}
