/** Removes ops whose results nobody uses and whose going nobody can see. */
import { isRemovable } from "../ops/captures.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import { capturesOf } from "../ops/captures.ts";
import { mapBodies, mapRegions, withOps } from "./pass.ts";
import type { GraphPass } from "./pass.ts";
import { regionsOf } from "../ops/traverse.ts";

/** A region without dead ops. Uses are known before definitions when ops are visited from the last. */
export function removeDead(region: GraphRegion): GraphRegion {
  const used = new Set<GraphValue>(region.results);
  const kept: AnyGraphOp[] = [];
  for (const op of [...region.ops].reverse()) {
    if (isRemovable(op) && !op.results.some((value) => used.has(value))) continue;
    const alive = mapRegions(op, removeDead);
    for (const value of operandsOf(alive)) used.add(value);
    for (const inner of regionsOf(alive)) for (const value of capturesOf(inner)) used.add(value);
    kept.push(alive);
  }
  return withOps(region, kept.reverse());
}

export const dcePass: GraphPass = {
  name: "dce",
  run: (module) => mapBodies(module, removeDead),
};
