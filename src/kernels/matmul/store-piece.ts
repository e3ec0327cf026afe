/** How pieces of a finished tile of the persistent kernel get to memory. */
import { commitGroup, commitShared, copyAsync, slice, waitGroup, when } from "../../lang/index.ts";
import type { Ref, Tile } from "../../lang/index.ts";
import type { Piece } from "./epilogue.ts";
import type { TilePlace } from "./order.ts";

/** By the copy engine through one of two buffers, or by the lanes themselves. */
export function storePiece(
  target: Ref,
  { top, left, rows, columns, end }: Piece & Pick<TilePlace, "end">,
  piece: Tile,
  result: Ref | undefined,
  index: number,
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
