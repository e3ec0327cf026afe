/** What `open` takes, and what it says to everything else. */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { i32 } from "../formats/dtype.ts";
import { tensor, constant, kernel, whileLoop } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { targets } from "../targets/target.ts";
import { open } from "./open.ts";

async function reportOf(options: object): Promise<TilewrightError> {
  try {
    await open("simulator", options);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was reported");
}

interface Refused {
  readonly options: object;
  readonly code: string;
  readonly summary: string;
  readonly expected?: string;
}

const refused: readonly Refused[] = [
  {
    options: { sede: 3 },
    code: "TW4015",
    summary: "unknown option sede of open; did you mean seed?",
  },
  {
    options: { schedule: "rnadom" },
    code: "TW4016",
    summary: 'schedule of open cannot be the text "rnadom"',
    expected: '"fixed", "random", "adversarial", "timed"',
  },
  {
    options: { seed: 1.5 },
    code: "TW4016",
    summary: "seed of open cannot be 1.5",
    expected: "a whole number",
  },
  { options: { seed: "1" }, code: "TW4016", summary: 'seed of open cannot be the text "1"' },
  {
    options: { checks: "no" },
    code: "TW4016",
    summary: 'checks of open cannot be the text "no"',
    expected: "true or false",
  },
  {
    options: { onPrint: true },
    code: "TW4016",
    summary: "onPrint of open cannot be true",
    expected: "a function",
  },
  {
    options: { onLeak: "log" },
    code: "TW4016",
    summary: 'onLeak of open cannot be the text "log"',
  },
  { options: { onCompile: 1 }, code: "TW4016", summary: "onCompile of open cannot be 1" },
  {
    options: { target: "sm_70" },
    code: "TW4016",
    summary: "there is no target sm_70",
    expected:
      "sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a, or a description of a target",
  },
  {
    options: { target: { name: "sm_70" } },
    code: "TW4016",
    summary: "target cannot be an object",
  },
];

test.each(refused)("$summary", async ({ options, code, summary, expected }) => {
  const report = await reportOf(options);
  expect([report.code, report.summary]).toEqual([code, summary]);
  expect(report.expected).toContain(expected ?? "");
  expect(report.position?.file).toMatch(/open\.test\.ts$/);
});

test("the emulator alone takes a number of threads, from 1 up", async () => {
  (await open("emulator", { threads: 1 })).dispose();
  for (const threads of [0, 1.5, Number.NaN])
    await expect(open("emulator", { threads })).rejects.toMatchObject({
      code: "TW4016",
      summary: `threads of open cannot be ${threads}`,
      expected: "a whole number from 1",
    });
  await expect(open("simulator", { threads: 2 })).rejects.toMatchObject({ code: "TW4015" });
});

describe("the GPU", () => {
  test("takes its own options and no other device's", async () => {
    await expect(open("gpu", { seed: 3 })).rejects.toMatchObject({
      code: "TW4015",
      summary: 'unknown option seed of open("gpu")',
      expected:
        "{ onPrint, onLeak, onCompile, onNotes, onProfile, memoryLimit, tuning, requireTuned, gpu }",
    });
    await expect(open("gpu", { gpu: -1 })).rejects.toMatchObject({ code: "TW4016" });
    await expect(open("simulator", { gpu: 0 })).rejects.toMatchObject({ code: "TW4015" });
  });

  const hasDriver = existsSync("/proc/driver/nvidia/version");

  test.skipIf(hasDriver)("is refused where there is no driver, at the user's line", async () => {
    const report: unknown = await open("gpu").catch((error: unknown) => error);
    expect(report).toBeInstanceOf(TilewrightError);
    expect(report).toMatchObject({ code: "TW4501" });
    expect((report as TilewrightError).position?.file).toMatch(/open\.test\.ts$/);
  });

  test.skipIf(hasDriver)("is what open() wants, and the simulator stands in for it", async () => {
    const device = await open(undefined, { seed: 3, gpu: 0 });
    expect(device.name).toBe("simulator");
    device.dispose();
  });
});

test("a target is given as such, changed, or by its name", async () => {
  const small = { ...targets.sm_90a, name: "small", processors: 1 };
  for (const [target, wanted] of [
    [undefined, targets.sm_90a],
    [targets.sm_80, targets.sm_80],
    ["sm_80", targets.sm_80],
    [small, small],
  ] as const) {
    const device = await open("simulator", target === undefined ? {} : { target });
    expect(device.target).toBe(wanted);
    device.dispose();
  }
});

test("limits of open hold for every launch that has none of its own", async () => {
  const endless = kernel({ name: "endless", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
    out.at(0).store(
      whileLoop(
        constant(i32, 1),
        (value) => value.ne(0),
        (value) => value.mul(3),
      ),
    );
  });
  const device = await open("simulator", { limits: { stepLimit: 1000 } });
  await expect(device.run(endless, {})).rejects.toMatchObject({ code: "TW3022" });
  device.dispose();
  await expect(open("simulator", { limits: { steps: 5 } as never })).rejects.toMatchObject({
    code: "TW4015",
  });
  await expect(open("emulator", { limits: { stepLimit: -1 } })).rejects.toMatchObject({
    code: "TW4016",
  });
});
