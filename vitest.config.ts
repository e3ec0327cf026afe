import { execFileSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/**
 * What takes long comes first, so that no core is left with it at the end: tests across folders do, then those of the
 * library's kernels, however short the file is.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      if (!moduleId.startsWith(source(""))) return 0;
      return moduleId.startsWith(source("kernels/")) ? 1 : 2;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/**
 * Settings of the engine, a third of the time. Tests make much that does not live long: where there is room for it, little
 * of it is ever copied, from the start, and what stays is not looked through before there is much of it; and that without other threads, since every core has tests to run. And most of their code runs a few
 * times only: what the engine optimises, it does so later, and joins less of it.
 */
const wanted = [
  "--max-semi-space-size=128",
  "--min-semi-space-size=64",
  "--initial-old-space-size=512",
  "--single-threaded-gc",
  "--interrupt-budget=1080000",
  "--max-inlined-bytecode-size-cumulative=300",
];
const known = execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
const settings = wanted.filter((setting) => known.includes(` ${setting.replace(/=.*/, "")} `));

/** What runs before every file of tests, again for each: the runner loads these, and Node everything else. */
const setupFiles = [
  "test/support/modules.ts",
  "test/support/turns.ts",
  "test/support/equal-arrays.ts",
];

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/.snippets/**"],
    setupFiles,
    server: {
      deps: { inline: [/\/test\/support\/(modules|turns|equal-arrays)\.ts$/], external: [/\.ts$/] },
    },
    // For what hangs. How long anything takes on a slow and crowded machine decides nothing.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    // Files share the modules of their process, which loads the library once instead of 250 times. What a file
    // changes outside of itself (the environment, a global) it puts back.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    execArgv: settings,
    // Unless told, vitest leaves one of two cores idle.
    maxWorkers: "100%",
  },
});
