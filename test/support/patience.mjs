/**
 * Patience of the test runner with its own processes, which Node loads this for before it loads the runner. The runner takes
 * who has not heard an answer for a minute for dead, and fails the run: on a crowded machine a test that never waits, such as
 * one that has much assembled, takes longer than that without anything being wrong.
 *
 *   the runner's timer of 60 s ─▶ as long as a test may take        what tests set: as they set it, see modules.ts
 */
const impatience = 60_000;
const patience = 900_000;

const { setTimeout } = globalThis;
globalThis.setTimeout = (callback, delay, ...given) =>
  setTimeout(callback, delay === impatience ? patience : delay, ...given);
globalThis.giveBackTimers = () => {
  globalThis.setTimeout = setTimeout;
};
