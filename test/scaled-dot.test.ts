/**
 * `scaledDot` on sm_120a and sm_121a, where tensor cores take narrow floats with their scales: the same bits on simulator and emulator, and exact sums where
 * numbers are small. What instructions do not take becomes bf16, and a note says why.
 */
import { describe, expect, test } from "vitest";
import {
  f32,
  f4e2m1fn,
  f6e3m2fn,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  fromNumbers,
  kernel,
  open,
  scaledDot,
  tensor,
  toNumbers,
} from "tilewright";
import type { DType, HostArray } from "tilewright";
import { lowerWithNotes } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";

interface Form {
  readonly a: DType;
  readonly b?: DType;
  readonly scales?: DType;
  readonly block?: number;
  readonly shape?: readonly [m: number, n: number, k: number];
  readonly warps?: 1 | 2 | 4 | 8;
  /** Whether b lies along n instead of k. */
  readonly across?: boolean;
  readonly begins?: boolean;
}

function multiplying(form: Form) {
  const { a, b = a, scales = f8e8m0fnu, block = 32, shape: [m, n, k] = [64, 32, 128] } = form;
  const { warps = 4, across = false, begins = false } = form;
  return kernel(
    {
      ...{ name: "scaled", warps },
      inputs: {
        ...{ x: tensor(a, [m, k]), y: tensor(b, across ? [k, n] : [n, k]) },
        ...{ xScales: tensor(scales, [m, k / block]), yScales: tensor(scales, [n, k / block]) },
        sums: tensor(f32, [m, n]),
      },
      outputs: { out: tensor(f32, [m, n]) },
    },
    ({ x, y, xScales, yScales, sums, out }) => {
      const right = across ? y.load() : y.load().transpose();
      const options = begins ? { accumulator: sums.load() } : {};
      const factors = [
        [x.load(), xScales.load()],
        [right, yScales.load()],
      ] as const;
      out.store(scaledDot(...factors, options));
    },
  );
}

/** Codes from a seed, small numbers of which sums are exact, or all but infinities and NaNs. */
function codesOf(dtype: DType, shape: readonly number[], seed: number): HostArray {
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const count = shape.reduce((all, each) => all * each, 1);
  const values = Float64Array.from({ length: count }, () =>
    dtype === f8e8m0fnu
      ? 2 ** Math.floor(next() * 9 - 4)
      : dtype.bits === 4
        ? ([0, 0.5, 1, 1.5, 2, 3, 4, 6][Math.floor(next() * 8)] ?? 0) * (next() < 0.5 ? -1 : 1)
        : (next() - 0.5) * 2 ** Math.floor(next() * 4),
  );
  return fromNumbers(dtype, shape, values);
}

async function run(form: Form, seed: number): Promise<void> {
  const { a, b = a, scales = f8e8m0fnu, block = 32, shape: [m, n, k] = [64, 32, 128] } = form;
  const { across = false, begins = false } = form;
  const positive = (array: HostArray): HostArray =>
    fromNumbers(array.dtype, array.shape, toNumbers(array).map(Math.abs));
  const inputs = {
    x: codesOf(a, [m, k], seed),
    y: codesOf(b, across ? [k, n] : [n, k], seed + 1),
    xScales: positive(codesOf(scales, [m, k / block], seed + 2)),
    yScales: positive(codesOf(scales, [n, k / block], seed + 3)),
    sums: codesOf(f32, [m, n], seed + 4),
  };
  const [x, y, xScales, yScales, sums] = Object.values(inputs).map((each) => toNumbers(each));
  const at = (values: ArrayLike<number> | undefined, index: number): number =>
    values?.[index] ?? NaN;
  const expected = Array.from({ length: m * n }, (_, element) => {
    const [row, column] = [Math.floor(element / n), element % n];
    let [sum, magnitude] = [begins ? at(sums, element) : 0, 0];
    for (let depth = 0; depth < k; depth += 1) {
      const each = Math.floor(depth / block);
      const product =
        at(x, row * k + depth) *
        at(y, across ? depth * n + column : column * k + depth) *
        at(xScales, row * (k / block) + each) *
        at(yScales, column * (k / block) + each);
      sum += product;
      magnitude += Math.abs(product);
    }
    return { sum, magnitude };
  });
  const definition = multiplying(form);
  const found: Float64Array[] = [];
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_120a" });
    const { out } = await device.run(definition, inputs as never);
    device.dispose();
    found.push(Float64Array.from(toNumbers(out)));
  }
  const [simulated, emulated] = found;
  expect(simulated, `seed ${seed}`).toEqual(emulated);
  // Of each step 25 bits below its largest number are kept.
  for (const [index, { sum, magnitude }] of expected.entries())
    expect(Math.abs(at(simulated, index) - sum), `seed ${seed}, ${index}`).toBeLessThanOrEqual(
      (magnitude + Math.abs(sum) + 2 ** -20) * 2 ** -20,
    );
}

const nvfp4 = { a: f4e2m1fn, scales: f8e4m3fn, block: 16 } as const;

describe("products with scales", () => {
  test.each<[string, Form, string]>([
    ["e4m3", { a: f8e4m3fn }, "mxf8f6f4"],
    [
      "e4m3 by e5m2, one warp, onto sums",
      { a: f8e4m3fn, b: f8e5m2, warps: 1, shape: [32, 16, 64], begins: true },
      "mxf8f6f4",
    ],
    ["e4m3 by e3m2, one block", { a: f8e4m3fn, b: f6e3m2fn, shape: [64, 16, 32] }, "mxf8f6f4"],
    ["e5m2 by e2m1", { a: f8e5m2, b: f4e2m1fn, shape: [32, 24, 64] }, "mxf8f6f4"],
    ["mxfp4", { a: f4e2m1fn, shape: [64, 32, 256] }, "mxf4"],
    ["mxfp4, two blocks, eight warps", { a: f4e2m1fn, shape: [128, 32, 64], warps: 8 }, "mxf4"],
    ["nvfp4", { ...nvfp4, shape: [64, 32, 128] }, "mxf4nvf4"],
    [
      "nvfp4, one step, onto sums",
      { ...nvfp4, shape: [16, 8, 64], warps: 2, begins: true },
      "mxf4nvf4",
    ],
    ["nvfp4 of three steps", { ...nvfp4, shape: [32, 16, 192], warps: 2 }, "mxf4nvf4"],
    ["e4m3 along n", { a: f8e4m3fn, across: true }, "mxf8f6f4"],
    ["mxfp4 along n", { a: f4e2m1fn, across: true }, "mxf4"],
  ])("of %s", async (_, form, kind) => {
    const target = form.begins === true ? "sm_121a" : "sm_120a";
    const { notes, executable } = lowerWithNotes(multiplying(form).kernel, targets[target]);
    const ptx = printPtx(executable.module);
    expect(ptx).toContain(`kind::${kind}.block_scale`);
    if (hasPtxas) expect(assemble(ptx, target)).toBe("");
    expect(notes.map(({ code }) => code)).not.toContain("TW7517");
    await run(form, 7);
  });

  test.each<[string, Form, string, "sm_120a" | "sm_100a"]>([
    [
      "scales that differ",
      { a: f8e4m3fn, scales: f8e4m3fn },
      "no instruction multiplies",
      "sm_120a",
    ],
    [
      "eight rows",
      { a: f8e4m3fn, shape: [8, 32, 128] },
      "does not consist of fragments",
      "sm_120a",
    ],
    ["tensor memory", { a: f8e4m3fn }, "tensor memory", "sm_100a"],
  ])("are made of bf16, and a note says why: %s", (_, form, why, target) => {
    const { notes, executable } = lowerWithNotes(multiplying(form).kernel, targets[target]);
    expect(printPtx(executable.module)).not.toContain("block_scale");
    const found = notes.find(({ code }) => code === "TW7517");
    expect(found?.because).toContain(why);
  });

  test("say nothing on targets that have no such instructions", () => {
    const { notes } = lowerWithNotes(multiplying({ a: f8e4m3fn }).kernel, targets.sm_90a);
    expect(notes.map(({ code }) => code)).not.toContain("TW7517");
  });
});
