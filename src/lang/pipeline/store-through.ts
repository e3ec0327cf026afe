/**
 * Storing a tile through shared memory: piece after piece goes into a buffer and from there out by a copy, which runs on
 * while the next piece is written into the next buffer, and while the thread goes on to other work.
 *
 *   tile [64, 256], buffers [2, 64, 64]     write 0 · copy 0     write 1 · copy 1     wait for copy 0 · write 2 · copy 2     …
 */
import type { DTypeName } from "../../formats/dtype.ts";
import { shapeText } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { commitGroup, commitShared, copyAsync, waitGroup } from "../async.ts";
import { isIndex } from "../indices.ts";
import type { Index } from "../indices.ts";
import { Ref } from "../ref.ts";
import { Tile } from "../tile.ts";
import { wrongKind } from "../traced.ts";
import { slice } from "../window.ts";
import { asScalar } from "./ring.ts";

/**
 * Stores `tile` to `array` from `starts` on, one start for each axis, through `buffers`: [count, …piece] in shared memory.
 * Copies may still be reading the buffers afterwards; `waitGroup(0, { read: true })` waits for them.
 */
export function storeThrough<D extends DTypeName>(
  buffers: Ref<D>,
  tile: Tile<NoInfer<D>>,
  array: Ref<NoInfer<D>>,
  starts: readonly Index[],
): void {
  const location = captureLocation();
  if (!(buffers instanceof Ref))
    wrongKind("the buffers of storeThrough", "a ref", buffers, location);
  if (!(tile instanceof Tile)) wrongKind("what storeThrough stores", "a tile", tile, location);
  if (!(array instanceof Ref)) wrongKind("where storeThrough stores", "a ref", array, location);
  const places: readonly unknown[] = Array.isArray(starts) ? starts : [];
  if (places.length !== array.shape.length || !places.every(isIndex))
    wrongKind("the starts of storeThrough", `${array.shape.length} indices`, starts, location);
  const [count = 1, ...piece] = buffers.shape.filter((size) => typeof size === "number");
  const { axis, pieces } = piecesOf(tile.shape, piece, location);
  atLocation(location, () => {
    const used = buffersUsed(count, pieces);
    const first = starts.map(asScalar);
    for (let number = 0; number < pieces; number += 1) {
      const offset = (position: number): number =>
        position === axis ? number * (piece[axis] ?? 0) : 0;
      waitGroup(used - 1, { read: true });
      const buffer = buffers.at(number % used);
      buffer.store(
        pieces === 1
          ? tile
          : tile.slice(
              tile.shape.map((_, each) => offset(each)),
              piece,
            ),
      );
      commitShared();
      const window = first.map((start, position) =>
        slice(start.add(offset(position)), piece[position] ?? 1),
      );
      copyAsync(buffer, array.at(...window));
      commitGroup();
    }
  });
}

/** As many buffers as can be used in turn, each equally often, so that every tile begins with the first. */
function buffersUsed(count: number, pieces: number): number {
  let used = Math.min(count, pieces);
  while (pieces % used !== 0) used -= 1;
  return used;
}

/** The axis along which a tile falls into pieces, and how many there are. */
function piecesOf(
  shape: readonly number[],
  piece: readonly number[],
  location: Location,
): { readonly axis: number; readonly pieces: number } {
  const differing = shape.flatMap((extent, axis) => (extent === piece[axis] ? [] : [axis]));
  const [axis = shape.length - 1] = differing;
  const pieces = (shape[axis] ?? 1) / (piece[axis] ?? 1);
  const fits = shape.length === piece.length && differing.length <= 1 && Number.isInteger(pieces);
  if (fits) return { axis, pieces };
  throw new TilewrightError({
    code: "TW1111",
    message: `a tile of shape ${shapeText(shape)} does not go through these buffers`,
    location,
    expected: "buffers that hold equal pieces of the tile along one axis",
    found: `buffers of shape ${shapeText(piece)}`,
  });
}
