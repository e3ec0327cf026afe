/**
 * What tiles of a pass tell each other, and how they look back. Each has a word for each digit, which says whether a number is
 * there, what it counts, and the number:
 *
 *   tile          0            1            2            3
 *   told          2|12         2|20         1|9          1|7           state, and keys of digit d
 *                                                                      tile 3 reads 9, then 20: 29 keys are before its own
 *   after that    2|12         2|20         1|9          2|36
 */
import { dtypes } from "../../formats/dtype.ts";
import { full, iota, slice, whileLoop, zeros } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";

const { i32, u32 } = dtypes;

/** Rows of a pass's state: the totals of digits, one whose first element is the next ticket, and what each tile has told. */
export const [totalsSlot, ticketSlot, toldSlot] = [0, 1, 2] as const;

/** A word that is told: how many keys, and above them 1 for those of the tile or 2 for those of all tiles up to it. */
const stateBit = 30;
const ofTile = 2 ** stateBit;

/** Rows are shorter than this, so that numbers of keys leave room for the state. */
export const mostKeys = ofTile - 1;

/** Tells how many keys of some digits the tile has; `told` are the words of these. */
export function tell(told: Ref<"u32">, tile: Scalar<"i32">, totals: Tile<"i32">): void {
  const own = totals.cast(u32).add(ofTile);
  // The first tile knows all before itself, which is nothing.
  told.atomicAdd(tile.eq(0).select(own.add(ofTile), own));
}

/** Tiles that are looked at together. */
const together = 4;

/** Keys of digits, from the first of them on, in the tiles before; then this tile can tell it, too. */
export function hear(
  states: Ref<"u32">,
  tile: Scalar<"i32">,
  first: Scalar<"i32">,
  count: number,
): Tile<"i32"> {
  const digit = iota(i32, [count], { axis: 0 }).add(first);
  const nothing = zeros(u32, [count]);
  const carry = {
    at: full(i32, [count], 0).add(tile.sub(1)),
    sum: nothing,
    open: full(i32, [count], 0).add(tile).gt(0),
  };
  const heard = whileLoop(
    carry,
    ({ open }) => open.reduce("or"),
    ({ at, sum, open }) => {
      const words = Array.from({ length: together }, (_, back) =>
        states
          .at(at.sub(back).maximum(0).add(toldSlot), digit)
          .atomicAdd(nothing, { where: open.and(at.ge(back)) }),
      );
      let goesOn = open;
      for (const [back, word] of words.entries()) {
        const state = word.shr(stateBit);
        const isThere = goesOn.and(state.ne(0));
        sum = sum.add(isThere.select(word.and(mostKeys), nothing));
        at = at.sub(isThere.cast(i32));
        open = open.and(goesOn.and(state.eq(2)).not());
        if (back < together - 1) goesOn = goesOn.and(state.eq(1));
      }
      return { at, sum, open };
    },
  );
  const news = tile.eq(0).select(nothing, heard.sum.add(ofTile));
  states.at(tile.add(toldSlot), slice(first, count)).atomicAdd(news);
  return heard.sum.cast(i32);
}
