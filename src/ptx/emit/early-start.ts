/**
 * Kernels that start before the kernel before them has ended, and wait for it by themselves:
 *
 *   kernel before    ……… writes sizes ……… end
 *   this kernel          start ……… griddepcontrol.wait ┤ ld.global sizes
 *
 * What such a kernel reads is written while it runs, so that none of it may be read by `ld.global.nc`: memory that nobody
 * writes is what that promises, and an assembler takes it at its word and loads above the wait.
 */
import type { Region } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";

export function waitsForKernelBefore(body: Region): boolean {
  let waits = false;
  walkOps(body, (op) => {
    waits ||= op.kind === "grid_dependency" && op.attributes.action === "wait";
  });
  return waits;
}
