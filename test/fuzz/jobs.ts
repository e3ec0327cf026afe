/**
 * Processes that share a campaign: each asks for seeds, tries them, tells what came of it, and asks again, so that none
 * waits for the slowest and the seeds that were tried are those from the first to the last.
 *
 *   this process    { first: 1000, count: 25 } ──▶    ◀── tally    { first: 1100, … } ──▶
 *   another         { first: 1025, count: 25 } ──▶              ◀── tally
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import process from "node:process";

/** Seeds in a row. */
export interface Batch {
  readonly first: number;
  readonly count: number;
}

export function* seedsOf({ first, count }: Batch): Generator<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** Serves batches to the process that has started this one, until it wants no more or is gone. */
export function serveBatches<Tally extends object>(
  run: (seeds: Iterable<number>) => Promise<Tally>,
  done: () => void,
): void {
  // An interrupt is for the process that leads: it wants no more, and batches that were begun are ended.
  process.on("SIGINT", () => undefined);
  process.on("disconnect", () => process.exit());
  process.on("message", (batch: Batch | "end") => {
    if (batch === "end") {
      done();
      process.disconnect();
    } else void run(seedsOf(batch)).then((tally) => process.send?.(tally));
  });
  process.send?.("ready");
}

export interface BatchLimits {
  /** A process that takes longer for a batch hangs: it is ended, which is an error. */
  readonly milliseconds?: number | undefined;
}

/**
 * Starts processes by a command and has them run batches for as long as `next` gives any. Resolves when all are done;
 * one that ends early is an error, once the others are done.
 */
export async function shareBatches<Tally extends object>(
  command: readonly string[],
  processes: number,
  next: () => Batch | undefined,
  onTally: (tally: Tally) => void,
  limits: BatchLimits = {},
): Promise<void> {
  const ends = Array.from({ length: processes }, () => {
    const child = spawn(process.execPath, command, { stdio: ["ignore", 2, 2, "ipc"] });
    return servedBy(child, next, onTally, limits);
  });
  const failed = (await Promise.allSettled(ends)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

function servedBy<Tally extends object>(
  child: ChildProcess,
  next: () => Batch | undefined,
  onTally: (tally: Tally) => void,
  { milliseconds }: BatchLimits,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let at: Batch | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    child.on("message", (message: Tally | "ready") => {
      clearTimeout(timer);
      if (message !== "ready") onTally(message);
      at = next();
      child.send(at ?? "end");
      if (at !== undefined && milliseconds !== undefined)
        timer = setTimeout(() => child.kill("SIGKILL"), milliseconds);
    });
    child.on("error", reject);
    child.on("exit", (code) => {
      clearTimeout(timer);
      if (at === undefined && code === 0) resolve();
      else reject(new Error(`a process ended with ${code} at seeds from ${at?.first} on`));
    });
  });
}

export interface SeedRun<Tally extends object> extends BatchLimits {
  readonly seed: number;
  readonly count: number;
  /** Processes at a time; with one, this process does it. */
  readonly jobs: number;
  /** Seeds that a process tries at a time. */
  readonly batchSize: number;
  /** Starts a process that serves batches. */
  readonly command: readonly string[];
  readonly run: (seeds: Iterable<number>) => Promise<Tally>;
  readonly onTally: (tally: Tally) => void;
}

/** Tries seeds from a first one on. An interrupt ends it after the batches that have begun; gives the first seed that was not tried. */
export async function runSeeds<Tally extends object>(settings: SeedRun<Tally>): Promise<number> {
  const { seed, count, jobs, batchSize, command, run, onTally, milliseconds } = settings;
  let next = seed;
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    console.error("ends after the batches that have begun; again: at once");
    process.once("SIGINT", () => process.exit(130));
  };
  process.once("SIGINT", stop);
  const nextBatch = (): Batch | undefined => {
    if (isStopped || next >= seed + count) return undefined;
    const batch = { first: next, count: Math.min(batchSize, seed + count - next) };
    next += batch.count;
    return batch;
  };
  if (jobs > 1) await shareBatches(command, jobs, nextBatch, onTally, { milliseconds });
  else
    for (let batch = nextBatch(); batch !== undefined; batch = nextBatch()) {
      onTally(await run(seedsOf(batch)));
      await new Promise(setImmediate);
    }
  process.removeListener("SIGINT", stop);
  return next;
}
