/** Batching of products, reductions and windows. */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import type { productOps } from "../ops/products.ts";
import type { reductionOps } from "../ops/reductions.ts";
import type { ConvolutionNumbers } from "../ops/structures.ts";
import { reshape, transpose, typeOfValue } from "./arithmetic.ts";
import { next, unbatchable } from "./batch.ts";
import { oneByOne } from "./batch-control.ts";
import { expandGradient, expandInference, expandTraining } from "./expand/batch-norm.ts";
import { required } from "./maps.ts";
import type { Batched, BatchContext, BatchRule, BatchRules } from "./batch.ts";
import { range } from "./product-transpose-rules.ts";

/** Axis `from` moved to `to`, the others in their order. */
function moveAxis(builder: GraphBuilder, value: GraphValue, from: number, to: number): GraphValue {
  const rest = range(0, typeOfValue(value).shape.length).filter((axis) => axis !== from);
  return transpose(builder, value, [...rest.slice(0, to), from, ...rest.slice(to)]);
}

const dotRule: BatchRule<"stablehlo.dot_general"> = (op, context) => {
  const { lhs, rhs } = op.operands;
  const numbers = op.attributes.dot_dimension_numbers;
  const left = context.isBatched(lhs);
  const right = context.isBatched(rhs);
  const shift = (axes: readonly number[], by: boolean): readonly number[] =>
    by ? next(axes) : axes;
  const both = left && right;
  const dims = {
    lhs_batching_dimensions: [
      ...(both ? [0] : []),
      ...shift(numbers.lhs_batching_dimensions, left),
    ],
    rhs_batching_dimensions: [
      ...(both ? [0] : []),
      ...shift(numbers.rhs_batching_dimensions, right),
    ],
    lhs_contracting_dimensions: shift(numbers.lhs_contracting_dimensions, left),
    rhs_contracting_dimensions: shift(numbers.rhs_contracting_dimensions, right),
  };
  const [result] = op.results;
  const element = result === undefined ? "f32" : typeOfValue(result).element;
  const value = context.builder.one(
    "stablehlo.dot_general",
    { lhs: context.get(lhs).value, rhs: context.get(rhs).value },
    { ...op.attributes, dot_dimension_numbers: dims },
    { types: [{ kind: "tensor", element, shape: [] }] },
  );
  if (both) return [{ value, batched: true }];
  // The batch is the first free axis of its side.
  const batch = numbers.lhs_batching_dimensions.length;
  const leftFree =
    typeOfValue(lhs).shape.length - batch - numbers.lhs_contracting_dimensions.length;
  const place = left ? batch : batch + leftFree;
  return [{ value: moveAxis(context.builder, value, place, 0), batched: true }];
};

/** The batch, axis 0, as the slower part of another axis (counted without the batch). */
function mergeInto(builder: GraphBuilder, value: GraphValue, axis: number): GraphValue {
  const moved = moveAxis(builder, value, 0, axis);
  const { shape } = typeOfValue(moved);
  const merged = (shape[axis] ?? 1) * (shape[axis + 1] ?? 1);
  return reshape(builder, moved, [...shape.slice(0, axis), merged, ...shape.slice(axis + 2)]);
}

function splitFrom(
  builder: GraphBuilder,
  value: GraphValue,
  axis: number,
  size: number,
): GraphValue {
  const { shape } = typeOfValue(value);
  const rest = (shape[axis] ?? 0) / size;
  const cut = reshape(builder, value, [
    ...shape.slice(0, axis),
    size,
    rest,
    ...shape.slice(axis + 1),
  ]);
  return moveAxis(builder, cut, axis, 0);
}

/** A batched input is more batch; a batched kernel is more groups, of features or of the batch. */
const convolutionRule: BatchRule<"stablehlo.convolution"> = (op, context) => {
  const { builder, size } = context;
  const { lhs, rhs } = op.operands;
  const numbers: ConvolutionNumbers = op.attributes.dimension_numbers;
  const { feature_group_count: features, batch_group_count: batches } = op.attributes;
  const { input_batch_dimension: b, input_feature_dimension: f } = numbers;
  const [result] = op.results;
  const run = (
    input: GraphValue,
    kernel: GraphValue,
    groups: readonly [number, number],
  ): GraphValue =>
    builder.one(
      "stablehlo.convolution",
      { lhs: input, rhs: kernel },
      { ...op.attributes, feature_group_count: groups[0], batch_group_count: groups[1] },
      { types: result === undefined ? [] : [result.type] },
    );
  if (!context.isBatched(rhs) && batches === 1) {
    const input = mergeInto(builder, context.full(lhs), b);
    const found = run(input, context.get(rhs).value, [features, 1]);
    const value = splitFrom(builder, found, numbers.output_batch_dimension, size);
    return [{ value, batched: true }];
  }
  const kernel = mergeInto(builder, context.full(rhs), numbers.kernel_output_feature_dimension);
  const found =
    batches === 1
      ? run(mergeInto(builder, context.full(lhs), f), kernel, [features * size, 1])
      : run(mergeInto(builder, context.full(lhs), b), kernel, [1, batches * size]);
  const value = splitFrom(builder, found, numbers.output_feature_dimension, size);
  return [{ value, batched: true }];
};

/** Matrices are the last axes, so the batch in front is one more of theirs. */
function leading(
  op:
    | GraphOp<"stablehlo.fft">
    | GraphOp<"stablehlo.cholesky">
    | GraphOp<"stablehlo.triangular_solve">,
  context: BatchContext,
): readonly Batched[] {
  return context.again(op);
}

export const productBatching: BatchRules<keyof typeof productOps> = {
  "stablehlo.dot_general": dotRule,
  "stablehlo.convolution": convolutionRule,
  "stablehlo.fft": leading,
  "stablehlo.cholesky": leading,
  "stablehlo.triangular_solve": leading,
  "stablehlo.dot": oneByOne,
  "stablehlo.einsum": oneByOne,
  "stablehlo.unary_einsum": oneByOne,
  "stablehlo.dynamic_conv": unbatchable,
  "stablehlo.batch_norm_inference": (op, context) =>
    context.through(op, (builder) => expandInference(op, builder)),
  "stablehlo.batch_norm_training": (op, context) =>
    context.through(op, (builder) => expandTraining(op, builder)),
  "stablehlo.batch_norm_grad": (op, context) =>
    context.through(op, (builder) => expandGradient(op, builder)),
  "stablehlo.rng": unbatchable,
  "stablehlo.rng_bit_generator": oneByOne,
};

/** An op as it is where its initial values are the same for the whole batch; else its examples one by one. */
function withSharedInits(
  op: object,
  values: readonly GraphValue[],
  context: BatchContext,
  build: (inits: readonly GraphValue[]) => readonly Batched[],
): readonly Batched[] {
  if (values.some((value) => context.isBatched(value))) return oneByOne(op, context);
  return build(values.map((value) => context.get(value).value));
}

function front(list: readonly number[] | undefined): readonly number[] | undefined {
  return list === undefined ? undefined : [1, ...list];
}

function frontRows(
  rows: readonly (readonly number[])[] | undefined,
): readonly (readonly number[])[] | undefined {
  return rows === undefined ? undefined : [[0, 0], ...rows];
}

export const reductionBatching: BatchRules<keyof typeof reductionOps> = {
  "stablehlo.reduce": (op, context) =>
    withSharedInits(op, op.operands.init_values, context, (init_values) =>
      context.again(op, {
        operands: { init_values },
        attributes: { dimensions: next(op.attributes.dimensions) },
      }),
    ),
  "stablehlo.reduce_window": (op, context) =>
    withSharedInits(op, op.operands.init_values, context, (init_values) =>
      context.again(op, {
        operands: { init_values },
        attributes: {
          window_dimensions: [1, ...op.attributes.window_dimensions],
          window_strides: front(op.attributes.window_strides),
          base_dilations: front(op.attributes.base_dilations),
          window_dilations: front(op.attributes.window_dilations),
          padding: frontRows(op.attributes.padding),
        },
      }),
    ),
  "stablehlo.select_and_scatter": (op, context) =>
    withSharedInits(op, [op.operands.init_value], context, (inits) =>
      context.again(op, {
        operands: { init_value: required(inits[0]) },
        attributes: {
          window_dimensions: front(op.attributes.window_dimensions),
          window_strides: front(op.attributes.window_strides),
          padding: frontRows(op.attributes.padding),
        },
      }),
    ),
  "stablehlo.sort": (op, context) => {
    const { dimension } = op.attributes;
    return context.again(op, {
      attributes: { dimension: dimension < 0 ? dimension : dimension + 1 },
    });
  },
  "stablehlo.map": (op, context) =>
    context.again(op, { attributes: { dimensions: [0, ...next(op.attributes.dimensions)] } }),
};
