/**
 * Who works on what. Lengths are known on the device alone, and differ; so the tiles of all sequences lie one after the other,
 * and are dealt to blocks in splits of equal size, which do not care where one sequence ends and the next begins:
 *
 *   tiles      sequence 0: 0 0 0 0 0     1: 1     2: 2 2 2 2 2 2            12 tiles, 3 splits of 4
 *   split 0    0 0 0 0
 *   split 1            0   1   2 2
 *   split 2                        2 2 2 2
 *
 * Split 1 has a part of sequence 0 that another began, all of 1, and the beginning of 2. A sequence that one split has whole is
 * finished there; parts are left in memory and put together by a second launch (`combine.ts`).
 *
 * Splits of the only sequence may take turns instead: the first tile of each is known before its length is, so that its pages are asked for at once.
 *
 * A sequence without tokens has one tile, which nothing of is seen. Where q has more rows than a tile, a sequence is gone
 * through once for every block of rows.
 *
 * Beginning another sequence takes a split as long as part of a tile, while it waits for q and leaves what it has. So shares are of
 * equal cost, counted in steps: a tile takes some, and the first of a sequence some more. A tile is where its first step is:
 *
 *   steps      0  1  2  3  4  5  6 │ 7  8  9 │ 10 11 12 13 …          2 of a tile, 1 of a beginning
 *   tiles      0        1     2    │ 0       │ 0        1
 */
import { dtypes } from "../../formats/dtype.ts";
import { constant, iota, loop, slice } from "../../lang/index.ts";
import type { Ref, Scalar, Tile, Tree } from "../../lang/index.ts";
import type { LaunchSize } from "../../lang/index.ts";
import { cdiv } from "../../lang/index.ts";
import type { PagedWindow } from "./problem.ts";

export type Integer = Scalar<"i32">;

/** What tiles cost, in steps. */
export interface Cost {
  readonly tile: number;
  /** What the first tile of a sequence costs more. */
  readonly beginning: number;
}

/** What the number of tiles of a sequence follows from. */
export interface Deal {
  readonly lengths: Ref<"i32">;
  readonly b: LaunchSize;
  readonly s: LaunchSize;
  readonly window: PagedWindow;
  readonly columns: number;
  /** Tiles of the longest sequence that the table has pages for, where pages are read: one more stops the kernel. */
  readonly tiles?: LaunchSize;
  /** Blocks of rows of q, and whether there is one alone, which nothing has to be divided for. */
  readonly blocks: Integer;
  readonly hasOneBlock: boolean;
  /** Whether that is of the only sequence, whose tiles are dealt as they are: no other begins in a split. */
  readonly isAlone: boolean;
  /** Lengths that are looked at together, and the tiles of all sequences where these are all. */
  readonly together: number;
  readonly counts?: Tile<"i32">;
  readonly cost: Cost;
  readonly splits: number;
  /** Tiles from one of a split to its next: 1, or the number of splits where these take turns. */
  readonly apart: number;
}

/** The most lengths that are looked at together. */
export const mostTogether = 128;

/** A length that the table has no pages for has one tile beyond them, which stops the kernel, and no more: sums of tiles stay in i32. */
function beyondTable(tiles: LaunchSize): Integer {
  return constant(dtypes.i32, 1).add(tiles);
}

/** The first tile that a row of a sequence sees, and how many there are from there on. */
export function sequenceTiles(
  { s, window, columns, tiles }: Pick<Deal, "s" | "window" | "columns" | "tiles">,
  length: Integer,
): { readonly first: Integer; readonly count: Integer } {
  const zero = constant(dtypes.i32, 0);
  const all = length
    .minimum(2 ** 31 - columns)
    .add(columns - 1)
    .div(columns);
  const end = tiles === undefined ? all : all.minimum(beyondTable(tiles));
  if (window.left === undefined) return { first: zero, count: end.maximum(1) };
  const first = length.sub(zero.add(s)).sub(window.left).maximum(0).div(columns);
  return { first, count: end.sub(first).maximum(1) };
}

/** The same counts for sequences from `from` on; 0 beyond the last one. */
export function tileCounts(
  { lengths, b, s, window, columns, tiles, together }: Omit<Deal, "counts">,
  from: Integer,
): Tile<"i32"> {
  const length = lengths.at(slice(from, together)).load().maximum(0);
  const zero = constant(dtypes.i32, 0);
  const all = length
    .minimum(2 ** 31 - columns)
    .add(columns - 1)
    .div(columns);
  const end = tiles === undefined ? all : all.minimum(beyondTable(tiles));
  const first =
    window.left === undefined
      ? length.mul(0)
      : length.sub(zero.add(s)).sub(window.left).maximum(0).div(columns);
  const isThere = iota(dtypes.i32, [together], { axis: 0 }).add(from).lt(zero.add(b));
  return end.sub(first).maximum(1).mul(isThere.cast(dtypes.i32));
}

/** Goes over the tiles of all sequences, as many at a time as are looked at together. */
function overSequences<C extends Tree>(
  deal: Deal,
  carry: C,
  body: (counts: Tile<"i32">, before: C) => C,
): C {
  const { counts, together } = deal;
  if (counts !== undefined) return body(counts, carry);
  return loop({ to: cdiv(deal.b, together), carry }, (chunk, before: C) =>
    body(tileCounts(deal, chunk.mul(together)), before),
  );
}

/** How steps are dealt: every split has `each` of them, and the first `more` splits have one more, as far as there are any. */
interface Shares {
  readonly all: Integer;
  readonly each: Integer;
  readonly more: Integer;
}

/**
 * The steps of all sequences and blocks of rows, dealt out evenly. A split has so many at least that a tile begins among them: what lies between the
 * first and the last split of a sequence has a part of it.
 */
function sharesOf(deal: Deal): Shares {
  const { tile, beginning } = deal.cost;
  const zero = constant(dtypes.i32, 0);
  const { tiles } = overSequences(deal, { tiles: zero }, (counts, before) => ({
    tiles: before.tiles.add(counts.sum()),
  }));
  const all = stepsOf(deal, zero.add(deal.b), tiles);
  const even = all.div(deal.splits);
  const isEnough = even.ge(tile + beginning);
  return {
    all,
    each: even.maximum(tile + beginning),
    more: isEnough.select(all.sub(even.mul(deal.splits)), zero),
  };
}

/** Steps of so many sequences with so many tiles. */
function stepsOf({ cost, blocks }: Deal, sequences: Integer, tiles: Integer): Integer {
  return tiles.mul(cost.tile).add(sequences.mul(cost.beginning)).mul(blocks);
}

/** The split that has a step. */
function splitOfStep({ each, more }: Shares, step: Integer): Integer {
  const longer = more.mul(each.add(1));
  const behind = more.add(step.sub(longer).div(each));
  return step.lt(longer).select(step.div(each.add(1)), behind);
}

/** A tile, counted over all sequences and blocks of rows, or within a split that takes turns, its sequence, and the tiles of those before it. */
export type Place = {
  readonly tile: Integer;
  readonly sequence: Integer;
  readonly before: Integer;
};

/** The first tiles of a split and of the one behind it. Behind the last sequence there is none, and a split without tiles may be anywhere. */
export function boundsOfSplit(
  deal: Deal,
  split: Integer,
): { readonly begin: Place; readonly end: Integer } {
  if (deal.isAlone) return boundsOfOnly(deal, split);
  const shares = sharesOf(deal);
  const [first, behind] = [split, split.add(1)].map((each) =>
    each.mul(shares.each).add(each.minimum(shares.more)).minimum(shares.all),
  ) as [Integer, Integer];
  const zero = constant(dtypes.i32, 0);
  const start = { sequence: zero, before: zero };
  const found = overSequences(
    deal,
    { steps: zero, first: start, behind: start },
    (counts, { steps, ...reached }) => {
      const { tile, beginning } = deal.cost;
      const own = counts.mul(tile).add(counts.minimum(1).mul(beginning)).mul(deal.blocks);
      // The last tile of a sequence is its first where it has no other.
      const alone = counts.le(1).cast(dtypes.i32).mul(beginning).add(tile);
      const last = own.cumsum({ axis: 0 }).add(steps).sub(alone);
      const isThere = counts.gt(0);
      const passed = (step: Integer, { sequence, before }: typeof start): typeof start => {
        // Once a sequence is not over, none of those behind it is.
        const isOver = last.lt(step).and(isThere).cast(dtypes.i32);
        return {
          sequence: sequence.add(isOver.sum()),
          before: before.add(isOver.mul(counts).sum()),
        };
      };
      return {
        steps: steps.add(own.sum()),
        first: passed(first, reached.first),
        behind: passed(behind, reached.behind),
      };
    },
  );
  return {
    begin: placeOfStep(deal, first, found.first),
    end: placeOfStep(deal, behind, found.behind).tile,
  };
}

/** The same of the only sequence: as many tiles for each split, and one more for the first ones. */
function boundsOfOnly(deal: Deal, split: Integer): ReturnType<typeof boundsOfSplit> {
  const zero = constant(dtypes.i32, 0);
  const count = tilesOfOnly(deal);
  if (deal.apart > 1)
    return {
      begin: { tile: zero, sequence: zero, before: zero },
      end: count
        .sub(split)
        .add(deal.apart - 1)
        .maximum(0)
        .div(deal.apart),
    };
  const each = count.div(deal.splits);
  const more = count.sub(each.mul(deal.splits));
  const from = (place: Integer): Integer => place.mul(each).add(place.minimum(more));
  return {
    begin: { tile: from(split), sequence: zero, before: zero },
    end: from(split.add(1)),
  };
}

function tilesOfOnly(deal: Deal): Integer {
  const length = deal.lengths.at(constant(dtypes.i32, 0)).loadScalar().maximum(0);
  return sequenceTiles(deal, length).count;
}

/** The first tile from a step on, which is in a sequence. */
function placeOfStep(deal: Deal, step: Integer, { sequence, before }: Omit<Place, "tile">): Place {
  const { tile, beginning } = deal.cost;
  const zero = constant(dtypes.i32, 0);
  const own = sequence.minimum(zero.add(deal.b).sub(1));
  const { count } = sequenceTiles(deal, deal.lengths.at(own).loadScalar().maximum(0));
  // The steps behind the last tile of the sequence before are not this one's.
  const inSequence = step.sub(stepsOf(deal, sequence, before)).maximum(0);
  const each = count.mul(tile).add(beginning);
  const block = deal.hasOneBlock ? zero : inSequence.div(each);
  const inBlock = inSequence.sub(block.mul(each));
  const later = inBlock
    .sub(beginning)
    .add(tile - 1)
    .div(tile)
    .maximum(1);
  const passed = inBlock.eq(0).select(zero, later);
  return { tile: before.mul(deal.blocks).add(block.mul(count)).add(passed), sequence, before };
}

/** The first and the last split that have tiles of a block of rows of a sequence. */
export function splitsOfBlock(
  deal: Deal,
  sequence: Integer,
  block: Integer,
): { readonly first: Integer; readonly last: Integer } {
  if (deal.isAlone)
    return {
      first: constant(dtypes.i32, 0),
      last: tilesOfOnly(deal).minimum(deal.splits).sub(1),
    };
  const { tile, beginning } = deal.cost;
  const shares = sharesOf(deal);
  const { count } = sequenceTiles(deal, deal.lengths.at(sequence).loadScalar().maximum(0));
  const begin = stepsOf(deal, sequence, tilesBefore(deal, sequence)).add(
    block.mul(count.mul(tile).add(beginning)),
  );
  const later = count.sub(1);
  const last = begin.add(later.mul(tile)).add(later.minimum(1).mul(beginning));
  // Lengths that stop the kernel before this one have sums beyond i32.
  const known = (step: Integer): Integer =>
    splitOfStep(shares, step)
      .maximum(0)
      .minimum(deal.splits - 1);
  return { first: known(begin), last: known(last) };
}

/** The tiles of the sequences before one. */
function tilesBefore(deal: Deal, sequence: Integer): Integer {
  const { counts, together } = deal;
  const zero = constant(dtypes.i32, 0);
  const those = (from: Integer, tiles: Tile<"i32">): Integer => {
    const isBefore = iota(dtypes.i32, [together], { axis: 0 }).add(from).lt(sequence);
    return tiles.mul(isBefore.cast(dtypes.i32)).sum();
  };
  if (counts !== undefined) return those(zero, counts);
  const chunks = sequence.add(together - 1).div(together);
  return loop({ to: chunks, carry: zero }, (chunk, before) => {
    const from = chunk.mul(together);
    return before.add(those(from, tileCounts(deal, from)));
  });
}
