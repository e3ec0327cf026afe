/**
 * The form of a pass: a module in, a module out. Passes work on every region, from the outside in unless
 * they say otherwise, and keep the name and location of what they replace.
 */
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphFunction, GraphModule, GraphRegion } from "../ops/node.ts";
import { rebuildOp } from "../ops/rebuild.ts";
import { regionsOf } from "../ops/traverse.ts";

/** Told the name of each rule that changes something. */
export type OnRewrite = (rule: string) => void;

export interface GraphPass {
  readonly name: string;
  /** The names of its rules, each of which needs a case in `verify/rewrites.test.ts`; a pass without any is one itself. */
  readonly rules?: readonly string[];
  run(module: GraphModule, onRewrite?: OnRewrite): GraphModule;
}

/** The module with other bodies of its functions. */
export function mapBodies(
  module: GraphModule,
  map: (body: GraphRegion, of: GraphFunction) => GraphRegion,
): GraphModule {
  const functions = new Map(
    Array.from(module.functions, ([name, each]) => [
      name,
      Object.freeze({ ...each, body: map(each.body, each) }),
    ]),
  );
  return Object.freeze({ ...module, functions });
}

/** The op with its regions mapped; itself where it has none. */
export function mapRegions(op: AnyGraphOp, map: (region: GraphRegion) => GraphRegion): AnyGraphOp {
  return regionsOf(op).length === 0 ? op : rebuildOp(op, { region: map });
}

/** The region with other ops. */
export function withOps(region: GraphRegion, ops: readonly AnyGraphOp[]): GraphRegion {
  return graphRegion(region.parameters, ops, region.results);
}
