/**
 * How much ops calculate, whoever makes them: multiplications and additions of products, and what is done to each element elsewhere.
 *
 *   dot_general [m, k] by [k, n]       2·m·n·k
 *   add [n]                            n
 *   reduce [m, n] by a sum             m·n
 */
import { isElementwise } from "./elementwise-kinds.ts";
import type { AnyGraphOp, GraphOp } from "./node.ts";
import type { GraphOpKind } from "./table.ts";
import { operandsOf, regionsOf } from "./traverse.ts";
import { isTensor, sizeOf } from "./types.ts";
import type { GraphValue } from "./node.ts";

function shapeOf({ type }: GraphValue): readonly number[] {
  return isTensor(type) ? type.shape : [];
}

function resultElements({ results }: AnyGraphOp): number {
  return results.reduce((sum, value) => sum + sizeOf(shapeOf(value)), 0);
}

type Counted = "stablehlo.dot_general" | "stablehlo.convolution";

/** The additions and multiplications of an op that multiplies. */
const productCounts: { readonly [K in Counted]: (op: GraphOp<K>) => number } = {
  "stablehlo.dot_general": (op) => {
    const shape = shapeOf(op.operands.lhs);
    const { lhs_contracting_dimensions: contracted } = op.attributes.dot_dimension_numbers;
    return 2 * resultElements(op) * sizeOf(contracted.map((axis) => shape[axis] ?? 1));
  },
  "stablehlo.convolution": (op) => {
    const { dimension_numbers: numbers, lhs_dilation: holes = [] } = op.attributes;
    const shape = shapeOf(op.operands.rhs);
    const filters = shape[numbers.kernel_output_feature_dimension] ?? 1;
    // What lies between elements that are spread is not multiplied.
    return (2 * resultElements(op) * (sizeOf(shape) / filters)) / sizeOf(holes);
  },
};

function isCounted(op: AnyGraphOp): op is GraphOp<Counted> & AnyGraphOp {
  return Object.hasOwn(productCounts, op.kind);
}

/** The multiplications and additions of a product; 0 of other ops. */
export function productCount(op: AnyGraphOp): number {
  if (!isCounted(op)) return 0;
  return op.kind === "stablehlo.dot_general"
    ? productCounts[op.kind](op)
    : productCounts[op.kind](op);
}

/** Elements that functions are applied to. */
export function elementCount(op: AnyGraphOp): number {
  if (isElementwise(op.kind)) return resultElements(op);
  const functions = regionsOf(op).reduce((sum, { ops }) => sum + ops.length, 0);
  const largest = Math.max(0, ...operandsOf(op).map((value) => sizeOf(shapeOf(value))));
  return functions === 0 ? 0 : largest;
}

export type ProductKind = Extract<GraphOpKind, Counted>;
