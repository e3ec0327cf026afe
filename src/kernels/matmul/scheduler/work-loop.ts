/**
 * How the threads of a block go from one piece of work to the next. Tiles are dealt to blocks in rounds, and each thread counts for itself: blocks whose numbers
 * follow each other have tiles side by side, and are on processors that ask the cache together. Where groups of rows end, tiles take less time, and blocks come
 * apart. So those of the last rounds may be taken from a counter in global memory (`lang/pipeline/dynamic-tile-counter.ts`): a block's own number stands for its tiles of
 * the first rounds, and every further one for a tile.
 *
 *   tiles 1 and 4 are short, two rounds are dealt       block 0    0: 0000 2222      4: 6666
 *                                                       block 1    1: 1 3333   2: 4  3: 5555
 */
import { loop } from "../../../lang/index.ts";
import type { Scalar, Tree } from "../../../lang/index.ts";
import { countedSource, tilesFrom } from "../../../lang/pipeline/dynamic-tile-counter.ts";
import type { Segment, Segments } from "../../../lang/pipeline/stream-k.ts";
import type { Work } from "../kernel-context.ts";

type Body<S extends Tree> = (segment: Segment, state: S, isFirst: () => Scalar<"bool">) => S;

/** Runs the body for every piece of this block's work, with values handed from one to the next. */
export function eachSegment<S extends Tree>(
  { counting, worker }: Work,
  { bounds, at }: Segments,
  kind: "leads" | "follows",
  state: S,
  body: Body<S>,
): S {
  const inRounds = (of: Segments["bounds"], start: S): S =>
    loop({ ...of, carry: start }, (index, carried) =>
      body(at(index), carried, () => index.eq(of.from)),
    );
  if (counting === undefined) return inRounds(bounds, state);
  const { counter, mailbox, blocks, rounds } = counting;
  const skipped = rounds.sub(1).mul(blocks);
  const count = { counter, total: bounds.to.sub(skipped), blocks, block: worker };
  return tilesFrom(
    countedSource(count, false),
    { kind, mailbox },
    () => [],
    state,
    (number, _, carried, findNext) => {
      const isOwn = number.lt(blocks);
      const from = isOwn.select(number, number.add(skipped));
      const to = isOwn.select(skipped.add(blocks), from.add(1)).minimum(bounds.to);
      const after = inRounds({ from: from.maximum(0), to, step: blocks.maximum(1) }, carried);
      // Whoever multiplies waits for the number, which comes when all of the tile has been copied: all of its slots are given back by now.
      findNext();
      return after;
    },
  );
}
