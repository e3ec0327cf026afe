/**
 * Clocks that no machine's speed decides, for what looks at the time to choose: whether the host is due a break, whether a
 * launch is long enough to be shared. Turns of the host are counted where it takes them.
 *
 *   every look at the clock is 20 ms after the last one    each piece of work is long: there is a break after it
 *   the clock stands                                       each launch is short
 */
import { yieldInterval } from "../../src/support/event-loop-yield.ts";

/** Does work while every look at the clock is so many milliseconds after the last one. */
async function withSteps<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
  const own = Object.getOwnPropertyDescriptor(performance, "now");
  let time = performance.now();
  performance.now = () => (time += milliseconds);
  try {
    return await work();
  } finally {
    if (own === undefined) delete (performance as { now?: unknown }).now;
    else Object.defineProperty(performance, "now", own);
  }
}

/** Does work for which no time passes. */
export function withStandingClock<T>(work: () => Promise<T>): Promise<T> {
  return withSteps(0, work);
}

/** Does work whose every piece is long; calls back in every turn that the host has meanwhile. */
export async function withHostTurns<T>(
  onTurn: (number: number) => void,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const take = (): void => {
    if (isOver) return;
    turns += 1;
    onTurn(turns);
    setImmediate(take);
  };
  setImmediate(take);
  try {
    return { result: await withSteps(yieldInterval + 5, work), turns };
  } finally {
    isOver = true;
  }
}
