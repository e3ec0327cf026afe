/**
 * Points in tiles of rows and columns: the innermost axis lies across a tile, all others down, so that what a rule computes of the other
 * axes it computes once a row, and what it loads are runs of neighbours.
 *
 *   [32, 64, 64, 128]     a matrix [131072, 128]: tiles of 8 rows of 128 columns
 */
import { cdiv, slice } from "../../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../../lang/index.ts";
import type { Caches } from "../../../targets/target.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { Points } from "../points/points.ts";
import { tileExtent } from "./tiled.ts";
import type { TiledKernel } from "./tiled.ts";

/** Fewer columns are no runs worth the name. */
export const leastColumns = 16;
const mostColumns = 128;

/** A block has 128 lanes; where there are blocks enough, each lane makes several elements. */
const lanes = 128;
const mostElements = 1024;
const manyBlocks = 1024;
/** What an element of a chain of maps takes of the first cache: four tiles of f32 at a time, twice. */
const bytesOfChain = 32;

/** How many elements a block makes of so many. On a CPU no lanes have to be kept busy: tiles are as wide as chains of them stay in the first cache. */
export function blockElements(count: number, caches?: Caches): number {
  if (caches !== undefined) return tileExtent(count, 1, caches.first / bytesOfChain);
  const width = tileExtent(count, 1, lanes);
  const perLane = Math.floor(count / (manyBlocks * lanes));
  return Math.min(mostElements, width * tileExtent(perLane, 1, mostElements / lanes));
}

/** The widest tile that leaves few of its columns empty. */
function tileColumns(columns: number, most = mostColumns): number {
  const widest = tileExtent(columns, 1, most);
  for (let width = widest; width > leastColumns; width /= 2)
    if (Math.ceil(columns / width) * width * 8 <= columns * 9) return width;
  return Math.min(widest, leastColumns);
}

/** A shape as a matrix, cut into tiles. */
export interface RowTiles {
  readonly blocks: number;
  /** The points of a block. */
  pointsOf(block: Scalar<"i32">): Points;
  /** Stores what a rule made at the points of a block. */
  store(output: Ref | undefined, tile: Tile, block: Scalar<"i32">): void;
}

/** Tiles of a shape whose last axes are so many columns; undefined where these are few. */
export function rowTilesOf(
  shape: readonly number[],
  columns: number = shape.at(-1) ?? 1,
  caches?: Caches,
): RowTiles | undefined {
  const count = sizeOf(shape);
  const rows = count / columns;
  if (columns < leastColumns || count === 0 || !Number.isInteger(rows)) return undefined;
  // Of few rows a tile has no more, and is as much wider.
  const most = Math.max(1, blockElements(count, caches) / tileColumns(columns));
  const height = Math.min(most, tileExtent(rows, 1, most));
  const width = tileColumns(columns, (mostColumns * most) / height);
  const across = cdiv(columns, width);
  const tile = [height, width];
  const placeOf = (block: Scalar<"i32">) =>
    across === 1
      ? ({ row: block.mul(height), column: 0 } as const)
      : { row: block.div(across).mul(height), column: block.rem(across).mul(width) };
  return {
    blocks: cdiv(rows, height) * across,
    pointsOf: (block) => Points.window(shape, tile, { rows, columns, ...placeOf(block) }),
    store: (output, values, block) => {
      const { row, column } = placeOf(block);
      output
        ?.reshape([rows, columns])
        .at(slice(row, height), slice(column, width))
        .store(values.broadcastTo(tile));
    },
  };
}

/** A kernel of a rule at all points of a shape; undefined where the innermost axis is short. */
export function rowsOfPoints(
  shape: readonly number[],
  rule: (points: Points, context: PointContext) => readonly Tile[],
): TiledKernel | undefined {
  const tiles = shape.length < 2 ? undefined : rowTilesOf(shape);
  if (tiles === undefined) return undefined;
  return {
    title: "points",
    grid: { block: tiles.blocks },
    loadsWindows: false,
    body: ({ context, outputs, at }) => {
      const block = at("block");
      for (const [i, tile] of rule(tiles.pointsOf(block), context).entries())
        tiles.store(outputs[i], tile, block);
    },
  };
}
