/**
 * Convolutions of few channels, and those whose windows lie side by side, as products of matrices: tensor cores take 16 numbers at once, of
 * which three channels fill three. The windows become rows of a matrix first.
 *
 *   x [n, h, w, 3], 7 × 7 taps           patches [n, oh, ow, 7, 7, 3]    ×    kernel [7, 7, 3, o]
 *   its gradient over dOut [n, oh, ow, o]  the same patches, turned       ×    dOut
 *
 * Both are one sum over contracted features and taps: positions p and taps t of an axis are read at p · stride + t · dilation - low.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { elements } from "../ops/elements.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import { isByRows } from "./row-convolutions.ts";
import {
  addValues,
  broadcastInDim,
  iota,
  reshape,
  scaled,
  splatOf,
  transpose,
  typeOfValue,
} from "../transform/arithmetic.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** Which convolutions are worth the copy that patches are. */
export interface PatchLimits {
  /** The most channels. */
  readonly channels: number;
  /** Taps of fewer numbers than these are as well computed element by element. */
  readonly leastTaps: number;
  readonly leastProducts: number;
  /** Patches of more bytes than these are not worth their memory. */
  readonly bytes: number;
}

/** More channels than these fill enough of a tensor core's step. */
export const tensorCorePatches: PatchLimits = {
  channels: 4,
  leastTaps: 16,
  leastProducts: 1 << 20,
  bytes: 2 ** 30,
};

/** Copies of rows are cheap on a CPU beside loads element by element. */
export const cpuPatches: PatchLimits = {
  channels: Infinity,
  leastTaps: 8,
  leastProducts: 1 << 14,
  bytes: 2 ** 28,
};

interface Axis {
  readonly extent: number;
  /** Positions of windows in the result, and taps of the kernel. */
  readonly positions: number;
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  readonly low: number;
}

interface Windows {
  /** Whether positions come before taps in patches: where the first axis of the operand is that of the result's batch. */
  readonly isBatchFirst: boolean;
  readonly axes: readonly Axis[];
}

/** The windows of a convolution over an operand with its channels last; undefined of all others. */
function windowsOf({ operands, attributes, results }: Convolution): Windows | undefined {
  const [result] = results;
  const numbers = attributes.dimension_numbers;
  const { shape } = typeOfValue(operands.lhs);
  const last = shape.length - 1;
  const [batch, feature] = [numbers.input_batch_dimension, numbers.input_feature_dimension];
  const isOuter = (batch === 0 && feature === last) || (feature === 0 && batch === last);
  const isInOrder = numbers.input_spatial_dimensions.every((axis, i) => axis === i + 1);
  const isPlain =
    attributes.batch_group_count === 1 &&
    attributes.feature_group_count === 1 &&
    (attributes.lhs_dilation ?? []).every((step) => step === 1) &&
    !(attributes.window_reversal ?? []).includes(true);
  if (result === undefined || !isOuter || !isInOrder || !isPlain) return undefined;
  const [out, kernel] = [typeOfValue(result).shape, typeOfValue(operands.rhs).shape];
  const axes = numbers.input_spatial_dimensions.map((axis, i) => ({
    extent: shape[axis] ?? 1,
    positions: out[numbers.output_spatial_dimensions[i] ?? 0] ?? 1,
    taps: kernel[numbers.kernel_spatial_dimensions[i] ?? 0] ?? 1,
    stride: attributes.window_strides?.[i] ?? 1,
    dilation: attributes.rhs_dilation?.[i] ?? 1,
    low: attributes.padding?.[i]?.[0] ?? 0,
  }));
  return { isBatchFirst: batch === 0, axes };
}

/** Whether windows lie side by side and fill the axis, so that patches are the operand itself, cut. */
function isCut({ extent, positions, taps, stride, dilation, low }: Axis): boolean {
  const isSide = stride === taps && dilation === 1;
  const isAcross = dilation === positions && stride === 1;
  return low === 0 && extent === positions * taps && (isSide || isAcross);
}

function isWorthwhile(op: Convolution, { axes }: Windows, worth: PatchLimits): boolean {
  const { lhs } = op.operands;
  const { shape, element } = typeOfValue(lhs);
  const [result] = op.results;
  const channels = Math.min(shape[0] ?? 1, shape.at(-1) ?? 1);
  const depth = sizeOf(axes.map(({ taps }) => taps)) * contractedChannels(op);
  const places = sizeOf(axes.map(({ positions, taps }) => positions * taps));
  const patches = places * (shape[0] ?? 1) * (shape.at(-1) ?? 1);
  const products = (result === undefined ? 0 : sizeOf(typeOfValue(result).shape)) * depth;
  return (
    elements[element].kind === "float" &&
    elements[element].bits <= 32 &&
    elements[element].bits >= 16 &&
    element === typeOfValue(op.operands.rhs).element &&
    (channels <= worth.channels || axes.every(isCut)) &&
    places > 1 &&
    depth >= worth.leastTaps &&
    products >= worth.leastProducts &&
    (patches * elements[element].bits) / 8 <= worth.bytes
  );
}

function contractedChannels({ operands, attributes }: Convolution): number {
  const axis = attributes.dimension_numbers.input_feature_dimension;
  return typeOfValue(operands.lhs).shape[axis] ?? 1;
}

/** [first, positions…, taps…, last], or taps before positions. */
function patchesOf(
  op: Convolution,
  { isBatchFirst, axes }: Windows,
  builder: GraphBuilder,
): GraphValue {
  const { lhs } = op.operands;
  const { shape } = typeOfValue(lhs);
  const [first = 1, last = 1] = [shape[0], shape.at(-1)];
  const positions = axes.map((axis) => axis.positions);
  const taps = axes.map((axis) => axis.taps);
  if (axes.every(isCut)) {
    // An axis is [position, tap] where windows lie one after the other, [tap, position] where taps do.
    const isOuterPosition = axes.map(({ stride, taps: own }) => stride === own && own > 1);
    const cut = axes.flatMap((axis, i) =>
      isOuterPosition[i] === true ? [axis.positions, axis.taps] : [axis.taps, axis.positions],
    );
    const placesOf = (isPosition: boolean): readonly number[] =>
      axes.map((_, i) => 1 + 2 * i + ((isOuterPosition[i] === true) === isPosition ? 0 : 1));
    const order = isBatchFirst
      ? [...placesOf(true), ...placesOf(false)]
      : [...placesOf(false), ...placesOf(true)];
    const rank = 2 + 2 * axes.length;
    return transpose(builder, reshape(builder, lhs, [first, ...cut, last]), [
      0,
      ...order,
      rank - 1,
    ]);
  }
  const before = axes.map(({ low }) => Math.max(0, low));
  const after = axes.map(({ extent, positions: count, taps: own, stride, dilation, low }) =>
    Math.max(0, (count - 1) * stride + (own - 1) * dilation - low + 1 - extent),
  );
  const zero = splatOf(builder, tensorType(typeOfValue(lhs).element, []), 0);
  const padded = [...before, ...after].every((width) => width === 0)
    ? lhs
    : builder.one(
        "stablehlo.pad",
        { operand: lhs, padding_value: zero },
        {
          edge_padding_low: [0, ...before, 0],
          edge_padding_high: [0, ...after, 0],
          interior_padding: shape.map(() => 0),
        },
      );
  const grid = isBatchFirst ? [...positions, ...taps] : [...taps, ...positions];
  const starts = axes.map((axis, i) => {
    const along = (isPosition: boolean): number =>
      i + (isPosition === isBatchFirst ? 0 : axes.length);
    const type = tensorType("i32", grid);
    const place = scaled(builder, iota(builder, type, along(true)), axis.stride);
    const tap = scaled(builder, iota(builder, type, along(false)), axis.dilation);
    const offset = splatOf(builder, type, (before[i] ?? 0) - axis.low);
    return broadcastInDim(
      builder,
      addValues(builder, addValues(builder, place, tap), offset),
      [...grid, 1],
      grid.map((_, at) => at),
    );
  });
  const [only, ...others] = starts;
  const indices =
    only !== undefined && others.length === 0
      ? only
      : builder.one("stablehlo.concatenate", { inputs: starts }, { dimension: grid.length });
  return builder.one(
    "stablehlo.gather",
    { operand: padded, start_indices: indices },
    {
      dimension_numbers: {
        offset_dims: [0, grid.length + 1],
        collapsed_slice_dims: axes.map((_, i) => i + 1),
        operand_batching_dims: [],
        start_indices_batching_dims: [],
        start_index_map: axes.map((_, i) => i + 1),
        index_vector_dim: grid.length,
      },
      slice_sizes: [first, ...axes.map(() => 1), last],
      indices_are_sorted: false,
    },
  );
}

/** The convolution as a product of its patches and its kernel; undefined where the library has a better way. */
export function patchProduct(
  op: Convolution,
  builder: GraphBuilder,
  worth: PatchLimits,
): GraphValue | undefined {
  const [result] = op.results;
  const windows = isByRows(op) ? undefined : windowsOf(op);
  if (result === undefined || windows === undefined || !isWorthwhile(op, windows, worth))
    return undefined;
  const numbers = op.attributes.dimension_numbers;
  const { isBatchFirst, axes } = windows;
  const count = axes.length;
  const places = Array.from({ length: count }, (_, i) => i + 1);
  const inner = places.map((axis) => axis + count);
  const last = 2 * count + 1;
  // Patches are [batch, positions, taps, feature], or [feature, taps, positions, batch].
  const contracted = isBatchFirst ? [...inner, last] : [...places, 0];
  const { precision_config: config } = op.attributes;
  const product = builder.one(
    "stablehlo.dot_general",
    { lhs: patchesOf(op, windows, builder), rhs: op.operands.rhs },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: [],
        rhs_batching_dimensions: [],
        lhs_contracting_dimensions: contracted,
        rhs_contracting_dimensions: [
          ...numbers.kernel_spatial_dimensions,
          numbers.kernel_input_feature_dimension,
        ],
      },
      ...(config !== undefined && { precision_config: config }),
    },
    { types: [tensorType(typeOfValue(result).element, productShape(op, isBatchFirst))] },
  );
  // [batch, positions, features], or [positions, batch, features].
  const own = isBatchFirst
    ? [numbers.output_batch_dimension, ...numbers.output_spatial_dimensions]
    : [...numbers.output_spatial_dimensions, numbers.output_batch_dimension];
  const axesOfResult = [...own, numbers.output_feature_dimension];
  return transpose(
    builder,
    product,
    axesOfResult.map((_, axis) => axesOfResult.indexOf(axis)),
  );
}

function productShape(op: Convolution, isBatchFirst: boolean): readonly number[] {
  const [result] = op.results;
  const numbers = op.attributes.dimension_numbers;
  const shape = result === undefined ? [] : typeOfValue(result).shape;
  const batch = shape[numbers.output_batch_dimension] ?? 1;
  const positions = numbers.output_spatial_dimensions.map((axis) => shape[axis] ?? 1);
  const features = shape[numbers.output_feature_dimension] ?? 1;
  return isBatchFirst ? [batch, ...positions, features] : [...positions, batch, features];
}
