/** Rules of ops without a derivative: those that have none because it is zero, and those that lack one. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { AnyGraphOp } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import type { JvpContext, Tangent } from "./context.ts";

/** Results that do not change with the operands, or are integers. */
export function zero(op: { readonly results: readonly unknown[] }): readonly Tangent[] {
  return op.results.map(() => undefined);
}

/** An error once somebody needs the tangent; nothing where no operand has one. */
export function refused(op: object, context: JvpContext): readonly Tangent[] {
  const refusedOp = op as AnyGraphOp;
  if (operandsOf(refusedOp).some((value) => context.hasTangent(value))) {
    const error = new TilewrightError({
      code: "TW9201",
      message: `${refusedOp.kind} has no derivative here`,
      location: refusedOp.location,
      expected: "an op with a derivative by these operands",
      found: refusedOp.name === "" ? refusedOp.kind : refusedOp.name,
    });
    for (const value of refusedOp.results) context.withhold(value, error);
  }
  return zero(refusedOp);
}
