/**
 * From a traced kernel to one that is loaded. Two caches make that short: ours keeps what the compiler made of a
 * kernel (the plan of its launch, its PTX, what the assembler said), the driver's what its assembler made of PTX.
 *
 *   kernel ──key──▶ plan and PTX?  ──yes────────────────────────────┐
 *      └─no─▶ passes ▶ placement ▶ PTX, kept with its plan ─────────┴─▶ driver: machine code by PTX? ──no──▶ assembler
 *
 * The driver's log exists only when its assembler runs, so it is kept with the PTX from then on.
 */
import type { MachineCode } from "../device/backend.ts";
import type { Kernel } from "../ir/node.ts";
import { requireCodeFor } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { Executable, LaunchPlan } from "../ptx/executable.ts";
import { usageIn } from "../ptx/notes/assembler-notes.ts";
import { printPtx } from "../ptx/printer.ts";
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import type { Build, KernelCache, KeptCode } from "./cache/kernel-cache.ts";
import type { CudaContext } from "./context.ts";
import { requirePtx } from "./gpu.ts";
import { loadProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface LoadedKernel {
  readonly program: Program;
  readonly cached: boolean;
  readonly machineCode: MachineCode;
}

/** Makes kernels ready on a context. */
export interface KernelLoader {
  /** `text` tells the kernel from every other one. */
  compile(context: CudaContext, kernel: Kernel, text: string): LoadedKernel;
  /** A kernel that was compiled ahead of time; the log of its PTX is kept in the cache. */
  load(context: CudaContext, kernel: CompiledKernel): LoadedKernel;
}

/** Compiles a kernel as it was traced. */
export type KernelCompiler = (kernel: Kernel, target: Target) => Executable;

export function kernelLoader(compile: KernelCompiler, cache: KernelCache): KernelLoader {
  return {
    compile: (context, kernel, text) => {
      const { location } = kernel;
      const build = buildOf(context);
      const known = cache.readKernel(text, build);
      const found =
        known && tryLoading(() => loadPtx(context, cache, { ...known, location }, known));
      if (found !== undefined) return { ...found, cached: true };
      const { module, ...plan } = compile(kernel, context.target);
      requirePtx(kernel.name, module.version, build.driverVersion);
      const ptx = printPtx(module);
      const loaded = loadPtx(context, cache, { plan, location, ptx });
      cache.writeKernel(text, ptx, build, plan);
      return { ...loaded, cached: false };
    },
    load: (context, kernel) => {
      const { plan, code, name } = kernel;
      const { location } = kernel.kernel;
      requireCodeFor(kernel, context.target);
      if (typeof code !== "string") {
        const program = loadProgram(context, plan, location, code);
        return { program, cached: true, machineCode: machineCodeOf(program, program.log) };
      }
      const version = /^\s*\.version\s+([\d.]+)/m.exec(code)?.[1] ?? "0.0";
      requirePtx(name, version, context.gpu.driverVersion);
      return loadPtx(context, cache, { plan, location, ptx: code });
    },
  };
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

/** A program from PTX; the log of its assembler is kept, since the driver has it but once. */
function loadPtx(
  context: CudaContext,
  cache: KernelCache,
  { plan, location, ptx }: PlannedPtx,
  known?: KeptCode,
): LoadedKernel {
  const build = buildOf(context);
  const program = loadProgram(context, plan, location, ptx);
  const kept = known ?? cache.readCode(ptx, build);
  if (program.log !== undefined || kept === undefined)
    cache.writeCode(build, plan.name, { ptx, log: program.log });
  const log = program.log ?? kept?.log;
  return { program, cached: program.log === undefined, machineCode: machineCodeOf(program, log) };
}

function machineCodeOf({ registers, localBytes }: Program, log: string | undefined): MachineCode {
  return { registers, localBytes, log, warnings: log === undefined ? [] : usageIn(log).warnings };
}

/** What comes from a file may be of no use to this driver after all. */
function tryLoading(load: () => LoadedKernel): LoadedKernel | undefined {
  try {
    return load();
  } catch {
    return undefined;
  }
}
