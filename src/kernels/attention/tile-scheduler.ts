/**
 * Which tile of rows a block takes when. Blocks that run together read the same k and v, so tiles go head by head: what a
 * handful of heads reads stays in the level-2 cache. Where rows see columns up to their own alone, a tile far down has more to do, and
 * a block takes it together with one as far up, so that all pairs are alike:
 *
 *   linear             0: first rows of head 0    1: the next rows of head 0   …   blocks: first rows of head 1   …
 *   paired             0: last rows and first rows of head 0    1: those before and behind them    …
 *
 * Where k and v of all heads fit the cache, or tiles have so many rows that memory is fast enough without it, tiles with most to do go first
 * instead, of all heads, and every other round is dealt backwards, since the first block would have the most to do in each. That leaves less at
 * the end than pairs do:
 *
 *   longest first      0: last rows of head 0     1: last rows of head 1   …   h · b: rows before them of head 0   …
 *   blocks             0: tiles 0, 263, 264 …     1: tiles 1, 262, 265 …       131: tiles 131, 132, 395 …
 */
import { cdiv, constant, gridSize } from "../../lang/index.ts";
import type { Scalar } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import { consumerRows } from "./configuration.ts";
import type { WarpSpecializedAttention, AttentionSchedule } from "./configuration.ts";
import { attentionArrays } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { offsetsOf, sequenceOfBlock, wholeBatch } from "./packing.ts";
import type { Offsets, Sequence } from "./packing.ts";
import { columnTiles } from "./scores.ts";
import { hasShortTiles, shortDeal, shortTiles } from "./tail-tiles.ts";
import type { ShortTiles } from "./tail-tiles.ts";
import { stretch } from "./block-mask.ts";
import type { VisitLists, Visits } from "./block-mask.ts";

type Index = Scalar<"i32">;

/** A tile of rows, and the tiles of columns that they see. */
export interface Place {
  readonly sequence: Sequence;
  readonly head: Index;
  readonly top: Index;
  readonly visits: Visits;
  /** Steps of one consumer, where the last tiles may be seen by rows of others alone. */
  readonly stepsOf?: (part: number) => Index;
  /** Whether the last consumer has no rows of the tile, of kernels that have such tiles. */
  readonly isShort?: Scalar<"bool">;
}

/** The tiles of one block. */
export interface TileOrder {
  readonly count: Index;
  readonly placeOf: (turn: Index) => Place;
}

/** What k and v may have of the level-2 cache, which is 50 MB where there is wgmma. */
const cachedBytes = 24 * 2 ** 20;
/**
 * Rows of a tile from which on k and v may come from memory: a tile of r rows takes r operations for each byte of them, so that 450 TFLOP/s over
 * 192 rows read 2.3 TB/s, half of what memory gives.
 */
const streamedRows = 192;

function scheduleOf(
  { problem, sizes }: AttentionForm,
  { consumers, schedule }: WarpSpecializedAttention,
): AttentionSchedule {
  if (schedule !== undefined) return schedule;
  const { left, right } = problem.window;
  const hasMost = right !== undefined && left === undefined;
  if (sizes.ends > 0 || problem.mask !== undefined || !hasMost) return "linear";
  const { b, t, kv, d, e } = sizes;
  const bytes = (b * t * kv * (d + e) * problem.k.dtype.bits) / 8;
  const isStreamed = consumers * consumerRows >= streamedRows && problem.k.dtype.bits === 16;
  return bytes <= cachedBytes || isStreamed ? "longest-first" : "paired";
}

/** Blocks of rows of a head, an even number of them where they are taken in pairs. */
function slots(blocks: number, schedule: AttentionSchedule): number {
  return schedule === "paired" ? 2 * Math.ceil(blocks / 2) : blocks;
}

/** How much more the busiest block may have to do than others, before each tile has one of its own. */
const mostUneven = 1.08;

/**
 * Blocks that share the tiles: one for each processor, which goes from one to the next and brings the operands of one under the last
 * steps of another. Each tile has its own where nobody knows how much there is to do in it, or where some blocks would have much more.
 */
export function workersOf(
  configuration: WarpSpecializedAttention,
  form: AttentionForm,
  target: Target,
): number {
  const { consumers, workers } = configuration;
  const { problem, sizes } = form;
  const { b, s, h, ends } = sizes;
  const rows = consumers * consumerRows;
  const schedule = scheduleOf(form, configuration);
  const each = schedule === "paired" ? 2 : 1;
  const dealt = hasShortTiles(form, configuration)
    ? shortDeal(sizes, workers ?? target.processors)
    : undefined;
  const taken =
    ends > 0
      ? h * (Math.floor(s / rows) + ends)
      : (dealt?.tiles ?? (b * h * slots(Math.ceil(s / rows), schedule)) / each);
  if (workers !== undefined) return Math.min(workers, taken);
  const isKnown = ends === 0 && problem.mask === undefined;
  const rounds = dealt?.even ?? taken / target.processors;
  const busiest = dealt?.time ?? Math.ceil(rounds);
  const isEven = schedule === "longest-first" || busiest <= mostUneven * rounds;
  return isKnown && isEven ? Math.min(target.processors, taken) : taken;
}

/** The tiles of a block of a kernel, in the order in which it takes them. */
export function tileOrder(
  form: AttentionForm,
  configuration: WarpSpecializedAttention,
  argument: unknown,
  lists: VisitLists | undefined,
  worker: Index,
): TileOrder {
  const { problem } = form;
  const { dimensions } = attentionArrays(form);
  const { columns } = configuration;
  const rows = configuration.consumers * consumerRows;
  const zero = constant(dtypes.i32, 0);
  const visitsOf = (sequence: Sequence, head: Index, block: Index, top: Index, t: Index): Visits =>
    lists?.read(argument, { batch: sequence.batch, head, block }) ??
    stretch(columnTiles({ problem, s: sequence.rows.count, t }, top, rows, columns));
  // Tiles of columns that are wider than those of rows are seen to the end by every consumer.
  const hasOwnEnds =
    problem.window.right !== undefined &&
    lists === undefined &&
    configuration.consumers > 1 &&
    rows > columns;
  const ownSteps = (
    { rows: { count: s } }: Sequence,
    visits: Visits,
    top: Index,
    t: Index,
  ): Pick<Place, "stepsOf"> =>
    hasOwnEnds
      ? {
          stepsOf: (part) => {
            const from = top.add(part * consumerRows);
            const own = columnTiles({ problem, s, t }, from, consumerRows, columns);
            const behind = own.first.add(own.steps).sub(visits.at(zero).tile);
            return behind.maximum(1).minimum(visits.steps);
          },
        }
      : {};
  const h = zero.add(dimensions.h);
  const offsets = offsetsOf(argument, dimensions);
  if (offsets !== undefined) {
    const blocks = offsets.q.size.div(rows).add(offsets.q.ends);
    return {
      count: share(blocks.mul(h), worker),
      placeOf: (turn) => {
        const { above: head, below: block } = divided(taken(turn, worker), blocks);
        return packedPlace(offsets, head, block, rows, visitsOf);
      },
    };
  }
  const schedule = scheduleOf(form, configuration);
  const b = zero.add(dimensions.b);
  const blocks = zero.add(cdiv(dimensions.s, rows));
  const dealt = { blocks, heads: b.mul(h), worker };
  const { count, tileOf }: Hand = hasShortTiles(form, configuration)
    ? shortLast(dealt, shortTiles(argument, zero.add(dimensions.s)))
    : schedules[schedule](dealt);
  return {
    count,
    placeOf: (turn) => {
      const { number, block, short } = tileOf(turn);
      const { above: batch, below: head } = divided(number, h);
      const top = short?.top ?? block.mul(rows);
      const { sequence } = wholeBatch(dimensions, { batch, block });
      const t = sequence.columns.count;
      // The place of a pair that has no rows goes over one tile, or over what is listed of the last: nothing of it is stored.
      const seen = schedule === "paired" ? block.lt(blocks).select(t, zero) : t;
      const listed = schedule === "paired" ? block.minimum(blocks.sub(1)) : block;
      const visits = visitsOf(sequence, head, listed, top, seen);
      const isShort = short && { isShort: short.is };
      return { sequence, head, top, visits, ...ownSteps(sequence, visits, top, seen), ...isShort };
    },
  };
}

/** What is dealt: so many blocks of rows of so many heads of all batches. */
interface Dealt {
  readonly blocks: Index;
  readonly heads: Index;
  readonly worker: Index;
}

/** How many tiles a worker has, and which head and which rows each of them is. */
interface Hand {
  readonly count: Index;
  readonly tileOf: (turn: Index) => {
    readonly number: Index;
    readonly block: Index;
    /** Whether it is a short one, and where it begins, of tiles that are not all alike. */
    readonly short?: { readonly is: Scalar<"bool">; readonly top: Index };
  };
}

/** Whole tiles head by head, and the short ones behind all of them. */
function shortLast({ heads, worker }: Dealt, { whole, short, topOf }: ShortTiles): Hand {
  const first = whole.mul(heads);
  return {
    count: share(first.add(short.mul(heads)), worker),
    tileOf: (turn) => {
      const number = taken(turn, worker);
      const is = number.ge(first);
      // Where there are none of a kind, nothing is divided by how many there are.
      const each = is.select(short, whole).maximum(1);
      const { above, below } = divided(is.select(number.sub(first), number), each);
      return { number: above, block: below, short: { is, top: topOf(is, below) } };
    },
  };
}

const schedules: { readonly [D in AttentionSchedule]: (dealt: Dealt) => Hand } = {
  linear: ({ blocks, heads, worker }) => ({
    count: share(blocks.mul(heads), worker),
    tileOf: (turn) => {
      const { above, below } = divided(taken(turn, worker), blocks);
      return { number: above, block: below };
    },
  }),
  paired: ({ blocks, heads, worker }) => {
    const pairs = blocks.add(1).div(2);
    return {
      count: share(pairs.mul(heads), worker).mul(2),
      tileOf: (turn) => {
        const { above, below } = divided(taken(turn.div(2), worker), pairs);
        // The first place of an odd number of blocks is behind the last rows.
        const missing = pairs.mul(2).sub(blocks);
        const place = turn.and(1).eq(0).select(pairs.mul(2).sub(1).sub(below), below).sub(missing);
        return { number: above, block: place.lt(0).select(blocks, place) };
      },
    };
  },
  "longest-first": ({ blocks, heads, worker }) => {
    const total = blocks.mul(heads);
    return {
      count: share(total, worker),
      tileOf: (turn) => {
        const { above, below } = divided(backAndForth(turn, worker, total), heads);
        return { number: below, block: blocks.sub(1).sub(above) };
      },
    };
  },
};

/** How many of `total` a worker takes. */
function share(total: Index, worker: Index): Index {
  const workers = gridSize("worker");
  return total.sub(worker).add(workers).sub(1).div(workers);
}

/** The number of what a worker takes in a turn. */
function taken(turn: Index, worker: Index): Index {
  return turn.mul(gridSize("worker")).add(worker);
}

/** Every other round goes backwards, but for one that is not whole. */
function backAndForth(turn: Index, worker: Index, total: Index): Index {
  const workers = gridSize("worker");
  const start = turn.mul(workers);
  const behind = start.add(workers);
  const isBackwards = turn.and(1).eq(1).and(behind.le(total));
  return isBackwards.select(behind.sub(1).sub(worker), start.add(worker));
}

function divided(number: Index, by: Index): { readonly above: Index; readonly below: Index } {
  const above = number.div(by);
  return { above, below: number.sub(above.mul(by)) };
}

/** A block of rows of sequences of different lengths. */
function packedPlace(
  offsets: Offsets,
  head: Index,
  place: Index,
  rows: number,
  visitsOf: (sequence: Sequence, head: Index, block: Index, top: Index, t: Index) => Visits,
): Place {
  const { sequence, block } = sequenceOfBlock(offsets, "q", place, rows);
  const top = block.mul(rows);
  // A block behind the last row goes over one tile, of which nothing is seen.
  const t = top.lt(sequence.rows.count).select(sequence.columns.count, constant(dtypes.i32, 0));
  return { sequence, head, top, visits: visitsOf(sequence, head, place, top, t) };
}
