/**
 * Gather at points: where an index vector says that a window begins, and which of its elements a result is.
 *
 *   result index = batch part (which index vector)  +  offset part (which element of the window)
 *   operand index = start, clamped so that the window fits  +  batching axes  +  offset
 */
import type { Tile } from "../../../lang/index.ts";
import type { GraphValue } from "../../ops/node.ts";
import type { GatherNumbers, ScatterNumbers } from "../../ops/structures.ts";
import type { PointContext } from "../context.ts";
import { sizeOf } from "../../ops/types.ts";
import { addIndex, clampIndex, indexOfTile, tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, stridesOf, sumOfProducts } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";

export function axesBeside(
  rank: number,
  ...taken: readonly (readonly number[])[]
): readonly number[] {
  return Array.from({ length: rank }, (_, axis) => axis).filter(
    (axis) => !taken.some((axes) => axes.includes(axis)),
  );
}

/** How index vectors of gathers and scatters lie, in one form for both. */
export interface StartNumbers {
  readonly vectorAxis: number;
  /** The operand's axis of each component. */
  readonly map: readonly number[];
  readonly operandBatching: readonly number[];
  readonly indicesBatching: readonly number[];
}

function gatherStarts(numbers: GatherNumbers): StartNumbers {
  return {
    vectorAxis: numbers.index_vector_dim,
    map: numbers.start_index_map,
    operandBatching: numbers.operand_batching_dims,
    indicesBatching: numbers.start_indices_batching_dims,
  };
}

export function scatterStarts(numbers: ScatterNumbers): StartNumbers {
  return {
    vectorAxis: numbers.index_vector_dim,
    map: numbers.scatter_dims_to_operand_dims,
    operandBatching: numbers.input_batching_dims,
    indicesBatching: numbers.scatter_indices_batching_dims,
  };
}

/** Where the window of an index vector begins, along each axis of the operand; 0 along axes that it does not name. */
export function startAt(
  indices: GraphValue,
  { vectorAxis, map, operandBatching, indicesBatching }: StartNumbers,
  rank: number,
  batch: readonly Index[],
  tile: readonly number[],
  context: PointContext,
): readonly Index[] {
  const { shape } = tensorTypeOf(indices);
  const hasAxis = vectorAxis < shape.length;
  const start = new Array<Index>(rank).fill(0);
  for (const [component, axis] of map.entries()) {
    const place = hasAxis ? batch.toSpliced(vectorAxis, 0, component) : batch;
    start[axis] = indexOfTile(context.element(indices, Points.at(shape, tile, place)));
  }
  for (const [i, axis] of operandBatching.entries()) {
    const indicesAxis = indicesBatching[i] ?? 0;
    start[axis] = batch[hasAxis && indicesAxis > vectorAxis ? indicesAxis - 1 : indicesAxis] ?? 0;
  }
  return start;
}

/** Where whole rows are picked: the operand as a matrix, of which index vectors name rows. */
interface PickedRows {
  readonly rows: number;
  readonly columns: number;
}

/** Whether a gather takes whole rows: its windows are the last axes of operand and result, from end to end. */
export function pickedRows(
  shape: readonly number[],
  { offset_dims: offsets, collapsed_slice_dims: collapsed, ...numbers }: GatherNumbers,
  sizes: readonly number[],
  rank: number,
): PickedRows | undefined {
  const leading = shape.length - offsets.length;
  const isLast = offsets.every((axis, i) => axis === rank - offsets.length + i);
  const isWhole = sizes.every((size, axis) => axis < leading || size === shape[axis]);
  const named = [...collapsed, ...numbers.operand_batching_dims];
  if (!isLast || !isWhole || !named.every((axis) => axis < leading)) return undefined;
  return { rows: sizeOf(shape.slice(0, leading)), columns: sizeOf(shape.slice(leading)) };
}

export function gatherAt(
  operand: GraphValue,
  indices: GraphValue,
  numbers: GatherNumbers,
  sizes: readonly number[],
  points: Points,
  context: PointContext,
): Tile {
  const { shape } = tensorTypeOf(operand);
  const batchAxes = axesBeside(points.shape.length, numbers.offset_dims);
  const windowAxes = axesBeside(
    shape.length,
    numbers.collapsed_slice_dims,
    numbers.operand_batching_dims,
  );
  const batch = batchAxes.map((axis) => points.axis(axis));
  const start = startAt(indices, gatherStarts(numbers), shape.length, batch, points.tile, context);
  const picked = pickedRows(shape, numbers, sizes, points.shape.length);
  const { window } = points;
  if (
    picked !== undefined &&
    window !== undefined &&
    points.split === points.shape.length - numbers.offset_dims.length &&
    picked.columns === window.columns
  ) {
    const leading = start.slice(0, shape.length - numbers.offset_dims.length);
    const first = leading.map((index, axis) => clampIndex(index, (shape[axis] ?? 1) - 1));
    const row = tileOfIndex(sumOfProducts(first, stridesOf(shape.slice(0, leading.length))));
    const rows = row.broadcastTo([points.tile[0] ?? 1, 1]);
    const place = { ...picked, row: rows, column: window.column };
    return context.element(operand, Points.window(shape, points.tile, place));
  }
  const axes = start.map((index, axis) => {
    const last = (shape[axis] ?? 0) - (sizes[axis] ?? 0);
    const first = clampIndex(index, last);
    const window = windowAxes.indexOf(axis);
    return window < 0 ? first : addIndex(first, points.axis(numbers.offset_dims[window] ?? 0));
  });
  return context.element(operand, Points.at(shape, points.tile, axes));
}

/** torch_index_select as a gather. */
export function torchGatherNumbers(
  shape: readonly number[],
  indexRank: number,
  dimension: number,
  batching: number,
): { readonly numbers: GatherNumbers; readonly sizes: readonly number[] } {
  const batch = Array.from({ length: batching }, (_, axis) => axis);
  const taken = indexRank - batching;
  const offsets = axesBeside(shape.length, batch, [dimension]);
  return {
    sizes: shape.map((extent, axis) => (axis === dimension || axis < batching ? 1 : extent)),
    numbers: {
      offset_dims: offsets.map((axis) => (axis < dimension ? axis : axis - 1 + taken)),
      collapsed_slice_dims: [dimension],
      operand_batching_dims: batch,
      start_indices_batching_dims: batch,
      start_index_map: [dimension],
      index_vector_dim: indexRank,
    },
  };
}
