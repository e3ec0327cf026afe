/**
 * How long blocks take to fetch what a step multiplies, in rows of 128 bytes. Rows that begin inside a line of the cache are two requests instead
 * of one, and those that begin at 16 bytes besides multiples of 32 have sectors that are fetched twice. These take the longer the more rows are
 * asked for at once, and the more blocks ask for the same, as if whole sectors were given to several blocks at once and parts of them to one after
 * the other. On an H200, µs:
 *
 *   bytes between rows of a are multiples of             128    64     32     16
 *   2048 × 2048 × 1024 to 992, tiles of 64 × 64          22.8   23.1   22.9   33.4
 *   the same of 128 × 256                                13.2   13.3   13.3   13.5
 *   64 × 5376 × 448 to 416, 84 tiles of 64 × 64          3.21   3.22   3.29   4.29: all of them ask for the same rows
 *   the same in 42 of 64 × 128                           3.60   3.52   3.57   3.86
 *   rows of a and of b, by columns, 1024 × 2560 × 1024
 *   to 992, tiles of 64 × 128                            11.9   14.5   15.8   22.3
 *   the same in pairs of 128 × 192                       11.1   11.2   11.3   11.8
 */
import { packedBytes } from "../../../formats/dtype.ts";
import { rowBytes } from "../configuration.ts";
import type { ProductSizes } from "../configuration.ts";
import type { TileSides } from "../mainloop/register-operand.ts";
import { launchSeconds } from "./rates.ts";
import type { LastTiles, TilePlane } from "./out-of-bounds.ts";
import { preparationsOf } from "../prologue/prepare.ts";
import type { Preparation } from "../prologue/prepare.ts";
import type { MatmulProblem } from "../problem.ts";
import { storedDepth } from "../prologue/prologue.ts";
import type { Recipe } from "../f32-emulation.ts";
import { storedHalf } from "../weights/sparse-weights.ts";

/** Bytes a second that the shared cache gives one processor, and how much more where most of the others have nothing to do. */
const [cacheBytes, cacheOfFew] = [141e9, 0.522];
/** How much longer rows take that all lie across lines, and columns that come in boxes of half lines. */
const [acrossLines, halfLines] = [0.774, 2.09];
/** Bytes of a sector of the cache; seconds of a row that lies across sectors, for each that is asked for at once, and for each block that asks for it. */
const sectorBytes = 32;
const acrossSeconds = 0.91e-11;
const sharedSeconds = 0.706e-9;
/** Bytes a second that memory gives and takes for operands which are prepared. */
const preparedBytes = 1.7e12;

/** Bytes a second for one processor, where such a part of them has nothing to do. */
export function cacheRate(idle: number): number {
  return cacheBytes * (1 + cacheOfFew * idle);
}

/** Rows and columns of a step that blocks fetch, each of them so many bytes. */
interface FetchedTiles {
  readonly rows: number;
  readonly columns: number;
  /** Blocks that share columns, of which each fetches a part. */
  readonly cluster: number;
  readonly bytes: { readonly [L in LastTiles]: number };
  /** The power of two, up to a line, at whose multiples they begin in bytes. */
  readonly begin: { readonly [L in LastTiles]: number };
  /** Whether columns come in half lines. */
  readonly halved: boolean;
  readonly plane: TilePlane;
}

/** Seconds in which a block fetches them from the cache at such a rate. */
export function fetchingOf(
  { rows, columns, cluster, bytes, begin, halved, plane }: FetchedTiles,
  rate: number,
): { readonly [L in LastTiles]: number } {
  const { workers } = plane;
  const sharers = sharersOf(plane);
  const longer = halved ? halfLines : 1;
  const ofColumns = (longer * (columns / cluster) * bytes.column) / rate;
  const across = (side: LastTiles, atOnce: number): number =>
    begin[side] < sectorBytes ? atOnce * acrossSeconds + sharers[side] * sharedSeconds : 0;
  const lines = (side: LastTiles): number => 1 + (1 - begin[side] / rowBytes) * acrossLines;
  return {
    row: lines("row") * ((rows * bytes.row) / rate) + across("row", rows * cluster * workers),
    column: lines("column") * ofColumns + across("column", columns * workers),
  };
}

/** How many tiles at once have the same rows, and the same columns. */
export function sharersOf({ down, across, workers, group }: TilePlane): {
  readonly [L in LastTiles]: number;
} {
  const tiles = Math.min(workers, down * across);
  const below = Math.min(down, Math.max(group, tiles / across));
  return { row: Math.min(across, Math.max(1, tiles / below)), column: below };
}

/** What is done with operands before, in seconds, and at multiples of how many bytes their rows begin. */
interface Operands {
  readonly preparing: number;
  readonly begin: { readonly a: number; readonly b: number };
}

/** Those of tiles whose sides are such; they are asked once for each, since there are hundreds of configurations. */
export function operandsOf(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
): (tiles: TileSides) => Operands {
  const found: Operands[] = [];
  return ({ swapAB, cluster }) => {
    const place = 2 * cluster + (swapAB ? 1 : 0);
    return (found[place] ??= operandsFor(problem, recipe, sizes, { swapAB, cluster }));
  };
}

function operandsFor(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  tiles: TileSides,
): Operands {
  const { a, b } = preparationsOf(problem, recipe, sizes, tiles);
  return {
    preparing: [a, b].reduce(
      (sum, each) => sum + (each === undefined ? 0 : preparationSeconds(each)),
      0,
    ),
    begin: {
      a: a === undefined ? beginOf(problem, "a", sizes) : rowBytes,
      b: b === undefined ? beginOf(problem, "b", sizes) : rowBytes,
    },
  };
}

/** Reading an operand and writing its parts; rows that are not aligned are read element by element. */
function preparationSeconds({ dtype, parts, batch, rows, columns }: Preparation): number {
  const bytes = packedBytes(dtype, batch * rows * columns) * (parts + 1);
  return launchSeconds + bytes / preparedBytes;
}

/** At multiples of how many bytes rows of an operand begin, which TMA takes at multiples of 16. */
function beginOf(problem: MatmulProblem, name: "a" | "b", { m, n, k }: ProductSizes): number {
  const isSparse = problem.sparse && name === "b";
  const stored = isSparse ? storedHalf(k) : storedDepth(problem.prologues[name], k);
  const along = problem.major[name] === "k" ? Number(stored) : name === "a" ? m : n;
  const bytes = packedBytes(problem[name].dtype, along);
  return [rowBytes, 64, 32].find((each) => bytes % each === 0) ?? 16;
}
