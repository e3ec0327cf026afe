/**
 * Asynchronous ops. Copies and groups belong to one lane of the agent, the same one each time, because the
 * hardware counts groups for each lane.
 */
import type { asynchronousOps } from "../../../ir/ops/asynchronous.ts";
import type { Op } from "../../../ir/node.ts";
import { knownDivisor } from "../../../ir/size.ts";
import { TilewrightError } from "../../../support/diagnostics.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext, EmitRules } from "../context.ts";
import type { GlobalValue, SharedValue } from "../values.ts";
import { laneCopyIn, laneCopyOut } from "./lane-copies.ts";
import { prefetch } from "./prefetch.ts";
import { makeAccumulator, sharedRef, wgmma, wgmmaWait } from "./products.ts";
import { tensorCopyIn, tensorCopyOut } from "./tensor-copies.ts";

/** The lane that starts copies: lane 0 of the thread, or of the warp that runs on its own. */
function copyingLane({ numbers, scope }: EmitContext): Register {
  return scope.warps === 1 ? numbers.leader : numbers.elected;
}

function copyAsync(op: Op<"copy_async">, context: EmitContext): void {
  const { source, destination } = op.operands;
  const into = destination.type.kind === "ref" && destination.type.space !== "gmem";
  const shared = sharedRef(context, into ? destination : source);
  const far = context.ref(into ? source : destination);
  if (far.kind === "shared") throw new Error("an asynchronous copy has one side in global memory");
  if (op.attributes.by !== "tensor") {
    if (into) laneCopyIn(context, op, far, shared);
    else laneCopyOut(context, far, shared);
    return;
  }
  const global = far as GlobalValue;
  if (into) tensorCopyIn(context, op, global, shared);
  else copyOut(context, op, global, shared);
}

function copyOut(
  context: EmitContext,
  op: Op<"copy_async">,
  global: GlobalValue,
  shared: SharedValue,
): void {
  const problem = storeProblem(global);
  if (problem === undefined) tensorCopyOut(context, op, global, shared);
  else if (op.attributes.reduction === "none") laneCopyOut(context, global, shared);
  else
    throw new TilewrightError({
      code: "TW7002",
      message: `the copy engine cannot ${op.attributes.reduction} into this window: ${problem}`,
      location: op.location,
    });
}

/**
 * What the copy engine gets wrong when it writes, as an H200 showed: it knows no box that begins before
 * the array, and it writes the 16 bytes in which a row ends to their end.
 */
function storeProblem({ array, origin, dtype }: GlobalValue): string | undefined {
  if (origin.some(({ fact }) => fact.least < 0n)) return "it may begin before the array";
  const row = array.find(({ stride }) => stride === 1)?.extent ?? 1;
  return (knownDivisor(row) * dtype.bits) % 128 === 0
    ? undefined
    : "rows of the array are not known to be multiples of 16 bytes";
}

const hasAsyncProxy = ({ target }: EmitContext): boolean => target.features.includes("tma");

export const asynchronousRules: EmitRules<typeof asynchronousOps> = {
  copy_async: copyAsync,
  prefetch,

  commit_group(_, context) {
    if (!hasAsyncProxy(context)) return;
    context.code.guarded(copyingLane(context), () => {
      context.code.emit("cp.async.bulk.commit_group");
    });
  },

  wait_group(op, context) {
    const { pending, read } = op.attributes;
    if (hasAsyncProxy(context))
      context.code.guarded(copyingLane(context), () => {
        context.code.emit(`cp.async.bulk.wait_group${read ? ".read" : ""}`, [integer(pending)]);
      });
    threadBarrier(context, "one lane has waited for all");
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
