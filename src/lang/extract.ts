/**
 * Parts of a tile at positions that are only known as the kernel runs, named as windows of memory are:
 *
 *   extract(tile, [block(i, 16), all])          rows 16 i to 16 i + 15
 *   extract(tile, [i, j]).item()                one element
 *   insert(tile, [slice(k, 4)], part)           the tile with `part` at elements k to k + 3
 *
 * The tile goes through shared memory of the program thread's own, so that it may lie in registers in any layout.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { withBuffer } from "./arrange.ts";
import type { Operand } from "./elementwise.ts";
import { isTile } from "./elementwise.ts";
import type { Ref } from "./ref.ts";
import type { Tile } from "./tile.ts";
import { wrongKind } from "./traced.ts";
import type { WindowIndex } from "./window.ts";

function requireArguments(name: string, tile: unknown, windows: unknown, location: Location): void {
  if (!isTile(tile)) wrongKind(`what ${name} takes`, "a tile", tile, location);
  if (!Array.isArray(windows))
    wrongKind(`the place of ${name}`, "a list of slices and indices", windows, location);
  for (const window of windows as readonly unknown[])
    if (isTile(window) && window.shape.length > 0)
      wrongKind(
        `an index of ${name}`,
        "a number, an i32 scalar, a slice or `all`",
        window,
        location,
        "write takeAlong for an index of each element",
      );
}

/** The tile in memory, where it may be of any format and any rank but 0. */
function through<D extends DTypeName>(
  name: "extract" | "insert",
  tile: Tile<D>,
  location: Location,
  body: (own: Ref<D>) => Tile<D>,
): Tile<D> {
  return withBuffer(`${name}_tile`, tile.dtype, tile.shape, location, (own) => {
    own.store(tile);
    return body(own);
  });
}

/**
 * The part of a tile at a place that may be traced: for each axis a slice, a block or `all`, or an index, which drops the
 * axis. All indices give a tile of rank 0, whose `item()` is the scalar. The part lies within the tile.
 */
export function extract<D extends DTypeName>(
  tile: Tile<D>,
  place: readonly WindowIndex[],
): Tile<D> {
  const location = captureLocation();
  requireArguments("extract", tile, place, location);
  return through("extract", tile, location, (own) => own.at(...place).load());
}

/** The tile with `part`, which broadcasts, at a place that may be traced; see `extract`. */
export function insert<D extends DTypeName>(
  tile: Tile<D>,
  place: readonly WindowIndex[],
  part: Operand<D>,
): Tile<D> {
  const location = captureLocation();
  requireArguments("insert", tile, place, location);
  return through("insert", tile, location, (own) => {
    own.at(...place).store(part);
    return own.load();
  });
}
