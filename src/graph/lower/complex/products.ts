/**
 * Products of complex numbers as products of real ones of their parts' format, over parts that lie one after another along what is
 * summed, so that each part of a result is one sum, made as any product of that format is:
 *
 *   re = [a, -b] · [c; d]       im = [a, b] · [d; c]        of (a + ib) · (c + id)
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { graphOp, graphValue } from "../../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import type { TensorType } from "../../ops/types.ts";
import { addValues, negate, subtract, typeOfValue } from "../../transform/arithmetic.ts";
import { partType } from "./parts.ts";
import type { Parts } from "./parts.ts";
import type { Splitter, Split } from "./split.ts";

type Product =
  | GraphOp<"stablehlo.dot_general">
  | GraphOp<"stablehlo.dot">
  | GraphOp<"stablehlo.convolution">;

/** The type of a product's parts. */
function resultType(op: Product): TensorType {
  const [declared] = op.results;
  if (declared === undefined) throw new Error("a product has a result");
  return partType(typeOfValue(declared));
}

/** The same product of other operands. */
function again(op: Product, builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  const result = graphValue(resultType(op));
  const parts = { ...op, operands: { lhs, rhs }, results: [result] };
  // The product is of the op's own kind, which TypeScript cannot see.
  builder.append(graphOp(op.kind, parts as never) as AnyGraphOp);
  return result;
}

/** The axes along which parts can follow each other; none where nothing is summed, or groups would mix. */
function summedAxes(op: Product): readonly [number, number] | undefined {
  if (op.kind === "stablehlo.dot") return [typeOfValue(op.operands.lhs).shape.length - 1, 0];
  if (op.kind === "stablehlo.convolution") {
    const { dimension_numbers: numbers, feature_group_count: groups } = op.attributes;
    if (groups !== 1) return undefined;
    return [numbers.input_feature_dimension, numbers.kernel_input_feature_dimension];
  }
  const numbers = op.attributes.dot_dimension_numbers;
  const [left] = numbers.lhs_contracting_dimensions;
  const [right] = numbers.rhs_contracting_dimensions;
  return left === undefined || right === undefined ? undefined : [left, right];
}

export function product(op: Product, split: Splitter): readonly Split[] {
  return [partsOfProduct(op, split)];
}

function partsOfProduct(op: Product, split: Splitter): Parts {
  const { builder } = split;
  const { lhs, rhs } = op.operands;
  const times = (left: GraphValue, right: GraphValue): GraphValue =>
    again(op, builder, left, right);
  if (!split.isComplex(lhs) || !split.isComplex(rhs)) {
    const half = (which: keyof Parts): GraphValue =>
      times(split.part(lhs, which), split.part(rhs, which));
    return { re: half("re"), im: half("im") };
  }
  const [left, right] = [split.parts(lhs), split.parts(rhs)];
  const axes = summedAxes(op);
  if (axes === undefined)
    return {
      re: subtract(builder, times(left.re, right.re), times(left.im, right.im)),
      im: addValues(builder, times(left.re, right.im), times(left.im, right.re)),
    };
  const after = (first: GraphValue, second: GraphValue, dimension: number): GraphValue =>
    builder.one("stablehlo.concatenate", { inputs: [first, second] }, { dimension });
  return {
    re: times(
      after(left.re, negate(builder, left.im), axes[0]),
      after(right.re, right.im, axes[1]),
    ),
    im: times(after(left.re, left.im, axes[0]), after(right.im, right.re, axes[1])),
  };
}
