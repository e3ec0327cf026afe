/** Ops of a placed kernel with who runs them. */
import { noSlots } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import { regionList } from "../../ir/traverse.ts";
import { visitEach } from "../../support/visit-each.ts";

/** Who runs an op: so many program threads, each as a whole or each warp on its own. */
export interface Agents {
  readonly threads: number;
  /** Warps that run it together. */
  readonly warps: number;
}

export function walkAgents(
  { body, threads, warps }: Kernel,
  visit: (op: AnyOp, agents: Agents) => void,
): void {
  walk(body, { threads: threads.length, warps }, visit);
}

function walk(region: Region, agents: Agents, visit: (op: AnyOp, agents: Agents) => void): void {
  visitEach(region.ops, (op) => {
    visit(op, agents);
    if (op.regions === noSlots) return;
    const inside = walkedInside(op, agents);
    for (const inner of regionList(op)) walk(inner, inside, visit);
  });
}

/** Who runs the regions of an op that these run. */
export function walkedInside(op: AnyOp, agents: Agents): Agents {
  if (op.kind === "on_threads") return { ...agents, threads: op.attributes.threads.length };
  return op.kind === "warps" ? { ...agents, warps: 1 } : agents;
}

/** Values that an op makes: its results, and the parameters of its regions. */
export function definedBy(op: AnyOp): readonly Value[] {
  const regions = regionList(op);
  if (regions.length === 0) return op.results;
  return [...op.results, ...regions.flatMap(({ parameters }) => parameters)];
}
