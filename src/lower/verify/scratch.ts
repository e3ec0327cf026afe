/**
 * Whether ops have the scratch that they need: as many bytes as their own types ask for, in an area with a part
 * for each agent that runs them side by side.
 */
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { countUses, definingOps } from "../../ir/rewrite/analysis.ts";
import { reject } from "../../ir/verify/report.ts";
import { operandValues } from "../../ir/traverse.ts";
import { layoutOf, scratchOperand } from "../../layout/model/placed-types.ts";
import { scratchOf } from "../../layout/plan/scratch.ts";
import { walkAgents } from "./walk.ts";

export function verifyScratch(kernel: Kernel): void {
  const definitions = definingOps(kernel.body);
  const uses = countUses(kernel.body);
  walkAgents(kernel, (op, agents) => {
    const used = op.results.some((result) => uses.has(result));
    const { warps } = agents;
    const needed = scratchOf({ op, layout: firstLayout(op), warps, used });
    const value = scratchOperand(op);
    if (value !== undefined || needed > 0)
      fits(op, needed, value && definitions.get(value), agents.threads * (kernel.warps / warps));
  });
}

/** Where the op reads the first of its tiles. */
function firstLayout(op: AnyOp): ReturnType<typeof layoutOf> | undefined {
  const tile = operandValues(op).find(({ type }: Value) => type.kind === "tile");
  return tile && layoutOf(tile);
}

function fits(op: AnyOp, needed: number, area: AnyOp | undefined, running: number): void {
  if (area?.kind !== "alloc_scratch")
    return reject(op, "TW6205", `${op.kind} has no scratch`, {
      expected: `${needed} bytes`,
      found: "none",
    });
  const { bytes, agents } = area.attributes;
  if (bytes < needed)
    reject(op, "TW6205", `the scratch of ${op.kind} is too small`, {
      expected: `${needed} bytes`,
      found: `${bytes} bytes`,
    });
  if (agents < running)
    reject(op, "TW6205", `${running} agents run ${op.kind} in the scratch of ${agents}`, {
      expected: `${running} parts`,
      found: `${agents}`,
    });
}
