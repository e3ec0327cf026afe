/**
 * `npm test`: everything a change must pass. The static checks run two at a time and stay silent
 * unless they fail; the tests follow, because they may use the build.
 *
 *   format  ok   3.1 s
 *   types   ok   7.9 s
 *   lint    ok  14.0 s
 *   build   ok   6.2 s
 *   (vitest's own report)
 *
 * `npm run check`: the same of what changed since the branch left main, in a minute; `-- --since REF` since another commit.
 * Types and formatting are checked everywhere, lint in the changed files. `touched-tests.ts` says which tests run.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { register } from "node:module";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const { values: options } = parseArgs({
  options: { all: { type: "boolean", default: false }, since: { type: "string" } },
});
const started = performance.now();

/** Checkers beside each other find the same types anew, each for itself: one takes half the work of four. */
const types = { name: "types", script: "typecheck", parameters: ["--checkers", "1"] };
const format = { name: "format", script: "format:check" };
const concurrency = 2;

/** How long the tests of changed folders may take together, in seconds of one core. */
const folderSeconds = 30;
/** How long a test file takes of which nothing is known. */
const usualSeconds = 2;

/** The compiler and the linter are programs in Go, which collect garbage less often with this, a tenth of their time. */
const env = { GOGC: "400", ...process.env };

/** Runs a command of npm; resolves to its exit status and, unless `live`, what it printed. */
function run(parameters, live) {
  return new Promise((resolve, reject) => {
    const child = spawn("npm", parameters, {
      env,
      stdio: live ? "inherit" : ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32",
    });
    let output = "";
    const collect = (chunk) => (output += chunk);
    child.stdout?.setEncoding("utf8").on("data", collect);
    child.stderr?.setEncoding("utf8").on("data", collect);
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, output }));
  });
}

function runScript(script, live, parameters = []) {
  return run(["run", "--silent", script, "--", ...parameters], live);
}

const secondsSince = (start) => ((performance.now() - start) / 1000).toFixed(1);

/** Runs checks, two at a time; ends the process where one fails. */
async function runStatic(checks) {
  let failed = false;
  const waiting = [...checks];
  const runWaiting = async () => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const start = performance.now();
      const { status, output } = await runScript(check.script, false, check.parameters);
      const result = status === 0 ? "ok  " : "FAIL";
      console.log(`${check.name.padEnd(7)} ${result} ${secondsSince(start).padStart(5)} s`);
      if (status !== 0) {
        failed = true;
        console.log(output.trimEnd());
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runWaiting));
  if (failed) process.exit(1);
}

function git(...parameters) {
  return execFileSync("git", parameters, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** The commit of an option, or where this branch left main. */
function baseCommit() {
  if (options.since !== undefined) return git("rev-parse", `${options.since}^{commit}`).trim();
  for (const main of ["main", "origin/main"]) {
    try {
      return git("merge-base", "HEAD", main).trim();
    } catch {
      // There is no such branch here.
    }
  }
  return git("rev-parse", "HEAD").trim();
}

/** Files that differ from a commit, or are new, as they are now. */
function changedFiles(base) {
  const listed = [
    git("diff", "--name-only", "--no-renames", base),
    git("ls-files", "--others", "--exclude-standard"),
  ];
  return [...new Set(listed.join("\n").split("\n"))].filter((name) => name !== "").sort();
}

/** All files of tests, by their text. */
function allTests() {
  const names = ["src", "test"].flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map(
      (name) => `${folder}/${name.replaceAll("\\", "/")}`,
    ),
  );
  const tests = names.filter((name) => name.endsWith(".test.ts") && !name.includes("/.snippets/"));
  return new Map(tests.map((name) => [name, readFileSync(name, "utf8")]));
}

/** What each file of tests took when it last ran here, in seconds. */
function recordedSeconds() {
  const folder = "node_modules/.vite/vitest";
  const records = existsSync(folder)
    ? readdirSync(folder).map((name) => `${folder}/${name}/results.json`)
    : [];
  const results = records
    .filter((path) => existsSync(path))
    .flatMap((path) => JSON.parse(readFileSync(path, "utf8")).results);
  return new Map(
    results.map(([name, { duration }]) => [name.replace(/^.*?:/, ""), duration / 1000]),
  );
}

async function checkChanges() {
  const base = baseCommit();
  const changed = changedFiles(base);
  console.log(
    `${changed.length} files changed since ${git("log", "-1", "--format=%h %s", base).trim()}`,
  );
  if (changed.length === 0)
    return console.log("for a commit of main: npm run check -- --since HEAD~1");

  const isLinted = (name) => /\.(ts|mjs|js|cjs|tsx)$/.test(name) && !name.startsWith("apps/");
  const linted = changed.filter((name) => isLinted(name) && existsSync(name));
  const lint = { name: "lint", script: "lint", parameters: linted };
  await runStatic([types, format, ...(linted.length > 0 ? [lint] : [])]);

  register("../test/support/erase-types.mjs", import.meta.url);
  const { touchedTests, withinSeconds } = await import("./touched-tests.ts");
  const { nearest, repository, folders } = touchedTests(changed, allTests());
  const recorded = recordedSeconds();
  const secondsOf = (test) => recorded.get(test) ?? usualSeconds;
  const { taken, left } = withinSeconds(folders, secondsOf, folderSeconds);
  console.log(
    `tests   ${nearest.length} files that changed or lie beside what changed, ${repository.length} of the repository, ` +
      `${taken.length} of ${folders.length} others of the same folders`,
  );
  const { status } = await run(
    ["exec", "--", "vitest", "run", ...nearest, ...repository, ...taken],
    true,
  );
  if (left.length > 0) {
    console.log(`left out, for time: npx vitest run ${left.join(" ")}`);
  }
  console.log(
    `${status === 0 ? "ok" : "FAIL"}, ${secondsSince(started)} s; npm test runs everything`,
  );
  process.exit(status ?? 1);
}

async function checkAll() {
  // Types are checked beside the build.
  const build = { name: "build", script: "build", parameters: ["--noCheck"] };
  await runStatic([{ name: "lint", script: "lint" }, types, build, format]);
  const { status } = await runScript("test:unit", true);
  process.exit(status ?? 1);
}

await (options.all ? checkAll() : checkChanges());
