/**
 * Tiles of a product for a core's caches: both operands of a step and the sums lie in the second cache together, rows and columns are no
 * more than there are, and where the product is large there are tiles for several threads.
 *
 *   1024³ f32      128 × 256, steps of 256     128 KiB + 256 KiB + 128 KiB
 *   64 × 784 × 256 64 × 128, steps of 196      two tiles
 */
import type { Caches } from "../../../targets/target.ts";
import type { PlainConfiguration, ProductSizes } from "../configuration.ts";
import type { MatmulProblem } from "../problem.ts";
import { plainDepths, plainDepthsOf } from "./plain-depths.ts";

/** The most rows, columns and elements of k of a tile, and what they are multiples of: rows and columns of micro-kernels. */
const [mostRows, mostColumns, mostDepth] = [128, 256, 256];
const [rowUnit, columnUnit, depthUnit] = [4, 8, 4];
/** Depths that suit prologues, whose groups no step may cut. */
const depthChoices = [8, 16, 32, 64, 128, 256];

/** Of the second cache: the rest is for what passes through. */
const usedPart = 0.75;
/** Tiles of a large product, and the products that one of them has at least. */
const [wantedTiles, leastProducts] = [4, 1 << 22];

/** So many in equal parts of at most so many, each a multiple of the unit: 144 is one part of 144, 784 are four of 196. */
function evenPart(count: number, most: number, unit: number): number {
  const parts = Math.max(1, Math.ceil(count / most));
  return Math.max(unit, unit * Math.ceil(count / parts / unit));
}

/** The tile of a small product: all of it where it fits, so that no window goes over an edge. */
export function cacheTile(
  [m, n, k]: readonly [number, number, number],
  bytes: number,
  { second }: Caches,
): { readonly m: number; readonly n: number; readonly k: number } {
  const part = (count: number, most: number, unit: number): number =>
    count <= most ? count : evenPart(count, most, unit);
  const depth = part(k, mostDepth, depthUnit);
  const columns = part(n, mostColumns, columnUnit);
  let rows = part(m, mostRows, rowUnit);
  while (bytes * (rows * depth + columns * depth + rows * columns) > usedPart * second)
    rows = evenPart(rows, rows / 2, rowUnit);
  return { m: rows, n: columns, k: depth };
}

export function cacheTiles(
  problem: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  { second }: Caches,
): PlainConfiguration {
  const bytes = problem.accumulator.bits / 8;
  const depth = depthOf(problem, k);
  const fits = (rows: number, columns: number): boolean =>
    bytes * (rows * depth + columns * depth + rows * columns) <= usedPart * second;
  let rows = m < rowUnit ? Math.max(1, m) : evenPart(m, mostRows, rowUnit);
  let columns = evenPart(n, mostColumns, columnUnit);
  while (!fits(rows, columns) && rows > rowUnit) rows = evenPart(rows, rows / 2, rowUnit);
  if (problem.blockScales !== undefined) [rows, columns] = [64, 64];
  const tiles = (): number => batch * Math.ceil(m / rows) * Math.ceil(n / columns);
  while (tiles() < wantedTiles && rows * columns * k >= 2 * leastProducts && columns > columnUnit)
    columns = evenPart(columns, columns / 2, columnUnit);
  return { kernel: "plain", rows, columns, depth, splitK: 1 };
}

/** An even part of k, or where an operand is computed or stored in groups, what suits these. */
function depthOf(problem: MatmulProblem, k: number): number {
  const { prologues, blockScales } = problem;
  if ((prologues.a ?? prologues.b ?? blockScales) === undefined)
    return evenPart(k, mostDepth, depthUnit);
  // Of blocks with scales a step has one of each row and column: they are 128 deep.
  const suiting = plainDepthsOf(problem, blockScales === undefined ? depthChoices : plainDepths);
  return suiting.find((each) => each >= k) ?? suiting.at(-1) ?? depthUnit;
}
