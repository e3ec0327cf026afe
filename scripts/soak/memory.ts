/**
 * The memory of a process and of its device over time, and whether it grows. Growth is what the last quarter of a run
 * has more than the second: the first fills caches, which are bounded, and compiles what is hot.
 *
 *   heap    ▁▅▇▇│▇▇▇▇│▇▇▇▇│▇▇▇▇        flat
 *   device  ▁▂▃▃│▄▄▅▅│▅▆▆▆│▇▇▇▇        grows
 */
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** In bytes, with the seconds since the run began and what was done by then. */
export interface Sample {
  readonly seconds: number;
  readonly done: number;
  /** What garbage collection leaves of JavaScript's heap. */
  readonly heap: number;
  /** Buffers outside of it. */
  readonly external: number;
  readonly resident: number;
  /** In use on the GPU, by all processes; undefined without one. */
  readonly device: number | undefined;
}

export const measures = ["heap", "external", "resident", "device"] as const;
export type Measure = (typeof measures)[number];

setFlagsFromString("--expose-gc");
export const collectGarbage = runInNewContext("gc") as () => void;

export class MemoryWatch {
  readonly samples: Sample[] = [];
  readonly #start = performance.now();
  readonly #deviceMemory: () => number | undefined;
  readonly #interval: number;
  #next = 0;

  /** Samples at most every `interval` seconds. */
  constructor(deviceMemory: () => number | undefined, interval: number) {
    this.#deviceMemory = deviceMemory;
    this.#interval = interval;
  }

  get seconds(): number {
    return (performance.now() - this.#start) / 1000;
  }

  /** Takes a sample where one is due, and says whether it did. */
  note(done: number, isLast = false): boolean {
    if (this.seconds < this.#next && !isLast) return false;
    collectGarbage();
    const { heapUsed, external, rss } = process.memoryUsage();
    const device = this.#deviceMemory();
    const { seconds } = this;
    this.samples.push({ seconds, done, heap: heapUsed, external, resident: rss, device });
    this.#next = seconds + this.#interval;
    return true;
  }
}

/** Bytes that the last quarter of the samples has more than the second, by their medians. */
export function growth(samples: readonly Sample[], measure: Measure): number | undefined {
  const quarter = Math.max(1, Math.floor(samples.length / 4));
  const median = (part: readonly Sample[]): number | undefined => {
    const values = part.flatMap((sample) => sample[measure] ?? []).sort((a, b) => a - b);
    return values[Math.floor(values.length / 2)];
  };
  const before = median(samples.slice(quarter, 2 * quarter));
  const after = median(samples.slice(-quarter));
  return before === undefined || after === undefined ? undefined : after - before;
}
