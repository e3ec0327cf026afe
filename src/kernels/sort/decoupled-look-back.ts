/**
 * Decoupled look-back (Merrill and Garland) for a radix pass. Every tile has a status word for each digit: a state, and a number of keys.
 * State 1 is the tile's own aggregate, 2 the inclusive prefix up to the tile:
 *
 *   tile          0            1            2            3
 *   published     2|12         2|20         1|9          1|7           state, and keys of digit d
 *                                                                      tile 3 reads 9, then 20: its exclusive prefix is 29
 *   after that    2|12         2|20         1|9          2|36
 */
import { dtypes } from "../../formats/dtype.ts";
import { full, iota, slice, whileLoop, zeros } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";

const { i32, u32 } = dtypes;

/** Rows in the state of a pass: digit totals, one whose first element is the next ticket, and the status words of each tile. */
export const [totalsRow, ticketRow, firstTileRow] = [0, 1, 2] as const;

/** A status word: the number of keys, and above it the state, 1 for an aggregate or 2 for an inclusive prefix. */
const stateBit = 30;
const aggregate = 2 ** stateBit;

/** Rows are shorter than this: a number of keys leaves the upper bits to the state. */
export const mostKeys = aggregate - 1;

/** Publishes the aggregates of some digits of a tile; `status` are the status words of these. */
export function publishAggregates(
  status: Ref<"u32">,
  tile: Scalar<"i32">,
  totals: Tile<"i32">,
): void {
  const own = totals.cast(u32).add(aggregate);
  // The aggregate of the first tile is its inclusive prefix.
  status.atomicAdd(tile.eq(0).select(own.add(aggregate), own));
}

/** Tiles that one step of the look-back reads. */
const window = 4;

/** The exclusive prefixes of digits, from the first on, by look-back; then publishes the inclusive prefixes. */
export function lookBack(
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
  const prefix = whileLoop(
    carry,
    ({ open }) => open.reduce("or"),
    ({ at, sum, open }) => {
      const words = Array.from({ length: window }, (_, back) =>
        states
          .at(at.sub(back).maximum(0).add(firstTileRow), digit)
          .atomicAdd(nothing, { where: open.and(at.ge(back)) }),
      );
      let goesOn = open;
      for (const [back, word] of words.entries()) {
        const state = word.shr(stateBit);
        const isThere = goesOn.and(state.ne(0));
        sum = sum.add(isThere.select(word.and(mostKeys), nothing));
        at = at.sub(isThere.cast(i32));
        open = open.and(goesOn.and(state.eq(2)).not());
        if (back < window - 1) goesOn = goesOn.and(state.eq(1));
      }
      return { at, sum, open };
    },
  );
  const inclusive = tile.eq(0).select(nothing, prefix.sum.add(aggregate));
  states.at(tile.add(firstTileRow), slice(first, count)).atomicAdd(inclusive);
  return prefix.sum.cast(i32);
}
