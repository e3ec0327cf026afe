/**
 * Tiles in the order in which blocks come for them: a counter in global memory says which tile is next, so that a block
 * whose tiles were small takes more of them. The first tile of a block has the block's own number, for which nobody needs to
 * be asked. Then blocks take numbers until theirs is none of a tile; the block that takes the last number of all sets
 * the counter back to 0, ready for the next launch.
 *
 *   5 tiles, 2 blocks     block 0: 0, 2, 3, 4, 6: sets back     block 1: 1 (a long one), 5: ends
 *
 * Where one thread copies and others compute, the copying thread takes the numbers and hands them on through slots of
 * shared memory. It takes the next number when it has started all copies of a tile: as late as it can, so that no block keeps
 * a tile that another one could begin, and still some steps before the others are done. These read it as soon as they have
 * started the last step, so that it has come when the step's products have. A thread that does both asks before it works
 * on a tile. Nobody waits for an answer:
 *
 *   copy      copies of tile 0 · takes 2 · copies of tile 2 …
 *   first            tile 0: 0 1 2 3 reads 2 · result   tile 2: 0 1 …
 */
import { i32 } from "../../formats/dtype.ts";
import { barrier, smem } from "../arguments.ts";
import type { ScopedSpec } from "../arguments.ts";
import { when, whileLoop } from "../control.ts";
import { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import { Barrier } from "../barriers.ts";
import type { Tree } from "../tree.ts";
import { ring } from "./ring.ts";
import type { RingPosition } from "./ring.ts";

/** How many numbers a copying thread may be ahead. */
export const slots = ring(2);

const names = { numbers: "tile_numbers", posted: "tile_posted", taken: "tile_taken" } as const;

/** The shared memory and barriers by which numbers are handed to so many threads. */
export function mailboxScratch(readers: number): { readonly [name: string]: ScopedSpec } {
  return {
    [names.numbers]: smem(i32, [slots.depth]),
    [names.posted]: barrier({ count: slots.depth }),
    [names.taken]: barrier({ count: slots.depth, arrivals: readers }),
  };
}

/** Where the copying thread leaves numbers for the others. */
export class Mailbox {
  readonly #numbers: Ref<"i32">;
  readonly #posted: Barrier;
  readonly #taken: Barrier;

  constructor(objects: { readonly [name: string]: unknown }) {
    const [numbers, posted, taken] = Object.values(names).map((name) => objects[name]);
    if (!(numbers instanceof Ref && posted instanceof Barrier && taken instanceof Barrier))
      throw new Error("a mailbox has numbers and two barriers");
    this.#numbers = numbers as Ref<"i32">;
    this.#posted = posted;
    this.#taken = taken;
  }

  post(number: Scalar<"i32">, { slot, phase }: RingPosition): void {
    this.#taken.at(slot).wait({ parity: phase.xor(1) });
    this.#numbers.at(slot).store(number);
    this.#posted.at(slot).arrive();
  }

  take({ slot, phase }: RingPosition): Scalar<"i32"> {
    this.#posted.at(slot).wait({ parity: phase });
    const number = this.#numbers.at(slot).loadScalar();
    this.#taken.at(slot).arrive();
    return number;
  }
}

/** Who runs the tiles: the only thread of a block, the one that copies, or one that computes. */
export type Dealer =
  | { readonly kind: "alone"; readonly responses?: Responses | undefined }
  | {
      readonly kind: "leads";
      readonly mailbox: Mailbox;
      readonly responses?: Responses | undefined;
    }
  | { readonly kind: "follows"; readonly mailbox: Mailbox };

/** Asks for numbers, and waits for the answers. */
export interface Responses {
  ask(at: RingPosition): void;
  answer(at: RingPosition): Scalar<"i32">;
}

/** Where the numbers of tiles come from, one after the other. */
export interface TileSource {
  readonly first: Scalar<"i32">;
  readonly isTile: (number: Scalar<"i32">) => Scalar<"bool">;
  /** Asks for the next number as a tile begins, and gives it when it is called. */
  readonly ask: (at: RingPosition) => () => Scalar<"i32">;
}

/** Numbers from a counter: taken at once where nobody else waits for them, and else as late as can be. */
export function countedSource(count: Count, isEarly: boolean): TileSource {
  return {
    first: count.block,
    isTile: (number) => number.lt(count.total).and(number.ge(0)),
    ask() {
      const early = isEarly ? takeNumber(count) : undefined;
      return () => early ?? takeNumber(count);
    },
  };
}

/** What is counted. */
export interface Count {
  readonly counter: Ref<"i32">;
  /** How many tiles there are, and how many blocks take them. */
  readonly total: Scalar<"i32">;
  readonly blocks: Scalar<"i32">;
  /** Which of the blocks this is. */
  readonly block: Scalar<"i32">;
}

/** Takes the next number of all, and leaves the counter at 0 once it is the last. */
function takeNumber({ counter, total, blocks }: Count): Scalar<"i32"> {
  const number = counter.at(0).atomicAdd(1).add(blocks);
  when(number.eq(total.add(blocks).sub(1)), () => {
    counter.at(0).atomic("exchange", 0);
  });
  return number;
}

/** Something that is found once, at a time of somebody else's choice. */
export class Once<T> {
  readonly #make: () => T;
  #found: { readonly value: T } | undefined;

  constructor(make: () => T) {
    this.#make = make;
  }

  readonly find = (): void => {
    this.#found ??= { value: this.#make() };
  };

  get found(): T {
    if (this.#found === undefined) throw new Error("a tile ends before it is nearly done");
    return this.#found.value;
  }
}

/**
 * Runs the body for every number that this block takes, with its place and values handed from one to the next. The body
 * says when it is nearly done: what it has started runs on while the next number and its place are found.
 */
export function tilesFrom<P extends Tree, S extends Tree>(
  source: TileSource,
  dealer: Dealer,
  place: (number: Scalar<"i32">) => P,
  initial: S,
  body: (number: Scalar<"i32">, at: P, state: S, nearlyDone: () => void) => S,
): S {
  const found = (number: Scalar<"i32">): { number: Scalar<"i32">; placed: Tree } => ({
    number,
    placed: place(number),
  });
  const carry = { ...found(source.first), slot: slots.start(), state: initial as Tree };
  const end = whileLoop(
    carry,
    ({ number }) => source.isTile(number),
    ({ number, placed, slot, state }) => {
      const answer = asked(dealer, source, slot);
      const next = new Once(() => found(answer()));
      const after = body(number, placed as P, state as S, next.find);
      return { ...next.found, slot: slots.next(slot), state: after as Tree };
    },
  );
  return end.state as S;
}

/** The next number, handed on by the thread that asks for it. */
function asked(dealer: Dealer, source: TileSource, at: RingPosition): () => Scalar<"i32"> {
  if (dealer.kind === "follows") return () => dealer.mailbox.take(at);
  const answer = source.ask(at);
  return () => {
    const number = answer();
    if (dealer.kind === "leads") dealer.mailbox.post(number, at);
    return number;
  };
}
