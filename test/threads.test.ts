/**
 * The emulator on threads of Node, from a build as it is installed: threads load files of their own. What they
 * give is compared with one thread's, byte by byte and word by word.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as Emulator from "../src/emulator/index.ts";
import type * as Parser from "../src/ptx/parser/index.ts";
import type { ThreadHost } from "../src/emulator/host-workers/worker-pool.ts";
import type { Answer } from "../src/emulator/host-workers/job.ts";
import { buildPackage } from "./build-package.ts";
import { poolOf, dividedLaunches, recordLaunch } from "./support/divided-launches.ts";
import { takesAll } from "./support/sample.ts";

const folder = mkdtempSync(join(tmpdir(), "tilewright-threads-"));
let emulator: typeof Emulator;
let parser: typeof Parser;
let host: ThreadHost;

async function built<M>(path: string): Promise<M> {
  return (await import(pathToFileURL(join(folder, "dist/emulator", path)).href)) as M;
}

beforeAll(async () => {
  await buildPackage(folder, ["src/emulator/index.ts", "src/ptx/parser/index.ts"]);
  emulator = await built("index.js");
  parser = await built("../ptx/parser/index.js");
  host = await built("../workers/node.js");
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe.each(takesAll ? [2, 3] : [3])("with %s threads", (threads) => {
  const answers: Answer[] = [];
  /** Node's threads, with a record of what they answer. */
  const watched: ThreadHost = {
    processors: () => host.processors(),
    openPort: ({ answered, ended }) =>
      host.openPort({
        answered: (answer) => {
          answers.push(answer);
          answered(answer);
        },
        ended,
      }),
  };
  let pool: Emulator.WorkerPool;

  beforeAll(() => {
    pool = new emulator.WorkerPool({ threads, handover: { patience: 0, gain: 0 }, host: watched });
  });

  afterAll(() => {
    pool.dispose();
  });

  test.each(dividedLaunches.map((launch) => [launch.name, launch] as const))(
    "%s",
    async (_, launch) => {
      const parts = { EmulatedMemory: emulator.EmulatedMemory, parsePtx: parser.parsePtx };
      for (const checks of [true, false]) {
        answers.length = 0;
        const options = { seed: threads, checks };
        const alone = await recordLaunch({ ...parts, run: emulator.emulate }, launch, options);
        const shared = { ...parts, run: poolOf(emulator, pool) };
        expect(await recordLaunch(shared, launch, options)).toEqual(alone);
        const end = checks ? launch.end : (launch.unchecked ?? launch.end);
        expect(answers.length).toBe(end === "kept" ? 0 : threads);
        if (end === "shared") expect(answers).not.toContain(undefined);
      }
    },
  );
});

describe("a device", () => {
  /** Runs a program in a process of its own, which has to end by itself. */
  async function run(lines: readonly string[]): Promise<string> {
    const path = join(folder, "program.js");
    writeFileSync(path, lines.join("\n"));
    return (await promisify(execFile)(process.execPath, [path], { cwd: folder, timeout: 600_000 }))
      .stdout;
  }

  const setup = [
    'import { tensor, dim, f32, fromNumbers, kernel, open, slice, toNumbers } from "tilewright";',
    'const n = dim("n");',
    "const work = kernel(",
    '  { name: "work", grid: { i: 40 }, inputs: { x: tensor(f32, [n]) }, outputs: { out: tensor(f32, [n]) } },',
    "  ({ i, x, out }) => {",
    "    const here = slice(i.mul(256), 256);",
    "    let value = x.at(here).load();",
    "    for (let step = 0; step < 4; step++) value = value.mul(1.01).sin();",
    "    out.at(here).store(value);",
    "  },",
    ");",
    "const x = fromNumbers(f32, [40 * 256], Float64Array.from({ length: 40 * 256 }, (_, at) => at % 97));",
  ];

  test("shares long launches, ends with its process, and gives the same", async () => {
    const text = await run([
      ...setup,
      'import { Worker } from "node:worker_threads";',
      "// A clock that runs ten thousand times too fast: the launch is long on every machine.",
      "const now = performance.now.bind(performance);",
      "performance.now = () => 1e4 * now();",
      "let started = 0;",
      "const post = Worker.prototype.postMessage;",
      "Worker.prototype.postMessage = function (...given) { started += 1; return post.apply(this, given); };",
      "const sums = [];",
      "for (const threads of [1, 2]) {",
      '  const device = await open("emulator", { threads });',
      "  const { out } = await device.run(work, { x });",
      "  sums.push(toNumbers(out).reduce((sum, value, at) => sum + value * (at % 13), 0));",
      "  // Not disposed of: threads must not keep the process.",
      "}",
      "console.log(sums[0] === sums[1], started);",
    ]);
    expect(text).toBe("true 2\n");
  });
});
