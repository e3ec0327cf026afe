/**
 * Gradients of the kernels of grouped convolutions, which have `batch_group_count`: few positions, each a long sum over the batch and the image. A
 * position is a product of the operand, moved by a tap, and the gradient of the result, group by group.
 *
 *   x [n, h, w, 128] in 128 groups, dOut [n, oh, ow, 128]      dW[tap, c] = sum over n, oh, ow of x[n, oh + tap, ow + tap, c] · dOut[n, oh, ow, c]
 *
 * Where groups are one channel each, that is a product of elements and a sum down the columns; else a batched product of matrices.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { elements } from "../ops/elements.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import {
  convert,
  multiply,
  reshape,
  sum,
  transpose,
  typeOfValue,
} from "../transform/arithmetic.ts";
import { paddedOperand, positionsOf, readWindows } from "./moved-operands.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** Kernels of more taps than these are no kernels. */
const mostTaps = 64;
/** Shorter sums are as well made by lanes. */
const leastSum = 256;

function extentsAt(value: GraphValue, axes: readonly number[]): readonly number[] {
  const { shape } = typeOfValue(value);
  return axes.map((axis) => shape[axis] ?? 1);
}

/** Sums over all axes but the last, group by group: [groups, left, right]. */
function grouped(
  groups: number,
  left: GraphValue,
  right: GraphValue,
  result: GraphValue,
  builder: GraphBuilder,
): GraphValue {
  const { shape } = typeOfValue(left);
  const summed = shape.slice(0, -1).map((_, axis) => axis);
  const parts = [left, right].map((value) => (typeOfValue(value).shape.at(-1) ?? 1) / groups);
  const { element } = typeOfValue(result);
  if (parts.every((part) => part === 1)) {
    const wide =
      elements[element].kind === "float" && elements[element].bits < 32 ? "f32" : element;
    const product = multiply(builder, convert(builder, left, wide), convert(builder, right, wide));
    return reshape(builder, convert(builder, sum(builder, product, summed), element), [
      groups,
      1,
      1,
    ]);
  }
  const [lhs, rhs] = [left, right].map((value, i) =>
    reshape(builder, value, [...typeOfValue(value).shape.slice(0, -1), groups, parts[i] ?? 1]),
  );
  if (lhs === undefined || rhs === undefined) throw new Error("a product has two sides");
  return builder.one(
    "stablehlo.dot_general",
    { lhs, rhs },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: [summed.length],
        rhs_batching_dimensions: [summed.length],
        lhs_contracting_dimensions: summed,
        rhs_contracting_dimensions: summed,
      },
    },
    { types: [tensorType(element, [groups, ...parts])] },
  );
}

/** The gradient as products of its groups; undefined where it is none, or small. */
export function groupedWeights(op: Convolution, builder: GraphBuilder): GraphValue | undefined {
  const { attributes, operands } = op;
  const [result] = op.results;
  const { batch_group_count: groups } = attributes;
  const numbers = attributes.dimension_numbers;
  const isPlain =
    attributes.feature_group_count === 1 &&
    (attributes.lhs_dilation ?? []).every((step) => step === 1) &&
    !(attributes.window_reversal ?? []).includes(true);
  if (result === undefined || groups === 1 || !isPlain) return undefined;
  const spatial = extentsAt(result, numbers.output_spatial_dimensions);
  const [outputs = 1] = extentsAt(operands.rhs, [numbers.kernel_output_feature_dimension]);
  const length = sizeOf(typeOfValue(operands.rhs).shape) / Math.max(1, outputs);
  const isOfOneType = typeOfValue(operands.lhs).element === typeOfValue(operands.rhs).element;
  const taps = sizeOf(spatial);
  if (taps === 0 || taps > mostTaps || length < leastSum || !isOfOneType) return undefined;
  const whole = paddedOperand(op, builder);
  const leftAt = (position: readonly number[]): GraphValue =>
    readWindows(op, whole, builder, {
      first: position.map((at, i) => at * (attributes.window_strides?.[i] ?? 1)),
      step: position.map((_, i) => attributes.rhs_dilation?.[i] ?? 1),
      counts: extentsAt(operands.rhs, numbers.kernel_spatial_dimensions),
      order: [
        numbers.input_feature_dimension,
        ...numbers.input_spatial_dimensions,
        numbers.input_batch_dimension,
      ],
    });
  const right = transpose(builder, operands.rhs, [
    numbers.kernel_input_feature_dimension,
    ...numbers.kernel_spatial_dimensions,
    numbers.kernel_output_feature_dimension,
  ]);
  const parts = positionsOf(spatial).map((position) =>
    grouped(groups, leftAt(position), right, result, builder),
  );
  // [taps, groups, batch, features] to [taps…, batch, groups · features], and to where the result has them.
  const stacked = builder.one(
    "stablehlo.concatenate",
    { inputs: parts.map((each) => reshape(builder, each, [1, ...typeOfValue(each).shape])) },
    { dimension: 0 },
  );
  const [, , batch = 1] = typeOfValue(stacked).shape;
  const made = reshape(builder, transpose(builder, stacked, [0, 2, 1, 3]), [
    ...spatial,
    batch,
    outputs,
  ]);
  const axes = [
    ...numbers.output_spatial_dimensions,
    numbers.output_batch_dimension,
    numbers.output_feature_dimension,
  ];
  return transpose(
    builder,
    made,
    axes.map((_, axis) => axes.indexOf(axis)),
  );
}
