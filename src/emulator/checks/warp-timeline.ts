/**
 * The life of a warp in rounds: what its lanes do to each other's memory is ordered from one round to the next, and not
 * within a round. A round ends where the lanes meet at `bar.warp.sync`, and where the warp hears back of what it has told
 * in this round, be it by a barrier of the block or cluster, an mbarrier, or a flag:
 *
 *   st.shared [a]     round 1
 *   bar.sync 0        publishes step 1, hears of it     round 2 begins
 *   ld.shared [a]     by any lane
 *
 * Shuffles, votes and elections bring lanes together and order no memory. Which lanes told and which heard is not looked
 * at: a meeting of some lanes counts for all.
 */
import { Timeline } from "../../order/knowledge.ts";
import type { Knowledge } from "../../order/knowledge.ts";

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
