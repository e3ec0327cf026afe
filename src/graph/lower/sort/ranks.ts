/**
 * Sorting by any comparator in two kernels, for short rows and for comparators that order by nothing known. The first gives every element its rank: how many others come before it, where
 * of two that compare equal the earlier one does. The second puts at each place the element with that rank.
 *
 *   elements   3  1  2  1         ranks   3  0  2  1         sorted   1  1  2  3
 */
import { i32 } from "../../../formats/dtype.ts";
import { full } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { tensorType } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import type { KernelStep } from "../lowering.ts";
import { tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { foldTurns } from "../rules/fold.ts";

function along(points: Points, axis: number, index: Index): Points {
  return Points.at(
    points.shape,
    points.tile,
    points.axes.map((own, each) => (each === axis ? index : own)),
  );
}

/** Whether the elements `left` come before `right`; the comparator takes them in turn. */
function comesBefore(
  comparator: GraphRegion,
  left: readonly Tile[],
  right: readonly Tile[],
  points: Points,
  context: PointContext,
): Tile<"bool"> {
  const pairs = left.flatMap((tile, i) => [tile, right[i] as Tile]);
  return context.region(comparator, pairs, points)[0] as Tile<"bool">;
}

function ranksAt(
  inputs: readonly GraphValue[],
  axis: number,
  comparator: GraphRegion,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const own = inputs.map((value) => context.element(value, points));
  const place = tileOfIndex(points.axis(axis));
  const zero = full(i32, [1], 0);
  const one = full(i32, [1], 1);
  return foldTurns(points.shape[axis] ?? 1, [zero], points, context, (turn, [rank], inner) => {
    const other = inputs.map((value) => inner.element(value, along(points, axis, turn)));
    const isBefore = comesBefore(comparator, other, own, points, inner);
    const isAfter = comesBefore(comparator, own, other, points, inner);
    const isEarlier = tileOfIndex(turn).lt(place);
    const counts = isBefore.or(isAfter.not().and(isEarlier));
    return [(rank as Tile).add(select(counts, one, zero))];
  });
}

function placedAt(
  inputs: readonly GraphValue[],
  ranks: GraphValue,
  axis: number,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const place = tileOfIndex(points.axis(axis));
  const start = inputs.map((value) => context.element(value, points));
  return foldTurns(points.shape[axis] ?? 1, start, points, context, (turn, carry, inner) => {
    const there = along(points, axis, turn);
    const isHere = inner.element(ranks, there).eq(place);
    return inputs.map((value, i) => select(isHere, inner.element(value, there), carry[i] as Tile));
  });
}

export function rankSteps(op: GraphOp<"stablehlo.sort">): readonly KernelStep[] {
  const { inputs } = op.operands;
  const [first] = inputs;
  if (first === undefined) return [];
  const { shape } = tensorTypeOf(first);
  const { dimension } = op.attributes;
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  const ranks = graphValue(tensorType("i32", shape));
  return [
    {
      title: "ranks",
      inputs,
      results: [ranks],
      key: `ranks along ${axis}`,
      rule: (points, context) => ranksAt(inputs, axis, op.regions.comparator, points, context),
    },
    {
      title: "place",
      inputs: [...inputs, ranks],
      results: op.results,
      key: `place along ${axis}`,
      rule: (points, context) => placedAt(inputs, ranks, axis, points, context),
    },
  ];
}
