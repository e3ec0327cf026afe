/**
 * Scatters of sorted rows, in levels: every lane combines at most 32 updates, so that a row with most of them takes no longer than
 * others.
 *
 *   rows of updates     0 0 0 0 0 | 0 0 1 1 3 | 3 3        chunks of 5 here, of 32 in fact
 *   slots               row 0: 2, row 1: 1, row 2: 1 (empty), row 3: 2
 *
 * Slot p of row r has those of its updates that lie in chunk p - r: rows and chunks both go up, so each step from slot to slot is to the next
 * row or to the next chunk. Slots are sorted rows again, with fewer updates, until few are left for any row. The order of sums follows from
 * the sorted rows alone, so every run gives the same bits.
 */
import { loop } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { combinerKind, isCombiner, neutralNumbers } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { tensorType } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import type { KernelStep } from "../lowering.ts";
import { indexOfTile, tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { constantTile, select } from "../tiles/bits.ts";
import { combined, fullTile } from "./fold.ts";
import { foldingOf } from "./reductions.ts";

type Scatter = GraphOp<"stablehlo.scatter">;

const chunk = 32;
/** So many are combined in one go: a level more would cost a launch. */
const fewUpdates = 4 * chunk;

/** What changes nothing of a scatter that combines in whatever order; undefined of others, whose updates are walked one after the other. */
function neutralOf({ operands, regions }: Scatter): number | bigint | undefined {
  const [only, ...others] = operands.inputs;
  const kind = combinerKind(regions.update_computation);
  if (only === undefined || others.length > 0 || kind === undefined) return undefined;
  return isCombiner(kind) ? neutralNumbers[kind](tensorTypeOf(only).element) : undefined;
}

/** Updates of a level: sorted rows, and how often starts of rows have been divided. */
interface Level {
  readonly value: GraphValue;
  readonly count: number;
  readonly depth: number;
}

/** Sorted rows: where the updates of each row begin, slots of chunks, then each row combined with its own in their order. */
export function sortedRowSteps(op: Scatter): readonly KernelStep[] {
  const { inputs, updates, scatter_indices: rows } = op.operands;
  const [operand] = inputs;
  const [update] = updates;
  if (operand === undefined || update === undefined) return [];
  const extent = tensorTypeOf(operand).shape[0] ?? 0;
  const starts = graphValue(tensorType("i32", [extent + 1]));
  const [count = 0, ...window] = tensorTypeOf(update).shape;
  const neutral = neutralOf(op);
  const { element } = tensorTypeOf(operand);
  const sumElement = isNarrowFloat(element) ? "f32" : element;
  const steps: KernelStep[] = [
    {
      title: "starts",
      inputs: [rows],
      results: [starts],
      key: "starts of rows",
      rule: (points, context) => [startsAt(rows, points, context)],
    },
  ];
  let level: Level = { value: update, count, depth: 0 };
  // As many updates of a level may be one row's.
  let most = count;
  while (neutral !== undefined && most > fewUpdates) {
    const from = level;
    const slots = extent + Math.floor(from.count / chunk);
    const value = graphValue(tensorType(sumElement, [slots, ...window]));
    steps.push({
      title: "slots",
      inputs: from.depth === 0 ? [starts] : [from.value, starts],
      results: [value],
      key: `slots ${from.depth}`,
      rule: (points, context) => [slotsAt(op, from, starts, neutral, points, context)],
    });
    level = { value, count: slots, depth: from.depth + 1 };
    most = Math.floor(most / chunk) + 1;
  }
  const last = level;
  steps.push({
    title: "rows",
    inputs: [...inputs, ...(last.depth === 0 ? updates : [last.value]), starts],
    results: op.results,
    key: `sorted rows ${last.depth}`,
    rule: (points, context) => sortedRowsAt(op, last, starts, points, context),
  });
  return steps;
}

/** Whether the updates of a scatter of sorted rows are looked at once, so that they need no memory of their own. */
export function isReadOnce(op: Scatter): boolean {
  const [update] = op.operands.updates;
  if (update === undefined) return false;
  const [count = 0] = tensorTypeOf(update).shape;
  return neutralOf(op) !== undefined && count > fewUpdates;
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
    const isBefore = there.lt(wanted).and(probe.le(count));
    found = isBefore.select(probe, found);
  }
  return fullTile(found, points);
}

/** Where the updates of a row begin, at a level. */
function startOf(
  starts: GraphValue,
  row: Tile<"i32">,
  depth: number,
  points: Points,
  context: PointContext,
): Tile<"i32"> {
  const at = Points.at(tensorTypeOf(starts).shape, points.tile, [row]);
  let start = fullTile(indexOfTile(context.element(starts, at)), points);
  for (let level = 0; level < depth; level += 1) start = row.add(start.div(chunk));
  return start;
}

/** The updates of a level that each slot has, combined. */
function slotsAt(
  op: Scatter,
  { value, count, depth }: Level,
  starts: GraphValue,
  neutral: number | bigint,
  points: Points,
  context: PointContext,
): Tile {
  const { shape } = tensorTypeOf(value);
  const extent = (tensorTypeOf(starts).shape[0] ?? 1) - 1;
  points.settle();
  const slot = fullTile(tileOfIndex(points.axis(0)), points);
  let row = fullTile(tileOfIndex(0), points);
  for (let step = 2 ** Math.floor(Math.log2(Math.max(1, extent))); step >= 1; step /= 2) {
    const probe = row.add(step);
    const within = probe.minimum(extent);
    const isBefore = probe
      .le(extent)
      .and(startOf(starts, within, depth + 1, points, context).le(slot));
    row = isBefore.select(probe, row);
  }
  const first = startOf(starts, row, depth, points, context);
  const end = startOf(starts, row.add(1).minimum(extent), depth, points, context);
  const base = slot.sub(row).mul(chunk);
  const { lift, combine } = foldingOf(op.regions.update_computation, op.operands.inputs);
  const lifted = depth === 0 ? lift : (tile: Tile): Tile => tile;
  const start = lift(constantTile(dtypeOf(op.operands.inputs[0] ?? value), neutral));
  return loop({ to: chunk, carry: fullTile(start, points) }, (turn, carry) => {
    const inner = context.inner();
    const at = base.add(turn);
    const isOwn = at.ge(first).and(at.lt(end));
    const place: Index = at.minimum(count - 1);
    const source = Points.at(shape, points.tile, [place, ...points.axes.slice(1)]);
    const [next = carry] = combine([carry], [lifted(inner.element(value, source))], points, inner);
    return fullTile(select(isOwn, next, carry), points);
  });
}

/** Each row combined with what is left for it. */
function sortedRowsAt(
  { operands, regions }: Scatter,
  { value, count, depth }: Level,
  starts: GraphValue,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { shape } = tensorTypeOf(value);
  points.settle();
  const row = fullTile(tileOfIndex(points.axis(0)), points);
  const first = startOf(starts, row, depth, points, context);
  const own = startOf(starts, row.add(1), depth, points, context).sub(first);
  const { lift, combine, finish } =
    depth === 0
      ? {
          lift: (tile: Tile): Tile => tile,
          combine: (
            carry: readonly Tile[],
            values: readonly Tile[],
            at: Points,
            of: PointContext,
          ) => combined(regions.update_computation, carry, values, at, of),
          finish: (tile: Tile): Tile => tile,
        }
      : foldingOf(regions.update_computation, operands.inputs);
  const start = operands.inputs.map((each) =>
    fullTile(lift(context.element(each, points)), points),
  );
  const sums = loop({ to: own.max(), carry: [...start] }, (turn, carry) => {
    const inner = context.inner();
    const place: Index = first.add(turn).minimum(count - 1);
    const at = Points.at(shape, points.tile, [place, ...points.axes.slice(1)]);
    const values = (depth === 0 ? operands.updates : [value]).map((each) =>
      inner.element(each, at),
    );
    const isOwn = tileOfIndex(turn).lt(own);
    return combine(carry, values, points, inner).map((tile, i) =>
      fullTile(select(isOwn, tile, carry[i] ?? tile), points),
    );
  });
  return sums.map(finish);
}
