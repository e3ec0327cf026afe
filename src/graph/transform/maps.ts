/** The linear maps of ops that move elements or scale them; products and windows are in files of their own. */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphValue } from "../ops/node.ts";
import type { GatherNumbers, ScatterNumbers } from "../ops/structures.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  addValues,
  broadcastInDim,
  combiner,
  convert,
  indexLimit,
  multiply,
  negate,
  reshape,
  select,
  subtract,
  sum,
  transpose,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import type { Cotangent, LinearMap } from "./linear.ts";

/** A map of one tangent; its transpose is given the one cotangent. */
export function single(
  output: TensorType,
  apply: (builder: GraphBuilder, tangent: GraphValue) => GraphValue,
  back: (builder: GraphBuilder, cotangent: GraphValue) => GraphValue,
): LinearMap {
  return {
    outputs: [output],
    apply: (builder, [tangent]) => [apply(builder, required(tangent))],
    transpose: (builder, [cotangent]) => [
      cotangent === undefined ? undefined : back(builder, cotangent),
    ],
  };
}

export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a linear map is given its tangents");
  return value;
}

/** Products with a value of the tangent's type. */
export function scaling(factor: GraphValue): LinearMap {
  const times = (builder: GraphBuilder, value: GraphValue): GraphValue =>
    multiply(builder, value, factor);
  return single(typeOfValue(factor), times, times);
}

export function negation(type: TensorType): LinearMap {
  return single(type, negate, negate);
}

export function conversion(from: TensorType, to: TensorType): LinearMap {
  return single(
    to,
    (builder, tangent) => convert(builder, tangent, to.element),
    (builder, cotangent) => convert(builder, cotangent, from.element),
  );
}

/** The sum of tangents of one type. */
export function addition(type: TensorType, count: number): LinearMap {
  return {
    outputs: [type],
    apply: (builder, inputs) => [inputs.reduce((total, each) => addValues(builder, total, each))],
    transpose: (_, [cotangent]) => Array.from({ length: count }, () => cotangent),
  };
}

export function reshaping(from: TensorType, to: TensorType): LinearMap {
  return single(
    to,
    (builder, tangent) => reshape(builder, tangent, to.shape),
    (builder, cotangent) => reshape(builder, cotangent, from.shape),
  );
}

/** Cotangents are summed along the axes that the operand lacks or has once. */
export function broadcasting(from: TensorType, to: TensorType, axes: readonly number[]): LinearMap {
  const summed = to.shape.flatMap((extent, axis) => {
    const own = axes.indexOf(axis);
    const repeated = own < 0 || (from.shape[own] === 1 && extent !== 1);
    return repeated ? [axis] : [];
  });
  const kept = axes.filter((axis) => !summed.includes(axis));
  const order = [...kept].sort((left, right) => left - right);
  return single(
    to,
    (builder, tangent) => broadcastInDim(builder, tangent, to.shape, axes),
    (builder, cotangent) => {
      const total = sum(builder, cotangent, summed);
      const ordered = transpose(
        builder,
        total,
        kept.map((axis) => order.indexOf(axis)),
      );
      return reshape(builder, ordered, from.shape);
    },
  );
}

export function permutation(type: TensorType, axes: readonly number[]): LinearMap {
  const inverse = axes.map((_, axis) => axes.indexOf(axis));
  return single(
    type,
    (builder, tangent) => transpose(builder, tangent, axes),
    (builder, cotangent) => transpose(builder, cotangent, inverse),
  );
}

export function reversal(type: TensorType, dimensions: readonly number[]): LinearMap {
  const reverse = (builder: GraphBuilder, operand: GraphValue): GraphValue =>
    builder.one("stablehlo.reverse", { operand }, { dimensions });
  return single(type, reverse, reverse);
}

function sliceOf(
  builder: GraphBuilder,
  operand: GraphValue,
  starts: readonly number[],
  limits: readonly number[],
  strides: readonly number[] = starts.map(() => 1),
): GraphValue {
  return builder.one(
    "stablehlo.slice",
    { operand },
    { start_indices: starts, limit_indices: limits, strides },
  );
}

/** Pads with zeros; negative edges cut. */
export function padOf(
  builder: GraphBuilder,
  operand: GraphValue,
  low: readonly number[],
  high: readonly number[],
  interior: readonly number[],
): GraphValue {
  const { element } = typeOfValue(operand);
  const zero = zerosOf(builder, tensorType(element, []));
  return builder.one(
    "stablehlo.pad",
    { operand, padding_value: zero },
    { edge_padding_low: low, edge_padding_high: high, interior_padding: interior },
  );
}

export function slicing(
  from: TensorType,
  to: TensorType,
  starts: readonly number[],
  limits: readonly number[],
  strides: readonly number[],
): LinearMap {
  const interior = strides.map((stride) => stride - 1);
  const high = from.shape.map((extent, axis) => {
    const count = to.shape[axis] ?? 0;
    const last = count === 0 ? 0 : (count - 1) * (strides[axis] ?? 1) + 1;
    return extent - (starts[axis] ?? 0) - last;
  });
  return single(
    to,
    (builder, tangent) => sliceOf(builder, tangent, starts, limits, strides),
    (builder, cotangent) => padOf(builder, cotangent, starts, high, interior),
  );
}

/** Tangents of operand and padding value, those that are there. */
export function padding(
  from: TensorType,
  to: TensorType,
  widths: {
    readonly low: readonly number[];
    readonly high: readonly number[];
    readonly interior: readonly number[];
  },
  active: { readonly operand: boolean; readonly value: boolean },
): LinearMap {
  const { low, high, interior } = widths;
  const back = (builder: GraphBuilder, cotangent: GraphValue): GraphValue => {
    // Cutting the edges off leaves the elements with the padding between them.
    const cut = padOf(
      builder,
      cotangent,
      low.map((width) => -width),
      high.map((width) => -width),
      low.map(() => 0),
    );
    const strides = interior.map((width) => width + 1);
    const { shape } = typeOfValue(cut);
    return sliceOf(
      builder,
      cut,
      low.map(() => 0),
      shape,
      strides,
    );
  };
  return {
    outputs: [to],
    apply(builder, inputs) {
      const operand = active.operand ? required(inputs[0]) : zerosOf(builder, from);
      const scalar = tensorType(from.element, []);
      const value = active.value ? required(inputs.at(-1)) : zerosOf(builder, scalar);
      return [
        builder.one(
          "stablehlo.pad",
          { operand, padding_value: value },
          { edge_padding_low: low, edge_padding_high: high, interior_padding: interior },
        ),
      ];
    },
    transpose(builder, [cotangent]) {
      if (cotangent === undefined) return [];
      const kept = back(builder, cotangent);
      const everyAxis = to.shape.map((_, axis) => axis);
      const rest = (): GraphValue =>
        subtract(builder, sum(builder, cotangent, everyAxis), sum(builder, kept, everyAxis));
      return [...(active.operand ? [kept] : []), ...(active.value ? [rest()] : [])];
    },
  };
}

/** Tangents of some of the operands, the others zero. */
export function concatenation(
  types: readonly TensorType[],
  active: readonly boolean[],
  to: TensorType,
  dimension: number,
): LinearMap {
  return {
    outputs: [to],
    apply(builder, tangents) {
      const next = tangents[Symbol.iterator]();
      const inputs = types.map((type, i) =>
        active[i] === true ? required(next.next().value) : zerosOf(builder, type),
      );
      return [builder.one("stablehlo.concatenate", { inputs }, { dimension })];
    },
    transpose(builder, [cotangent]) {
      if (cotangent === undefined) return [];
      let start = 0;
      return types.flatMap(({ shape }, i) => {
        const limit = start + (shape[dimension] ?? 0);
        const starts = to.shape.map((_, axis) => (axis === dimension ? start : 0));
        const limits = to.shape.map((extent, axis) => (axis === dimension ? limit : extent));
        start = limit;
        return active[i] === true ? [sliceOf(builder, cotangent, starts, limits)] : [];
      });
    },
  };
}

/** One side or the other by a predicate; a side without a tangent is zero. */
export function selection(
  pred: GraphValue,
  type: TensorType,
  active: { readonly onTrue: boolean; readonly onFalse: boolean },
): LinearMap {
  return {
    outputs: [type],
    apply(builder, inputs) {
      const zero = (): GraphValue => zerosOf(builder, type);
      const onTrue = active.onTrue ? required(inputs[0]) : zero();
      const onFalse = active.onFalse ? required(inputs.at(-1)) : zero();
      return [select(builder, pred, onTrue, onFalse)];
    },
    transpose(builder, [cotangent]) {
      if (cotangent === undefined) return [];
      const zero = zerosOf(builder, type);
      return [
        ...(active.onTrue ? [select(builder, pred, cotangent, zero)] : []),
        ...(active.onFalse ? [select(builder, pred, zero, cotangent)] : []),
      ];
    },
  };
}

export function summation(from: TensorType, to: TensorType, axes: readonly number[]): LinearMap {
  const kept = from.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  return single(
    to,
    (builder, tangent) => sum(builder, tangent, axes),
    (builder, cotangent) => broadcastInDim(builder, cotangent, from.shape, kept),
  );
}

export function dynamicSlicing(
  from: TensorType,
  to: TensorType,
  starts: readonly GraphValue[],
): LinearMap {
  return single(
    to,
    (builder, operand) =>
      builder.one(
        "stablehlo.dynamic_slice",
        { operand, start_indices: starts },
        { slice_sizes: to.shape },
      ),
    (builder, update) =>
      builder.one(
        "stablehlo.dynamic_update_slice",
        { operand: zerosOf(builder, from), update, start_indices: starts },
        {},
      ),
  );
}

export function dynamicUpdating(
  type: TensorType,
  update: TensorType,
  starts: readonly GraphValue[],
  active: { readonly operand: boolean; readonly update: boolean },
): LinearMap {
  const updated = (builder: GraphBuilder, operand: GraphValue, value: GraphValue): GraphValue =>
    builder.one(
      "stablehlo.dynamic_update_slice",
      { operand, update: value, start_indices: starts },
      {},
    );
  return {
    outputs: [type],
    apply(builder, inputs) {
      const operand = active.operand ? required(inputs[0]) : zerosOf(builder, type);
      const value = active.update ? required(inputs.at(-1)) : zerosOf(builder, update);
      return [updated(builder, operand, value)];
    },
    transpose(builder, [cotangent]): readonly Cotangent[] {
      if (cotangent === undefined) return [];
      const sliced = (): GraphValue =>
        builder.one(
          "stablehlo.dynamic_slice",
          { operand: cotangent, start_indices: starts },
          { slice_sizes: update.shape },
        );
      return [
        ...(active.operand ? [updated(builder, cotangent, zerosOf(builder, update))] : []),
        ...(active.update ? [sliced()] : []),
      ];
    },
  };
}

/** A gather's dimension numbers as those of the scatter that goes back, and the other way round. */
function scatterNumbersOf(numbers: GatherNumbers): ScatterNumbers {
  return {
    update_window_dims: numbers.offset_dims,
    inserted_window_dims: numbers.collapsed_slice_dims,
    input_batching_dims: numbers.operand_batching_dims,
    scatter_indices_batching_dims: numbers.start_indices_batching_dims,
    scatter_dims_to_operand_dims: numbers.start_index_map,
    index_vector_dim: numbers.index_vector_dim,
  };
}

export function gatherNumbersOf(numbers: ScatterNumbers): GatherNumbers {
  return {
    offset_dims: numbers.update_window_dims,
    collapsed_slice_dims: numbers.inserted_window_dims,
    operand_batching_dims: numbers.input_batching_dims,
    start_indices_batching_dims: numbers.scatter_indices_batching_dims,
    start_index_map: numbers.scatter_dims_to_operand_dims,
    index_vector_dim: numbers.index_vector_dim,
  };
}

/** Clamps starts as a gather does, which a scatter does not. */
function clampedIndices(
  builder: GraphBuilder,
  indices: GraphValue,
  numbers: GatherNumbers,
  shape: readonly number[],
  sizes: readonly number[],
): GraphValue {
  if (numbers.start_index_map.length === 0) return indices;
  const type = typeOfValue(indices);
  const limits = numbers.start_index_map.map((axis) => (shape[axis] ?? 0) - (sizes[axis] ?? 0));
  const { index_vector_dim: vector } = numbers;
  const bounds = limits.map((limit) => {
    const extents = type.shape.map((extent, axis) => (axis === vector ? 1 : extent));
    const piece = tensorType(type.element, extents);
    return broadcastInDim(
      builder,
      indexLimit(builder, tensorType(type.element, []), limit),
      piece.shape,
      [],
    );
  });
  const high =
    vector >= type.shape.length
      ? reshape(builder, required(bounds[0]), type.shape)
      : builder.one("stablehlo.concatenate", { inputs: bounds }, { dimension: vector });
  return builder.one(
    "stablehlo.clamp",
    { min: zerosOf(builder, type), operand: indices, max: high },
    {},
  );
}

export function gathering(
  from: TensorType,
  to: TensorType,
  indices: GraphValue,
  numbers: GatherNumbers,
  sizes: readonly number[],
  sorted: boolean,
): LinearMap {
  return single(
    to,
    (builder, operand) =>
      builder.one(
        "stablehlo.gather",
        { operand, start_indices: indices },
        { dimension_numbers: numbers, slice_sizes: sizes, indices_are_sorted: sorted },
      ),
    (builder, update) =>
      builder.one(
        "stablehlo.scatter",
        {
          inputs: [zerosOf(builder, from)],
          scatter_indices: clampedIndices(builder, indices, numbers, from.shape, sizes),
          updates: [update],
        },
        {
          scatter_dimension_numbers: scatterNumbersOf(numbers),
          indices_are_sorted: sorted,
          unique_indices: false,
        },
        { regions: { update_computation: combiner(builder, from.element, "stablehlo.add") } },
      ),
  );
}
