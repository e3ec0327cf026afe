/**
 * Which tile of the product comes when. Tiles that run at the same time should share rows of a and columns of b, so
 * they are taken in groups of rows, and every other group from the right, so that the next one begins where the last
 * one ended:
 *
 *   groups of 2 rows    0  2  4  6        14 12 10  8
 *                       1  3  5  7        15 13 11  9
 */
import { cdiv, constant } from "../../lang/index.ts";
import type { Scalar } from "../../lang/index.ts";
import type { Deal, Segments } from "../../lang/pipeline/segments.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";

/** Rows of tiles in a group: few enough for their operands to stay in the cache. */
const group = 8;

export interface TileGrid {
  readonly batch: Size;
  /** The sizes of the whole. */
  readonly height: Size;
  readonly width: Size;
  readonly rows: number;
  readonly columns: number;
}

export interface TilePlace {
  readonly batch: Scalar<"i32">;
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
}

/** How many tiles there are, and where each lies. */
export function tileOrder({ batch, height, width, rows, columns }: TileGrid): {
  readonly tiles: Scalar<"i32">;
  readonly place: (tile: Scalar<"i32">) => TilePlace;
} {
  const zero = constant(dtypes.i32, 0);
  const [down, across] = [zero.add(cdiv(height, rows)), zero.add(cdiv(width, columns))];
  const plane = down.mul(across);
  const tiles = plane.mul(zero.add(batch));
  const place = (tile: Scalar<"i32">): TilePlace => {
    const layer = tile.div(plane);
    const inPlane = tile.sub(layer.mul(plane));
    const of = inPlane.div(across.mul(group));
    const size = down.sub(of.mul(group)).minimum(group);
    const within = inPlane.sub(of.mul(group).mul(across));
    const j = within.div(size);
    const i = of.mul(group).add(within.sub(j.mul(size)));
    const column = of.and(1).eq(0).select(j, across.sub(1).sub(j));
    return { batch: layer, top: i.mul(rows), left: column.mul(columns) };
  };
  return { tiles, place };
}

/** All steps of every so many tiles. */
export function wholeTiles({ worker, workers, tiles, steps }: Deal): Segments {
  const zero = constant(dtypes.i32, 0);
  return {
    count: tiles.sub(worker).add(workers).sub(1).div(workers),
    at: (index) => ({ tile: worker.add(index.mul(workers)), from: zero, steps, others: zero }),
  };
}
