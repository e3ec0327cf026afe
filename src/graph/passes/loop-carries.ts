/**
 * What loops carry from turn to turn, and need not:
 *
 *   w handed on as it is                     read from around the loop
 *   a counter that nobody asks for           dropped
 *   two stacks of the same rows              one, where both begin alike and each turn writes the same to both
 */
import { isPure } from "../ops/captures.ts";
import { graphOp, graphRegion } from "../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { capturesOf } from "../ops/captures.ts";
import { mergeEqualOps } from "./cse.ts";
import { removeDead } from "./dce.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass } from "./pass.ts";

type While = GraphOp<"stablehlo.while">;

function nth<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new Error(`a loop has no carry ${index}`);
  return found;
}

/** A region over other values. */
function over(region: GraphRegion, map: (value: GraphValue) => GraphValue): GraphRegion {
  return graphRegion(
    region.parameters,
    region.ops.map((op) => replaceOperands(op, map)),
    region.results.map(map),
  );
}

/** For each carry, the first one that is equal to it in every turn. */
function equalCarries({ operands, regions: { body } }: While): readonly number[] {
  const { parameters } = body;
  const firstOf = (keys: readonly string[]): readonly number[] =>
    keys.map((key) => keys.indexOf(key));
  let first = firstOf(operands.operand.map(({ id }) => String(id)));
  for (;;) {
    // What begins alike is taken to be equal, until a turn makes a difference.
    const assumed = new Map(
      parameters.flatMap((value, i) => {
        const other = parameters[first[i] ?? i];
        return other === undefined || other === value ? [] : [[value, other] as const];
      }),
    );
    if (assumed.size === 0) return first;
    const { results } = mergeEqualOps(over(body, (value) => assumed.get(value) ?? value));
    const next = firstOf(results.map(({ id }, i) => `${first[i] ?? i} ${id}`));
    if (next.join() === first.join()) return first;
    first = next;
  }
}

/** The carries that a turn, the condition or what is after the loop asks for. */
function neededCarries(
  { results, regions: { cond, body } }: While,
  used: ReadonlySet<GraphValue>,
): ReadonlySet<number> {
  const asked = new Set<GraphValue>(usedBy(cond));
  for (const op of body.ops) if (!isPure(op)) for (const value of usesOf(op)) asked.add(value);
  const needed = new Set<number>();
  for (;;) {
    const found = results.flatMap((value, i) => {
      const isAsked = [cond, body].some(({ parameters }) => {
        const parameter = parameters[i];
        return parameter !== undefined && asked.has(parameter);
      });
      return !needed.has(i) && (isAsked || used.has(value)) ? [i] : [];
    });
    if (found.length === 0) return needed;
    for (const i of found) {
      needed.add(i);
      const result = body.results[i];
      if (result !== undefined) asked.add(result);
    }
    for (const op of body.ops.toReversed())
      if (op.results.some((value) => asked.has(value)))
        for (const value of usesOf(op)) asked.add(value);
  }
}

function usesOf(op: GraphRegion["ops"][number]): readonly GraphValue[] {
  return [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)];
}

function usedBy({ ops, results }: GraphRegion): readonly GraphValue[] {
  return [...ops.flatMap(usesOf), ...results];
}

/** The loop without carries that are invariant, equal to others or not needed, and what stands for those of its results. */
function slimmed(
  op: While,
  used: ReadonlySet<GraphValue>,
): { readonly loop: While; readonly replaced: ReadonlyMap<GraphValue, GraphValue> } {
  const { cond, body } = op.regions;
  const inner = new Map<GraphValue, GraphValue>();
  const replaced = new Map<GraphValue, GraphValue>();
  const first = equalCarries(op);
  const stand = (
    i: number,
    by: { readonly within: (region: GraphRegion) => GraphValue; readonly after: GraphValue },
  ): void => {
    for (const region of [cond, body]) inner.set(nth(region.parameters, i), by.within(region));
    replaced.set(nth(op.results, i), by.after);
  };
  const gone = new Set<number>();
  for (const [i, given] of op.operands.operand.entries()) {
    const other = first[i] ?? i;
    if (body.results[i] === body.parameters[i]) stand(i, { within: () => given, after: given });
    else if (other === i) continue;
    else
      stand(i, {
        within: ({ parameters }) => {
          const same = nth(parameters, other);
          return inner.get(same) ?? same;
        },
        after: replaced.get(nth(op.results, other)) ?? nth(op.results, other),
      });
    gone.add(i);
  }
  const map = (value: GraphValue): GraphValue => inner.get(value) ?? value;
  const without = rebuilt(op, over(cond, map), over(body, map), (i) => !gone.has(i));
  const usedNow = new Set([...used].map((value) => replaced.get(value) ?? value));
  const needed = neededCarries(without, usedNow);
  const { cond: asks, body: turn } = without.regions;
  return { loop: rebuilt(without, asks, turn, (i) => needed.has(i)), replaced };
}

function rebuilt(
  op: While,
  cond: GraphRegion,
  body: GraphRegion,
  isKept: (carry: number) => boolean,
): While {
  const kept = <T>(list: readonly T[]): readonly T[] => list.filter((_, i) => isKept(i));
  return graphOp("stablehlo.while", {
    operands: { operand: kept(op.operands.operand) },
    attributes: op.attributes,
    regions: {
      cond: graphRegion(kept(cond.parameters), cond.ops, cond.results),
      // What computed a carry that is gone may have read it.
      body: removeDead(graphRegion(kept(body.parameters), body.ops, kept(body.results))),
    },
    results: kept(op.results),
    location: op.location,
    name: op.name,
    extra: op.extra,
  });
}

function slimRegion(given: GraphRegion): GraphRegion {
  if (!given.ops.some((op) => op.kind === "stablehlo.while" || regionsOf(op).length > 0))
    return given;
  const inner = graphRegion(
    given.parameters,
    given.ops.map((op) => mapRegions(op, slimRegion)),
    given.results,
  );
  if (!inner.ops.some(({ kind }) => kind === "stablehlo.while")) return inner;
  // Carries begin alike where equal ops are one.
  const region = mergeEqualOps(inner);
  const used = new Set<GraphValue>([...region.results, ...region.ops.flatMap(usesOf)]);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const ops = region.ops.map((each) => {
    const op = replaceOperands(each, lookUp);
    if (op.kind !== "stablehlo.while") return op;
    const { loop, replaced: own } = slimmed(op, used);
    for (const [value, by] of own) replaced.set(value, by);
    return loop;
  });
  return graphRegion(region.parameters, ops, region.results.map(lookUp));
}

/** Takes out of loops what they need not carry. */
export const loopCarriesPass: GraphPass = {
  name: "loop carries",
  run: (module) => mapBodies(module, slimRegion),
};
