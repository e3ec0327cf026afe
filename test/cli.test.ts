/**
 * The command line as its users meet it: built, on files that lie outside the package. What is said of a process (its exit
 * status, its streams, the frames of a program, a report without a place) is said of a process of its own; everything else
 * is asked of one process, which loads the compiler once.
 */
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import { kernelFromCompiled } from "../src/ptx/compiled-kernel.ts";
import { targets } from "../src/targets/target.ts";
import { hasPtxas } from "./ptxas.ts";
import { repositoryRoot } from "./source-files.ts";
import { BuiltCommand } from "./support/built-command.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-cli-")));
const installed = join(folder, "installed");
const user = join(folder, "user");
const command = new BuiltCommand(installed, user);

const start = (...parameters: readonly string[]) => command.start(parameters);
const tilewright = (...parameters: readonly string[]) => command.run(parameters);

/** The one JSON document of a run, whatever its status. */
async function json(...parameters: readonly string[]): Promise<unknown> {
  return JSON.parse((await tilewright(...parameters, "--json")).stdout);
}

/** The same of a process of its own. */
async function startedJson(...parameters: readonly string[]): Promise<unknown> {
  return JSON.parse((await start(...parameters, "--json")).stdout);
}

function writeUserFile(name: string, lines: readonly string[]): string {
  writeFileSync(join(user, name), lines.join("\n"));
  return join(user, name);
}

function lineOf(lines: readonly string[], text: string): number {
  return lines.findIndex((line) => line.includes(text)) + 1;
}

const scaleLines = [
  'import { tensor, cdiv, debugPrint, dim, f32, kernel, slice } from "tilewright";',
  "const n = dim('n', { multipleOf: 16 });",
  "export const double = kernel(",
  "  { name: 'scale', grid: { i: cdiv(n, 256) }, inputs: { x: tensor(f32, [n]) }, outputs: { out: tensor(f32, [n]) } },",
  "  ({ i, x, out }) => {",
  "    const here = slice(i.mul(256), 256);",
  "    debugPrint('block {}', i);",
  "    out.at(here).store(x.at(here).load().mul(2));",
  "  },",
  ");",
];

// Two threads share a buffer and nothing orders the load after the store.
const raceLines = [
  'import { tensor, f32, kernel, smem } from "tilewright";',
  'import type { Device } from "tilewright";',
  "export const handover = kernel(",
  "  {",
  "    name: 'handover',",
  "    threads: ['writer', 'reader'],",
  "    inputs: { x: tensor(f32, [64]) },",
  "    outputs: { out: tensor(f32, [64]) },",
  "    scratch: { buffer: smem(f32, [64]) },",
  "  },",
  "  ({ x, out, buffer, writer, reader }) => {",
  "    writer(() => {",
  "      buffer.store(x.load());",
  "    });",
  "    reader(() => {",
  "      out.store(buffer.load());",
  "    });",
  "  },",
  ");",
];

beforeAll(async () => {
  await command.build();
  writeUserFile("scale.ts", scaleLines);
  writeUserFile("race.ts", raceLines);
});

afterAll(() => {
  command.end();
  rmSync(folder, { recursive: true });
});

describe("run", () => {
  test("calls main, silently unless asked for JSON", async () => {
    const example = join(repositoryRoot, "examples/axpy.ts");
    expect(await start("run", example)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await json("run", example)).toMatchObject({
      file: example,
      device: "simulator",
      result: { elements: 100_003 },
    });
  });

  test("runs kernels on random inputs and prints their outputs", async () => {
    const { status, stdout, stderr } = await tilewright("run", "scale.ts", "--dim", "n=32");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      /^.*block 0\ndouble: n = 32, seed 1, \d+ ms on the simulator\nout = f32\[32\]\n\[/,
    );
  });

  test("prints one JSON document, whatever the kernel prints", async () => {
    const { stdout, stderr } = await start("run", "scale.ts", "--seed", "5", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      kernels: [
        {
          name: "double",
          kernel: "scale",
          dimensions: { n: 1008 },
          seed: 5,
          outputs: { out: { dtype: "f32", shape: [1008] } },
        },
      ],
    });
    expect(stderr).toContain("block 3");
  });

  test("a file with neither is a script with arguments and a status of its own", async () => {
    const lines = ["const size: string = process.argv.slice(2).join();", "console.log(size);"];
    writeUserFile("script.ts", [...lines, "process.exitCode = 3;"]);
    const ended = await start("run", "script.ts", "--", "--size", "512");
    expect(ended).toEqual({ status: 3, stdout: "--size,512\n", stderr: "" });
  });

  test("a mistake in the command's own values has no place in a file", async () => {
    const document = await startedJson("run", "scale.ts", "--dim", "n=7");
    expect(document).toMatchObject({ error: { code: "TW4007", found: "7" } });
    expect(document).not.toHaveProperty("error.position");
  });

  test("disposes of the device, which reports what main forgot", async () => {
    const lines = [
      'import { f32 } from "tilewright";',
      "export function main(device) {",
      "  device.allocate(f32, [4]);",
      "}",
    ];
    const path = writeUserFile("leak.mjs", lines);
    const { status, stderr } = await start("run", "leak.mjs");
    expect([status, stderr]).toEqual([0, expect.stringContaining(`made at ${path}:3:10`)]);
  });

  test("a finding is its report alone, with both lines", async () => {
    const { status, stdout, stderr } = await start("run", "race.ts");
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^TW3001: /);
    expect(stderr).not.toContain(installed);
    for (const text of ["buffer.store", "buffer.load"])
      expect(stderr).toContain(`race.ts:${lineOf(raceLines, text)}:`);
  });

  test("an error of the program keeps the program's frames", async () => {
    const lines = ["export function main(): void {", '  throw new RangeError("boom");', "}"];
    const path = writeUserFile("throws.ts", lines);
    const { status, stderr } = await start("run", "throws.ts");
    expect(status).toBe(1);
    expect(stderr.split("\n")).toEqual([
      "RangeError: boom",
      expect.stringMatching(new RegExp(`^ {4}at .*main.*${path}:2:9`)),
      "",
    ]);
    expect(await startedJson("run", "throws.ts")).toMatchObject({
      error: { name: "RangeError", summary: "boom", frames: [expect.stringContaining(":2:9")] },
    });
  });

  test("a mistake while tracing names the user's line", async () => {
    writeUserFile("wrong.ts", [
      ...scaleLines.slice(0, 7),
      "    out.at(here).store(x.at(i, i));",
      ...scaleLines.slice(8),
    ]);
    expect(await json("run", "wrong.ts")).toMatchObject({
      error: {
        code: expect.stringMatching(/^TW[12]/) as string,
        position: { file: join(user, "wrong.ts"), line: 8 },
      },
    });
  });

  test("a missing file is TW5003, for people and as JSON", async () => {
    const { status, stdout, stderr } = await tilewright("run", "missing.ts");
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^TW5003: there is no file missing\.ts\n {2}expected: .*\n {2}found: .*\n {2}remedy: /,
    );
    expect(await json("run", "missing.ts")).toMatchObject({ error: { code: "TW5003" } });
  });
});

describe("compile", () => {
  test("prints IR that parses, with fewer operations after the passes", async () => {
    const { status, stdout } = await tilewright("compile", "scale.ts", "--emit", "ir");
    expect(status).toBe(0);
    const traced = await tilewright("compile", "scale.ts", "--no-passes");
    const count = (text: string) => parseModule(text).kernels[0]?.body.ops.length ?? 0;
    expect(count(stdout)).toBeGreaterThan(0);
    expect(count(stdout)).toBeLessThanOrEqual(count(traced.stdout));
  });

  test("writes files and says so", async () => {
    const { stdout } = await tilewright("compile", "scale.ts", "--out", "written");
    expect(stdout).toBe("wrote written/double.ir\n");
    const [written] = parseModule(readFileSync(join(user, "written/double.ir"), "utf8")).kernels;
    expect(written?.name).toBe("scale");
  });

  test("prints PTX and placements, for each target", async () => {
    const targets = "sm_80,sm_90a,sm_100a";
    const { stdout } = await tilewright(...["compile", "scale.ts", "--emit", "ptx"]);
    expect(parsePtx(stdout)).toMatchObject({ target: "sm_90a", version: "8.0" });
    expect(await json("compile", "scale.ts", "--emit", "ptx", "--target", targets)).toMatchObject({
      emit: "ptx",
      targets: targets.split(","),
      kernels: targets.split(",").map((target) => ({
        name: "double",
        kernel: "scale",
        target,
        ptx: expect.stringContaining(`.target ${target}\n`) as string,
        files: [],
      })),
    });
    const placed = await tilewright("compile", "scale.ts", "--emit", "placement");
    expect(placed.stdout).toBe("scale on sm_90a\nno conversions\n");
  });

  test("what it writes ahead of time runs later, without the source", async () => {
    const written = ["written/double.sm_90a.ptx", "written/double.sm_90a.ptx.json"];
    const document = await json("compile", "scale.ts", "--emit", "ptx", "--out", "written");
    expect(document).toMatchObject({ kernels: [{ files: written }] });
    writeUserFile("later.ts", [
      'import { f32, fromNumbers, loadKernel, toNumbers } from "tilewright";',
      "export async function main(device) {",
      `  const loaded = await loadKernel("written/double.sm_90a.ptx.json");`,
      "  const { out } = await device.run(loaded, { x: fromNumbers(f32, [16], new Array(16).fill(3)) });",
      "  return { sum: toNumbers(out).reduce((sum, value) => sum + value, 0) };",
      "}",
    ]);
    const ran = await json("run", "later.ts", "--device", "emulator");
    expect(ran).toMatchObject({ device: "emulator", result: { sum: 96 } });
  });

  test.skipIf(!hasPtxas)("writes cubins with ptxas", async () => {
    const { status, stdout } = await tilewright(
      ...["compile", "scale.ts", "--emit", "cubin", "--target", "sm_80,sm_90a", "--out", "cubins"],
    );
    expect([status, stdout.split("\n").length]).toEqual([0, 5]);
    const cubin = readFileSync(join(user, "cubins/double.sm_80.cubin"));
    expect(cubin.subarray(0, 4).toString("latin1")).toBe("\u007fELF");
    const manifest: unknown = JSON.parse(
      readFileSync(join(user, "cubins/double.sm_80.cubin.json"), "utf8"),
    );
    expect(kernelFromCompiled(manifest, cubin).target).toBe(targets.sm_80);
  });

  test("a file that cannot be written is TW5008", async () => {
    const out = "scale.ts/written";
    expect(await json("compile", "scale.ts", "--out", out)).toMatchObject({
      error: { code: "TW5008", summary: `${out} cannot be written` },
    });
    expect(existsSync(join(user, out))).toBe(false);
  });

  test("checks the target's limits", async () => {
    const kilobytes = 200;
    writeUserFile("large.ts", [
      'import { f32, kernel, smem } from "tilewright";',
      `const scratch = { buffer: smem(f32, [${kilobytes * 256}]) };`,
      "export const large = kernel({ name: 'large', scratch }, ({ buffer }) => buffer.store(1));",
    ]);
    expect((await tilewright("compile", "large.ts", "--target", "sm_90a")).status).toBe(0);
    expect(await json("compile", "large.ts", "--target", "sm_80")).toMatchObject({
      error: { code: expect.stringMatching(/^TW3/) as string },
    });
  });

  test("an instruction that a target lacks is named", async () => {
    const example = join(repositoryRoot, "examples/gemm.ts");
    for (const target of ["sm_80", "sm_100a"])
      expect(await json("compile", example, "--emit", "ptx", "--target", target)).toMatchObject({
        error: {
          code: "TW6105",
          summary: `accumulator needs wgmma, which ${target} does not have`,
        },
      });
    const clusters = join(repositoryRoot, "examples/cluster.ts");
    expect(await json("compile", clusters, "--emit", "ptx", "--target", "sm_80")).toMatchObject({
      error: { code: "TW3017", summary: expect.stringContaining("barrier.cluster") as string },
    });
  });

  test("other forms and targets are named as unknown, with those that exist", async () => {
    const form = await tilewright("compile", "scale.ts", "--emit", "sass");
    expect([form.status, form.stderr]).toEqual([
      2,
      expect.stringContaining("Allowed choices are ir, placement, ptx, cubin."),
    ]);
    expect(await json("compile", "scale.ts", "--target", "sm_1")).toMatchObject({
      error: { code: "TW5007", summary: expect.stringContaining("sm_90a") as string },
    });
  });

  test("dumps every stage", async () => {
    const { stderr } = await tilewright("compile", "scale.ts", "--dump", "stages");
    expect(stderr).toBe("wrote stages/double.sm_90a\n");
    const stages = readdirSync(join(user, "stages/double.sm_90a"));
    expect(stages).toEqual(
      expect.arrayContaining(["00-traced.ir", "assembler.log", "kernel.ptx", "placement.txt"]),
    );
  });
});

describe("simulate", () => {
  test("reports a race once, with both lines, and exits with 1", async () => {
    const { status, stdout, stderr } = await start("simulate", "race.ts", "--schedules", "6");
    expect([status, stderr]).toEqual([1, ""]);
    expect(stdout.match(/^TW3001: /gm)).toHaveLength(1);
    for (const text of ["buffer.store", "buffer.load"])
      expect(stdout).toContain(`race.ts:${lineOf(raceLines, text)}:`);
    expect(stdout).toMatch(/\nkernel +schedules +findings +time\nhandover +7 +\d+ /);
  });

  test("gives findings as data", async () => {
    expect(await json("simulate", "race.ts", "--schedules", "2", "--seed", "4")).toMatchObject({
      clean: false,
      seed: 4,
      kernels: [{ name: "handover", schedules: 3, findings: [{ code: "TW3001" }] }],
    });
  });

  test("a clean kernel exits with 0 and prints its own lines once", async () => {
    const { status, stdout } = await tilewright(
      ...["simulate", "scale.ts", "--schedules", "3", "--dim", "n=32"],
    );
    expect(status).toBe(0);
    expect(stdout).toMatch(/^.*block 0\nkernel +schedules +findings +time\ndouble +4 +none /);
  });

  test("runs main under every schedule; what it throws is a finding", async () => {
    const lines = [
      "let runs = 0;",
      "export async function main(device: Device): Promise<void> {",
      "  runs += 1;",
      "  console.log(`run ${runs}`);",
      "  if (runs === 3) await device.run(handover, {} as never);",
      "}",
    ];
    writeUserFile("main.ts", [...raceLines, ...lines]);
    const { status, stdout } = await tilewright("simulate", "main.ts", "--schedules", "4");
    expect(status).toBe(1);
    expect(stdout).toMatch(/^run 1\nrun 3\nTW4002: /);
    expect(stdout).toContain("found under the adversarial schedule, seed 2");
    expect(stdout).toMatch(/\nmain +5 +1 /);
  });

  test("the emulator finds it in the PTX", async () => {
    const { status, stdout } = await tilewright(
      ...["simulate", "race.ts", "--device", "emulator", "--schedules", "1"],
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^TW8\d+: /);
    for (const text of ["buffer.store", "buffer.load"])
      expect(stdout).toContain(`race.ts:${lineOf(raceLines, text)}:`);
    expect(stdout).toContain("found on the emulator, seed 1");
  });

  test("without checks a race goes unseen", async () => {
    const ended = await tilewright("simulate", "race.ts", "--schedules", "0", "--no-checks");
    expect(ended.stdout).not.toContain("TW3001");
  });
});

describe("emulate", () => {
  const file = join(repositoryRoot, "examples/ptx/block-sum.ptx");
  const launch = ["--grid", "2", "--block", "256", "--arg", "x=f32[500]:random"];
  const rest = ["--arg", "sums=f32[2]", "--arg", "500"];

  test("runs an entry, and writes what it computes", async () => {
    const ran = ["emulate", file, "--entry", "block_sum", ...launch, ...rest];
    expect(await json(...ran, "--out", "sums")).toMatchObject({
      entry: "block_sum",
      clean: true,
      outputs: [{ name: "sums", shape: [2], unwrittenBytes: 0 }],
    });
    expect(readFileSync(join(user, "sums/sums.bin"))).toHaveLength(8);
  });

  test("fails with status 1 where something is found", async () => {
    const ran = ["emulate", file, "--entry", "block_sum_race", ...launch, ...rest];
    const { status, stdout } = await tilewright(...ran);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^TW8014: .*\n {2}at block-sum\.cu:\d+:\d+, .*block-sum\.ptx:\d+:1\n/);
    expect(await json(...ran)).toMatchObject({ clean: false, findings: [{ code: "TW8014" }] });
  });
});

describe("report", () => {
  test("tells by line what a kernel takes", async () => {
    const { status, stdout, stderr } = await tilewright("report", "scale.ts", "--svg", "scale.svg");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^double on sm_90a\n {2}registers +\S/);
    const line = lineOf(scaleLines, "store");
    expect(stdout).toMatch(
      new RegExp(`\n  ${line} +\\d+ +global load 8 B, global store 8 B +out\\.at\\(here\\)`),
    );
    expect(stdout).toMatch(/\nwrote scale\.svg\n$/);
    expect(readFileSync(join(user, "scale.svg"), "utf8")).toContain("double on sm_90a");
  });
});

describe("cache", () => {
  test("says where it is and what is in it", async () => {
    const folder = join(user, "kernels");
    expect((await command.run(["cache", "path"], folder)).stdout).toBe(`${folder}\n`);
    expect((await command.run(["cache"], folder)).stdout).toBe(
      `0 kernels, 0 bytes of 1 GiB in ${folder}\n`,
    );
    expect((await tilewright("cache")).stdout).toBe("the cache is off: TILEWRIGHT_CACHE says so\n");
  });
});

describe("layout", () => {
  const tile = ["--shape", "64x64", "--dtype", "bf16"];

  test("draws a register layout as text and as SVG", async () => {
    const parameters = ["--register", "wgmma", "--shape", "64x8", "--svg", "wgmma.svg"];
    const { status, stdout, stderr } = await tilewright("layout", ...parameters);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^wgmma \(L2 L3 L4 R1 W0 W1 \| R0 L0 L1\)\ntile 64 × 8, 4 registers/);
    expect(stdout).toMatch(/\n 63 .* 3\.31:3\ncells: warp.lane:register\nwrote wgmma\.svg\n$/);
    expect(readFileSync(join(user, "wgmma.svg"), "utf8")).toMatch(/^<svg .*\n[^]*<\/svg>\n$/);
    expect(await json("layout", "--register", "(L0 L1 R0)", "--shape", "8")).toEqual({
      register: { text: "(L0 L1)" },
      shape: [8],
      registers: 2,
      replication: 32,
    });
  });

  test("draws a tile before and after, and says how it gets there", async () => {
    const { stdout } = await tilewright(
      ...["layout", "--register", "wgmma", "--to", "wgmmaTransposed", ...tile],
    );
    expect(stdout).toMatch(/^2048 of 4096 elements change threads\n\nwgmma [^]*\nwgmmaTransposed /);
    expect(stdout).toMatch(/\nbf16: by shuffles within each warp, cost \d+\n$/);
    expect(await json("layout", "--register", "wgmma", "--to", "splat", ...tile)).toMatchObject({
      register: { name: "wgmma" },
      to: { name: "splat" },
      changed: 4096,
    });
  });

  test("draws shared memory, with the widest access that there is or the given one", async () => {
    const swizzled = ["layout", "--shared", "shared(swizzle 128)", ...tile];
    const { stdout } = await tilewright(...swizzled, "--register", "wgmma");
    expect(stdout).toContain("4 bytes a thread: 64 wavefronts, 64 at best");
    const plain = ["layout", "--shared", "shared()", ...tile, "--register", "wgmma"];
    expect(await json(...plain)).toMatchObject({
      shared: "shared()",
      access: { vectorBytes: 4, possible: true, wavefronts: 512, ideal: 64 },
    });
    expect(await json(...plain, "--vector-bytes", "16")).toMatchObject({
      access: { vectorBytes: 16, possible: false },
    });
    expect(await json(...swizzled)).not.toHaveProperty("access");
  });

  test("places the kernels of a file and draws every layout", async () => {
    const { status, stdout, stderr } = await tilewright("layout", "scale.ts", "--svg", "drawings");
    expect([status, stderr]).toEqual([0, ""]);
    const line = lineOf(scaleLines, "store");
    expect(stdout).toMatch(/^scale on sm_90a\ntiles\n/);
    expect(stdout).toMatch(new RegExp(`\n  ${line}:\\d+ +load +f32\\[256\\] +\\(R0 L0 `));
    expect(stdout).toMatch(/\nno conversions\n\nwrote drawings\/double-1\.svg: 256 in \(/);
    expect(readFileSync(join(user, "drawings/double-1.svg"), "utf8")).toContain("tile 256");
  });

  test("gives placements as data", async () => {
    const example = join(repositoryRoot, "examples/matmul.ts");
    expect(await json("layout", example, "--kernel", "matmul")).toMatchObject({
      file: example,
      target: "sm_90a",
      drawings: [],
      kernels: [
        {
          name: "matmul",
          conversions: [],
          tiles: expect.arrayContaining([
            expect.objectContaining({
              op: "wgmma",
              layout: expect.objectContaining({
                text: "(L2 L3 L4 R1 W0 W1 W2 | R0 L0 L1)",
              }) as unknown,
            }),
          ]) as unknown,
          copies: expect.arrayContaining([
            expect.objectContaining({ method: "tensor" }),
          ]) as unknown,
          memory: {
            buffers: expect.arrayContaining([
              expect.objectContaining({ name: "a_ahead", layout: "shared(swizzle 128)" }),
            ]) as unknown,
          },
        },
      ],
    });
  });

  test("a folder that cannot be made is TW5008", async () => {
    expect(await json("layout", "scale.ts", "--svg", "scale.ts/drawings")).toMatchObject({
      error: { code: "TW5008" },
    });
  });

  test("a layout that is none is a report without a place", async () => {
    const named = await startedJson("layout", "--register", "wgmna", "--shape", "64x8");
    expect(named).toMatchObject({
      error: { code: "TW6001", expected: expect.stringContaining("wgmma") as string },
    });
    const text = await startedJson("layout", "--register", "(L0 L0)", "--shape", "64x8");
    expect(text).toMatchObject({ error: { code: "TW6002" } });
    for (const document of [named, text]) expect(document).not.toHaveProperty("error.position");
  });
});

describe("the command itself", () => {
  test("prints the package's version", async () => {
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")) as {
      version: string;
    };
    expect(await start("--version")).toEqual({
      status: 0,
      stdout: `${version}\n`,
      stderr: "",
    });
  });

  test("an interrupt of tune keeps what was found, says where and how to go on", async () => {
    writeUserFile("tuned.mjs", [
      'import { tensor, dim, f32, kernel, slice } from "tilewright";',
      'import { tunable } from "tilewright/tune";',
      "const [spans, x] = [Array.from({ length: 24 }, (_, i) => 32 * (i + 1)), tensor(f32, [dim('n')])];",
      "let sent = false;",
      "export const doubled = tunable({ name: 'doubled', choices: { span: spans }, make: ({ span }) => {",
      "  const isAsked = process.listenerCount('SIGINT') > 0 && !sent;",
      "  if (isAsked) sent = process.kill(process.pid, 'SIGINT');",
      "  return kernel({ name: 'doubled', inputs: { x }, outputs: { out: x } }, ({ x, out }) => {",
      "    out.at(slice(0, span)).store(x.at(slice(0, span)).load().mul(2));",
      "  });",
      "} });",
    ]);
    const asked = ["tune", "tuned.mjs", "--case", "n=1000", "--device", "simulator"];
    const { status, stderr } = await start(...asked);
    const count = Number(/^interrupted: (\d+) choice/.exec(stderr)?.[1]);
    expect(stderr).toMatch(/ before it, kept in tuning.jsonl\nrun the same command again/);
    expect(status).toBe(130);
    const kept = readFileSync(join(user, "tuning.jsonl"), "utf8").trim().split("\n");
    expect(kept).toHaveLength(1 + count);
    expect(count).toBeLessThan(24);
  });

  test("doctor finds Node and says what will be used", async () => {
    const { status, stdout } = await command.run(["doctor"], join(folder, "cache"));
    expect(status).toBe(0);
    expect(stdout).toContain(process.version);
    expect(stdout).toMatch(/\nsimulator +ok +ran axpy in .*\nemulator +ok +ran axpy in /);
    expect(stdout).toMatch(/\nopen\(\) uses the (simulator|gpu): /);
  });

  test("doctor says that the cache cannot be written to", async () => {
    const { status, stdout } = await command.run(["doctor"], join(user, "scale.ts", "cache"));
    expect(status).toBe(1);
    expect(stdout).toMatch(/\ncache +failed +.*scale\.ts.*cannot be/);
  });

  test("a wrong command line is status 2 and a report", async () => {
    const { status, stdout, stderr } = await start("frobnicate");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("unknown command 'frobnicate'");
  });
});
