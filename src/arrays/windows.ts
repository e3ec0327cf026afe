/**
 * Convolutions and windows, over the axes between the first and the last: arrays are [batch, …space, channels], kernels
 * […space, channels / groups, results].
 *
 *   conv(x, w)                         x [8, 32, 32, 3], w [3, 3, 3, 16]   ->   [8, 30, 30, 16]
 *   conv(x, w, { padding: "same", strides: 2 })                           ->   [8, 16, 16, 16]
 *   maxPool(x, [2, 2])                 x [8, 32, 32, 3]                   ->   [8, 16, 16, 3]
 */
import type { DTypeName } from "../formats/dtype.ts";
import { neutralNumbers } from "../graph/ops/combiner.ts";
import { tensorType } from "../graph/ops/types.ts";
import { combiner, splatOf } from "../graph/transform/arithmetic.ts";
import { NDArray, recordAll, recordWith, typeOfArray } from "./array.ts";
import { div, one } from "./functions.ts";
import { requireOneDtype } from "./dtype-checks.ts";
import { ones } from "./shapes.ts";

/** One number for all axes of space, or one for each. */
export type PerAxis = number | readonly number[];

/**
 * `"valid"`: windows lie within the array. `"same"`: as many as there are elements, divided by the stride and rounded up, with the padding
 * shared between both ends, the odd one behind. Otherwise what is added before and behind along each axis.
 */
export type Padding = "valid" | "same" | readonly (readonly [before: number, behind: number])[];

/** Options of `nn.conv`: strides, padding, dilation and groups. */
export interface ConvOptions {
  /** How far the window moves along each axis of space; 1 by default. */
  readonly strides?: PerAxis | undefined;
  /** What is added at the edges; `"valid"`, nothing, by default. */
  readonly padding?: Padding | undefined;
  /** How far the taps of the kernel lie apart. */
  readonly dilation?: PerAxis | undefined;
  /** How far the elements of the array lie apart, zeros between them: what a transposed convolution does. */
  readonly inputDilation?: PerAxis | undefined;
  /** Into how many groups channels are cut, each with its share of the results. */
  readonly groups?: number | undefined;
}

/** Options of `nn.maxPool` and `nn.avgPool`. */
export interface PoolOptions {
  /** The window's own extents by default. */
  readonly strides?: PerAxis | undefined;
  /** What is added at the edges; `"valid"`, nothing, by default. */
  readonly padding?: Padding | undefined;
}

function perAxis(given: PerAxis, rank: number): readonly number[] {
  return typeof given === "number" ? Array.from({ length: rank }, () => given) : given;
}

interface Window {
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  readonly dilation: readonly number[];
}

/** What is added before and behind along each axis of space. */
function paddingOf(
  padding: Padding,
  extents: readonly number[],
  { sizes, strides, dilation }: Window,
): readonly (readonly number[])[] {
  if (typeof padding !== "string") return padding;
  return extents.map((extent, axis) => {
    if (padding === "valid") return [0, 0];
    const [size = 1, stride = 1, apart = 1] = [sizes[axis], strides[axis], dilation[axis]];
    const covered = (Math.ceil(extent / stride) - 1) * stride + (size - 1) * apart + 1;
    const missing = Math.max(0, covered - extent);
    return [Math.floor(missing / 2), Math.ceil(missing / 2)];
  });
}

/** Sums of products of a kernel with the parts of an array, over any number of axes of space. */
export function conv<D extends DTypeName>(
  x: NDArray<D>,
  w: NDArray<D>,
  options: ConvOptions = {},
): NDArray<D> {
  requireOneDtype(x, w);
  const rank = Math.max(0, x.rank - 2);
  const space = Array.from({ length: rank }, (_, axis) => axis);
  const strides = perAxis(options.strides ?? 1, rank);
  const dilation = perAxis(options.dilation ?? 1, rank);
  const apart = perAxis(options.inputDilation ?? 1, rank);
  const extents = x.shape.slice(1, -1).map((extent, axis) => (extent - 1) * (apart[axis] ?? 1) + 1);
  const window = { sizes: w.shape.slice(0, -2), strides, dilation };
  const inner = space.map((axis) => axis + 1);
  return one(
    recordAll(
      "stablehlo.convolution",
      { lhs: x.value, rhs: w.value },
      {
        window_strides: strides,
        padding: paddingOf(options.padding ?? "valid", extents, window),
        lhs_dilation: apart,
        rhs_dilation: dilation,
        dimension_numbers: {
          input_batch_dimension: 0,
          input_feature_dimension: rank + 1,
          input_spatial_dimensions: inner,
          kernel_input_feature_dimension: rank,
          kernel_output_feature_dimension: rank + 1,
          kernel_spatial_dimensions: space,
          output_batch_dimension: 0,
          output_feature_dimension: rank + 1,
          output_spatial_dimensions: inner,
        },
        feature_group_count: options.groups ?? 1,
        batch_group_count: 1,
      },
    ),
  );
}

/** The elements of each window, combined. */
function pooled<D extends DTypeName>(
  x: NDArray<D>,
  sizes: readonly number[],
  options: PoolOptions,
  kind: "stablehlo.add" | "stablehlo.maximum",
): NDArray<D> {
  const { element } = typeOfArray(x.value);
  const strides = perAxis(options.strides ?? sizes, sizes.length);
  const window = { sizes, strides, dilation: sizes.map(() => 1) };
  const padding = paddingOf(options.padding ?? "valid", x.shape.slice(1, -1), window);
  const value = recordWith("reduce_window", (builder) =>
    builder.one(
      "stablehlo.reduce_window",
      {
        inputs: [x.value],
        init_values: [splatOf(builder, tensorType(element, []), neutralNumbers[kind](element))],
      },
      {
        window_dimensions: [1, ...sizes, 1],
        window_strides: [1, ...strides, 1],
        padding: [[0, 0], ...padding, [0, 0]],
      },
      { regions: { body: combiner(builder, element, kind) } },
    ),
  );
  return new NDArray<D>(value);
}

/** The largest element of each window. */
export function maxPool<D extends DTypeName>(
  x: NDArray<D>,
  window: readonly number[],
  options: PoolOptions = {},
): NDArray<D> {
  return pooled(x, window, options, "stablehlo.maximum");
}

/** The mean of those elements of each window that are no padding. */
export function avgPool<D extends DTypeName>(
  x: NDArray<D>,
  window: readonly number[],
  options: PoolOptions = {},
): NDArray<D> {
  const total = pooled(x, window, options, "stablehlo.add");
  const counted = ones([1, ...x.shape.slice(1, -1), 1], x.dtype);
  return div(total, pooled(counted, window, options, "stablehlo.add"));
}
