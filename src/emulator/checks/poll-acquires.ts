/**
 * What polls tell a warp. A poll orders nothing by itself: whoever does not look at its outcome may go on
 * before the other side has done anything. So what was found counts only once the warp has decided
 * something by it, at a conditional jump, a guard or a barrier; and what a relaxed load found, only behind a
 * fence as well, as far as that fence reaches.
 *
 *   again:  mbarrier.try_wait … ready        told, but not yet relied on
 *           @!ready bra again                decided: accesses from here on are ordered
 *
 * Warps that meet at a barrier of their block hand on what they have found and fenced: one may poll and
 * another fence, and one may fence and another set the flag.
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import type { Timeline } from "../../happens-before/knowledge.ts";
import { everything, joined, nothing, scoped } from "../../happens-before/memory-scopes.ts";
import type { Scope, Scoped } from "../../happens-before/memory-scopes.ts";

/** What warps hand on where they meet, beside what they know. */
export interface Handed {
  /** Found by polls, and relied on behind a fence. */
  readonly found: Scoped;
  /** Known at the last fence of each scope: what a relaxed write tells. */
  readonly fenced: Scoped;
}

export const nothingHanded: Handed = { found: nothing, fenced: nothing };

export function handedBy(left: Handed, right: Handed): Handed {
  return { found: joined(left.found, right.found), fenced: joined(left.fenced, right.fenced) };
}

export class Learning {
  readonly #timeline: Timeline;
  /** Waits for a decision; for a fence; for both. */
  #undecided = Knowledge.none;
  #unfenced = nothing;
  #neither = nothing;
  #fenced = nothing;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  get handed(): Handed {
    return { found: this.#unfenced, fenced: this.#fenced };
  }

  /** Takes what others handed on. */
  meet({ found, fenced }: Handed): void {
    this.#unfenced = joined(this.#unfenced, found);
    this.#fenced = joined(this.#fenced, fenced);
  }

  /** What was known at the last fence of a scope, or of a wider one. */
  fencedAt(scope: Scope): Knowledge {
    return this.#fenced[scope];
  }

  get fenced(): Scoped {
    return this.#fenced;
  }

  /** An acquiring read, or a wait that passed, found this. */
  learn(knowledge: Knowledge): void {
    this.#undecided = this.#undecided.join(knowledge);
  }

  /** A relaxed read found this. */
  see(knowledge: Scoped): void {
    this.#neither = joined(this.#neither, knowledge);
  }

  fence(reach: Scope): void {
    this.#timeline.acquire(this.#unfenced[reach]);
    this.learn(this.#neither[reach]);
    if (reach === everything) {
      this.#unfenced = nothing;
      this.#neither = nothing;
    }
    const told = this.#timeline.publish();
    this.#fenced = scoped((scope) => (scope <= reach ? told : this.#fenced[scope]));
  }

  decide(): void {
    if (this.#undecided !== Knowledge.none) {
      this.#timeline.acquire(this.#undecided);
      this.#undecided = Knowledge.none;
    }
    if (this.#neither !== nothing) {
      this.#unfenced = joined(this.#unfenced, this.#neither);
      this.#neither = nothing;
    }
  }
}
