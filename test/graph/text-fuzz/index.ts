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
import { runSeeds, serveBatches } from "../../fuzz/jobs.ts";
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
  const count = numberOption("count", settings.count);
  const tally = emptyTextTally();
  const device = await open("simulator");
  const next = await runSeeds<TextTally>({
    seed,
    count,
    jobs: numberOption("jobs", settings.jobs),
    batchSize,
    milliseconds: batchMilliseconds,
    command: [
      here("../../../dist/cli/main.js"),
      "run",
      fileURLToPath(import.meta.url),
      "--",
      "--serve",
    ],
    run: (seeds) => tryTexts(seeds, device),
    onTally: (more) => {
      keepFailures(more);
      addTextTally(tally, more);
      if (tally.texts % reported < more.texts)
        console.error(`${tally.texts} of ${count}, ${tally.failures.length} failures`);
    },
  });
  device.dispose();
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
