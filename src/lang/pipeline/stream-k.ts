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
 * order of the steps, and is the one that has the tile in the end. Sums take time to hand on: a tile may also be cut between columns, into two halves (a and b), each of
 * which is cut along the steps. The block that began a half then adds half as many sums of half as many others. Where there is a processor for an odd part,
 * it has the last steps of both halves. One tile of twelve steps, in four and in five parts:
 *
 *   block 0   a a a a a a                            block 0   a a a a a
 *   block 1   b b b b b b                            block 1   b b b b b
 *   block 2               a a a a a a                block 2             a a a a a
 *   block 3               b b b b b b                block 3             b b b b b
 *                                                    block 4                       + +
 */
import { f32, i32 } from "../../formats/dtype.ts";
import { loop, when } from "../control.ts";
import { concatenate, constant } from "../create.ts";
import type { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import type { Semaphore } from "../sync.ts";
import type { Tile } from "../tile.ts";
import type { Tree } from "../tree.ts";
import { slice } from "../window.ts";

type Integer = Scalar<"i32">;

/** Consecutive steps of one tile, or of half of its columns. */
export interface Segment {
  readonly tile: Integer;
  /** The first step, and how many there are. */
  readonly from: Integer;
  readonly steps: Integer;
  /** Who has sums of the same numbers; nobody where tiles are whole. */
  readonly shared?: SharedSums | undefined;
  /** 1 or 2 where it is of one of two halves of the tile's columns, else 0; undefined where tiles are never cut between columns. */
  readonly half?: Integer | undefined;
}

/** Which blocks have parts of a tile or of half of it, whose sums are added up by the first of them. */
export interface SharedSums {
  /** Who has the first part. */
  readonly starter: Integer;
  /** How many have others. */
  readonly others: Integer;
  /** How far their numbers are apart, and the greatest of them. */
  readonly apart: Integer | number;
  readonly last: Integer;
  /** Whether the sums are of both halves, of which the block after the starter has begun the other one; not by default. */
  readonly isOfBoth?: Scalar<"bool"> | undefined;
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
  /** Parts that a tile is cut into at most; as many as there are processors for by default. */
  readonly mostParts?: number;
  /** Whether parts of a tile may be of half of its columns. */
  readonly halves?: boolean;
}

/** Steps of half the columns that take as long as so many of all: of 128 rows and 128 columns, one took 0.38 µs on an H200, and of 256 columns 0.69. */
const [halfSteps, wholeSteps] = [20, 11];

/**
 * Steps of a tile, for each part but one, up to which parts are of half its columns: with more, steps of halves take longer than the sums that are not handed on. On an H200, µs
 * of products with tiles of 128 × 256, beside parts of whole tiles:
 *
 *   2304 × 2816 × 4096      64 steps, 2 parts     70.6   70.9
 *   2304 × 2816 × 8192     128 steps, 2 parts    135.6  134.1
 *   2048 × 2816 × 8192     128 steps, 3 parts    119.7  120.2
 *   1920 × 2816 × 16384    256 steps, 4 parts    221.9  218.8
 *   2304 × 2048 × 4096      64 steps, 11 parts    54.3   65.6
 *   1664 × 2816 × 16384    256 steps, 12 parts   194.1  199.9
 */
const halvedSteps = 64;

/**
 * Parts of halves of columns there are at most, squared, for each step of a tile: to add sums of 64 KB took the block that began a half 0.75 µs, which is
 * as long as two steps. 2176 × 2048 × 8192 took 96.6 µs in 16 parts, 97.5 in 12, 98.2 in 22 and 100.8 in 8 and in 33.
 */
const mostSquared = 2;

/** How the tiles of the last round are cut. */
interface Cut {
  /** Parts along the steps, and how many steps each has but the last one. */
  readonly parts: Integer;
  readonly each: Integer;
  /** Whether each is cut between columns, too, and whether one more part of the last steps is not; undefined where none is ever. */
  readonly halved?: { readonly isHalved: Scalar<"bool">; readonly isOdd: Scalar<"bool"> };
}

/** Parts along the steps alone. */
function cutAlong(steps: Integer, fitting: Integer): Cut {
  const each = steps.add(fitting).sub(1).div(fitting);
  // As many as have a step: rounding up may leave none for the last ones.
  return { parts: steps.add(each).sub(1).div(each.maximum(1)).maximum(1), each };
}

/** Likewise, or of halves: two a part, and where there is a processor left, one part of the last steps that is of both. */
function cutAcross(steps: Integer, fitting: Integer): Cut {
  const isHalved = fitting.ge(2).and(steps.le(fitting.sub(1).mul(halvedSteps)));
  const pairs = fitting.div(2).maximum(1);
  const along = cutAlong(steps, isHalved.select(pairs, fitting));
  const most = pairs.mul(halfSteps).add(wholeSteps);
  // No more than leave a step for the odd part: there are no more parts than `mostHalved`.
  const before = steps.mul(halfSteps).add(most).sub(1).div(most);
  const isOdd = isHalved.and(fitting.and(1).eq(1));
  return {
    parts: isOdd.select(pairs, along.parts),
    each: isOdd.select(before, along.each),
    halved: { isHalved, isOdd },
  };
}

function mostHalved(steps: Integer): Integer {
  return steps.mul(mostSquared).cast(f32).sqrt({ approximate: false }).cast(i32);
}

/** Whether so many parts of a tile are of half its columns, where they may be. */
export function hasHalves(parts: number, steps: number): boolean {
  return parts >= 2 && steps <= (parts - 1) * halvedSteps;
}

/** How tiles of the last round are cut, where the host knows how many there are. */
export interface KnownCut {
  /** As those of `Cut`. */
  readonly parts: number;
  readonly each: number;
  readonly isHalved: boolean;
  /** How many others the sums of a tile, or of half of it, are handed on by. */
  readonly others: number;
}

/** The cut of a tile that is none. */
export function wholeTile(steps: number): KnownCut {
  return { parts: 1, each: steps, isHalved: false, others: 0 };
}

/** What `splitTiles` finds. */
export function knownCut(tiles: number, workers: number, steps: number, halves: boolean): KnownCut {
  const left = tiles % workers;
  const most = halves ? Math.min(steps, Math.floor(Math.sqrt(mostSquared * steps))) : steps;
  const fitting = left === 0 ? 1 : Math.min(Math.floor(workers / left), Math.max(1, most));
  const isHalved = halves && hasHalves(fitting, steps);
  const pairs = Math.floor(fitting / 2);
  const before = Math.ceil((steps * halfSteps) / (pairs * halfSteps + wholeSteps));
  const isOdd = isHalved && fitting % 2 === 1;
  const each = isOdd ? before : Math.ceil(steps / (isHalved ? pairs : fitting));
  const parts = isOdd ? pairs : Math.max(1, Math.ceil(steps / Math.max(1, each)));
  return { parts, each, isHalved, others: parts - 1 + (isOdd ? 1 : 0) };
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
  const some = mostParts === undefined ? steps : steps.minimum(mostParts);
  const most = halves ? some.minimum(mostHalved(steps)) : some;
  const fitting = workers.div(left.maximum(1)).minimum(most.maximum(1));
  const { parts, each, halved } = (halves ? cutAcross : cutAlong)(steps, fitting);
  const odd = halved?.isOdd.select(1, zero) ?? zero;
  const blocks = halved?.isHalved.select(parts.mul(2).add(odd), parts) ?? parts;
  const mine = worker.div(blocks);
  const place = worker.sub(mine.mul(blocks));
  const base = worker.sub(place);
  const part = halved?.isHalved.select(place.shr(1), place) ?? place;
  const isOfBoth = halved?.isOdd.and(part.eq(parts));
  const half =
    halved && isOfBoth && halved.isHalved.and(isOfBoth.not()).select(place.and(1).add(1), 0);
  const start = part.mul(each);
  const isLeft = mine.lt(left);
  return {
    bounds: { from: zero, to: isLeft.select(rounds.add(1), rounds), step: constant(i32, 1) },
    at: (index) => {
      const isPart = index.eq(rounds);
      return {
        tile: isPart.select(rounds.mul(workers).add(mine), worker.add(index.mul(workers))),
        from: isPart.select(start, zero),
        steps: isPart.select(each.minimum(steps.sub(start)), steps),
        shared: {
          starter: half === undefined ? base : base.add(half.sub(1).maximum(0)),
          others: isPart.and(part.eq(0)).select(parts.sub(1).add(odd), zero),
          apart: halved?.isHalved.select(2, constant(i32, 1)) ?? 1,
          last: base.add(blocks).sub(1),
          isOfBoth,
        },
        ...(half && { half: isPart.select(half, 0) }),
      };
    },
  };
}

/** Where each block leaves the sums of a tile that another one began, and the flags that say they are there, one a thread. */
export interface Handing {
  /** [blocks, threads, …sums] in global memory. */
  readonly sums: Ref;
  /** [blocks, threads] */
  readonly flags: Semaphore;
  /** In how many parts along their first axis sums of others are added, one after the other, so that lanes need not hold all of both; 1 by default. */
  readonly pieces?: number;
}

/** Who has sums of a segment: which block of all, and which of its computing threads. */
export interface Holder {
  readonly worker: Integer;
  readonly part: Integer | number;
  /** Whether anybody asks for what it has summed; so by default. */
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
  handing: Handing,
  segment: Segment,
  holder: Holder,
  product: Tile,
  whole: (sums: Tile) => R,
  otherwise: () => R,
): R {
  const { shared, from } = segment;
  if (shared === undefined) return whole(product);
  const { needed } = holder;
  return when<R>(
    from.gt(0),
    () => {
      const hand = (): void => {
        leaveSums(handing, segment, shared, holder, product);
      };
      if (needed === undefined) hand();
      else when(needed, hand);
      return otherwise();
    },
    () => {
      const asked = needed?.select(shared.others, 0) ?? shared.others;
      return whole(addOthers(handing, segment, { ...shared, others: asked }, holder, product));
    },
  );
}

/** Where sums of a segment begin among those of a tile, along their first axis, of which they are so many. */
function sumsStart({ half }: Segment, count: number): Integer | number {
  return half === undefined ? 0 : half.sub(1).maximum(0).mul(count);
}

/** Leaves sums for the block that began the tile, or for those that began its halves. */
function leaveSums(
  { sums, flags }: Handing,
  segment: Segment,
  { starter, isOfBoth }: SharedSums,
  { worker, part }: Holder,
  product: Tile,
): void {
  const [count = 1] = product.shape;
  sums
    .at(worker, part)
    .at(slice(sumsStart(segment, count), count))
    .store(product);
  flags.at(starter, part).signal();
  if (isOfBoth !== undefined)
    when(isOfBoth, () => {
      flags.at(starter.add(1), part).signal();
    });
}

/** Waits until all others have left their sums, and adds these in the order of the steps. */
function addOthers(
  { sums, flags, pieces = 1 }: Handing,
  segment: Segment,
  { others, apart, last }: SharedSums,
  { worker, part }: Holder,
  product: Tile,
): Tile {
  const [count = 1, ...rest] = product.shape;
  const each = count / pieces;
  const start = sumsStart(segment, count);
  const own = Array.from({ length: pieces }, (_, piece) =>
    product.slice([piece * each, ...rest.map(() => 0)], [each, ...rest]),
  );
  when(others.gt(0), () => {
    flags.at(worker, part).wait(others, { decrement: true });
  });
  const added = loop({ to: others, carry: own }, (position, before) => {
    const other = sums.at(worker.add(position.add(1).mul(apart)).minimum(last), part);
    return before.map((sum, piece) => {
      const from = typeof start === "number" ? piece * each : start.add(piece * each);
      return sum.add(other.at(slice(from, each)).load());
    });
  });
  return concatenate(added, { axis: 0 });
}
