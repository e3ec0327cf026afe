/**
 * Whether a kernel runs under programmatic dependent launch: it starts before the kernel before it has ended, and waits for that by itself:
 *
 *   kernel before    ……… writes sizes ……… end
 *   this kernel          start ……… griddepcontrol.wait ┤ ld.global sizes
 *
 * Its inputs may be written while it runs, so it must not read them by `ld.global.nc`: that promises that nobody writes the memory, and an
 * assembler relies on it and moves such loads above the wait.
 *
 * Targets without the instruction, and kernels that write profile marks from their first line on, start when the kernel before has ended. A
 * kernel that reads settled arrays before its wait may start early only behind the launch that precedes it in its plan, which is known not
 * to write them.
 */
import { dependentLaunchOf } from "../../ir/programmatic-dependent-launch.ts";
import type { Kernel } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { LaunchPlan } from "../executable.ts";

export function dependentLaunch(kernel: Kernel): LaunchPlan["dependentLaunch"] {
  const { wait, settled } = dependentLaunchOf(kernel);
  if (wait === undefined || isProfiled(kernel)) return false;
  if (kernel.placed?.target.features.includes("cluster") !== true) return false;
  return settled.length === 0 || "in a plan";
}

function isProfiled({ body }: Kernel): boolean {
  let marks = false;
  walkOps(body, (op) => {
    marks ||= op.kind === "profile_mark" && op.operands.ring !== undefined;
  });
  return marks;
}
