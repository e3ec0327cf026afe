/**
 * Which tiles of scores are looked at, and in which of them the mask is asked. A tile that ranges of rows and columns prove to be
 * empty is never fetched, and one that they prove to be whole is not compared:
 *
 *   mask: prefix of 100 columns for all, causal behind it        columns  0   1   2   3
 *                                                   rows 0                #   /            # whole    / asked
 *                                                   rows 1                #   /   /        the rest is skipped
 *                                                   rows 2                #   #   /   /
 *
 * The rules are those of a plan, which counts tiles on the host, and of the launch that lists them on the device (`block-mask.ts`).
 */
import type { TileCounts } from "../../device/operation.ts";
import type { AttentionForm } from "./dimensions.ts";
import { hostNumbers } from "./mask-intervals.ts";
import type { Arithmetic, Ends } from "./mask-intervals.ts";
import type { Window } from "./problem.ts";
import { tracedMask } from "./traced-mask.ts";
import type { PlaceEnds, TracedMask } from "./traced-mask.ts";

/** Tiles of scores of a kernel. */
export interface TileShape {
  readonly rows: number;
  readonly columns: number;
}

/** What blocks keep: rows of q, over tiles of columns, or columns of k and v, over tiles of rows. */
export type Kept = "rows" | "columns";

/** What is known of a tile of scores: conditions are 1 and 0. */
export interface Known<T> {
  /** Whether some row may see some column. */
  readonly isSeen: T;
  /** Whether every row sees every column, as far as the mask has it, and the window. */
  readonly isWhole: { readonly mask: T; readonly window: T };
}

export function knownOf<T>(
  arithmetic: Arithmetic<T>,
  { left, right }: Window,
  mask: TracedMask | undefined,
  place: PlaceEnds<T>,
): Known<T> {
  const { of, add, min, atMost } = arithmetic;
  const { row, column } = place;
  // What may be seen, and what is seen for certain: a comparison for each side of the window.
  const sides = [
    ...(right === undefined
      ? []
      : [
          [
            atMost(column.low, add(row.high, of(right))),
            atMost(column.high, add(row.low, of(right))),
          ],
        ]),
    ...(left === undefined
      ? []
      : [
          [
            atMost(row.low, add(column.high, of(left))),
            atMost(row.high, add(column.low, of(left))),
          ],
        ]),
  ] as const;
  const asked = mask?.endsOf(arithmetic, place) ?? { low: of(1), high: of(1) };
  return {
    isSeen: sides.reduce((sum, [may = of(1)]) => min(sum, may), asked.high),
    isWhole: {
      mask: asked.low,
      window: sides.reduce((sum, [, does = of(1)]) => min(sum, does), of(1)),
    },
  };
}

/** How many tiles of scores are skipped, seen whole, and compared element by element, in all heads and batches. */
export function tileCounts(form: AttentionForm, shape: TileShape, kept: Kept): TileCounts {
  const { b, h, s, t } = form.sizes;
  const mask = tracedMask(form, shape);
  const [down, across] = [Math.ceil(s / shape.rows), Math.ceil(t / shape.columns)];
  const [batches, heads] = [mask?.asks.batch === true ? b : 1, mask?.asks.head === true ? h : 1];
  let [whole, masked] = [0, 0];
  for (let batch = 0; batch < batches; batch += 1)
    for (let head = 0; head < heads; head += 1) {
      const counts = countTiles(form, shape, mask, { batch, head });
      whole += counts.whole;
      masked += counts.masked;
      // Rows that see nothing look at one tile, which says so.
      if (kept === "rows") masked += counts.emptyRows;
    }
  const times = (b / Math.max(1, batches)) * (h / Math.max(1, heads));
  const all = b * h * down * across;
  return { skipped: all - (whole + masked) * times, whole: whole * times, masked: masked * times };
}

interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Of one head: ranges of tiles that are all alike are counted at once, others are halved. */
function countTiles(
  { problem, sizes }: AttentionForm,
  { rows, columns }: TileShape,
  mask: TracedMask | undefined,
  { batch, head }: { readonly batch: number; readonly head: number },
): { readonly whole: number; readonly masked: number; readonly emptyRows: number } {
  const exactly = (value: number): Ends<number> => ({ low: value, high: value });
  const reach = ({ from, to }: Stretch, size: number, end: number): Ends<number> => ({
    low: from * size,
    high: Math.min(to * size, end) - 1,
  });
  let [whole, masked] = [0, 0];
  const seenRows = new Set<number>();
  const count = (down: Stretch, across: Stretch): void => {
    const place = {
      ...{ batch: exactly(batch), head: exactly(head) },
      ...{ row: reach(down, rows, sizes.s), column: reach(across, columns, sizes.t) },
    };
    const { isSeen, isWhole } = knownOf(hostNumbers, problem.window, mask, place);
    if (isSeen === 0) return;
    const [tall, wide] = [down.to - down.from, across.to - across.from];
    const isCut = across.to * columns > sizes.t;
    const isAlike = isWhole.mask === 1 && isWhole.window === 1 && (!isCut || wide === 1);
    if (tall * wide > 1 && !isAlike) {
      for (const part of halved(tall > wide ? down : across))
        count(tall > wide ? part : down, tall > wide ? across : part);
      return;
    }
    for (let row = down.from; row < down.to; row += 1) seenRows.add(row);
    if (isAlike && !isCut) whole += tall * wide;
    else masked += tall * wide;
  };
  const [down, across] = [Math.ceil(sizes.s / rows), Math.ceil(sizes.t / columns)];
  if (down * across > 0) count({ from: 0, to: down }, { from: 0, to: across });
  return { whole, masked, emptyRows: across === 0 ? 0 : down - seenRows.size };
}

function halved({ from, to }: Stretch): readonly Stretch[] {
  const middle = Math.floor((from + to) / 2);
  return [
    { from, to: middle },
    { from: middle, to },
  ];
}
