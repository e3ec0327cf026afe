/**
 * Gradients of convolutions as the library makes them. A program has them as convolutions too, in which the strides of the forward one are
 * holes:
 *
 *   of x   dOut with holes (lhs_dilation), the kernel turned around      convolutionBackwardX
 *   of w   x over dOut with holes (rhs_dilation), the batch summed       convolutionBackwardW
 *
 * Each has a form that the library takes as it is, to which others are brought: for x the kernel lies as the forward one has it and is
 * turned around by `window_reversal`, for w the result is in the order of the library's weights.
 *
 *   [b, 0, 1, f] x [i, 0, 1, o] -> [b, 0, 1, f], reversed       [f, 0, 1, b] x [i, 0, 1, o] -> [f, 0, 1, b]
 */
import {
  convolutionBackwardW,
  convolutionBackwardX,
} from "../../../kernels/convolution/convolution.ts";
import type { Operation } from "../../../device/operation.ts";
import { tensor } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphValue } from "../../ops/node.ts";
import type { ConvolutionNumbers } from "../../ops/structures.ts";
import { tensorType } from "../../ops/types.ts";
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

/** The windows of a forward convolution along its spatial axes. */
interface Windows {
  readonly strides: readonly number[];
  readonly dilation: readonly number[];
  readonly padding: readonly (readonly [number, number])[];
}

interface Axis {
  /** Extents of x and of the result, and the taps of the kernel. */
  readonly input: number;
  readonly output: number;
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  readonly before: number;
}

/** The padding of a forward convolution along an axis that has these extents; undefined where none has. */
function paddingOf(axis: Axis): readonly [number, number] | undefined {
  const { input, output, taps, stride, dilation, before } = axis;
  const span = dilation * (taps - 1) + 1;
  const after = Math.max(0, (output - 1) * stride + span - input - before);
  const windows = Math.floor((input + before + after - span) / stride) + 1;
  return before >= 0 && windows === output ? [before, after] : undefined;
}

function windowsOf(axes: readonly Axis[]): Windows | undefined {
  const padding = axes.flatMap((axis) => {
    const found = paddingOf(axis);
    return found === undefined ? [] : [found];
  });
  if (padding.length !== axes.length) return undefined;
  const [stride, dilation] = [axes.map((axis) => axis.stride), axes.map((axis) => axis.dilation)];
  return { strides: stride, dilation, padding };
}

function extentsAt({ shape }: { readonly shape: readonly number[] }, axes: readonly number[]) {
  return axes.map((axis) => shape[axis] ?? 1);
}

function isOne(steps: readonly number[] | undefined): boolean {
  return (steps ?? []).every((step) => step === 1);
}

/** What the library makes of a gradient. */
interface Gradient {
  readonly channels: Channels;
  readonly windows: Windows;
  readonly types: Types;
  readonly precision: ReturnType<typeof precisionOf>;
}

function worthwhileTypes(op: Convolution): Types | undefined {
  const types = typesOf(op);
  const { batch_group_count: batches, feature_group_count: features } = op.attributes;
  const isWhole = types !== undefined && types.out.element === types.lhs.element;
  return isWhole && batches === 1 && features === 1 && isWorthwhile(op, types) ? types : undefined;
}

/** A convolution as the gradient of x; one without holes is as well a forward one. */
function inputGradient(op: Convolution): Gradient | undefined {
  const types = worthwhileTypes(op);
  const { attributes } = op;
  const channels = channelsOf(attributes.dimension_numbers);
  if (types === undefined || channels === undefined) return undefined;
  if (isOne(attributes.lhs_dilation) || !isOne(attributes.window_strides)) return undefined;
  const numbers = attributes.dimension_numbers;
  const inputs = extentsAt(types.out, numbers.output_spatial_dimensions);
  const outputs = extentsAt(types.lhs, numbers.input_spatial_dimensions);
  const taps = extentsAt(types.rhs, numbers.kernel_spatial_dimensions);
  const windows = windowsOf(
    taps.map((count, i) => {
      const dilation = attributes.rhs_dilation?.[i] ?? 1;
      return {
        input: inputs[i] ?? 1,
        output: outputs[i] ?? 1,
        taps: count,
        stride: attributes.lhs_dilation?.[i] ?? 1,
        dilation,
        before: dilation * (count - 1) - (attributes.padding?.[i]?.[0] ?? 0),
      };
    }),
  );
  return windows === undefined
    ? undefined
    : { channels, windows, types, precision: precisionOf(op) };
}

/** The axes of the kernel as the forward convolution has them: what is summed here is made there. */
function forwardWeights(numbers: ConvolutionNumbers, channels: Channels): readonly number[] {
  return axesInOrder(
    numbers.kernel_input_feature_dimension,
    numbers.kernel_output_feature_dimension,
    numbers.kernel_spatial_dimensions,
    channels,
  );
}

/** Axes of the library's order for channels that stand so. */
function standardAxes(channels: Channels, spatial: number) {
  const first = channels === "last" ? 1 : 2;
  return {
    channel: channels === "last" ? spatial + 1 : 1,
    spatial: Array.from({ length: spatial }, (_, axis) => first + axis),
  };
}

function isTurned({ attributes }: Convolution): boolean {
  const { window_reversal: reversal } = attributes;
  return reversal !== undefined && reversal.length > 0 && reversal.every((each) => each);
}

/** The same gradient of x over the kernel as the forward convolution has it. */
function withForwardWeights(op: Convolution, builder: GraphBuilder): readonly GraphValue[] {
  const { attributes } = op;
  const numbers = attributes.dimension_numbers;
  const channels = channelsOf(numbers) ?? "last";
  const unturned = numbers.kernel_spatial_dimensions.filter(
    (_, i) => attributes.window_reversal?.[i] !== true,
  );
  const { rhs: operand } = op.operands;
  const turned =
    unturned.length === 0
      ? operand
      : builder.one("stablehlo.reverse", { operand }, { dimensions: unturned });
  const rhs = transpose(builder, turned, forwardWeights(numbers, channels));
  const { channel, spatial } = standardAxes(channels, numbers.kernel_spatial_dimensions.length);
  return builder.add(
    "stablehlo.convolution",
    { lhs: op.operands.lhs, rhs },
    {
      ...attributes,
      window_reversal: spatial.map(() => true),
      dimension_numbers: {
        ...numbers,
        kernel_input_feature_dimension: 0,
        kernel_output_feature_dimension: channel,
        kernel_spatial_dimensions: spatial,
      },
    },
    { types: op.results.map(({ type }) => type) },
  );
}

/** A convolution as the gradient of w: what it sums over is the batch of both operands. */
function weightGradient(op: Convolution): Gradient | undefined {
  const types = worthwhileTypes(op);
  const { attributes } = op;
  const numbers = attributes.dimension_numbers;
  const channels = batchedChannels(numbers);
  if (types === undefined || channels === undefined) return undefined;
  const isPlain =
    isOne(attributes.lhs_dilation) && !(attributes.window_reversal ?? []).includes(true);
  if (!isPlain) return undefined;
  const inputs = extentsAt(types.lhs, numbers.input_spatial_dimensions);
  const outputs = extentsAt(types.rhs, numbers.kernel_spatial_dimensions);
  const taps = extentsAt(types.out, numbers.output_spatial_dimensions);
  const windows = windowsOf(
    taps.map((count, i) => ({
      input: inputs[i] ?? 1,
      output: outputs[i] ?? 1,
      taps: count,
      stride: attributes.rhs_dilation?.[i] ?? 1,
      dilation: attributes.window_strides?.[i] ?? 1,
      before: attributes.padding?.[i]?.[0] ?? 0,
    })),
  );
  return windows === undefined
    ? undefined
    : { channels, windows, types, precision: precisionOf(op) };
}

/** Where channels stand in operands whose first axis is summed over. */
function batchedChannels(numbers: ConvolutionNumbers): Channels | undefined {
  return (["last", "first"] as const).find(
    (order) =>
      isInOrder(
        axesInOrder(
          numbers.input_feature_dimension,
          numbers.input_batch_dimension,
          numbers.input_spatial_dimensions,
          order,
        ),
      ) &&
      isInOrder(
        axesInOrder(
          numbers.kernel_input_feature_dimension,
          numbers.kernel_output_feature_dimension,
          numbers.kernel_spatial_dimensions,
          order,
        ),
      ),
  );
}

/** The axes of the result in the order of the library's weights. */
function weightResult(numbers: ConvolutionNumbers, channels: Channels): readonly number[] {
  return axesInOrder(
    numbers.output_feature_dimension,
    numbers.output_batch_dimension,
    numbers.output_spatial_dimensions,
    channels,
  );
}

/** The same gradient of w in the order of the library's weights, and back from there. */
function inWeightOrder(op: Convolution, builder: GraphBuilder): readonly GraphValue[] {
  const found = weightGradient(op);
  if (found === undefined) throw new Error("the convolution is a gradient of weights");
  const { channels, types } = found;
  const numbers = op.attributes.dimension_numbers;
  const axes = weightResult(numbers, channels);
  const { channel, spatial } = standardAxes(channels, numbers.output_spatial_dimensions.length);
  const made = builder.one(
    "stablehlo.convolution",
    op.operands,
    {
      ...op.attributes,
      dimension_numbers: {
        ...numbers,
        output_feature_dimension: 0,
        output_batch_dimension: channel,
        output_spatial_dimensions: spatial,
      },
    },
    { types: [tensorType(types.out.element, extentsAt(types.out, axes))] },
  );
  return [
    transpose(
      builder,
      made,
      axes.map((_, axis) => axes.indexOf(axis)),
    ),
  ];
}

const operations = new Map<string, Operation>();

/** One operation for all gradients of the same shapes and windows: their kernels are shared. */
function operationOf(
  kind: "x" | "w",
  { channels, windows, types, precision }: Gradient,
  shapes: { readonly x: readonly number[]; readonly w: readonly number[] },
): Operation {
  const key = JSON.stringify([kind, channels, types.lhs.element, shapes, windows, precision]);
  const known = operations.get(key);
  if (known !== undefined) return known;
  const dtype = storageOf(types.lhs.element);
  if (dtype === undefined) throw new Error("devices have this format");
  const spec = {
    x: tensor(dtype, shapes.x),
    w: tensor(dtype, shapes.w),
    channels,
    ...windows,
    ...precision,
  };
  const made = (kind === "x"
    ? convolutionBackwardX(spec)
    : convolutionBackwardW(spec)) as unknown as Operation;
  operations.set(key, made);
  return made;
}

function inputCall(op: Convolution): LibraryCall {
  const found = inputGradient(op);
  if (found === undefined) throw new Error("the convolution is a gradient of an input");
  const { lhs, rhs, out } = found.types;
  return {
    operation: operationOf("x", found, { x: out.shape, w: rhs.shape }),
    inputs: [
      { name: "dOut", value: op.operands.lhs, shape: lhs.shape },
      { name: "w", value: op.operands.rhs, shape: rhs.shape },
    ],
    outputs: [{ name: "dx", shape: out.shape }],
  };
}

function weightCall(op: Convolution): LibraryCall {
  const found = weightGradient(op);
  if (found === undefined) throw new Error("the convolution is a gradient of weights");
  const { lhs, rhs, out } = found.types;
  return {
    operation: operationOf("w", found, { x: lhs.shape, w: out.shape }),
    inputs: [
      { name: "x", value: op.operands.lhs, shape: lhs.shape },
      { name: "dOut", value: op.operands.rhs, shape: rhs.shape },
    ],
    outputs: [{ name: "dw", shape: out.shape }],
  };
}

/** How the library makes a gradient: the call, or the ops that bring it into the form that it takes. */
export type GradientForm =
  | { readonly call: (op: Convolution) => LibraryCall }
  | { readonly to: (op: Convolution, builder: GraphBuilder) => readonly GraphValue[] };

export function gradientForm(op: Convolution): GradientForm | undefined {
  const numbers = op.attributes.dimension_numbers;
  const ofInput = inputGradient(op);
  if (ofInput !== undefined) {
    const isDirect = isTurned(op) && isInOrder(forwardWeights(numbers, ofInput.channels));
    return isDirect ? { call: inputCall } : { to: withForwardWeights };
  }
  const ofWeights = weightGradient(op);
  if (ofWeights === undefined) return undefined;
  const isDirect = isInOrder(weightResult(numbers, ofWeights.channels));
  return isDirect ? { call: weightCall } : { to: inWeightOrder };
}
