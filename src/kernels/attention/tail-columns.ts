/**
 * The last tile of columns, of which there are often fewer than a tile has. Products have any multiple of 16 columns (32 of FP8), so no more are
 * multiplied than it takes for those that are there:
 *
 *   4096 columns, 192 at a time      21 tiles of 192, and one of 64
 *
 * That is so where all rows see all columns. Else rows end in tiles of their own, which are compared element by element. Where blocks of rows are taken
 * in pairs, the place of a pair that has no rows goes over one tile alone, so that it has no last one behind others.
 */
import type { WarpSpecializedAttention } from "./configuration.ts";
import type { AttentionForm } from "./dimensions.ts";
import { isNarrow } from "./problem.ts";

/** How many columns of a tile are multiplied, and whether all rows are known to see all of them. */
export interface TileColumns {
  readonly width: number;
  readonly isClear: boolean;
}

/** A last tile that has fewer columns than others, and whether there are no others. */
export interface EndingColumns extends TileColumns {
  readonly isOnly: boolean;
}

/** The first tile of columns, and the last one where it has fewer, all rows seeing all of these. */
export function columnsAtEnds(
  { problem, sizes }: AttentionForm,
  { columns, schedule }: WarpSpecializedAttention,
): { readonly first: TileColumns; readonly ending: EndingColumns | undefined } {
  const { left, right } = problem.window;
  const rest = sizes.t % columns;
  const isSame = left === undefined && right === undefined && problem.mask === undefined;
  if (!isSame || sizes.ends > 0 || rest === 0 || schedule === "paired")
    return { first: { width: columns, isClear: false }, ending: undefined };
  const together = isNarrow(problem) ? 32 : 16;
  const ending = {
    width: Math.ceil(rest / together) * together,
    ...{ isClear: rest % together === 0, isOnly: sizes.t < columns },
  };
  return { first: ending.isOnly ? ending : { width: columns, isClear: true }, ending };
}

/** Whether it is a last tile, and not how many tiles are clear. */
export function isEnding(columns: object): columns is EndingColumns {
  return "isOnly" in columns;
}
