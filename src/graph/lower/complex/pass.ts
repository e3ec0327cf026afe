/**
 * Complex values become pairs of real ones, before anything is made into kernels. Arguments and results of the function stay one
 * array each, of one more axis, as the caller has them.
 *
 *   %2 = stablehlo.add %z, %w : tensor<4xcomplex<f32>>
 *     =>  %re = stablehlo.add %z_re, %w_re : tensor<4xf32>      %im = stablehlo.add %z_im, %w_im : tensor<4xf32>
 */
import { graphRegion, graphValue } from "../../ops/node.ts";
import type { GraphRegion } from "../../ops/node.ts";
import { opsWithin } from "../../ops/traverse.ts";
import { mapBodies } from "../../passes/pass.ts";
import type { GraphPass, OnRewrite } from "../../passes/pass.ts";
import { isComplexType, joined, joinedType, separated } from "./parts.ts";
import { complexResults } from "./rules.ts";
import { Splitter } from "./split.ts";

function hasComplex(region: GraphRegion): boolean {
  if (region.parameters.some(({ type }) => isComplexType(type))) return true;
  for (const { results } of opsWithin(region))
    if (results.some(({ type }) => isComplexType(type))) return true;
  return false;
}

function splitBody(body: GraphRegion, onRewrite: OnRewrite | undefined): GraphRegion {
  const split = new Splitter((op, splitter) => {
    onRewrite?.(op.kind);
    return complexResults(op, splitter);
  });
  const { builder } = split;
  const parameters = body.parameters.map((value) => {
    if (!isComplexType(value.type)) return value;
    const pairs = graphValue(joinedType(value.type));
    split.set(value, separated(builder, pairs));
    return pairs;
  });
  split.ops(body.ops);
  const results = body.results.map((value) =>
    split.isComplex(value) ? joined(builder, split.parts(value)) : split.real(value),
  );
  return graphRegion(parameters, builder.ops, results);
}

/** The pass for one function: what others hold is not run. */
export function splitComplexPass(name: string): GraphPass {
  return {
    name: "split complex",
    run: (module, onRewrite) =>
      mapBodies(module, (body, { name: own }) =>
        own === name && hasComplex(body) ? splitBody(body, onRewrite) : body,
      ),
  };
}
