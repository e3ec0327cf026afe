/** Whether conversions lead somewhere: from a tile's own layout to another one, by a plan between the two types; and were made in time. */
import type { AnyOp, Kernel } from "../../ir/node.ts";
import { operandValues } from "../../ir/traverse.ts";
import { reject } from "../../ir/verify/report.ts";
import { fitsWarps } from "../../layout/model/register-candidates.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { tileOf } from "../../layout/model/product-instructions.ts";
import { planRelayout } from "../../layout/relayout/relayout.ts";
import { walkAgents } from "./walk.ts";

/** Warps on their own have all of what they read: the others, which may hold the rest, are elsewhere. */
function requireWhole(op: AnyOp, warps: number): void {
  for (const value of operandValues(op))
    if (value.type.kind === "tile" && !fitsWarps(layoutOf(value), warps))
      reject(op, "TW6204", `a warp on its own has only a part of %${value.id}`, {
        expected: `a layout over ${warps} warps`,
        found: layoutOf(value).text,
      });
}

export function verifyConversions(kernel: Kernel): void {
  walkAgents(kernel, (op, { warps }) => {
    if (warps < kernel.warps) requireWhole(op, warps);
    if (op.kind !== "convert_layout") return;
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined)
      return reject(op, "TW6204", "a conversion without a result", {
        expected: "one result",
        found: "none",
      });
    const [from, to] = [layoutOf(source), layoutOf(result)];
    if (from.text === to.text)
      reject(op, "TW6204", `%${source.id} is converted to the layout that it has`, {
        expected: "another layout",
        found: from.text,
      });
    const { shape, dtype } = tileOf(source);
    // Scratch has no rule to say: a plan without it is not made again.
    if (op.operands.scratch === undefined && from.kind === "splat") return;
    if (planRelayout(from, to, shape, dtype, warps) === undefined)
      reject(op, "TW6204", `there is no way from ${from.text} to ${to.text}`, {
        expected: "layouts that registers, lanes or shared memory lead between",
        found: `${from.text} to ${to.text}`,
      });
  });
}
