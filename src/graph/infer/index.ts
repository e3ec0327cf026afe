/**
 * Result types, and the only place that computes them: the verifier compares them with what text wrote,
 * the builder gives them to the ops that recording, transforms and passes make.
 *
 *   stablehlo.transpose of tensor<2x3xf32>, permutation [1, 0]      tensor<3x2xf32>
 */
import type { AnyGraphOp } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf } from "../ops/traverse.ts";
import { isOpaque } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { distributionRules, testingRules } from "./distribution.ts";
import type { Draft, InferRules } from "./inference-input.ts";
import { chloRules, elementwiseRules } from "./elementwise.ts";
import { productRules } from "./products.ts";
import { controlRules, derivativeRules, reductionRules } from "./regions.ts";
import { shapeRules } from "./shapes.ts";

const rules: InferRules<GraphOpKind> = {
  ...elementwiseRules,
  ...shapeRules,
  ...productRules,
  ...reductionRules,
  ...controlRules,
  ...distributionRules,
  ...chloRules,
  ...testingRules,
  ...derivativeRules,
};

/** The types of an op's results. */
export function inferTypes<K extends GraphOpKind>(draft: Draft<K>): readonly GraphType[] {
  return rules[draft.kind](draft);
}

/** The types that an op's results should have; undefined where shapes or elements are not known. */
export function expectedTypes(op: AnyGraphOp): readonly GraphType[] | undefined {
  const declared = op.results.map(({ type }) => type);
  const given = operandsOf(op).map(({ type }) => type);
  if ([...declared, ...given].some(isOpaque)) return undefined;
  return inferTypes({ ...op, declared });
}

export type { Draft } from "./inference-input.ts";
export { completeWindow, windowExtent } from "./window.ts";
export type { Window } from "./window.ts";
