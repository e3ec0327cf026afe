/** Ops that take any number of values: a complex one counts as two, in their regions too. */
import { combinerKind } from "../../ops/combiner.ts";
import { graphOp, graphRegion, graphValue } from "../../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphOpParts, GraphRegion, GraphValue } from "../../ops/node.ts";
import { rebuildOp } from "../../ops/rebuild.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { regionsOf } from "../../ops/traverse.ts";
import { combiner, typeOfValue } from "../../transform/arithmetic.ts";
import { isComplexType, partType } from "./parts.ts";
import type { Splitter, Split } from "./split.ts";

type Slots<T> = { readonly [name: string]: T | readonly T[] | undefined };

function flatTypes(values: readonly GraphValue[]): readonly GraphValue[] {
  return values.flatMap(({ type }): readonly GraphValue[] =>
    isComplexType(type)
      ? [graphValue(partType(type)), graphValue(partType(type))]
      : [graphValue(type)],
  );
}

function flattened(
  op: AnyGraphOp,
  split: Splitter,
  region: (region: GraphRegion) => GraphRegion,
): readonly Split[] {
  const operands = Object.fromEntries(
    Object.entries(op.operands as Slots<GraphValue>).map(([name, slot]) => [
      name,
      Array.isArray(slot)
        ? (slot as readonly GraphValue[]).flatMap((value) => split.flat(value))
        : slot === undefined
          ? undefined
          : split.real(slot as GraphValue),
    ]),
  );
  const regions = Object.fromEntries(
    Object.entries(op.regions as Slots<GraphRegion>).map(([name, slot]) => [
      name,
      Array.isArray(slot)
        ? (slot as readonly GraphRegion[]).map(region)
        : slot === undefined
          ? undefined
          : region(slot as GraphRegion),
    ]),
  );
  const results = flatTypes(op.results);
  const { attributes, location, name, extra } = op;
  const parts = { operands, attributes, regions, results, location, name, extra };
  // The slots are those of the op itself, with other counts.
  split.builder.append(
    graphOp(op.kind, parts as unknown as GraphOpParts<GraphOpKind>) as AnyGraphOp,
  );
  return split.gather(results, op.results);
}

/** Loops, branches, barriers: all of their values, one after another. */
export function flat(op: AnyGraphOp, split: Splitter): readonly Split[] {
  return flattened(op, split, (region) => split.region(region));
}

/** Maps have one result: one for each part of it. */
export function mapped(op: GraphOp<"stablehlo.map">, split: Splitter): readonly Split[] {
  const inputs = op.operands.inputs.flatMap((value) => split.flat(value));
  const results = flatTypes(op.results);
  for (const [i, result] of results.entries()) {
    const whole = split.region(op.regions.computation);
    const part = whole.results[i];
    if (part === undefined) throw new Error("the region gives each part");
    const computation = graphRegion(whole.parameters, whole.ops, [part]);
    const parts = { ...op, operands: { inputs }, regions: { computation }, results: [result] };
    split.builder.append(graphOp("stablehlo.map", parts));
  }
  return split.gather(results, op.results);
}

/** The op on the real parts, and again on the others. */
export function each(
  op: AnyGraphOp,
  split: Splitter,
  region?: (region: GraphRegion) => GraphRegion,
): readonly Split[] {
  const half = (which: "re" | "im"): readonly GraphValue[] => {
    const results = op.results.map((value) => graphValue(partType(typeOfValue(value))));
    split.builder.append(
      rebuildOp(op, {
        operand: (value) => split.part(value, which),
        ...(region !== undefined && { region }),
        results,
      }),
    );
    return results;
  };
  const [re, im] = [half("re"), half("im")];
  return op.results.map((_, i) => ({ re: re[i] as GraphValue, im: im[i] as GraphValue }));
}

/** Reductions: sums are those of the parts, everything else is of both together. */
export function combined(op: AnyGraphOp, split: Splitter): readonly Split[] {
  const [region] = regionsOf(op);
  const [result] = op.results;
  const isSum = region !== undefined && combinerKind(region) === "stablehlo.add";
  if (!isSum || op.results.length !== 1 || result === undefined) return flat(op, split);
  const { element } = partType(typeOfValue(result));
  return each(op, split, () => combiner(split.builder, element, "stablehlo.add"));
}

/** The comparator of a sort has its parameters in pairs, left and right, one pair an operand. */
export function sorted(op: GraphOp<"stablehlo.sort">, split: Splitter): readonly Split[] {
  return flattened(op, split, (region) => {
    const { parameters, ops, results } = split.region(region);
    let next = 0;
    const paired = op.operands.inputs.flatMap((value) => {
      const count = split.isComplex(value) ? 2 : 1;
      const own = parameters.slice(next, next + 2 * count);
      next += 2 * count;
      // (left re, left im, right re, right im) becomes (left re, right re, left im, right im).
      return Array.from({ length: count }, (_, i) => [own[i], own[i + count]]).flat();
    });
    return graphRegion(paired as readonly GraphValue[], ops, results);
  });
}
