/**
 * Scatters of sorted rows. Updates of a row lie side by side, so each row combines its own, whose first and end are found by halving.
 *
 *   rows of updates   0 0 0 | 1 3 3 | 3 3 3 | 3 3 3 | 3 5          chunks of 3 here, of 32 in fact
 *   starts            0 3 4 4 13 13 14                              row 3 has updates 4 … 12
 *   row 3             4, 5, then chunks 2 and 3 as one each, then 12
 *
 * A row with many updates would take longer than all others. Chunks that lie within one row are therefore combined beforehand, and chunks of
 * chunks, until few are left: a row then takes what is before its first whole chunk, its chunks, and what is after them. The cost follows the
 * number of updates and of rows, whatever the skew, and the order of sums follows from the sorted rows alone: every run gives the same bits.
 */
import { cdiv, constant, iota, loop, slice } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import { i32 } from "../../../formats/dtype.ts";
import { capturesOf } from "../../ops/captures.ts";
import { combinerKind, isCombiner } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import type { KernelStep } from "../lowering.ts";
import { indexOfTile, tileOfIndex } from "../points/indices.ts";
import { Points } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { tileExtent } from "../tiled/tiled.ts";
import type { TiledParts } from "../tiled/tiled.ts";
import { fullTile } from "./fold.ts";
import { foldingOf } from "./reductions.ts";

type Scatter = GraphOp<"stablehlo.scatter">;
type Indices = Tile<"i32">;

/** So many updates of one row are combined beforehand. */
const chunk = 32;
/** A row with no more is combined in the order of its updates. */
const fewUpdates = 2 * chunk;
/** Updates that are loaded together, so that their latencies overlap. */
const together = 4;
/** Elements of a block's tile. */
const blockElements = 1024;
/** Where most rows have no update, blocks are larger and load one at a time. */
const sparseElements = 2 * blockElements;
/** Fewer blocks leave processors idle. */
const manyBlocks = 512;

/** What a scatter of sorted rows is about: batches of rows, each with its own updates. */
interface SortedRows {
  readonly op: Scatter;
  readonly batches: number;
  /** Rows and updates of a batch. */
  readonly rows: number;
  readonly updates: number;
  /** Elements of a row. */
  readonly width: number;
  /** The first update of each row, and the end of the last one: i32[batches, rows + 1]. */
  readonly starts: GraphValue;
}

function sortedRowsOf(op: Scatter, operand: GraphValue): SortedRows {
  const { shape } = tensorTypeOf(operand);
  const { shape: indices } = tensorTypeOf(op.operands.scatter_indices);
  const outer = op.attributes.scatter_dimension_numbers.input_batching_dims.length;
  const [batches, rows] = [sizeOf(shape.slice(0, outer)), shape[outer] ?? 1];
  const [updates, width] = [indices[outer] ?? 0, sizeOf(shape.slice(outer + 1))];
  return {
    ...{ op, batches, rows, updates, width },
    starts: graphValue(tensorType("i32", [batches, rows + 1])),
  };
}

/** Entries that rows are made of: updates, or chunks of `size` updates, with those of less size below them. */
interface Level {
  readonly value: GraphValue;
  readonly size: number;
  readonly count: number;
}

/** As many times as entries of one row may be loaded one after the other: another level would cost a launch. */
function mostTurns({ updates, rows }: SortedRows): number {
  return updates < rows ? 128 : 512;
}

/** Whether entries may be combined before they meet what is there. */
function hasChunks({ operands, regions }: Scatter): boolean {
  return operands.inputs.length === 1 && isCombiner(combinerKind(regions.update_computation));
}

/** Whether the last update of a row is what stays. */
function keepsLast({ operands, regions }: Scatter): boolean {
  const { parameters, results } = regions.update_computation;
  return results.every((value, i) => value === parameters[operands.inputs.length + i]);
}

/** Where the updates of each row begin, chunks of them, then each row combined with its own in their order. */
export function sortedRowSteps(op: Scatter): readonly KernelStep[] {
  const { inputs, updates, scatter_indices: indices } = op.operands;
  const [operand] = inputs;
  const [update] = updates;
  if (operand === undefined || update === undefined) return [];
  const of = sortedRowsOf(op, operand);
  const { element } = tensorTypeOf(operand);
  const partial = isNarrowFloat(element) ? "f32" : element;
  const captures = capturesOf(op.regions.update_computation);
  const steps: KernelStep[] = [
    {
      title: "starts",
      inputs: [indices],
      uses: [],
      results: [of.starts],
      key: "starts of rows",
      rule: (points, context) => {
        const [batch, row] = [points.axis(0), points.axis(1)].map(tileOfIndex);
        if (batch === undefined || row === undefined) return [];
        return [fullTile(startsAt(of, batch, row, points.tile, context), points)];
      },
    },
  ];
  let from: Level = { value: update, size: 1, count: of.batches * of.updates };
  const levels = [from];
  while (hasChunks(op) && from.count > mostTurns(of)) {
    const below = from;
    const count = Math.floor(below.count / chunk);
    const value = graphValue(tensorType(partial, [count, of.width]));
    const to = { value, size: below.size * chunk, count };
    const tile = tileOf(count, of.width);
    steps.push({
      title: "sorted",
      inputs: [...(below.size === 1 ? [] : [below.value]), indices],
      uses: [...(below.size === 1 ? updates : []), ...captures],
      results: [value],
      key: `chunks of ${below.size}`,
      tiled: {
        title: "chunks",
        loadsWindows: false,
        grid: gridOf(count, of.width, tile),
        body: (parts) => {
          combineChunks(of, below, to, tile, parts);
        },
      },
    });
    levels.push(to);
    from = to;
  }
  const most = of.updates < of.rows ? sparseElements : blockElements;
  const tile = tileOf(of.batches * of.rows, of.width, most);
  steps.push({
    title: "sorted",
    inputs: [...levels.slice(1).map(({ value }) => value), of.starts],
    uses: [...inputs, ...updates, ...captures],
    results: op.results,
    key: `sorted rows, ${levels.length} levels`,
    tiled: {
      title: "rows",
      loadsWindows: false,
      grid: gridOf(of.batches * of.rows, of.width, tile),
      body: (parts) => {
        combineRows(of, levels, tile, parts);
      },
    },
  });
  return steps;
}

/** Rows and columns of a block. */
type BlockTile = readonly [rows: number, columns: number];

function tileOf(rows: number, width: number, most = blockElements): BlockTile {
  const waste = (columns: number): number => cdiv(width, columns) * (columns + 8);
  const columns =
    width <= 256
      ? tileExtent(width, 1, 256)
      : [256, 128, 64].reduce((best, each) => (waste(each) < waste(best) ? each : best));
  const parts = cdiv(width, columns);
  let height = tileExtent(rows, 1, Math.max(1, most / columns));
  while (height > 1 && cdiv(rows, height) * parts < manyBlocks) height /= 2;
  return [height, columns];
}

function gridOf(rows: number, width: number, [height, columns]: BlockTile) {
  return { part: cdiv(rows, height), column: cdiv(width, columns) };
}

/** Where the updates of rows begin, each in its batch, by halving. */
function startsAt(
  { op, updates }: SortedRows,
  batch: Indices,
  row: Indices,
  tile: readonly number[],
  context: PointContext,
): Indices {
  const first = batch.mul(updates);
  let found: Indices = tileOfIndex(0);
  for (let step = 2 ** Math.floor(Math.log2(updates)); step >= 1; step /= 2) {
    const probe = found.add(step);
    const there = rowOf(op, first.add(probe.sub(1).minimum(updates - 1)), tile, context);
    const isBefore = there.lt(row).and(probe.le(updates));
    found = isBefore.select(probe, found);
  }
  return first.add(found);
}

/** The row that an update is for, by its number among those of all batches. */
function rowOf(
  { operands }: Scatter,
  update: Indices,
  tile: readonly number[],
  context: PointContext,
): Indices {
  const { shape } = tensorTypeOf(operands.scatter_indices);
  const flat = Points.at([sizeOf(shape)], tile, [update]);
  return indexOfTile(context.element(operands.scatter_indices, flat.reshape(shape)));
}

/** What a block combines: a tile of whole or partial rows, and the points of its results. */
interface Block {
  readonly of: SortedRows;
  readonly tile: BlockTile;
  readonly context: PointContext;
  readonly points: Points;
  readonly column: Scalar<"i32">;
}

/** The number of each of a block's rows; those beyond the end are the last one. */
function rowNumbers(parts: TiledParts, count: number, [height]: BlockTile): Indices {
  return iota(i32, [height, 1], { axis: 0 })
    .add(parts.at("part").mul(height))
    .minimum(count - 1);
}

function blockOf(
  of: SortedRows,
  shape: readonly number[],
  count: number,
  tile: BlockTile,
  { context, at }: TiledParts,
): Block {
  const [height, columns] = tile;
  const column = at("column").mul(columns);
  const place = { rows: count, columns: of.width, row: at("part").mul(height), column };
  const points = Points.window(shape, tile, place);
  points.settle();
  return { of, tile, context, points, column };
}

/** Entries of a level, a tile of their numbers. */
function entriesAt(
  { value, count }: Pick<Level, "value" | "count">,
  entries: Indices,
  { of, tile, column }: Block,
  context: PointContext,
): Tile {
  const row = entries.minimum(count - 1).maximum(0);
  const place = { rows: count, columns: of.width, row, column };
  return context.element(value, Points.window(tensorTypeOf(value).shape, tile, place));
}

/** The carry combined with entries of a level from `first` to `end`, in their order; no row has more than `most`. */
function combineEntries(
  carry: readonly Tile[],
  level: Level,
  first: Indices,
  end: Indices,
  block: Block,
  most: Scalar<"i32"> = end.sub(first).max(),
): readonly Tile[] {
  const { op } = block.of;
  const { lift, combine } = foldingOf(op.regions.update_computation, op.operands.inputs);
  const lifted = level.size === 1 ? lift : (tile: Tile): Tile => tile;
  const values = level.size === 1 ? op.operands.updates : [level.value];
  const isDense = block.of.updates >= block.of.rows;
  const atOnce = hasChunks(op) ? (isDense ? together : 1) : 1;
  const turns = most.add(atOnce - 1).div(atOnce);
  return loop({ to: turns, carry: [...carry] }, (turn, sums) => {
    const inner = block.context.inner();
    const entries = Array.from({ length: atOnce }, (_, i) => first.add(turn.mul(atOnce)).add(i));
    const loaded = entries.map((entry) =>
      values.map((value) => lifted(entriesAt({ value, count: level.count }, entry, block, inner))),
    );
    return entries.reduce<Tile[]>(
      (before, entry, i) => {
        const next = combine(before, loaded[i] ?? [], block.points, inner);
        return next.map((tile, place) =>
          fullTile(select(entry.lt(end), tile, before[place] ?? tile), block.points),
        );
      },
      [...sums],
    );
  });
}

/** The same of entries of which many can be one row's: by chunks where there are some, with what is before and after them. */
function combineByChunks(
  carry: readonly Tile[],
  [level, ...above]: readonly Level[],
  first: Indices,
  end: Indices,
  block: Block,
): readonly Tile[] {
  if (level === undefined) return carry;
  if (above.length === 0) return combineEntries(carry, level, first, end, block);
  const isFew = end.sub(first).le(fewUpdates);
  const from = first.add(chunk - 1).div(chunk);
  const to = isFew.select(from, end.div(chunk));
  const before = combineEntries(carry, level, first, isFew.select(end, from.mul(chunk)), block);
  const within = combineByChunks(before, above, from, to, block);
  return combineEntries(within, level, isFew.select(end, to.mul(chunk)), end, block);
}

/** Updates combined one by one where no row of a block has many, which is asked once, and by chunks otherwise. */
function combineUpdates(
  carry: readonly Tile[],
  levels: readonly Level[],
  first: Indices,
  end: Indices,
  block: Block,
): readonly Tile[] {
  const [updates, ...chunks] = levels;
  if (updates === undefined) return carry;
  const most = end.sub(first).max();
  if (chunks.length === 0) return combineEntries(carry, updates, first, end, block, most);
  const hasMany = most.gt(fewUpdates);
  const few = combineEntries(carry, updates, first, end, block, hasMany.select(zero(), most));
  return loop({ to: hasMany.select(one(), zero()), carry: [...few] }, (_, sums) => [
    ...combineByChunks(sums, levels, first, end, block),
  ]);
}

const zero = (): Scalar<"i32"> => constant(i32, 0);
const one = (): Scalar<"i32"> => constant(i32, 1);

/** Where the updates of a block's rows begin and end. */
function rangesOf(
  of: SortedRows,
  row: Indices,
  tile: BlockTile,
  { context }: TiledParts,
): readonly [first: Indices, end: Indices] {
  const place = row.add(row.div(of.rows));
  const startOf = (entry: Indices): Indices => {
    const flat = Points.at([of.batches * (of.rows + 1)], tile, [entry]);
    const shape = tensorTypeOf(of.starts).shape;
    return indexOfTile(context.element(of.starts, flat.reshape(shape)));
  };
  return [startOf(place), startOf(place.add(1))];
}

/** Chunks of entries: those within one row combined, others anything. */
function combineChunks(
  of: SortedRows,
  from: Level,
  to: Level,
  tile: BlockTile,
  parts: TiledParts,
): void {
  const { op, rows, updates } = of;
  const block = blockOf(of, [to.count, of.width], to.count, tile, parts);
  const numbers = rowNumbers(parts, to.count, tile);
  const [first, last] = [numbers.mul(to.size), numbers.add(1).mul(to.size).sub(1)];
  const row = rowOf(op, first, tile, parts.context);
  const isOne = row
    .eq(rowOf(op, last, tile, parts.context))
    .and(row.ge(0))
    .and(row.lt(rows))
    .and(first.div(updates).eq(last.div(updates)));
  const { lift } = foldingOf(op.regions.update_computation, op.operands.inputs);
  const base = numbers.mul(chunk);
  const start = entriesAt(from, base, block, parts.context);
  const [sum] = combineEntries(
    [fullTile(from.size === 1 ? lift(start) : start, block.points)],
    from,
    base.add(1),
    isOne.select(base.add(chunk), base.add(1)),
    block,
  );
  storeTile(sum, of.width, to.count, tile, parts, 0);
}

/** Each row combined with its updates. */
function combineRows(
  of: SortedRows,
  levels: readonly Level[],
  tile: BlockTile,
  parts: TiledParts,
): void {
  const { operands, regions } = of.op;
  const [operand] = operands.inputs;
  const [updates] = levels;
  if (operand === undefined || updates === undefined) return;
  const total = of.batches * of.rows;
  const block = blockOf(of, tensorTypeOf(operand).shape, total, tile, parts);
  const row = rowNumbers(parts, total, tile);
  const [first, end] = rangesOf(of, row, tile, parts);
  const { lift, finish } = foldingOf(regions.update_computation, operands.inputs);
  const start = operands.inputs.map((each) => parts.context.element(each, block.points));
  const results = keepsLast(of.op)
    ? start.map((old, i) => {
        const value = operands.updates[i] ?? updates.value;
        const last = entriesAt({ ...updates, value }, end.sub(1), block, parts.context);
        return select(first.lt(end), last, old);
      })
    : combineUpdates(
        start.map((tile_) => fullTile(lift(tile_), block.points)),
        levels,
        first,
        end,
        block,
      ).map(finish);
  for (const [i, result] of results.entries()) storeTile(result, of.width, total, tile, parts, i);
}

function storeTile(
  tile: Tile | undefined,
  width: number,
  count: number,
  [height, columns]: BlockTile,
  { outputs, at }: TiledParts,
  place: number,
): void {
  const window = outputs[place]
    ?.reshape([count, width])
    .at(slice(at("part").mul(height), height), slice(at("column").mul(columns), columns));
  if (tile !== undefined) window?.store(tile.broadcastTo([height, columns]));
}
