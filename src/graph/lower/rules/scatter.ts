/**
 * Scatter, one element of the result a lane: the lane walks the index vectors in their order and combines the updates
 * of those windows that it lies in, so the order is the evaluator's and every run gives the same bits. A window that
 * does not fit as a whole is dropped.
 */
import type { Tile } from "../../../lang/index.ts";
import type { GraphOp } from "../../ops/node.ts";
import type { ScatterNumbers } from "../../ops/structures.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { addIndex, isWithin, subtractIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";
import type { UpdateInPlace } from "../lowering.ts";
import { combined, foldTurns } from "./fold.ts";
import { axesBeside, scatterStarts, startAt } from "./gather.ts";
import { allHold } from "./windows.ts";

export function scatterAt(
  { operands, attributes, regions }: GraphOp<"stablehlo.scatter">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const [update] = operands.updates;
  if (update === undefined) return [];
  const numbers = attributes.scatter_dimension_numbers;
  const updateShape = tensorTypeOf(update).shape;
  const rank = points.shape.length;
  const scatterAxes = axesBeside(updateShape.length, numbers.update_window_dims);
  const windowAxes = axesBeside(rank, numbers.inserted_window_dims, numbers.input_batching_dims);
  // Of batches, each has its own index vectors.
  const batching = batchAxes(numbers);
  const vectors = scatterAxes.map((axis, i) => (batching.has(i) ? 1 : (updateShape[axis] ?? 1)));
  const sizes = new Array<number>(rank).fill(1);
  for (const [i, axis] of windowAxes.entries())
    sizes[axis] = updateShape[numbers.update_window_dims[i] ?? 0] ?? 1;
  const start = operands.inputs.map((value) => context.element(value, points));
  return foldTurns(sizeOf(vectors), start, points, context, (turn, carry, inner) => {
    const batch = axesOfPosition(turn, vectors).map((index, i) => {
      const axis = batching.get(i);
      return axis === undefined ? index : points.axis(axis);
    });
    const first = startAt(
      operands.scatter_indices,
      scatterStarts(numbers),
      rank,
      batch,
      points.tile,
      inner,
    );
    const fits = first.map((index, axis) =>
      isWithin(index, 0, (points.shape[axis] ?? 0) - (sizes[axis] ?? 0) + 1),
    );
    const offsets = first.map((index, axis) => subtractIndex(points.axis(axis), index));
    const inside = offsets.map((index, axis) => isWithin(index, 0, sizes[axis] ?? 0));
    const place = new Array<Index>(updateShape.length).fill(0);
    for (const [i, axis] of scatterAxes.entries()) place[axis] = batch[i] ?? 0;
    for (const [i, axis] of windowAxes.entries())
      place[numbers.update_window_dims[i] ?? 0] = offsets[axis] ?? 0;
    const at =
      updateShape.length === 0 ? points.scalar() : Points.at(updateShape, points.tile, place);
    const values = operands.updates.map((value) => inner.element(value, at));
    const where = allHold([...fits, ...inside]);
    return combined(regions.update_computation, carry, values, points, inner, where);
  });
}

/**
 * A scatter of one operand in its memory: a lane an element of the updates. Windows that may overlap are walked in their order
 * instead (`scatterAt`): there is one of each batch, or the program promises that none do.
 */
export function scatterUpdate(op: GraphOp<"stablehlo.scatter">): UpdateInPlace | undefined {
  const { operands, attributes, regions } = op;
  const [operand, ...others] = operands.inputs;
  const [update] = operands.updates;
  if (operand === undefined || update === undefined || others.length > 0) return undefined;
  const numbers = attributes.scatter_dimension_numbers;
  const { shape } = tensorTypeOf(operand);
  const updateShape = tensorTypeOf(update).shape;
  const scatterAxes = axesBeside(updateShape.length, numbers.update_window_dims);
  const batching = batchAxes(numbers);
  const vectors = scatterAxes.map((axis, i) => (batching.has(i) ? 1 : (updateShape[axis] ?? 1)));
  if (sizeOf(vectors) > 1 && !attributes.unique_indices) return undefined;
  const windowAxes = axesBeside(
    shape.length,
    numbers.inserted_window_dims,
    numbers.input_batching_dims,
  );
  return {
    operand,
    shape: updateShape,
    rule: (points, context) => {
      const batch = scatterAxes.map((axis) => points.axis(axis));
      const first = startAt(
        operands.scatter_indices,
        scatterStarts(numbers),
        shape.length,
        batch,
        points.tile,
        context,
      );
      const offsets = new Array<Index>(shape.length).fill(0);
      const sizes = new Array<number>(shape.length).fill(1);
      for (const [i, axis] of windowAxes.entries()) {
        const place = numbers.update_window_dims[i] ?? 0;
        offsets[axis] = points.axis(place);
        sizes[axis] = updateShape[place] ?? 1;
      }
      const fits = first.map((index, axis) =>
        isWithin(index, 0, (shape[axis] ?? 0) - (sizes[axis] ?? 0) + 1),
      );
      const axes = first.map((index, axis) => addIndex(index, offsets[axis] ?? 0));
      const before = shape.length === 0 ? points.scalar() : Points.at(shape, points.tile, axes);
      const [value] = combined(
        regions.update_computation,
        [context.element(operand, before)],
        [context.broadcast(update, points)],
        points,
        context,
      );
      if (value === undefined) throw new Error("an update has a value");
      return { axes, value, where: allHold(fits) };
    },
  };
}

/** The axes of index vectors that are batches, counted without that of components, each with its axis of the operand. */
function batchAxes(numbers: ScatterNumbers): ReadonlyMap<number, number> {
  const {
    scatter_indices_batching_dims: own,
    input_batching_dims: axes,
    index_vector_dim: vector,
  } = numbers;
  return new Map(own.map((axis, i) => [axis < vector ? axis : axis - 1, axes[i] ?? 0]));
}
