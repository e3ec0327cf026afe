/**
 * Kernels as WebAssembly give what they give on the simulator: examples, and a part of the device matrix, with guard words
 * around every array. All of the matrix: CPU_MATRIX=1 npx vitest run test/cpu-kernels.test.ts
 */
import { expect, test } from "vitest";
import { matrixCases } from "./matrix/index.ts";
import { runCaseBy } from "./matrix/case.ts";
import { f32, fromNumbers, i32, kernel, loop, tensor, toNumbers, u32 } from "../src/index.ts";
import { exampleKernels } from "./example-kernels.ts";
import { lowerToLoops } from "../src/cpu/lower/index.ts";
import { loopsText } from "../src/cpu/loops/print.ts";
import { findLoopErrors } from "../src/cpu/loops/verify.ts";
import { simplify } from "../src/lower/simplify.ts";
import { cpuResults } from "./support/cpu-cases.ts";
import { compareOnCpu } from "./support/cpu-fuzz.ts";
import { subjectOf } from "./fuzz/subjects.ts";
import { expectGolden } from "./golden.ts";

/** A prime, so that every family of cases is met. */
const stride = process.env["CPU_MATRIX"] === "1" ? 1 : 241;

/** What is refused, by a code: docs/cpu.md lists it. */
const refused = /^TW4710: \S+ cannot run on the CPU device: a cluster of blocks/;

test("cases of the device matrix agree with the simulator", async () => {
  const cases = matrixCases().filter((_, index) => index % stride === 0);
  const problems: string[] = [];
  for (const one of cases) {
    const { problem } = await runCaseBy(
      (definition, inputs) => Promise.resolve(cpuResults(definition, inputs)),
      one,
      true,
    );
    if (problem !== undefined && !refused.test(problem)) problems.push(`${one.name}: ${problem}`);
  }
  expect(problems).toEqual([]);
  expect(cases.length).toBeGreaterThan(9);
}, 600_000);

/** Seeds 1 to 20,000: CPU_FUZZ=20000 npx vitest run test/cpu-kernels.test.ts */
const fuzzed = Number(process.env["CPU_FUZZ"] ?? 12);

/** Begins a window at a size that is below 0. */
const belowZero = 384;

test("random kernels agree with the simulator", async () => {
  const problems: string[] = [];
  for (const seed of [...Array.from({ length: fuzzed }, (_, i) => i + 1), belowZero]) {
    const result = await compareOnCpu(subjectOf(seed)).catch(describe);
    if (result !== "same" && !result.startsWith("refused: TW4710"))
      problems.push(`seed ${seed}: ${result}`);
  }
  expect(problems).toEqual([]);
}, 3_600_000);

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

test("what the rounds of a loop read keeps its value while the loop changes what it began with", () => {
  const sums = kernel(
    { name: "sums", inputs: { x: tensor(f32, [1]) }, outputs: { out: tensor(f32, [8]) } },
    ({ x, out }) => {
      const wide = x.load().add(1).broadcastTo([8]);
      out.store(loop({ to: 3, carry: wide }, (_, sum) => sum.mul(2).add(wide)));
    },
  );
  const found = cpuResults(sums, { x: fromNumbers(f32, [1], [3]) });
  // ((4·2 + 4)·2 + 4)·2 + 4
  expect([...toNumbers(found["out"] ?? fromNumbers(f32, [0], []))]).toEqual(Array(8).fill(60));
});

test("what is refused has a code and the user's line", () => {
  const cluster = exampleKernels["cluster"];
  if (cluster === undefined) throw new Error("no example of a cluster");
  let found: unknown;
  try {
    lowerToLoops(simplify(cluster.kernel), { relaxed: false });
  } catch (error) {
    found = error;
  }
  expect(found).toMatchObject({ code: "TW4710" });
  expect(String(found)).toContain("examples/cluster.ts:");
});

test("rows that indices pick are read in whole vectors, and words are rotated in whole vectors", () => {
  const rows = kernel(
    {
      name: "rows",
      grid: { i: 1 },
      inputs: { x: tensor(u32, [100, 64]), places: tensor(i32, [8]) },
      outputs: { out: tensor(u32, [8, 64]) },
    },
    ({ x, places, out }) => {
      const picked = x.at(places.load()).load();
      out.store(picked.shl(7).or(picked.shr(25)));
    },
  );
  const { loops } = lowerToLoops(simplify(rows.kernel), { relaxed: false });
  expect(findLoopErrors(loops)).toEqual([]);
  const text = loopsText(loops);
  const whole = text.slice(text.indexOf("loop $again {"), text.indexOf("branch $again"));
  expect(whole).toContain("v128.load(");
  expect(whole).not.toContain("lane");
  expect(whole).not.toContain("if ");
});

test("scans, searches and sorts along any axis need nothing of the host, but of tf32 and searches of 64 bits", () => {
  const cases = matrixCases().filter(({ name }) => /^(scan|arg|sort)/.test(name));
  const onHost = cases.filter(({ prepare }) => {
    const { kernel: own } = prepare().definition;
    return lowerToLoops(simplify(own), { relaxed: false }).kernel.hostCalls.length > 0;
  });
  expect(cases.length).toBeGreaterThan(100);
  expect(
    onHost.map(({ name }) => name).filter((name) => !/^scan .* tf32|^arg\w+ .*64/.test(name)),
  ).toEqual([]);
});

test("loops of examples", () => {
  for (const example of ["axpy", "softmax", "column-sum"]) {
    const definition = exampleKernels[example];
    if (definition === undefined) throw new Error(`no example ${example}`);
    const { loops } = lowerToLoops(simplify(definition.kernel), { relaxed: false });
    expect(findLoopErrors(loops)).toEqual([]);
    expectGolden(`test/golden/cpu-loops/${example}.txt`, loopsText(loops));
  }
});
