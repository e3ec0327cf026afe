/**
 * Convolutions that are the library's `convolution`: those of f16, bf16 and f32 whose windows go over an input without holes. Input and
 * result have their channels last or first; weights in another order than the library's are transposed before.
 *
 *   [b, 0, 1, f] x [0, 1, i, o] -> [b, 0, 1, f]      weights to [o, 0, 1, i], channels last
 *   [b, f, 0, 1] x [o, i, 0, 1] -> [b, f, 0, 1]      as it is, channels first
 *
 * Both sum in f32 and round once.
 */
import { convolution } from "../../../kernels/convolution/convolution.ts";
import type { Operation } from "../../../device/operation.ts";
import { tensor } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphValue } from "../../ops/node.ts";
import type { ConvolutionNumbers } from "../../ops/structures.ts";
import { transpose } from "../../transform/arithmetic.ts";
import type { LibraryCall } from "../library.ts";
import { storageOf } from "../storage.ts";
import {
  axesInOrder,
  channelsOf,
  isInOrder,
  isWorthwhile,
  precisionOf,
  typesOf,
} from "./shared.ts";
import type { Channels, Convolution, Types } from "./shared.ts";

/** The axes of the weights in the order that the library has them in. */
function weightAxes(numbers: ConvolutionNumbers, order: Channels): readonly number[] {
  return axesInOrder(
    numbers.kernel_output_feature_dimension,
    numbers.kernel_input_feature_dimension,
    numbers.kernel_spatial_dimensions,
    order,
  );
}

/** Where channels stand, if the library makes this convolution once its weights lie right. */
function ourChannels(op: Convolution): Channels | undefined {
  const types = typesOf(op);
  if (types === undefined) return undefined;
  const { lhs, out } = types;
  const isOurs = out.element === lhs.element || out.element === "f32";
  const { attributes } = op;
  const isPlain =
    attributes.batch_group_count === 1 &&
    (attributes.lhs_dilation ?? []).every((step) => step === 1) &&
    !(attributes.window_reversal ?? []).includes(true) &&
    (attributes.padding ?? []).flat().every((width) => width >= 0);
  return isOurs && isPlain && isWorthwhile(op, types)
    ? channelsOf(attributes.dimension_numbers)
    : undefined;
}

/** Whether the weights have to be transposed for the library. */
export function needsOtherWeights(op: Convolution): boolean {
  const order = ourChannels(op);
  return order !== undefined && !isInOrder(weightAxes(op.attributes.dimension_numbers, order));
}

/** The same convolution over weights in the library's order. */
export function withOtherWeights(op: Convolution, builder: GraphBuilder): readonly GraphValue[] {
  const numbers = op.attributes.dimension_numbers;
  const order = channelsOf(numbers) ?? "last";
  const rhs = transpose(builder, op.operands.rhs, weightAxes(numbers, order));
  const rank = numbers.kernel_spatial_dimensions.length;
  const spatial = Array.from({ length: rank }, (_, axis) => axis + (order === "last" ? 1 : 2));
  return builder.add(
    "stablehlo.convolution",
    { lhs: op.operands.lhs, rhs },
    {
      ...op.attributes,
      dimension_numbers: {
        ...numbers,
        kernel_output_feature_dimension: 0,
        kernel_input_feature_dimension: order === "last" ? rank + 1 : 1,
        kernel_spatial_dimensions: spatial,
      },
    },
    { types: op.results.map(({ type }) => type) },
  );
}

const operations = new Map<string, Operation>();

/** One operation for all convolutions of the same shapes and windows: their kernels are shared. */
function operationOf(op: Convolution, channels: Channels, { lhs, rhs, out }: Types): Operation {
  const { attributes } = op;
  const spatial = lhs.shape.length - 2;
  const ones = Array.from({ length: spatial }, () => 1);
  const windows = {
    strides: attributes.window_strides ?? ones,
    dilation: attributes.rhs_dilation ?? ones,
    padding: (attributes.padding ?? ones.map(() => [0, 0])) as readonly (readonly [
      number,
      number,
    ])[],
    groups: attributes.feature_group_count,
    ...precisionOf(op),
  };
  const key = JSON.stringify([channels, lhs.element, lhs.shape, rhs.shape, out.element, windows]);
  const known = operations.get(key);
  if (known !== undefined) return known;
  const [dtype, result] = [storageOf(lhs.element), storageOf(out.element)];
  if (dtype === undefined || result === undefined) throw new Error("devices have these formats");
  const made = convolution({
    x: tensor(dtype, lhs.shape),
    w: tensor(dtype, rhs.shape),
    channels,
    ...windows,
    out: result,
  }) as unknown as Operation;
  operations.set(key, made);
  return made;
}

/** Whether the library makes a convolution, perhaps once its weights lie right. */
export function isForward(op: Convolution): boolean {
  return ourChannels(op) !== undefined;
}

export function forwardCall(op: Convolution): LibraryCall {
  const channels = ourChannels(op);
  const types = typesOf(op);
  if (channels === undefined || types === undefined || needsOtherWeights(op))
    throw new Error("the library makes this convolution");
  return {
    operation: operationOf(op, channels, types),
    inputs: [
      { name: "x", value: op.operands.lhs, shape: types.lhs.shape },
      { name: "w", value: op.operands.rhs, shape: types.rhs.shape },
    ],
    outputs: [{ name: "out", shape: types.out.shape }],
  };
}
