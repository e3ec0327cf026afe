/**
 * Depthwise convolutions as sums of moved operands: each channel is a group of its own, so there is no product of matrices in them, and one
 * kernel that reads a row for each tap takes about as long as a copy.
 *
 *   x [n, h, w, c], 3 × 3 taps of c      out = sum over taps of x moved by the tap · kernel[tap]
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { elements } from "../ops/elements.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import {
  addValues,
  broadcastInDim,
  convert,
  multiply,
  reshape,
  typeOfValue,
  zerosOf,
} from "../transform/arithmetic.ts";
import { paddedOperand, positionsOf, readWindows } from "./moved-operands.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** More taps than these are more ops than a kernel should have. */
const mostTaps = 49;

/** The kernel's numbers of one tap: one a channel. */
function tapOf(
  { operands, attributes }: Convolution,
  tap: readonly number[],
  builder: GraphBuilder,
): GraphValue {
  const numbers = attributes.dimension_numbers;
  const { shape } = typeOfValue(operands.rhs);
  const [start, limit] = [shape.map(() => 0), [...shape]];
  for (const [i, axis] of numbers.kernel_spatial_dimensions.entries()) {
    start[axis] = tap[i] ?? 0;
    limit[axis] = (tap[i] ?? 0) + 1;
  }
  const one = builder.one(
    "stablehlo.slice",
    { operand: operands.rhs },
    { start_indices: start, limit_indices: limit, strides: shape.map(() => 1) },
  );
  return reshape(builder, one, [shape[numbers.kernel_output_feature_dimension] ?? 1]);
}

/** Whether each channel is a group of its own, with one kernel of few taps. */
function isDepthwise({ attributes, operands }: Convolution): boolean {
  const numbers = attributes.dimension_numbers;
  const [type, kernel] = [typeOfValue(operands.lhs), typeOfValue(operands.rhs)];
  const channels = type.shape[numbers.input_feature_dimension] ?? 1;
  const taps = sizeOf(numbers.kernel_spatial_dimensions.map((axis) => kernel.shape[axis] ?? 1));
  return (
    channels > 1 &&
    attributes.feature_group_count === channels &&
    kernel.shape[numbers.kernel_output_feature_dimension] === channels &&
    attributes.batch_group_count === 1 &&
    type.element === kernel.element &&
    taps > 0 &&
    taps <= mostTaps
  );
}

/** The convolution as a sum over its taps; undefined where it is none of channels alone. */
export function depthwiseSum(op: Convolution, builder: GraphBuilder): GraphValue | undefined {
  const { attributes, operands } = op;
  const [result] = op.results;
  const numbers = attributes.dimension_numbers;
  const hasHoles = (attributes.lhs_dilation ?? []).some((step) => step !== 1);
  const isReversed = (attributes.window_reversal ?? []).includes(true);
  if (result === undefined || hasHoles || isReversed || !isDepthwise(op)) return undefined;
  const [type, kernel, out] = [operands.lhs, operands.rhs, result].map(typeOfValue);
  if (type === undefined || kernel === undefined || out === undefined) return undefined;
  if (sizeOf(out.shape) === 0) return undefined;
  const taps = numbers.kernel_spatial_dimensions.map((axis) => kernel.shape[axis] ?? 1);
  const { kind, bits } = elements[type.element];
  const wide = kind === "float" && bits < 32 ? "f32" : type.element;
  const whole = convert(builder, paddedOperand(op, builder), wide);
  const order = [
    numbers.output_batch_dimension,
    ...numbers.output_spatial_dimensions,
    numbers.output_feature_dimension,
  ];
  const spatial = numbers.output_spatial_dimensions.map((axis) => out.shape[axis] ?? 1);
  const terms = positionsOf(taps).map((tap) => {
    const read = readWindows(op, whole, builder, {
      first: tap.map((at, i) => at * (attributes.rhs_dilation?.[i] ?? 1)),
      step: tap.map((_, i) => attributes.window_strides?.[i] ?? 1),
      counts: spatial,
      order: [
        numbers.input_batch_dimension,
        ...numbers.input_spatial_dimensions,
        numbers.input_feature_dimension,
      ],
      to: order,
    });
    const factor = convert(builder, tapOf(op, tap, builder), wide);
    const { shape } = typeOfValue(read);
    return multiply(
      builder,
      read,
      broadcastInDim(builder, factor, shape, [numbers.output_feature_dimension]),
    );
  });
  // From zero on: a sum of one term that is -0 is 0.
  const zero = zerosOf(builder, tensorType(wide, out.shape));
  return convert(
    builder,
    terms.reduce((sum, term) => addValues(builder, sum, term), zero),
    out.element,
  );
}
