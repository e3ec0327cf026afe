/**
 * Which pieces of which tiles a block works on. Tiles seldom come to a multiple of the processors, and the last round
 * would leave most of them idle. So the steps of the tiles of the last round, and of a whole round besides, are dealt
 * out evenly, across the borders of tiles: a *stream*. Three blocks and four tiles of six steps:
 *
 *   by tiles     block 0  000000 333333        in a stream   block 0  000000 11
 *                block 1  111111                             block 1  1111 2222
 *                block 2  222222                             block 2  22 333333
 *
 * A block that begins in the middle of a tile hands its sums to the block that began the tile, which adds them to its
 * own, always in the order of k, and stores the tile. That block is at its end by then and the other one was at its
 * beginning, so that nobody waits for long. The rounds before the last ones are dealt out by tiles, which read memory
 * together.
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

/** All steps of every so many tiles. */
export function wholeTiles(
  worker: Integer,
  workers: Integer,
  tiles: Integer,
  steps: Integer,
): Segments {
  const zero = constant(dtypes.i32, 0);
  const count = tiles.sub(worker).add(workers).sub(1).div(workers);
  return {
    count,
    at: (index) => ({ tile: worker.add(index.mul(workers)), from: zero, steps, others: zero }),
  };
}

/** An even part of the steps of the last tiles, and before them whole tiles. */
export function streamedTiles(
  worker: Integer,
  workers: Integer,
  tiles: Integer,
  steps: Integer,
): Segments {
  const zero = constant(dtypes.i32, 0);
  const left = tiles.rem(workers);
  const round = left.eq(0).or(tiles.lt(workers)).select(0, workers);
  const streamed = left.add(round);
  const all = streamed.mul(steps);
  const each = all.div(workers);
  const longer = all.sub(each.mul(workers));
  /** The first step of a block: the first ones have one step more. */
  const startOf = (block: Integer): Integer => block.mul(each).add(block.minimum(longer));
  const [start, end] = [startOf(worker), startOf(worker.add(1))];
  const first = start.div(steps);
  const pieces = end.eq(start).select(0, end.sub(1).div(steps).sub(first).add(1));
  const wholes = tiles.sub(streamed).div(workers);
  const blockOf = (step: Integer): Integer => {
    const inLonger = longer.mul(each.add(1));
    const beyond = longer.add(step.sub(inLonger).div(each.maximum(1)));
    return step.lt(inLonger).select(step.div(each.add(1)), beyond);
  };
  return {
    count: pieces.add(wholes),
    at: (index) => {
      const inStream = index.lt(pieces);
      const tile = inStream.select(
        first.add(index),
        streamed.add(worker).add(index.sub(pieces).mul(workers)),
      );
      const top = tile.mul(steps);
      const from = inStream.and(index.eq(0)).select(start.sub(top), zero);
      const to = inStream.select(end.sub(top).minimum(steps), steps);
      const others = to.lt(steps).select(blockOf(top.add(steps).sub(1)).sub(worker), zero);
      return { tile, from, steps: to.sub(from), others };
    },
  };
}
