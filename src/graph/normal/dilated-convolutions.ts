/**
 * Convolutions over an operand with holes (`lhs_dilation`), as the gradients of strided ones and transposed ones are. Three of four products
 * would be with a hole; but positions of the result that are alike modulo the dilation see the same taps, and none of the others:
 *
 *   operand   a · b · c · d        holes of dilation 2
 *   taps      t u v
 *   result    position 0 sees  u           positions 0, 2, 4 …   a convolution with u alone
 *             position 1 sees  t   v       positions 1, 3, 5 …   one with t and v, over the operand without holes
 *
 * So each class of positions is a convolution without holes, and the classes are interleaved. Where all of them read the same windows, they
 * are one convolution, whose kernels lie beside each other along the features.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import { reshape, splatOf, transpose, typeOfValue, zerosOf } from "../transform/arithmetic.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** More classes than these are as well computed with their holes. */
const mostClasses = 64;

/** What positions of one class read along an axis. */
interface AxisClass {
  /** The first tap that meets no hole, and the step to the next. */
  readonly first: number;
  readonly step: number;
  /** None where all taps meet holes: then positions are zeros. */
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  readonly low: number;
}

interface Axis {
  readonly classes: readonly AxisClass[];
  /** Positions of a class; those of the last classes may lie beyond the end of the result. */
  readonly positions: number;
  readonly extent: number;
  readonly wanted: number;
}

function greatestDivisor(left: number, right: number): number {
  return right === 0 ? left : greatestDivisor(right, left % right);
}

/** Position p and tap t read the operand at (p · stride + t · dilation - low) / holes, where that is whole. */
function axisOf(op: Convolution, i: number): Axis {
  const { attributes, operands, results } = op;
  const [result] = results;
  const numbers = attributes.dimension_numbers;
  const extentAt = (value: GraphValue, axis = 0): number => typeOfValue(value).shape[axis] ?? 1;
  const taps = extentAt(operands.rhs, numbers.kernel_spatial_dimensions[i]);
  const extent = extentAt(operands.lhs, numbers.input_spatial_dimensions[i]);
  const wanted = result === undefined ? 0 : extentAt(result, numbers.output_spatial_dimensions[i]);
  const stride = attributes.window_strides?.[i] ?? 1;
  const dilation = attributes.rhs_dilation?.[i] ?? 1;
  const holes = attributes.lhs_dilation?.[i] ?? 1;
  const low = attributes.padding?.[i]?.[0] ?? 0;
  const count = holes / greatestDivisor(holes, stride);
  const step = holes / greatestDivisor(holes, dilation);
  const classes: AxisClass[] = [];
  for (let start = 0; start < count; start += 1) {
    const first = Array.from({ length: Math.min(step, taps) }, (_, tap) => tap).find(
      (tap) => (start * stride + tap * dilation - low) % holes === 0,
    );
    classes.push({
      ...{ first: first ?? 0, step },
      taps: first === undefined ? 0 : Math.ceil((taps - first) / step),
      ...{ stride: (stride * count) / holes, dilation: (dilation * step) / holes },
      low: (low - start * stride - (first ?? 0) * dilation) / holes,
    });
  }
  return { classes, positions: Math.ceil(wanted / count), extent, wanted };
}

/** All ways to choose one of each list. */
function choices<T>(lists: readonly (readonly T[])[]): readonly (readonly T[])[] {
  return lists.reduce<readonly (readonly T[])[]>(
    (chosen, list) => chosen.flatMap((before) => list.map((each) => [...before, each])),
    [[]],
  );
}

/** The taps of a class: every `step`-th, from the first that meets no hole. */
function kernelOf(
  { operands, attributes }: Convolution,
  chosen: readonly AxisClass[],
  builder: GraphBuilder,
): GraphValue {
  const { shape } = typeOfValue(operands.rhs);
  const start = shape.map(() => 0);
  const strides = shape.map(() => 1);
  for (const [i, axis] of attributes.dimension_numbers.kernel_spatial_dimensions.entries()) {
    start[axis] = chosen[i]?.first ?? 0;
    strides[axis] = chosen[i]?.step ?? 1;
  }
  return builder.one(
    "stablehlo.slice",
    { operand: operands.rhs },
    { start_indices: start, limit_indices: shape, strides },
  );
}

/** A convolution without holes of these taps; windows that begin within the operand cut it, since kernels only pad. */
function withoutHoles(
  op: Convolution,
  axes: readonly Axis[],
  chosen: readonly AxisClass[],
  kernel: GraphValue,
  builder: GraphBuilder,
): GraphValue {
  const { attributes, operands, results } = op;
  const [result] = results;
  const numbers = attributes.dimension_numbers;
  const type = typeOfValue(operands.lhs);
  const padding = chosen.map(({ low, stride, dilation, taps }, i): readonly [number, number] => {
    const { positions = 1, extent = 1 } = axes[i] ?? {};
    return [low, (positions - 1) * stride + (taps - 1) * dilation + 1 - extent - low];
  });
  const cut = (side: 0 | 1): readonly number[] => {
    const edges = type.shape.map(() => 0);
    for (const [i, axis] of numbers.input_spatial_dimensions.entries())
      edges[axis] = Math.min(0, padding[i]?.[side] ?? 0);
    return edges;
  };
  const shape = [...(result === undefined ? [] : typeOfValue(result).shape)];
  for (const [i, axis] of numbers.output_spatial_dimensions.entries())
    shape[axis] = axes[i]?.positions ?? 1;
  shape[numbers.output_feature_dimension] =
    typeOfValue(kernel).shape[numbers.kernel_output_feature_dimension] ?? 1;
  const made = tensorType(result === undefined ? type.element : typeOfValue(result).element, shape);
  const isBeyond = padding.some((edges, i) =>
    edges.some((edge) => -edge >= (axes[i]?.extent ?? 1)),
  );
  if (isBeyond || chosen.some(({ taps }) => taps === 0)) return zerosOf(builder, made);
  const [low, high] = [cut(0), cut(1)];
  const lhs = [...low, ...high].every((edge) => edge === 0)
    ? operands.lhs
    : builder.one(
        "stablehlo.pad",
        {
          operand: operands.lhs,
          padding_value: splatOf(builder, tensorType(type.element, []), 0),
        },
        { edge_padding_low: low, edge_padding_high: high, interior_padding: low.map(() => 0) },
      );
  return builder.one(
    "stablehlo.convolution",
    { lhs, rhs: kernel },
    {
      ...attributes,
      window_strides: chosen.map(({ stride }) => stride),
      rhs_dilation: chosen.map(({ dilation }) => dilation),
      lhs_dilation: chosen.map(() => 1),
      padding: padding.map(([before, after]) => [Math.max(0, before), Math.max(0, after)]),
      window_reversal: chosen.map(() => false),
    },
    { types: [made] },
  );
}

/** From [classes…, axes of the result], or with the classes elsewhere, to the result: positions of a class are apart by their count. */
function interleaved(
  op: Convolution,
  axes: readonly Axis[],
  parts: GraphValue,
  classAxis: number,
  builder: GraphBuilder,
): GraphValue {
  const numbers = op.attributes.dimension_numbers;
  const counts = axes.map(({ classes }) => classes.length);
  const { shape } = typeOfValue(parts);
  const split = reshape(builder, parts, [
    ...shape.slice(0, classAxis),
    ...counts,
    ...shape.slice(classAxis + 1),
  ]);
  // Axes of `split`: those of the result go on behind the classes.
  const own = shape
    .map((_, axis) => axis)
    .filter((axis) => axis !== classAxis)
    .map((axis) => (axis < classAxis ? axis : axis + counts.length - 1));
  const order = own.flatMap((axis, at) => {
    const spatial = numbers.output_spatial_dimensions.indexOf(at);
    return spatial === -1 ? [axis] : [axis, classAxis + spatial];
  });
  const extents = shape.filter((_, axis) => axis !== classAxis);
  const whole = extents.map((extent, at) => {
    const spatial = numbers.output_spatial_dimensions.indexOf(at);
    return spatial === -1 ? extent : extent * (counts[spatial] ?? 1);
  });
  const merged = reshape(builder, transpose(builder, split, order), whole);
  const [result] = op.results;
  const wanted = result === undefined ? whole : typeOfValue(result).shape;
  if (wanted.every((extent, axis) => extent === whole[axis])) return merged;
  return builder.one(
    "stablehlo.slice",
    { operand: merged },
    {
      start_indices: wanted.map(() => 0),
      limit_indices: wanted,
      strides: wanted.map(() => 1),
    },
  );
}

function isAlike(left: AxisClass, right: AxisClass): boolean {
  return left.taps === right.taps && left.low === right.low;
}

/** The convolution as convolutions without holes; undefined where it has none. */
export function convolutionsOfClasses(
  op: Convolution,
  builder: GraphBuilder,
): GraphValue | undefined {
  const { attributes, operands } = op;
  const numbers = attributes.dimension_numbers;
  const spatial = numbers.input_spatial_dimensions;
  if ((attributes.lhs_dilation ?? []).every((step) => step === 1)) return undefined;
  const reversed = numbers.kernel_spatial_dimensions.filter(
    (_, i) => attributes.window_reversal?.[i] === true,
  );
  const axes = spatial.map((_, i) => axisOf(op, i));
  const all = choices(axes.map(({ classes }) => classes));
  const isEmpty = sizeOf(typeOfValue(operands.lhs).shape) === 0;
  const [first] = all;
  if (all.length > mostClasses || isEmpty) return undefined;
  if (first === undefined || axes.some(({ wanted }) => wanted === 0)) return undefined;
  const turned: Convolution =
    reversed.length === 0
      ? op
      : {
          ...op,
          operands: {
            lhs: operands.lhs,
            rhs: builder.one(
              "stablehlo.reverse",
              { operand: operands.rhs },
              { dimensions: reversed },
            ),
          },
        };
  const isOne =
    attributes.feature_group_count === 1 &&
    attributes.batch_group_count === 1 &&
    axes.every(({ classes }) => classes.every((each) => isAlike(each, classes[0] ?? each)));
  const kernels = all.map((chosen) => kernelOf(turned, chosen, builder));
  const [kernel] = kernels;
  if (kernel === undefined) return undefined;
  if (isOne) {
    const features = numbers.kernel_output_feature_dimension;
    const joined =
      kernels.length === 1
        ? kernel
        : builder.one("stablehlo.concatenate", { inputs: kernels }, { dimension: features });
    const parts = withoutHoles(turned, axes, first, joined, builder);
    // Features are [class, feature].
    const { shape } = typeOfValue(parts);
    const at = numbers.output_feature_dimension;
    const split = reshape(builder, parts, [
      ...shape.slice(0, at),
      all.length,
      (shape[at] ?? 1) / all.length,
      ...shape.slice(at + 1),
    ]);
    return interleaved(op, axes, split, at, builder);
  }
  const parts = all.map((chosen, i) => {
    const part = withoutHoles(turned, axes, chosen, kernels[i] ?? kernel, builder);
    return reshape(builder, part, [1, ...typeOfValue(part).shape]);
  });
  const stacked = builder.one("stablehlo.concatenate", { inputs: parts }, { dimension: 0 });
  return interleaved(op, axes, stacked, 0, builder);
}
