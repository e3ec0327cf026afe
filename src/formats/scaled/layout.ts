/**
 * Where the scale of a block lies.
 *
 *   plain     one scale a block, in the order of the blocks: [rows, blocks]; what a block sticks out over the array does not count
 *   padded    the same with rows filled up to a multiple of 128 and blocks along the scaled axis to one of 4
 *   tiled     padded, in tiles of 128 rows × 4 blocks of 512 bytes each, as tensor cores of Blackwell take scales:
 *             [⌈rows / 128⌉, ⌈blocks / 4⌉, 32, 4, 4], where row r and block b are at
 *             [r / 128, b / 4, r mod 32, (r / 32) mod 4, b mod 4]
 *
 * Padded and tiled scales are of arrays that are scaled along their last axis, a scale a row; axes before the rows stay in front.
 * What the padding holds does not matter; it is written as zero bits.
 */
import { rowMajorStrides } from "../shape.ts";
import { blockExtents } from "./formats.ts";
import type { ScaledFormat } from "./formats.ts";

export const scaleLayouts = ["plain", "padded", "tiled"] as const;
/** How scales lie in memory. */
export type ScaleLayout = (typeof scaleLayouts)[number];

/** Rows and blocks of a tile of scales. */
export const scaleTile = Object.freeze({ rows: 128, blocks: 4 });

const upTo = (count: number, multiple: number): number => Math.ceil(count / multiple) * multiple;

/** The number of blocks along each axis: the shape of plain scales. */
export function blockCounts(
  format: Pick<ScaledFormat, "block">,
  shape: readonly number[],
  axis: number,
): number[] {
  const extents = blockExtents(format, shape.length, axis);
  return shape.map((extent, each) => Math.ceil(extent / (extents[each] ?? 1)));
}

/** Whether scales of a format along an axis of so many may have a layout. */
export function takesLayout(
  { block: [across] }: Pick<ScaledFormat, "block">,
  rank: number,
  axis: number,
  layout: ScaleLayout,
): boolean {
  return layout === "plain" || (across === 1 && rank >= 2 && axis === rank - 1);
}

/** The shape of the scales of an array. */
export function scaleShape(
  format: Pick<ScaledFormat, "block">,
  shape: readonly number[],
  axis: number,
  layout: ScaleLayout = "plain",
): number[] {
  const counts = blockCounts(format, shape, axis);
  if (layout === "plain") return counts;
  const rows = counts.at(-2) ?? 1;
  const blocks = counts.at(-1) ?? 1;
  const batch = counts.slice(0, -2);
  const paddedRows = upTo(rows, scaleTile.rows);
  const paddedBlocks = upTo(blocks, scaleTile.blocks);
  if (layout === "padded") return [...batch, paddedRows, paddedBlocks];
  return [...batch, paddedRows / scaleTile.rows, paddedBlocks / scaleTile.blocks, 32, 4, 4];
}

/** The place in a tile's 512 bytes of the scale of a row and block within it. */
function placeInTile(row: number, block: number): number {
  return (row % 32) * 16 + Math.floor(row / 32) * 4 + block;
}

/** The place among scales of a layout of each plain one, in the order of the plain ones. */
export function scalePlaces(
  format: Pick<ScaledFormat, "block">,
  shape: readonly number[],
  axis: number,
  layout: ScaleLayout,
): Int32Array {
  const counts = blockCounts(format, shape, axis);
  const total = counts.reduce((product, count) => product * count, 1);
  const places = new Int32Array(total);
  if (layout === "plain") return places.map((_, index) => index);
  const rows = counts.at(-2) ?? 1;
  const blocks = counts.at(-1) ?? 1;
  const paddedRows = upTo(rows, scaleTile.rows);
  const paddedBlocks = upTo(blocks, scaleTile.blocks);
  const tilesOfRow = paddedBlocks / scaleTile.blocks;
  for (let index = 0; index < total; index += 1) {
    const block = index % blocks;
    const row = Math.floor(index / blocks) % rows;
    const batch = Math.floor(index / (blocks * rows)) * paddedRows * paddedBlocks;
    const tile =
      Math.floor(row / scaleTile.rows) * tilesOfRow + Math.floor(block / scaleTile.blocks);
    places[index] =
      batch +
      (layout === "padded"
        ? row * paddedBlocks + block
        : tile * scaleTile.rows * scaleTile.blocks +
          placeInTile(row % scaleTile.rows, block % scaleTile.blocks));
  }
  return places;
}

/** The index of the plain scale of each element of an array, in row-major order. */
export function scaleIndices(
  format: Pick<ScaledFormat, "block">,
  shape: readonly number[],
  axis: number,
): Int32Array {
  const extents = blockExtents(format, shape.length, axis);
  const strides = rowMajorStrides(blockCounts(format, shape, axis));
  let indices = new Int32Array(1);
  for (const [each, extent] of shape.entries()) {
    const block = extents[each] ?? 1;
    const stride = strides[each] ?? 1;
    const next = new Int32Array(indices.length * extent);
    for (const [outer, start] of indices.entries())
      for (let index = 0; index < extent; index += 1)
        next[outer * extent + index] = start + Math.floor(index / block) * stride;
    indices = next;
  }
  return indices;
}
