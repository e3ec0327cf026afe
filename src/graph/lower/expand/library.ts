/** Ops that are other ops: composites and calls that JAX prints. */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphModule, GraphOp, GraphValue } from "../../ops/node.ts";
import { inlineRegion, namedWithin } from "../../ops/rebuild.ts";
import { typeOfValue, zerosOf } from "../../transform/arithmetic.ts";
import { cannotRun } from "../storage.ts";

/** The decomposition of a composite, in its place. */
export function expandComposite(
  op: GraphOp<"stablehlo.composite">,
  builder: GraphBuilder,
  module: GraphModule,
): readonly GraphValue[] {
  const found = module.functions.get(op.attributes.decomposition);
  if (found === undefined)
    throw cannotRun(op, `the module has no function @${op.attributes.decomposition}`);
  return inlineRegion(builder, found.body, op.operands.inputs, namedWithin(op.name));
}

/** Zeros for what a call would only allocate. */
export function expandZeros(
  op: GraphOp<"stablehlo.custom_call">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  return op.results.map((value) => zerosOf(builder, typeOfValue(value)));
}
