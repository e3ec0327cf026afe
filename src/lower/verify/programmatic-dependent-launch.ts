/**
 * Whether a kernel under programmatic dependent launch still waits before it accesses global memory, once loads have been merged, loops
 * unrolled and copies moved ahead. `ptx/emit` decides by the same `dependentLaunchOf` whether to launch it so.
 */
import { dependentLaunchOf } from "../../ir/programmatic-dependent-launch.ts";
import type { Kernel } from "../../ir/node.ts";
import { accessText } from "../../ir/verify/programmatic-dependent-launch.ts";
import { reject } from "../../ir/verify/report.ts";

export function verifyDependentLaunch(kernel: Kernel): void {
  const { wait, beforeWait, waitsBeforeEnd } = dependentLaunchOf(kernel);
  const [first] = beforeWait;
  if (first !== undefined)
    reject(first.op, "TW6211", `${accessText(first)} before the kernel before has ended`, {
      expected: "grid_dependency {action = wait} before it, on every way",
      found: "a way without it",
    });
  if (wait !== undefined && !waitsBeforeEnd)
    reject(wait, "TW6211", "a block may end before the kernel before has ended", {
      expected: "grid_dependency {action = wait} on every way to the end",
      found: "a way without it",
    });
}
