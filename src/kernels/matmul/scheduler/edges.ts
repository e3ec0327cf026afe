/**
 * How tiles of a configuration lie on the result and are fetched, and which of them have shorter windows at its edges (`out-of-bounds.ts`).
 */
import type { Target } from "../../../targets/target.ts";
import { threadRows } from "../configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { groupOf } from "./tile-scheduler.ts";
import { edgeOf, outsideAtOnce } from "../cost/out-of-bounds.ts";
import type { FetchedSide, LastTiles, TilePlane } from "../cost/out-of-bounds.ts";
import { prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import { depthOf, pieceColumns, workerCount } from "../tile-shapes.ts";
import type { Edges } from "../kernel-context.ts";

/** So many rows or columns of tiles, as they are fetched. */
function fetchedSide(
  problem: MatmulProblem,
  recipe: Recipe,
  name: "a" | "b",
  tile: number,
  extent: number,
  blocks: number,
): FetchedSide {
  return recipe.alongK || problem.major[name] === "k"
    ? { tile, extent, blocks, box: 1, requests: 1 }
    : {
        tile,
        extent,
        blocks,
        box: pieceColumns(recipe[name], tile),
        requests: depthOf(problem, recipe),
      };
}

/** The rows and the columns of tiles. */
export function fetchedSides(
  problem: MatmulProblem,
  recipe: Recipe,
  { consumers, columns, swapAB, cluster }: PersistentConfiguration,
  { m, n }: ProductSizes,
): { readonly [L in LastTiles]: FetchedSide } {
  const rows = consumers * threadRows;
  const [rowSide, columnSide] = swapAB ? (["b", "a"] as const) : (["a", "b"] as const);
  const [height, width] = swapAB ? [n, m] : [m, n];
  return {
    row: fetchedSide(problem, recipe, rowSide, rows, height, cluster),
    column: fetchedSide(problem, recipe, columnSide, columns, width, 1),
  };
}

/** How the tiles of a configuration lie, and who has them. */
export function planeOf(
  { consumers, columns, swapAB, cluster }: PersistentConfiguration,
  { m, n, batch }: ProductSizes,
  { processors }: Target,
  workers: number,
): TilePlane {
  const rows = consumers * threadRows * cluster;
  const [height, width] = swapAB ? [n, m] : [m, n];
  return {
    batch,
    workers,
    down: Math.ceil(height / rows),
    across: Math.ceil(width / columns),
    group: groupOf(rows, columns, processors / cluster),
  };
}

/**
 * Requests of a step for what lies outside, of all blocks at once, from which on leaving them out is worth a window of its own: 1400 and 2800 took
 * no longer than none on an H200 or up to half as long again, 5600 always.
 */
const manyRequests = 1000;

/**
 * The edges of a configuration. Functions of users are given all of a tile, and may not be able to take whatever numbers; tables of sparse
 * weights and of prologues go with whole tiles.
 */
export function edgesOf(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
): Edges {
  const workers = workerCount(configuration, sizes, depthOf(problem, recipe), target);
  const plane = planeOf(configuration, sizes, target, workers);
  return edgesAmong(
    problem,
    configuration,
    plane,
    fetchedSides(problem, recipe, configuration, sizes),
  );
}

/** The same of tiles that lie and are fetched so. */
export function edgesAmong(
  problem: MatmulProblem,
  { columns, cluster }: PersistentConfiguration,
  plane: TilePlane,
  sides: { readonly [L in LastTiles]: FetchedSide },
): Edges {
  const isPlain =
    problem.epilogue === undefined &&
    problem.outputs.length === 0 &&
    !problem.sparse &&
    prologueOf(problem) === undefined;
  if (!isPlain) return {};
  const isMany = (last: LastTiles): boolean =>
    outsideAtOnce(plane, sides[last], last, cluster) >= manyRequests;
  const { row, column } = sides;
  // Blocks that share columns along k have a part of them each.
  const isShared = cluster > 1 && column.box === 1;
  const part = columns / cluster;
  const left = column.extent % columns;
  const moved = isShared && left > 0 && left <= columns - part;
  const ofRows = isMany("row") ? edgeOf(row) : undefined;
  if (!isMany("column")) return { row: ofRows };
  const { extent, box, requests } = column;
  const own = { tile: part, extent, blocks: moved ? 1 : cluster, box, requests };
  return {
    row: ofRows,
    column: edgeOf(isShared ? own : column),
    moved: moved ? true : undefined,
  };
}

/** Rows and columns of the last tiles that are asked for, where these are not all. */
export function windowsOf(
  { row, column, moved }: Edges,
  { columns, cluster }: PersistentConfiguration,
  sides: { readonly [L in LastTiles]: FetchedSide },
): { readonly [L in LastTiles]: number | undefined } {
  const parts = sides.column.box === 1 ? cluster : 1;
  if (moved === true) return { row, column: column ?? columns / cluster };
  return { row, column: column === undefined ? undefined : parts * column };
}
