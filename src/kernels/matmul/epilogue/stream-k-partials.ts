/**
 * How sums lie in memory that a block hands to another. Tensor cores leave four numbers of every eight columns in each lane, two of a row and
 * two of the eighth row below it. A row after the other, these would be written 8 bytes at a time, in eight lines of the cache at once;
 * nobody but the other block reads them, so they lie as lanes hold them, 16 bytes of each side by side:
 *
 *   row      16 w + 8 h + g        memory   [column / 8, 32 w + 4 g + q, 2 h + p]
 *   column   8 c + 2 q + p                               └── lane ──┘
 */
import type { Tile } from "../../../lang/index.ts";
import { threadRows } from "../configuration.ts";

const [warps, halves, groups, pairs, each] = [4, 2, 8, 4, 2];
const eight = pairs * each;

/** The shape of a thread's sums of so many columns, as they are handed on. */
export function handedShape(columns: number): readonly number[] {
  return [columns / eight, threadRows * eight];
}

/** In how many parts a block adds sums of others: lanes with 128 sums of 256 columns have no registers for as many of another block's at once. */
export function handedPieces(columns: number): number {
  return columns > 128 && columns % (2 * eight) === 0 ? 2 : 1;
}

export function asHanded(sums: Tile): Tile {
  const [, columns = 0] = sums.shape;
  return sums
    .reshape([warps, halves, groups, columns / eight, pairs, each])
    .transpose([3, 0, 2, 4, 1, 5])
    .reshape(handedShape(columns));
}

export function fromHanded(handed: Tile): Tile {
  const [eights = 0] = handed.shape;
  return handed
    .reshape([eights, warps, groups, pairs, halves, each])
    .transpose([1, 4, 2, 0, 3, 5])
    .reshape([threadRows, eights * eight]);
}
