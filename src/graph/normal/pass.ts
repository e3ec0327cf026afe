/** Normal forms as passes: products first turned to where their results are wanted, then made products of matrices. */
import { GraphBuilder } from "../infer/builder.ts";
import { graphRegion } from "../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { replaceOperands } from "../ops/rebuild.ts";
import { capturesOf } from "../ops/captures.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { mapBodies, mapRegions, withOps } from "../passes/pass.ts";
import type { GraphPass } from "../passes/pass.ts";
import { patchProduct } from "./convolutions.ts";
import { convolutionsOfClasses } from "./dilated-convolutions.ts";
import { withAlgorithm } from "./precision.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { normalProduct, turnedProduct } from "./products.ts";

interface Place {
  readonly builder: GraphBuilder;
  definition(value: GraphValue): AnyGraphOp | undefined;
  /** How many ops and results of the region use a value. */
  uses(value: GraphValue): number;
}

/** The value that takes the place of an op's one result; undefined where it stays. */
type Rewrite = (op: AnyGraphOp, place: Place) => GraphValue | undefined;

function usesIn({ ops, results }: GraphRegion): ReadonlyMap<GraphValue, number> {
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
  rewrite: Rewrite,
  outer: ReadonlyMap<GraphValue, AnyGraphOp>,
): GraphRegion {
  const counts = usesIn(region);
  const definitions = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  const place: Place = {
    builder,
    definition: (value) => definitions.get(value),
    uses: (value) => counts.get(value) ?? 0,
  };
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      rewritten(inner, rewrite, definitions),
    );
    const before = builder.ops.length;
    const value = builder.within(op, () => rewrite(op, place));
    if (value === undefined) builder.append(op);
    const [result] = op.results;
    if (value !== undefined && result !== undefined) replaced.set(result, value);
    for (const each of builder.ops.slice(before))
      for (const made of each.results) definitions.set(made, each);
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

function rewriting(name: string, rewrite: Rewrite): GraphPass {
  return {
    name,
    run: (module) => mapBodies(module, (body) => rewritten(body, rewrite, new Map())),
  };
}

/** Products whose only use is a transpose of their result, with their operands in the other order. */
export const turnProductsPass: GraphPass = rewriting("turn-products", (op, place) => {
  if (op.kind !== "stablehlo.transpose") return undefined;
  const { operand } = op.operands;
  const product = place.definition(operand);
  if (product?.kind !== "stablehlo.dot_general" || place.uses(operand) !== 1) return undefined;
  return turnedProduct(op, product, place.builder);
});

/** Products as products of matrices. */
export const normalProductsPass: GraphPass = rewriting("normal-products", (op, place) =>
  op.kind === "stablehlo.dot_general"
    ? normalProduct(op, place.builder, (value) => place.definition(value))
    : undefined,
);

/** Products and convolutions of f32 with the algorithms that they are made by. */
export function matmulPrecisionPass(precision: MatmulPrecision): GraphPass {
  return {
    name: "matmul-precision",
    run: (module) => mapBodies(module, (body) => withAlgorithms(body, precision)),
  };
}

function withAlgorithms(region: GraphRegion, precision: MatmulPrecision): GraphRegion {
  const within = (inner: GraphRegion): GraphRegion => withAlgorithms(inner, precision);
  const ops = region.ops.map((op) => withAlgorithm(op, precision) ?? mapRegions(op, within));
  return withOps(region, ops);
}

/** Convolutions of few channels as products. */
export const patchesPass: GraphPass = rewriting("patches", (op, place) =>
  op.kind === "stablehlo.convolution" ? patchProduct(op, place.builder) : undefined,
);

/** Convolutions over operands with holes as convolutions without, but those that `isKept` says a kernel is for. */
export function withoutHolesPass(
  isKept: (op: GraphOp<"stablehlo.convolution">) => boolean,
): GraphPass {
  return rewriting("without-holes", (op, place) =>
    op.kind === "stablehlo.convolution" && !isKept(op)
      ? convolutionsOfClasses(op, place.builder)
      : undefined,
  );
}
