/** Who waits for something, and until what. */
import type { Agent } from "./agent.ts";

interface Waiter {
  readonly agent: Agent;
  /** Whether the agent's step would now pass. */
  readonly canPass: () => boolean;
}

export class WaitList {
  #waiters: Waiter[] = [];

  add(agent: Agent, canPass: () => boolean): void {
    this.#waiters.push({ agent, canPass });
  }

  /** Lets those go on whose wait is over; waking all of many would make each signal cost as much. */
  wake(): void {
    const waiters = this.#waiters;
    if (waiters.length === 0) return;
    this.#waiters = [];
    for (const waiter of waiters)
      if (waiter.canPass()) waiter.agent.resume();
      else this.#waiters.push(waiter);
  }
}
