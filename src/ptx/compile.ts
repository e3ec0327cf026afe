/** From a kernel to PTX: what the target can hold, placement, then emission. */
import type { Kernel } from "../ir/node.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { placeKernel } from "../layout/plan/place.ts";
import { runPasses } from "../passes/pipeline.ts";
import { requireBlockLimits } from "../sim/limits.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { defaultTarget, targetNamed, targetNames } from "../targets/target.ts";
import type { Target, TargetName } from "../targets/target.ts";
import { manifestOf } from "./compiled-kernel.ts";
import type { CompiledManifest } from "./compiled-kernel.ts";
import { emitKernel } from "./emit/kernel.ts";
import type { Executable } from "./executable.ts";
import { portableExecutable } from "./portable.ts";
import { printPtx } from "./printer.ts";

/** Compiles a kernel that the passes have been over. */
export function compileKernel(kernel: Kernel, target: Target): Executable {
  requireBlockLimits(kernel, target);
  return emitKernel(placeKernel(kernel, target));
}

/** Compiles a kernel as it was traced, for other machines. */
export function compileForFiles(kernel: Kernel, target: Target): Executable {
  return portableExecutable(compileKernel(runPasses(kernel), target));
}

/** PTX, and what a launch of it needs. */
export interface CompiledAhead {
  readonly ptx: string;
  readonly manifest: CompiledManifest;
}

function targetOf(target: unknown, location: Location): Target {
  const found = targetNamed(target);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW4016",
    message: `compileAhead does not know this target`,
    location,
    expected: `${targetNames.join(", ")}, by name or as a description`,
    found: optionText(target),
  });
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
  const { kernel } = definition;
  const { module, ...plan } = compileForFiles(kernel, targetOf(target, location));
  const ptx = printPtx(module);
  return { ptx, manifest: manifestOf(kernel, plan, ptx) };
}
