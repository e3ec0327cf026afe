/**
 * The package as its users meet it: packed by npm, installed into an empty project, and tried by the tools, runtimes, bundlers and compilers that
 * users have. Those are installed by npm into a temporary folder, which is removed at the end.
 *
 *   npm run package-check                            everything: some minutes, and the network
 *   npm run package-check -- --quick                 the tests of the package that npm test has, with nothing but `npm ci`
 *   npm run package-check -- --only typescript       some of it: a name of the list, or the part before its @; again for more
 *   npm run package-check -- --list                  the names
 *   npm run package-check -- --allow-missing         what cannot be installed here is told, and no failure
 *   npm run package-check -- --keep                  the temporary folder stays
 *
 *   pack            ok         15.1 s  1.78 MB
 *   node@20         ok          9.0 s  node v20.20.2: 6 programs, every entry, command line, require
 *   bun             not tried   2.3 s  npm could not install bun: network request failed
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "../../test/source-files.ts";
import { refuse, scriptOptions } from "../arguments.ts";
import { bundleChecks } from "./bundles.ts";
import { isAsked, NotTried } from "./check.ts";
import type { Check } from "./check.ts";
import { manifestChecks } from "./manifest.ts";
import { install, pack } from "./package.ts";
import { quickTests } from "./quick.ts";
import { runtimeChecks } from "./runtimes.ts";
import { typescriptChecks } from "./typescript.ts";

const checks: readonly Check[] = [
  ...manifestChecks,
  ...typescriptChecks,
  ...runtimeChecks,
  ...bundleChecks,
];

const settings = scriptOptions(import.meta.url, {
  quick: { type: "boolean" },
  list: { type: "boolean" },
  only: { type: "string", multiple: true, default: [] },
  "allow-missing": { type: "boolean" },
  keep: { type: "boolean" },
});

const { only } = settings;
const unknown = only.find((name) => !checks.some((check) => isAsked(check, [name])));
if (unknown !== undefined) refuse(`no check is called ${unknown}`);

const tally = { failed: 0, missing: 0 };

/** Does one thing and prints a line about it; undefined where it failed. */
async function step<Result>(
  name: string,
  work: () => Promise<Result>,
  note: (result: Result) => string,
): Promise<Result | undefined> {
  const start = performance.now();
  const tell = (outcome: string, text: string): void => {
    const seconds = ((performance.now() - start) / 1000).toFixed(1).padStart(6);
    console.log(`${name.padEnd(15)} ${outcome.padEnd(9)} ${seconds} s  ${text}`);
  };
  try {
    const result = await work();
    tell("ok", note(result));
    return result;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isMissing = error instanceof NotTried;
    tally[isMissing ? "missing" : "failed"] += 1;
    tell(isMissing ? "not tried" : "FAILED", isMissing ? reason : reason.replaceAll("\n", "\n  "));
    return undefined;
  }
}

async function checkAll(folder: string): Promise<void> {
  const packed = await step(
    "pack",
    () => pack(folder),
    ({ note }) => note,
  );
  if (packed === undefined) return;
  const subject = await step(
    "install",
    () => install(folder, packed.archive),
    () => "into an empty project",
  );
  if (subject === undefined) return;
  for (const check of checks)
    if (isAsked(check, only))
      await step(
        check.name,
        () => check.run(subject),
        (found) => found,
      );
}

if (settings.list) {
  for (const { name, about } of checks) console.log(`${name.padEnd(15)} ${about}`);
} else if (settings.quick) {
  console.log(`the tests of the package, which npm test runs, too: ${quickTests.join(" ")}`);
  const vitest = join(repositoryRoot, "node_modules/vitest/vitest.mjs");
  const given = [vitest, "run", ...quickTests];
  const { status } = spawnSync(process.execPath, given, { cwd: repositoryRoot, stdio: "inherit" });
  process.exitCode = status ?? 1;
} else {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-package-check-")));
  process.once("exit", () => {
    if (settings.keep) console.log(`kept: ${folder}`);
    else rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  // Who interrupts it leaves nothing behind, either.
  process.once("SIGINT", () => process.exit(130));
  await checkAll(folder);
  const { failed, missing } = tally;
  const isRight = failed === 0 && (missing === 0 || settings["allow-missing"] === true);
  console.log(isRight ? "The package is right." : `${failed} failed, ${missing} not tried.`);
  process.exitCode = isRight ? 0 : 1;
}
