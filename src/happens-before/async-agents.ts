/**
 * Agents for asynchronous operations. Each operation reads and writes as agents of its own, so that
 * nothing is ordered with it until its completion is awaited. An agent serves a later operation once
 * the issuer knows its previous one to be finished; the number of agents is then as large as the
 * pipeline is deep, and clocks stay small:
 *
 *   copy #1: agent 7 step 1     copy #2: agent 8 step 1     wait for #1     copy #3: agent 7 step 2
 *
 * Whoever knows step 2 of agent 7 also knows step 1, because the issuer of #3 did.
 */
import type { Clock } from "./clock.ts";
import type { Epoch } from "./knowledge.ts";

/** How many agents are looked at before a new one is made. */
const probes = 32;

/** Unfinished and finished operations, the longest unused first. */
class AgentQueue {
  #waiting: Epoch[] = [];
  #next = 0;

  /** The last step of an agent whose last step the clock includes, removed from the queue. */
  remove(clock: Clock): Epoch | undefined {
    const limit = Math.min(probes, this.#waiting.length - this.#next);
    for (let probe = 0; probe < limit; probe++) {
      const epoch = this.#waiting[this.#next++];
      if (epoch === undefined) return undefined;
      if (clock.includes(epoch.agent, epoch.count)) return epoch;
      this.add(epoch);
    }
    return undefined;
  }

  add(epoch: Epoch): void {
    if (this.#next > 64 && this.#next * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    this.#waiting.push(epoch);
  }
}

/**
 * The agents of the operations one thread issues. Reads and writes are kept apart, because a thread
 * that only ever awaits the reads of its copies would otherwise find its queue full of writes.
 */
export class AsyncAgents {
  readonly #newAgent: () => number;
  readonly #queues = { read: new AgentQueue(), write: new AgentQueue() };

  constructor(newAgent: () => number) {
    this.#newAgent = newAgent;
  }

  /** An agent's next step, for an operation issued by a thread with this clock. */
  take(side: "read" | "write", clock: Clock): Epoch {
    const queue = this.#queues[side];
    const last = queue.remove(clock);
    const epoch: Epoch =
      last === undefined
        ? { agent: this.#newAgent(), count: 1 }
        : { agent: last.agent, count: last.count + 1 };
    queue.add(epoch);
    return epoch;
  }
}
