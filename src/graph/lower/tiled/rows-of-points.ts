/**
 * Rules at points over tiles of rows and columns: the innermost axis lies across a tile, all others down, so that what a rule computes of
 * the other axes it computes once a row, and what it loads are runs of neighbours.
 *
 *   [32, 64, 64, 128]     a matrix [131072, 128]: tiles of 8 rows of 128 columns
 */
import { cdiv, slice } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { sizeOf } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import { Points } from "../points/points.ts";
import { tileExtent } from "./tiled.ts";
import type { TiledKernel } from "./tiled.ts";

/** Fewer columns are no runs worth the name. */
const leastColumns = 16;
const mostColumns = 128;
const tileElements = 1024;

/** A kernel of a rule at all points of a shape; undefined where the innermost axis is short. */
export function rowsOfPoints(
  shape: readonly number[],
  rule: (points: Points, context: PointContext) => readonly Tile[],
): TiledKernel | undefined {
  const columns = shape.at(-1) ?? 1;
  const rows = sizeOf(shape.slice(0, -1));
  if (columns < leastColumns || shape.length < 2 || rows * columns < tileElements) return undefined;
  const width = tileExtent(columns, 1, mostColumns);
  const height = tileExtent(rows, 1, tileElements / width);
  return {
    title: "points",
    grid: { rows: cdiv(rows, height), columns: cdiv(columns, width) },
    loadsWindows: false,
    body: ({ context, outputs, at }) => {
      const [row, column] = [at("rows").mul(height), at("columns").mul(width)];
      const points = Points.window(shape, [height, width], { rows, columns, row, column });
      for (const [i, tile] of rule(points, context).entries())
        outputs[i]
          ?.reshape([rows, columns])
          .at(slice(row, height), slice(column, width))
          .store(tile.broadcastTo([height, width]));
    },
  };
}
