/** What a region uses of what is around it, and whether removing or repeating an op can be seen. */
import type { AnyGraphOp, GraphRegion, GraphValue } from "./node.ts";
import { graphOpTable } from "./table.ts";
import { operandsOf, regionsOf } from "./traverse.ts";

/** Values that a region uses and does not define, in the order of their first use. */
export function capturesOf(region: GraphRegion): readonly GraphValue[] {
  const defined = new Set<GraphValue>();
  const captured = new Set<GraphValue>();
  const visit = (inner: GraphRegion): void => {
    for (const value of inner.parameters) defined.add(value);
    for (const op of inner.ops) {
      for (const value of operandsOf(op)) if (!defined.has(value)) captured.add(value);
      regionsOf(op).forEach(visit);
      for (const value of op.results) defined.add(value);
    }
    for (const value of inner.results) if (!defined.has(value)) captured.add(value);
  };
  visit(region);
  return [...captured];
}

/** Whether an op whose results nobody uses can go. */
export function isRemovable(op: AnyGraphOp): boolean {
  const { effect } = graphOpTable[op.kind];
  if (effect === "declared")
    return op.kind === "stablehlo.custom_call" && !op.attributes.has_side_effect;
  if (effect === "regions") return regionsOf(op).every(({ ops }) => ops.every(isRemovable));
  return effect === "none" || effect === "wall";
}

/** Whether an op gives equal results wherever it stands, so that it can be moved and merged. */
export function isPure(op: AnyGraphOp): boolean {
  const { effect } = graphOpTable[op.kind];
  if (effect === "regions") return regionsOf(op).every(({ ops }) => ops.every(isPure));
  return effect === "none";
}
