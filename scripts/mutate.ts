/**
 * `npm run mutate`: do the tests notice when the source is wrong? Plants one fault at a time in a copy of the
 * repository and runs the tests that should fail. Exits with status 1 when fewer than 95% are caught.
 *
 *   npm run mutate                                   all faults, one after the other
 *   npm run mutate -- --jobs 2                       two copies at a time
 *   npm run mutate -- --only passes                  one area
 *   npm run mutate -- --only passes/sub-self-float   one fault; `--only` may be repeated
 *   npm run mutate -- --json results.json            the results as data
 *   npm run mutate -- --write                        also docs/mutation.md; needs all faults
 *   npm run mutate -- --update                       no tests: the lists get the names of today, see follow.ts
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { numberOption, refuse, scriptOptions } from "./arguments.ts";
import { listPath, printFaults, readFaults, selectFaults } from "./mutations/faults.ts";
import type { Fault } from "./mutations/faults.ts";
import { Follower } from "./mutations/follow.ts";
import { repositoryTree } from "./mutations/history.ts";
import { enoughCaught, markdownReport, printedSummary, resultLine } from "./mutations/report.ts";
import type { Result } from "./mutations/report.ts";
import { Workspace } from "./mutations/workspace.ts";

const settings = scriptOptions(import.meta.url, {
  only: { type: "string", multiple: true },
  jobs: { type: "string", default: "1" },
  timeout: { type: "string", default: "120" },
  date: { type: "string", default: new Date().toISOString().slice(0, 10) },
  json: { type: "string" },
  write: { type: "boolean", default: false },
  update: { type: "boolean", default: false },
});
const jobs = numberOption("jobs", settings.jobs);
const timeout = numberOption("timeout", settings.timeout);
if (settings.write && settings.only !== undefined)
  refuse("--write needs the results of all faults, without --only");

const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs of tests without a fault, each made once, before the first fault that needs it. */
const baselines = new Map<string, Promise<void>>();

/** Without a fault all tests must pass, or a failure would say nothing. */
function requireBaseline(workspace: Workspace, tests: readonly string[]): Promise<void> {
  const key = tests.join(" ");
  const known = baselines.get(key);
  if (known !== undefined) return known;
  const baseline = workspace.runTests(tests, 10 * timeout).then(({ status, detail }) => {
    if (status !== "passed") throw new Error(`tests fail without any fault: ${detail}`);
  });
  baselines.set(key, baseline);
  return baseline;
}

async function tryFault(workspace: Workspace, fault: Fault): Promise<Result> {
  let seconds = 0;
  for (const tests of fault.stages) {
    await requireBaseline(workspace, tests);
    const start = performance.now();
    const { status, detail } = await workspace.withFault(fault, () =>
      workspace.runTests(tests, timeout),
    );
    seconds += (performance.now() - start) / 1000;
    if (status !== "passed")
      return { fault, verdict: status === "failed" ? "caught" : "timeout", detail, seconds };
  }
  return { fault, verdict: "survived", detail: "", seconds };
}

async function tryAll(faults: readonly Fault[]): Promise<readonly Result[]> {
  const results = new Map<Fault, Result>();
  const waiting = faults.values();
  const work = async (workspace: Workspace): Promise<void> => {
    // The workers share one iterator, so each takes the next fault that nobody has.
    for (const fault of waiting) {
      const result = await tryFault(workspace, fault);
      results.set(fault, result);
      console.log(`${String(results.size).padStart(3)}/${faults.length}  ${resultLine(result)}`);
    }
  };
  const workspaces = Array.from(
    { length: Math.min(jobs, faults.length) },
    () => new Workspace(root),
  );
  // Nobody's copy goes while tests still run in it.
  const ended = await Promise.allSettled(workspaces.map(work));
  for (const workspace of workspaces) workspace.dispose();
  for (const each of ended) if (each.status === "rejected") throw each.reason;
  return faults.flatMap((fault) => results.get(fault) ?? []);
}

/** The faults with the names of today; tells of those that fit nowhere. */
function followed(): { readonly faults: readonly Fault[]; readonly lost: number } {
  const all = new Follower(repositoryTree(root)).followAll(readFaults(root));
  for (const { fault, trouble } of all)
    if (trouble !== undefined) console.log(`lost: ${fault.id}: ${trouble}`);
  return {
    faults: all.map(({ fault }) => fault),
    lost: all.filter(({ trouble }) => trouble !== undefined).length,
  };
}

function updateLists(): void {
  const before = new Map(readFaults(root).map((fault) => [fault.id, fault]));
  const { faults, lost } = followed();
  for (const fault of faults) {
    const { file, find } = before.get(fault.id) ?? fault;
    if (find !== fault.find || file !== fault.file)
      console.log(`${fault.id}: ${file}: ${find}\n  now ${fault.file}: ${fault.find}`);
  }
  for (const area of new Set(faults.map((fault) => fault.area)))
    writeFileSync(listPath(root, area), printFaults(selectFaults(faults, [area])));
  if (lost > 0) process.exitCode = 1;
}

export async function main(): Promise<void> {
  if (settings.update) return updateLists();
  const { faults, lost } = followed();
  if (lost > 0) throw new Error(`${lost} faults fit the source nowhere`);
  const results = await tryAll(selectFaults(faults, settings.only));
  console.log(`\n${printedSummary(results)}`);
  const survivors = results.filter(({ verdict }) => verdict === "survived");
  for (const { fault } of survivors)
    console.log(`survived: ${fault.id}, ${fault.file}: ${fault.find.trim()}`);
  if (settings.json !== undefined)
    writeFileSync(settings.json, `${JSON.stringify(results, null, 2)}\n`);
  if (settings.write) {
    // Takes the formatter, which a machine that only tries faults need not have.
    const { writeResults } = await import("./results-section.ts");
    await writeResults(
      "mutation.md",
      "npm run mutate -- --write",
      markdownReport(results, settings.date),
    );
  }
  if (!enoughCaught(results)) process.exitCode = 1;
}
