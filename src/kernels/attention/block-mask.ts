/**
 * Lists of the tiles of scores that blocks look at. A window alone leaves one stretch of tiles, which kernels find themselves. With a
 * mask, a small launch before the others lists them, for each block of rows, or of columns for their gradients:
 *
 *   rows 1 see columns 0 whole, and some of 1 and 2        3 | 2·0, 2·1 + 1, 2·2 + 1
 *                                                          how many, and twice the number of each, one more where the mask is asked
 *
 * Where blocks of columns add to the gradients of rows in one order, each also needs its rank among those that look at a tile of rows.
 */
import type { PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { dtypes } from "../../formats/dtype.ts";
import { addSizes, evaluateSize, multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import {
  tensor,
  cdiv,
  constant,
  iota,
  kernel,
  loop,
  slice,
  when,
  zeros,
} from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { attentionArrays, offsetArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { tileNumbers } from "./mask-intervals.ts";
import type { Ends } from "./mask-intervals.ts";
import { columnBlocks, columnsOfBlock, rowBlocks, rowsOfBlock } from "./packing.ts";
import type { Sequence } from "./packing.ts";
import { tracedMask } from "./traced-mask.ts";
import type { PlaceEnds, TracedMask } from "./traced-mask.ts";
import { knownOf } from "./block-mask-rules.ts";
import type { Kept, TileShape } from "./block-mask-rules.ts";

type Index = Scalar<"i32">;

/** Tiles that are looked at one after the other. */
export interface Visits {
  readonly steps: Index;
  readonly at: (step: Index) => Visit;
}

export interface Visit {
  /** Its number, along the columns or the rows. */
  readonly tile: Index;
  /** Which of the heads that share k and v it belongs to, in the list of a block of columns. */
  readonly own?: Index | undefined;
  /** Whether the mask is asked; it is by default. */
  readonly isMasked?: (() => Scalar<"bool">) | undefined;
}

/** Tiles from one on, where there is no mask. */
export function stretch({ first, steps }: { readonly [N in "first" | "steps"]: Index }): Visits {
  return { steps, at: (step) => ({ tile: first.add(step) }) };
}

/** Tiles from one on for each of the heads that share k and v, one head after the other. */
export function headByHead(
  group: number,
  { first, steps }: { readonly [N in "first" | "steps"]: Index },
): Visits {
  if (group === 1) return stretch({ first, steps });
  return {
    steps: steps.mul(group),
    at: (turn) => {
      const own = turn.div(steps);
      return { own, tile: first.add(turn.sub(own.mul(steps))) };
    },
  };
}

/** The head of q, of those that share one of k and v. */
export function headOf(kvHead: Index, group: number, own: Index | undefined): Index {
  return own === undefined ? kvHead : kvHead.mul(group).add(own);
}

/** The block that a list belongs to. */
export type ListedBlock = { readonly [N in "batch" | "head" | "block"]: Index };

/** An array that a launch before the others fills. */
interface FilledFirst {
  readonly scratch: ScratchArray;
  readonly spec: TensorSpec<"i32">;
  /** Fills the array of this name. */
  readonly launch: (name: string) => PlannedLaunch;
}

export interface VisitLists extends FilledFirst {
  /** Those of a block, of a kernel that has the lists as its array `visits`. */
  readonly read: (argument: unknown, block: ListedBlock) => Visits;
}

export interface VisitRanks extends FilledFirst {
  /** How many blocks of columns come before one, of those that look at a tile of rows. */
  readonly read: (ranks: Ref<"i32">, rows: ListedBlock, columns: Index) => Index;
}

/** The lists of what keeps rows, or columns; undefined without a mask. */
export function visitLists(
  form: AttentionForm,
  shape: TileShape,
  kept: Kept,
): VisitLists | undefined {
  const mask = tracedMask(form, shape);
  if (mask === undefined) return undefined;
  const { s, t } = attentionArrays(form).dimensions;
  const group = kept === "rows" ? 1 : form.sizes.h / form.sizes.kv;
  const most = kept === "rows" ? cdiv(t, shape.columns) : multiplySizes(group, cdiv(s, shape.rows));
  // Beside the count there is room for one tile, even where there are no columns.
  const filled = filledFirst(form, shape, kept, mask, addSizes(2, most), (argument, list) => {
    listTiles(form, shape, kept, mask, argument, list);
  });
  return {
    ...filled,
    read: (argument, block) => {
      const { visits } = argument as { readonly visits: Ref<"i32"> };
      const list = visits.at(...placeIn(form, mask, block));
      return {
        steps: list.at(0).loadScalar(),
        at: (step) => {
          // A window of one element, of which none is read outside: products that run could not go on beside a trap.
          const code = list
            .at(slice(step.add(1), 1))
            .load()
            .sum();
          const isMasked = () => code.and(1).ne(0);
          const number = code.shr(1).maximum(0);
          if (group === 1) return { tile: number, isMasked };
          const tile = number.div(group);
          return { tile, own: number.sub(tile.mul(group)), isMasked };
        },
      };
    },
  };
}

/** The ranks of blocks of columns at tiles of rows; undefined without a mask. */
export function visitRanks(form: AttentionForm, shape: TileShape): VisitRanks | undefined {
  const mask = tracedMask(form, shape);
  if (mask === undefined) return undefined;
  const blocks = cdiv(attentionArrays(form).dimensions.t, shape.columns);
  return {
    ...filledFirst(form, shape, "rows", mask, blocks, (argument, ranks) => {
      rankTiles(form, shape, mask, argument, ranks);
    }),
    read: (ranks, rows, columns) => ranks.at(...placeIn(form, mask, rows), columns).loadScalar(),
  };
}

/** Where the list of a block is: batches and heads share one where the mask does not look at them. */
function placeIn(
  { sizes }: AttentionForm,
  { asks }: TracedMask,
  { batch, head, block }: ListedBlock,
): readonly (Index | number)[] {
  return [asks.batch && sizes.ends === 0 ? batch : 0, asks.head ? head : 0, block];
}

/** What a block that fills a list is given. */
interface ListArgument extends ListedBlock {
  readonly sequence: Sequence;
  /** Its first row, or its first column. */
  readonly start: Index;
}

function filledFirst(
  form: AttentionForm,
  shape: TileShape,
  kept: Kept,
  { asks }: TracedMask,
  width: Size,
  fill: (argument: ListArgument, list: Ref<"i32">) => void,
): FilledFirst {
  const { s, t, ends } = form.sizes;
  const { dimensions } = attentionArrays(form);
  const grid = {
    block:
      kept === "rows" ? rowBlocks(dimensions, shape.rows) : columnBlocks(dimensions, shape.columns),
    head: asks.head ? dimensions[kept === "rows" ? "h" : "kv"] : 1,
    batch: asks.batch && ends === 0 ? dimensions.b : 1,
  };
  const spec = tensor(dtypes.i32, [grid.batch, grid.head, grid.block, width]);
  const made = (): KernelDefinition =>
    kernel(
      {
        name: "attention_visits",
        grid,
        inputs: offsetArrays(dimensions),
        inouts: { lists: spec },
      },
      (argument) => {
        const place: ListedBlock = argument;
        const found =
          kept === "rows"
            ? rowsOfBlock(argument, dimensions, place, shape.rows)
            : columnsOfBlock(argument, dimensions, place, shape.columns);
        const start = "top" in found ? found.top : found.left;
        const own = argument.lists.at(place.batch, place.head, place.block);
        fill({ ...place, sequence: found.sequence, start }, own);
      },
    );
  const values = new Map(Object.entries(form.sizes));
  return {
    spec,
    scratch: { dtype: dtypes.i32, shape: spec.shape.map((size) => evaluateSize(size, values)) },
    launch: (name) => ({
      kernel: made(),
      arguments: {
        lists: { argument: name },
        ...(ends > 0 && { qOffsets: { argument: "qOffsets" }, kOffsets: { argument: "kOffsets" } }),
      },
      dimensions: { s, t },
    }),
  };
}

/** Tiles that are looked at together, each by a lane. */
const together = 128;

/** A block lists its tiles in order, those of one head after those of another. */
function listTiles(
  form: AttentionForm,
  shape: TileShape,
  kept: Kept,
  mask: TracedMask,
  { sequence, start, head }: ListArgument,
  list: Ref<"i32">,
): void {
  const group = kept === "rows" ? 1 : form.sizes.h / form.sizes.kv;
  const zero = constant(dtypes.i32, 0);
  const tiles = tilesOf(sequence, start, shape, kept);
  const chunks = tiles.add(together - 1).div(together);
  const count = loop({ to: chunks.mul(group), carry: zero }, (turn, before) => {
    const own = group === 1 ? zero : turn.div(chunks);
    const first = turn.sub(own.mul(chunks)).mul(together);
    const numbers = iota(dtypes.i32, [together], { axis: 0 }).add(first);
    const place = { sequence, start, head: head.mul(group).add(own) };
    const { isSeen, isMasked } = lookedAt(form, shape, kept, mask, place, numbers);
    const seen = numbers.lt(tiles).and(isSeen);
    const ones = oneWhere(seen);
    const codes = numbers.mul(group).add(own).mul(2).add(oneWhere(isMasked()));
    list.at(ones.cumsum({ axis: 0 }).add(before)).store(codes, { where: seen });
    return before.add(ones.sum());
  });
  if (kept === "columns") {
    list.at(0).store(count);
    return;
  }
  // Rows that see nothing look at one tile, of which the mask says so.
  list.at(0).store(count.maximum(1));
  when(count.eq(0), () => {
    list.at(1).store(1);
  });
}

/** A block ranks the blocks of columns at its rows: from the first on, or with an end to the right from the last. */
function rankTiles(
  form: AttentionForm,
  shape: TileShape,
  mask: TracedMask,
  { sequence, start, head }: ListArgument,
  ranks: Ref<"i32">,
): void {
  const goesDown = form.problem.window.right !== undefined;
  const zero = constant(dtypes.i32, 0);
  const tiles = tilesOf(sequence, start, shape, "rows");
  const chunks = tiles.add(together - 1).div(together);
  loop({ to: chunks, carry: zero }, (turn, before) => {
    const chunk = goesDown ? chunks.sub(1).sub(turn) : turn;
    const numbers = iota(dtypes.i32, [together], { axis: 0 }).add(chunk.mul(together));
    const place = { sequence, start, head };
    const { isSeen } = lookedAt(form, shape, "rows", mask, place, numbers);
    const ones = oneWhere(numbers.lt(tiles).and(isSeen));
    const [upTo, all] = [ones.cumsum({ axis: 0 }), ones.sum()];
    const rank = goesDown ? upTo.neg().add(all) : upTo.sub(ones);
    ranks.at(numbers).store(rank.add(before), { where: numbers.lt(tiles) });
    return before.add(all);
  });
}

function oneWhere(condition: Tile<"bool">): Tile<"i32"> {
  const zero = zeros(dtypes.i32, [together]);
  return condition.select(zero.add(1), zero);
}

/** How many tiles there are for a block; none for one behind the last of its sequence. */
function tilesOf(
  sequence: Sequence,
  start: Index,
  { rows, columns }: TileShape,
  kept: Kept,
): Index {
  const [own, other, size] =
    kept === "rows"
      ? [sequence.rows, sequence.columns, columns]
      : [sequence.columns, sequence.rows, rows];
  const tiles = other.count.add(size - 1).div(size);
  return start.lt(own.count).select(tiles, constant(dtypes.i32, 0));
}

/** Which of the tiles may have something to see, and in which of them the mask must be asked. */
function lookedAt(
  form: AttentionForm,
  { rows, columns }: TileShape,
  kept: Kept,
  mask: TracedMask,
  { sequence, start, head }: Pick<ListArgument, "sequence" | "start" | "head">,
  numbers: Tile<"i32">,
): { readonly isSeen: Tile<"bool">; readonly isMasked: () => Tile<"bool"> } {
  const nothing = zeros(dtypes.i32, [together]);
  const reach = (from: Tile<"i32">, size: number, count: Index): Ends<Tile<"i64">> => ({
    low: from.cast(dtypes.i64),
    high: from.add(size).minimum(count).sub(1).cast(dtypes.i64),
  });
  const exactly = (value: Index): Ends<Tile<"i64">> => {
    const all = nothing.add(value).cast(dtypes.i64);
    return { low: all, high: all };
  };
  const own = nothing.add(start);
  const place: PlaceEnds<Tile<"i64">> = {
    ...{ batch: exactly(sequence.batch), head: exactly(head) },
    row: reach(kept === "rows" ? own : numbers.mul(rows), rows, sequence.rows.count),
    column: reach(kept === "rows" ? numbers.mul(columns) : own, columns, sequence.columns.count),
  };
  const { isSeen, isWhole } = knownOf(tileNumbers(together), form.problem.window, mask, place);
  return { isSeen: isSeen.ne(0n), isMasked: () => isWhole.mask.eq(0n) };
}
