/**
 * From a traced kernel to one that is loaded. Two caches make that short: ours keeps what the compiler made of a
 * kernel (the plan of its launch, its PTX, what the assembler said), the driver's what its assembler made of PTX.
 *
 *   kernel ──key──▶ plan and PTX?  ──yes────────────────────────────┐
 *      └─no─▶ passes ▶ placement ▶ PTX, kept with its plan ─────────┴─▶ driver: machine code by PTX? ──no──▶ assembler
 *
 * Of the launches of an operation ours may also know the kernels by what the operation was given, before any is traced.
 *
 * The driver's log exists only when its assembler runs, so it is kept with the PTX from then on.
 */
import type { Compiled, KeptPlans, LaunchToKeep, MachineCode } from "../device/backend.ts";
import type { Kernel } from "../ir/node.ts";
import { walkOps } from "../ir/traverse.ts";
import { interfaceData, interfaceOf, requireCodeFor } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { NotedExecutable } from "../lower/stages.ts";
import type { LaunchPlan } from "../ptx/executable.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import { printPtx } from "../ptx/printer.ts";
import { formatPosition } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import type {
  Build,
  CachedKernel,
  KernelCache,
  KeptCode,
  KeptMachineCode,
} from "./cache/kernel-cache.ts";
import type { CudaContext } from "./context.ts";
import { requirePtx } from "./gpu.ts";
import { loadProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface LoadedKernel {
  readonly program: Program;
  readonly cached: boolean;
  readonly machineCode: MachineCode;
  readonly notes: readonly PerformanceNote[];
}

/** A program and what the assembler made of it. */
type LoadedCode = Omit<LoadedKernel, "notes">;

/** Makes kernels ready on a context. */
export interface KernelLoader {
  /** Whether an earlier process, or a helper, has compiled the kernel that `text` tells from every other one. */
  isKept(context: CudaContext, text: string): boolean;
  /** `text` tells the kernel from every other one. */
  compile(context: CudaContext, kernel: Kernel, text: string): LoadedKernel;
  /** A kernel that was compiled ahead of time; the log of its PTX is kept in the cache. */
  load(context: CudaContext, kernel: CompiledKernel): LoadedKernel;
  /** Launches of operations, kept from one process to the next; `ready` makes of them what the back end runs. */
  keptPlans<P>(context: CudaContext, ready: (loaded: LoadedKernel) => Compiled<P>): KeptPlans<P>;
  /** Keeps for later processes what was compiled and planned since: it takes milliseconds that a first result need not wait for. */
  keepAll(): void;
}

/** Compiles a kernel as it was traced. */
export type KernelCompiler = (kernel: Kernel, target: Target) => NotedExecutable;

/** The machine code that the driver has just made of PTX, where that can be had. */
export type TakeMachineCode = (ptx: string) => Uint8Array | undefined;

export function kernelLoader(
  compile: KernelCompiler,
  cache: KernelCache,
  takeMachineCode: TakeMachineCode = () => undefined,
): KernelLoader {
  const toKeep: (() => void)[] = [];
  const keepLater = (work: () => void): void => {
    toKeep.push(work);
  };
  // Nobody has asked for this, so nobody is there to be told of what fails: it is compiled again another time.
  const keepAll = (): void => {
    for (const work of toKeep.splice(0)) tryLoading(work);
  };
  const loadPtx = (context: CudaContext, planned: PlannedPtx, known?: KeptCode): LoadedCode =>
    loadPlanned({ context, cache, takeMachineCode, keepLater }, planned, known);
  return {
    keepAll,
    isKept: (context, text) => {
      keepAll();
      return cache.readKernel(text, buildOf(context)) !== undefined;
    },
    compile: (context, kernel, text) => {
      const { location } = kernel;
      const build = buildOf(context);
      const known = cache.readKernel(text, build);
      const found = known && tryLoading(() => loadPtx(context, { ...known, location }, known));
      if (known !== undefined && found !== undefined)
        return { ...found, cached: true, notes: currentNotes(known, kernel, context, compile) };
      const { executable, notes } = compile(kernel, context.target);
      const { module, ...plan } = executable;
      requirePtx(kernel.name, module.version, build.driverVersion);
      const ptx = printPtx(module);
      const loaded = loadPtx(context, { plan, location, ptx });
      keepLater(() => {
        const lines = notes.length === 0 ? undefined : sourceLines(kernel);
        cache.writeKernel(text, ptx, build, { plan, notes, lines });
      });
      return { ...loaded, cached: false, notes };
    },
    load: (context, kernel) => {
      const { plan, code, name } = kernel;
      const { location } = kernel.kernel;
      requireCodeFor(kernel, context.target);
      if (typeof code !== "string") {
        const program = loadProgram(context, plan, location, code);
        return {
          program,
          cached: true,
          machineCode: machineCodeOf(program, program.log),
          notes: [],
        };
      }
      const version = /^\s*\.version\s+([\d.]+)/m.exec(code)?.[1] ?? "0.0";
      requirePtx(name, version, context.gpu.driverVersion);
      return { ...loadPtx(context, { plan, location, ptx: code }), notes: [] };
    },
    keptPlans: (context, ready) => keptPlans({ context, cache, takeMachineCode, keepLater }, ready),
  };
}

/** Launches of operations in the cache. */
function keptPlans<P>(
  loading: Loading,
  ready: (loaded: LoadedKernel) => Compiled<P>,
): KeptPlans<P> {
  const { context, cache, keepLater } = loading;
  const build = buildOf(context);
  return {
    read: (text, location) => {
      const kept = cache.readPlan(text, build);
      const launches = kept?.launches.map(({ kernel, key, ...inputs }) => ({
        ...inputs,
        key,
        kernel: { ...interfaceOf(kernel), location },
        load: () => {
          const known = cache.readKernelOf(key, build);
          if (known === undefined || !isSilent(known)) return undefined;
          const found = tryLoading(() => loadPlanned(loading, { ...known, location }, known));
          return found && ready({ ...found, cached: true, notes: [] });
        },
      }));
      return launches && { launches, scratch: kept?.scratch ?? {} };
    },
    write: (text, launches, scratch) => {
      const isFound = ({ text: own }: LaunchToKeep): boolean => {
        const known = cache.readKernel(own, build);
        return known !== undefined && isSilent(known);
      };
      keepLater(() => {
        if (!launches.every(isFound)) return;
        const kept = launches.map(({ kernel, ...launch }) => ({
          ...launch,
          kernel: interfaceData(kernel),
        }));
        cache.writePlan(text, build, { launches: kept, scratch });
      });
    },
  };
}

/** Whether a kernel tells of no source lines, which only tracing it knows. */
function isSilent({ notes, plan }: CachedKernel): boolean {
  return notes.length === 0 && plan.messages.length === 0;
}

/** Notes name source lines, which may have moved since the kernel was kept. */
function currentNotes(
  { notes, lines }: CachedKernel,
  kernel: Kernel,
  { target }: CudaContext,
  compile: KernelCompiler,
): readonly PerformanceNote[] {
  if (notes.length === 0 || lines === sourceLines(kernel)) return notes;
  return compile(kernel, target).notes;
}

/** Where the user wrote each op. */
function sourceLines({ body }: Kernel): string {
  const lines: string[] = [];
  walkOps(body, ({ location }) => lines.push(formatPosition(location.position)));
  return lines.join("\n");
}

function buildOf({ target, gpu: { driverVersion, major, minor } }: CudaContext): Build {
  return { target, driverVersion, capability: `${major}.${minor}` };
}

/** PTX and how it is launched. */
interface PlannedPtx {
  readonly plan: LaunchPlan;
  readonly location: Location;
  readonly ptx: string;
}

/** Where code is loaded, and what is known of it. */
interface Loading {
  readonly context: CudaContext;
  readonly cache: KernelCache;
  readonly takeMachineCode: TakeMachineCode;
  readonly keepLater: (work: () => void) => void;
}

/** A program from machine code that is kept, or from PTX; the log of its assembler is kept, since the driver has it but once. */
function loadPlanned(
  { context, cache, takeMachineCode, keepLater }: Loading,
  planned: PlannedPtx,
  known: KeptCode | undefined,
): LoadedCode {
  const { plan, location, ptx } = planned;
  const build = buildOf(context);
  const kept = known ?? cache.readCode(ptx, build);
  const machine = cache.readMachineCode(ptx, build);
  const ready = machine && tryLoading(() => loadMachineCode(context, planned, machine));
  if (ready !== undefined)
    return { program: ready, cached: true, machineCode: machineCodeOf(ready, kept?.log) };
  const program = loadProgram(context, plan, location, ptx);
  // A driver that keeps nothing says the same each time.
  const isNew = kept === undefined || (kept.log === undefined && program.log !== undefined);
  if (isNew)
    keepLater(() => {
      cache.writeCode(build, plan.name, { ptx, log: program.log });
    });
  if (program.log !== undefined)
    keepLater(() => {
      const code = takeMachineCode(ptx);
      if (code !== undefined) keepMachineCode(context, cache, planned, { ...program, code });
    });
  const log = program.log ?? kept?.log;
  return { program, cached: program.log === undefined, machineCode: machineCodeOf(program, log) };
}

/** A program from machine code; what takes other registers than it should is something else. */
function loadMachineCode(
  context: CudaContext,
  { plan, location }: PlannedPtx,
  { code, registers, localBytes }: KeptMachineCode,
): Program {
  const program = loadProgram(context, plan, location, code);
  if (program.registers === registers && program.localBytes === localBytes) return program;
  program.unload();
  throw new Error(`the machine code is not that of ${plan.name}`);
}

/** Keeps machine code for later processes, once it is known to load as what the driver made of the PTX. */
function keepMachineCode(
  context: CudaContext,
  cache: KernelCache,
  planned: PlannedPtx,
  { code, registers, localBytes }: KeptMachineCode,
): void {
  const made = { code, registers, localBytes };
  const again = tryLoading(() => loadMachineCode(context, planned, made));
  if (again === undefined) return;
  again.unload();
  cache.writeMachineCode(planned.ptx, buildOf(context), planned.plan.name, made);
}

function machineCodeOf({ registers, localBytes }: Program, log: string | undefined): MachineCode {
  return { registers, localBytes, log };
}

/** What comes from a file may be of no use to this driver after all, or there may be no room for one. */
function tryLoading<T>(load: () => T): T | undefined {
  try {
    return load();
  } catch {
    return undefined;
  }
}
