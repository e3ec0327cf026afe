/**
 * Breaks for the host in work that takes long, so that a page stays alive and timers are on time:
 *
 *   work 15 ms │ host │ work 15 ms │ host │ …
 *
 * There is one host, and one clock for all work that goes on beside it: a program of a thousand short launches, none of which
 * lasts 15 ms, gives way as often as one long launch does.
 */

/** Milliseconds between two breaks. */
export const breakInterval = 15;

/** When the host should have its next turn. */
let due = performance.now() + breakInterval;

/** Lets the host go first: at once where it can do that, after a timer's delay elsewhere. */
const resumeLater: (resume: () => void) => void =
  typeof setImmediate === "function"
    ? (resume) => void setImmediate(resume)
    : (resume) => void setTimeout(resume, 0);

export function breakIsDue(): boolean {
  return performance.now() >= due;
}

/** Gives way to the host. */
export async function giveWay(): Promise<void> {
  await new Promise<void>(resumeLater);
  due = performance.now() + breakInterval;
}
