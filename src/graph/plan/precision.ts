/** How products of a plan are made, as text: `tf32 × 3`, `bf16`. */
import { productCount } from "../ops/arithmetic-counts.ts";
import type { AnyGraphOp } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import { isTensor } from "../ops/types.ts";

/** What the parts of a product are, and how many products of parts it is made of; "" of other ops. */
export function productText(op: AnyGraphOp): string {
  if (productCount(op) === 0) return "";
  if (op.kind === "stablehlo.dot_general" && op.attributes.algorithm !== undefined) {
    const { lhs_precision_type: format, num_primitive_operations: count } = op.attributes.algorithm;
    return count === 1 ? format : `${format} × ${count}`;
  }
  const [lhs] = operandsOf(op);
  return lhs !== undefined && isTensor(lhs.type) ? lhs.type.element : "";
}
