/** The benchmark beside peers, with a peer that keeps to the protocol and does nothing, on the simulator. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bf16, open } from "tilewright";
import type { Device } from "tilewright";
import { setsOf } from "../bench/gpu/case.ts";
import { matmulCase } from "../bench/gpu/cases/matmul.ts";
import { raggedCase } from "../bench/gpu/cases/ragged.ts";
import { formatCases } from "../bench/gpu/cases/product-formats.ts";
import { checkElements, halfError } from "../bench/gpu/cases/product-sample.ts";
import { compare } from "../bench/gpu/compare.ts";
import type { Comparison } from "../bench/gpu/compare.ts";
import {
  comparisonChart,
  comparisonMarkdown,
  comparisonText,
  families,
  methodText,
  summary,
} from "../bench/gpu/comparisons.ts";
import { addComparisons } from "../bench/gpu/figures.ts";
import { parts } from "../bench/gpu/parts.ts";
import { Peer, compiledPeers, startPeers } from "../bench/gpu/peers/peer.ts";

/** Answers as `serve.py` does; its lanes take the milliseconds that they are given, in turn. */
const fakePeer = `
const { createInterface } = require("node:readline");
const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\\n");
const asked = [];
say({ peer: "Fake 1", gpu: "nothing" });
createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line);
  asked.push(request.do);
  if (request.do === "prepare" && request.task.dtype === "f16") return say({ error: "ValueError: no f16" });
  if (request.do === "prepare")
    return say({ lanes: [{ name: "slow", how: "by hand" }, { name: "quick", how: request.launches + " launches" }], refused: ["none: " + request.task.op] });
  if (request.do === "sample") return say({ milliseconds: [1e9, 1e-9][request.lane] });
  say({});
});
`;
const fake = { name: "fake", command: [process.execPath, "-e", fakePeer] };
const quick = { rounds: 6, launches: 2, rest: 0 };
const small = { dtype: "bf16", m: 32, n: 32, k: 64, b: "kn" } as const;

describe("a comparison", () => {
  let device: Device;
  let peer: Peer;
  beforeEach(async () => {
    device = await open("simulator");
    peer = await Peer.start(fake);
  });
  afterEach(() => {
    peer.stop();
    expect(device.leaks).toEqual([]);
    device.dispose();
  });

  test("has ours, and peers from the fastest to the slowest", async () => {
    expect(peer.description).toBe("Fake 1 on nothing");
    const found = await compare(device, matmulCase(small), [peer], quick);
    expect(found).toMatchObject({
      name: "matmul bf16 32x32x64",
      work: 2 * 32 * 32 * 64,
      rounds: 6,
    });
    expect(found.peers.map(({ name, how }) => [name, how])).toEqual([
      ["quick", "2 launches"],
      ["slow", "by hand"],
    ]);
    expect(found.refused).toEqual(["none: matmul"]);
    const [fast, slow] = found.peers;
    expect(fast?.ratio).toBeLessThan(1);
    expect(slow?.ratio).toBeGreaterThan(1);
    expect(slow?.low).toBeLessThanOrEqual(slow?.ratio ?? NaN);
    expect(methodText(found)).toContain("not measured: none: matmul");
  });

  test("a peer that cannot do the work is told of, and ours is measured", async () => {
    const columns = matmulCase({ ...small, dtype: "f16", b: "nk" });
    const found = await compare(device, columns, [peer], quick);
    expect(found.peers).toEqual([]);
    expect(found.refused).toEqual(["fake: ValueError: no f16"]);
    expect(found.ours.milliseconds).toBeGreaterThan(0);
    expect(summary([found])).toBe("No peer was measured.");
  });

  test("rows in groups are told as a part of the dense product and of the roofline", async () => {
    const task = { m: 64, n: 32, k: 32, groups: 4, halving: true };
    const found = await compare(device, raggedCase(task), [], quick);
    expect(found.peers).toEqual([]);
    expect(found.measures?.map(({ name }) => name)).toEqual(["the dense product"]);
    // Rows and results of bf16, and four matrices, over the time.
    const bytes = 2 * 64 * 64 + 4 * 32 * 32 * 2;
    const { terabytes = NaN } = found.memory ?? {};
    expect(terabytes * found.ours.milliseconds).toBeCloseTo(bytes / 1e9, 9);
    expect(methodText(found)).toMatch(/of the rate of the dense product, .* TFLOP\/s: \d/);
    expect(methodText(found)).toMatch(/memory: .* TB\/s; .*% of the roofline/);
  });

  test("a wrong result is never timed", async () => {
    const [a, b, out] = [
      [1, 64],
      [64, 1],
      [1, 1],
    ].map((shape) => device.allocate(bf16, shape));
    if (a === undefined || b === undefined || out === undefined) throw new Error("three arrays");
    await device.fill(a, 1);
    await device.fill(b, 2);
    const sizes = { m: 1, n: 1, k: 64, b: "kn" } as const;
    await device.fill(out, 127);
    const arrays = { a, b, out };
    const checked = checkElements(device, arrays, sizes, halfError);
    await expect(checked).rejects.toThrow("is 127, not 128");
    await device.fill(out, 128);
    await checkElements(device, arrays, sizes, halfError);
    for (const each of [a, b, out]) each.dispose();
  });
});

test("products in every format are right in what they are timed with", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  for (const { name, prepare } of formatCases(32, 32)) {
    const prepared = await prepare(device, 2);
    await expect(prepared.check(), name).resolves.toBeUndefined();
    prepared.dispose();
  }
  device.dispose();
});

test("a peer that does not start is left out, with the reason", async () => {
  const said: string[] = [];
  const none = {
    name: "broken",
    command: [process.execPath, "-e", "throw new Error('no GPU here')"],
  };
  const missing = { name: "missing", command: ["/no/such/program"] };
  expect(await startPeers([none, missing], (line) => said.push(line))).toEqual([]);
  expect(said[0]).toContain("peer broken is not here");
  expect(said[1]).toContain("peer missing is not here");
});

test("peers compile for all tasks before any of them; one that cannot is left out, with the reason", async () => {
  const compiler = (answer: string): string =>
    fakePeer.replace(
      "asked.push(request.do);",
      `if (request.do === "compile" && request.tasks.length === 2) return ${answer};`,
    );
  const commands = [
    { name: "able", command: [process.execPath, "-e", compiler("say({})")] },
    { name: "ended", command: [process.execPath, "-e", compiler("process.exit()")] },
    { name: "failing", command: [process.execPath, "-e", compiler("say({ error: 'no room' })")] },
  ];
  const said: string[] = [];
  const tell = (line: string): void => void said.push(line);
  const { task } = matmulCase(small);
  const started = await startPeers(commands, () => undefined);
  const found = await compiledPeers(started, [task, task], tell);
  expect(found.map(({ name }) => name)).toEqual(["able"]);
  expect(said).toEqual([
    expect.stringMatching(/^peers compiled in \d+ s$/),
    "peer ended is left out: Error: it ended",
    "peer failing is left out: Error: failing: no room",
  ]);
  for (const peer of found) peer.stop();
});

const comparison = (name: string, ratio: number): Comparison => ({
  name,
  date: "2026-01-31",
  device: "a GPU",
  unit: "TFLOP/s",
  work: 2e9,
  rounds: 15,
  launches: 50,
  sets: 2,
  ours: { name: "ours", how: "graph", milliseconds: 1, spread: 0.01 },
  peers: [
    {
      name: "cuBLAS",
      how: "graph",
      milliseconds: ratio,
      spread: 0.01,
      ratio,
      low: ratio - 0.01,
      high: ratio + 0.01,
    },
  ],
  refused: [],
});

describe("comparisons", () => {
  const two = [comparison("matmul bf16 4x4x4", 1.21), comparison("matmul bf16 8x8x8", 1)];

  test("tell the worst beside the best", () => {
    expect(summary(two)).toBe(
      "Beside the best peer of each: worst 1.000 (matmul bf16 8x8x8), best 1.210 (matmul bf16 4x4x4), geometric mean 1.100 of 2.",
    );
    expect(comparisonText(two)).toContain("1.000 (0.990 to 1.010), even");
    expect(comparisonMarkdown(two)).toContain(
      "| matmul bf16 4x4x4 | 1.000 ms | 2 TFLOP/s | cuBLAS 2 TFLOP/s |",
    );
    expect(comparisonChart(two, "a GPU")).toContain("best peer</text>");
  });

  test("families are what is in front of the sizes", () => {
    const more = [
      ...two,
      comparison("matmul bf16 8x8x8 (b by columns)", 1),
      comparison("copy f32 2^27", 1),
    ];
    expect([...families(more).keys()]).toEqual([
      "matmul bf16",
      "matmul bf16, b by columns",
      "copy f32",
    ]);
  });

  test("a file keeps what else it holds, and one comparison of a name", () => {
    const folder = mkdtempSync(join(tmpdir(), "comparisons-"));
    const file = join(folder, "figures.json");
    writeFileSync(file, '{"machine":"a machine"}');
    addComparisons(file, two);
    addComparisons(file, [comparison("matmul bf16 8x8x8", 2)]);
    const read = JSON.parse(readFileSync(file, "utf8")) as { comparisons: Comparison[] };
    expect(read).toMatchObject({ machine: "a machine" });
    expect(read.comparisons.map(({ peers: [best] }) => best?.ratio)).toEqual([1.21, 2]);
    rmSync(folder, { recursive: true });
  });
});

test("every part has work, and sets that no cache holds", () => {
  for (const cases of parts.values()) expect(cases.length).toBeGreaterThan(0);
  const cases = [...parts.values()].flat();
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  for (const one of cases) {
    const sets = setsOf(one, 50);
    expect(sets).toBeGreaterThanOrEqual(2);
    expect(sets * one.setBytes > 100e6 || sets === 50).toBe(true);
  }
});
