/**
 * Derivatives through other ops: the tangents of an op are those of ops that compute the same. The op itself stays as it
 * is; what is computed twice and used once falls to dead-code elimination.
 */
import { GraphBuilder } from "../infer/builder.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import { reshape, typeOfValue } from "./arithmetic.ts";
import type { JvpContext, Tangent } from "./context.ts";

export function through(
  op: object,
  context: JvpContext,
  build: (builder: GraphBuilder) => readonly GraphValue[],
): readonly Tangent[] {
  const own = op as AnyGraphOp;
  if (!operandsOf(own).some((value) => context.hasTangent(value)))
    return own.results.map(() => undefined);
  const scratch = new GraphBuilder(context.builder.origin);
  const results = build(scratch);
  return context.run(scratch.ops, results).map((value) => context.tangent(value));
}

/**
 * A value that counts as constant to the derivative at hand. Derivatives of that derivative go through it, so it is no
 * `stop_gradient` but the value under another name.
 */
export function heldConstant({ builder }: JvpContext, value: GraphValue): GraphValue {
  return reshape(builder, value, typeOfValue(value).shape);
}
