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
import type { LinearMap } from "./linear.ts";

export interface RegionMaps {
  /** Tangents in, tangents out; the region captures residuals. */
  readonly apply: GraphRegion;
  /** Cotangents in, cotangents out. */
  readonly transpose: GraphRegion;
  readonly residuals: readonly GraphValue[];
}

/** Both directions of a map as regions; a result without a tangent is zero. */
export function regionMaps(
  builder: GraphBuilder,
  map: LinearMap,
  inputs: readonly TensorType[],
  outputs: readonly { readonly type: TensorType; readonly present: boolean }[],
  defined: ReadonlySet<GraphValue>,
): RegionMaps {
  const apply = builder.region(inputs, (inner, tangents) => {
    const given = map.apply(inner, tangents)[Symbol.iterator]();
    return outputs.map(({ type, present }) =>
      present ? (given.next().value ?? zerosOf(inner, type)) : zerosOf(inner, type),
    );
  });
  const outputTypes = outputs.map(({ type }) => type);
  const transpose = builder.region(outputTypes, (inner, cotangents) => {
    const present = cotangents.filter((_, i) => outputs[i]?.present === true);
    const found = map.transpose(inner, present);
    return inputs.map((type, i) => found[i] ?? zerosOf(inner, type));
  });
  const captured = new Set([...capturesOf(apply), ...capturesOf(transpose)]);
  return { apply, transpose, residuals: [...captured].filter((value) => defined.has(value)) };
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
