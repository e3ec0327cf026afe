/**
 * Whether the rest of a launch is worth handing over, from how long its clusters take: threads have to be started
 * and to compile the program, and their engines to warm up.
 *
 *   clusters left 60, 12 ms each, 4 threads     720 ms → 180 ms: handed over
 *   clusters left  6, 12 ms each, 4 threads      72 ms →  18 ms: not worth it
 */

/** When to hand over, in milliseconds. */
export interface Handover {
  /** For which the calling thread works alone before it judges. */
  readonly patience: number;
  /** Which threads are expected to save. */
  readonly gain: number;
}

export interface PaceOptions {
  readonly program: object;
  readonly threads: number;
  readonly handover: Handover;
  /** Milliseconds a cluster of earlier launches, by program. */
  readonly paces: WeakMap<object, number>;
}

export class Pace {
  readonly #options: PaceOptions;
  readonly #start = performance.now();
  #done = 0;
  #each: number | undefined;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#each = options.paces.get(options.program);
  }

  /** A cluster has run on the calling thread. */
  clusterDone(): void {
    const { program, handover, paces } = this.#options;
    this.#done += 1;
    const elapsed = performance.now() - this.#start;
    if (elapsed < handover.patience) return;
    this.#each = elapsed / this.#done;
    paces.set(program, this.#each);
  }

  isWorthwhile(clustersLeft: number): boolean {
    const { threads, handover } = this.#options;
    if (clustersLeft < 2 || this.#each === undefined) return false;
    const gain = this.#each * clustersLeft * (1 - 1 / Math.min(threads, clustersLeft));
    return gain >= handover.gain;
  }
}
