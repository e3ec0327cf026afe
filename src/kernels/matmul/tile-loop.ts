/**
 * How the threads of a block go from one piece of work to the next. Dealt beforehand, each thread counts for itself. Where tiles take unequal time, blocks
 * take them from a counter in global memory (`lang/pipeline/counting.ts`), and the copying thread hands its numbers to the others:
 *
 *   tiles of few rows: 1, 4      dealt     block 0   0000 2222 4 6666        counted     block 0   0000 3333 5555
 *                                          block 1   1 3333 5555                         block 1   1 2222 4 6666
 */
import { loop } from "../../lang/index.ts";
import type { Ref, Scalar, Tree } from "../../lang/index.ts";
import { countedTiles } from "../../lang/pipeline/counting.ts";
import type { Mailbox } from "../../lang/pipeline/counting.ts";
import type { Segment, Segments } from "../../lang/pipeline/segments.ts";
import type { Work } from "./persistent.ts";

/** Where numbers come from, and by which way threads get them. */
export interface Counting {
  readonly counter: Ref<"i32">;
  readonly mailbox: Mailbox;
  readonly blocks: Scalar<"i32">;
}

/** What is said of a piece of work besides what it is. */
interface SegmentTurn {
  /** Whether it is this block's first one. */
  readonly isFirst: () => Scalar<"bool">;
  /**
   * To be called once. The copying thread takes the next number then, and others wait for it, so they have given all slots of a tile back before: it copies all of
   * one before it takes a number.
   */
  readonly findNext: () => void;
}

/** Runs the body for every piece of this block's work, with values handed from one to the next. */
export function eachSegment<S extends Tree>(
  { counting }: Work,
  { bounds, at }: Segments,
  kind: "leads" | "follows",
  state: S,
  body: (segment: Segment, state: S, turn: SegmentTurn) => S,
): S {
  const turn = (index: Scalar<"i32">, findNext: () => void): SegmentTurn => ({
    ...{ isFirst: () => index.eq(bounds.from), findNext },
  });
  if (counting === undefined)
    return loop({ ...bounds, carry: state as Tree }, (index, carried) =>
      body(
        at(index),
        carried as S,
        turn(index, () => undefined),
      ),
    ) as S;
  const { counter, mailbox, blocks } = counting;
  return countedTiles(
    { counter, total: bounds.to, blocks, block: bounds.from },
    { kind, mailbox },
    () => [],
    state,
    (number, _, carried, findNext) => body(at(number), carried, turn(number, findNext)),
  );
}
