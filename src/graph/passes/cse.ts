/**
 * Merges equal ops: the same kind, operands, attributes and types, without effect and without regions. An op
 * within a region is merged with one around it as well.
 */
import { attributesOf } from "../text/parts.ts";
import { attributeText } from "../text/attributes.ts";
import type { AttributeMap } from "../ops/attribute.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { graphOpTable } from "../ops/table.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { typeText } from "../ops/types.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

function attributesKey(attributes: AttributeMap): string {
  return Array.from(attributes, ([name, value]) => `${name}=${attributeText(value)}`)
    .sort()
    .join(";");
}

/** What an op does to its operands, whichever they are: kind, attributes and types. */
export function opText(op: AnyGraphOp): string {
  const types = op.results.map(({ type }) => typeText(type));
  return `${op.kind}{${attributesKey(attributesOf(op))}}${types.join()}`;
}

/** Equal for ops that can be merged; undefined for ops that cannot. */
function keyOf(op: AnyGraphOp): string | undefined {
  if (graphOpTable[op.kind].effect !== "none" || regionsOf(op).length > 0) return undefined;
  const operands = operandsOf(op).map(({ id }) => id);
  return `${opText(op)}(${operands.join()})`;
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
