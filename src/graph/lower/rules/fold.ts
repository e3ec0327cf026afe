/**
 * Loops inside a kernel that combine values at points: what reductions, windows, products and scatters share. A fold
 * carries one tile a result, of the full shape of the points, through `count` turns; each turn gets an index that is the
 * same for all lanes.
 */
import type { DTypeName } from "../../../formats/dtype.ts";
import { loop } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import type { GraphRegion, GraphValue } from "../../ops/node.ts";
import type { PointContext } from "../context.ts";
import type { Points } from "../points/points.ts";
import { select } from "../tiles/bits.ts";

/** A tile of one value for all lanes, or for each, in the shape of the points. */
export function fullTile<D extends DTypeName>(tile: Tile<D>, points: Points): Tile<D> {
  return tile.broadcastTo(points.tile);
}

/** Carries tiles through turns. Short loops of few turns are written out. */
export function foldTurns(
  count: number,
  start: readonly Tile[],
  points: Points,
  context: PointContext,
  step: (
    turn: number | Scalar<"i32">,
    carry: readonly Tile[],
    inner: PointContext,
  ) => readonly Tile[],
): readonly Tile[] {
  const initial = start.map((tile) => fullTile(tile, points));
  if (count === 0) return initial;
  const settle = (tiles: readonly Tile[]): readonly Tile[] =>
    tiles.map((tile) => fullTile(tile, points));
  if (count === 1) return settle(step(0, initial, context));
  // What points know of themselves is made where it is first asked for; a loop must not be that place.
  points.settle();
  return loop({ to: count, carry: [...initial] }, (turn, carry) => [
    ...settle(step(turn, carry, context.inner())),
  ]);
}

/** The initial values of a reduction, which are tensors of one element. */
export function initialTiles(
  values: readonly GraphValue[],
  points: Points,
  context: PointContext,
): readonly Tile[] {
  return values.map((value) => context.scalar(value, points));
}

/** The carry combined with values by a region, where a condition holds. */
export function combined(
  region: GraphRegion,
  carry: readonly Tile[],
  values: readonly Tile[],
  points: Points,
  context: PointContext,
  where: boolean | Tile<"bool"> = true,
): readonly Tile[] {
  if (where === false) return carry;
  const next = context.region(region, [...carry, ...values], points);
  if (where === true) return next;
  return next.map((tile, i) => select(where, tile, carry[i] as Tile));
}
