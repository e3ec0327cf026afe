/**
 * Asynchronous ops. Copies and groups belong to one lane of the agent, the same one each time, because the
 * hardware counts groups for each lane.
 */
import { isEngineCopy } from "../../../ir/ops/asynchronous.ts";
import type { asynchronousOps } from "../../../ir/ops/asynchronous.ts";
import type { Kernel, Op, Region } from "../../../ir/node.ts";
import { refOf, regionList, walkOps } from "../../../ir/traverse.ts";
import { onceForEach } from "../../../support/memo.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext, EmitRules } from "../context.ts";
import { closingWaits } from "./open-groups.ts";
import { threadCopyIn, threadCopyOut } from "./thread-copies.ts";
import { takeBlock, takenBlock } from "./launch-control.ts";
import { prefetch, prefetchMaps } from "./prefetch.ts";
import { makeAccumulator, sharedRef, wgmma, wgmmaWait } from "./products.ts";
import { planBulkCopy } from "./bulk-copies.ts";
import { engineCopyIn, engineCopyOut } from "./engine-copies.ts";
import { planTensorCopy } from "./tensor-copies.ts";

/** The lane that starts copies: lane 0 of the thread, or of the warp that runs on its own. */
function copyingLane({ numbers, scope }: EmitContext): Register {
  return scope.warps === 1 ? numbers.leader : numbers.elected;
}

function copyAsync(op: Op<"copy_async">, context: EmitContext): void {
  const { source, destination } = op.operands;
  const into = refOf(destination).space !== "gmem";
  if (!isEngineCopy(op.attributes)) {
    if (into) threadCopyIn(context, op);
    else threadCopyOut(context, op);
    return;
  }
  const shared = sharedRef(context, into ? destination : source);
  const global = context.ref(into ? source : destination);
  if (global.kind !== "global") throw new Error("TMA copies a box of an array");
  const planned = op.attributes.by === "bulk" ? planBulkCopy : planTensorCopy;
  const copy = into ? engineCopyIn : engineCopyOut;
  copy(context, op, () => planned(context, op, global, shared));
}

/** The program threads whose warps copy into global memory on their own, which the thread waits for, too. */
const committingThreads = onceForEach(({ threads, body }: Kernel): ReadonlySet<number> => {
  const found = new Set<number>();
  const search = (region: Region, running: readonly number[]): void => {
    for (const op of region.ops) {
      const inner = op.kind === "on_threads" ? op.attributes.threads : running;
      for (const each of regionList(op)) {
        search(each, inner);
        if (op.kind !== "warps") continue;
        walkOps(each, (each) => {
          const leaves = each.kind === "copy_async" && each.operands.barrier === undefined;
          if (leaves || each.kind === "commit_group")
            for (const thread of running) found.add(thread);
        });
      }
    }
  };
  search(
    body,
    threads.map((_, thread) => thread),
  );
  return found;
});

const hasAsyncProxy = ({ target }: EmitContext): boolean => target.features.includes("tma");

export const asynchronousRules: EmitRules<typeof asynchronousOps> = {
  copy_async: copyAsync,
  take_block: takeBlock,
  taken_block: takenBlock,
  prefetch,
  prefetch_maps: prefetchMaps,

  commit_group(_, context) {
    if (!hasAsyncProxy(context)) return;
    context.code.guarded(copyingLane(context), () => {
      context.code.emit("cp.async.bulk.commit_group");
    });
  },

  wait_group(op, context) {
    const { pending, read } = op.attributes;
    const { code, kernel, scope, numbers } = context;
    const known = committingThreads(kernel);
    const ofWarps = scope.warps > 1 && scope.threads.some((thread) => known.has(thread));
    if (hasAsyncProxy(context))
      code.guarded(ofWarps ? numbers.leader : copyingLane(context), () => {
        if (closingWaits(kernel).has(op)) code.emit("cp.async.bulk.commit_group");
        code.emit(`cp.async.bulk.wait_group${read ? ".read" : ""}`, [integer(pending)]);
      });
    threadBarrier(
      context,
      ofWarps ? "each warp has waited for its own copies" : "one lane has waited for all",
    );
  },

  proxy_fence(op, context) {
    if (!hasAsyncProxy(context)) return;
    const space = op.attributes.space === "smem" ? "shared::cta" : "global";
    context.code.emit(`fence.proxy.async.${space}`, [], op.attributes.reason);
  },

  accumulator: makeAccumulator,
  wgmma,
  wgmma_wait: wgmmaWait,
};
