/**
 * `npm run fuzz:programs -- --count 5000 --seed 1 --devices simulator,emulator --jobs 2`: random programs of StableHLO whose results are known
 * (`test/graph/odd`): the evaluator, the program printed and read back, the passes, a batch, and each device have to give the same bits.
 *
 *   --count N      how many programs; 1000 unless given
 *   --seed N       where to begin; the time of day unless given
 *   --devices A,B  of simulator, emulator, cpu and gpu; the simulator unless given, "none" for the evaluator alone
 *   --rewrites     instead, each pass is checked by exact arithmetic (`src/graph/verify/rewrites.ts`)
 *   --jobs N       processes at a time; 1 unless given
 *   --show         prints the program of --seed, and nothing else
 *
 * A program that fails is made small and written to `test/graph/program-fuzz/found`. An interrupt (Ctrl-C) ends the run after the batches
 * that have begun; another one ends it at once. The last line is what was counted, as JSON: programs, and how many have an op of each kind.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { namedOption, numberOption, scriptOptions } from "../../../scripts/arguments.ts";
import type { Device } from "../../../src/device/device.ts";
import { open } from "../../../src/index.ts";
import { runSeeds, serveBatches } from "../../fuzz/jobs.ts";
import { knownProgram } from "../odd/harness.ts";
import { addProgramTally, emptyProgramTally, tryPrograms, tryRewrites } from "./campaign.ts";
import type { ProgramTally } from "./campaign.ts";

const settings = scriptOptions(import.meta.url, {
  count: { type: "string", default: "1000" },
  seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
  devices: { type: "string", default: "simulator" },
  jobs: { type: "string", default: "1" },
  rewrites: { type: "boolean", default: false },
  show: { type: "boolean", default: false },
  /** Of a process that another has started: serves it. */
  serve: { type: "boolean", default: false },
});

const deviceNames = ["simulator", "emulator", "cpu", "gpu"] as const;

/** Seeds that a process tries at a time, and how long they may take. */
const [batchSize, batchMilliseconds] = [25, 600_000];
/** Programs between two lines of progress. */
const reported = 250;

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const seed = numberOption("seed", settings.seed, { from: 0 });

async function openDevices(): Promise<readonly Device[]> {
  if (settings.rewrites || settings.devices === "none") return [];
  const names = settings.devices
    .split(",")
    .map((name) => namedOption("devices", name, deviceNames));
  return Promise.all(names.map((name) => open(name, { onNotes: () => undefined })));
}

function keepFailures({ failures }: ProgramTally): void {
  for (const { seed: own, why, text } of failures) {
    mkdirSync(here("found"), { recursive: true });
    const file = here(`found/${own}.mlir`);
    writeFileSync(file, `${why.map((line) => line.replace(/^/gm, "// ")).join("\n")}\n${text}\n`);
    console.error(`seed ${own}, ${file}\n${why.join("\n").split("\n").slice(0, 6).join("\n")}\n`);
  }
}

function tryAll(seeds: Iterable<number>, devices: readonly Device[]): Promise<ProgramTally> {
  return settings.rewrites ? tryRewrites(seeds) : tryPrograms(seeds, devices);
}

async function lead(devices: readonly Device[]): Promise<void> {
  const tally = emptyProgramTally();
  const count = numberOption("count", settings.count);
  const { devices: names } = settings;
  const next = await runSeeds<ProgramTally>({
    seed,
    count,
    jobs: numberOption("jobs", settings.jobs),
    batchSize,
    milliseconds: batchMilliseconds,
    command: [
      here("../../../dist/cli/main.js"),
      ...["run", fileURLToPath(import.meta.url), "--", "--serve", "--devices", names],
      ...(settings.rewrites ? ["--rewrites"] : []),
    ],
    run: (seeds) => tryAll(seeds, devices),
    onTally: (more) => {
      keepFailures(more);
      addProgramTally(tally, more);
      if (tally.programs % reported < more.programs)
        console.error(`${tally.programs} programs, ${tally.failures.length} failures`);
    },
  });
  const { failures, ...counts } = tally;
  console.log(
    JSON.stringify({ seed, next, ...counts, failures: failures.map((each) => each.seed) }),
  );
  if (failures.length > 0) process.exitCode = 1;
}

if (settings.show) console.log(knownProgram(seed)?.text);
else {
  const devices = await openDevices();
  const close = (): void => {
    for (const device of devices) device.dispose();
  };
  if (settings.serve) serveBatches((seeds) => tryAll(seeds, devices), close);
  else {
    await lead(devices);
    close();
  }
}
