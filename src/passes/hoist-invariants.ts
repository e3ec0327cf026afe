/**
 * Moves what a loop computes anew each time, with the same result, in front of the loop.
 *
 *   loop … body(%i) {                        %2 = binary %0, %1 {fn = mul}
 *     %2 = binary %0, %1 {fn = mul}     =>   loop … body(%i) {
 *     … }                                      … }
 *
 * Ops that only compute cannot fail, so it does not matter that a loop of no trip now computes them.
 * Inner loops come first: what leaves one may leave the loop around it as well. Ops inside a branch
 * stay there, where they run only when they are needed.
 */
import { noSlots } from "../ir/make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { operandValues } from "../ir/traverse.ts";
import { onlyComputes, repeats } from "../ir/traits.ts";
import { visitEach } from "../support/visit-each.ts";

export function hoistInvariants(kernel: Kernel): Kernel {
  return changeBody(kernel, hoistWithin(kernel.body));
}

function hoistWithin(region: Region): Region {
  const ops: AnyOp[] = [];
  visitEach(region.ops, (op) => {
    if (op.regions === noSlots) return ops.push(op);
    const inner = changeRegions(op, hoistWithin);
    if (!repeats(inner)) ops.push(inner);
    else ops.push(changeRegions(inner, (body) => splitInvariants(body, ops)));
  });
  return changeOps(region, ops);
}

/** The region without its invariant ops, which go to the end of `outside`. */
function splitInvariants(region: Region, outside: AnyOp[]): Region {
  const inside = new Set<Value>(region.parameters);
  const kept: AnyOp[] = [];
  visitEach(region.ops, (op) => {
    if (onlyComputes(op) && !operandValues(op).some((value) => inside.has(value))) {
      outside.push(op);
      return;
    }
    kept.push(op);
    op.results.forEach((result) => inside.add(result));
  });
  return changeOps(region, kept);
}
