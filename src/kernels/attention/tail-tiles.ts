/**
 * Tiles of rows that are not all alike. Blocks take tiles in rounds, of which the last is seldom full, and the last tile of a head seldom is either. So
 * where three consumers share a tile of 192 rows, some have 128, of which the third consumer has none: they take less time, and come last.
 *
 *   64 heads of 4096 rows, 132 blocks     22 tiles a head, the last of 64 rows       1408 tiles, 11 rounds of whole ones
 *                                         20 of 192 and 2 of 128                     1280 whole ones, 128 short ones: 10 rounds and a short one
 *
 * Tiles of two consumers have no short ones: each consumer has a softmax under the products of the other, and alone takes as long as both.
 */
import type { Scalar } from "../../lang/index.ts";
import { consumerRows } from "./configuration.ts";
import type { WarpSpecializedAttention } from "./configuration.ts";
import type { AttentionForm } from "./dimensions.ts";
import type { AttentionSizes } from "./scores.ts";

type Index = Scalar<"i32">;

const [wholeRows, shortRows] = [3 * consumerRows, 2 * consumerRows];

/** What a short tile takes, of what a whole one does. */
const shortTime = 0.8;

/** How many whole tiles fewer than a head could have are tried. */
const mostWithout = 12;

/** Whether a kernel has short tiles: where all take as long, since all rows see all columns. */
export function hasShortTiles(
  { problem, sizes }: AttentionForm,
  { consumers, schedule = "linear" }: WarpSpecializedAttention,
): boolean {
  const { left, right } = problem.window;
  const seesAll = left === undefined && right === undefined && problem.mask === undefined;
  return consumers === 3 && seesAll && sizes.ends === 0 && schedule === "linear";
}

/** How rows are dealt to blocks. */
interface ShortDeal {
  /** Whole tiles of a head; rows behind them are in short ones. */
  readonly whole: number;
  /** All tiles. */
  readonly tiles: number;
  /** What the busiest block takes, in whole tiles, and what each would take were all alike. */
  readonly time: number;
  readonly even: number;
}

/** The deal of which the busiest block is done first, of those with most whole tiles. */
export function shortDeal({ b, s, h }: AttentionSizes, processors: number): ShortDeal {
  const most = Math.ceil(s / wholeRows);
  const deals = Array.from({ length: Math.min(most, mostWithout) + 1 }, (_, without) => {
    const whole = most - without;
    const short = Math.max(0, Math.ceil((s - whole * wholeRows) / shortRows));
    const [long, tiles] = [b * h * whole, b * h * (whole + short)];
    const times = Array.from({ length: processors }, (_, block) => {
      const [own, all] = [long, tiles].map((count) => Math.ceil((count - block) / processors));
      return (own ?? 0) + shortTime * ((all ?? 0) - (own ?? 0));
    });
    const even = (long + shortTime * (tiles - long)) / processors;
    return { whole, tiles, time: Math.max(...times), even };
  });
  return deals.reduce((best, each) => (each.time < best.time ? each : best));
}

/** The tiles of a head as a kernel finds them. */
export interface ShortTiles {
  readonly whole: Index;
  readonly short: Index;
  /** The first row of a whole tile, or of a short one. */
  readonly topOf: (isShort: Scalar<"bool">, number: Index) => Index;
}

/** Of a kernel that is given the number of whole tiles: whatever it is, every row is in a tile. */
export function shortTiles(argument: unknown, s: Index): ShortTiles {
  const { whole } = argument as { readonly whole: Index };
  const start = whole.mul(wholeRows);
  const short = s
    .sub(start)
    .maximum(0)
    .add(shortRows - 1)
    .div(shortRows);
  const topOf = (isShort: Scalar<"bool">, number: Index): Index =>
    isShort.select(start.add(number.mul(shortRows)), number.mul(wholeRows));
  return { whole, short, topOf };
}
