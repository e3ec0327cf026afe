/**
 * `npm run fuzz:pins -- --count 5000 --seed 1 --jobs 2`: kernels whose tiles have stated layouts, placed and simulated with each simplification
 * on and off. Each must be accepted or refused alike, with equal results; one in ten also runs on the emulator.
 *
 *   --count N    how many kernels; 500 unless given
 *   --seed N     where to begin; the time of day unless given
 *   --jobs N     processes at a time; 1 unless given
 *   --show       prints the kernel of --seed, and nothing else
 *
 * The last line is what was counted, as JSON.
 */
import { fileURLToPath } from "node:url";
import process from "node:process";
import { numberOption, scriptOptions } from "../../../scripts/arguments.ts";
import { printKernel } from "../../../src/ir/printer.ts";
import { seedsOf, serveBatches, shareBatches } from "../../fuzz/jobs.ts";
import type { Batch } from "../../fuzz/jobs.ts";
import { addPinTally, emptyPinTally, tryPins } from "./campaign.ts";
import type { PinTally } from "./campaign.ts";
import { pinnedKernel } from "./kernels.ts";

const settings = scriptOptions(import.meta.url, {
  count: { type: "string", default: "500" },
  seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
  jobs: { type: "string", default: "1" },
  show: { type: "boolean", default: false },
  /** Of a process that another has started: serves it. */
  serve: { type: "boolean", default: false },
});

/** Seeds that a process tries at a time. */
const batchSize = 25;
/** A process that takes longer for them hangs. */
const batchMilliseconds = 600_000;
/** Kernels between two lines of progress. */
const reported = 500;

async function lead(): Promise<void> {
  const seed = numberOption("seed", settings.seed, { from: 0 });
  const end = seed + numberOption("count", settings.count);
  const jobs = numberOption("jobs", settings.jobs);
  const tally = emptyPinTally();
  let next = seed;
  const nextBatch = (): Batch | undefined => {
    if (next >= end) return undefined;
    const batch = { first: next, count: Math.min(batchSize, end - next) };
    next += batch.count;
    return batch;
  };
  const onTally = (more: PinTally): void => {
    for (const { seed: failed, why } of more.failures) console.error(`seed ${failed}\n${why}\n`);
    addPinTally(tally, more);
    if (tally.kernels % reported < more.kernels)
      console.error(`${tally.kernels} of ${end - seed}, ${tally.failures.length} failures`);
  };
  const cli = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
  const command = [cli, "run", fileURLToPath(import.meta.url), "--", "--serve"];
  if (jobs > 1)
    await shareBatches(command, jobs, nextBatch, onTally, { milliseconds: batchMilliseconds });
  else
    for (let batch = nextBatch(); batch !== undefined; batch = nextBatch())
      onTally(await tryPins(seedsOf(batch)));
  const { failures, ...counts } = tally;
  console.log(JSON.stringify({ seed, ...counts, failures: failures.length }));
  if (failures.length > 0) process.exitCode = 1;
}

if (settings.show)
  console.log(printKernel(pinnedKernel(numberOption("seed", settings.seed, { from: 0 })).kernel));
else if (settings.serve) serveBatches(tryPins, () => undefined);
else await lead();
