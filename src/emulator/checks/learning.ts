/**
 * What polls tell a warp. A poll orders nothing by itself: whoever does not look at its outcome may go on
 * before the other side has done anything. So what was found counts only once the warp has decided
 * something by it, at a conditional jump, a guard or a barrier; and what a relaxed load found, only behind a
 * fence as well.
 *
 *   again:  mbarrier.try_wait … ready        told, but not yet relied on
 *           @!ready bra again                decided: accesses from here on are ordered
 */
import { Knowledge } from "../../sim/order/knowledge.ts";
import type { Timeline } from "../../sim/order/knowledge.ts";

export class Learning {
  readonly #timeline: Timeline;
  /** Waits for a decision; for a fence; for both. */
  #undecided = Knowledge.none;
  #unfenced = Knowledge.none;
  #neither = Knowledge.none;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** An acquiring read, or a wait that passed, found this. */
  learn(knowledge: Knowledge): void {
    this.#undecided = this.#undecided.join(knowledge);
  }

  /** A relaxed read found this. */
  see(knowledge: Knowledge): void {
    this.#neither = this.#neither.join(knowledge);
  }

  fence(): void {
    this.#timeline.acquire(this.#unfenced);
    this.#unfenced = Knowledge.none;
    this.learn(this.#neither);
    this.#neither = Knowledge.none;
  }

  decide(): void {
    if (this.#undecided !== Knowledge.none) {
      this.#timeline.acquire(this.#undecided);
      this.#undecided = Knowledge.none;
    }
    if (this.#neither !== Knowledge.none) {
      this.#unfenced = this.#unfenced.join(this.#neither);
      this.#neither = Knowledge.none;
    }
  }
}
