/**
 * Passes that are rules: each gives the value that takes the place of an op's one result, or nothing. Ops come in their order, operands first, and
 * a rule sees where values come from and how often they are used.
 */
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { mapBodies, mapRegions } from "../passes/pass.ts";
import type { GraphPass, OnRewrite } from "../passes/pass.ts";

/** What a rule sees. */
export interface Place {
  readonly builder: GraphBuilder;
  definition(value: GraphValue): AnyGraphOp | undefined;
  /** How many ops and results of the region use a value. */
  uses(value: GraphValue): number;
}

/** The value that takes the place of an op's one result; undefined where it stays. */
export type Rewrite = (op: AnyGraphOp, place: Place) => GraphValue | undefined;

/** Rules by their names; the first that applies is taken. */
export interface Rewrites {
  readonly [name: string]: Rewrite;
}

function usesIn({ ops, results }: GraphRegion): Map<GraphValue, number> {
  const counts = new Map<GraphValue, number>();
  const used = [
    ...results,
    ...ops.flatMap((op) => [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)]),
  ];
  for (const value of used) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function rewritten(
  region: GraphRegion,
  rules: Rewrites,
  outer: ReadonlyMap<GraphValue, AnyGraphOp>,
  onRewrite: OnRewrite | undefined,
): GraphRegion {
  const counts = usesIn(region);
  const definitions = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  let known = 0;
  const place: Place = {
    builder,
    definition: (value) => {
      for (; known < builder.ops.length; known += 1) {
        const op = builder.ops[known];
        for (const made of op?.results ?? []) if (op !== undefined) definitions.set(made, op);
      }
      return definitions.get(value);
    },
    uses: (value) => counts.get(value) ?? 0,
  };
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      rewritten(inner, rules, definitions, onRewrite),
    );
    const value = builder.within(op, () => {
      for (const [name, rule] of Object.entries(rules)) {
        const found = rule(op, place);
        if (found === undefined) continue;
        onRewrite?.(name);
        return found;
      }
      return undefined;
    });
    if (value === undefined) builder.append(op);
    const [result] = op.results;
    if (value !== undefined && result !== undefined) {
      replaced.set(result, value);
      // It is used as often as what it stands for.
      counts.set(value, (counts.get(value) ?? 0) + (counts.get(result) ?? 0));
    }
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

export function rewriting(name: string, rules: Rewrites): GraphPass {
  return {
    name,
    rules: Object.keys(rules),
    run: (module, onRewrite) =>
      mapBodies(module, (body) => rewritten(body, rules, new Map(), onRewrite)),
  };
}
