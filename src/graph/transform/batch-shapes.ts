/** Batching of ops that move elements: the batch is a further axis in front. */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphValue } from "../ops/node.ts";
import type { shapeOps } from "../ops/shapes.ts";
import { tensorType } from "../ops/types.ts";
import {
  binary,
  broadcastInDim,
  indexLimit,
  reshape,
  select,
  splatOf,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import { next, unbatchable } from "./batch.ts";
import type { BatchContext, BatchRule, BatchRules } from "./batch.ts";
import { range } from "./product-transpose-rules.ts";

const broadcastRule: BatchRule<"stablehlo.broadcast"> = (op, context) => {
  const { broadcast_sizes: sizes } = op.attributes;
  const operand = context.full(op.operands.operand);
  const shape = typeOfValue(operand).shape.slice(1);
  const axes = [0, ...range(1 + sizes.length, shape.length)];
  const value = broadcastInDim(context.builder, operand, [context.size, ...sizes, ...shape], axes);
  return [{ value, batched: true }];
};

const padRule: BatchRule<"stablehlo.pad"> = (op, context) => {
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = op.attributes;
  const attributes = {
    edge_padding_low: [0, ...low],
    edge_padding_high: [0, ...high],
    interior_padding: [0, ...interior],
  };
  const { operand, padding_value: value } = op.operands;
  if (!context.isBatched(value))
    return context.again(op, { operands: { padding_value: context.get(value).value }, attributes });
  // Padding that differs along the batch is put in afterwards, where the padding is.
  const { builder } = context;
  const whole = context.full(operand);
  const pad = (padded: GraphValue, by: GraphValue): GraphValue =>
    builder.one("stablehlo.pad", { operand: padded, padding_value: by }, attributes);
  const flag = (number: number): GraphValue => splatOf(builder, tensorType("i1", []), number);
  const inside = splatOf(builder, tensorType("i1", typeOfValue(whole).shape), 1);
  const mask = pad(inside, flag(0));
  const zero = zerosOf(builder, tensorType(typeOfValue(whole).element, []));
  const padded = pad(whole, zero);
  const fill = broadcastInDim(builder, context.full(value), typeOfValue(padded).shape, [0]);
  return [{ value: select(builder, mask, padded, fill), batched: true }];
};

/** Starts of slices as one array, a row an element of the batch. */
function startRows(context: BatchContext, starts: readonly GraphValue[]): GraphValue {
  const { builder, size } = context;
  const columns = starts.map((value) => reshape(builder, context.full(value), [size, 1]));
  return builder.one("stablehlo.concatenate", { inputs: columns }, { dimension: 1 });
}

function prefixed(context: BatchContext, starts: readonly GraphValue[]): readonly GraphValue[] {
  const values = starts.map((value) => context.get(value).value);
  const [first] = values;
  // A slice of an array without axes has no starts whose type the batch's could have.
  const type = first === undefined ? tensorType("i32", []) : typeOfValue(first);
  return [zerosOf(context.builder, type), ...values];
}

const dynamicSliceRule: BatchRule<"stablehlo.dynamic_slice"> = (op, context) => {
  const { operand, start_indices: starts } = op.operands;
  const { slice_sizes: sizes } = op.attributes;
  if (!starts.some((value) => context.isBatched(value)))
    return context.again(op, {
      operands: { start_indices: prefixed(context, starts) },
      attributes: { slice_sizes: [context.size, ...sizes] },
    });
  const rank = sizes.length;
  const batched = context.isBatched(operand);
  const value = context.builder.one(
    "stablehlo.gather",
    { operand: context.get(operand).value, start_indices: startRows(context, starts) },
    {
      dimension_numbers: {
        offset_dims: range(1, rank),
        collapsed_slice_dims: [],
        operand_batching_dims: batched ? [0] : [],
        start_indices_batching_dims: batched ? [0] : [],
        start_index_map: range(batched ? 1 : 0, rank),
        index_vector_dim: 1,
      },
      slice_sizes: batched ? [1, ...sizes] : sizes,
      indices_are_sorted: false,
    },
  );
  return [{ value, batched: true }];
};

const dynamicUpdateRule: BatchRule<"stablehlo.dynamic_update_slice"> = (op, context) => {
  const { operand, update, start_indices: starts } = op.operands;
  if (!starts.some((value) => context.isBatched(value)))
    return context.again(op, { operands: { start_indices: prefixed(context, starts) } });
  const { builder } = context;
  const whole = context.full(operand);
  const rows = startRows(context, starts);
  const { shape, element } = typeOfValue(whole);
  const sizes = typeOfValue(update).shape;
  const value = builder.one(
    "stablehlo.scatter",
    {
      inputs: [whole],
      scatter_indices: clampedRows(builder, rows, shape.slice(1), sizes),
      updates: [context.full(update)],
    },
    {
      scatter_dimension_numbers: {
        update_window_dims: range(1, sizes.length),
        inserted_window_dims: [],
        input_batching_dims: [0],
        scatter_indices_batching_dims: [0],
        scatter_dims_to_operand_dims: range(1, sizes.length),
        index_vector_dim: 1,
      },
      indices_are_sorted: false,
      unique_indices: true,
    },
    {
      regions: {
        update_computation: builder.region(
          [tensorType(element, []), tensorType(element, [])],
          (_, parameters) => parameters.slice(1),
        ),
      },
    },
  );
  return [{ value, batched: true }];
};

/** Starts such that slices fit, as dynamic_update_slice has them. */
function clampedRows(
  builder: GraphBuilder,
  rows: GraphValue,
  shape: readonly number[],
  sizes: readonly number[],
): GraphValue {
  const { element, shape: extents } = typeOfValue(rows);
  const count = extents[0] ?? 0;
  const limits = shape.map((extent, axis) =>
    indexLimit(builder, tensorType(element, [count, 1]), extent - (sizes[axis] ?? 0)),
  );
  const high = builder.one("stablehlo.concatenate", { inputs: limits }, { dimension: 1 });
  const low = binary(builder, "stablehlo.maximum", rows, zerosOf(builder, typeOfValue(rows)));
  return binary(builder, "stablehlo.minimum", low, high);
}

const gatherRule: BatchRule<"stablehlo.gather"> = (op, context) => {
  const { operand, start_indices: indices } = op.operands;
  const { dimension_numbers: numbers, slice_sizes: sizes } = op.attributes;
  const operandBatched = context.isBatched(operand);
  const indicesBatched = context.isBatched(indices);
  const shift = (axes: readonly number[], by: boolean): readonly number[] =>
    by ? next(axes) : axes;
  const both = operandBatched && indicesBatched;
  const alone = operandBatched && !indicesBatched;
  return context.again(op, {
    operands: { operand: context.get(operand).value, start_indices: context.get(indices).value },
    attributes: {
      dimension_numbers: {
        offset_dims: alone ? [0, ...next(numbers.offset_dims)] : next(numbers.offset_dims),
        collapsed_slice_dims: shift(numbers.collapsed_slice_dims, operandBatched),
        operand_batching_dims: [
          ...(both ? [0] : []),
          ...shift(numbers.operand_batching_dims, operandBatched),
        ],
        start_indices_batching_dims: [
          ...(both ? [0] : []),
          ...shift(numbers.start_indices_batching_dims, indicesBatched),
        ],
        start_index_map: shift(numbers.start_index_map, operandBatched),
        index_vector_dim: numbers.index_vector_dim + (indicesBatched ? 1 : 0),
      },
      slice_sizes: operandBatched ? [both ? 1 : context.size, ...sizes] : sizes,
    },
  });
};

const scatterRule: BatchRule<"stablehlo.scatter"> = (op, context) => {
  const { scatter_indices: indices } = op.operands;
  const numbers = op.attributes.scatter_dimension_numbers;
  const batched = context.isBatched(indices);
  const shared = {
    inserted_window_dims: next(numbers.inserted_window_dims),
    scatter_dims_to_operand_dims: next(numbers.scatter_dims_to_operand_dims),
  };
  const dims = batched
    ? {
        ...shared,
        update_window_dims: next(numbers.update_window_dims),
        input_batching_dims: [0, ...next(numbers.input_batching_dims)],
        scatter_indices_batching_dims: [0, ...next(numbers.scatter_indices_batching_dims)],
        index_vector_dim: numbers.index_vector_dim + 1,
      }
    : {
        ...shared,
        update_window_dims: [0, ...next(numbers.update_window_dims)],
        input_batching_dims: next(numbers.input_batching_dims),
        scatter_indices_batching_dims: numbers.scatter_indices_batching_dims,
        index_vector_dim: numbers.index_vector_dim,
      };
  return context.again(op, {
    operands: { scatter_indices: context.get(indices).value },
    attributes: { scatter_dimension_numbers: dims },
  });
};

export const shapeBatching: BatchRules<keyof typeof shapeOps> = {
  "stablehlo.constant": unbatchable,
  "stablehlo.iota": unbatchable,
  "stablehlo.broadcast_in_dim": (op, context) =>
    context.again(op, {
      attributes: { broadcast_dimensions: [0, ...next(op.attributes.broadcast_dimensions)] },
    }),
  "stablehlo.broadcast": broadcastRule,
  "stablehlo.reshape": (op, context) => context.again(op),
  "stablehlo.transpose": (op, context) =>
    context.again(op, { attributes: { permutation: [0, ...next(op.attributes.permutation)] } }),
  "stablehlo.reverse": (op, context) =>
    context.again(op, { attributes: { dimensions: next(op.attributes.dimensions) } }),
  "stablehlo.concatenate": (op, context) =>
    context.again(op, { attributes: { dimension: op.attributes.dimension + 1 } }),
  "stablehlo.slice": (op, context) =>
    context.again(op, {
      attributes: {
        start_indices: [0, ...op.attributes.start_indices],
        limit_indices: [context.size, ...op.attributes.limit_indices],
        strides: [1, ...op.attributes.strides],
      },
    }),
  "stablehlo.pad": padRule,
  "stablehlo.dynamic_slice": dynamicSliceRule,
  "stablehlo.dynamic_update_slice": dynamicUpdateRule,
  "stablehlo.gather": gatherRule,
  "stablehlo.scatter": scatterRule,
  "stablehlo.get_dimension_size": unbatchable,
  "stablehlo.dynamic_iota": unbatchable,
  "stablehlo.dynamic_broadcast_in_dim": unbatchable,
  "stablehlo.dynamic_reshape": unbatchable,
  "stablehlo.real_dynamic_slice": unbatchable,
  "stablehlo.dynamic_pad": unbatchable,
  "stablehlo.dynamic_gather": unbatchable,
  "stablehlo.set_dimension_size": unbatchable,
  "stablehlo.torch_index_select": unbatchable,
};
