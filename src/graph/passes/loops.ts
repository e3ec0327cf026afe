/**
 * Loops: what does not change from trip to trip is computed before them, and loops of a few trips, known in
 * advance, become straight-line code.
 */
import { capturesOf, isPure } from "../ops/captures.ts";
import type { Literal } from "../ops/literal.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { inlineRegion, rebuildOp, replaceOperands } from "../ops/rebuild.ts";
import { operandsOf, opsWithin, regionsOf } from "../ops/traverse.ts";
import { tripCount } from "../ops/trip-count.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

type While = GraphOp<"stablehlo.while">;

/** The ops of a region that depend on nothing in it, and the region without them. */
function invariant(region: GraphRegion): {
  readonly moved: readonly AnyGraphOp[];
  readonly rest: GraphRegion;
} {
  const inside = new Set<GraphValue>(region.parameters);
  const moved: AnyGraphOp[] = [];
  const kept: AnyGraphOp[] = [];
  for (const op of region.ops) {
    const used = [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)];
    if (isPure(op) && !used.some((value) => inside.has(value))) {
      moved.push(op);
      continue;
    }
    kept.push(op);
    for (const value of op.results) inside.add(value);
  }
  return { moved, rest: graphRegion(region.parameters, kept, region.results) };
}

function hoistRegion(region: GraphRegion): GraphRegion {
  const ops: AnyGraphOp[] = [];
  for (const original of region.ops) {
    const op = mapRegions(original, hoistRegion);
    if (op.kind !== "stablehlo.while") {
      ops.push(op);
      continue;
    }
    const cond = invariant(op.regions.cond);
    const body = invariant(op.regions.body);
    ops.push(...cond.moved, ...body.moved);
    const rest = new Map([
      [op.regions.cond, cond.rest],
      [op.regions.body, body.rest],
    ]);
    ops.push(rebuildOp(op, { region: (each) => rest.get(each) ?? each }));
  }
  return graphRegion(region.parameters, ops, region.results);
}

/** Moves what a loop computes anew in each trip, and need not, before the loop. */
export const hoistPass: GraphPass = {
  name: "hoist",
  run: (module) => mapBodies(module, hoistRegion),
};

const mostTrips = 8;
const mostOps = 256;

function isSmall({ regions }: While, trips: number): boolean {
  const count = [...opsWithin(regions.body)].length;
  return trips <= mostTrips && trips * count <= mostOps;
}

function unrollRegion(region: GraphRegion, outer: ReadonlyMap<GraphValue, Literal>): GraphRegion {
  const constants = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const ops: AnyGraphOp[] = [];
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      unrollRegion(inner, constants),
    );
    if (op.kind === "stablehlo.constant" && !("kind" in op.attributes.value))
      for (const value of op.results) constants.set(value, op.attributes.value);
    const trips = op.kind === "stablehlo.while" ? tripCount(op, constants) : undefined;
    if (op.kind !== "stablehlo.while" || trips === undefined || !isSmall(op, trips)) {
      ops.push(op);
      continue;
    }
    // Names in a body begin with the loop's already; what has none is the loop's.
    const rename = (name: string): string => (name === "" ? op.name : name);
    let carried = op.operands.operand;
    for (let trip = 0; trip < trips; trip++)
      carried = inlineRegion(
        { append: (each) => ops.push(each) },
        op.regions.body,
        carried,
        rename,
      );
    for (const [i, value] of op.results.entries()) replaced.set(value, carried[i] ?? value);
  }
  return graphRegion(region.parameters, ops, region.results.map(lookUp));
}

/** Writes out loops of at most 8 trips and 256 ops. */
export const unrollPass: GraphPass = {
  name: "unroll",
  run: (module) => mapBodies(module, (body) => unrollRegion(body, new Map())),
};
