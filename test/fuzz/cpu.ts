/**
 * `npm run fuzz:cpu -- --count 20000 --seed 1 --jobs 2`: random kernels as WebAssembly and on the simulator, with guard words around every array, bit for bit.
 *
 *   --count N   how many kernels; 1000 unless given
 *   --seed N    where to begin; the time of day unless given
 *   --jobs N    processes at a time; 1 unless given
 *
 * What the CPU refuses is counted by its words. An interrupt (Ctrl-C) ends the run after the batches that have begun. The last line is what was counted, as JSON.
 */
import { fileURLToPath } from "node:url";
import { numberOption, scriptOptions } from "../../scripts/arguments.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { compareOnCpu } from "../support/cpu-fuzz.ts";
import { runSeeds, serveBatches } from "./jobs.ts";
import { subjectOf } from "./subjects.ts";
import type { Subject } from "./subjects.ts";

const settings = scriptOptions(import.meta.url, {
  count: { type: "string", default: "1000" },
  seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
  jobs: { type: "string", default: "1" },
  /** Of a process that another has started: serves it. */
  serve: { type: "boolean", default: false },
});

/** Seeds that a process tries at a time, and how long they may take. */
const [batchSize, batchMilliseconds] = [25, 600_000];
/** Kernels between two lines of progress. */
const reported = 500;

interface Tally {
  same: number;
  readonly refused: { [why: string]: number };
  readonly failures: string[];
}

function emptyTally(): Tally {
  return { same: 0, refused: {}, failures: [] };
}

/** What came of a seed; undefined where it stands for no kernel. */
async function tried(seed: number): Promise<string | undefined> {
  const subject = drawn(seed);
  try {
    return subject && (await compareOnCpu(subject));
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The kernel of a seed; a draft of an op that its format does not have is none. */
function drawn(seed: number): Subject | undefined {
  try {
    return subjectOf(seed);
  } catch (error) {
    if (error instanceof TilewrightError && error.code === "TW2005") return undefined;
    throw error;
  }
}

async function tryAll(seeds: Iterable<number>): Promise<Tally> {
  const tally = emptyTally();
  for (const seed of seeds) {
    const result = await tried(seed);
    if (result === undefined) continue;
    const [, why] = /^refused: TW4710 \S+ cannot run on the CPU device: (.*)$/.exec(result) ?? [];
    if (result === "same") tally.same += 1;
    else if (why !== undefined) tally.refused[why] = (tally.refused[why] ?? 0) + 1;
    else tally.failures.push(`seed ${seed}: ${result}`);
  }
  return tally;
}

function add(sum: Tally, { same, refused, failures }: Tally): void {
  sum.same += same;
  for (const [why, count] of Object.entries(refused))
    sum.refused[why] = (sum.refused[why] ?? 0) + count;
  sum.failures.push(...failures);
}

if (settings.serve) serveBatches(tryAll, () => undefined);
else {
  const tally = emptyTally();
  const seed = numberOption("seed", settings.seed, { from: 0 });
  const count = numberOption("count", settings.count);
  let kernels = 0;
  const script = fileURLToPath(import.meta.url);
  const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  const next = await runSeeds<Tally>({
    ...{ seed, count, batchSize, milliseconds: batchMilliseconds, run: tryAll },
    jobs: numberOption("jobs", settings.jobs),
    command: [cli, "run", script, "--", "--serve"],
    onTally: (more) => {
      add(tally, more);
      for (const failure of more.failures) console.error(failure);
      kernels += batchSize;
      if (kernels % reported === 0)
        console.error(`${kernels} kernels, ${tally.failures.length} failures`);
    },
  });
  console.log(JSON.stringify({ seed, next, ...tally }));
  if (tally.failures.length > 0) process.exitCode = 1;
}
