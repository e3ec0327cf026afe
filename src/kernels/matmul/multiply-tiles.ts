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
 * Where registers do not suffice for two tiles, or lanes store the result themselves, each tile is stored at once.
 */
import {
  accumulator,
  commitShared,
  constant,
  loop,
  setRegisters,
  slice,
  waitGroup,
  wgmma,
  when,
  finiteCorrections,
  zeros,
} from "../../lang/index.ts";
import type { Accumulator, Ref, Scalar, Tile, Tree } from "../../lang/index.ts";
import { handSums } from "../../lang/pipeline/segments.ts";
import type { Segment } from "../../lang/pipeline/segments.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { threadRows } from "./configuration.ts";
import { computedRows } from "./computed-rows.ts";
import { following } from "./copy-tiles.ts";
import { doubleSums } from "./double-sums.ts";
import { heldRows, orderedSums } from "./held-rows.ts";
import { notBefore } from "./order.ts";
import type { TilePlace } from "./order.ts";
import type { Work } from "./persistent.ts";
import { prologueOf } from "./problem.ts";
import type { Prologue } from "./prologue.ts";
import { columnsOfTile, rowsOfTile } from "./sides.ts";
import { unpackedMetadata } from "./sparse-weights.ts";
import type { VectorInputs } from "./epilogue.ts";
import { finishTile, loadVectors, spreadsStores, storePieces, storeTile } from "./store-tile.ts";
import { mayDeferStores, tradedRegisters, tradesRegisters } from "./tile-shapes.ts";

/** A thread multiplies its 64 rows of each tile, and stores what comes out. */
export function multiplyTiles(work: Work, index: Scalar<"i32">): void {
  const { problem, recipe, configuration } = work.form;
  if (tradesRegisters(problem, configuration)) setRegisters(tradedRegisters(recipe).multiply);
  if (defersStores(work)) multiplyAhead(work, index);
  else multiplyInOrder(work, index);
  if (work.result !== undefined) waitGroup(0, { read: true });
}

/** Whether a tile is stored while the next one is multiplied. */
function defersStores({ form, shapes, sides, result }: Work): boolean {
  const { problem, recipe, dealt } = form;
  const isPlain = dealt === undefined && !sides.rows.held;
  return result !== undefined && isPlain && mayDeferStores(problem, recipe, shapes.columns);
}

/** Whether lanes hold a part of what is multiplied in registers: an operand that a prologue makes, one that lies across k, or metadata. */
function holdsOperand({ form: { problem }, sides }: Work): boolean {
  return problem.sparse || sides.rows.held || prologueOf(problem) !== undefined;
}

function multiplyInOrder(work: Work, index: Scalar<"i32">): void {
  const segments = work.deal();
  const sumsOf = sumsFor(work);
  const nothing = (): void => undefined;
  const meanwhile = { atFirst: nothing, atStep: nothing, atLast: nothing };
  loop({ to: segments.count, carry: constant(dtypes.i32, 0) }, (position, before) => {
    const segment = segments.at(position);
    const { product, place, slot } = sumsOf(work, segment, before, index, meanwhile);
    const finish = (sums: Tile): void => {
      storeTile(work, sums, place, index);
    };
    finishSegment(work, product, segment, index, { finish, otherwise: nothing });
    return slot;
  });
}

/** How the products of steps are added up. */
function sumsFor(work: Work): (...given: Parameters<typeof plainSums>) => Sums {
  const { recipe } = work.form;
  if (recipe.instruction === "mma")
    return (_, segment, first, index) =>
      doubleSums(work, segment, first, index, (slot) => {
        release(work, slot);
      });
  if (recipe.promoted) return promotedSums;
  return holdsOperand(work) ? heldSums : plainSums;
}

/** A tile that is finished and not stored yet, if there is one. */
type Waiting = {
  readonly isThere: Scalar<"bool">;
  readonly pieces: readonly Tile[];
  readonly place: Pick<TilePlace, "batch" | "top" | "left">;
};

function multiplyAhead(work: Work, index: Scalar<"i32">): void {
  const segments = work.deal();
  const zero = constant(dtypes.i32, 0);
  const spreads = spreadsStores(work);
  const none: Waiting = {
    isThere: zero.gt(0),
    pieces: emptyPieces(work),
    place: { batch: zero, top: zero, left: zero },
  };
  const { waiting } = loop(
    { to: segments.count, carry: { slot: zero, waiting: none } },
    (position, before) => {
      const segment = segments.at(position);
      let vectors: readonly VectorInputs[] | undefined;
      const { product, place, slot } = plainSums(work, segment, before.slot, index, {
        atFirst: () => {
          if (!spreads) storeWaiting(work, before.waiting, index);
        },
        atStep: (step) => {
          if (spreads) storeInStep(work, before.waiting, index, step);
        },
        atLast: (at) => {
          vectors = loadVectors(work, at, index);
        },
      });
      const { batch, top, left } = place;
      const pieces = finishSegment(work, product, segment, index, {
        finish: (sums) => finishTile(work, sums, place, index, vectors),
        otherwise: () => emptyPieces(work),
      });
      const isThere = segment.from.eq(0);
      return { slot, waiting: { isThere, pieces, place: { batch, top, left } } };
    },
  );
  storeWaiting(work, waiting, index);
}

function emptyPieces({ form, shapes: { columns, piece } }: Work): readonly Tile[] {
  const { problem, configuration } = form;
  const shape = configuration.turned ? [piece, threadRows] : [threadRows, piece];
  return Array.from({ length: columns / piece }, () => zeros(problem.out.dtype, shape) as Tile);
}

function storeWaiting(work: Work, { isThere, pieces, place }: Waiting, index: Scalar<"i32">): void {
  when(isThere, () => {
    storePieces(work, pieces, place, index);
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
      for (const turn of pieces.keys())
        when(step.eq(turn + 1), () => {
          storePieces(work, pieces, place, index, [turn]);
        });
    });
  });
}

/** Tells every block that fills it that a slot has been read. */
function release({ empty, form, metadata }: Work, slot: Scalar<"i32">): void {
  const { cluster } = form.configuration;
  // The copy engine overwrites metadata that lanes have read.
  if (metadata !== undefined) commitShared();
  if (cluster === 1) empty.at(slot).arrive();
  else for (let peer = 0; peer < cluster; peer += 1) empty.at(slot).arrive({ peer });
}

/** What the steps of a segment come to, where the tile lies, and the slot after the last one. */
interface Sums {
  readonly product: Tile;
  readonly place: TilePlace;
  readonly slot: Scalar<"i32">;
}

/** What is done besides while tensor cores multiply. */
interface Meanwhile {
  readonly atFirst: () => void;
  /** Of the second and following steps. */
  readonly atStep: (step: Scalar<"i32">) => void;
  readonly atLast: (place: TilePlace) => void;
}

/** Which thread multiplies, the number of the step in the whole of k, and where its tile lies, where that is asked for. */
interface Turn {
  readonly index: Scalar<"i32">;
  readonly step: Scalar<"i32">;
  readonly place: () => TilePlace;
}

/** Waits until the tiles of a slot are there. Sums that begin with them are made then: zeros are none that are multiplied at once. */
function waitFull({ full }: Work, slot: Scalar<"i32">): void {
  full.at(slot).wait();
}

/** Adds the product of the tiles in a slot. */
function multiplySlot(
  work: Work,
  sum: Accumulator<"f32">,
  slot: Scalar<"i32">,
  { index, step, place }: Turn,
): Accumulator<"f32"> {
  const { sides, leftTiles, rightTiles } = work;
  const mine = slice(index.mul(threadRows), threadRows);
  const rows = rowsOfTile(sides.rows, leftTiles, slot, mine);
  const { prologue } = sides.rows;
  const computed = (of: Prologue): Tile<"bf16"> => {
    const { batch, top } = place();
    return computedRows(work, of, rows, {
      ...{ slot, mine, batch, along: step.mul(work.shapes.depth) },
      top: notBefore(top).add(index.mul(threadRows)),
    });
  };
  const uncomputed = sides.rows.held ? (heldRows(rows) as Tile as Tile<"bf16">) : rows;
  return wgmma(
    sum,
    prologue === undefined ? uncomputed : computed(prologue),
    columnsOfTile(sides.columns, rightTiles, slot),
    { ...(work.metadata && { sparse: rowsMetadata(work, work.metadata.tiles.at(slot, index)) }) },
  );
}

/** The metadata of a thread's rows, which go with what is multiplied. */
function rowsMetadata({ form }: Work, stored: Ref): Tile<"u16"> {
  return unpackedMetadata(stored.load() as Tile<"u16">, form.recipe.b.bits);
}

function emptySums({ form, shapes }: Work): Accumulator<"f32"> {
  const dtype = form.problem.accumulator as DType<"f32">;
  return accumulator(dtype, [threadRows, shapes.columns]);
}

/**
 * One sum, in the registers of the tensor cores. Something may be done while they multiply the first step, each of the others, and the last one; in
 * the first, it is found out where the tile lies, which takes divisions, unless a prologue asks for it before.
 */
function plainSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
  { atFirst, atStep, atLast }: Meanwhile,
): Sums {
  const { stages } = work.form.configuration;
  const place = once(() => work.place(tile));
  waitFull(work, first);
  const started = multiplySlot(work, emptySums(work), first, { index, step: from, place });
  const found = place();
  atFirst();
  const { sum, slot, last } = loop(
    {
      from: 1,
      to: steps,
      carry: { sum: started.waitPending(1), slot: following(first, stages), last: first },
    },
    (step, carried) => {
      const turn = { index, step: from.add(step), place };
      waitFull(work, carried.slot);
      const begun = multiplySlot(work, carried.sum, carried.slot, turn);
      atStep(step);
      const running = begun.waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      release(work, carried.last);
      return { sum: running, slot: following(carried.slot, stages), last: carried.slot };
    },
  );
  atLast(found);
  const product = sum.wait();
  release(work, last);
  return { product, place: found, slot };
}

/**
 * Likewise, where lanes hold an operand. Tensor cores that two threads share read registers long after a product was begun,
 * so each product is waited for before lanes make what the next one takes.
 */
function heldSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { form, shapes } = work;
  const dtype = form.problem.accumulator as DType<"f32">;
  const extents = [threadRows, shapes.columns] as const;
  const place = work.place(tile);
  const { product, slot } = loop(
    { to: steps, carry: { product: zeros(dtype, extents) as Tile<"f32">, slot: first } },
    (step, carried) => {
      const turn = { index, step: from.add(step), place: () => place };
      const sum = accumulator(dtype, extents, carried.product);
      waitFull(work, carried.slot);
      const done = multiplySlot(work, sum, carried.slot, turn).wait();
      release(work, carried.slot);
      return { product: done, slot: following(carried.slot, form.configuration.stages) };
    },
  );
  const ordered = work.sides.rows.held ? orderedSums(product) : product;
  return { product: ordered, place, slot };
}

/** What a function gives, found when it is first asked for. */
function once<T extends object>(find: () => T): () => T {
  let found: T | undefined;
  return () => (found ??= find());
}

/** The products of small parts, which the greatest one is added to. */
function corrections({ shapes }: Work, sum: Accumulator<"f32">): Accumulator<"f32"> {
  return accumulator(dtypes.f32, [threadRows, shapes.columns], finiteCorrections(sum.wait()));
}

/** A sum for each step, which is added to others in f32; meanwhile the other thread multiplies. */
function promotedSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { form, shapes } = work;
  const { stages } = form.configuration;
  const place = once(() => work.place(tile));
  const found = place();
  const none: Tile<"f32"> = zeros(dtypes.f32, [threadRows, shapes.columns]);
  const sums = loop({ to: steps, carry: { product: none, slot: first } }, (step, carried) => {
    const turn = { index, step: from.add(step), place };
    let { slot } = carried;
    let sum: Accumulator<"f32"> | undefined;
    let before: Scalar<"i32"> | undefined;
    for (const [ofA, ofB] of form.recipe.terms) {
      if (sum !== undefined && ofA === 0 && ofB === 0) sum = corrections(work, sum);
      waitFull(work, slot);
      sum = multiplySlot(work, sum ?? emptySums(work), slot, turn).waitPending(1);
      if (before !== undefined) release(work, before);
      before = slot;
      slot = following(slot, stages);
    }
    if (sum === undefined || before === undefined) throw new Error("a product has no terms");
    const product = sum.wait();
    release(work, before);
    return { product: carried.product.add(product), slot };
  });
  return { ...sums, place: found };
}

/** Hands the sums to the block that began the tile, or adds those of others to them and finishes the tile. */
function finishSegment<R extends Tree | void>(
  work: Work,
  product: Tile,
  segment: Segment,
  index: Scalar<"i32">,
  { finish, otherwise }: { readonly finish: (sums: Tile) => R; readonly otherwise: () => R },
): R {
  const { handed, worker, rank } = work;
  if (handed === undefined) return finish(product);
  const { cluster, multipliers } = work.form.configuration;
  const part = cluster === 1 ? index : rank.mul(multipliers).add(index);
  return handSums(handed, segment, { worker, part }, product, finish, otherwise);
}
