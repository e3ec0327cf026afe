/**
 * The threads that multiply, 64 rows each. Tensor cores should never wait, so what else a tile takes is done while they
 * multiply the first step of the next one: its finished pieces stay in registers until then.
 *
 *   tensor cores   tile 0, step 0  1  2 …  n │ tile 1, step 0      1  2 …
 *   lanes          where is tile 0?    round │ store tile 0, where is tile 1?
 *
 * Where there are enough steps, a piece is stored in each of the second and following ones, so that the next step is always begun in
 * time: 4096³ of bf16 took 1.6% longer on an H200 where all pieces were stored in the first step, 8192³ 1.1%.
 *
 * Threads might take turns with tiles of their own instead. Such turns took 1.14 times as long for 4096³ and 8192³ on an H200, and 1.26
 * times for 8192 × 8192 × 512. By count, tiles of 64 × 256 want 80 bytes a cycle where those of 128 × 256 want 48.
 *
 * Where registers do not suffice for two tiles, or lanes store the result themselves, each tile is stored at once.
 */
import {
  clusterArrive,
  constant,
  loop,
  setRegisters,
  waitGroup,
  when,
  zeros,
} from "../../../lang/index.ts";
import type { Scalar, Tile, Tree } from "../../../lang/index.ts";
import { handSums } from "../../../lang/pipeline/stream-k.ts";
import type { Segment } from "../../../lang/pipeline/stream-k.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { threadRows } from "../configuration.ts";
import { asHanded, fromHanded, handedPieces } from "../epilogue/stream-k-partials.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import type { VectorInputs } from "../epilogue/epilogue.ts";
import {
  finishTile,
  loadVectors,
  spreadsStores,
  storeByLanes,
  storePieceInTurn,
  storePieces,
  storeTile,
} from "../epilogue/store-tile.ts";
import { manySteps, mayDeferStores, tradedRegisters, tradesRegisters } from "../tile-shapes.ts";
import { eachSegment } from "../scheduler/work-loop.ts";
import { plainSums, roundSums, rowsOfThread, sumsFor } from "./mainloop.ts";

/** A thread multiplies its 64 rows of each tile, and stores what comes out. */
export function consumeTiles(work: Work, index: Scalar<"i32">): void {
  const { problem, recipe, configuration } = work.form;
  if (tradesRegisters(problem, configuration)) setRegisters(tradedRegisters(recipe).multiply);
  if (work.isOnce) multiplyOnce(work, index);
  else if (defersStores(work)) multiplyAhead(work, index);
  else multiplyInOrder(work, index);
  if (work.result !== undefined || work.isOnce) waitGroup(0, { read: true });
}

/** Whether a tile is stored while the next one is multiplied. */
function defersStores({ form, shapes, sides, result }: Work): boolean {
  const { problem, recipe, dealt, configuration } = form;
  // Rows of groups that lie along columns of tiles end within them, and beside an epilogue there are no registers left to find out where rows end.
  const mayWait = dealt === undefined || (!configuration.swapAB && problem.epilogue === undefined);
  const isPlain = mayWait && !sides.rows.held;
  return result !== undefined && isPlain && mayDeferStores(problem, recipe, shapes.columns);
}

/** One tile, and what the epilogue takes is loaded while its last steps are multiplied. */
function multiplyOnce(work: Work, index: Scalar<"i32">): void {
  const zero = constant(dtypes.i32, 0);
  const segment = { tile: zero, from: zero, steps: work.steps };
  const nothing = (): void => undefined;
  let vectors: readonly VectorInputs[] | undefined;
  const { product, place } = plainSums(work, segment, zero, index, {
    ...{ atFirst: nothing, atStep: nothing },
    atLast: (at) => {
      leaveCluster(work);
      vectors = loadVectors(work, at, index);
    },
  });
  storeTile(work, product, place, index, vectors);
}

/**
 * Where a block has one tile, its threads tell the other block of a pair while tensor cores multiply the last step that they will tell it nothing more. Where
 * they did at the end, they flushed caches and waited for each other behind their stores: 1000 × 3000 × 2000 took 1.009 times as long on an H200.
 */
export function leaveCluster({ form, isOnce }: Work): void {
  if (isOnce && form.configuration.cluster > 1) clusterArrive();
}

function multiplyInOrder(work: Work, index: Scalar<"i32">): void {
  const segments = work.deal();
  const sumsOf = sumsFor(work);
  const nothing = (): void => undefined;
  const meanwhile = { atFirst: nothing, atStep: nothing, atLast: nothing };
  eachSegment(work, segments, "follows", constant(dtypes.i32, 0), (given, before) => {
    const stored = (own: Work, segment: Segment): Scalar<"i32"> => {
      const { product, place, slot } = sumsOf(own, segment, before, index, meanwhile);
      const finish = (sums: Tile): void => {
        storeTile(own, sums, place, index);
      };
      finishSegment(own, product, { segment, place, index }, { finish, otherwise: nothing });
      return slot;
    };
    return whereHalved(work, given, stored, stored);
  });
}

/** What is done with a whole tile, or with half of its columns, which is a tile like others for whoever is given such work. */
function whereHalved<R extends Tree>(
  work: Work,
  segment: Segment,
  whole: (own: Work, segment: Segment) => R,
  halved: (own: Work, segment: Segment) => R,
): R {
  const { half, ...uncut } = segment;
  if (half === undefined) return whole(work, uncut);
  const columns = work.shapes.columns / 2;
  const own = {
    ...work,
    shapes: { ...work.shapes, columns },
    place: (tile: Scalar<"i32">): TilePlace => {
      const place = work.place(tile);
      return { ...place, left: notBefore(place.left.add(half.sub(1).mul(columns))) };
    },
  };
  return when(
    half.eq(0),
    () => whole(work, uncut),
    () => halved(own, segment),
  );
}

/** A tile that is finished and not stored yet, if there is one. */
type Waiting = {
  readonly isThere: Scalar<"bool">;
  readonly pieces: readonly Tile[];
  readonly place: Pick<TilePlace, "batch" | "top" | "left">;
};

/** The slot after those of the tiles that were begun, and the last one of these. */
type Begun = { readonly slot: Scalar<"i32">; readonly waiting: Waiting };

/** A tile is stored in the first step of the next one, or its pieces in the steps after that. */
function multiplyAhead(work: Work, index: Scalar<"i32">): void {
  const waiting = beginsInLoop(work) ? tilesInLoop(work, index) : tilesAhead(work, index);
  storeWaiting(work, waiting, index);
}

function beginsInLoop(work: Work): boolean {
  const { dealt, configuration } = work.form;
  // Threads without rows of a group leave a tile after its first step, which has to be found out in it.
  if (dealt !== undefined || configuration.schedule === "stream-k") return false;
  return spreadsStores(work) && Math.ceil(work.form.sizes.k / work.shapes.depth) >= manySteps;
}

function nothingWaits(work: Work): Waiting {
  const zero = constant(dtypes.i32, 0);
  const place = { batch: zero, top: zero, left: zero };
  return { isThere: zero.gt(0), pieces: emptyPieces(work), place };
}

/** Multiplies all tiles, of which the last one waits then. */
function tilesAhead(work: Work, index: Scalar<"i32">): Waiting {
  const segments = work.deal();
  const carry: Begun = { slot: constant(dtypes.i32, 0), waiting: nothingWaits(work) };
  const { waiting } = eachSegment(work, segments, "follows", carry, (given, before) => {
    const whole = (_: Work, segment: Segment): Begun => {
      let vectors: readonly VectorInputs[] | undefined;
      const { atOnce, later } = storedWhen(work, before.waiting, segment);
      const { product, place, slot } = plainSums(work, segment, before.slot, index, {
        atFirst: () => {
          if (atOnce !== undefined) storeWaiting(work, atOnce, index);
        },
        atStep: (step) => {
          if (later !== undefined) storeInStep(work, later, index, step);
        },
        atLast: (at) => {
          vectors = loadVectors(work, at, index);
        },
      });
      const { batch, top, left } = place;
      const of = { segment, place, index };
      const pieces = finishSegment(work, product, of, {
        finish: (sums) => finishTile(work, sums, place, index, vectors),
        otherwise: () => emptyPieces(work),
      });
      const isThere = waits(work, pieces, segment, place, index);
      return { slot, waiting: { isThere, pieces, place: { batch, top, left } } };
    };
    return whereHalved(work, given, whole, (own, segment) => ({
      slot: storedHalf(work, own, segment, before, index),
      waiting: nothingWaits(work),
    }));
  });
  return waiting;
}

/** When a tile that waits is stored: in the first step of what comes then, or in those after it, of which a part of a tile may have too few. */
function storedWhen(
  work: Work,
  waiting: Waiting,
  { steps }: Segment,
): { readonly atOnce?: Waiting; readonly later?: Waiting } {
  if (!spreadsStores(work)) return { atOnce: waiting };
  if (work.form.configuration.schedule !== "stream-k") return { later: waiting };
  const isLong = steps.gt(waiting.pieces.length);
  return {
    atOnce: { ...waiting, isThere: waiting.isThere.and(isLong.not()) },
    later: { ...waiting, isThere: waiting.isThere.and(isLong) },
  };
}

/** Multiplies half of the columns of a tile, or a part of its steps, and stores it at once, since no tile comes after it; the one that waits is stored before. */
function storedHalf(
  work: Work,
  own: Work,
  segment: Segment,
  { slot: first, waiting }: Begun,
  index: Scalar<"i32">,
): Scalar<"i32"> {
  const nothing = (): void => undefined;
  const { product, place, slot } = plainSums(own, segment, first, index, {
    atFirst: () => {
      storeWaiting(work, waiting, index);
    },
    ...{ atStep: nothing, atLast: nothing },
  });
  const finish = (sums: Tile): void => {
    storeTile(own, sums, place, index);
  };
  finishSegment(own, product, { segment, place, index }, { finish, otherwise: nothing });
  return slot;
}

/**
 * Whether a thread's rows of a tile wait to be stored by TMA, which knows the end of the array alone: rows of which some are another group's
 * are stored here, as far as they go.
 */
function waits(
  work: Work,
  pieces: readonly Tile[],
  { from }: Segment,
  place: TilePlace,
  index: Scalar<"i32">,
): Scalar<"bool"> {
  const isFinished = from.eq(0);
  const { end } = place;
  if (end === undefined) return isFinished;
  const top = notBefore(place.top).add(index.mul(threadRows));
  const isInside = top.add(threadRows).le(end);
  when(isFinished.and(top.lt(end)).and(isInside.not()), () => {
    storeByLanes(work, pieces, place, index);
  });
  return isFinished.and(isInside);
}

/** Likewise, where tiles have many steps; no tile is divided among blocks then. */
function tilesInLoop(work: Work, index: Scalar<"i32">): Waiting {
  const segments = work.deal();
  const carry: Begun = { slot: constant(dtypes.i32, 0), waiting: nothingWaits(work) };
  const { waiting } = eachSegment(work, segments, "follows", carry, (segment, before) => {
    let vectors: readonly VectorInputs[] | undefined;
    const { product, place, slot } = roundSums(work, segment, before.slot, index, {
      atStep: (step) => {
        storeInStep(work, before.waiting, index, step);
      },
      atLast: (at) => {
        vectors = loadVectors(work, at, index);
      },
    });
    const pieces = finishTile(work, product, place, index, vectors);
    const waiting = { isThere: segment.from.eq(0), pieces, place };
    return { slot, waiting };
  });
  return waiting;
}

function emptyPieces({ form, shapes: { columns, piece } }: Work): readonly Tile[] {
  const { problem, configuration } = form;
  const shape = configuration.swapAB ? [piece, threadRows] : [threadRows, piece];
  return Array.from({ length: columns / piece }, () => zeros(problem.out.dtype, shape));
}

function storeWaiting(work: Work, { isThere, pieces, place }: Waiting, index: Scalar<"i32">): void {
  when(isThere, () => {
    if (spreadsStores(work))
      loop({ to: pieces.length }, (turn) => {
        storePieceInTurn(work, pieces, place, index, turn);
      });
    else storePieces(work, pieces, place, index);
  });
}

/** Stores the piece of a waiting tile whose turn it is: the first one in the second step. */
function storeInStep(
  work: Work,
  { isThere, pieces, place }: Waiting,
  index: Scalar<"i32">,
  step: Scalar<"i32">,
): void {
  when(step.le(pieces.length), () => {
    when(isThere, () => {
      storePieceInTurn(work, pieces, place, index, step.sub(1));
    });
  });
}

/** What a thread has summed. */
interface OwnSegment {
  readonly segment: Segment;
  readonly place: TilePlace;
  readonly index: Scalar<"i32">;
}

/** Hands the sums to the block that began the tile, or adds those of others to them and finishes the tile. */
function finishSegment<R extends Tree | void>(
  work: Work,
  product: Tile,
  { segment, place, index }: OwnSegment,
  { finish, otherwise }: { readonly finish: (sums: Tile) => R; readonly otherwise: () => R },
): R {
  const { handed, worker, rank } = work;
  if (handed === undefined) return finish(product);
  const { cluster, consumers } = work.form.configuration;
  const part = cluster === 1 ? index : rank.mul(consumers).add(index);
  const whole = (sums: Tile): R => finish(fromHanded(sums));
  const holder = { worker, part, needed: rowsOfThread(work, place, index) };
  const handing = { ...handed, pieces: handedPieces(work.shapes.columns) };
  return handSums(handing, segment, holder, asHanded(product), whole, otherwise);
}
