/**
 * What the threads of a CPU device share besides its memory: a job, the counter from which they take blocks, and what went wrong.
 *
 *   device   writes the job │ isOpen = 1, epoch + 1, wakes │ takes blocks itself │ isOpen = 0, waits until nobody is active
 *   thread   sleeps on epoch ────────────────────────────▶ │ active + 1, isOpen? takes blocks …, active − 1
 *
 * A thread that wakes late finds the job closed and sleeps again: nobody waits for those that have not begun, and a job is written
 * only while nobody reads one.
 */

/** Words that threads write again and again lie a cache line apart. */
const line = 16;

/** Places of words. */
export const words = Object.freeze({
  /** Counts jobs; threads sleep on it. */
  epoch: 0,
  /** The block that whoever asks next gets. */
  next: line,
  /** Threads that are in a job. */
  active: 2 * line,
  isOpen: 3 * line,
  /** 1 when the device ends. */
  isOver: 3 * line + 1,
  /** The job: blocks behind the last, the module by number, where its bytes and the arguments lie, scratch memory of threads. */
  end: 4 * line,
  module: 4 * line + 1,
  moduleBytes: 4 * line + 2,
  moduleLength: 4 * line + 3,
  argumentBlock: 4 * line + 4,
  scratch: 4 * line + 5,
  scratchBytes: 4 * line + 6,
  /** Blocks that take about a slice of time. */
  slice: 4 * line + 7,
  threads: 4 * line + 8,
  /**
   * What stopped the job: a `failures` kind, the code of the kernel or the length of the text, the first block of the range, and the scratch
   * memory of the thread.
   */
  failure: 5 * line,
  failureDetail: 5 * line + 1,
  failureBlock: 5 * line + 2,
  failureScratch: 5 * line + 3,
  /** A trap's text, a UTF-16 unit a word. */
  text: 6 * line,
  count: 6 * line + 256,
});

export const failures = Object.freeze({ none: 0, code: 1, trap: 2 });

/** The most of a trap's text that travels. */
export const mostText = 256;

/** The message by which a thread begins to serve a device. */
export interface RangeTask {
  readonly task: "ranges";
  readonly memory: WebAssembly.Memory;
  readonly control: SharedArrayBuffer;
  /** Its number, from 1; the calling thread is 0. */
  readonly thread: number;
}

/** What a module exports: runs blocks from `begin` up to `end`; 0, or the code of what stopped it (`compiled-kernel.ts`). */
export type RunBlocks = (
  argumentBlock: number,
  begin: number,
  end: number,
  scratch: number,
) => number;

/** How many blocks to take: a slice of time, but no more than leaves something for the others. */
export function share(left: number, slice: number, threads: number): number {
  return Math.max(1, Math.min(slice, Math.ceil(left / (2 * threads))));
}
