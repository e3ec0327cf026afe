/** The tuner on the simulator, which plays a GPU: it has a name, and times that are the host's. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Device } from "../device/device.ts";
import { operation } from "../device/operation.ts";
import { TuningTable } from "../device/tuning/table.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { matmul } from "../kernels/index.ts";
import { tensor, cdiv, dim, full, kernel, scalar, slice } from "../lang/index.ts";
import { SimulatorBackend } from "../runtime/simulator-backend.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { bf16 } from "../formats/dtype.ts";
import { tunable } from "./tunable.ts";
import { tune } from "./tune.ts";

class PlayedGpu extends SimulatorBackend {
  readonly board = { name: "NVIDIA H200", driver: "CUDA 13.0" };
}

const n = dim("n");
const scaled = (span: number, factor: number) =>
  kernel(
    {
      name: `scaled_${span}`,
      grid: { i: cdiv(n, span) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(span), span);
      out.at(here).store(x.at(here).load().mul(factor));
    },
  );
const mine = (spans: readonly number[], wrong?: number) =>
  tunable({
    name: "scaled",
    choices: { span: spans },
    make: ({ span }) => scaled(span, span === wrong ? 3.5 : 3),
  });

async function codeOf(act: () => unknown): Promise<string> {
  try {
    await act();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

const cases = [{ n: 512 }];
const quick = { rounds: 6, launches: 2 };
const sum = (text: string) => text.trim().split("\n");

describe("on a GPU", () => {
  let device: Device;
  let folder: string;
  let file: string;
  beforeEach(() => {
    device = new Device(new PlayedGpu({ checks: false }));
    folder = mkdtempSync(join(tmpdir(), "tuning-"));
    file = join(folder, "tuning.jsonl");
  });
  afterEach(() => {
    expect(device.leaks).toEqual([]);
    device.dispose();
    rmSync(folder, { recursive: true });
  });

  test("choices are measured once, and a new one alone afterwards", async () => {
    const first = await tune(device, mine([128, 256]), {
      cases,
      file,
      ...quick,
    });
    expect(first.cases[0]).toMatchObject({
      fresh: 2,
      left: 0,
      modelled: false,
    });
    expect(first.best()).toBeDefined();
    expect(first.table()).toContain("on NVIDIA H200: best");
    const before = readFileSync(file, "utf8");
    expect(sum(before)).toHaveLength(3);
    const again = await tune(device, mine([128, 256]), {
      cases,
      file,
      ...quick,
    });
    expect(again.cases[0]).toMatchObject({ fresh: 0 });
    expect(readFileSync(file, "utf8")).toBe(before);
    const more = await tune(device, mine([128, 256, 512]), {
      cases,
      file,
      ...quick,
    });
    expect(more.cases[0]).toMatchObject({ fresh: 1 });
    const after = sum(readFileSync(file, "utf8"));
    expect(after).toHaveLength(4);
    for (const line of sum(before)) expect(after).toContain(line);
  });

  test("what was measured is what a device then uses, and says so", async () => {
    const operation = mine([128, 256]);
    const report = await tune(device, operation, { cases, file, ...quick });
    const measurements = TuningTable.parse(readFileSync(file, "utf8"), file);
    const tuned = new Device(new PlayedGpu({ checks: false }), {
      measurements,
      requireTuned: true,
    });
    const plan = operation.plan({ n: 512 }, tuned);
    expect(plan).toMatchObject({
      source: "tuned",
      configuration: report.best(),
    });
    expect(operation.plan({ n: 512 })).toMatchObject({ source: "heuristic" });
    expect(await codeOf(() => operation.plan({ n: 100 }, tuned))).toBe("TW9814");
    const x = fromNumbers(f32, [512], new Float32Array(512).fill(2));
    const { out } = await tuned.run(operation, { x });
    expect(new Set(toNumbers(out))).toEqual(new Set([6]));
    tuned.dispose();
  });

  test("a kernel that was edited is measured anew, and its old line goes", async () => {
    await tune(device, mine([128, 256]), { cases, file, ...quick });
    const edited = tunable({
      name: "scaled",
      choices: { span: [128, 256] },
      make: ({ span }) => scaled(span, span === 256 ? 3 + 2 ** -20 : 3),
    });
    const report = await tune(device, edited, { cases, file, ...quick });
    expect(report.cases[0]).toMatchObject({ fresh: 1 });
    expect(sum(readFileSync(file, "utf8"))).toHaveLength(3);
  });

  test("a wrong choice is kept in the file with the reason, and never chosen", async () => {
    const reference = ({ x }: { readonly [name: string]: unknown }) => ({
      out: fromNumbers(
        f32,
        [512],
        toNumbers(x as HostArray).map((value) => 3 * value),
      ),
    });
    const operation = mine([128, 256], 128);
    const report = await tune(device, operation, {
      cases,
      file,
      ...quick,
      reference,
    });
    expect(report.best()).toEqual({ span: 256 });
    const wrong = report.cases[0]?.lines.at(-1);
    expect(wrong).toMatchObject({ choice: { span: 128 }, rejected: "wrong" });
    expect(report.table()).toMatch(/rejected, wrong: span=128: out differs by 0\.16/);
  });

  test("a choice that the operation trusts is the measure, not the first one that runs", async () => {
    const kernels = new Map(
      [128, 256, 512].map((span) => [span, scaled(span, span === 128 ? 3.5 : 3)]),
    );
    const first = kernels.get(128) ?? scaled(128, 3.5);
    const trusting = operation({
      name: "trusting",
      inputs: first.inputs,
      outputs: first.outputs,
      choices: {
        variant: "scaled",
        bucket: (sizes) => sizes,
        candidates: () => [...kernels.keys()].map((span) => ({ span })),
        trusted: () => ({ span: 256 }),
      },
      plan: (_sizes, _target, choice = { span: 128 }) => ({
        configuration: choice,
        source: "heuristic",
        launches: [
          {
            kernel: kernels.get(Number(choice["span"])) ?? first,
            arguments: { x: { argument: "x" }, out: { argument: "out" } },
          },
        ],
      }),
    });
    const report = await tune(device, trusting, { cases, file, ...quick });
    const rejected = report.cases[0]?.lines.filter(
      (line) => "rejected" in line && line.rejected === "wrong",
    );
    expect(rejected?.map(({ choice }) => choice)).toEqual([{ span: 128 }]);
    expect(report.best()).not.toEqual({ span: 128 });
  });

  /** Choices whose kernels multiply by different factors, and what a tuner without a reference makes of them. */
  const planted = async (factors: { readonly [span: number]: number }, options = {}) => {
    const operation = tunable({
      name: "planted",
      choices: { span: Object.keys(factors).map(Number) },
      make: ({ span }) => scaled(span, factors[span] ?? NaN),
    });
    const report = await tune(device, operation, { cases, file, ...quick, ...options });
    const lines = report.cases[0]?.lines ?? [];
    const spans = (rejected: boolean) =>
      lines
        .filter((line) => "rejected" in line === rejected)
        .map(({ choice }) => Number(choice["span"]))
        .sort((left, right) => left - right);
    return {
      report,
      lines,
      checked: report.cases[0]?.checked,
      taken: spans(false),
      wrong: spans(true),
    };
  };

  test.each([32, 64, 128, 256, 512])(
    "without a reference most choices are right, wherever the model ranks the wrong one: %i",
    async (span) => {
      const factors = { 32: 3, 64: 3, 128: 3, 256: 3, 512: 3, [span]: 3.5 };
      const { report, checked, taken, wrong, lines } = await planted(factors);
      expect(wrong).toEqual([span]);
      expect(taken).toHaveLength(4);
      expect(report.best()).not.toEqual({ span });
      expect(checked).toEqual({
        by: "majority",
        text: "no reference: 4 of 5 choices agree on the results",
      });
      expect(report.table()).toContain("no reference: 4 of 5 choices agree on the results");
      expect(report.table()).toMatch(/rejected, wrong: span=\d+: out differs by .* 4 of 5 choices/);
      expect(lines[0]).toMatchObject({ checked: "majority" });
      expect(readFileSync(file, "utf8")).toContain('"checked":"majority"');
    },
  );

  test("two wrong choices that agree are two against three", async () => {
    for (const wrong of [
      [32, 64],
      [256, 512],
    ] as const) {
      rmSync(file, { force: true });
      const factors = { 32: 3, 64: 3, 128: 3, 256: 3, 512: 3, [wrong[0]]: 4, [wrong[1]]: 4 };
      const found = await planted(factors);
      expect(found.wrong).toEqual(wrong);
      expect(found.checked?.text).toContain("3 of 5 choices agree");
    }
  });

  test.each([
    [{ 128: 3, 256: 4 }, "the 2 choices agree on (1, 1)"],
    [{ 64: 3, 128: 3, 256: 4, 512: 4 }, "the 4 choices agree on (2, 2)"],
    [{ 64: 3, 128: 4, 256: 5 }, "the 3 choices agree on (1, 1, 1)"],
    [{ 64: 3, 128: 3, 256: 4, 512: 5 }, "the 4 choices agree on (2, 1, 1)"],
  ])(
    "where choices do not agree nothing is kept, and the report says so: %j",
    async (factors, words) => {
      const { report, checked, lines } = await planted(factors);
      expect(checked?.by).toBe("undecided");
      expect(report.table()).toContain(`no result that more than half of ${words}: none is kept`);
      expect(lines).toEqual([]);
      expect(report.best()).toBeUndefined();
      expect(report.cases[0]).toMatchObject({ fresh: 0, left: Object.keys(factors).length });
      expect(readFileSync(file, "utf8")).toBe(TuningTable.start);
      // What they are asked again with a reference, they are told one by one.
      const reference = ({ x }: { readonly [name: string]: unknown }) => ({
        out: fromNumbers(
          f32,
          [512],
          toNumbers(x as HostArray).map((value) => 3 * value),
        ),
      });
      const again = await planted(factors, { reference });
      expect(again.checked?.by).toBe("reference");
      expect(again.taken).toEqual(
        Object.entries(factors).flatMap(([span, factor]) => (factor === 3 ? [Number(span)] : [])),
      );
    },
  );

  test("a choice that is alone is measured, and said to be checked by nobody", async () => {
    const { report, checked, lines } = await planted({ 128: 3.5 });
    expect(checked?.by).toBe("alone");
    expect(report.table()).toContain("one choice alone ran: nobody has checked its results");
    expect(lines).toMatchObject([{ checked: "alone" }]);
  });

  test("choices that were measured before are asked about new ones, and may be outvoted", async () => {
    await planted({ 128: 3, 256: 3 });
    const more = await planted({ 64: 4, 128: 3, 256: 3 });
    expect(more.wrong).toEqual([64]);
    expect(more.checked?.text).toContain("2 of 3 choices agree");
    rmSync(file);
    await planted({ 128: 3.5 });
    const outvoted = await planted({ 64: 3, 128: 3.5, 256: 3 });
    expect(outvoted).toMatchObject({ wrong: [128], taken: [64, 256] });
  });

  test("results within what the order of sums makes of them agree, and those that are never written do not", async () => {
    const near = await planted({ 64: 3, 128: 3 * (1 + 2 ** -12), 256: 3 * (1 + 2 ** -13) });
    expect(near).toMatchObject({ wrong: [], taken: [64, 128, 256] });
    rmSync(file);
    const nan = await planted({ 64: NaN, 128: NaN, 256: 3 });
    expect(nan).toMatchObject({ wrong: [64, 128], taken: [256], checked: { by: "alone" } });
  });

  test("time that is over before a second choice ran leaves the first undecided", async () => {
    const clock = vi.spyOn(performance, "now");
    let passed = 0;
    clock.mockImplementation(() => passed);
    const onProgress = ({ doing }: { readonly doing: string }) => {
      if (doing === "checking") passed += 2000;
    };
    try {
      const found = await planted({ 64: 3, 128: 3, 256: 3 }, { seconds: 1, onProgress });
      expect(found.checked?.text).toContain("time was over before a second choice ran");
      expect(found.lines).toEqual([]);
    } finally {
      clock.mockRestore();
    }
  });

  test("an interrupt keeps what was measured, and the next run goes on", async () => {
    const controller = new AbortController();
    const stopping = tune(device, mine([32, 64, 128, 256, 512, 1024, 2048, 4096]), {
      cases,
      file,
      ...quick,
      signal: controller.signal,
      onProgress: ({ done }) => {
        if (done === 6) controller.abort(new Error("enough"));
      },
    });
    await expect(stopping).rejects.toThrow("enough");
    const kept = TuningTable.parse(readFileSync(file, "utf8"), file).lines.length;
    expect(kept).toBeGreaterThanOrEqual(6);
    // A line that was cut off while it was written does no harm.
    writeFileSync(file, `${readFileSync(file, "utf8")}{"op":"sca`);
    const report = await tune(device, mine([32, 64, 128, 256, 512, 1024, 2048, 4096]), {
      cases,
      file,
      ...quick,
    });
    expect(report.cases[0]).toMatchObject({ fresh: 8 - kept, left: 0 });
  });

  test("a file that was hardly begun is none yet", async () => {
    for (const begun of ["", TuningTable.start.slice(0, 9), TuningTable.start.trimEnd()]) {
      writeFileSync(file, begun);
      await tune(device, mine([128]), { cases, file, ...quick });
      expect(sum(readFileSync(file, "utf8"))).toHaveLength(2);
    }
  });

  test("what another tuner adds to the file meanwhile stays", async () => {
    const theirs = join(folder, "theirs.jsonl");
    await tune(device, mine([512]), { cases: [{ n: 64 }], file: theirs, ...quick });
    let added = false;
    await tune(device, mine([128, 256]), {
      cases,
      file,
      ...quick,
      onProgress: ({ done }) => {
        if (done > 0 && !added) appendFileSync(file, readFileSync(theirs, "utf8"));
        added ||= done > 0;
      },
    });
    const { lines } = TuningTable.parse(readFileSync(file, "utf8"), file);
    expect(new Set(lines.map(({ choice }) => choice["span"]))).toEqual(new Set([128, 256, 512]));
  });

  test("a choice of a file that is none any more is left, with a note", async () => {
    await tune(device, mine([128]), { cases, file, ...quick });
    const measurements = TuningTable.parse(readFileSync(file, "utf8"), file);
    const later = tunable({
      name: "scaled",
      choices: { span: [128, 256], times: [1, 2] },
      make: ({ span, times }) => scaled(span * times, 3),
    });
    const tuned = new Device(new PlayedGpu({ checks: false }), { measurements });
    const plan = later.plan({ n: 512 }, tuned);
    expect(plan).toMatchObject({ source: "heuristic", configuration: { span: 128, times: 1 } });
    expect(plan.notes.join()).toContain('{"span":128} is no choice of scaled');
    tuned.dispose();
  });

  test("kernels of all cases are compiled before the first is measured", async () => {
    const done: string[] = [];
    const report = await tune(device, mine([128, 256]), {
      ...{ cases: [{ n: 512 }, { n: 1024 }], ...quick },
      onProgress: ({ doing }) => {
        if (done.at(-1) !== doing) done.push(doing);
      },
    });
    expect(done).toEqual(["compiling", "checking", "timing", "checking", "timing"]);
    expect(report.cases.map(({ fresh }) => fresh)).toEqual([2, 2]);
  });

  test("time that is over leaves the rest, and says how many", async () => {
    const report = await tune(device, mine([128, 256, 512]), {
      cases,
      ...quick,
      seconds: 1e-6,
    });
    expect(report.cases[0]).toMatchObject({ left: 3, fresh: 0 });
    expect(report.table()).toContain('not measured, for want of time or as "most" says: 3');
  });
});

describe("without a GPU", () => {
  test("choices are ranked by the model, which the report and the file say", async () => {
    const device = await open("simulator");
    const report = await tune(device, mine([128, 256]), { cases });
    expect(report.cases[0]).toMatchObject({ modelled: true, fresh: 2 });
    expect(report.cases[0]?.lines[0]).toMatchObject({ source: "model" });
    expect(report.table()).toContain("estimates of a model of");
    device.dispose();
  });

  test("no more choices than asked for are measured, the model's best", async () => {
    const device = await open("simulator");
    const all = await tune(device, mine([128, 256, 512]), { cases });
    const few = await tune(device, mine([128, 256, 512]), { cases, most: 2 });
    const choices = all.cases[0]?.lines.map(({ choice }) => choice);
    expect(few.cases[0]).toMatchObject({ fresh: 2, left: 1 });
    expect(few.cases[0]?.lines.map(({ choice }) => choice)).toEqual(choices?.slice(0, 2));
    device.dispose();
  });

  test("choices that the model gives no chance are told", async () => {
    const device = await open("simulator");
    const report = await tune(device, mine([1024, 2 ** 20]), { cases: [{ n: 2 ** 20 }] });
    expect(report.best()).toEqual({ span: 1024 });
    expect(report.cases[0]?.lines.at(-1)).toMatchObject({ rejected: "model" });
    expect(report.table()).toMatch(/rejected, model: span=1048576: the model gives it .* times/);
    device.dispose();
  });

  test("products of the library have choices", async () => {
    const device = await open("simulator");
    const product = matmul({ a: f32, b: f32, precision: "tf32" });
    const sizes = { m: 128, n: 128, k: 64 };
    const report = await tune(device, product, { cases: [sizes] });
    const { configuration } = product.plan(sizes);
    const choices = report.cases[0]?.lines.map(({ choice }) => choice);
    expect(choices).toContainEqual(configuration);
    expect(choices?.length).toBeGreaterThan(1);
    device.dispose();
  });
});

describe("mistakes", () => {
  const make = () => scaled(128, 3);
  const refused: readonly (readonly [string, unknown])[] = [
    ["TW9813", { name: "", choices: { a: [1] }, make }],
    ["TW9813", { name: "mine", choices: {}, make }],
    ["TW9813", { name: "mine", choices: { a: [] }, make }],
    ["TW9813", { name: "mine", choices: { a: [NaN] }, make }],
    ["TW9813", { name: "mine", choices: { a: [1, 1] }, make }],
    ["TW9813", { name: "mine", choices: { a: [1] }, make: 5 }],
    ["TW9813", { name: "mine", choices: { a: [1] }, make: () => 5 }],
    ["TW9813", { name: "mine", choices: { a: [1] }, make, wher: () => true }],
    ["TW9812", { name: "mine", choices: { a: [1] }, make, where: () => false }],
  ];
  test.each(refused)("%s for tunable %#", async (code, spec) => {
    expect(await codeOf(() => tunable(spec as never))).toBe(code);
  });

  test("choices that take other arguments are rejected", async () => {
    const other = kernel(
      {
        name: "other",
        inputs: { y: tensor(f32, [n]) },
        outputs: { out: tensor(f32, [n]) },
      },
      () => undefined,
    );
    const device = await open("simulator");
    const mixed = tunable({
      name: "mixed",
      choices: { which: ["first", "second"] },
      make: ({ which }) => (which === "first" ? scaled(128, 3) : (other as never)),
    });
    const report = await tune(device, mixed, { cases });
    expect(report.cases[0]?.lines.at(-1)).toMatchObject({ rejected: "plan" });
    device.dispose();
  });

  test("options and arguments of tune", async () => {
    const device = await open("simulator");
    const operation = mine([128]);
    const wrong: readonly (readonly [string, unknown, unknown, unknown])[] = [
      ["TW9815", {}, operation, { cases }],
      ["TW9815", device, scaled(128, 3), { cases }],
      ["TW9815", device, operation, {}],
      ["TW9815", device, operation, { cases: [] }],
      ["TW9815", device, operation, { cases: [{ n: 1.5 }] }],
      ["TW9815", device, operation, { cases: [{ n: 0 }] }],
      ["TW9815", device, matmul({ a: bf16, b: bf16 }), { cases: [{ m: 0, n: 8, k: 8 }] }],
      ["TW9815", device, operation, { cases, rounds: 3 }],
      ["TW9815", device, operation, { cases, most: 0 }],
      ["TW9815", device, operation, { cases, seconds: 0 }],
      ["TW9815", device, operation, { cases, workers: -1 }],
      ["TW9815", device, operation, { cases, round: 7 }],
      ["TW4006", device, operation, { cases: [{ m: 5 }] }],
      ["TW9811", device, operation, { cases, file: "package.json" }],
    ];
    for (const [code, on, of, options] of wrong)
      expect(await codeOf(() => tune(on as Device, of as never, options as never))).toBe(code);
    const other = tune(device, operation, { cases: [{ m: 5 }] });
    await expect(other).rejects.toMatchObject({
      position: { file: expect.stringMatching(/tune\.test\.ts$/) as string },
    });
    device.dispose();
  });

  test("a file that cannot be written is told of before anything is tried", async () => {
    const device = await open("simulator");
    const operation = mine([128]);
    const planned = vi.spyOn(operation, "with");
    const nowhere = join(tmpdir(), "tilewright-nowhere", "tuning.jsonl");
    await expect(tune(device, operation, { cases, file: nowhere })).rejects.toMatchObject({
      code: "TW9811",
      remedy: expect.stringContaining("a folder that is there") as string,
    });
    expect(planned).not.toHaveBeenCalled();
    device.dispose();
  });

  test("an operation with nothing to choose, and a scalar that nobody gives", async () => {
    const device = new Device(new PlayedGpu({ checks: false }));
    const fixed = matmul({
      a: bf16,
      b: bf16,
      configuration: {
        kernel: "plain",
        rows: 64,
        columns: 64,
        depth: 32,
        splitK: 1,
      },
    });
    const sizes = [{ m: 1, n: 1, k: 1 }];
    expect(await codeOf(() => tune(device, fixed, { cases: sizes }))).toBe("TW9813");
    const shifted = tunable({
      name: "shifted",
      choices: { span: [64, 128] },
      make: ({ span }) =>
        kernel(
          {
            name: "shifted",
            grid: { i: cdiv(n, span) },
            inputs: { by: scalar(i32) },
            outputs: { out: tensor(i32, [n]) },
          },
          ({ i, by, out }) => out.at(slice(i.mul(span), span)).store(full(i32, [span], 1).add(by)),
        ),
    });
    expect(await codeOf(() => tune(device, shifted, { cases }))).toBe("TW9815");
    const inputs = () => ({ by: 41 });
    const report = await tune(device, shifted, { cases, inputs, ...quick });
    expect(report.cases[0]).toMatchObject({ fresh: 2 });
    device.dispose();
  });
});
