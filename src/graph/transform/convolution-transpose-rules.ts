/**
 * The linear maps of convolutions. Going back to the input is a convolution of the cotangent, spread out by
 * the strides, with the reversed kernel whose features are swapped; going back to the kernel is one of the
 * input with the cotangent, with batch and features swapped.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { completeWindow } from "../infer/index.ts";
import type { Window } from "../infer/index.ts";
import type { GraphValue } from "../ops/node.ts";
import type { ConvolutionNumbers } from "../ops/structures.ts";
import type { GraphAttributes } from "../ops/table.ts";
import type { TensorType } from "../ops/types.ts";
import { convert, reshape, transpose, typeOfValue } from "./arithmetic.ts";
import type { LinearMap } from "./linear.ts";
import { single } from "./maps.ts";
import { range } from "./product-transpose-rules.ts";

type ConvolutionAttributes = GraphAttributes<"stablehlo.convolution">;

interface ConvolutionPlace {
  readonly lhs: TensorType;
  readonly rhs: TensorType;
  readonly result: TensorType;
  readonly attributes: ConvolutionAttributes;
  readonly window: Window;
}

function placeOf(
  lhs: TensorType,
  rhs: TensorType,
  result: TensorType,
  attributes: ConvolutionAttributes,
): ConvolutionPlace {
  const { kernel_spatial_dimensions: axes } = attributes.dimension_numbers;
  const window = completeWindow(axes.length, {
    sizes: axes.map((axis) => rhs.shape[axis] ?? 0),
    strides: attributes.window_strides,
    padding: attributes.padding,
    baseDilations: attributes.lhs_dilation,
    windowDilations: attributes.rhs_dilation,
  });
  return { lhs, rhs, result, attributes, window };
}

function dilated(extent: number, dilation: number): number {
  return extent === 0 ? 0 : (extent - 1) * dilation + 1;
}

/** Extents of the spatial axes, spread out. */
function spread(
  { shape }: TensorType,
  axes: readonly number[],
  dilations: readonly number[],
): readonly number[] {
  return axes.map((axis, i) => dilated(shape[axis] ?? 0, dilations[i] ?? 1));
}

function extents({ lhs, rhs, result, attributes, window }: ConvolutionPlace): {
  readonly input: readonly number[];
  readonly kernel: readonly number[];
  readonly output: readonly number[];
} {
  const { dimension_numbers: numbers } = attributes;
  return {
    input: spread(lhs, numbers.input_spatial_dimensions, window.baseDilations),
    kernel: spread(rhs, numbers.kernel_spatial_dimensions, window.windowDilations),
    output: spread(result, numbers.output_spatial_dimensions, window.strides),
  };
}

/** Axis `source` cut into `count` parts, which are put before axis `target`'s elements. */
function moveGroups(
  builder: GraphBuilder,
  value: GraphValue,
  source: number,
  target: number,
  count: number,
): GraphValue {
  if (count === 1) return value;
  const { shape } = typeOfValue(value);
  const extent = shape[source] ?? 0;
  const cut = reshape(builder, value, [
    ...shape.slice(0, source),
    count,
    extent / count,
    ...shape.slice(source + 1),
  ]);
  // The groups are axis `source` of the cut value; the other axes keep their order around them.
  const rest = range(0, shape.length + 1).filter((axis) => axis !== source);
  const order = [...rest.slice(0, target), source, ...rest.slice(target)];
  const merged = shape.map((each, axis) =>
    axis === source ? extent / count : axis === target ? each * count : each,
  );
  return reshape(builder, transpose(builder, cut, order), merged);
}

function swapKernel(numbers: ConvolutionNumbers): ConvolutionNumbers {
  return {
    input_batch_dimension: numbers.output_batch_dimension,
    input_feature_dimension: numbers.output_feature_dimension,
    input_spatial_dimensions: numbers.output_spatial_dimensions,
    kernel_input_feature_dimension: numbers.kernel_output_feature_dimension,
    kernel_output_feature_dimension: numbers.kernel_input_feature_dimension,
    kernel_spatial_dimensions: numbers.kernel_spatial_dimensions,
    output_batch_dimension: numbers.input_batch_dimension,
    output_feature_dimension: numbers.input_feature_dimension,
    output_spatial_dimensions: numbers.input_spatial_dimensions,
  };
}

function backToInput(
  builder: GraphBuilder,
  cotangent: GraphValue,
  kernel: GraphValue,
  place: ConvolutionPlace,
): GraphValue {
  const { attributes, window, lhs } = place;
  const {
    dimension_numbers: numbers,
    feature_group_count: features,
    batch_group_count: batches,
  } = attributes;
  const size = extents(place);
  const padding = size.input.map((input, i) => {
    const low = (size.kernel[i] ?? 0) - (window.padding[i]?.[0] ?? 0) - 1;
    return [low, input + (size.kernel[i] ?? 0) - 1 - (size.output[i] ?? 0) - low];
  });
  const groups = Math.max(features, batches);
  const { kernel_output_feature_dimension: o, kernel_input_feature_dimension: i } = numbers;
  const grouped = moveGroups(builder, kernel, o, i, groups);
  const reversed = builder.one(
    "stablehlo.reverse",
    { operand: convert(builder, grouped, typeOfValue(cotangent).element) },
    { dimensions: numbers.kernel_spatial_dimensions },
  );
  const result = builder.one(
    "stablehlo.convolution",
    { lhs: cotangent, rhs: reversed },
    {
      dimension_numbers: swapKernel(numbers),
      window_strides: window.baseDilations,
      padding,
      lhs_dilation: window.strides,
      rhs_dilation: window.windowDilations,
      feature_group_count: groups,
      batch_group_count: 1,
      precision_config: attributes.precision_config,
    },
  );
  const { input_feature_dimension: f, input_batch_dimension: b } = numbers;
  return convert(builder, moveGroups(builder, result, f, b, batches), lhs.element);
}

function backToKernel(
  builder: GraphBuilder,
  cotangent: GraphValue,
  input: GraphValue,
  place: ConvolutionPlace,
): GraphValue {
  const { attributes, window, rhs } = place;
  const {
    dimension_numbers: numbers,
    feature_group_count: features,
    batch_group_count: batches,
  } = attributes;
  const size = extents(place);
  const padding = size.input.map((extent, i) => {
    const low = window.padding[i]?.[0] ?? 0;
    return [low, (size.output[i] ?? 0) - extent + (size.kernel[i] ?? 0) - low - 1];
  });
  const result = builder.one(
    "stablehlo.convolution",
    { lhs: convert(builder, input, typeOfValue(cotangent).element), rhs: cotangent },
    {
      dimension_numbers: {
        input_batch_dimension: numbers.input_feature_dimension,
        input_feature_dimension: numbers.input_batch_dimension,
        input_spatial_dimensions: numbers.input_spatial_dimensions,
        kernel_input_feature_dimension: numbers.output_batch_dimension,
        kernel_output_feature_dimension: numbers.output_feature_dimension,
        kernel_spatial_dimensions: numbers.output_spatial_dimensions,
        output_batch_dimension: numbers.kernel_input_feature_dimension,
        output_feature_dimension: numbers.kernel_output_feature_dimension,
        output_spatial_dimensions: numbers.kernel_spatial_dimensions,
      },
      window_strides: window.windowDilations,
      padding,
      lhs_dilation: window.baseDilations,
      rhs_dilation: window.strides,
      feature_group_count: batches,
      batch_group_count: features,
      precision_config: attributes.precision_config,
    },
  );
  return convert(builder, result, rhs.element);
}

/** A convolution as a map of its input or of its kernel; reversed windows are not among them. */
export function convolutionMap(
  which: "lhs" | "rhs",
  lhs: GraphValue,
  rhs: GraphValue,
  result: TensorType,
  attributes: ConvolutionAttributes,
): LinearMap {
  const place = placeOf(typeOfValue(lhs), typeOfValue(rhs), result, attributes);
  return single(
    result,
    (builder, tangent) =>
      builder.one(
        "stablehlo.convolution",
        which === "lhs" ? { lhs: tangent, rhs } : { lhs, rhs: tangent },
        attributes,
        { types: [result] },
      ),
    (builder, cotangent) =>
      which === "lhs"
        ? backToInput(builder, cotangent, rhs, place)
        : backToKernel(builder, cotangent, lhs, place),
  );
}
