/**
 * The life of a warp in rounds. Within a round nothing orders the memory accesses of two lanes; from one round to the next
 * they are ordered. A round ends where the lanes converge at `bar.warp.sync`, and where the warp acquires what it released
 * in this round: at a barrier of the block or cluster, an mbarrier, or a flag:
 *
 *   st.shared [a]     round 1
 *   bar.sync 0        releases step 1, acquires it     round 2 begins
 *   ld.shared [a]     by any lane
 *
 * Shuffles, votes and elections make lanes converge and order no memory. Which lanes released and which acquired is not
 * tracked: a `bar.warp.sync` of some lanes counts for all.
 */
import { Timeline } from "../../happens-before/knowledge.ts";
import type { Knowledge } from "../../happens-before/knowledge.ts";

export class WarpTimeline extends Timeline {
  readonly #newRound: () => number;
  #round: number;
  /** The step in which the round began. */
  #since: number;

  constructor(newAgent: () => number, start: Knowledge, newRound: () => number) {
    super(newAgent, start);
    this.#newRound = newRound;
    this.#round = newRound();
    this.#since = this.count;
  }

  /** No other warp has a round of this number. */
  get round(): number {
    return this.#round;
  }

  meet(): void {
    this.#round = this.#newRound();
    this.#since = this.count;
  }

  override acquire(knowledge: Knowledge): void {
    super.acquire(knowledge);
    if (knowledge.generic.includes(this.agent, this.#since)) this.meet();
  }
}
