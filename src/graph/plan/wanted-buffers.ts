/**
 * Where values are to be made. A result of a region that is a reshape of what an operation makes is that operation's result: it is made
 * where the reshape is wanted.
 *
 *   %0 = dot …            made in result 0
 *   %1 = reshape %0       result 0
 */
import { loweringOf, sharedOperand } from "../lower/record.ts";
import type { ViewedProduct } from "../lower/views/products.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import type { Buffer } from "./plan.ts";

/** Has what a wanted reshape is of made where the reshape is wanted, so that nothing is copied: the last first, for reshapes of reshapes. */
export function wantUnderViews(
  region: GraphRegion,
  kept: ReadonlySet<AnyGraphOp>,
  products: ReadonlyMap<AnyGraphOp, ViewedProduct>,
  wanted: Map<GraphValue, Buffer>,
): void {
  const makers = new Map(region.ops.flatMap((op) => op.results.map((value) => [value, op])));
  for (const [op, { result }] of products) makers.set(result, op);
  for (const op of region.ops.toReversed()) {
    const operand = sharedOperand(op);
    const target = op.results.map((value) => wanted.get(value)).find((each) => each !== undefined);
    const maker = operand === undefined ? undefined : makers.get(operand);
    if (operand === undefined || target === undefined || maker === undefined) continue;
    const { form } = loweringOf(maker);
    const isMade = form === "fold" || form === "steps" || form === "library";
    if (isMade && kept.has(maker) && !wanted.has(operand)) wanted.set(operand, target);
  }
}
