/**
 * Merges equal ops: the same kind, operands, attributes, types and regions, without effect. An op within a region is merged with
 * one around it as well, and regions are equal where they compute the same of the same values around them.
 *
 *   %0 = reduce(%x init: %zero) applying add       two softmaxes of %x: one reduction
 *   %1 = reduce(%x init: %zero) applying add
 */
import { isPure } from "../ops/captures.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";
import { opText, structureText } from "./structure.ts";

/** Equal for ops that can be merged; undefined for ops that cannot. */
function keyOf(op: AnyGraphOp): string | undefined {
  if (!isPure(op)) return undefined;
  const operands = operandsOf(op).map(({ id }) => id);
  const regions = regionsOf(op).map(structureText);
  return `${opText(op)}(${operands.join()})${regions.join()}`;
}

function merge(
  region: GraphRegion,
  outer: ReadonlyMap<string, readonly GraphValue[]>,
): GraphRegion {
  const known = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const ops: AnyGraphOp[] = [];
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) => merge(inner, known));
    const key = keyOf(op);
    const earlier = key === undefined ? undefined : known.get(key);
    if (earlier === undefined) {
      ops.push(op);
      if (key !== undefined) known.set(key, op.results);
      continue;
    }
    for (const [i, value] of op.results.entries()) replaced.set(value, earlier[i] ?? value);
  }
  return graphRegion(region.parameters, ops, region.results.map(lookUp));
}

/** A region with its equal ops merged. */
export function mergeEqualOps(region: GraphRegion): GraphRegion {
  return merge(region, new Map());
}

export const csePass: GraphPass = {
  name: "cse",
  run: (module) => mapBodies(module, mergeEqualOps),
};
