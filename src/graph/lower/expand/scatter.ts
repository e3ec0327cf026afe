/**
 * Scatters of whole rows in sorted order. A lane that makes an element of the result would otherwise walk all index vectors
 * to find those of its row; sorted ones lie side by side. Equal ones keep their order, so every element is combined as
 * before.
 *
 *   rows 5 2 9 2        sorted 2 2 5 9      of updates 1 3 0 2      row 2: updates 1, then 3
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  addValues,
  binary,
  compare,
  convert,
  indexLimit,
  iota,
  like,
  multiply,
  reshape,
  select,
  transpose,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import { range } from "../../transform/product-transpose-rules.ts";

type Scatter = GraphOp<"stablehlo.scatter">;

/** Fewer updates than these are found as fast by walking them. */
const fewUpdates = 64;

/** Whether index vectors name whole windows of the axes that they do not index. */
function hasWholeRows(op: Scatter): boolean {
  const [operand] = op.operands.inputs;
  const [update] = op.operands.updates;
  if (operand === undefined || update === undefined) return false;
  const numbers = op.attributes.scatter_dimension_numbers;
  const { shape } = typeOfValue(operand);
  const indexed = [...numbers.scatter_dims_to_operand_dims].sort((left, right) => left - right);
  const others = range(0, shape.length).filter((axis) => !indexed.includes(axis));
  const window = numbers.update_window_dims.map((axis) => typeOfValue(update).shape[axis]);
  return (
    numbers.input_batching_dims.length === 0 &&
    indexed.length > 0 &&
    indexed.join() === numbers.inserted_window_dims.join() &&
    window.length === others.length &&
    window.every((extent, i) => extent === shape[others[i] ?? 0])
  );
}

function updateCount(op: Scatter): number {
  const [update] = op.operands.updates;
  const window = op.attributes.scatter_dimension_numbers.update_window_dims;
  if (update === undefined) return 0;
  return sizeOf(typeOfValue(update).shape.filter((_, axis) => !window.includes(axis)));
}

/** A scatter of sorted rows: indices [n, 1] of the first axis, windows the others. */
export function isSortedRows(op: Scatter): boolean {
  const { scatter_dimension_numbers: numbers, indices_are_sorted: isSorted } = op.attributes;
  const { shape } = typeOfValue(op.operands.scatter_indices);
  return (
    isSorted &&
    hasWholeRows(op) &&
    numbers.scatter_dims_to_operand_dims.join() === "0" &&
    shape.length === 2 &&
    numbers.index_vector_dim === 1 &&
    numbers.update_window_dims.every((axis, i) => axis === i + 1)
  );
}

/** Whether it is worth sorting the index vectors of a scatter. */
export function isWorthSorting(op: Scatter): boolean {
  return !isSortedRows(op) && hasWholeRows(op) && updateCount(op) >= fewUpdates;
}

/** The row of each index vector, counted over the indexed axes; beyond all of them where it is none. */
function rowNumbers(
  op: Scatter,
  builder: GraphBuilder,
  extents: readonly number[],
  count: number,
): GraphValue {
  const indices = op.operands.scatter_indices;
  const { shape } = typeOfValue(indices);
  const { index_vector_dim: vector } = op.attributes.scatter_dimension_numbers;
  const axes = range(0, shape.length);
  const last = [
    ...axes.filter((axis) => axis !== vector),
    ...axes.filter((axis) => axis === vector),
  ];
  const table = reshape(builder, transpose(builder, indices, last), [count, extents.length]);
  const columns = extents.map((_, i) =>
    reshape(
      builder,
      builder.one(
        "stablehlo.slice",
        { operand: table },
        { start_indices: [0, i], limit_indices: [count, i + 1], strides: [1, 1] },
      ),
      [count],
    ),
  );
  const isInside = columns
    .flatMap((column, i) => [
      compare(builder, "GE", column, like(builder, column, 0)),
      compare(
        builder,
        "LE",
        column,
        indexLimit(builder, typeOfValue(column), (extents[i] ?? 1) - 1),
      ),
    ])
    .reduce((left, right) => binary(builder, "stablehlo.and", left, right));
  const row = columns
    .map((column, i) => {
      const whole = convert(builder, column, "i32");
      return multiply(builder, whole, like(builder, whole, sizeOf(extents.slice(i + 1))));
    })
    .reduce((left, right) => addValues(builder, left, right));
  return select(builder, isInside, row, like(builder, row, sizeOf(extents)));
}

/** The rows of a matrix in another order. */
function ordered(builder: GraphBuilder, operand: GraphValue, order: GraphValue): GraphValue {
  const [count = 0, width = 1] = typeOfValue(operand).shape;
  return builder.one(
    "stablehlo.gather",
    { operand, start_indices: reshape(builder, order, [count, 1]) },
    {
      dimension_numbers: {
        offset_dims: [1],
        collapsed_slice_dims: [0],
        operand_batching_dims: [],
        start_indices_batching_dims: [],
        start_index_map: [0],
        index_vector_dim: 1,
      },
      slice_sizes: [1, width],
      indices_are_sorted: false,
    },
  );
}

export function expandScatter(op: Scatter, builder: GraphBuilder): readonly GraphValue[] {
  const numbers = op.attributes.scatter_dimension_numbers;
  const [first] = op.operands.inputs;
  const { shape } = typeOfValue(first as GraphValue);
  const indexed = numbers.scatter_dims_to_operand_dims;
  const others = range(0, shape.length).filter((axis) => !indexed.includes(axis));
  const extents = indexed.map((axis) => shape[axis] ?? 1);
  const width = sizeOf(others.map((axis) => shape[axis] ?? 1));
  const count = updateCount(op);
  const index = tensorType("i32", []);
  const comparator = builder.region([index, index, index, index], (inner, [left, right]) => [
    compare(inner, "LT", left as GraphValue, right as GraphValue),
  ]);
  const rows = rowNumbers(op, builder, extents, count);
  const places = iota(builder, tensorType("i32", [count]), 0);
  const [sorted, order] = builder.add(
    "stablehlo.sort",
    { inputs: [rows, places] },
    { dimension: 0, is_stable: true },
    { regions: { comparator } },
  ) as readonly [GraphValue, GraphValue];
  const axes = [...indexed, ...others];
  const inputs = op.operands.inputs.map((value) =>
    reshape(builder, transpose(builder, value, axes), [sizeOf(extents), width]),
  );
  const updates = op.operands.updates.map((value) => {
    const own = range(0, typeOfValue(value).shape.length);
    const outer = own.filter((axis) => !numbers.update_window_dims.includes(axis));
    const matrix = transpose(builder, value, [...outer, ...numbers.update_window_dims]);
    return ordered(builder, reshape(builder, matrix, [count, width]), order);
  });
  const found = builder.add(
    "stablehlo.scatter",
    { inputs, scatter_indices: reshape(builder, sorted, [count, 1]), updates },
    {
      scatter_dimension_numbers: {
        update_window_dims: [1],
        inserted_window_dims: [0],
        input_batching_dims: [],
        scatter_indices_batching_dims: [],
        scatter_dims_to_operand_dims: [0],
        index_vector_dim: 1,
      },
      indices_are_sorted: true,
      unique_indices: op.attributes.unique_indices,
    },
    { regions: op.regions },
  );
  const back = range(0, shape.length).map((axis) => axes.indexOf(axis));
  return found.map((value) =>
    transpose(
      builder,
      reshape(
        builder,
        value,
        axes.map((axis) => shape[axis] ?? 1),
      ),
      back,
    ),
  );
}
