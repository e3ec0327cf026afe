/** Ops that only say how to differentiate, replaced by what they mean: programs for others, and for devices. */
import { GraphBuilder } from "../infer/builder.ts";
import type { derivativeOps } from "../ops/derivatives.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { inlineRegion, replaceOperands } from "../ops/rebuild.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

type Kind = keyof typeof derivativeOps;
type Meaning<K extends Kind> = (op: GraphOp<K>, builder: GraphBuilder) => readonly GraphValue[];

function bodyOf(
  op: GraphOp<"tilewright.custom_vjp"> | GraphOp<"tilewright.checkpoint">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  return inlineRegion(builder, op.regions.body, op.operands.inputs);
}

export const meanings: { readonly [K in Kind]: Meaning<K> } = {
  "tilewright.custom_vjp": bodyOf,
  "tilewright.checkpoint": bodyOf,
  "tilewright.name": (op) => [op.operands.operand],
  "tilewright.stop_gradient": (op) => [op.operands.operand],
};

function isDerivative(op: AnyGraphOp): op is Extract<AnyGraphOp, { readonly kind: Kind }> {
  return Object.hasOwn(meanings, op.kind);
}

function plainRegion(region: GraphRegion): GraphRegion {
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), plainRegion);
    if (!isDerivative(op)) {
      builder.append(op);
      continue;
    }
    // The kind picks the meaning, which TypeScript cannot see.
    const meaning = meanings[op.kind] as Meaning<Kind>;
    const results = meaning(op as GraphOp<Kind>, builder);
    for (const [i, value] of op.results.entries()) replaced.set(value, results[i] ?? value);
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

export const derivativesPass: GraphPass = {
  name: "derivatives",
  run: (module) => mapBodies(module, plainRegion),
};
