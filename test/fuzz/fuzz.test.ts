/** Half a minute of the fuzzer with a fixed seed, and everything that it ever found. `npm run fuzz` runs on. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { verifyKernel } from "../../src/ir/verify/index.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { campaign } from "./campaign.ts";
import { fixtureOf, fixtureText } from "./fixtures.ts";
import { programKinds } from "./programs.ts";
import { judge } from "./run.ts";
import { shrink } from "./shrink.ts";
import { subjectOf } from "./subjects.ts";

const folder = fileURLToPath(new URL("fixtures", import.meta.url));

test(
  "random programs give the same on the simulator and on the emulator",
  { timeout: 300_000 },
  async () => {
    const { failures, byKind, kernels } = await campaign({
      firstSeed: 1,
      stride: 1,
      mostKernels: 120,
    });
    expect(failures.map(({ seed, why }) => `seed ${seed}: ${why}`)).toEqual([]);
    expect(kernels).toBe(120);
    for (const kind of ["values", ...programKinds]) expect(byKind[kind], kind).toBeGreaterThan(0);
  },
);

describe("what was found stays mended", () => {
  test.each(readdirSync(folder))("%s", async (file) => {
    const subject = fixtureOf(readFileSync(`${folder}/${file}`, "utf8"));
    expect(await judge(subject)).toEqual({ kind: "same" });
  });
});

test("a failure is shrunk to little more than what fails", async () => {
  const subject = subjectOf(3);
  const wanted = /reduce|binary|compare/;
  expect(printKernel(subject.kernel)).toMatch(wanted);
  const small = await shrink(subject.kernel, async (kernel) => wanted.test(printKernel(kernel)));
  verifyKernel(small);
  expect(printKernel(small)).toMatch(wanted);
  expect(printKernel(small).length).toBeLessThan(printKernel(subject.kernel).length / 2);
});

test("fixtures are read as they were written", () => {
  for (let seed = 0; seed < 20; seed++) {
    const text = fixtureText(subjectOf(seed));
    expect(fixtureText(fixtureOf(text)), `seed ${seed}`).toBe(text);
  }
});
