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
import type { Executable, LaunchPlan } from "../ptx/executable.ts";
import { printPtx } from "../ptx/printer.ts";
import type { Target } from "../targets/target.ts";
import { assemble } from "./assemble.ts";
import type { Assembled } from "./assemble.ts";
import type { KernelCache } from "./cache/kernel-cache.ts";
import type { CudaContext } from "./context.ts";
import { requirePtx } from "./gpu.ts";
import { loadProgram } from "./program.ts";
import type { Program } from "./program.ts";

export interface LoadedKernel {
  readonly program: Program;
  readonly cached: boolean;
  readonly warnings: readonly string[];
}

/** Makes a kernel ready on a context; `text` tells it from every other kernel. */
export type KernelLoader = (context: CudaContext, kernel: Kernel, text: string) => LoadedKernel;

/** Compiles a kernel that the passes have been over. */
export type KernelCompiler = (kernel: Kernel, target: Target) => Executable;

export function kernelLoader(compile: KernelCompiler, cache: KernelCache): KernelLoader {
  return (context, kernel, text) => {
    const { location } = kernel;
    const build = { target: context.target, driverVersion: context.gpu.driverVersion };
    const load = (plan: LaunchPlan, { cubin }: Assembled): Program =>
      loadProgram(context, plan, location, cubin);
    const known = cache.readKernel(text, build);
    const found = known === undefined ? undefined : tryLoading(() => load(known.plan, known));
    if (known !== undefined && found !== undefined)
      return { program: found, cached: true, warnings: known.warnings };

    const { module, ...plan } = compile(runPasses(kernel), context.target);
    requirePtx(kernel.name, module.version, build.driverVersion);
    const ptx = printPtx(module);
    const kept = cache.readCode(ptx, build);
    const loaded = kept === undefined ? undefined : tryLoading(() => load(plan, kept));
    const code =
      kept !== undefined && loaded !== undefined
        ? kept
        : assemble(context, { name: kernel.name, location, ptx });
    const program = loaded ?? load(plan, code);
    cache.write(text, ptx, build, plan, code);
    return { program, cached: false, warnings: code.warnings };
  };
}

/** What comes from a file may be of no use to this driver after all. */
function tryLoading(load: () => Program): Program | undefined {
  try {
    return load();
  } catch {
    return undefined;
  }
}
