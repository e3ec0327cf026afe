/**
 * Scatter, one element of the result a lane: the lane walks the index vectors in their order and combines the updates
 * of those windows that it lies in, so the order is the evaluator's and every run gives the same bits. A window that
 * does not fit as a whole is dropped. Of sorted rows it walks only those that are its own.
 */
import { loop } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import type { KernelStep } from "../lowering.ts";
import { addIndex, indexOfTile, isWithin, subtractIndex, tileOfIndex } from "../points/indices.ts";
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

/** Sorted rows: where the updates of each row begin, then each row combined with its own in their order. */
export function sortedRowSteps(op: GraphOp<"stablehlo.scatter">): readonly KernelStep[] {
  const { inputs, updates, scatter_indices: rows } = op.operands;
  const [operand] = inputs;
  if (operand === undefined) return [];
  const extent = tensorTypeOf(operand).shape[0] ?? 0;
  const starts = graphValue(tensorType("i32", [extent + 1]));
  return [
    {
      title: "starts",
      inputs: [rows],
      results: [starts],
      key: "starts of rows",
      rule: (points, context) => [startsAt(rows, points, context)],
    },
    {
      title: "rows",
      inputs: [...inputs, ...updates, starts],
      results: op.results,
      key: "sorted rows",
      rule: (points, context) => sortedRowsAt(op, starts, points, context),
    },
  ];
}

/** How many of sorted rows come before each of a tile's, by halving. */
function startsAt(rows: GraphValue, points: Points, context: PointContext): Tile {
  const { shape } = tensorTypeOf(rows);
  const count = shape[0] ?? 0;
  const wanted = tileOfIndex(points.axis(0));
  let found: Tile<"i32"> = tileOfIndex(0);
  for (let step = 2 ** Math.floor(Math.log2(Math.max(1, count))); step >= 1; step /= 2) {
    const probe = found.add(step);
    const place: Index = probe.sub(1).minimum(count - 1);
    const there = indexOfTile(context.element(rows, Points.at(shape, points.tile, [place, 0])));
    const isBefore = there.lt(wanted).and(probe.le(count)) as Tile<"bool">;
    found = isBefore.select(probe, found) as Tile<"i32">;
  }
  return fullTile(found, points);
}

function sortedRowsAt(
  { operands, regions }: GraphOp<"stablehlo.scatter">,
  starts: GraphValue,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const [update] = operands.updates;
  if (update === undefined) return [];
  const { shape } = tensorTypeOf(update);
  points.settle();
  const startOf = (row: Index): Tile<"i32"> => {
    const at = Points.at(tensorTypeOf(starts).shape, points.tile, [row]);
    return fullTile(context.element(starts, at), points) as Tile<"i32">;
  };
  const first = startOf(points.axis(0));
  const count = startOf(addIndex(points.axis(0), 1)).sub(first);
  const start = operands.inputs.map((value) => fullTile(context.element(value, points), points));
  return loop({ to: count.max(), carry: [...start] }, (turn, carry) => {
    const inner = context.inner();
    const place: Index = first.add(turn).minimum((shape[0] ?? 1) - 1);
    const at = Points.at(shape, points.tile, [place, ...points.axes.slice(1)]);
    const values = operands.updates.map((value) => inner.element(value, at));
    const isOwn = tileOfIndex(turn).lt(count) as Tile<"bool">;
    return combined(regions.update_computation, carry, values, points, inner, isOwn).map((tile) =>
      fullTile(tile, points),
    );
  });
}
