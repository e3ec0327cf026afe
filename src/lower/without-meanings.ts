/**
 * The stage that leaves the meanings of inline PTX behind. They say what the code computes, for the simulator; from
 * here on the code itself is run:
 *
 *   %5 = binary %3, %4 {fn = add}                                       gone, where nothing else uses it
 *   %6 = inline_ptx sources(%3, %4) meaning(%5) {code = "add.f32 …"}             %6 = inline_ptx sources(%3, %4) {code = "add.f32 …"}
 */
import { changedOp } from "../ir/make-op.ts";
import type { AnyOp, Kernel, Region } from "../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { deadCode } from "../passes/dead-code.ts";

export function withoutMeanings(kernel: Kernel): Kernel {
  const body = strippedRegion(kernel.body);
  return body === kernel.body ? kernel : deadCode(changeBody(kernel, body));
}

function strippedRegion(region: Region): Region {
  return changeOps(
    region,
    region.ops.map((op) => changeRegions(stripped(op), strippedRegion)),
  );
}

function stripped(op: AnyOp): AnyOp {
  if (op.kind !== "inline_ptx" || op.operands.meaning.length === 0) return op;
  const operands = Object.freeze({ sources: op.operands.sources, meaning: Object.freeze([]) });
  return changedOp(op, { operands });
}
