/**
 * Who works on what. Lengths are known on the device alone, and differ; so the tiles of all sequences lie one after the other,
 * and are dealt to blocks in ranges of equal size, which do not care where one sequence ends and the next begins:
 *
 *   tiles      sequence 0: 0 0 0 0 0     1: 1     2: 2 2 2 2 2 2            12 tiles, 3 ranges of 4
 *   range 0    0 0 0 0
 *   range 1            0   1   2 2
 *   range 2                        2 2 2 2
 *
 * Range 1 has a part of sequence 0 that another began, all of 1, and the beginning of 2. A sequence that one range has whole is
 * finished there; parts are left in memory and put together by a second launch (`combine.ts`).
 *
 * A sequence without tokens has one tile, which nothing of is seen. Where q has more rows than a tile, a sequence is gone
 * through once for every block of rows.
 */
import { dtypes } from "../../formats/dtype.ts";
import { constant, iota, loop, slice } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import type { LaunchSize } from "../../lang/index.ts";
import { cdiv } from "../../lang/index.ts";
import type { PagedWindow } from "./problem.ts";

export type Integer = Scalar<"i32">;

/** What the number of tiles of a sequence follows from. */
export interface Deal {
  readonly lengths: Ref<"i32">;
  readonly b: LaunchSize;
  readonly s: LaunchSize;
  readonly window: PagedWindow;
  readonly columns: number;
  /** Blocks of rows of q. */
  readonly blocks: Integer;
  readonly ranges: LaunchSize;
}

/** Lengths that are looked at together. */
const together = 128;

/** The first tile that a row of a sequence sees, and how many there are from there on. */
export function sequenceTiles(
  { s, window, columns }: Pick<Deal, "s" | "window" | "columns">,
  length: Integer,
): { readonly first: Integer; readonly count: Integer } {
  const end = length.add(columns - 1).div(columns);
  const zero = constant(dtypes.i32, 0);
  if (window.left === undefined) return { first: zero, count: end.maximum(1) };
  const first = length.sub(zero.add(s)).sub(window.left).maximum(0).div(columns);
  return { first, count: end.sub(first).maximum(1) };
}

/** The same counts for sequences from `from` on; 0 beyond the last one. */
function tileCounts({ lengths, b, s, window, columns }: Deal, from: Integer): Tile<"i32"> {
  const length = lengths.at(slice(from, together)).load().maximum(0);
  const end = length.add(columns - 1).div(columns);
  const zero = constant(dtypes.i32, 0);
  const first =
    window.left === undefined
      ? length.mul(0)
      : length.sub(zero.add(s)).sub(window.left).maximum(0).div(columns);
  const isThere = iota(dtypes.i32, [together], 0).add(from).lt(zero.add(b));
  return end.sub(first).maximum(1).mul(isThere.cast(dtypes.i32));
}

/** How tiles are dealt: every range has `each` of them, and the first `more` ranges have one more. */
export interface Shares {
  readonly each: Integer;
  readonly more: Integer;
}

/** The tiles of all sequences and blocks of rows, dealt out evenly. */
export function sharesOf(deal: Deal): Shares {
  const zero = constant(dtypes.i32, 0);
  const sum = loop({ to: cdiv(deal.b, together), carry: zero }, (chunk, before) =>
    before.add(tileCounts(deal, chunk.mul(together)).sum()),
  );
  const all = sum.mul(deal.blocks);
  const each = all.div(zero.add(deal.ranges));
  return { each, more: all.sub(each.mul(deal.ranges)) };
}

/** The first tile of a range, which is the end of the one before. */
export function beginOfRange({ each, more }: Shares, range: Integer): Integer {
  return range.mul(each).add(range.minimum(more));
}

/** The range that has a tile. */
export function rangeOfTile({ each, more }: Shares, tile: Integer): Integer {
  const longer = more.mul(each.add(1));
  const behind = more.add(tile.sub(longer).div(each.maximum(1)));
  return tile.lt(longer).select(tile.div(each.add(1)), behind);
}

/** A sequence, and the tiles of those before it. */
export interface Place {
  readonly sequence: Integer;
  readonly before: Integer;
}

/** The sequence that a tile, counted over all sequences and blocks of rows, belongs to. */
export function sequenceOfTile(deal: Deal, tile: Integer): Place {
  const zero = constant(dtypes.i32, 0);
  const start = { sequence: zero, before: zero };
  return loop({ to: cdiv(deal.b, together), carry: start }, (chunk, { sequence, before }) => {
    const counts = tileCounts(deal, chunk.mul(together));
    const ends = counts.cumsum(0).add(before).mul(deal.blocks);
    const isOver = ends.le(tile).cast(dtypes.i32);
    const passed = isOver.mul(counts).sum();
    // Once a sequence is not over, none of those behind it is.
    return { sequence: sequence.add(isOver.sum()), before: before.add(passed) };
  });
}

/** The tiles of the sequences before one. */
export function tilesBefore(deal: Deal, sequence: Integer): Integer {
  const zero = constant(dtypes.i32, 0);
  const chunks = sequence.add(together - 1).div(together);
  return loop({ to: chunks, carry: zero }, (chunk, before) => {
    const from = chunk.mul(together);
    const isBefore = iota(dtypes.i32, [together], 0).add(from).lt(sequence);
    return before.add(tileCounts(deal, from).mul(isBefore.cast(dtypes.i32)).sum());
  });
}
