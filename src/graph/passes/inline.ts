/**
 * Puts the bodies of called functions where they are called, with the call's name before their ops' names, in loops
 * and branches too, and drops private functions that nothing calls any more. Composites keep their functions: a lowering may
 * know them by name.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphModule, GraphRegion, GraphValue } from "../ops/node.ts";
import { inlineRegion, namedWithin, replaceOperands } from "../ops/rebuild.ts";
import { opsWithin } from "../ops/traverse.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

const emptyRegion = graphRegion([], [], []);

/** Ops that calls may become. */
const mostOps = 2 ** 20;

/** Fails where the calls of a function are more ops than can be written out. */
function requireFinite(module: GraphModule): void {
  const counts = new Map<string, number>();
  const countOf = (name: string): number => {
    const known = counts.get(name);
    if (known !== undefined) return known;
    let count = 0;
    for (const op of opsWithin(module.functions.get(name)?.body ?? emptyRegion)) {
      count += 1 + (op.kind === "func.call" ? countOf(op.attributes.callee) : 0);
      if (count > mostOps)
        throw new TilewrightError({
          code: "TW9109",
          message: `@${name} is more ops than can be written out`,
          location: op.location,
          expected: `at most ${mostOps} ops`,
          found: "more",
        });
    }
    counts.set(name, count);
    return count;
  };
  for (const name of module.functions.keys()) countOf(name);
}

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
  run(module) {
    const called = dropUnused(module);
    requireFinite(called);
    return dropUnused(mapBodies(called, (body) => inlineCalls(body, called)));
  },
};
