/**
 * Sums of products, one result a lane: dot_general, ragged_dot and convolutions of every kind. Floats below f64 are multiplied and
 * summed in f32, a product and its sum rounded together, short sums step by step, as in the evaluator; integers wrap.
 */
import type { DType } from "../../../formats/dtype.ts";
import { bool, f32, f64 } from "../../../formats/dtype.ts";
import { full, zeros } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { roundedFormat } from "../../ops/dot-algorithms.ts";
import type { RoundedFormat } from "../../ops/dot-algorithms.ts";
import { elements } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import type { DotAlgorithm, DotNumbers } from "../../ops/structures.ts";
import { shortSum } from "../../ops/products.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { addIndex, divideIndex, scaleIndex, subtractIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { converted, lifted, settled } from "../tiles/convert.ts";
import { reducePrecision } from "../tiles/elementwise.ts";
import { foldTurns } from "./fold.ts";
import { dotAxes } from "../dot-axes.ts";
import type { DotAxes } from "../dot-axes.ts";
import { allHold, tapAt } from "./windows.ts";

/** The sum so far with another product. */
interface Products {
  readonly start: Tile;
  add(sum: Tile, left: Tile, right: Tile, where: boolean | Tile<"bool">): Tile;
  finish(sum: Tile): Tile;
}

/** How so many products of operands are summed for a result. */
export function productsOf(
  lhs: ElementType,
  rhs: ElementType,
  result: GraphValue,
  length: number,
): Products {
  const { element } = tensorTypeOf(result);
  if (elements[element].kind === "bool")
    return {
      start: full(bool, [1], false),
      add: (sum, left, right, where) => {
        const both = left.and(right);
        return sum.or(
          where === true ? both : both.and(where === false ? full(bool, [1], false) : where),
        );
      },
      finish: (sum) => sum,
    };
  const isFloat = elements[element].kind === "float";
  if (isFloat && element !== "f64" && length <= shortSum) return shortProducts(lhs, rhs, element);
  const isSingle = element !== "f64" && [lhs, rhs].every(isNarrowFloat);
  const dtype: DType = isFloat ? (isSingle ? f32 : f64) : dtypeOf(result);
  const wide = (tile: Tile, from: ElementType): Tile => {
    const number = lifted(tile, from);
    return number.dtype === dtype ? number : number.cast(dtype);
  };
  return {
    start: zeros(dtype, [1]),
    add: (sum, left, right, where) => {
      const [x, y] = [wide(left, lhs), wide(right, rhs)];
      const next = isFloat ? x.fma(y, sum) : sum.add(x.mul(y));
      if (where === true) return next;
      return where === false ? sum : select(where, next, sum);
    },
    finish: (sum) =>
      isFloat ? converted(sum, isSingle ? "f32" : "f64", element) : settled(sum, element),
  };
}

/** Whether f32 holds every number of an element type of floats. */
function isNarrowFloat(element: ElementType): boolean {
  return elements[element].kind === "float" && element !== "f64";
}

/** Sums in f32 whose products and steps are rounded. */
function shortProducts(lhs: ElementType, rhs: ElementType, result: ElementType): Products {
  const isExact = [lhs, rhs].every(isNarrowFloat);
  const factor = (tile: Tile, from: ElementType): Tile =>
    lifted(tile, from).cast(isExact ? f32 : f64);
  return {
    start: zeros(f32, [1]),
    add: (sum, left, right, where) => {
      const product = factor(left, lhs).mul(factor(right, rhs)).cast(f32);
      const next = sum.add(product);
      if (where === true) return next;
      return where === false ? sum : select(where, next, sum);
    },
    finish: (sum) => converted(sum, "f32", result),
  };
}

const formatBits: { readonly [F in RoundedFormat]: readonly [number, number] } = {
  tf32: [8, 10],
  bf16: [8, 7],
  f16: [5, 10],
};

/** An operand rounded to the format that an algorithm names. */
function rounded(tile: Tile, format: RoundedFormat | undefined): Tile {
  return format === undefined ? tile : reducePrecision(tile, ...formatBits[format]);
}

export function resultOf(op: AnyGraphOp): GraphValue {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has a result`);
  return result;
}

/** The index of each axis of an operand, from the result's axes and the contracted ones. */
function operandAxes(
  { batch, free, contracted }: DotAxes,
  result: readonly Index[],
  firstFree: number,
  within: readonly Index[],
): readonly Index[] {
  const axes = new Array<Index>(batch.length + free.length + contracted.length);
  for (const [i, axis] of batch.entries()) axes[axis] = result[i] ?? 0;
  for (const [i, axis] of free.entries()) axes[axis] = result[firstFree + i] ?? 0;
  for (const [i, axis] of contracted.entries()) axes[axis] = within[i] ?? 0;
  return axes;
}

export function dotAt(
  op: AnyGraphOp,
  lhs: GraphValue,
  rhs: GraphValue,
  numbers: DotNumbers,
  points: Points,
  context: PointContext,
  algorithm?: DotAlgorithm,
): readonly Tile[] {
  const [left, right] = [tensorTypeOf(lhs), tensorTypeOf(rhs)];
  const leftAxes = dotAxes(numbers, "lhs", left.shape.length);
  const rightAxes = dotAxes(numbers, "rhs", right.shape.length);
  const depth = leftAxes.contracted.map((axis) => left.shape[axis] ?? 1);
  const products = productsOf(left.element, right.element, resultOf(op), sizeOf(depth));
  const firstRight = leftAxes.batch.length + leftAxes.free.length;
  const [sum] = foldTurns(
    sizeOf(depth),
    [products.start],
    points,
    context,
    (turn, carry, inner) => {
      const within = axesOfPosition(turn, depth);
      const x = inner.element(
        lhs,
        placeOf(
          left.shape,
          points,
          operandAxes(leftAxes, points.axes, leftAxes.batch.length, within),
        ),
      );
      const y = inner.element(
        rhs,
        placeOf(right.shape, points, operandAxes(rightAxes, points.axes, firstRight, within)),
      );
      return [
        products.add(
          carry[0] as Tile,
          rounded(x, roundedFormat(algorithm, "lhs", left.element)),
          rounded(y, roundedFormat(algorithm, "rhs", right.element)),
          true,
        ),
      ];
    },
  );
  return [products.finish(sum as Tile)];
}

function placeOf(shape: readonly number[], points: Points, axes: readonly Index[]): Points {
  return shape.length === 0 ? points.scalar() : Points.at(shape, points.tile, axes);
}

/** dot_general's numbers for two vectors or matrices. */
export function plainDotNumbers(lhs: GraphValue): DotNumbers {
  return {
    lhs_batching_dimensions: [],
    rhs_batching_dimensions: [],
    lhs_contracting_dimensions: [tensorTypeOf(lhs).shape.length - 1],
    rhs_contracting_dimensions: [0],
  };
}

/** The extents and axes that a convolution's lanes go by. */
export function convolutionAt(
  op: GraphOp<"stablehlo.convolution">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { lhs, rhs } = op.operands;
  const { attributes } = op;
  const numbers = attributes.dimension_numbers;
  const [input, kernel] = [tensorTypeOf(lhs), tensorTypeOf(rhs)];
  const channels = kernel.shape[numbers.kernel_input_feature_dimension] ?? 1;
  const features = kernel.shape[numbers.kernel_output_feature_dimension] ?? 1;
  const sizes = numbers.kernel_spatial_dimensions.map((axis) => kernel.shape[axis] ?? 1);
  const batch = points.axis(numbers.output_batch_dimension);
  const feature = points.axis(numbers.output_feature_dimension);
  const { feature_group_count: featureGroups, batch_group_count: batchGroups } = attributes;
  const group = divideIndex(feature, features / (featureGroups * batchGroups));
  const batches = points.shape[numbers.output_batch_dimension] ?? 1;
  const inputBatch = batchGroups > 1 ? addIndex(scaleIndex(group, batches), batch) : batch;
  const firstChannel = featureGroups > 1 ? scaleIndex(group, channels) : 0;
  const turns = [...sizes, channels];
  const products = productsOf(input.element, kernel.element, resultOf(op), sizeOf(turns));
  const [sum] = foldTurns(
    sizeOf(turns),
    [products.start],
    points,
    context,
    (turn, carry, inner) => {
      const within = axesOfPosition(turn, turns);
      const channel = within[sizes.length] ?? 0;
      const inputAxes = new Array<Index>(input.shape.length).fill(0);
      const kernelAxes = new Array<Index>(kernel.shape.length).fill(0);
      inputAxes[numbers.input_batch_dimension] = inputBatch;
      inputAxes[numbers.input_feature_dimension] = addIndex(firstChannel, channel);
      kernelAxes[numbers.kernel_input_feature_dimension] = channel;
      kernelAxes[numbers.kernel_output_feature_dimension] = feature;
      const there = sizes.map((size, i) => {
        const axis = numbers.input_spatial_dimensions[i] ?? 0;
        const tap = within[i] ?? 0;
        const window = {
          stride: attributes.window_strides?.[i] ?? 1,
          baseDilation: attributes.lhs_dilation?.[i] ?? 1,
          windowDilation: attributes.rhs_dilation?.[i] ?? 1,
          low: attributes.padding?.[i]?.[0] ?? 0,
        };
        const position = points.axis(numbers.output_spatial_dimensions[i] ?? 0);
        const { index, isThere } = tapAt(position, tap, input.shape[axis] ?? 1, window);
        inputAxes[axis] = index;
        const isReversed = attributes.window_reversal?.[i] ?? false;
        kernelAxes[numbers.kernel_spatial_dimensions[i] ?? 0] = isReversed
          ? subtractIndex(size - 1, tap)
          : tap;
        return isThere;
      });
      const x = inner.element(lhs, Points.at(input.shape, points.tile, inputAxes));
      const y = inner.element(rhs, Points.at(kernel.shape, points.tile, kernelAxes));
      return [products.add(carry[0] as Tile, x, y, allHold(there))];
    },
  );
  return [products.finish(sum as Tile)];
}
