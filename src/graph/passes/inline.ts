/**
 * Puts the bodies of called functions where they are called, with the call's name before their ops' names, in loops
 * and branches too, and drops private functions that nothing calls any more. Composites keep their functions: a lowering may
 * know them by name.
 */
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphModule, GraphRegion, GraphValue } from "../ops/node.ts";
import { inlineRegion, namedWithin, replaceOperands } from "../ops/rebuild.ts";
import { opsWithin } from "../ops/traverse.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

function inlineCalls(region: GraphRegion, module: GraphModule): GraphRegion {
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const ops: AnyGraphOp[] = [];
  for (const original of region.ops) {
    const op = replaceOperands(original, lookUp);
    const callee =
      op.kind === "func.call" ? module.functions.get(op.attributes.callee)?.body : undefined;
    if (callee === undefined || op.kind !== "func.call") {
      ops.push(mapRegions(op, (inner) => inlineCalls(inner, module)));
      continue;
    }
    const into = { append: (copy: AnyGraphOp): number => ops.push(copy) };
    // Callees are inlined themselves first, so that what is copied has no calls left.
    const body = inlineCalls(callee, module);
    const results = inlineRegion(into, body, op.operands.inputs, namedWithin(op.name));
    for (const [i, value] of op.results.entries()) replaced.set(value, results[i] ?? value);
  }
  return graphRegion(region.parameters, ops, region.results.map(lookUp));
}

/** Functions that an op names besides calling them. */
function namedFunctions(op: AnyGraphOp): readonly string[] {
  if (op.kind === "func.call") return [op.attributes.callee];
  if (op.kind === "stablehlo.composite") return [op.attributes.decomposition];
  if (op.kind === "stablehlo.custom_call") return op.attributes.called_computations;
  if (op.kind !== "interpreter.run_parallel") return [];
  return [...op.attributes.programs.flat(), ...(op.attributes.infeed ?? [])];
}

function dropUnused(module: GraphModule): GraphModule {
  const used = new Set<string>();
  const visit = (name: string): void => {
    const found = module.functions.get(name);
    if (found === undefined || used.has(name)) return;
    used.add(name);
    for (const op of opsWithin(found.body)) namedFunctions(op).forEach(visit);
  };
  for (const { name, visibility } of module.functions.values())
    if (visibility === "public") visit(name);
  const functions = new Map([...module.functions].filter(([name]) => used.has(name)));
  return used.size === 0 ? module : Object.freeze({ ...module, functions });
}

export const inlinePass: GraphPass = {
  name: "inline",
  run: (module) => dropUnused(mapBodies(module, (body) => inlineCalls(body, module))),
};
