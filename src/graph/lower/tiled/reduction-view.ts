/**
 * How blocks see a reduction: as a matrix whose windows they fold, the tile that one block has, and into how many parts the reduced elements
 * are cut where there would be too few blocks for a GPU.
 *
 *   f32[8192, 768] over rows        24 blocks of 32 columns, 256 tiles each     44 parts of 6 tiles, then [44, 768] over rows
 *   f32[1000003] over all           1 block, 977 tiles                          245 parts of 4 tiles, then [245] over all
 *   f32[1000000, 3] over rows       tiles of 256 rows of 4 columns, the last of which nobody has
 */
import { cdiv } from "../../../lang/index.ts";
import { sizeOf } from "../../ops/types.ts";
import { tileExtent } from "./tiled.ts";

/** The operand as [outer, reduced, inner]. */
interface Blocked {
  readonly outer: number;
  readonly reduced: number;
  readonly inner: number;
}

/** The axes of a shape that have more than one element, in runs that are reduced or kept as a whole. */
export function runsOf(
  shape: readonly number[],
  dimensions: readonly number[],
): readonly { readonly extent: number; readonly isReduced: boolean }[] {
  const runs: { extent: number; isReduced: boolean }[] = [];
  for (const [axis, extent] of shape.entries()) {
    const isReduced = dimensions.includes(axis);
    const last = runs.at(-1);
    if (extent === 1) continue;
    if (last?.isReduced === isReduced) last.extent *= extent;
    else runs.push({ extent, isReduced });
  }
  return runs;
}

/** Undefined where other axes lie between the reduced ones. */
function blocked(shape: readonly number[], dimensions: readonly number[]): Blocked | undefined {
  const runs = runsOf(shape, dimensions);
  const at = runs.findIndex(({ isReduced }) => isReduced);
  const [own, ...others] = runs.filter(({ isReduced }) => isReduced);
  if (own === undefined || others.length > 0) return undefined;
  const extents = runs.map(({ extent }) => extent);
  return {
    outer: sizeOf(extents.slice(0, at)),
    reduced: own.extent,
    inner: sizeOf(extents.slice(at + 1)),
  };
}

/** Fewer elements than these are as well folded a lane each: neighbouring lanes share the lines that they read. */
const leastRow = 4;
const leastColumn = 32;
const leastBlock = 512;
const tileElements = 1024;
/** As many bytes of a row make up a line of memory. */
const lineBytes = 128;

/** A reduction by blocks, and the tile of one. */
export interface ReductionView extends Blocked {
  /** The axis of the tile that is folded: columns where the reduced axes are the innermost. */
  readonly along: 0 | 1;
  /** How many of the reduced elements a tile has, and how many results. */
  readonly depth: number;
  readonly width: number;
  /** Parts of the reduced elements with blocks of their own, and how many elements each has, a number of whole tiles. */
  readonly parts: number;
  readonly part: number;
}

/** Blocks that keep a large GPU busy. */
const enoughBlocks = 1056;
/** A block that folds fewer tiles than these, one after the other, takes no longer than a launch more does. */
const fewTiles = 16;
const leastTiles = 4;

function partsOf({ outer, reduced, inner }: Blocked, depth: number, width: number): number {
  const blocks = inner === 1 ? cdiv(outer, width) : outer * cdiv(inner, width);
  const tiles = cdiv(reduced, depth);
  const wanted = Math.floor(enoughBlocks / Math.max(1, blocks));
  return tiles < fewTiles || wanted < 2 ? 1 : Math.min(wanted, Math.floor(tiles / leastTiles));
}

/** The view of a reduction of so many elements in each row, of some bits. */
function viewOfBlocks(view: Blocked, bits: number): ReductionView {
  const { outer, reduced, inner } = view;
  const isRows = inner === 1;
  const line = tileExtent(inner, 1, (8 * lineBytes) / Math.max(8, bits));
  const depth = tileExtent(reduced, 1, isRows ? tileElements : tileElements / line);
  const width = tileExtent(isRows ? outer : inner, 1, tileElements / depth);
  const tiles = cdiv(cdiv(reduced, depth), partsOf(view, depth, width));
  const part = tiles * depth;
  return { ...view, along: isRows ? 1 : 0, depth, width, part, parts: cdiv(reduced, part) };
}

/** How blocks reduce these axes of elements of some bits; undefined where lanes do it as well, or where they lie apart. */
export function viewOf(
  shape: readonly number[],
  dimensions: readonly number[],
  bits: number,
): ReductionView | undefined {
  const view = blocked(shape, dimensions);
  if (view === undefined) return undefined;
  const { outer, reduced, inner } = view;
  const isThin =
    inner === 1 ? reduced < leastRow : reduced < leastColumn || reduced * inner < leastBlock;
  return isThin || outer * inner === 0 ? undefined : viewOfBlocks(view, bits);
}

/** How blocks reduce the parts of a view. */
export function viewOfParts({ outer, parts, inner }: ReductionView, bits: number): ReductionView {
  const { part, ...view } = viewOfBlocks({ outer, reduced: parts, inner }, bits);
  return { ...view, parts: 1, part: Math.max(part, view.depth * cdiv(parts, view.depth)) };
}
