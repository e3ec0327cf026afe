/** Kernels compiled ahead of time, for machines that have the compiler no longer. */
import type { Kernel } from "../ir/node.ts";
import { kernelFor } from "../ir/target-variants.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { requireTarget } from "../targets/given.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { manifestOf } from "../ptx/compiled-kernel.ts";
import type { CompiledManifest } from "../ptx/compiled-kernel.ts";
import type { Executable } from "../ptx/executable.ts";
import { portableExecutable } from "../ptx/relative-source-paths.ts";
import { printPtx } from "../ptx/printer.ts";
import { lower } from "./stages.ts";

/** Compiles a kernel as it was traced, for other machines. */
export function compileForFiles(kernel: Kernel, target: Target): Executable {
  return portableExecutable(lower(kernel, target));
}

/** PTX, and what a launch of it needs. */
export interface CompiledAhead {
  /** The PTX. */
  readonly ptx: string;
  /** What `loadKernel` needs besides the code, to be kept as JSON. */
  readonly manifest: CompiledManifest;
}

/** Compiles a kernel ahead of time, for one of the known targets, on any machine. */
export function compileAhead(
  definition: KernelDefinition,
  target: Target | TargetName = defaultTarget,
): CompiledAhead {
  const location = captureLocation();
  if (!isKernelDefinition(definition))
    throw new TilewrightError({
      code: "TW4023",
      message: "compileAhead takes a kernel first",
      location,
      expected: "a kernel",
      found: optionText(definition),
      remedy: "give what kernel(…) gave",
    });
  const own = requireTarget(target, location);
  const kernel = kernelFor(definition.kernel, own);
  const { module, ...plan } = compileForFiles(kernel, own);
  const ptx = printPtx(module);
  return { ptx, manifest: manifestOf(kernel, plan, ptx) };
}
