/**
 * The stage that leaves the meanings of inline PTX behind. They say what the code computes, for the simulator; from
 * here on the code itself is run:
 *
 *   %5 = binary %3, %4 {fn = add}                                       gone, where nothing else uses it
 *   %7 = is_simulated;  if %7 then { … }                               gone: what the simulator does in memory in place of the code
 *   %6 = inline_ptx sources(%3, %4) meaning(%5) {code = "add.f32 …"}             %6 = inline_ptx sources(%3, %4) {code = "add.f32 …"}
 */
import { changedOp } from "../ir/make-op.ts";
import type { AnyOp, Kernel, OpOf, Region, Value } from "../ir/node.ts";
import { changeBody, changeEachOp, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { walkOps } from "../ir/traverse.ts";
import { deadCode } from "../passes/dead-code.ts";

export function withoutMeanings(kernel: Kernel): Kernel {
  let meant = false;
  walkOps(kernel.body, (op) => {
    meant ||= hasMeaning(op);
  });
  const simulated = conditionsOf(kernel);
  return meant || simulated.size > 0
    ? deadCode(changeBody(kernel, strippedRegion(kernel.body, simulated)))
    : kernel;
}

type InlineOp = OpOf<"inline_ptx" | "inline_ptx_memory">;

function hasMeaning(op: AnyOp): op is InlineOp {
  const isInline = op.kind === "inline_ptx" || op.kind === "inline_ptx_memory";
  return isInline && op.operands.meaning.length > 0;
}

/** What the simulator alone does in memory in place of the code. */
function conditionsOf(kernel: Kernel): ReadonlySet<Value> {
  const found = new Set<Value>();
  walkOps(kernel.body, (op) => {
    if (op.kind === "is_simulated") for (const result of op.results) found.add(result);
  });
  return found;
}

function strippedRegion(region: Region, simulated: ReadonlySet<Value>): Region {
  const strip = (inner: Region): Region => strippedRegion(inner, simulated);
  const kept = region.ops.filter((op) => op.kind !== "if" || !simulated.has(op.operands.condition));
  const rest = kept.length === region.ops.length ? region : changeOps(region, kept);
  return changeEachOp(rest, (op) => changeRegions(stripped(op), strip));
}

function stripped(op: AnyOp): AnyOp {
  if (!hasMeaning(op)) return op;
  const operands = Object.freeze({ ...op.operands, meaning: Object.freeze([]) });
  return changedOp(op, { operands });
}
