/**
 * Which tile of the product comes when. Tiles that run at the same time should share rows of a and columns of b, so
 * they are taken in groups of rows, and every other group from the right, so that the next one begins where the last
 * one ended:
 *
 *   groups of 2 rows    0  2  4  6        14 12 10  8
 *                       1  3  5  7        15 13 11  9
 */
import { cdiv, constant } from "../../../lang/index.ts";
import type { TensorSpec, Ref, Scalar } from "../../../lang/index.ts";
import type { Deal, Segments } from "../../../lang/pipeline/stream-k.ts";
import { dtypes } from "../../../formats/dtype.ts";
import type { Size } from "../../../ir/size.ts";

/** Rows of tiles in a group by default: few enough for their operands to stay in the cache. */
const usualGroup = 8;

/**
 * Rows of tiles in a group: tiles that run at the same time should be about as high as wide together, since that is what
 * reads the fewest rows and columns. 132 tiles of 128 × 256 are 16 by 8, or 2048 × 2112 elements.
 */
export function groupOf(rows: number, columns: number, workers: number): number {
  return Math.max(1, Math.round(Math.sqrt((workers * columns) / rows)));
}

export interface TileGrid {
  readonly batch: Size;
  /** The sizes of the whole. */
  readonly height: Size;
  readonly width: Size;
  readonly rows: number;
  readonly columns: number;
  /** Blocks that have tiles one below the other, and which of them this is. */
  readonly cluster: number;
  readonly rank: Scalar<"i32">;
  /** Rows of tiles in a group. */
  readonly group: number;
}

export interface TilePlace {
  readonly batch: Scalar<"i32">;
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
  /** The row of the result that the tile ends before, where that is not the last one. */
  readonly end?: Scalar<"i32"> | undefined;
}

export interface TileOrder {
  readonly tiles: Scalar<"i32">;
  readonly place: (tile: Scalar<"i32">) => TilePlace;
}

/** Rows that are dealt to tiles on the device, from tables that a kernel before has made. */
export interface DealtRows {
  /** The tables. */
  readonly inputs: { readonly [name: string]: TensorSpec };
  /**
   * The name of an array of two i32 where blocks take tiles of the last rounds (`work-loop.ts`): a counter, which that kernel sets to 0, and how many rounds are
   * dealt before; undefined where all are.
   */
  readonly counter?: string | undefined;
  readonly order: (
    grid: TileGrid,
    swapAB: boolean,
    refs: { readonly [name: string]: Ref },
  ) => TileOrder;
}

/** The tile of a block that has no other, by its place in the grid, which takes no division. */
export function oneTile(
  { rows, columns, cluster, rank }: TileGrid,
  down: Scalar<"i32">,
  across: Scalar<"i32">,
): TileOrder {
  const zero = constant(dtypes.i32, 0);
  const row = cluster === 1 ? down : down.mul(cluster).add(rank);
  const place = {
    batch: zero,
    top: notBefore(row.mul(rows)),
    left: notBefore(across.mul(columns)),
  };
  return { tiles: zero.add(1), place: () => place };
}

/** How many tiles there are, and where each lies. */
export function tileOrder(grid: TileGrid): TileOrder {
  const { batch, height, width, rows, columns, cluster, rank, group } = grid;
  const zero = constant(dtypes.i32, 0);
  const [down, across] = [zero.add(cdiv(height, cluster * rows)), zero.add(cdiv(width, columns))];
  const { tiles: plane, place } = planeOrder(down, across, group);
  const placed = (layer: Scalar<"i32">, { i, j }: ReturnType<typeof place>): TilePlace => {
    const row = cluster === 1 ? i : i.mul(cluster).add(rank);
    return { batch: layer, top: notBefore(row.mul(rows)), left: notBefore(j.mul(columns)) };
  };
  if (batch === 1) return { tiles: plane, place: (tile) => placed(zero, place(tile)) };
  return {
    tiles: plane.mul(zero.add(batch)),
    place: (tile) => {
      const layer = tile.div(plane);
      return placed(layer, place(tile.sub(layer.mul(plane))));
    },
  };
}

/** The same position, which TMA is told is in the array: it writes nothing that might begin before it. */
export function notBefore(position: Scalar<"i32">): Scalar<"i32"> {
  return position.maximum(0);
}

/** The order of the tiles of one matrix, by rows and columns of tiles. */
export function planeOrder(
  down: Scalar<"i32">,
  across: Scalar<"i32">,
  group = usualGroup,
): {
  readonly tiles: Scalar<"i32">;
  readonly place: (tile: Scalar<"i32">) => {
    readonly i: Scalar<"i32">;
    readonly j: Scalar<"i32">;
  };
} {
  return {
    tiles: down.mul(across),
    place: (tile) => {
      // Where nothing is divided by 0, and nothing below 0, a division is a third shorter, and so is the assembler's work on it.
      const of = tile.div(across.mul(group).maximum(1));
      const size = down.sub(of.mul(group)).minimum(group).maximum(1);
      const within = tile.sub(of.mul(group).mul(across)).maximum(0);
      const j = within.div(size);
      const i = of.mul(group).add(within.sub(j.mul(size)));
      return { i, j: of.and(1).eq(0).select(j, across.sub(1).sub(j)) };
    },
  };
}

/** All steps of every so many tiles, by their numbers: counting them would take a division. */
export function wholeTiles({ worker, workers, tiles, steps }: Deal): Segments {
  const zero = constant(dtypes.i32, 0);
  return {
    bounds: { from: worker.maximum(0), to: tiles, step: workers.maximum(1) },
    at: (tile) => ({ tile, from: zero, steps }),
  };
}
