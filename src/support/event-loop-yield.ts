/**
 * Breaks for the host in work that takes long, so that a page stays alive and timers are on time:
 *
 *   work 15 ms │ host │ work 15 ms │ host │ …
 */

/** Milliseconds between two breaks. */
export const breakInterval = 15;

/** Lets the host go first: at once where it can do that, after a timer's delay elsewhere. */
const resumeLater: (resume: () => void) => void =
  typeof setImmediate === "function"
    ? (resume) => void setImmediate(resume)
    : (resume) => void setTimeout(resume, 0);

function giveWay(): Promise<void> {
  return new Promise<void>(resumeLater);
}

/** Keeps track of when a break is due. */
export class Breaks {
  #due = performance.now() + breakInterval;

  get isDue(): boolean {
    return performance.now() >= this.#due;
  }

  /** Gives way to the host. */
  async take(): Promise<void> {
    await giveWay();
    this.#due = performance.now() + breakInterval;
  }
}
