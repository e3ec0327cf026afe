/**
 * Scatters of whole rows in sorted order. A lane that makes an element of the result would otherwise walk all index vectors
 * to find those of its row; sorted ones lie side by side. Equal ones keep their order. Batches are sorted each by itself.
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

/** The operand's axes by what they are to the scatter. */
interface ScatterAxes {
  readonly batch: readonly number[];
  readonly indexed: readonly number[];
  readonly window: readonly number[];
}

function axesOf(op: Scatter, rank: number): ScatterAxes {
  const numbers = op.attributes.scatter_dimension_numbers;
  const [batch, indexed] = [numbers.input_batching_dims, numbers.scatter_dims_to_operand_dims];
  const taken = [...batch, ...indexed];
  return { batch, indexed, window: range(0, rank).filter((axis) => !taken.includes(axis)) };
}

/** Whether index vectors name whole windows of the axes that they do not index. */
function hasWholeRows(op: Scatter): boolean {
  const [operand] = op.operands.inputs;
  const [update] = op.operands.updates;
  if (operand === undefined || update === undefined) return false;
  const numbers = op.attributes.scatter_dimension_numbers;
  const { shape } = typeOfValue(operand);
  const { indexed, window } = axesOf(op, shape.length);
  const sorted = [...indexed].sort((left, right) => left - right);
  const extents = numbers.update_window_dims.map((axis) => typeOfValue(update).shape[axis]);
  return (
    indexed.length > 0 &&
    sorted.join() === numbers.inserted_window_dims.join() &&
    extents.length === window.length &&
    extents.every((extent, i) => extent === shape[window[i] ?? 0])
  );
}

/** How many updates a batch has. */
function updateCount(op: Scatter): number {
  const [update] = op.operands.updates;
  const [operand] = op.operands.inputs;
  const window = op.attributes.scatter_dimension_numbers.update_window_dims;
  if (update === undefined || operand === undefined) return 0;
  const { shape } = typeOfValue(operand);
  const batches = sizeOf(axesOf(op, shape.length).batch.map((axis) => shape[axis] ?? 1));
  const all = sizeOf(typeOfValue(update).shape.filter((_, axis) => !window.includes(axis)));
  return all / Math.max(1, batches);
}

/** A scatter of sorted rows: indices [n, 1] of the first axis, windows the others; or batches of them. */
export function isSortedRows(op: Scatter): boolean {
  const { scatter_dimension_numbers: numbers, indices_are_sorted: isSorted } = op.attributes;
  const { shape } = typeOfValue(op.operands.scatter_indices);
  const batch = numbers.input_batching_dims.length;
  return (
    isSorted &&
    batch <= 1 &&
    hasWholeRows(op) &&
    updateCount(op) >= fewUpdates &&
    numbers.scatter_dims_to_operand_dims.join() === String(batch) &&
    [...numbers.input_batching_dims, ...numbers.scatter_indices_batching_dims].every(
      (axis) => axis === 0,
    ) &&
    shape.length === batch + 2 &&
    numbers.index_vector_dim === batch + 1 &&
    numbers.update_window_dims.every((axis, i) => axis === batch + i + 1)
  );
}

/** Whether it is worth sorting the index vectors of a scatter. */
export function isWorthSorting(op: Scatter): boolean {
  return !isSortedRows(op) && hasWholeRows(op) && updateCount(op) >= fewUpdates;
}

/** The narrowest integers that numbers below an extent fit, and it itself: each byte is a pass of the sort. */
function keyElement(extent: number): "ui8" | "ui16" | "i32" {
  return extent < 1 << 8 ? "ui8" : extent < 1 << 16 ? "ui16" : "i32";
}

/** The row of each index vector, counted over the indexed axes: [batches, count]; beyond all of them where it is none. */
function rowNumbers(
  op: Scatter,
  builder: GraphBuilder,
  extents: readonly number[],
  batches: number,
  count: number,
): GraphValue {
  const indices = op.operands.scatter_indices;
  const { shape } = typeOfValue(indices);
  const { index_vector_dim: vector, scatter_indices_batching_dims: batch } =
    op.attributes.scatter_dimension_numbers;
  const others = range(0, shape.length).filter((axis) => axis !== vector && !batch.includes(axis));
  const order = [...batch, ...others, ...(vector < shape.length ? [vector] : [])];
  const table = reshape(builder, transpose(builder, indices, order), [
    batches,
    count,
    extents.length,
  ]);
  const columns = extents.map((_, i) =>
    reshape(
      builder,
      builder.one(
        "stablehlo.slice",
        { operand: table },
        {
          start_indices: [0, 0, i],
          limit_indices: [batches, count, i + 1],
          strides: [1, 1, 1],
        },
      ),
      [batches, count],
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
  const known = select(builder, isInside, row, like(builder, row, sizeOf(extents)));
  return convert(builder, known, keyElement(sizeOf(extents)));
}

/** The rows of matrices in another order. */
function ordered(builder: GraphBuilder, operand: GraphValue, order: GraphValue): GraphValue {
  const [batches = 1, count = 0, width = 1] = typeOfValue(operand).shape;
  return builder.one(
    "stablehlo.gather",
    { operand, start_indices: reshape(builder, order, [batches, count, 1]) },
    {
      dimension_numbers: {
        offset_dims: [2],
        collapsed_slice_dims: [1],
        operand_batching_dims: [0],
        start_indices_batching_dims: [0],
        start_index_map: [1],
        index_vector_dim: 2,
      },
      slice_sizes: [1, 1, width],
      indices_are_sorted: false,
    },
  );
}

export function expandScatter(op: Scatter, builder: GraphBuilder): readonly GraphValue[] {
  const numbers = op.attributes.scatter_dimension_numbers;
  const [first] = op.operands.inputs;
  const { shape } = typeOfValue(first as GraphValue);
  const { batch, indexed, window } = axesOf(op, shape.length);
  const extent = (axes: readonly number[]): number => sizeOf(axes.map((axis) => shape[axis] ?? 1));
  const [batches, width] = [extent(batch), extent(window)];
  const extents = indexed.map((axis) => shape[axis] ?? 1);
  const count = updateCount(op);
  const rows = rowNumbers(op, builder, extents, batches, count);
  const places = iota(builder, tensorType("i32", [batches, count]), 1);
  const key = tensorType(typeOfValue(rows).element, []);
  const place = tensorType("i32", []);
  const comparator = builder.region([key, key, place, place], (inner, [left, right]) => [
    compare(inner, "LT", left as GraphValue, right as GraphValue),
  ]);
  const [sorted, order] = builder.add(
    "stablehlo.sort",
    { inputs: [rows, places] },
    { dimension: 1, is_stable: true },
    { regions: { comparator } },
  ) as readonly [GraphValue, GraphValue];
  const axes = [...batch, ...indexed, ...window];
  const inputs = op.operands.inputs.map((value) =>
    reshape(builder, transpose(builder, value, axes), [batches, sizeOf(extents), width]),
  );
  const outerAxes = (rank: number): readonly number[] => {
    const outer = range(0, rank).filter((axis) => !numbers.update_window_dims.includes(axis));
    const { index_vector_dim: vector, scatter_indices_batching_dims: own } = numbers;
    const first_ = own.map((axis) => outer[axis < vector ? axis : axis - 1] ?? 0);
    return [...first_, ...outer.filter((axis) => !first_.includes(axis))];
  };
  const updates = op.operands.updates.map((value) => {
    const outer = outerAxes(typeOfValue(value).shape.length);
    const moved = transpose(builder, value, [...outer, ...numbers.update_window_dims]);
    return ordered(builder, reshape(builder, moved, [batches, count, width]), order);
  });
  const found = builder.add(
    "stablehlo.scatter",
    { inputs, scatter_indices: reshape(builder, sorted, [batches, count, 1]), updates },
    {
      scatter_dimension_numbers: {
        update_window_dims: [2],
        inserted_window_dims: [1],
        input_batching_dims: [0],
        scatter_indices_batching_dims: [0],
        scatter_dims_to_operand_dims: [1],
        index_vector_dim: 2,
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
