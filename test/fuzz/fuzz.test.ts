/** Some seconds of the fuzzer with a fixed seed, and everything that it ever found. `npm run fuzz` runs on. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Backend } from "../../src/device/backend.ts";
import { verifyKernel } from "../../src/ir/verify/index.ts";
import { printKernel } from "../../src/ir/printer.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { targets } from "../../src/targets/target.ts";
import { Campaign } from "./campaign.ts";
import corpus from "./corpus.json" with { type: "json" };
import { featuresOf } from "./coverage.ts";
import { faultOf } from "./faults/index.ts";
import { judgeFault } from "./faults/judge.ts";
import { fixtureOf, fixtureText } from "./fixtures.ts";
import { seedsOf } from "./jobs.ts";
import { programKinds } from "./programs.ts";
import { judge, lowered } from "./run.ts";
import { shrink } from "./shrink.ts";
import { takesAll } from "../support/sample.ts";
import { fuzzTargets, subjectOf } from "./subjects.ts";
import type { Subject } from "./subjects.ts";

/** Of 180 seeds the first of every kind; continuous integration runs the fuzzer itself, from the seed after these on. */
function takenSeeds(): readonly number[] {
  const times = new Map<string, number>();
  return [...seedsOf({ first: 1, count: 180 })].filter((seed) => {
    const { kind } = subjectOf(seed);
    const before = times.get(kind) ?? 0;
    times.set(kind, before + 1);
    return takesAll || before < 1;
  });
}

/** Faults of every maker; continuous integration plants those of other seeds. */
const plantedSeeds = seedsOf({ first: 1, count: takesAll ? 200 : 16 });

const folder = fileURLToPath(new URL("fixtures", import.meta.url));

test(
  "random programs give the same on the simulator and on the emulator",
  { timeout: 600_000 },
  async () => {
    const seeds = takenSeeds();
    const tally = await new Campaign().run(seeds.values());
    const { failures, byKind, byTarget, placedAtRandom } = tally;
    expect(failures.map(({ seed, why }) => `seed ${seed}: ${why}`)).toEqual([]);
    expect(placedAtRandom).toBeGreaterThan(seeds.length / 3);
    for (const target of fuzzTargets) expect(byTarget[target], target).toBeGreaterThan(0);
    for (const kind of ["values", ...programKinds]) expect(byKind[kind], kind).toBeGreaterThan(0);
  },
);

test("the corpus has programs of every kind, and the ops that generators make", () => {
  const subjects = corpus.map((seed) => subjectOf(seed));
  const kinds = new Set<string>(subjects.map(({ kind }) => kind));
  expect(["values", ...programKinds].filter((kind) => !kinds.has(kind))).toEqual([]);
  const made = (all: readonly Subject[]): ReadonlySet<string> =>
    new Set(
      all.flatMap(({ kernel }) =>
        [...featuresOf(kernel, undefined)].map((feature) => feature.split(" ")[0] ?? ""),
      ),
    );
  const known = made(subjects);
  const others = made(Array.from({ length: 60 }, (_, seed) => subjectOf(1000 + seed)));
  expect([...others].filter((op) => !known.has(op))).toEqual([]);
});

test("planted faults are told, and programs without them are clean", async () => {
  const tally = await new Campaign({ onlyFaults: true }).run(plantedSeeds);
  expect(tally.failures.map(({ seed, why }) => `seed ${seed}: ${why}`)).toEqual([]);
  expect(tally.refused).toEqual({});
});

test("a fault that is not told is a failure", async () => {
  const faulty = faultOf(1);
  expect(await judgeFault({ ...faulty, told: ["TW3022"] }, 1)).toMatchObject({
    why: expect.stringMatching(/which is to say TW3022: TW3/) as string,
  });
  const clean = { ...faulty, wrong: () => faulty.right };
  expect(await judgeFault(clean, 1)).toMatchObject({
    why: expect.stringMatching(/says nothing$/) as string,
  });
});

test("a subject's placement is another than the cheapest", () => {
  const subjects = Array.from({ length: 12 }, (_, seed) => subjectOf(11 + seed));
  const different = subjects.filter((subject) => {
    const texts = [subject.placement ?? 1, undefined].map((placement) =>
      printKernel(lowered({ ...subject, placement }).placed),
    );
    return texts[0] !== texts[1];
  });
  expect(different.length).toBeGreaterThan(8);
});

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

test("a simulator that gives other elements than were computed is told apart", async () => {
  const subject = subjectOf(1);
  const { expected = expect.fail() } = subject;
  expect(await judge(subject)).toEqual({ kind: "same" });
  expect(await judge({ ...subject, expected: `${expected} 1` })).toMatchObject({
    why: expect.stringMatching(/^the simulator gives other elements/) as string,
  });
});

test("fixtures are read as they were written", () => {
  for (let seed = 0; seed < 60; seed++) {
    const text = fixtureText(subjectOf(seed));
    expect(fixtureText(fixtureOf(text)), `seed ${seed}`).toBe(text);
  }
});

describe("a device beside the emulator", () => {
  /** Stands for a GPU, and counts how often it was opened; a fault makes all results 0, or fails. */
  function device({ fault }: { readonly fault?: "elements" | "error" } = {}) {
    let opened: EmulatorBackend | undefined;
    const gpu = {
      times: 0,
      runs: () => true,
      async backend(): Promise<Backend> {
        if (opened === undefined) gpu.times += 1;
        opened ??= new EmulatorBackend({ target: targets.sm_90a, threads: 1 });
        const { download } = opened;
        if (fault === "error") opened.run = () => Promise.reject(new Error("the device is lost"));
        if (fault === "elements")
          opened.download = async (dtype, shape, allocation) => {
            const array = await download.call(opened, dtype, shape, allocation);
            array.data.fill(0 as never);
            return array as never;
          };
        return opened as Backend;
      },
      close(): void {
        opened?.dispose();
        opened = undefined;
      },
    };
    return gpu;
  }

  const own = Array.from({ length: 4 }, (_, seed) => subjectOf(seed, ["sm_90a"]));

  test("runs the same code to the same elements", async () => {
    const gpu = device();
    for (const subject of own)
      expect(await judge(subject, { gpu }), `seed ${subject.seed}`).toEqual({ kind: "same" });
    expect(gpu.times).toBe(1);
  });

  test("is told apart where its elements differ, and opened again where it fails", async () => {
    const [subject = expect.fail()] = own;
    const wrong = await judge(subject, { gpu: device({ fault: "elements" }) });
    expect(wrong).toMatchObject({
      kind: "different",
      why: expect.stringMatching(/^the GPU gives other elements/) as string,
    });
    const gpu = device({ fault: "error" });
    for (let time = 1; time < 3; time++) {
      expect(await judge(subject, { gpu })).toMatchObject({
        why: expect.stringMatching(/^the GPU: Error: the device is lost/) as string,
      });
      expect(gpu.times).toBe(time);
    }
  });
});
