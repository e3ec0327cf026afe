import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { targets } from "../../targets/target.ts";
import { parseArgument } from "../launch-arguments.ts";
import { Output } from "../output.ts";
import { emulateCommand } from "./emulate.ts";
import type { EmulateSettings } from "./emulate.ts";

const folder = mkdtempSync(join(tmpdir(), "tilewright-emulate-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function repositoryFile(path: string): string {
  return fileURLToPath(new URL(`../../../${path}`, import.meta.url));
}

const blockSum = repositoryFile("examples/ptx/block-sum.ptx");
const tritonAdd = repositoryFile("test/fixtures/ptx/triton/add.ptx");

interface Given extends Partial<Omit<EmulateSettings, "arguments">> {
  readonly arguments?: readonly string[];
}

function run(given: Given, json = false): { readonly status: number; readonly text: string } {
  let text = "";
  const stream = { write: (part: string) => (text += part) };
  const output = new Output({ stdout: stream, stderr: stream, json, environment: {} });
  const status = emulateCommand(
    {
      file: blockSum,
      entry: undefined,
      grid: undefined,
      block: undefined,
      cluster: undefined,
      shared: 0,
      seed: 1,
      checks: true,
      target: undefined,
      print: undefined,
      out: undefined,
      ...given,
      arguments: (given.arguments ?? []).flatMap((each) => parseArgument(each)),
    },
    output,
  );
  return { status, text };
}

function document(given: Given): unknown {
  return JSON.parse(run(given, true).text);
}

function failure(given: Given): TilewrightError {
  try {
    run(given);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const sum: Given = {
  entry: "block_sum",
  grid: [2],
  block: [256],
  arguments: ["x=f32[500]:random", "sums=f32[2]", "500"],
};

describe("a file alone", () => {
  test("lists entries with parameters and a launch to start from", () => {
    const { status, text } = run({});
    expect(status).toBe(0);
    expect(text).toContain("PTX 9.0 for sm_90");
    expect(text).toMatch(/block_sum_race_param_2 +\.u32 +4 +1024/);
    expect(text).toContain(
      '--entry block_sum --grid 1 --block 128 --arg "f32[1024]:random" --arg "f32[1024]:random" --arg 1024\n',
    );
  });

  test("says what entries require", () => {
    const { text } = run({ file: tritonAdd });
    expect(text).toContain("blocks of 128 threads");
    expect(text).toContain("--block 128");
    expect(run({ file: repositoryFile("test/fixtures/ptx/nvcc/cluster.ptx") }).text).toContain(
      "clusters of 4 blocks",
    );
  });

  test("as data, of one entry", () => {
    expect(document({ entry: "block_sum" })).toMatchObject({
      version: "9.0",
      target: "sm_90",
      entries: [{ name: "block_sum", parameters: [{ type: "u64" }, {}, { bytes: 4 }] }],
    });
  });

  test.each([
    ["TW5003", { file: "missing.ptx" }],
    ["TW8003", { entry: "block_sums" }],
    ["TW7102", { file: repositoryFile("examples/ptx/block-sum.cu") }],
  ] as const)("%s", (code, given) => {
    expect(failure(given).code).toBe(code);
  });
});

test("a folder is said to be one", () => {
  const settings = { file: ".", entry: undefined, grid: undefined, block: undefined };
  const run = () => emulateCommand({ ...settings, arguments: [] } as never, {} as never);
  expect(run).toThrow(/TW5003: \. is a folder/);
});

describe("a launch", () => {
  test("prints what the kernel wrote, and what was executed", () => {
    const x = join(folder, "x.bin");
    const values = Float32Array.from({ length: 500 }, (_, index) => index % 3);
    writeFileSync(x, new Uint8Array(values.buffer));
    const { status, text } = run({ ...sum, arguments: [`f32[500]:${x}`, "sums=f32[2]", "500"] });
    expect(status).toBe(0);
    const sums = [values.subarray(0, 256), values.subarray(256)].map((part) =>
      part.reduce((total, value) => total + value, 0),
    );
    expect(text).toContain("block_sum on sm_90, 2 blocks of 256 threads, seed 1: no findings\n");
    expect(text).toMatch(/\d+ thread instructions, \d+ warp instructions, \d+ ms\n/);
    expect(text).toContain(`sums f32[2]\n[${sums.join(", ")}]`);
    expect(text).not.toContain("block_sum_param_0 f32");
  });

  test("random arrays follow from the seed", () => {
    const first = document(sum);
    expect(document(sum)).toEqual(first);
    expect(document({ ...sum, seed: 2 })).not.toEqual(first);
  });

  test("a race is a finding at its lines, in the source and in the PTX", () => {
    const { status, text } = run({ ...sum, entry: "block_sum_race" });
    expect(status).toBe(1);
    expect(text).toMatch(/TW8014: .*\n {2}at block-sum\.cu:2\d:\d, \/.*block-sum\.ptx:\d+:1\n/);
    expect(text).toMatch(/seed 1: findings: \d\n/);
    expect(run({ ...sum, entry: "block_sum_race", checks: false }).status).toBe(0);
  });

  test("what stops a kernel is a finding, and memory is shown as it was then", () => {
    const given = { ...sum, arguments: ["x=f32[400]:random", "sums=f32[2]", "500"] };
    const { status, text } = run(given);
    expect(status).toBe(1);
    expect(text).toContain("TW8010: the address of ld.global.f32 is outside of memory");
    expect(text).toMatch(/found: .*, element 4\d\d of x, which has 400: f32\[400\]/);
    expect(text).toMatch(/stopped after \d+ ms/);
    expect(text).toContain("4 of its 8 bytes nothing has written");
    expect(document(given)).toMatchObject({
      clean: false,
      counters: null,
      findings: [{ code: "TW8010" }],
      outputs: [{ name: "sums", dtype: "f32", shape: [2], unwrittenBytes: 4 }],
    });
  });

  test("a kernel of Triton, with the lanes it requires, null pointers and changed inputs", () => {
    const given = {
      file: tritonAdd,
      grid: [2],
      arguments: ["f32[300]:zeros", "f32[300]:random", "out=f32[300]:zeros", "300", "null", "null"],
      print: 2,
    } as const;
    const { status, text } = run(given);
    expect(status).toBe(0);
    expect(text).toContain("add_kernel on sm_90a, 2 blocks of 128 threads");
    expect(text).toMatch(/^out f32\[300\]\n[-\d.e]+, [-\d.e]+$/m);
    expect(text).not.toContain("add_kernel_param_0 f32");
  });

  test("a tensor map of an array", () => {
    const { status, text } = run({
      file: repositoryFile("test/fixtures/ptx/nvcc/tensor-map.ptx"),
      block: [64],
      arguments: ["map:64x32,swizzle=128:u16[40,72]:random", "out=u16[32,64]", "24", "-3"],
    });
    expect(text).toContain("out u16[32, 64]");
    expect(status).toBe(0);
  });

  test("outputs are written to files", () => {
    const out = join(folder, "results");
    const { text } = run({ ...sum, out });
    expect(text).toContain(`wrote ${join(out, "sums.bin")}`);
    expect(readFileSync(join(out, "sums.bin"))).toHaveLength(8);
  });

  test.each([
    ["TW8003", { arguments: ["f32[4]"], entry: "block_sum" }],
    ["TW8003", { ...sum, arguments: ["f32[4]"] }],
    ["TW8003", { ...sum, block: [2048] }],
    ["TW8003", { ...sum, shared: targets.sm_90a.sharedMemoryPerBlock }],
    ["TW8004", { ...sum, arguments: ["f32[4]", "f32[4]", "0.5"] }],
    ["TW5011", { ...sum, arguments: ["f32[4]:missing.bin"] }],
    ["TW5011", { ...sum, arguments: [`f32[4]:${blockSum}`] }],
    ["TW5011", { ...sum, arguments: ["bytes:missing.bin"] }],
  ] as const)("%s", (code, given) => {
    expect(failure(given).code).toBe(code);
  });

  test("of another target holds that one's limits", () => {
    const shared = targets.sm_80.sharedMemoryPerBlock;
    expect(run({ ...sum, shared }).status).toBe(0);
    expect(failure({ ...sum, shared, target: targets.sm_80 }).summary).toContain("sm_80");
  });
});

test("what lanes print comes first", () => {
  const heap: Given = {
    file: repositoryFile("test/fixtures/ptx/nvcc/device-heap.ptx"),
    grid: [1],
    block: [32],
    arguments: ["lengths=i32[32]:zeros", "sums=i32[32]"],
  };
  expect(run(heap).text).toMatch(/^lane 7: 0, 12\.50%\n/);
  expect(document(heap)).toMatchObject({ printed: "lane 7: 0, 12.50%\n", clean: true });
});

test("a launch that does not end is stopped by its limits", () => {
  const folder = mkdtempSync(join(tmpdir(), "endless-"));
  try {
    const file = join(folder, "endless.ptx");
    writeFileSync(
      file,
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry e() { .reg .b32 %r<1>; mov.b32 %r0, 0; L: add.u32 %r0, %r0, 1; bra L; }\n",
    );
    const given = { file, block: [32] as const, entry: "e" };
    for (const limit of [{ stepLimit: 1000 }, { timeLimit: 20 }])
      expect(failure({ ...given, ...limit }).code).toBe("TW3022");
  } finally {
    rmSync(folder, { recursive: true });
  }
});
