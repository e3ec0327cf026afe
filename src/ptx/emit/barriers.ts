/**
 * Barriers among the lanes of one program thread: hardware barrier 0 is the block's, barrier i + 1 is
 * program thread i's. Warps that run on their own meet in their warp alone.
 *
 *   | scope                          | instruction                      |
 *   |--------------------------------|----------------------------------|
 *   | the only program thread        | bar.sync 0                       |
 *   | program thread 2 of several    | bar.sync 3, 128                  |
 *   | code that several threads run  | bar.sync %r, 128, %r = thread + 1 |
 *   | inside `warps`                 | bar.warp.sync -1                 |
 */
import { lanesPerWarp } from "../../targets/target.ts";
import type { Operand } from "../module.ts";
import { integer } from "../operands.ts";
import type { EmitContext } from "./context.ts";
import { kernelColumns } from "../../layout/model/tensor-memory.ts";

/**
 * Orders what the lane does with tensor memory before what it synchronizes by next, or after what it has synchronized by; nothing in kernels
 * without tensor memory.
 */
export function tensorFence({ code, kernel }: EmitContext, side: "before" | "after"): void {
  if (kernelColumns(kernel) > 0) code.emit(`tcgen05.fence::${side}_thread_sync`);
}

/** A synchronization that tensor memory is ordered by, too. */
export function fencedForTensors(context: EmitContext, synchronize: () => void): void {
  tensorFence(context, "before");
  synchronize();
  tensorFence(context, "after");
}

/** All lanes of the running agent meet: the program thread's, or the warp's inside `warps`. */
export function threadBarrier(context: EmitContext, reason: string): void {
  if (context.scope.warps === 1) warpBarrier(context, reason);
  else
    fencedForTensors(context, () => {
      meet(context, reason);
    });
}

function meet(context: EmitContext, reason: string): void {
  const { code, kernel } = context;
  if (kernel.threads.length === 1) code.emit("bar.sync", [integer(0)], reason);
  else code.emit("bar.sync", [threadBarrierNumber(context), threadLanes(context)], reason);
}

/** The number of the program thread's own barrier. */
export function threadBarrierNumber({
  code,
  numbers,
  kernel,
  scope: { threads },
}: EmitContext): Operand {
  if (kernel.threads.length === 1) return integer(0);
  const [only] = threads;
  if (threads.length === 1 && only !== undefined) return integer(only + 1);
  return code.make("b32", "add.u32", numbers.thread, integer(1));
}

/** How many lanes meet at the program thread's own barrier. */
export function threadLanes({ kernel }: EmitContext): Operand {
  return integer(kernel.warps * lanesPerWarp);
}

/** The lanes of the warp meet. */
export function warpBarrier(context: EmitContext, reason: string): void {
  fencedForTensors(context, () => {
    context.code.emit("bar.warp.sync", [integer(-1)], reason);
  });
}
