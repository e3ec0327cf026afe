/**
 * Linear maps of a region, and the values within it that they need. A map that was made inside a loop's body
 * or a branch refers to values there; to run it elsewhere those are carried out as residuals.
 *
 *   body: y = sin(x)      map: t -> cos(x) · t      residual: cos(x)
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { capturesOf } from "../ops/captures.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { copyOp } from "../ops/rebuild.ts";
import type { Substitution } from "../ops/rebuild.ts";
import type { TensorType } from "../ops/types.ts";
import { zerosOf } from "./arithmetic.ts";
import type { BackwardMap } from "./linear.ts";

export interface RegionMap {
  /** Cotangents in, cotangents out; the region captures residuals. */
  readonly transpose: GraphRegion;
  readonly residuals: readonly GraphValue[];
}

/** A map backwards as a region; a result without a tangent is zero. */
export function regionMap(
  builder: GraphBuilder,
  map: BackwardMap,
  inputs: readonly TensorType[],
  outputs: readonly { readonly type: TensorType; readonly present: boolean }[],
  defined: ReadonlySet<GraphValue>,
): RegionMap {
  const outputTypes = outputs.map(({ type }) => type);
  const transpose = builder.region(outputTypes, (inner, cotangents) => {
    const present = cotangents.filter((_, i) => outputs[i]?.present === true);
    const found = map.transpose(inner, present);
    return inputs.map((type, i) => found[i] ?? zerosOf(inner, type));
  });
  return { transpose, residuals: capturesOf(transpose).filter((value) => defined.has(value)) };
}

/** Values that a region's own ops and parameters define. */
export function definedBy(
  parameters: readonly GraphValue[],
  ops: readonly AnyGraphOp[],
): ReadonlySet<GraphValue> {
  return new Set([...parameters, ...ops.flatMap((op) => op.results)]);
}

/** Copies a region's ops to the builder with values for its parameters and residuals. */
export function inlineWith(
  builder: GraphBuilder,
  region: GraphRegion,
  inputs: readonly GraphValue[],
  residuals: ReadonlyMap<GraphValue, GraphValue>,
): readonly GraphValue[] {
  const substitution: Substitution = new Map(residuals);
  for (const [i, parameter] of region.parameters.entries())
    substitution.set(parameter, inputs[i] ?? parameter);
  for (const op of region.ops) builder.append(copyOp(op, substitution));
  return region.results.map((value) => substitution.get(value) ?? value);
}
