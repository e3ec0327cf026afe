/**
 * The stage that leaves the meanings of inline PTX behind. They say what the code computes, for the simulator; from
 * here on the code itself is run:
 *
 *   %5 = binary %3, %4 {fn = add}                                       gone, where nothing else uses it
 *   %6 = inline_ptx sources(%3, %4) meaning(%5) {code = "add.f32 …"}             %6 = inline_ptx sources(%3, %4) {code = "add.f32 …"}
 */
import { changedOp } from "../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region } from "../ir/node.ts";
import { changeBody, changeEachOp, changeRegions } from "../ir/rewrite/substitute.ts";
import { walkOps } from "../ir/traverse.ts";
import { deadCode } from "../passes/dead-code.ts";

export function withoutMeanings(kernel: Kernel): Kernel {
  let meant = false;
  walkOps(kernel.body, (op) => {
    meant ||= hasMeaning(op);
  });
  return meant ? deadCode(changeBody(kernel, strippedRegion(kernel.body))) : kernel;
}

function hasMeaning(op: AnyOp): op is Op<"inline_ptx"> {
  return op.kind === "inline_ptx" && op.operands.meaning.length > 0;
}

function strippedRegion(region: Region): Region {
  return changeEachOp(region, (op) => changeRegions(stripped(op), strippedRegion));
}

function stripped(op: AnyOp): AnyOp {
  if (!hasMeaning(op)) return op;
  const operands = Object.freeze({ sources: op.operands.sources, meaning: Object.freeze([]) });
  return changedOp(op, { operands });
}
