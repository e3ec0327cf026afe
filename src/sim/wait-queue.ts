/** Who waits for something, and until what. */

interface Resumable {
  resume(): void;
}

interface Waiter {
  readonly agent: Resumable;
  /** Whether the agent's step would now pass. */
  readonly canPass: () => boolean;
}

export class WaitList {
  #waiters: Waiter[] = [];

  add(agent: Resumable, canPass: () => boolean): void {
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
