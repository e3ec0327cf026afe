/**
 * `npm run fuzz:text -- --count 200000 --seed 1 --jobs 2`: StableHLO text that is almost right, changed by its tokens and by its structure. Each
 * text must be refused with a code and a line of its own, or be printed and read back as the same program, and run alike before and
 * after passes and on the simulator.
 *
 *   --count N    how many texts; 2000 unless given
 *   --seed N     where to begin; the time of day unless given
 *   --jobs N     processes at a time; 1 unless given
 *   --show       prints the text of --seed, and nothing else
 *
 * A text that fails is made small and written to `test/graph/text-fuzz/found`; mended, it moves to `seeds` or a test. An interrupt
 * (Ctrl-C) ends the run after the batches that have begun; another one ends it at once. The last line is what was counted, as JSON.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { numberOption, scriptOptions } from "../../../scripts/arguments.ts";
import { open } from "../../../src/index.ts";
import { seedsOf, serveBatches, shareBatches } from "../../fuzz/jobs.ts";
import type { Batch } from "../../fuzz/jobs.ts";
import { addTextTally, changedText, emptyTextTally, tryTexts } from "./campaign.ts";
import type { TextTally } from "./campaign.ts";

const settings = scriptOptions(import.meta.url, {
  count: { type: "string", default: "2000" },
  seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
  jobs: { type: "string", default: "1" },
  show: { type: "boolean", default: false },
  /** Of a process that another has started: serves it. */
  serve: { type: "boolean", default: false },
});

/** Seeds that a process tries at a time. */
const batchSize = 100;
/** A process that takes longer for them hangs. */
const batchMilliseconds = 600_000;
/** Texts between two lines of progress. */
const reported = 5000;

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

function keepFailures({ failures }: TextTally): void {
  for (const { seed, why, text } of failures) {
    mkdirSync(here("found"), { recursive: true });
    const file = here(`found/${seed}.mlir`);
    writeFileSync(file, text);
    console.error(`seed ${seed}, ${file}\n${why.split("\n").slice(0, 6).join("\n")}\n`);
  }
}

async function lead(): Promise<void> {
  const seed = numberOption("seed", settings.seed, { from: 0 });
  const end = seed + numberOption("count", settings.count);
  const jobs = numberOption("jobs", settings.jobs);
  const tally = emptyTextTally();
  let next = seed;
  let isStopped = false;
  process.once("SIGINT", () => {
    isStopped = true;
    console.error("ends after the batches that have begun; again: at once");
    process.once("SIGINT", () => process.exit(130));
  });
  const nextBatch = (): Batch | undefined => {
    if (isStopped || next >= end) return undefined;
    const batch = { first: next, count: Math.min(batchSize, end - next) };
    next += batch.count;
    return batch;
  };
  const onTally = (more: TextTally): void => {
    keepFailures(more);
    addTextTally(tally, more);
    if (tally.texts % reported < more.texts)
      console.error(`${tally.texts} of ${end - seed}, ${tally.failures.length} failures`);
  };
  const cli = here("../../../dist/cli/main.js");
  const command = [cli, "run", fileURLToPath(import.meta.url), "--", "--serve"];
  if (jobs > 1)
    await shareBatches(command, jobs, nextBatch, onTally, { milliseconds: batchMilliseconds });
  else {
    const device = await open("simulator");
    for (let batch = nextBatch(); batch !== undefined; batch = nextBatch()) {
      onTally(await tryTexts(seedsOf(batch), device));
      await new Promise(setImmediate);
    }
    device.dispose();
  }
  const { failures, ...counts } = tally;
  console.log(JSON.stringify({ seed, next, ...counts, failures: failures.length }));
  if (failures.length > 0) process.exitCode = 1;
}

if (settings.show) console.log(changedText(numberOption("seed", settings.seed, { from: 0 })));
else if (settings.serve) {
  const device = await open("simulator");
  serveBatches(
    (seeds) => tryTexts(seeds, device),
    () => device.dispose(),
  );
} else await lead();
