/**
 * `npm run fuzz -- --minutes 10 --jobs 4`: random kernels, simulator against emulator, bit for bit, for as long as
 * one likes. Failures are shrunk and written to `test/fuzz/found`; from there, once mended, they move to
 * `test/fuzz/fixtures`, which the tests run.
 *
 *   --minutes N    how long; 1 unless given
 *   --jobs N       processes at a time; 1 unless given
 *   --seed N       where to begin; the time of day unless given
 *   --device gpu   compares with a GPU too
 *   --keep         adds seeds that exercise something new to the corpus
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openGpu } from "../../src/cuda/open.ts";
import { campaign } from "./campaign.ts";
import type { Failure, Tally } from "./campaign.ts";

const { values: settings } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
    device: { type: "string", default: "emulator" },
    keep: { type: "boolean", default: false },
    /** Of a process that this one has started: its place among them. */
    job: { type: "string" },
  },
});

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const corpusFile = here("corpus.json");
const [minutes, jobs, seed] = [settings.minutes, settings.jobs, settings.seed].map(Number) as [
  number,
  number,
  number,
];

function corpus(): readonly number[] {
  return existsSync(corpusFile) ? (JSON.parse(readFileSync(corpusFile, "utf8")) as number[]) : [];
}

function keepFailure({ seed: found, kind, why, text }: Failure): void {
  mkdirSync(here("found"), { recursive: true });
  const file = here(`found/${kind}-${found}.txt`);
  writeFileSync(file, text);
  console.error(`${file}\n${why.split("\n").slice(0, 8).join("\n")}\n`);
}

async function runJob(job: number): Promise<Tally> {
  const gpu = settings.device === "gpu" ? await openGpu() : undefined;
  try {
    return await campaign({
      corpus: corpus(),
      firstSeed: seed + job,
      stride: jobs,
      milliseconds: minutes * 60_000,
      gpu,
      onFailure: keepFailure,
    });
  } finally {
    gpu?.dispose();
  }
}

/** Another process with a share of the seeds; its tally is the last line that it prints. */
function startJob(job: number): Promise<Tally> {
  return new Promise((resolve, reject) => {
    const [cli, script] = [here("../../dist/cli/main.js"), fileURLToPath(import.meta.url)];
    const given = Object.entries({ ...settings, seed: String(seed), job: String(job) }).flatMap(
      ([name, value]) =>
        value === true ? [`--${name}`] : value === false ? [] : [`--${name}`, String(value)],
    );
    const child = spawn(process.execPath, [cli, "run", script, "--", ...given], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.on("data", (data: Buffer) => {
      printed += data.toString();
    });
    child.on("error", reject);
    child.on("exit", (code) => {
      const last = printed.trim().split("\n").at(-1) ?? "";
      if (last.startsWith("{")) resolve(JSON.parse(last) as Tally);
      else reject(new Error(`job ${job} ended with ${code}`));
    });
  });
}

function total(tallies: readonly Tally[]): Tally {
  const sum: Tally = { kernels: 0, texts: 0, skipped: 0, byKind: {}, corpus: [], failures: [] };
  for (const each of tallies) {
    sum.kernels += each.kernels;
    sum.texts += each.texts;
    sum.skipped += each.skipped;
    for (const [kind, count] of Object.entries(each.byKind))
      sum.byKind[kind] = (sum.byKind[kind] ?? 0) + count;
    sum.corpus.push(...each.corpus);
    sum.failures.push(...each.failures);
  }
  return sum;
}

if (settings.job !== undefined) {
  console.log(JSON.stringify(await runJob(Number(settings.job))));
} else {
  const tallies =
    jobs === 1
      ? [await runJob(0)]
      : await Promise.all(Array.from({ length: jobs }, (_, job) => startJob(job)));
  const { kernels, texts, skipped, byKind, failures, corpus: fresh } = total(tallies);
  if (settings.keep) {
    const kept = [...new Set([...corpus(), ...fresh])].slice(-400);
    writeFileSync(corpusFile, `${JSON.stringify(kept)}\n`);
  }
  const mixture = Object.entries(byKind)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(", ");
  console.log(`seed ${seed}: ${kernels} kernels (${mixture}), ${skipped} refused, ${texts} texts`);
  console.log(`${failures.length} failures`);
  if (failures.length > 0) process.exitCode = 1;
}
