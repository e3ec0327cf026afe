/**
 * Where a profiled kernel writes: an array of rings, one for each program thread of each block, or for each of its warps
 * where a scope lies within `warps`; a thread's own scopes are then in all of its warps' rings. A ring is a run of slots of four 32-bit words:
 *
 *   slot 0   processor     scopes' edges so far   clock at the start, low and high
 *   slot 1   global timer at the start            global timer at the end
 *   slot 2   clock at the end                     unused
 *   slot 3 … edges, the newest over the oldest:   site + 1, unused, clock
 *
 * As many slots for edges as the array has beyond the first three; their number is a power of two. Clocks belong to
 * a processor, and the timers tell how those of different processors lie to each other.
 */
import type { AnyOp, Kernel } from "./node.ts";
import { walkOps } from "./traverse.ts";

export const slotWords = 4;
/** Slots before the edges. */
export const headSlots = 3;

/** Whether warps have rings of their own: scopes within `warps` begin and end for each of them. */
export function ringsOfWarps(kernel: Kernel): boolean {
  let within = false;
  walkOps(kernel.body, (op) => {
    if (op.kind === "warps")
      walkOps(op.regions.body, ({ kind }) => {
        within ||= kind === "profile_mark";
      });
  });
  return within;
}

/** Rings of a block. */
export function ringsPerBlock(kernel: Kernel): number {
  return kernel.threads.length * (ringsOfWarps(kernel) ? kernel.warps : 1);
}

export function isMark(op: AnyOp): op is Extract<AnyOp, { kind: "profile_mark" }> {
  return op.kind === "profile_mark";
}
