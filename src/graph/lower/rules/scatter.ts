/**
 * Scatter, one element of the result a lane: the lane walks the index vectors in their order and combines the updates
 * of those windows that it lies in, so the order is the evaluator's and every run gives the same bits. A window that
 * does not fit as a whole is dropped. Of sorted rows it walks only those that are its own.
 */
import { loop } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { indexOfTile, isWithin, subtractIndex, tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";
import { combined, foldTurns, fullTile } from "./fold.ts";
import { axesBeside, scatterStarts, startAt } from "./gather.ts";
import { allHold } from "./reductions.ts";

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
  const vectors = scatterAxes.map((axis) => updateShape[axis] ?? 1);
  const sizes = new Array<number>(rank).fill(1);
  for (const [i, axis] of windowAxes.entries())
    sizes[axis] = updateShape[numbers.update_window_dims[i] ?? 0] ?? 1;
  const start = operands.inputs.map((value) => context.element(value, points));
  return foldTurns(sizeOf(vectors), start, points, context, (turn, carry, inner) => {
    const batch = axesOfPosition(turn, vectors);
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

/** How many of sorted rows come before each of a tile's, or before its end where rows are equal. */
function countBefore(
  rows: GraphValue,
  wanted: Tile<"i32">,
  isIncluded: boolean,
  points: Points,
  context: PointContext,
): Tile<"i32"> {
  const { shape } = tensorTypeOf(rows);
  const count = shape[0] ?? 0;
  let found: Tile<"i32"> = tileOfIndex(0);
  for (let step = 2 ** Math.floor(Math.log2(Math.max(1, count))); step >= 1; step /= 2) {
    const probe = found.add(step);
    const place = probe.sub(1).minimum(count - 1);
    const there = indexOfTile(
      context.element(rows, Points.at(shape, points.tile, [place as Index, 0])),
    );
    const isBefore = isIncluded ? there.le(wanted) : there.lt(wanted);
    found = (isBefore as Tile<"bool">).and(probe.le(count)).select(probe, found) as Tile<"i32">;
  }
  return found;
}

/** Sorted rows: a lane finds the updates of its own by halving and combines them in their order. */
export function sortedRowsAt(
  { operands, regions }: GraphOp<"stablehlo.scatter">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const [update] = operands.updates;
  if (update === undefined) return [];
  const { shape } = tensorTypeOf(update);
  const rows = operands.scatter_indices;
  points.settle();
  const own = tileOfIndex(points.axis(0));
  const first = fullTile(countBefore(rows, own, false, points, context), points);
  const end = fullTile(countBefore(rows, own, true, points, context), points);
  const count = end.sub(first) as Tile<"i32">;
  const start = operands.inputs.map((value) => fullTile(context.element(value, points), points));
  return loop({ to: count.max(), carry: [...start] }, (turn, carry) => {
    const inner = context.inner();
    const place = (first as Tile<"i32">).add(turn).minimum((shape[0] ?? 1) - 1) as Tile<"i32">;
    const at = Points.at(shape, points.tile, [place, ...points.axes.slice(1)]);
    const values = operands.updates.map((value) => inner.element(value, at));
    const isOwn = tileOfIndex(turn).lt(count) as Tile<"bool">;
    return combined(regions.update_computation, carry, values, points, inner, isOwn).map((tile) =>
      fullTile(tile, points),
    );
  });
}
