/** What of a kernel decides how its failures are told: whether it needs the cell, and whether products may be in flight then. */
import type { Facts } from "../../ir/range-analysis/index.ts";
import type { AnyOp, Kernel, Op } from "../../ir/node.ts";
import { accessesOf, traitsOf } from "../../ir/traits.ts";
import { refOf, walkOps } from "../../ir/traverse.ts";

/** Whether an assertion of the kernel may fail while something else waits, repeats or accesses what may be outside. */
export function needsFailureCell(kernel: Kernel, facts: Facts): boolean {
  let [fails, heeds] = [false, false];
  walkOps(kernel.body, (op) => {
    fails ||= op.kind === "assert" || mayStandStill(op, facts);
    heeds ||= heedsFailure(op);
  });
  return fails && heeds;
}

/** Whether the op is a loop that may have a step of 0 or below. */
export function mayStandStill(op: AnyOp, facts: Facts): boolean {
  return op.kind === "loop" && facts.of(op.operands.step).least < 1n;
}

function heedsFailure(op: AnyOp): boolean {
  if (traitsOf(op).ends === "perhaps never") return true;
  const { guard = [] } = op.attributes as { readonly guard?: readonly string[] };
  // Windows of global memory may overhang; indices and windows of shared memory may not.
  return guard.length > 0 && (op.kind !== "slice_ref" || mustBeInside(op));
}

function mustBeInside({ operands, attributes }: Op<"slice_ref">): boolean {
  return attributes.dropped.length > 0 || refOf(operands.ref).space !== "gmem";
}

/** Whether products of the kernel may be in flight while other instructions run. */
export function startsProducts({ body }: Kernel): boolean {
  let starts = false;
  walkOps(body, (op) => {
    starts ||= accessesOf(op).some(({ done }) => done === "products");
  });
  return starts;
}
