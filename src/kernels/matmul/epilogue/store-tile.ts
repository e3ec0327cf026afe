/**
 * How a finished tile of a product leaves the registers: piece by piece, through shared memory and TMA, or by
 * the lanes themselves. Finishing a tile and storing it are apart, so that the next tile may be begun in between.
 */
import {
  commitGroup,
  commitShared,
  copyAsync,
  slice,
  switchCase,
  waitGroup,
  when,
} from "../../../lang/index.ts";
import type { CopyOptions, Ref, Scalar, Tile } from "../../../lang/index.ts";
import { passesResult } from "../scheduler/l2-reuse.ts";
import { finished, vectorInputs } from "./epilogue.ts";
import type { VectorInputs } from "./epilogue.ts";
import type { Piece } from "./types.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import { resultBuffers } from "../tile-shapes.ts";
import { rowAlignment, viewMatrix } from "../views.ts";

/** Columns of a tile at which its pieces begin. */
function pieceStarts({ shapes: { columns, piece } }: Work): readonly number[] {
  return Array.from({ length: columns / piece }, (_, turn) => turn * piece);
}

/** Where a piece of a thread's rows of a tile lies in the result. */
function pieceAt(
  work: Work,
  place: TilePlace,
  index: Scalar<"i32">,
  column: number | Scalar<"i32">,
): Piece {
  const { piece, own } = work.shapes;
  const { batch } = place;
  const top = notBefore(place.top).add(index.mul(own));
  // In the array, as TMA is told: what is added to a large number may be less than it.
  const left = notBefore(column === 0 ? place.left : place.left.add(column));
  return work.form.configuration.swapAB
    ? { batch, top: left, left: top, rows: piece, columns: own }
    : { batch, top, left, rows: own, columns: piece };
}

/** The sums of a thread's rows of a tile: all of them, or what gives those of the piece that begins at a column. */
export type Summed = Tile | ((column: number) => Tile);

/** A piece as it is stored. */
function finishPiece(
  work: Work,
  product: Summed,
  at: Piece,
  column: number,
  vectors: VectorInputs = {},
): Tile {
  const { problem, location, configuration } = work.form;
  const { own, piece } = work.shapes;
  const sums =
    product instanceof Function ? product(column) : product.slice([0, column], [own, piece]);
  const oriented = configuration.swapAB ? sums.transpose() : sums;
  return finished(oriented, at, problem, work.inputs, location, work.dimensions, vectors);
}

/**
 * Whether the pieces of a tile are stored one by one in steps of the next tile, of which there are enough then. Those of 16 bits
 * leave registers as tensor cores filled them; others may be exchanged between lanes, which is better done once, at the
 * end of a tile.
 */
export function spreadsStores({ form, shapes }: Work): boolean {
  const { problem, sizes } = form;
  const steps = Math.ceil(sizes.k / shapes.depth);
  return problem.out.dtype.bits === 16 && steps >= shapes.columns / shapes.piece + 2;
}

/**
 * A piece that waits, as tensor cores filled registers with it. Stores in the steps of a tile seem to be done more often than
 * the end of a tile, and would have it exchanged between lanes there.
 */
function asSummed(work: Work, piece: Tile): Tile {
  if (!spreadsStores(work)) return piece;
  const further = Array.from(
    { length: Math.log2(work.shapes.piece / 8) },
    (_, bit) => `R${bit + 2}`,
  );
  return piece.layoutCast(`(L2 L3 L4 R1 W0 W1 | ${["R0", "L0", "L1", ...further].join(" ")})`);
}

/** The pieces of a thread's rows of a tile as they are stored. */
export function finishTile(
  work: Work,
  product: Tile,
  place: TilePlace,
  index: Scalar<"i32">,
  vectors: readonly VectorInputs[] = [],
): readonly Tile[] {
  return pieceStarts(work).map((column, turn) => {
    const at = pieceAt(work, place, index, column);
    return asSummed(work, finishPiece(work, product, at, column, vectors[turn]));
  });
}

/** What the epilogue takes of each row or column of the pieces of a tile, which is loaded before their sums are there. */
export function loadVectors(
  work: Work,
  place: TilePlace,
  index: Scalar<"i32">,
): readonly VectorInputs[] {
  const { problem, location } = work.form;
  return pieceStarts(work).map((column) =>
    vectorInputs(problem, work.inputs, pieceAt(work, place, index, column), location),
  );
}

/** Stores what `finishTile` gave. */
export function storePieces(
  work: Work,
  pieces: readonly Tile[],
  place: TilePlace,
  index: Scalar<"i32">,
): void {
  for (const [turn, column] of pieceStarts(work).entries()) {
    const piece = pieces[turn];
    if (piece === undefined) throw new Error(`a tile has no piece ${turn}`);
    const at = pieceAt(work, place, index, column);
    storePiece(work, at, asSummed(work, piece), place, index, turn);
  }
}

/** Stores what `finishTile` gave, as far as the rows of the tile go. */
export function storeByLanes(
  work: Work,
  pieces: readonly Tile[],
  place: TilePlace,
  index: Scalar<"i32">,
): void {
  const target = matrixOf(work.form, work.out, place.batch);
  const { end } = place;
  for (const [turn, column] of pieceStarts(work).entries()) {
    const piece = pieces[turn];
    if (piece === undefined) throw new Error(`a tile has no piece ${turn}`);
    const { top, left, rows, columns } = pieceAt(work, place, index, column);
    target
      .at(slice(top, rows, end === undefined ? {} : { end }), slice(left, columns))
      .store(asSummed(work, piece));
  }
}

/**
 * Stores the piece whose turn it is. Only what reads its registers is written for each of them: the rest would be most of the text, and
 * the driver's assembler takes its time for each copy.
 */
export function storePieceInTurn(
  work: Work,
  pieces: readonly Tile[],
  place: TilePlace,
  index: Scalar<"i32">,
  turn: Scalar<"i32">,
): void {
  const { form, shapes, out, result } = work;
  if (result === undefined) throw new Error("pieces that wait are copied");
  const { top, left, rows, columns } = pieceAt(work, place, index, turn.mul(shapes.piece));
  const target = matrixOf(form, out, place.batch);
  const count = pieces.length;
  waitGroup(1, { read: true });
  // A tile before has ended with this buffer.
  if (count % 2 === 1)
    when(turn.eq(0), () => {
      waitGroup(0, { read: true });
    });
  const buffer = result.at(index, turn.and(resultBuffers(count) - 1));
  buffer.store(
    switchCase(
      turn,
      pieces.map((piece) => () => asSummed(work, piece)),
    ),
  );
  commitShared();
  copyAsync(buffer, target.at(slice(top, rows), slice(left, columns)), howStored(form));
  commitGroup();
}

/** What the cache is told of results. */
function howStored(form: Work["form"]): CopyOptions {
  return passesResult(form) ? { evict: "first" } : {};
}

/** Finishes and stores a thread's rows of a tile, one piece after the other. */
export function storeTile(
  work: Work,
  product: Summed,
  place: TilePlace,
  index: Scalar<"i32">,
  vectors: readonly VectorInputs[] = [],
): void {
  for (const [turn, column] of pieceStarts(work).entries()) {
    const at = pieceAt(work, place, index, column);
    const piece = finishPiece(work, product, at, column, vectors[turn]);
    if (work.isOnce && work.result === undefined) storeInSlot(work, at, piece, index, turn);
    else storePiece(work, at, piece, place, index, turn);
  }
}

/** A piece leaves through the thread's rows of a slot that nothing comes to any more. */
function storeInSlot(
  { out, leftTiles, shapes: { own } }: Work,
  { top, left, rows, columns }: Piece,
  piece: Tile,
  index: Scalar<"i32">,
  turn: number,
): void {
  const buffer = leftTiles.at(turn, slice(index.mul(own), own));
  buffer.store(piece);
  commitShared();
  copyAsync(buffer, out.at(slice(top, rows), slice(left, columns)));
  commitGroup();
}

/** The matrix of the batch that a tile lies in. */
function matrixOf({ problem }: Work["form"], out: Ref, batch: Scalar<"i32">): Ref {
  const view = problem.views?.out;
  if (view !== undefined) return viewMatrix(out, view, notBefore(batch));
  return problem.sizes.batch === undefined ? out : out.at(notBefore(batch));
}

/**
 * Stores a piece by lanes through shared memory, so that those of a warp write neighbours of a row, as many each as rows are aligned for. Tensor cores
 * leave them eight rows with a few neighbours each, which memory takes a part of a sector at a time.
 */
function storeAlongRows(
  { form, shapes, rowPieces }: Work,
  target: Ref,
  piece: Tile,
  index: Scalar<"i32">,
  turn: number,
): void {
  if (rowPieces === undefined) {
    target.store(piece);
    return;
  }
  const buffer = rowPieces.at(index, turn % resultBuffers(shapes.columns / shapes.piece));
  buffer.store(piece);
  target.store(alongRows(form, buffer.load()));
}

/** A piece of which lanes have neighbours along rows. */
function alongRows({ problem, sizes }: Work["form"], piece: Tile): Tile {
  const [rows = 1, columns = 1] = piece.shape;
  let each = 128 / problem.out.dtype.bits;
  while (rowAlignment(problem.views?.out, sizes.n) % each !== 0) each /= 2;
  const own = Math.log2(each);
  const lanes = Math.min(5, Math.log2(columns) - own);
  const named = (letter: string, from: number, to: number): readonly string[] =>
    Array.from({ length: Math.max(0, to - from) }, (_, bit) => `${letter}${from + bit}`);
  const further = Math.log2(columns) - lanes;
  const down = [...named("L", lanes, 5), "W0", "W1"];
  const across = [...named("R", 0, own), ...named("L", 0, lanes), ...named("R", own, further)];
  const last = further + Math.log2(rows) - down.length;
  return piece.layoutCast(
    `(${[...down, ...named("R", further, last)].join(" ")} | ${across.join(" ")})`,
  );
}

/** By TMA through one of two buffers, or by the lanes themselves. */
function storePiece(
  work: Work,
  { top, left, rows, columns }: Piece,
  piece: Tile,
  { batch, end }: TilePlace,
  index: Scalar<"i32">,
  turn: number,
): void {
  const { form, shapes, out, result } = work;
  const target = matrixOf(form, out, batch);
  const across = slice(left, columns);
  const byLanes = (): void => {
    const inside = slice(top, rows, end === undefined ? {} : { end });
    storeAlongRows(work, target.at(inside, across), piece, index, turn);
  };
  if (result === undefined) {
    byLanes();
    return;
  }
  const pieces = shapes.columns / shapes.piece;
  const copied = (): void => {
    // What was in the buffer has left it: the piece before the last, or the last one, where a tile before ended with this buffer.
    waitGroup(turn === 0 && pieces % 2 === 1 ? 0 : 1, { read: true });
    const buffer = result.at(index, turn % resultBuffers(pieces));
    buffer.store(piece);
    commitShared();
    copyAsync(buffer, target.at(slice(top, rows), across), howStored(form));
    commitGroup();
  };
  // TMA knows the end of the array alone.
  if (end === undefined) copied();
  else when(top.add(rows).le(end), copied, byLanes);
}
