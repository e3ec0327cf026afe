/**
 * Rings: buffers and barriers that are used one after the other, again and again. A position in a ring is a slot and a
 * phase, which turns each time around; both are carried by a loop and advance without a division:
 *
 *   ring(3)    step    0  1  2  3  4  5  6
 *              slot    0  1  2  0  1  2  0
 *              phase   0  0  0  1  1  1  0
 *
 *   full.at(p.slot).wait({ parity: p.phase })             the slot's block of this time around has landed
 *   empty.at(p.slot).wait({ parity: p.phase.xor(1) })     the block of the time before has been used; at first, nothing
 *
 * Turns are the same for consumers: each has a barrier, on which the one before it arrives.
 */
import { i32 } from "../../formats/dtype.ts";
import { captureLocation } from "../../support/location.ts";
import { constant } from "../create.ts";
import { isIndex } from "../indices.ts";
import type { Index } from "../indices.ts";
import { Scalar } from "../elementwise.ts";
import { isPositiveInteger } from "../sizes.ts";
import { Barrier } from "../barriers.ts";
import { wrongKind } from "../traced.ts";

/** Where in a ring something is; can be carried by a loop. */
export type RingPosition = {
  /** The number of the slot. */
  readonly slot: Scalar<"i32">;
  /** 0 the first time around, 1 the second, 0 the third: the parity of the slot's barriers. */
  readonly phase: Scalar<"i32">;
};

/** A ring of slots of shared memory, as pipelines fill and empty them in turn. */
export interface Ring {
  /** How many slots there are. */
  readonly depth: number;
  /** The first slot, the first time around. */
  start(): RingPosition;
  /** The slot after this one; after the last, the first one of the next time around. */
  next(position: RingPosition): RingPosition;
}

/** The order in which `depth` slots are used. */
export function ring(depth: number): Ring {
  if (!isPositiveInteger(depth))
    wrongKind("the depth of a ring", "a positive whole number", depth, captureLocation());
  return Object.freeze({
    depth,
    start: () => ({ slot: constant(i32, 0), phase: constant(i32, 0) }),
    next: ({ slot, phase }: RingPosition) => advance(depth, slot, phase),
  });
}

function advance(depth: number, slot: Scalar<"i32">, phase: Scalar<"i32">): RingPosition {
  if (depth === 1) return { slot, phase: phase.xor(1) };
  const following = slot.add(1);
  const wraps = following.eq(depth);
  return { slot: wraps.select(0, following), phase: phase.xor(wraps.cast(i32)) };
}

/** The slot after this one. */
export function nextSlot(depth: number, slot: Scalar<"i32">): Scalar<"i32"> {
  if (depth === 1) return slot;
  const following = slot.add(1);
  return following.eq(depth).select(0, following);
}

/** The position before the first, from which `next` leads to the start. */
export function beforeStart(depth: number): RingPosition {
  return { slot: constant(i32, depth - 1), phase: constant(i32, 1) };
}

/** An index as a scalar of the kernel. */
export function asScalar(index: Index): Scalar<"i32"> {
  return index instanceof Scalar ? index : constant(i32, index);
}

/** Options of `pingPong`. */
export interface PingPongOptions {
  /** A barrier for each consumer. */
  readonly barriers: Barrier;
  /** Which consumer this is, from 0. */
  readonly part: Index;
  /** How many consumers there are. */
  readonly count: number;
}

/** Ping-pong: consumers issue products one after the other, so that one computes while the tensor cores work for another. */
export interface PingPong {
  /** The state before the first turn, to be carried by the consumer's loop. */
  start(): Scalar<"i32">;
  /** Waits for this consumer's turn, which the first consumer has at once. */
  wait(state: Scalar<"i32">): void;
  /** Lets the next consumer go; the state for the turn after. */
  arrive(state: Scalar<"i32">): Scalar<"i32">;
}

/** Orders consumers: the first, the second, … the last, the first again (the ordered barrier of ping-pong kernels). */
export function pingPong({ barriers, part, count }: PingPongOptions): PingPong {
  const location = captureLocation();
  if (!(barriers instanceof Barrier))
    wrongKind("the barriers of pingPong", "a barrier for each consumer", barriers, location);
  if (!isIndex(part)) wrongKind("part of pingPong", "a number or an i32 scalar", part, location);
  if (!isPositiveInteger(count))
    wrongKind("count of pingPong", "a positive whole number", count, location);
  const own = asScalar(part);
  return Object.freeze({
    start: () => own.eq(0).cast(i32),
    wait: (state: Scalar<"i32">) => {
      barriers.at(part).wait({ parity: state });
    },
    arrive: (state: Scalar<"i32">) => {
      const following = own.add(1);
      barriers.at(following.eq(count).select(0, following)).arrive();
      return state.xor(1);
    },
  });
}
