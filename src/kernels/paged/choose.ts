/** How attention to a paged cache is divided where nothing is told: enough bytes in flight, and splits that fill the processors. */
import type { Target } from "../../targets/target.ts";
import { packingOf, paddedHead } from "./arrays.ts";
import { narrowBlocks, pagedBytes } from "./attend.ts";
import type { PagedConfiguration } from "./configuration.ts";
import type { PagedProblem, PagedSizes } from "./problem.ts";

/**
 * Bytes of shared memory that a block is worth, and blocks of a processor: several, each with some tiles in flight, and as many on each of its
 * four schedulers: 6 blocks took 1.14 times as long as 4, perhaps because splits of a scheduler with more of them end late. FP8 is converted before
 * it is multiplied, which more warps have to share.
 */
const few16 = { bytes: 48 * 1024, blocks: 4 };
const few8 = { bytes: 20 * 1024, blocks: narrowBlocks };
const many = { bytes: 48 * 1024, blocks: 3 };
/** Shared memory that the driver takes of a block. */
const reservedBytes = 2048;

/** Tiles of a split at least: putting parts together takes as long as some of them. */
const leastTiles = 4;
/**
 * Tiles of a split from which on there are two rounds of splits, of as many blocks as a processor holds: the second one is begun where there is
 * room first, which gains more than beginning again takes (1.03 at 41 tiles, 1.01 at 21, 0.90 at 10).
 */
const leastOfTwoRounds = 16;

/**
 * Splits of the only sequence, of which each has a part: few more than are put together at once are left out, for which another turn would be waited for, or
 * for which blocks of twice as many warps would find no room beside the splits before these end.
 */
function wholeTurns(splits: number): number {
  const over = splits % (splits < 2 * partsAtOnce ? partsAtOnce : 2 * partsAtOnce);
  return over * mostLeftOut <= splits ? splits - over : splits;
}

/** Parts that four warps put together at once, twice as many eight, and what part of all splits is left out at most. */
const [partsAtOnce, mostLeftOut] = [128, 16];

/** Tokens of a tile: whole pages, or a whole part of one. Undefined for pages that are neither. */
export function possibleColumns(
  size: number,
  most: number,
): PagedConfiguration["columns"] | undefined {
  const fits = (columns: number): boolean =>
    columns <= most && (size % columns === 0 || columns % size === 0);
  return ([128, 64, 32, 16] as const).find(fits);
}

/** Tiles of all sequences, were they as long as the table allows. */
export function mostTiles(sizes: PagedSizes, configuration: PagedConfiguration): number {
  const { tokens, parts } = packingOf(sizes, configuration);
  const blocks = Math.ceil(sizes.s / tokens) * parts;
  const each = Math.ceil((sizes.most * sizes.size) / configuration.columns);
  return sizes.b * blocks * Math.max(1, each);
}

/** Whether all rows of q that share a head of k and v are those of one tile. */
function fitsRows(sizes: PagedSizes, rows: 8 | 16): boolean {
  const { heads, parts } = packingOf(sizes, { rows });
  return sizes.s * heads * parts <= rows;
}

export function choosePaged(
  problem: PagedProblem,
  sizes: PagedSizes,
  target: Target,
): PagedConfiguration | undefined {
  const { d, e, kv } = sizes;
  const few = fitsRows(sizes, 16);
  const wide = paddedHead(Math.max(d, e)) > 128;
  const warps = few ? 1 : 4;
  // Wide heads fill the registers: of FP8 all of a tile is there, in 16 bits.
  const isNarrow = problem.k.dtype.bits === 8;
  const rows = few ? (isNarrow && fitsRows(sizes, 8) ? 8 : 16) : 64;
  const columns = possibleColumns(
    sizes.size,
    few ? (wide ? 16 : 32) : wide ? (isNarrow ? 16 : 32) : 64,
  );
  if (columns === undefined) return undefined;
  const made = ([8, 4, 2] as const).map(
    (stages) => ({ rows, warps, columns, stages, splits: 1 }) as const,
  );
  const bytes = (configuration: PagedConfiguration) =>
    pagedBytes({ problem, sizes, configuration });
  const worth = few ? (isNarrow ? few8 : few16) : many;
  const configuration = made.find((each) => bytes(each) <= worth.bytes) ?? made[2];
  if (configuration === undefined) return undefined;
  const blocks = Math.max(
    1,
    Math.floor(target.sharedMemoryPerBlock / (bytes(configuration) + reservedBytes)),
  );
  const splitsOf = (each: number): number => Math.floor((target.processors * each) / kv);
  const tiles = mostTiles(sizes, configuration);
  const twice = 2 * splitsOf(blocks);
  const hasRounds = few && !isNarrow && tiles >= leastOfTwoRounds * twice;
  const most = Math.min(
    hasRounds ? twice : splitsOf(Math.min(blocks, worth.blocks)),
    Math.ceil(tiles / leastTiles),
  );
  const { tokens, parts } = packingOf(sizes, configuration);
  const isAlone = sizes.b * Math.ceil(sizes.s / tokens) * parts === 1;
  const splits = isAlone ? wholeTurns(most) : most;
  return { ...configuration, splits: Math.max(1, splits) };
}
