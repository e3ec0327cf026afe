/**
 * Which steps of which tiles a block works on. Tiles seldom come to a multiple of the processors, and the last round would
 * leave most of them idle. So the tiles of the last round may be *split*: each is cut along k into as many parts as there
 * are processors for. Six blocks and eight tiles of nine steps:
 *
 *   by tiles   block 0  000000000 666666666          split   block 0  000000000 666
 *              block 1  111111111 777777777                  block 1  111111111    666
 *              block 2  222222222                            block 2  222222222       666
 *              …                                             …
 *              block 5  555555555                            block 5  555555555       777
 *
 * A block with a later part hands its sums to the block with the first one, which adds them to its own, always in the
 * order of k, and stores the tile.
 */
import { constant } from "../../lang/index.ts";
import type { Scalar } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";

type Integer = Scalar<"i32">;

/** Consecutive steps of one tile. */
export interface Segment {
  readonly tile: Integer;
  /** The first step, and how many there are. */
  readonly from: Integer;
  readonly steps: Integer;
  /** How many blocks, those after this one, have the rest of the tile. Meaningful where `from` is 0. */
  readonly others: Integer;
}

export interface Segments {
  readonly count: Integer;
  readonly at: (index: Integer) => Segment;
}

/** What there is to be dealt out, and to whom. */
export interface Deal {
  readonly worker: Integer;
  readonly workers: Integer;
  readonly tiles: Integer;
  readonly steps: Integer;
}

/** All steps of every so many tiles. */
export function wholeTiles({ worker, workers, tiles, steps }: Deal): Segments {
  const zero = constant(dtypes.i32, 0);
  return {
    count: tiles.sub(worker).add(workers).sub(1).div(workers),
    at: (index) => ({ tile: worker.add(index.mul(workers)), from: zero, steps, others: zero }),
  };
}

/** Whole tiles, and a part of one of those of the last round. */
export function splitTiles({ worker, workers, tiles, steps }: Deal): Segments {
  const zero = constant(dtypes.i32, 0);
  const rounds = tiles.div(workers);
  const left = tiles.sub(rounds.mul(workers));
  const parts = workers.div(left.maximum(1)).minimum(steps);
  const each = steps.add(parts).sub(1).div(parts);
  // As many as have a step: rounding up may leave none for the last ones.
  const used = steps.add(each).sub(1).div(each);
  const mine = worker.div(used);
  const part = worker.sub(mine.mul(used));
  const start = part.mul(each);
  const isLeft = mine.lt(left);
  return {
    count: isLeft.select(rounds.add(1), rounds),
    at: (index) => {
      const isPart = index.eq(rounds);
      return {
        tile: isPart.select(rounds.mul(workers).add(mine), worker.add(index.mul(workers))),
        from: isPart.select(start, zero),
        steps: isPart.select(each.minimum(steps.sub(start)), steps),
        others: isPart.and(part.eq(0)).select(used.sub(1), zero),
      };
    },
  };
}
