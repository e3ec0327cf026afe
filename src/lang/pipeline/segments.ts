/**
 * Which steps of which tiles a block works on. Tiles seldom come to a multiple of the processors, and the last round would
 * leave most of them idle. So the tiles of the last round may be *split*: each is cut along the steps into as many parts as
 * there are processors for. Six blocks and eight tiles of nine steps:
 *
 *   whole      block 0  000000000 666666666          split   block 0  000000000 666
 *              block 1  111111111 777777777                  block 1  111111111    666
 *              block 2  222222222                            block 2  222222222       666
 *              …                                             …
 *              block 5  555555555                            block 5  555555555       777
 *
 * A block with a later part hands its sums to the block with the first one, which adds them to its own, always in the
 * order of the steps, and is the one that has the tile in the end. Where there are processors for two parts of a tile, these may be halves of its columns
 * instead, and nobody hands on anything.
 */
import { i32 } from "../../formats/dtype.ts";
import { loop, when } from "../control.ts";
import { concatenate, constant } from "../create.ts";
import type { Ref } from "../ref.ts";
import type { Scalar } from "../scalar.ts";
import type { Semaphore } from "../sync.ts";
import type { Tile } from "../tile.ts";
import type { Tree } from "../tree.ts";
import { slice } from "../window.ts";

type Integer = Scalar<"i32">;

/** Consecutive steps of one tile. */
export interface Segment {
  readonly tile: Integer;
  /** The first step, and how many there are. */
  readonly from: Integer;
  readonly steps: Integer;
  /** How many blocks, those after this one, have the rest of the tile. Meaningful where `from` is 0. */
  readonly others: Integer;
  /** 1 or 2 where it is one of two halves of the tile's columns, else 0; undefined where tiles are never cut between columns. */
  readonly half?: Integer | undefined;
}

/** What one block works on: a loop over `bounds`, with a segment for every index. */
export interface Segments {
  readonly bounds: { readonly from: Integer; readonly to: Integer; readonly step: Integer };
  readonly at: (index: Integer) => Segment;
}

/** What there is to be dealt out, and to whom. */
export interface Deal {
  readonly worker: Integer;
  readonly workers: Integer;
  readonly tiles: Integer;
  readonly steps: Integer;
  /** Parts that a tile is cut into at most; as many as there are processors for unless told. */
  readonly mostParts?: number;
  /** Whether two parts of a tile are halves of its columns. */
  readonly halves?: boolean;
}

/** Whole tiles, and a part of one of those of the last round. */
export function splitTiles({
  worker,
  workers,
  tiles,
  steps,
  mostParts,
  halves = false,
}: Deal): Segments {
  const zero = constant(i32, 0);
  const rounds = tiles.div(workers);
  const left = tiles.sub(rounds.mul(workers));
  // A tile without steps has one part, too.
  const most = mostParts === undefined ? steps.maximum(1) : steps.maximum(1).minimum(mostParts);
  const fitting = workers.div(left.maximum(1)).minimum(most);
  const isHalved = halves ? fitting.eq(2) : undefined;
  const parts = isHalved?.select(1, fitting) ?? fitting;
  const each = steps.add(parts).sub(1).div(parts);
  // As many as have a step: rounding up may leave none for the last ones.
  const used = steps.add(each).sub(1).div(each.maximum(1)).maximum(1);
  const blocks = isHalved?.select(2, used) ?? used;
  const mine = worker.div(blocks);
  const part = worker.sub(mine.mul(blocks));
  const start = isHalved?.select(0, part.mul(each)) ?? part.mul(each);
  const isLeft = mine.lt(left);
  return {
    bounds: { from: zero, to: isLeft.select(rounds.add(1), rounds), step: constant(i32, 1) },
    at: (index) => {
      const isPart = index.eq(rounds);
      return {
        tile: isPart.select(rounds.mul(workers).add(mine), worker.add(index.mul(workers))),
        from: isPart.select(start, zero),
        steps: isPart.select(each.minimum(steps.sub(start)), steps),
        others: isPart.and(part.eq(0)).select(used.sub(1), zero),
        ...(isHalved && { half: isPart.and(isHalved).select(part.add(1), 0) }),
      };
    },
  };
}

/** Where each block leaves the sums of a tile that another one began, and tells of it, thread by thread. */
export interface Handing {
  /** [blocks, threads, …sums] in global memory. */
  readonly sums: Ref;
  /** [blocks, threads] */
  readonly told: Semaphore;
  /** In how many parts along their first axis sums of others are added, one after the other, so that lanes need not hold all of both; 1 unless told. */
  readonly pieces?: number;
}

/** Who has sums of a segment: which block of all, and which of its computing threads. */
export interface Holder {
  readonly worker: Integer;
  readonly part: Integer | number;
  /** Whether anybody asks for what it has summed; so unless told. */
  readonly needed?: Scalar<"bool"> | undefined;
}

/**
 * The number of a block from its index in the grid. Blocks are numbered from the last one, so that a block waits for sums
 * of blocks with higher numbers alone: those that were started before it.
 */
export function workerOf(index: Integer, workers: Integer): Integer {
  return workers.sub(1).sub(index);
}

/** Hands sums to the block that began the tile, and gives `otherwise`; or adds those of others to them, and gives `whole` of all. */
export function handSums<R extends Tree | void>(
  { sums, told, pieces = 1 }: Handing,
  { from, others }: Segment,
  { worker, part, needed }: Holder,
  product: Tile,
  whole: (sums: Tile) => R,
  otherwise: () => R,
): R {
  return when<R>(
    from.gt(0),
    () => {
      const hand = (): void => {
        sums.at(worker, part).store(product);
        told.at(worker, part).signal();
      };
      if (needed === undefined) hand();
      else when(needed, hand);
      return otherwise();
    },
    () => {
      const asked = needed === undefined ? others : needed.select(others, 0);
      const [first = 1, ...rest] = product.shape;
      const own = Array.from({ length: pieces }, (_, piece) =>
        product.slice([(piece * first) / pieces, ...rest.map(() => 0)], [first / pieces, ...rest]),
      );
      const added = loop({ to: asked, carry: own }, (position, before) => {
        const other = worker.add(1).add(position);
        told.at(other, part).wait(1, { decrement: true });
        const others = sums.at(other, part);
        return before.map((each, piece) =>
          each.add(others.at(slice((piece * first) / pieces, first / pieces)).load()),
        );
      });
      return whole(concatenate(added, 0));
    },
  );
}
