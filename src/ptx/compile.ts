/** From a kernel to PTX: placement, then emission. */
import type { Kernel } from "../ir/node.ts";
import { placeKernel } from "../layout/plan/place.ts";
import type { Target } from "../targets/target.ts";
import { emitKernel } from "./emit/kernel.ts";
import type { Executable } from "./executable.ts";

/** Compiles a kernel that the passes have been over. */
export function compileKernel(kernel: Kernel, target: Target): Executable {
  return emitKernel(placeKernel(kernel, target));
}
