/**
 * Feeds: inputs of a pipeline that travel together, through slots of shared memory with one barrier a slot that says
 * `full` and, where somebody else than the user of a slot refills it, one that says `empty`.
 *
 *   copying   wait empty 0 · copy into 0     wait empty 1 · copy into 1     …
 *   using                                    wait full 0 · use · arrive empty 0     wait full 1 · …
 *
 * | pace      | a slot is taken            | and released                                          |
 * |-----------|----------------------------|-------------------------------------------------------|
 * | each step | in every step              | `delay` steps later, the last ones at the end         |
 * | sometimes | where the window has moved | when the next slot is taken, with a delay a step later |
 * | never     | once in a run of the steps | at the end of the run, where there is another one      |
 */
import { i32 } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import { atLocation } from "../../support/location.ts";
import { barrier, smem } from "../arguments.ts";
import { copyAsync } from "../async.ts";
import type { CopyOptions } from "../async.ts";
import { loop, when } from "../control.ts";
import { constant } from "../create.ts";
import { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import { Barrier } from "../barriers.ts";
import type { Trace } from "../trace.ts";
import { placeBlock } from "./blocks.ts";
import type { BlockPlan, Pace } from "./blocks.ts";
import { beforeStart, ring } from "./ring.ts";
import type { Ring, RingPosition } from "./ring.ts";
import { arriveAt, numberHere, partHere, partOfSlot, partOfWindow } from "./multicast.ts";
import type { Peers, Sharers } from "../multicast.ts";
import type { Part } from "./multicast.ts";
import type { Axes } from "./step-grid.ts";
import type { PipelineScratch } from "./warp-scratch.ts";

export interface InputPlan extends BlockPlan {
  readonly fill: "zero" | "nan";
  readonly evict: CopyOptions["evict"];
  /** The axis along which sharers divide the block; undefined where the first of them copies all of it. */
  readonly divided: number | undefined;
}

export interface FeedPlan {
  readonly inputs: readonly InputPlan[];
  readonly pace: Pace;
  readonly depth: number;
  /** Steps after which a slot is released. */
  readonly delay: number;
  /** Steps by which copies run ahead, where the thread that uses the blocks starts them. */
  readonly lookahead: number;
  /** Whether the body itself says when it waits and when it is done. */
  readonly manual: boolean;
  /** Whether a step gets the block of the step after it. */
  readonly early: boolean;
  /** The program threads that copy. */
  readonly copiers: Sharers;
  /** Blocks of the cluster that hand parts to each other. */
  readonly peers: Peers | undefined;
  /** How many release a slot; 0 where it is refilled by the only thread that uses it. */
  readonly users: number;
  /** Whether every copy is waited for by whoever has started it. */
  readonly synchronous: boolean;
}

/** Where copies have got to; can be carried by a loop. */
export type Copying = {
  readonly position: RingPosition;
  readonly seen: readonly Scalar<"i32">[];
};

/** Where the use of blocks has got to; can be carried by a loop. */
export type Using = Copying;

/** The slot of a step, and whether it is another one than that of the step before; undefined where it always is. */
export interface Taken {
  readonly using: Using;
  readonly moved?: Scalar<"bool">;
}

export class Feed {
  readonly plan: FeedPlan;
  readonly #trace: Trace;
  readonly #location: Location;
  readonly #ring: Ring;
  readonly #full: Barrier;
  readonly #empty: Barrier | undefined;
  readonly #buffers: readonly Ref[];

  constructor(
    trace: Trace,
    plan: FeedPlan,
    objects: { readonly [name: string]: unknown },
    location: Location,
  ) {
    this.plan = plan;
    this.#trace = trace;
    this.#location = location;
    this.#ring = ring(plan.depth);
    const names = feedNames(plan);
    const [full, empty] = [objects[names.full], objects[names.empty]];
    if (!(full instanceof Barrier)) throw new Error("a feed has a barrier");
    this.#full = full;
    this.#empty = empty instanceof Barrier ? empty : undefined;
    this.#buffers = plan.inputs.flatMap(({ name }) => {
      const buffer = objects[name];
      return buffer instanceof Ref ? [buffer] : [];
    });
  }

  start(): Copying {
    const { pace, depth, inputs } = this.plan;
    if (pace !== "sometimes") return { position: this.#ring.start(), seen: [] };
    // The first of these says whether there was a step before, the others are where its window began.
    const count = 1 + (inputs[0]?.moving.length ?? 0);
    const seen = Array.from({ length: count }, () => constant(i32, 0));
    return { position: beforeStart(depth), seen };
  }

  /** Starts the copies of a step, where `enabled`. */
  copy(state: Copying, axes: Axes, enabled?: Scalar<"bool">): Copying {
    if (this.plan.pace !== "sometimes") {
      onlyWhen(enabled, () => {
        this.#refill(state.position, axes);
      });
      return { position: this.#ring.next(state.position), seen: [] };
    }
    const { moved, next } = this.#follow(state, axes);
    onlyWhen(enabled === undefined ? moved : enabled.and(moved), () => {
      this.#refill(next.position, axes);
    });
    return next;
  }

  /** Waits until the copies that were started last for `position` have landed. */
  landed({ slot, phase }: RingPosition): void {
    this.#full.at(slot).wait({ parity: phase });
  }

  /** Moves on to the slot that a step uses; a block that nothing uses any more is released. */
  advance(state: Using, axes: Axes): Taken {
    if (this.plan.pace !== "sometimes") return { using: state };
    const { moved, next } = this.#follow(state, axes);
    if (this.plan.delay === 0) this.#releaseLast(state, moved);
    return { using: next, moved };
  }

  /** Waits for the block of a step, unless the body does. */
  receive({ using: { position }, moved }: Taken): void {
    if (this.plan.manual) return;
    onlyWhen(moved, () => {
      this.landed(position);
    });
  }

  /** The blocks of a step, by name. */
  blocks({ position: { slot } }: Using): { readonly [name: string]: Ref } {
    return Object.fromEntries(
      this.plan.inputs.flatMap(({ name }, position) => {
        const buffer = this.#buffers[position];
        return buffer === undefined ? [] : [[name, buffer.at(slot)] as const];
      }),
    );
  }

  /** After a step, whose accesses by lanes are committed: what may be refilled is released. */
  leave(before: Using, { using, moved }: Taken, step: Scalar<"i32">): Using {
    const { pace, delay, manual } = this.plan;
    if (pace === "sometimes") {
      if (delay > 0 && moved !== undefined) this.#releaseLast(before, moved);
      return using;
    }
    if (!manual) this.#releaseEarlier(using.position.slot, delay, step);
    return { position: this.#ring.next(using.position), seen: [] };
  }

  /** After the last of `total` steps: releases what their delay has left. */
  finish({ position: { slot } }: Using, total: Scalar<"i32">): void {
    const { pace, delay, manual } = this.plan;
    if (this.#empty === undefined || pace !== "each step" || manual || delay === 0) return;
    loop(total.minimum(delay), (back) => {
      this.#arrive(this.#slotBefore(slot.sub(1).sub(back)));
    });
  }

  /**
   * After the last use, where another run may follow with the same barriers: each of them comes to an even number of phases, so that
   * that run begins as this one did. `position` is behind the last slot that was used.
   */
  rewind({ slot, phase }: RingPosition): void {
    for (let each = 0; each < this.plan.depth; each += 1) {
      const isOdd = slot.gt(each).select(phase.xor(1), phase).ne(0);
      when(isOdd, () => {
        const barrier = this.#full.at(each);
        for (const _ of this.plan.inputs) barrier.arrive();
        barrier.wait({ parity: 1 });
      });
    }
  }

  /** Gives a slot back. */
  release({ slot }: RingPosition): void {
    if (this.#empty !== undefined) this.#arrive(slot);
  }

  /** The position behind the last slot that steps have used. */
  after({ position }: Using): RingPosition {
    // Where windows move sometimes, steps stay at the slot that they use.
    return this.plan.pace === "sometimes" ? this.#ring.next(position) : position;
  }

  next(position: RingPosition): RingPosition {
    return this.#ring.next(position);
  }

  /** Releases the block before the one that a step has moved on to. */
  #releaseLast({ position, seen: [wasUsed] }: Using, moved: Scalar<"bool">): void {
    if (this.#empty === undefined || wasUsed === undefined) return;
    when(moved.and(wasUsed.ne(0)), () => {
      this.#arrive(position.slot);
    });
  }

  #releaseEarlier(slot: Scalar<"i32">, delay: number, step: Scalar<"i32">): void {
    if (this.#empty === undefined) return;
    if (delay === 0) this.#arrive(slot);
    else
      when(step.ge(delay), () => {
        this.#arrive(this.#slotBefore(slot.sub(delay)));
      });
  }

  /** A slot that was counted back from another one, below 0 perhaps. */
  #slotBefore(slot: Scalar<"i32">): Scalar<"i32"> {
    return slot.lt(0).select(slot.add(this.plan.depth), slot);
  }

  /** Whether the first of the sharers starts all copies. */
  get #copiesAlone(): boolean {
    return this.plan.inputs.every(({ divided }) => divided === undefined);
  }

  #arrive(slot: Scalar<"i32">): void {
    const { peers } = this.plan;
    if (this.#empty !== undefined)
      arriveAt(
        this.#empty.at(slot),
        this.#copiesAlone ? peers?.ranks().slice(0, 1) : peers?.ranks(),
      );
  }

  #refill({ slot, phase }: RingPosition, axes: Axes): void {
    const { inputs, copiers, peers } = this.plan;
    const sharers = peers === undefined ? [copiers] : [peers, copiers];
    const first = (): Scalar<"bool"> | undefined => numberHere(sharers)?.eq(0);
    // Whoever copies nothing does not wait either: phases would pass by him.
    onlyWhen(this.#copiesAlone ? first() : undefined, () => {
      this.#empty?.at(slot).wait({ parity: phase.xor(1) });
      inputs.forEach((input, position) => {
        const buffer = this.#buffers[position];
        if (buffer === undefined) return;
        const placed = placeBlock(this.#trace, input, axes);
        const copy = (part: Part | undefined): void => {
          copyAsync(partOfWindow(placed, part), partOfSlot(buffer.at(slot), part), {
            barrier: this.#full.at(slot),
            fill: input.fill,
            ...(input.evict !== undefined && { evict: input.evict }),
            ...(peers !== undefined && { multicast: peers.axes }),
          });
        };
        const { divided, shape } = input;
        atLocation(input.location, () => {
          if (divided !== undefined) copy(partHere(divided, shape[divided], sharers));
          else
            onlyWhen(this.#copiesAlone ? undefined : first(), () => {
              copy(undefined);
            });
        });
      });
    });
    if (this.plan.synchronous) this.landed({ slot, phase });
  }

  /** Whether the window of a step differs from that of the step before, and where the ring is then. */
  #follow(
    { position, seen }: Copying,
    axes: Axes,
  ): { readonly moved: Scalar<"bool">; readonly next: Copying } {
    const [input] = this.plan.inputs;
    if (input === undefined) throw new Error("a feed has inputs");
    const { starts } = placeBlock(this.#trace, input, axes);
    const [wasUsed, ...before] = seen;
    if (wasUsed === undefined) throw new Error("a block that moves remembers where it was");
    return atLocation(this.#location, () => {
      const moved = starts.reduce((some, start, axis) => {
        const last = before[axis];
        return last === undefined ? some : some.or(start.ne(last));
      }, wasUsed.eq(0));
      const following = this.#ring.next(position);
      const next = {
        slot: moved.select(following.slot, position.slot),
        phase: moved.select(following.phase, position.phase),
      };
      return { moved, next: { position: next, seen: [constant(i32, 1), ...starts] } };
    });
  }
}

function onlyWhen(condition: Scalar<"bool"> | undefined, body: () => void): void {
  if (condition === undefined) body();
  else when(condition, body);
}

/** What the feed's barriers are called in the kernel. */
function feedNames({ inputs }: FeedPlan): { readonly full: string; readonly empty: string } {
  const suffix = inputs.map(({ name }) => name).join("_");
  return { full: `full_${suffix}`, empty: `empty_${suffix}` };
}

/** The shared memory and barriers of a feed. */
export function feedScratch(plan: FeedPlan, location: Location): PipelineScratch {
  const { inputs, depth, copiers, peers, users } = plan;
  const names = feedNames(plan);
  const parts = copiers.count * (peers?.count ?? 1);
  const arrivals = inputs.reduce(
    (sum, { divided }) => sum + (divided === undefined ? 1 : parts),
    0,
  );
  const buffers = inputs.map(({ name, dtype, shape, location: line }) => [
    name,
    atLocation(line, () => smem(dtype, [depth, ...shape])),
  ]);
  return atLocation(location, () => ({
    ...(Object.fromEntries(buffers) as PipelineScratch),
    [names.full]: barrier({ count: depth, arrivals }),
    ...(users > 0 && {
      [names.empty]: barrier({ count: depth, arrivals: users * (peers?.count ?? 1) }),
    }),
  }));
}
