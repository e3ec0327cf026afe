/** What passes ask about effects; the answers follow from the op table alone. */
import type { AnyOp, Region } from "../ir/node.ts";
import { opTable } from "../ir/ops.ts";
import { regionList } from "../ir/traverse.ts";

/**
 * Whether the op only computes: equal ones may be merged and one may move. An in-flight accumulator is
 * linear, consumed once, so what makes one is neither merged nor moved.
 */
export function onlyComputes(op: AnyOp): boolean {
  return (
    opTable[op.kind].effect === "none" && op.results.every(({ type }) => type.kind !== "inflight")
  );
}

/** Whether the op does something that others can see, itself or in its regions. */
export function hasEffect(op: AnyOp): boolean {
  const { effect } = opTable[op.kind];
  if (effect === "regions") return regionList(op).some(regionHasEffect);
  return effect === "write" || (effect === "order" && op.kind !== "yield");
}

export function regionHasEffect({ ops }: Region): boolean {
  return ops.some(hasEffect);
}
