/** Whether conversions lead somewhere: from a tile's own layout to another one, by a plan between the two types. */
import type { Kernel } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { tileOf } from "../../layout/model/products.ts";
import { planRelayout } from "../../layout/relayout/relayout.ts";
import { walkAgents } from "./walk.ts";

export function verifyConversions(kernel: Kernel): void {
  walkAgents(kernel, (op, { warps }) => {
    if (op.kind !== "convert_layout") return;
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined) return reject(op, "TW6204", "a conversion without a result");
    const [from, to] = [layoutOf(source), layoutOf(result)];
    if (from.text === to.text)
      reject(op, "TW6204", `%${source.id} is converted to the layout that it has`, {
        found: from.text,
      });
    const { shape, dtype } = tileOf(source);
    // Scratch has no rule to say: a plan without it is not made again.
    if (op.operands.scratch === undefined && from.kind === "splat") return;
    if (planRelayout(from, to, shape, dtype, warps) === undefined)
      reject(op, "TW6204", `there is no way from ${from.text} to ${to.text}`);
  });
}
