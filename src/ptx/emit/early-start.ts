/**
 * Kernels that start before the kernel before them has ended, and wait for it by themselves:
 *
 *   kernel before    ……… writes sizes ……… end
 *   this kernel          start ……… griddepcontrol.wait ┤ ld.global sizes
 *
 * What such a kernel reads is written while it runs, so that none of it may be read by `ld.global.nc`: memory that nobody
 * writes is what that promises, and an assembler takes it at its word and loads above the wait.
 *
 * Targets without the instruction, and kernels whose marks of a profile are written from their first line on, start when the kernel before has
 * ended. One that reads settled arrays before it waits may start early only behind the launch that its plan has before it, which is known to
 * leave them alone.
 */
import { startOf } from "../../ir/early-start.ts";
import type { Kernel } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { LaunchPlan } from "../executable.ts";

export function dependentLaunch(kernel: Kernel): LaunchPlan["dependentLaunch"] {
  const { wait, settled } = startOf(kernel);
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
