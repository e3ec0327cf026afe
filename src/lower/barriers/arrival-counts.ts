/**
 * How many hardware arrivals one arrival of the language is. A program thread arrives once for each of its warps, so that no warp falls two
 * phases behind; a TMA copy arrives once:
 *
 *   barrier with arrivals: 2      barrier_arrive by threads of 4 warps      scale 4: mbarrier.init 8
 *                                 tensor copies alone                       scale 1: mbarrier.init 2
 *
 * Where both arrive on one barrier, the copy arrives as often as the warps do.
 */
import { isEngineCopy } from "../../ir/ops/asynchronous.ts";
import { noSlots } from "../../ir/make-op.ts";
import type { Kernel, Region, Value } from "../../ir/node.ts";
import { regionList } from "../../ir/traverse.ts";
import { visitEach } from "../../support/visit-each.ts";

/** The scale of each barrier. */
export type ArrivalCounts = (barrier: Value) => number;

export function arrivalCountsOf({ body, warps }: Kernel): ArrivalCounts {
  const byWarps = new Set<Value>();
  collect(body, byWarps);
  return (barrier) => (byWarps.has(barrier) ? warps : 1);
}

function collect({ ops }: Region, byWarps: Set<Value>): void {
  visitEach(ops, (op) => {
    if (op.kind === "barrier_arrive") byWarps.add(op.operands.barrier);
    const { barrier } = op.kind === "copy_async" ? op.operands : { barrier: undefined };
    if (op.kind === "copy_async" && barrier !== undefined && !isEngineCopy(op.attributes))
      byWarps.add(barrier);
    // Warps on their own arrive one by one, with whatever count the others need.
    if (op.kind !== "warps" && op.regions !== noSlots)
      for (const inner of regionList(op)) collect(inner, byWarps);
  });
}
