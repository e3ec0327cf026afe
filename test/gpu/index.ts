/**
 * The device suite: every example and every case of the matrix on a device, against the simulator and
 * float64 references. `npm run test:gpu` runs it on the GPU; arguments pick another device or some checks.
 *
 *   npm run test:gpu                         everything
 *   npm run test:gpu -- --jobs 12            in so many processes, which share the GPU: most of the time is that of references
 *   npm run test:gpu -- --only "cast f32"    checks whose name contains the text; "example" for the examples, "pipeline" for
 *                                            pipelines, "runtime" for what devices do besides, "products" for those of
 *                                            the library, "attention" for its attention, "library" for
 *                                            what else it has
 *   npm run test:gpu -- --every 10           one in so many
 *   npm run test:gpu -- --random 100         random cases, too: of so many seeds, or those of 41-100 (`random.ts`)
 *   npm run test:gpu -- --seconds 120        what is not done by then counts as failed
 *   npm run test:gpu -- --device emulator    the same checks on the emulator
 *   npm run test:gpu -- --device emulator --target sm_100a --matrix
 *                                            the cases of the matrix alone, compiled for another target; what asks for
 *                                            wgmma by its name, or for larger clusters, is to be refused there
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { namedOption, numberOption, refuse, scriptOptions } from "../../scripts/arguments.ts";
import { open } from "../../src/runtime/open.ts";
import { deviceNames } from "../../src/runtime/open-options.ts";
import { targets } from "../../src/targets/target.ts";
import type { TargetName } from "../../src/targets/target.ts";
import { asksForMore, runCase } from "../matrix/case.ts";
import { matrixCases } from "../matrix/index.ts";
import { attentionChecks } from "./attention.ts";
import { inOrder, longestFirst, runChecks } from "./check.ts";
import type { Check, Counts, Dealer } from "./check.ts";
import { exampleChecks } from "./examples.ts";
import { libraryChecks } from "./library.ts";
import { pipelineChecks } from "./pipelines.ts";
import { productChecks } from "./products.ts";
import { randomChecks } from "./random.ts";
import { runtimeChecks } from "./runtime.ts";

const settings = scriptOptions(import.meta.url, {
  jobs: { type: "string", default: "1" },
  only: { type: "string", default: "" },
  every: { type: "string", default: "1" },
  device: { type: "string", default: "gpu" },
  target: { type: "string" },
  matrix: { type: "boolean", default: false },
  random: { type: "string", default: "0" },
  seconds: { type: "string", default: "3600" },
  /** Of a process that another has started: it is dealt its checks one by one. */
  job: { type: "boolean", default: false },
});
const every = numberOption("every", settings.every);
const jobs = numberOption("jobs", settings.jobs);
const seconds = numberOption("seconds", settings.seconds, { from: 0, whole: false });
if (!/^\d+(?:-\d+)?$/u.test(settings.random))
  refuse(
    `--random takes a number of seeds, or the first and last as 41-100, not "${settings.random}"`,
  );
const deviceName = namedOption("device", settings.device, deviceNames);
const target =
  settings.target === undefined
    ? undefined
    : namedOption("target", settings.target, Object.keys(targets) as TargetName[]);

function matrixChecks(): readonly Check[] {
  return matrixCases().map((one) => ({
    name: one.name,
    run: async (device) => {
      const { problem } = await runCase(device, one);
      if (problem !== undefined && !asksForMore(problem, device.target.name))
        throw new Error(problem);
    },
  }));
}

/** In one process those that take longest come last, so that all others are done where the time is over before. */
function chosenChecks(): readonly Check[] {
  const all = settings.matrix
    ? matrixChecks()
    : [
        ...exampleChecks,
        ...runtimeChecks,
        ...matrixChecks(),
        ...pipelineChecks,
        ...libraryChecks,
        ...productChecks,
        ...attentionChecks,
        ...randomChecks(settings.random),
      ];
  const chosen = all
    .filter(({ name }) => name.includes(settings.only))
    .filter((_, index) => index % every === 0);
  return jobs === 1 ? chosen : longestFirst(chosen);
}

const write = (line: string): boolean => process.stdout.write(`${line}\n`);

async function runDealt(checks: readonly Check[], deal: Dealer): Promise<Counts> {
  // Cases are made to be odd; what slows them is nobody's concern here.
  const device = await open(deviceName, { onNotes: () => undefined, ...(target && { target }) });
  const left = await runChecks(device, checks, deal, write, seconds);
  // A device that is not done would be waited for.
  if (!left.isStuck) device.dispose();
  return left;
}

/** What a process that was started says: that it wants a check, or what it has counted in the end. */
type Said = "next" | Counts;
/** The number of a check; behind the last one there is none. */
type Dealt = { readonly check?: number };

/** Has another process run what it is dealt. One that ends without its counts is a failure of its own. */
function startJob(number: number, deal: Dealer): Promise<Counts> {
  const cli = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
  const [, script = "", ...given] = process.argv;
  const command = [cli, "run", script, "--", ...given, "--job"];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, command, { stdio: ["ignore", 1, 2, "ipc"] });
    let counts: Counts | undefined;
    child.on("message", (said: Said) => {
      if (said !== "next") counts = said;
      else
        void deal().then((check) => {
          // One that has ended meanwhile is told by its exit.
          if (child.connected) child.send(check === undefined ? {} : { check });
        });
    });
    child.on("exit", (code) => {
      if (counts === undefined) write(`FAIL job ${number} ended with ${code}`);
      resolve(counts ?? { checks: 0, failures: 1 });
    });
  });
}

/** Asks the process that started this one. */
function dealtByParent(): Promise<number | undefined> {
  return new Promise((resolve) => {
    process.once("message", ({ check }: Dealt) => {
      resolve(check);
    });
    process.send?.("next");
  });
}

async function runAll(): Promise<Counts> {
  const checks = chosenChecks();
  const deal = inOrder(checks.length);
  if (jobs === 1) return runDealt(checks, deal);
  const counts = await Promise.all(
    Array.from({ length: jobs }, (_, number) => startJob(number, deal)),
  );
  const sum = (of: keyof Counts): number => counts.reduce((total, each) => total + each[of], 0);
  return { checks: sum("checks"), failures: sum("failures") };
}

if (settings.job) {
  process.send?.(await runDealt(chosenChecks(), dealtByParent), () => process.exit());
} else {
  const started = performance.now();
  const { checks, failures } = await runAll();
  const taken = ((performance.now() - started) / 1000).toFixed(1);
  write(`${checks} checks on ${deviceName}, ${failures} failures, ${taken} s`);
  process.exit(failures === 0 && checks > 0 ? 0 : 1);
}
