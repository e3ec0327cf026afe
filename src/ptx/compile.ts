/** From a kernel to PTX: what the target can hold, placement, then emission. */
import type { Kernel } from "../ir/node.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { placeKernel } from "../layout/plan/place.ts";
import { runPasses } from "../passes/pipeline.ts";
import { requireBlockLimits } from "../sim/limits.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { manifestOf } from "./compiled-kernel.ts";
import type { CompiledManifest } from "./compiled-kernel.ts";
import { emitKernel } from "./emit/kernel.ts";
import type { Executable } from "./executable.ts";
import { printPtx } from "./printer.ts";

/** Compiles a kernel that the passes have been over. */
export function compileKernel(kernel: Kernel, target: Target): Executable {
  requireBlockLimits(kernel, target);
  return emitKernel(placeKernel(kernel, target));
}

/** PTX, and what a launch of it needs. */
export interface CompiledAhead {
  readonly ptx: string;
  readonly manifest: CompiledManifest;
}

/** Compiles a kernel ahead of time, for one of the known targets, on any machine. */
export function compileAhead(
  { kernel }: KernelDefinition,
  target: Target = defaultTarget,
): CompiledAhead {
  const { module, ...plan } = compileKernel(runPasses(kernel), target);
  const ptx = printPtx(module);
  return { ptx, manifest: manifestOf(kernel, plan, ptx) };
}
