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
import type { Campaign, Tally } from "./campaign.ts";

/** Seeds in a row. */
export interface Batch {
  readonly first: number;
  readonly count: number;
}

export function* seedsOf({ first, count }: Batch): Generator<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** Serves batches to the process that has started this one, until it wants no more. */
export function serveBatches(campaign: Campaign, done: () => void): void {
  process.on("message", (batch: Batch | "end") => {
    if (batch === "end") {
      done();
      process.disconnect();
    } else void campaign.run(seedsOf(batch)).then((tally) => process.send?.(tally));
  });
  process.send?.("ready");
}

/**
 * Starts processes by a command and has them run batches for as long as `next` gives any. Resolves when all are done;
 * one that ends early is an error, once the others are done.
 */
export async function shareBatches(
  command: readonly string[],
  processes: number,
  next: () => Batch | undefined,
  onTally: (tally: Tally) => void,
): Promise<void> {
  const ends = Array.from({ length: processes }, () => {
    const child = spawn(process.execPath, command, { stdio: ["ignore", 2, 2, "ipc"] });
    return servedBy(child, next, onTally);
  });
  const failed = (await Promise.allSettled(ends)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

function servedBy(
  child: ChildProcess,
  next: () => Batch | undefined,
  onTally: (tally: Tally) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let at: Batch | undefined;
    child.on("message", (message: Tally | "ready") => {
      if (message !== "ready") onTally(message);
      at = next();
      child.send(at ?? "end");
    });
    child.on("error", reject);
    child.on("exit", (code) => {
      if (at === undefined && code === 0) resolve();
      else reject(new Error(`a process ended with ${code} at seeds from ${at?.first} on`));
    });
  });
}
