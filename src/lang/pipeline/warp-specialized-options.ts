/** What `warpSpecialized` is told, and what the bodies of its tiles and steps get. */
import type { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import type { Tree } from "../tree.ts";
import type { Settled } from "./carries.ts";
import type { BlocksOf, Formats, InputsOf, OutputsOf } from "./options.ts";
import type { RegisterShares } from "./registers.ts";
import type { Axes, AxesOf } from "./step-grid.ts";
import type { Tiles } from "./tiles.ts";

/** Options of `warpSpecialized`: the tiles, what is loaded and stored, and how. */
export interface SpecializedOptions<W extends Axes, G, I extends Formats, O extends Formats> {
  /** Tiles that this thread block works through, one after the other; one without axes unless given. */
  readonly tiles?: Tiles<W>;
  /** How many steps a tile has along each axis, last axis fastest; by tile where it is a function. */
  readonly grid: G | ((tile: W) => G);
  /** Windows that are copied into shared memory: for each step, or for each tile if they do not depend on the step. */
  readonly inputs?: InputsOf<W & AxesOf<G>, I>;
  /** Windows of each computing thread that are copied out of shared memory. */
  readonly outputs?: OutputsOf<W & AxesOf<G> & { readonly part: Scalar<"i32"> }, O>;
  /** How many blocks of each input there is room for; 2 unless given. */
  readonly depth?: number;
  /** After how many more steps a block may be overwritten; 1 unless given, where the depth allows it. */
  readonly delay?: number;
  /** Inputs in the order in which their copies are started. */
  readonly prefetch?: readonly (keyof I & string)[];
  /** The program thread that copies; the first one unless given. */
  readonly copy?: string;
  /** Registers a lane of the copying thread and of the others; shared out by need unless given. */
  readonly registers?: RegisterShares;
  /** Every copy is waited for where it is started: slow, and the same results, for finding mistakes. */
  readonly synchronous?: boolean;
  /** In the end, outputs need only have been read from shared memory, and may still be on their way; they have landed unless given. */
  readonly waitReadOnly?: boolean;
}

/** What the body of a step gets. */
export type SpecializedStep<W, G, I extends Formats, O extends Formats> = W &
  AxesOf<G> &
  BlocksOf<I> &
  BlocksOf<O> & {
    /** Waits for a block that is declared `manual`, and gives it. */
    readonly wait: <N extends keyof I & string>(input: N) => Ref<I[N]>;
    /** Gives a block back that is declared `manual`. */
    readonly release: (input: keyof I & string) => void;
  };

/** Runs the steps of a tile; exactly once in the body of a tile. */
export interface RunSteps<W, G, I extends Formats, O extends Formats> {
  /** With values handed from step to step; gives the last ones, with tiles in the place of accumulators. */
  <const C extends Tree>(
    carry: C,
    body: (blocks: SpecializedStep<W, G, I, O>, carry: C) => NoInfer<C>,
  ): Settled<C>;
  /** The same, and `done` with the last ones; where tiles are split, once all parts of a tile are summed. */
  <const C extends Tree>(
    carry: C,
    body: (blocks: SpecializedStep<W, G, I, O>, carry: C) => NoInfer<C>,
    done: (sums: NoInfer<Settled<C>>) => void,
  ): void;
  (body: (blocks: SpecializedStep<W, G, I, O>) => void): void;
}

/** What the body of a tile gets. Of the blocks, those are there that do not depend on the step. */
export type SpecializedTile<W, G, I extends Formats, O extends Formats> = W &
  BlocksOf<I> &
  BlocksOf<O> & {
    /** Which of the computing threads this is, from 0. */
    readonly part: Scalar<"i32">;
    /** Runs the steps of this tile. */
    readonly steps: RunSteps<W, G, I, O>;
    /** Waits for the first block of an `early` input before the steps, and for the last one of another after them. */
    readonly wait: <N extends keyof I & string>(input: N) => Ref<I[N]>;
    /** Gives such a block back. */
    readonly release: (input: keyof I & string) => void;
  };
