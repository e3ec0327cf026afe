/**
 * Scatters in sorted order. A lane that makes an element of the result would otherwise walk all index vectors to find those whose windows it lies
 * in; sorted by the row that they update, the updates of a row lie side by side. Equal ones keep their order. Batches are sorted each by itself.
 *
 *   rows 5 2 9 2        sorted 2 2 5 9      of updates 1 3 0 2      row 2: updates 1, then 3
 *
 * A row is what windows have of the axes that they cover from end to end. Of other axes each element of a window is a row of its own:
 *
 *   windows [2, 3, 64] of [100, 100, 64]    6 rows of 64 elements each, of 10,000
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { elements } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  addValues,
  binary,
  broadcastInDim,
  compare,
  convert,
  indexLimit,
  iota,
  like,
  multiply,
  reshape,
  select,
  splatOf,
  transpose,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import { range } from "../../transform/product-transpose-rules.ts";

type Scatter = GraphOp<"stablehlo.scatter">;

/** A scatter as rows: which axes number them, which they consist of, and how many there are. */
interface ScatterRows {
  readonly shape: readonly number[];
  /** How much of each axis a window has. */
  readonly sizes: readonly number[];
  readonly batch: readonly number[];
  /** Axes of which windows have a part. */
  readonly picked: readonly number[];
  /** Axes of which windows have all. */
  readonly whole: readonly number[];
  readonly batches: number;
  readonly rows: number;
  readonly width: number;
  /** Index vectors of a batch, and rows that each updates. */
  readonly vectors: number;
  readonly rowsEach: number;
}

function rowsOf(op: Scatter): ScatterRows | undefined {
  const [operand] = op.operands.inputs;
  const [update] = op.operands.updates;
  if (operand === undefined || update === undefined) return undefined;
  const numbers = op.attributes.scatter_dimension_numbers;
  const { shape } = typeOfValue(operand);
  const { shape: own } = typeOfValue(update);
  const batch = numbers.input_batching_dims;
  const axes = range(0, shape.length).filter((axis) => !batch.includes(axis));
  const windowAxes = axes.filter((axis) => !numbers.inserted_window_dims.includes(axis));
  const sizes = shape.map((_, axis) => {
    const at = windowAxes.indexOf(axis);
    return at < 0 ? 1 : (own[numbers.update_window_dims[at] ?? 0] ?? 1);
  });
  const extent = (of: readonly number[]): number => sizeOf(of.map((axis) => shape[axis] ?? 1));
  const whole = axes.filter((axis) => sizes[axis] === shape[axis]);
  const picked = axes.filter((axis) => sizes[axis] !== shape[axis]);
  const outer = own.filter((_, axis) => !numbers.update_window_dims.includes(axis));
  const batches = extent(batch);
  return {
    ...{ shape, sizes, batch, picked, whole, batches },
    rows: extent(picked),
    width: extent(whole),
    vectors: sizeOf(outer) / Math.max(1, batches),
    rowsEach: sizeOf(picked.map((axis) => sizes[axis] ?? 1)),
  };
}

/** A scatter of sorted rows: indices [n, 1] of the first axis, windows the others; or batches of them. */
export function isSortedRows(op: Scatter): boolean {
  const { scatter_dimension_numbers: numbers, indices_are_sorted: isSorted } = op.attributes;
  const { shape } = typeOfValue(op.operands.scatter_indices);
  const batch = numbers.input_batching_dims.length;
  const of = rowsOf(op);
  return (
    isSorted &&
    of !== undefined &&
    batch <= 1 &&
    of.vectors > 0 &&
    of.rows > 0 &&
    numbers.scatter_dims_to_operand_dims.join() === String(batch) &&
    numbers.inserted_window_dims.join() === String(batch) &&
    [...numbers.input_batching_dims, ...numbers.scatter_indices_batching_dims].every(
      (axis) => axis === 0,
    ) &&
    shape.length === batch + 2 &&
    numbers.index_vector_dim === batch + 1 &&
    numbers.update_window_dims.every((axis, i) => axis === batch + i + 1) &&
    of.sizes.every((size, axis) => axis <= batch || size === of.shape[axis])
  );
}

/** Microseconds that a lane takes for an index vector, and that all together take for an element and a vector. */
const turn = 0.3;
const step = 8 / 25e6;
/** Bytes a microsecond. */
const bandwidth = 4e6;
/** Launches of a sort and of what follows it. */
const launches = 20;

/** Whether it takes less time to sort the index vectors of a scatter than to have each element walk all of them. */
export function isWorthSorting(op: Scatter): boolean {
  const of = rowsOf(op);
  const [operand] = op.operands.inputs;
  if (of === undefined || operand === undefined || isSortedRows(op)) return false;
  const { batches, rows, width, vectors, rowsEach } = of;
  const bytes = elements[typeOfValue(operand).element].bits / 8;
  const count = batches * rows * width;
  const updates = batches * vectors * rowsEach;
  // Rows are numbered by i32.
  if (count === 0 || updates === 0 || batches * (rows + 1) >= 2 ** 31 || updates >= 2 ** 31)
    return false;
  const walking = Math.max(vectors * turn, count * vectors * step, (count * bytes) / bandwidth);
  const passes = elements[keyElement(rows)].bits / 8;
  const sorting =
    launches + (updates * (16 * passes + 2 * width * bytes) + count * bytes) / bandwidth;
  return walking > sorting;
}

/** The narrowest integers that numbers up to this one fit: each byte is a pass of the sort. */
function keyElement(greatest: number): "ui8" | "ui16" | "i32" {
  return greatest < 1 << 8 ? "ui8" : greatest < 1 << 16 ? "ui16" : "i32";
}

/** The components of index vectors: for each, [batches, vectors]. */
function components(op: Scatter, builder: GraphBuilder, of: ScatterRows): readonly GraphValue[] {
  const indices = op.operands.scatter_indices;
  const { shape } = typeOfValue(indices);
  const numbers = op.attributes.scatter_dimension_numbers;
  const { index_vector_dim: vector, scatter_indices_batching_dims: batch } = numbers;
  const others = range(0, shape.length).filter((axis) => axis !== vector && !batch.includes(axis));
  const order = [...batch, ...others, ...(vector < shape.length ? [vector] : [])];
  const count = numbers.scatter_dims_to_operand_dims.length;
  const table = reshape(builder, transpose(builder, indices, order), [
    of.batches,
    of.vectors,
    count,
  ]);
  return range(0, count).map((i) =>
    reshape(
      builder,
      builder.one(
        "stablehlo.slice",
        { operand: table },
        {
          start_indices: [0, 0, i],
          limit_indices: [of.batches, of.vectors, i + 1],
          strides: [1, 1, 1],
        },
      ),
      [of.batches, of.vectors],
    ),
  );
}

/** The row that each row of updates goes to, [batches, updates]; beyond all of them where its window does not fit. */
function rowNumbers(op: Scatter, builder: GraphBuilder, of: ScatterRows): GraphValue {
  const { shape, sizes, picked, batches, vectors } = of;
  const map = op.attributes.scatter_dimension_numbers.scatter_dims_to_operand_dims;
  const columns = components(op, builder, of);
  const fits = columns
    .flatMap((column, i) => {
      const axis = map[i] ?? 0;
      const last = (shape[axis] ?? 0) - (sizes[axis] ?? 0);
      return [
        compare(builder, "GE", column, like(builder, column, 0)),
        compare(builder, "LE", column, indexLimit(builder, typeOfValue(column), last)),
      ];
    })
    .reduce<GraphValue | undefined>(
      (all, each) => (all === undefined ? each : binary(builder, "stablehlo.and", all, each)),
      undefined,
    );
  const strideOf = (axis: number): number =>
    sizeOf(picked.slice(picked.indexOf(axis) + 1).map((each) => shape[each] ?? 1));
  const scaled = (value: GraphValue, axis: number): GraphValue =>
    multiply(builder, value, like(builder, value, strideOf(axis)));
  const none = splatOf(builder, tensorType("i32", [batches, vectors]), of.rows);
  const start = columns.reduce<GraphValue>(
    (sum, column, i) => {
      const axis = map[i] ?? 0;
      if (!picked.includes(axis)) return sum;
      return addValues(builder, sum, scaled(convert(builder, column, "i32"), axis));
    },
    splatOf(builder, tensorType("i32", [batches, vectors]), 0),
  );
  const within = picked.filter((axis) => (sizes[axis] ?? 1) > 1);
  const spread = [batches, vectors, ...within.map((axis) => sizes[axis] ?? 1)];
  const wide = (value: GraphValue): GraphValue =>
    within.length === 0 ? value : broadcastInDim(builder, value, spread, [0, 1]);
  const place = within.reduce<GraphValue>(
    (sum, axis, i) =>
      addValues(builder, sum, scaled(iota(builder, tensorType("i32", spread), i + 2), axis)),
    wide(start),
  );
  const known = fits === undefined ? place : select(builder, wide(fits), place, wide(none));
  const flat = reshape(builder, known, [batches, vectors * of.rowsEach]);
  return convert(builder, flat, keyElement(of.rows));
}

/** The axes of updates in the order in which a matrix of rows has them: batches, vectors, windows of parts of axes, whole windows. */
function updateOrder(op: Scatter, of: ScatterRows, rank: number): readonly number[] {
  const numbers = op.attributes.scatter_dimension_numbers;
  const { index_vector_dim: vector, scatter_indices_batching_dims: batch } = numbers;
  const outer = range(0, rank).filter((axis) => !numbers.update_window_dims.includes(axis));
  const batched = batch.map((axis) => outer[axis < vector ? axis : axis - 1] ?? 0);
  const windowAxes = range(0, of.shape.length).filter(
    (axis) => !numbers.inserted_window_dims.includes(axis) && !of.batch.includes(axis),
  );
  const windowed = (axes: readonly number[]): readonly number[] =>
    windowAxes.flatMap((axis, i) =>
      axes.includes(axis) ? [numbers.update_window_dims[i] ?? 0] : [],
    );
  const vectors = outer.filter((axis) => !batched.includes(axis));
  return [...batched, ...vectors, ...windowed(of.picked), ...windowed(of.whole)];
}

/** Updates as rows, in the order of their index vectors: [batches, updates, width]. */
function updateRows(
  op: Scatter,
  builder: GraphBuilder,
  of: ScatterRows,
  update: GraphValue,
): GraphValue {
  const order = updateOrder(op, of, typeOfValue(update).shape.length);
  const shape = [of.batches, of.vectors * of.rowsEach, of.width];
  return reshape(builder, transpose(builder, update, order), shape);
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
  const of = rowsOf(op);
  if (of === undefined) throw new Error("the scatter has an operand and updates");
  const { shape, batches } = of;
  const numbers = rowNumbers(op, builder, of);
  const [, count = 0] = typeOfValue(numbers).shape;
  const places = iota(builder, tensorType("i32", [batches, count]), 1);
  const key = tensorType(typeOfValue(numbers).element, []);
  const place = tensorType("i32", []);
  const comparator = builder.region([key, key, place, place], (inner, [left, right]) => [
    compare(inner, "LT", left as GraphValue, right as GraphValue),
  ]);
  const [sorted, order] = builder.add(
    "stablehlo.sort",
    { inputs: [numbers, places] },
    { dimension: 1, is_stable: true },
    { regions: { comparator } },
  ) as readonly [GraphValue, GraphValue];
  const axes = [...of.batch, ...of.picked, ...of.whole];
  const inputs = op.operands.inputs.map((value) =>
    reshape(builder, transpose(builder, value, axes), [batches, of.rows, of.width]),
  );
  const updates = op.operands.updates.map((value) =>
    ordered(builder, updateRows(op, builder, of, value), order),
  );
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
  const moved = axes.map((axis) => shape[axis] ?? 1);
  const back = range(0, shape.length).map((axis) => axes.indexOf(axis));
  return found.map((value) => transpose(builder, reshape(builder, value, moved), back));
}
