/**
 * Long work yields to the event loop, so that a page stays responsive and timers are on time:
 *
 *   work 15 ms │ events │ work 15 ms │ events │ …
 */

/** Milliseconds between two yields. */
export const yieldInterval = 15;

/** Runs pending events first: `setImmediate` where there is one, else a timer. */
const resumeLater: (resume: () => void) => void =
  typeof setImmediate === "function"
    ? (resume) => void setImmediate(resume)
    : (resume) => void setTimeout(resume, 0);

function nextTurn(): Promise<void> {
  return new Promise<void>(resumeLater);
}

/** Tracks when the next yield is due. */
export class EventLoopYield {
  #due = performance.now() + yieldInterval;

  get isDue(): boolean {
    return performance.now() >= this.#due;
  }

  /** Yields to the event loop. */
  async giveWay(): Promise<void> {
    await nextTurn();
    this.#due = performance.now() + yieldInterval;
  }
}
