/**
 * Prefetches the operands of a tile's first k-steps into L2 while the previous kernel finishes: memory answers later than TMA fills a stage.
 * A prefetch changes nothing, so it need not wait for that kernel; what it still writes of the operands goes to L2, too.
 *
 * Tiles side by side have the same rows, and those one below the other the same columns, so that each asks for a share of them:
 *
 *   rows of a        ▮▯▯▯▯▯▯▯  ▯▮▯▯▯▯▯▯  ▯▯▮▯▯▯▯▯ …    by tiles side by side
 */
import { constant, prefetch, slice, when } from "../../../lang/index.ts";
import type { Ref, Scalar, Slice } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { PersistentForm, Work } from "../kernel-context.ts";
import { sideWindow } from "./operands.ts";
import type { Side } from "./operands.ts";
import { hasOneTile } from "../tile-shapes.ts";

/** Tiles that share what they ask for, at most. */
const mostSharers = 16;
/**
 * Bytes that a block asks for of a side; more are in the way of what the kernel before still stores. With 2 KB 1024³ was 1.011 times as fast on an H200 and 2048³
 * 1.006, with 8 KB 0.99 times.
 */
const askedBytes = 2048;

/**
 * Whether the first steps of a product are asked for ahead: where blocks have one tile each. Pairs of blocks, and products of several rounds, took as long with it
 * (4096³ 1.002 times as long).
 */
export function asksAhead(form: PersistentForm): boolean {
  return hasOneTile(form) && form.configuration.cluster === 1 && form.recipe.parts === 1;
}

/** The multiplying threads ask for a share of rows and of columns. */
export function askAhead(work: Work, index: Scalar<"i32">): void {
  const { shapes, sides, form } = work;
  const { consumers, swapAB } = form.configuration;
  const { m, n } = form.sizes;
  const [height, width] = swapAB ? [n, m] : [m, n];
  const zero = constant(dtypes.i32, 0);
  const { top, left } = work.place(zero);
  const asked = [
    {
      ...{ side: sides.rows, operand: work.left, start: top, count: shapes.rows },
      ...{ sharers: Math.ceil(width / shapes.columns), place: left.div(shapes.columns) },
    },
    {
      ...{ side: sides.columns, operand: work.right, start: left, count: shapes.columns },
      ...{ sharers: Math.ceil(height / shapes.rows), place: top.div(shapes.rows) },
    },
  ];
  for (const [turn, each] of asked.entries()) {
    const ask = (): void => {
      askShare(work, each);
    };
    if (consumers === 1) ask();
    else when(index.eq(turn), ask);
  }
}

/** Rows or columns of a tile, and the tiles that have the same. */
interface AskedSide {
  readonly side: Side;
  readonly operand: Ref;
  readonly start: Scalar<"i32">;
  readonly count: number;
  readonly sharers: number;
  /** Which of them this tile is. */
  readonly place: Scalar<"i32">;
}

/** Those that do not lie along k are shared out by elements of k, so that whole lines are asked for. */
function askShare(
  { form, shapes: { depth } }: Work,
  { side, operand, start, count, sharers, place }: AskedSide,
): void {
  const zero = constant(dtypes.i32, 0);
  const bytes = (count * depth * side.stored.bits) / 8;
  const shares = Math.min(mostSharers, 2 ** Math.floor(Math.log2(Math.max(1, sharers))));
  const fitting = Math.floor((askedBytes * shares) / bytes);
  const elements = depth * Math.max(1, Math.min(form.configuration.stages, fitting));
  const part = place.and(shares - 1);
  const own = (first: Scalar<"i32">, whole: number): Slice => {
    const each = Math.ceil(whole / shares);
    return slice(notBefore(first.add(part.mul(each))), each);
  };
  const [tiles, along] = side.alongK
    ? [own(start, count), slice(0, elements)]
    : [slice(notBefore(start), count), own(zero, elements)];
  prefetch(sideWindow(side, operand, 0, zero, tiles, along));
}
