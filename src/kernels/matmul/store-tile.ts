/** How a finished tile of a product leaves the registers: piece by piece, through shared memory and the copy engine, or by the lanes themselves. */
import { commitGroup, commitShared, copyAsync, slice, waitGroup, when } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Segment } from "../../lang/pipeline/segments.ts";
import { threadRows } from "./configuration.ts";
import { finished } from "./epilogue.ts";
import type { Piece } from "./epilogue.ts";
import { notBefore } from "./order.ts";
import type { TilePlace } from "./order.ts";
import type { Work } from "./persistent.ts";

/** Stores a thread's rows of a tile, piece by piece. */
export function storeTile(work: Work, product: Tile, segment: Segment, index: Scalar<"i32">): void {
  const { form, shapes, out, result, inputs } = work;
  const { problem, location } = form;
  const { turned } = form.configuration;
  const { columns, piece } = shapes;
  const place = work.place(segment.tile);
  const target = problem.sizes.batch === undefined ? out : out.at(place.batch);
  const top = place.top.add(index.mul(threadRows));
  for (let column = 0; column < columns; column += piece) {
    // In the array, as the copy engine is told: what is added to a large number may be less than it.
    const left = column === 0 ? place.left : notBefore(place.left.add(column));
    const sums = product.slice([0, column], [threadRows, piece]);
    const at = turned
      ? { batch: place.batch, top: left, left: top, rows: piece, columns: threadRows }
      : { batch: place.batch, top, left, rows: threadRows, columns: piece };
    const sumsOfPiece = turned ? sums.transpose() : sums;
    const done = finished(sumsOfPiece, at, problem, inputs, location, work.dimensions);
    storePiece(target, { ...at, end: place.end }, done, result, index, column / piece);
  }
}

/** By the copy engine through one of two buffers, or by the lanes themselves. */
function storePiece(
  target: Ref,
  { top, left, rows, columns, end }: Piece & Pick<TilePlace, "end">,
  piece: Tile,
  result: Ref | undefined,
  index: Scalar<"i32">,
  turn: number,
): void {
  const across = slice(left, columns);
  const byLanes = (): void => {
    target.at(slice(top, rows, end === undefined ? {} : { end }), across).store(piece);
  };
  if (result === undefined) {
    byLanes();
    return;
  }
  const copied = (): void => {
    // The piece before the last has left its buffer.
    waitGroup(1, { read: true });
    const buffer = result.at(index, turn % 2);
    buffer.store(piece);
    commitShared();
    copyAsync(buffer, target.at(slice(top, rows), across));
    commitGroup();
  };
  // The copy engine knows the end of the array alone.
  if (end === undefined) copied();
  else when(top.add(rows).le(end), copied, byLanes);
}
