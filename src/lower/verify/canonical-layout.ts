/**
 * Whether each layout is in canonical form: of all spellings that place the elements of a shape alike only one may stand in a type, and it
 * must spread over no more warps than run the op.
 *
 *   warps body(…) { %1 = load … : tile<f32, [64], "(L0 L1 L2 L3 L4 W0)"> }     a single warp has no warp bits
 */
import type { AnyOp, Kernel } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { isSpread } from "../../ir/types.ts";
import type { SpreadType } from "../../ir/types.ts";
import { specializeLayout } from "../../layout/algebra/expansion.ts";
import { fitsShape } from "../../layout/algebra/register-layout.ts";
import { knownLayout } from "../../layout/algebra/parse-layout.ts";
import { fitsWarps } from "../../layout/model/register-candidates.ts";
import { definedBy, walkAgents } from "./walk.ts";

export function verifyCanonicalLayouts(kernel: Kernel): void {
  const seen = new Set<string>();
  walkAgents(kernel, (op, { warps }) => {
    const holding = op.kind === "warps" ? 1 : warps;
    for (const { type } of definedBy(op))
      if (isSpread(type)) requireCanonical(op, type, holding, seen);
  });
}

function requireCanonical(op: AnyOp, type: SpreadType, warps: number, seen: Set<string>): void {
  const { layout: text = "", shape } = type;
  const key = `${warps} ${shape.join()} ${text}`;
  if (seen.has(key)) return;
  seen.add(key);
  const layout = knownLayout(text);
  if (!fitsShape(layout, shape))
    reject(op, "TW6202", `${text} spreads more axes than [${shape.join(", ")}] has`, {
      expected: `a layout of ${shape.length} axes`,
      found: text,
    });
  if (!fitsWarps(layout, warps))
    reject(op, "TW6202", `${text} spreads over more warps than the ${warps} that hold it`, {
      expected: `a layout over ${warps} warps`,
      found: text,
    });
  const spelling = layout.kind === "splat" ? layout : specializeLayout(layout, shape);
  if (spelling.text !== text)
    reject(op, "TW6202", `a layout of [${shape.join(", ")}] has another spelling`, {
      expected: spelling.text,
      found: text,
    });
}
