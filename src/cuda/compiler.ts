/**
 * From a traced kernel to one that is loaded. The cache is asked twice: by the kernel itself, which finds
 * everything a launch needs without compiling anything, and by the PTX, which spares the assembler where
 * another kernel, or another version of tilewright, led to the same text.
 *
 *   kernel ──key──▶ plan and cubin?  ──yes──────────────────────────────────▶ load
 *      └─no─▶ passes ▶ placement ▶ PTX ──key──▶ cubin?  ──no──▶ assembler ──▶ load, and keep both
 */
import type { Kernel } from "../ir/node.ts";
import { runPasses } from "../passes/pipeline.ts";
import { requireCodeFor } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import type { Executable, LaunchPlan } from "../ptx/executable.ts";
import { printPtx } from "../ptx/printer.ts";
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import { assemble } from "./assemble.ts";
import type { Build, KernelCache } from "./cache/kernel-cache.ts";
import type { CudaContext } from "./context.ts";
import { requirePtx } from "./gpu.ts";
import { loadProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface LoadedKernel {
  readonly program: Program;
  readonly cached: boolean;
  readonly warnings: readonly string[];
}

/** Makes kernels ready on a context. */
export interface KernelLoader {
  /** `text` tells the kernel from every other one. */
  compile(context: CudaContext, kernel: Kernel, text: string): LoadedKernel;
  /** A kernel that was compiled ahead of time; its PTX is assembled once and kept in the cache. */
  load(context: CudaContext, kernel: CompiledKernel): LoadedKernel;
}

/** Compiles a kernel that the passes have been over. */
export type KernelCompiler = (kernel: Kernel, target: Target) => Executable;

export function kernelLoader(compile: KernelCompiler, cache: KernelCache): KernelLoader {
  return {
    compile: (context, kernel, text) => {
      const { location } = kernel;
      const build = buildOf(context);
      const known = cache.readKernel(text, build);
      const found =
        known && tryLoading(() => loadProgram(context, known.plan, location, known.cubin));
      if (known !== undefined && found !== undefined)
        return { program: found, cached: true, warnings: known.warnings };
      const { module, ...plan } = compile(runPasses(kernel), context.target);
      requirePtx(kernel.name, module.version, build.driverVersion);
      const ptx = printPtx(module);
      const loaded = assembled(context, cache, { plan, location, ptx });
      cache.writeKernel(text, ptx, build, plan);
      return { ...loaded, cached: false };
    },
    load: (context, kernel) => {
      const { plan, code, name } = kernel;
      const { location } = kernel.kernel;
      requireCodeFor(kernel, context.target);
      if (typeof code !== "string")
        return { program: loadProgram(context, plan, location, code), cached: true, warnings: [] };
      const version = /^\s*\.version\s+([\d.]+)/m.exec(code)?.[1] ?? "0.0";
      requirePtx(name, version, context.gpu.driverVersion);
      return assembled(context, cache, { plan, location, ptx: code });
    },
  };
}

function buildOf({ target, gpu: { driverVersion } }: CudaContext): Build {
  return { target, driverVersion };
}

/** PTX and how it is launched. */
interface PlannedPtx {
  readonly plan: LaunchPlan;
  readonly location: Location;
  readonly ptx: string;
}

/** A program from PTX, by the cache's code where it has any. */
function assembled(
  context: CudaContext,
  cache: KernelCache,
  { plan, location, ptx }: PlannedPtx,
): LoadedKernel {
  const build = buildOf(context);
  const kept = cache.readCode(ptx, build);
  const loaded = kept && tryLoading(() => loadProgram(context, plan, location, kept.cubin));
  if (kept !== undefined && loaded !== undefined)
    return { program: loaded, cached: true, warnings: kept.warnings };
  const code = assemble(context, { name: plan.name, location, ptx });
  const program = loadProgram(context, plan, location, code.cubin);
  cache.writeCode(ptx, build, plan.name, code);
  return { program, cached: false, warnings: code.warnings };
}

/** What comes from a file may be of no use to this driver after all. */
function tryLoading(load: () => Program): Program | undefined {
  try {
    return load();
  } catch {
    return undefined;
  }
}
