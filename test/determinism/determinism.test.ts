/**
 * The same work gives the same bytes in every process: compiled kernels, plans, printed programs, results under a schedule and a seed, files, and
 * names of the cache. Two processes do it, in different orders and in different surroundings, the first of them twice.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPackage } from "../build-package.ts";
import { repositoryRoot } from "../source-files.ts";
import { takesAll } from "../support/sample.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-determinism-")));
const script = join(folder, "print.js");

beforeAll(async () => {
  await Promise.all([
    buildPackage(folder),
    build({
      entryPoints: [join(repositoryRoot, "test/determinism/print.ts")],
      outfile: script,
      bundle: true,
      packages: "external",
      // Not the paths of the repository, which lead "tilewright" to the source.
      tsconfigRaw: {},
      format: "esm",
      platform: "node",
      target: "node20",
      logLevel: "error",
    }),
  ]);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface Surroundings {
  readonly seed?: number;
  readonly threads: number;
  readonly rounds: number;
  readonly cwd: string;
  readonly environment: { readonly [name: string]: string };
}

type Hashes = { readonly [name: string]: readonly string[] };

async function hashes({ cwd, environment, ...asked }: Surroundings): Promise<Hashes> {
  const given = JSON.stringify({ ...asked, whole: takesAll });
  const options = { cwd, env: { ...process.env, ...environment }, maxBuffer: 1 << 26 };
  const { stdout } = await promisify(execFile)(process.execPath, [script, given], options);
  return JSON.parse(stdout) as Hashes;
}

test("the same work gives the same bytes in every process", { timeout: 600_000 }, async () => {
  const seed = Number(process.env["TILEWRIGHT_SEED"] ?? Date.now() % 2 ** 31);
  const [first, second] = await Promise.all([
    hashes({ threads: 1, rounds: 2, cwd: repositoryRoot, environment: { TZ: "UTC", LANG: "C" } }),
    hashes({
      seed,
      threads: takesAll ? 4 : 2,
      rounds: takesAll ? 2 : 1,
      cwd: folder,
      environment: {
        TZ: "Asia/Kathmandu",
        LANG: "tr_TR.UTF-8",
        LC_ALL: "tr_TR.UTF-8",
        NODE_OPTIONS: "--max-old-space-size=900 --max-semi-space-size=1",
      },
    }),
  ]);
  expect(Object.keys(second).sort()).toEqual(Object.keys(first).sort());
  for (const [name, [one = "nothing", again]] of Object.entries(first)) {
    expect(again, `${name}, the second time in one process`).toBe(one);
    const others = new Set(second[name]);
    expect([...others], `${name}, made in the order of seed ${seed}`).toEqual([one]);
  }
});
