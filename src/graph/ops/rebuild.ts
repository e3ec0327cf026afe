/**
 * Ops and regions with other values in them: what passes and transforms do to graphs.
 *
 *   replaceOperands(op, map)          the same op, with its results, over other operands
 *   copyOp(op, substitution)          a new op with new results, which the substitution learns
 *   copyRegion(region, substitution)  a new region with new parameters
 *
 * Copies keep their names, or have them changed, in their regions too.
 */
import { graphOp, graphRegion, graphValue } from "./node.ts";
import type { AnyGraphOp, GraphOpParts, GraphRegion, GraphValue } from "./node.ts";
import type { GraphOpKind } from "./table.ts";
import { operandsOf, regionsOf } from "./traverse.ts";

export type Substitution = Map<GraphValue, GraphValue>;
type ValueMap = (value: GraphValue) => GraphValue;
type Slots<T> = { readonly [name: string]: T | readonly T[] | undefined };

function mapSlots<T>(slots: object, map: (item: T) => T): Slots<T> {
  return Object.fromEntries(
    Object.entries(slots as Slots<T>).map(([name, slot]) => [
      name,
      Array.isArray(slot)
        ? Object.freeze((slot as readonly T[]).map(map))
        : slot === undefined
          ? undefined
          : map(slot as T),
    ]),
  );
}

/** What changes of an op; the rest stays. */
export interface OpChanges {
  readonly operand?: ValueMap;
  readonly region?: (region: GraphRegion) => GraphRegion;
  readonly results?: readonly GraphValue[];
  readonly name?: string;
}

export function rebuildOp(op: AnyGraphOp, changes: OpChanges): AnyGraphOp {
  const { operand, region, results = op.results, name = op.name } = changes;
  const parts = {
    operands: operand === undefined ? op.operands : mapSlots<GraphValue>(op.operands, operand),
    attributes: op.attributes,
    regions: region === undefined ? op.regions : mapSlots<GraphRegion>(op.regions, region),
    results,
    location: op.location,
    name,
    extra: op.extra,
  };
  // The slots are those of the op itself, so they fit its kind.
  return graphOp(op.kind, parts as unknown as GraphOpParts<GraphOpKind>) as AnyGraphOp;
}

/** The op over mapped operands, in its regions too; itself where nothing changes. */
export function replaceOperands(op: AnyGraphOp, map: ValueMap): AnyGraphOp {
  const touched =
    operandsOf(op).some((value) => map(value) !== value) ||
    regionsOf(op).some((region) => usesMapped(region, map));
  if (!touched) return op;
  return rebuildOp(op, { operand: map, region: (region) => replaceInRegion(region, map) });
}

function usesMapped(region: GraphRegion, map: ValueMap): boolean {
  return (
    region.results.some((value) => map(value) !== value) ||
    region.ops.some((op) => replaceOperands(op, map) !== op)
  );
}

function replaceInRegion(region: GraphRegion, map: ValueMap): GraphRegion {
  return graphRegion(
    region.parameters,
    region.ops.map((op) => replaceOperands(op, map)),
    region.results.map(map),
  );
}

export type Rename = (name: string) => string;

const sameName: Rename = (name) => name;

export function copyOp(
  op: AnyGraphOp,
  substitution: Substitution,
  rename: Rename = sameName,
): AnyGraphOp {
  const results = op.results.map(({ type }) => graphValue(type));
  const copy = rebuildOp(op, {
    operand: (value) => substitution.get(value) ?? value,
    region: (region) => copyRegion(region, substitution, rename),
    results,
    name: rename(op.name),
  });
  for (const [i, value] of op.results.entries()) {
    const result = results[i];
    if (result !== undefined) substitution.set(value, result);
  }
  return copy;
}

export function copyRegion(
  region: GraphRegion,
  outer: Substitution,
  rename: Rename = sameName,
): GraphRegion {
  const substitution = new Map(outer);
  const parameters = region.parameters.map((value) => {
    const copy = graphValue(value.type);
    substitution.set(value, copy);
    return copy;
  });
  const ops = region.ops.map((op) => copyOp(op, substitution, rename));
  return graphRegion(
    parameters,
    ops,
    region.results.map((value) => substitution.get(value) ?? value),
  );
}

/** Copies a region's ops into a list, with values for its parameters; gives what the region returns. */
export function inlineRegion(
  into: { append(op: AnyGraphOp): void },
  region: GraphRegion,
  inputs: readonly GraphValue[],
  rename: Rename = sameName,
): readonly GraphValue[] {
  const substitution: Substitution = new Map();
  for (const [i, parameter] of region.parameters.entries()) {
    const input = inputs[i];
    if (input === undefined) throw new Error("a region is given all of its parameters");
    substitution.set(parameter, input);
  }
  for (const op of region.ops) into.append(copyOp(op, substitution, rename));
  return region.results.map((value) => substitution.get(value) ?? value);
}

/** What is around an op: `jit(f)/while` of `jit(f)/while/add`. */
export function scopeOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf("/")));
}

/** Puts `outer/` before names: ops of a called function are named within it. */
export function namedWithin(outer: string): Rename {
  if (outer === "") return sameName;
  return (name) => (name === "" ? outer : `${outer}/${name}`);
}
