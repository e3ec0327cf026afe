/**
 * chlo.ragged_dot, one result a lane. The ragged axis of the left operand is one of
 *
 *   free          a lane's row belongs to a group, whose slice of the right operand it meets; rows beyond give zero
 *   contracting   a lane's result belongs to a group, and only the group's rows count
 *   batching      sizes say nothing about results
 */
import { i32 } from "../../../formats/dtype.ts";
import { full } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { indexOfTile, tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";
import { cannotRun, tensorTypeOf } from "../storage.ts";
import { foldTurns } from "./fold.ts";
import { dotAt, productsOf, resultOf } from "./products.ts";
import { dotAxes } from "../dot-axes.ts";

/** Where each group begins, and where the last one ends. */
function boundaries(
  sizes: GraphValue,
  points: Points,
  context: PointContext,
): readonly Tile<"i32">[] {
  const { shape } = tensorTypeOf(sizes);
  const found: Tile<"i32">[] = [full(i32, [1], 0)];
  for (let group = 0; group < (shape[0] ?? 0); group++) {
    const size = indexOfTile(context.element(sizes, Points.at(shape, points.tile, [group])));
    found.push((found.at(-1) as Tile<"i32">).add(size));
  }
  return found;
}

/** The group of a row; the number of groups where it belongs to none. */
function groupOf(row: Index, ends: readonly Tile<"i32">[]): Tile<"i32"> {
  const place = tileOfIndex(row);
  const one = full(i32, [1], 1);
  const zero = full(i32, [1], 0);
  return ends.reduce<Tile<"i32">>((group, end) => group.add(place.ge(end).select(one, zero)), zero);
}

/** Groups whose bounds one kernel keeps, each in a value of its own. */
const mostGroups = 1024;

export function raggedDotAt(
  op: GraphOp<"chlo.ragged_dot">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { lhs, rhs, group_sizes: sizes } = op.operands;
  const numbers = op.attributes.ragged_dot_dimension_numbers;
  const [ragged] = numbers.lhs_ragged_dimensions;
  if (ragged === undefined || tensorTypeOf(sizes).shape.length !== 1)
    throw cannotRun(op, "its groups have more than one axis");
  if (sizeOf(tensorTypeOf(sizes).shape) > mostGroups)
    throw cannotRun(op, `it has more than ${mostGroups} groups`);
  if (numbers.lhs_batching_dimensions.includes(ragged))
    return dotAt(op, lhs, rhs, numbers, points, context);
  const [left, right] = [tensorTypeOf(lhs), tensorTypeOf(rhs)];
  const leftAxes = dotAxes(numbers, "lhs", left.shape.length);
  const [groupAxis] = numbers.rhs_group_dimensions;
  const isContracting = leftAxes.contracted.includes(ragged);
  const rightAxes = dotAxes(numbers, "rhs", right.shape.length);
  const rightFree = rightAxes.free.filter((axis) => isContracting || axis !== groupAxis);
  const axes = isContracting ? points.axes.slice(1) : points.axes;
  const bounds = boundaries(sizes, points, context);
  const row = axes[leftAxes.batch.length + leftAxes.free.indexOf(ragged)] ?? 0;
  const group = isContracting ? (points.axes[0] ?? 0) : groupOf(row, bounds.slice(1));
  const isMine = (place: Index): Tile<"bool"> => {
    if (!isContracting) return tileOfIndex(group).lt(bounds.length - 1);
    return groupOf(place, bounds.slice(1)).eq(tileOfIndex(group));
  };
  const depth = leftAxes.contracted.map((axis) => left.shape[axis] ?? 1);
  const products = productsOf(left.element, right.element, resultOf(op), sizeOf(depth));
  const firstRight = leftAxes.batch.length + leftAxes.free.length;
  const [sum] = foldTurns(
    sizeOf(depth),
    [products.start],
    points,
    context,
    (turn, carry, inner) => {
      const within = axesOfPosition(turn, depth);
      const leftPlace = new Array<Index>(left.shape.length).fill(0);
      const rightPlace = new Array<Index>(right.shape.length).fill(0);
      for (const [i, axis] of leftAxes.batch.entries()) leftPlace[axis] = axes[i] ?? 0;
      for (const [i, axis] of rightAxes.batch.entries()) rightPlace[axis] = axes[i] ?? 0;
      for (const [i, axis] of leftAxes.free.entries())
        leftPlace[axis] = axes[leftAxes.batch.length + i] ?? 0;
      for (const [i, axis] of rightFree.entries()) rightPlace[axis] = axes[firstRight + i] ?? 0;
      for (const [i, axis] of leftAxes.contracted.entries()) leftPlace[axis] = within[i] ?? 0;
      for (const [i, axis] of rightAxes.contracted.entries()) rightPlace[axis] = within[i] ?? 0;
      if (!isContracting && groupAxis !== undefined) rightPlace[groupAxis] = group;
      const x = inner.element(lhs, Points.at(left.shape, points.tile, leftPlace));
      const y = inner.element(rhs, Points.at(right.shape, points.tile, rightPlace));
      return [products.add(carry[0] as Tile, x, y, isMine(leftPlace[ragged] ?? 0))];
    },
  );
  return [products.finish(sum as Tile)];
}
