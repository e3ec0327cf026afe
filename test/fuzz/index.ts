/**
 * `npm run fuzz -- --minutes 10 --jobs 4`: random kernels, simulator against emulator, bit for bit, for as long as
 * one likes. Failures are shrunk and written to `test/fuzz/found`; from there, once mended, they move to
 * `test/fuzz/fixtures`, which the tests run.
 *
 *   --minutes N      how long; 1 unless given
 *   --kernels N      at most so many besides those of the corpus
 *   --jobs N         processes at a time; 1 unless given
 *   --seed N         where to begin; the time of day unless given
 *   --targets A,B    the targets that kernels are compiled for; all unless given
 *   --kinds A,B      the kinds of program, of those in `programs.ts`; all unless given
 *   --device gpu     compares with a GPU too, where a kernel's target is that of the GPU or sm_80
 *   --faults         plants a fault for every seed, which simulator and emulator are to tell, instead of comparing valid kernels
 *   --machine-code   reads what ptxas makes of products in flight, too, where it and nvdisasm are installed
 *   --tally FILE     adds to the counts in a file, and goes on from the seed where those end
 *   --keep           adds seeds that exercise something new to the corpus
 *
 * The seeds of `corpus.json` come first, then those from `seed` up to `next`. The last line is what was counted, as JSON.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { namedOption, numberOption, refuse, scriptOptions } from "../../scripts/arguments.ts";
import { openGpu } from "../../src/cuda/open.ts";
import type { Backend } from "../../src/device/backend.ts";
import { hasDisassembler } from "../ptxas.ts";
import { addTally, Campaign, emptyTally } from "./campaign.ts";
import type { Failure, Tally } from "./campaign.ts";
import { seedsOf, serveBatches, shareBatches } from "./jobs.ts";
import type { Batch } from "./jobs.ts";
import type { Gpu } from "./run.ts";
import { fuzzTargets, subjectKinds } from "./subjects.ts";
import type { FuzzTarget } from "./subjects.ts";

const settings = scriptOptions(import.meta.url, {
  minutes: { type: "string", default: "1" },
  kernels: { type: "string", default: "Infinity" },
  jobs: { type: "string", default: "1" },
  seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
  targets: { type: "string" },
  kinds: { type: "string" },
  device: { type: "string", default: "emulator" },
  faults: { type: "boolean", default: false },
  "machine-code": { type: "boolean", default: false },
  tally: { type: "string" },
  keep: { type: "boolean", default: false },
  /** Of a process that another has started: serves it. */
  serve: { type: "boolean", default: false },
});

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const corpusFile = here("corpus.json");

/** Seeds that together exercise what there is; they come first. */
const kept = readJson<readonly number[]>(corpusFile) ?? [];

/** Seeds that a process tries at a time. */
const batchSize = 25;

/** What the file of a tally holds. */
interface Progress {
  readonly seed: number;
  /** The first seed that was not tried. */
  next: number;
  readonly tally: Tally;
}

function readJson<T>(path: string | undefined): T | undefined {
  if (path === undefined || !existsSync(path)) return undefined;
  return JSON.parse(readFileSync(path, "utf8")) as T;
}

/** The names that an option gives, of those that it may; all unless it is given. */
function chosen<N extends string>(option: "targets" | "kinds", names: readonly N[]): readonly N[] {
  const given = settings[option]?.split(",");
  const known = [...new Set(names)];
  return given?.map((name) => namedOption(option, name, known)) ?? names;
}

const [targets, kinds] = [chosen("targets", fuzzTargets), chosen("kinds", subjectKinds)];

function keepFailure({ seed, kind, why, text }: Failure): void {
  mkdirSync(here("found"), { recursive: true });
  const file = here(`found/${kind}-${seed}.txt`);
  writeFileSync(file, text);
  console.error(`${file}\n${why.split("\n").slice(0, 8).join("\n")}\n`);
}

/** The first GPU of the machine. It takes code for itself, and portable code for those before it. */
class OpenedGpu implements Gpu {
  readonly #own: string;
  #backend: Promise<Backend> | undefined;

  constructor(own: string) {
    this.#own = own;
  }

  runs(target: FuzzTarget): boolean {
    return target === this.#own || target === "sm_80";
  }

  backend(): Promise<Backend> {
    return (this.#backend ??= openGpu() as Promise<Backend>);
  }

  close(): void {
    void this.#backend?.then(
      (backend) => backend.dispose(),
      () => undefined,
    );
    this.#backend = undefined;
  }
}

async function openedGpu(): Promise<Gpu> {
  const backend = await openGpu();
  const { name } = backend.target;
  backend.dispose();
  return new OpenedGpu(name);
}

const gpu = settings.device === "gpu" ? await openedGpu() : undefined;
const readsMachineCode = settings["machine-code"];
if (readsMachineCode && !hasDisassembler) refuse("--machine-code needs ptxas and nvdisasm on PATH");
const campaign = new Campaign({
  targets,
  kinds,
  gpu,
  readsMachineCode,
  onlyFaults: settings.faults,
  onFailure: keepFailure,
});

/** The command by which this process starts others like it. */
function serverCommand(): readonly string[] {
  const [cli, script] = [here("../../dist/cli/main.js"), fileURLToPath(import.meta.url)];
  const given = [
    "--device",
    settings.device,
    "--targets",
    targets.join(","),
    "--kinds",
    kinds.join(","),
  ];
  const reading = readsMachineCode ? ["--machine-code"] : [];
  const planting = settings.faults ? ["--faults"] : [];
  return [cli, "run", script, "--", "--serve", ...given, ...reading, ...planting];
}

async function lead(): Promise<Progress> {
  const seed = numberOption("seed", settings.seed, { from: 0 });
  const progress: Progress = readJson(settings.tally) ?? { seed, next: seed, tally: emptyTally() };
  const save = (): void => {
    if (settings.tally !== undefined)
      writeFileSync(settings.tally, `${JSON.stringify(progress)}\n`);
  };
  const end =
    performance.now() +
    numberOption("minutes", settings.minutes, { from: 0, whole: false }) * 60_000;
  let left = numberOption("kernels", settings.kernels);
  const waiting: Batch[] = kept.map((first) => ({ first, count: 1 }));
  const next = (): Batch | undefined => {
    if (performance.now() >= end || left <= 0) return undefined;
    const kept = waiting.shift();
    if (kept !== undefined) return kept;
    const batch = { first: progress.next, count: Math.min(batchSize, left) };
    progress.next += batch.count;
    left -= batch.count;
    return batch;
  };
  const onTally = (tally: Tally): void => {
    addTally(progress.tally, tally);
    save();
  };
  const jobs = numberOption("jobs", settings.jobs);
  if (jobs > 1) await shareBatches(serverCommand(), jobs, next, onTally);
  else
    for (let batch = next(); batch !== undefined; batch = next())
      onTally(await campaign.run(seedsOf(batch)));
  gpu?.close();
  return progress;
}

if (settings.serve) {
  serveBatches(
    (seeds) => campaign.run(seeds),
    () => gpu?.close(),
  );
} else {
  const { seed, next, tally } = await lead();
  const { corpus, failures, ...counts } = tally;
  if (settings.keep) {
    const more = [...new Set([...kept, ...corpus.map((each) => each.seed)])].slice(-400);
    writeFileSync(corpusFile, `${JSON.stringify(more)}\n`);
  }
  console.log(
    JSON.stringify({ corpus: kept.length, seed, next, ...counts, failures: failures.length }),
  );
  if (failures.length > 0) process.exitCode = 1;
}
