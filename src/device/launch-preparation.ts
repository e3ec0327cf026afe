/**
 * From a kernel or an operation and its arguments to launches with everything known: arguments are collected and bound,
 * the plan of an operation is made, kernels are compiled, and scratch and rings of profiles get their arrays.
 */
import type { DType } from "../formats/dtype.ts";
import { u32 } from "../formats/dtype.ts";
import type { Kernel } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import { kernelFor } from "../ir/target-variants.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { LaunchLimits, RunLimits } from "../support/run-limits.ts";
import { collectArguments } from "./arguments.ts";
import type { ArgumentValue } from "./arguments.ts";
import type { Allocation, Backend, Launch } from "./backend.ts";
import type { CompilationCache, LoadedLaunch } from "./compilation.ts";
import { disposeAll } from "./device-array.ts";
import type { ArrayRegistry, DeviceArray } from "./device-array.ts";
import { isOperation } from "./operation.ts";
import type { Operation, PlannedLaunch } from "./operation.ts";
import { plannedCalls } from "./bind-plan.ts";
import type { Profiler } from "./profile/profiler.ts";
import type { DeviceTuning } from "./tuning/advice.ts";
import type { Launchable } from "./types.ts";
import type { LaunchOptions } from "./wait-limits.ts";

/** Launches to be issued one after the other, and arrays that they alone use. */
export interface PreparedWork {
  readonly launches: readonly Launch[];
  readonly scratch: readonly DeviceArray[];
  /** What is on its way before the launches are issued. */
  readonly begun: readonly Promise<void>[];
  /** To be called when they have been. */
  readonly then: readonly (() => Promise<void>)[];
}

/** What of a device a preparation needs. */
export interface PreparingDevice {
  readonly backend: Backend;
  readonly arrays: ArrayRegistry;
  readonly compilations: CompilationCache;
  readonly limits: RunLimits | undefined;
  readonly tuning: DeviceTuning;
  /** Undefined where nobody asked for profiles. */
  readonly profiler: Profiler | undefined;
  readonly allocate: (dtype: DType, shape: readonly number[]) => DeviceArray;
}

interface NamedArguments {
  readonly [name: string]: ArgumentValue;
}

type PreparingOptions = LaunchOptions & LaunchLimits;

export class LaunchPreparation {
  readonly #device: PreparingDevice;

  constructor(device: PreparingDevice) {
    this.#device = device;
  }

  /** Work to be issued once; with `again`, work that is issued many times, of which there are no profiles. */
  prepare(
    definition: Launchable,
    args: NamedArguments,
    options: PreparingOptions,
    again = false,
  ): PreparedWork {
    if (isOperation(definition)) return this.#ofOperation(definition, args, options);
    const { profiler } = this.#device;
    if (!again && profiler !== undefined && !(definition instanceof CompiledKernel))
      return this.#ofProfiled(definition, profiler, args, options);
    return once(this.#launch(definition, args, options));
  }

  /** The launches of an operation's plan, over the arrays that it is given and fresh ones for its scratch. */
  #ofOperation(
    operation: Operation,
    args: NamedArguments,
    options: PreparingOptions,
  ): PreparedWork {
    const { backend, tuning, compilations, allocate } = this.#device;
    const { target } = backend;
    const collected = collectArguments(operation.kernel, args, options.dimensions ?? {}, target);
    // As the user knows them: launches are given views of them.
    for (const array of collected.arrays.values()) array.allocationFor(this.#device.arrays);
    const plan = operation.planFor(collected.dimensions, target, tuning);
    const kept = compilations.keptPlan(plan, operation.kernel.location);
    const planned: readonly (PlannedLaunch | LoadedLaunch)[] = kept?.launches ?? plan.launches;
    const needed = kept?.scratch ?? plan.scratch;
    const { calls, scratch } = plannedCalls(planned, needed, collected, allocate);
    try {
      const launches = calls.map(({ launch, args: own, dimensions }) =>
        this.#launch("program" in launch ? launch : launch.kernel, own, { ...options, dimensions }),
      );
      if (kept === undefined) compilations.keep(plan);
      return { launches: inOrder(launches), scratch, begun: [], then: [] };
    } catch (error) {
      disposeAll(scratch);
      throw error;
    }
  }

  #ofProfiled(
    definition: KernelDefinition,
    profiler: Profiler,
    args: NamedArguments,
    options: PreparingOptions,
  ): PreparedWork {
    const { backend, allocate } = this.#device;
    const kernel = kernelFor(definition.kernel, backend.target);
    const given = options.dimensions ?? {};
    const { dimensions } = collectArguments(kernel, args, given, backend.target);
    const profiled = profiler.prepare(
      kernel,
      dimensions,
      (shape) => allocate(u32, shape) as DeviceArray<"u32">,
    );
    if (profiled === undefined) return once(this.#launch(definition, args, options));
    const { kernel: marked, rings, cleared, tell } = profiled;
    const scratch = Object.values(rings);
    try {
      const launch = this.#launch({ kernel: marked }, { ...args, ...rings }, options);
      return { launches: [launch], scratch, begun: [cleared], then: [tell] };
    } catch (error) {
      disposeAll(scratch);
      throw error;
    }
  }

  #launch(
    definition: { readonly kernel: Kernel } | LoadedLaunch | CompiledKernel,
    args: NamedArguments,
    options: PreparingOptions,
  ): Launch {
    const { backend, arrays: registry, compilations, limits } = this.#device;
    const kernel =
      "program" in definition || definition instanceof CompiledKernel
        ? definition.kernel
        : kernelFor(definition.kernel, backend.target);
    const collected = collectArguments(kernel, args, options.dimensions ?? {}, backend.target);
    const arrays = new Map<string, Allocation>(
      [...collected.arrays].map(([name, array]) => [name, array.allocationFor(registry)]),
    );
    const { scalars, dimensions } = collected;
    const program =
      definition instanceof CompiledKernel
        ? compilations.load(definition)
        : "program" in definition
          ? definition.program
          : compilations.compile(kernelFor(definition.kernel, backend.target));
    return { kernel, program, arrays, scalars, dimensions, limits: { ...limits, ...options } };
  }
}

/** Launches of a plan, of which each follows the one before it, unless that has no blocks and is not issued. */
function inOrder(launches: readonly Launch[]): readonly Launch[] {
  return launches.map((launch, position) => {
    const before = launches[position - 1];
    const follows =
      before?.kernel.grid.every(({ extent }) => evaluateSize(extent, before.dimensions) > 0) ??
      false;
    return follows ? { ...launch, follows } : launch;
  });
}

function once(launch: Launch): PreparedWork {
  return { launches: [launch], scratch: [], begun: [], then: [] };
}
