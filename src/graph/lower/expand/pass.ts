/** Replaces ops whose lowering is other ops, within regions too, until none is left. */
import { GraphBuilder } from "../../infer/builder.ts";
import { graphRegion } from "../../ops/node.ts";
import type { GraphModule, GraphRegion, GraphValue } from "../../ops/node.ts";
import { replaceOperands } from "../../ops/rebuild.ts";
import { mapBodies, mapRegions } from "../../passes/pass.ts";
import type { GraphPass, OnRewrite } from "../../passes/pass.ts";
import { applyRule } from "../kernel-of.ts";
import { loweringOf } from "../record.ts";

function expandRegion(
  region: GraphRegion,
  module: GraphModule,
  onRewrite: OnRewrite | undefined,
): GraphRegion {
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  let isChanged = false;
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      expandRegion(inner, module, onRewrite),
    );
    const lowering = loweringOf(op);
    if (lowering.form !== "expand") {
      builder.append(op);
      continue;
    }
    isChanged = true;
    onRewrite?.(lowering.to.name);
    const results = builder.within(op, () => lowering.to(op as never, builder, module, applyRule));
    for (const [i, value] of op.results.entries()) replaced.set(value, results[i] ?? value);
  }
  const expanded = graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
  return isChanged ? expandRegion(expanded, module, onRewrite) : expanded;
}

export const expandPass: GraphPass = {
  name: "expand",
  run: (module, onRewrite) => mapBodies(module, (body) => expandRegion(body, module, onRewrite)),
};
