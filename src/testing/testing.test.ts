/** The helpers that kernels are tested with: what they pass and what they report. */
import { describe, expect, test } from "vitest";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { nvfp4 } from "../formats/scaled/formats.ts";
import { scaledHostArray } from "../formats/scaled/host-array.ts";
import { tensor, cdiv, dim, full, kernel, slice, zeros } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { checkKernel, compareWithReference } from "./index.ts";

const n = dim("n");
const double = kernel(
  {
    name: "double",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(4), 4);
    out.at(here).store(x.at(here).load().mul(2));
  },
);

/** Every block takes the next ticket, so who gets which depends on the order. */
const tickets = kernel(
  {
    name: "tickets",
    grid: { i: 8 },
    outputs: { out: tensor(i32, [8]) },
    inouts: { next: tensor(i32, [1]) },
  },
  ({ i, out, next }) => {
    const ticket = next.at(0).atomicAdd(1);
    out.at(slice(i, 1)).store(zeros(i32, [1]).add(ticket));
  },
);
const noTicket = fromNumbers(i32, [1], [0]);

async function reportOf(make: () => unknown): Promise<TilewrightError> {
  try {
    await make();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was reported");
}

describe("checkKernel", () => {
  test("gives the results of a kernel that every schedule agrees on", async () => {
    const { out } = await checkKernel(double, { x: fromNumbers(f32, [5], [1, 2, 3, 4, 5]) });
    expect([...toNumbers(out)]).toEqual([2, 4, 6, 8, 10]);
  });

  test("reports a result that depends on the schedule", async () => {
    const report = await reportOf(() => checkKernel(tickets, { next: noTicket }));
    expect(report.code).toBe("TW5102");
    expect(report.summary).toBe("output out of kernel tickets depends on the schedule");
    expect(report.found).toMatch(/under the (random|adversarial) schedule, seed \d+/);
  });

  test("takes a result that may depend on the schedule", async () => {
    const options = { deterministic: false, schedules: 4 };
    const { next } = await checkKernel(tickets, { next: noTicket }, options);
    expect([...toNumbers(next)]).toEqual([8]);
  });

  test("says under which schedule something was found", async () => {
    const racing = kernel(
      { name: "racing", grid: { i: 2 }, outputs: { out: tensor(f32, [4]) } },
      ({ out }) => {
        out.store(full(f32, [4], 1));
      },
    );
    const report = await reportOf(() => checkKernel(racing, {}));
    expect(report.code).toBe("TW3001");
    expect(report.notes.at(-1)?.message).toBe("found under the fixed schedule");
  });
});

describe("checkKernel on the emulator", () => {
  const device = "emulator";

  test("gives the results of the kernel's PTX", async () => {
    const x = fromNumbers(f32, [5], [1, 2, 3, 4, 5]);
    const { out } = await checkKernel(double, { x }, { device, schedules: 1 });
    expect([...toNumbers(out)]).toEqual([2, 4, 6, 8, 10]);
  });

  test("says with which seed something was found", async () => {
    const racing = kernel(
      { name: "racing", grid: { i: 2 }, outputs: { out: tensor(f32, [4]) } },
      ({ out }) => {
        out.store(full(f32, [4], 1));
      },
    );
    const report = await reportOf(() => checkKernel(racing, {}, { device, seed: 3 }));
    expect(report.code).toMatch(/^TW8/);
    expect(report.notes.at(-1)?.message).toBe("found on the emulator, seed 3");
  });

  test("reports a result that depends on the seed", async () => {
    const report = await reportOf(() => checkKernel(tickets, { next: noTicket }, { device }));
    expect([report.code, report.found]).toEqual([
      "TW5102",
      expect.stringMatching(/^other bits on the emulator, seed \d+$/),
    ]);
  });
});

describe("options of checkKernel", () => {
  const x = fromNumbers(f32, [4], [1, 2, 3, 4]);
  const options: readonly (readonly [object, string, string])[] = [
    [{ shedules: 3 }, "TW4015", "unknown option shedules of checkKernel; did you mean schedules?"],
    [{ schedules: "many" }, "TW4016", 'schedules of checkKernel cannot be the text "many"'],
    [{ device: "gpu" }, "TW4016", 'device of checkKernel cannot be the text "gpu"'],
    [{ seed: 0.5 }, "TW4016", "seed of checkKernel cannot be 0.5"],
    [{ deterministic: 0 }, "TW4016", "deterministic of checkKernel cannot be 0"],
    [{ target: "sm_70" }, "TW4016", "there is no target sm_70"],
  ];
  test.each(options)("%o is %s", async (given, code, summary) => {
    const report = await reportOf(() => checkKernel(double, { x }, given));
    expect([report.code, report.summary]).toEqual([code, summary]);
    expect(report.position?.file).toMatch(/testing\.test\.ts$/);
  });

  test("a target may be named", async () => {
    const { out } = await checkKernel(double, { x }, { target: "sm_80", schedules: 1 });
    expect([...toNumbers(out)]).toEqual([2, 4, 6, 8]);
  });
});

describe("compareWithReference", () => {
  test.each([
    [{ value: 1, bound: -1 }, /gives no value with a bound for element 0[^]*bound: -1/],
    [undefined, /expected: \{ value, bound \}/],
  ])("refuses what is no reference: %o", (given, says) => {
    const result = { dtype: f32, shape: [1], data: new Float32Array([9]) };
    expect(() => compareWithReference(result, () => given as never)).toThrow(says);
  });

  const result = fromNumbers(f32, [2, 2], [1, 2, 3, 4]);

  test("gives the largest error as a fraction of its bound", () => {
    const comparison = compareWithReference(result, (index) => ({
      value: index + 1.25,
      bound: 0.5,
    }));
    expect(comparison).toEqual({ elements: 4, worst: 0.5 });
  });

  test("lists elements and scales of arrays in formats with scales", async () => {
    const elements = fromNumbers(nvfp4.element, [1, 32], new Float64Array(32).fill(1.5));
    const scales = fromNumbers(nvfp4.scale, [1, 2], [2, 0.25]);
    const packed = scaledHostArray(nvfp4, elements, scales, { globalScale: 0.5 });
    expect(
      compareWithReference(packed, (index) => ({ value: index < 16 ? 1.5 : 0.1875, bound: 0 })),
    ).toEqual({ elements: 32, worst: 0 });
    const report = await reportOf(() =>
      compareWithReference(packed, () => ({ value: 1.5, bound: 0.5 }), "weights"),
    );
    expect(report.summary).toBe("16 of 32 elements of weights differ from the reference");
    expect(report.found?.split("\n")[1]?.split(/ {2,}/)).toEqual([
      ...["[0, 16]", "0.1875 = 1.5 · 0.25 · 0.5", "1.5", "2.63"],
    ]);
  });

  test("lists the elements that are too far off, the worst first", async () => {
    const wanted = [1, 2.5, 3, NaN];
    const report = await reportOf(() =>
      compareWithReference(result, (index) => ({ value: wanted[index] ?? 0, bound: 0.25 }), "out"),
    );
    expect(report.code).toBe("TW5101");
    expect(report.summary).toBe("2 of 4 elements of out differ from the reference");
    const rows = (report.found ?? "").split("\n").map((row) => row.split(/ {2,}/));
    expect(rows).toEqual([
      ["element", "found", "expected", "error / bound"],
      ["[1, 1]", "4", "NaN", "Infinity"],
      ["[0, 1]", "2", "2.5", "2.00"],
    ]);
  });
});
