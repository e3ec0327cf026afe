/**
 * Measures benchmarks so that what else the machine does falls on all of them alike: after a warm-up, every
 * round runs each benchmark once, in turn, and the median over the rounds counts.
 *
 *   warm-up   a b c
 *   round 1   a b c
 *   round 2   a b c      median(a), median(b), median(c)
 *   …
 */

/** What a run goes through, so that its time can be told per unit: 4194304 elements. */
export interface Work {
  readonly amount: number;
  readonly unit: string;
}

export interface Benchmark {
  readonly name: string;
  readonly work: Work;
  /** The median must stay below this many milliseconds. */
  readonly target?: number;
  /** How often `run` is called in a round; a round's time is divided by it. */
  readonly repeat?: number;
  readonly run: () => void | Promise<void>;
}

export interface Measurement {
  readonly name: string;
  readonly work: Work;
  readonly target?: number;
  /** Milliseconds of one run. */
  readonly median: number;
  readonly minimum: number;
}

export interface MeasureOptions {
  readonly rounds: number;
  readonly warmups: number;
  /** Milliseconds since some moment. */
  readonly now: () => number;
  /** Hears of each benchmark before it runs. */
  readonly onProgress: (text: string) => void;
}

export async function measure(
  benchmarks: readonly Benchmark[],
  { rounds, warmups, now, onProgress }: MeasureOptions,
): Promise<readonly Measurement[]> {
  const samples = new Map<Benchmark, number[]>(benchmarks.map((benchmark) => [benchmark, []]));
  for (let round = 1 - warmups; round <= rounds; round += 1)
    for (const [benchmark, times] of samples) {
      onProgress(round < 1 ? `warm-up: ${benchmark.name}` : `round ${round}: ${benchmark.name}`);
      const time = await timeOf(benchmark, now);
      if (round >= 1) times.push(time);
    }
  return [...samples].map(([{ name, work, target }, times]) => ({
    name,
    work,
    ...(target !== undefined && { target }),
    median: median(times),
    minimum: Math.min(...times),
  }));
}

async function timeOf({ run, repeat = 1 }: Benchmark, now: () => number): Promise<number> {
  const start = now();
  for (let count = 0; count < repeat; count += 1) await run();
  return (now() - start) / repeat;
}

/** The middle of the values, or the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("a median needs a value");
  const sorted = [...values].sort((left, right) => left - right);
  const upper = Math.floor(sorted.length / 2);
  const middle = sorted.slice(sorted.length % 2 === 0 ? upper - 1 : upper, upper + 1);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}
