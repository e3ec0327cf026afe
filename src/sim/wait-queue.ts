/** Who waits for something, and until what. */

interface Resumable {
  resume(): void;
}

/** What a thread looks at again and again, and how often it has changed. */
export interface Polled {
  /** How reports name it. */
  readonly name: string;
  readonly version: number;
  readonly waiters: WaitList;
}

/** What was looked at, with its version then. */
export type PolledVersions = ReadonlyMap<Polled, number>;

export function hasChanged(polled: PolledVersions): boolean {
  for (const [{ version }, before] of polled) if (version !== before) return true;
  return false;
}

/** Puts somebody aside until one of several things changes, and resumes once. */
export function waitForChange(agent: Resumable, polled: PolledVersions): void {
  let isWaiting = true;
  const once: Resumable = {
    resume() {
      if (isWaiting) agent.resume();
      isWaiting = false;
    },
  };
  for (const { waiters } of polled.keys())
    waiters.add(once, () => !isWaiting || hasChanged(polled));
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
