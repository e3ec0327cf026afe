/**
 * The gradients of attention against those of the float64 reference, and those against central differences. The bound:
 * powers and the gradients of scores are rounded to the format before they are multiplied, out was rounded before it
 * made the deltas, and results are rounded, each by 2⁻⁹ (bf16) of magnitudes that the reference sums up alongside.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { checkGradients } from "../../../test/support/attention-checks.ts";
import {
  closeTo,
  expected,
  expectedGradients,
  inputsOf,
  numbersOf,
} from "../../../test/support/attention-reference.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { codeOf } from "../../../test/support/library-checks.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { notEmulated, scheduleSeeds, takesAll, usually } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { attentionBackward } from "./backward.ts";

const plain = { kernel: "plain", rows: 32, columns: 32 } as const;

const cases: readonly AttentionCase[] = [
  { name: "whole", sizes: [1, 3, 5, 1, 1, 4, 3], dtype: f32 },
  { name: "heads in parts", sizes: [1, 3, 4, 1, 1, 20, 18], dtype: f32 },
  { name: "causal, groups of heads", sizes: [2, 5, 5, 4, 2, 3, 4], dtype: f32, causal: true },
  {
    name: "a window over tiles",
    sizes: [1, 36, 34, 1, 1, 2, 2],
    dtype: f32,
    window: { left: 6, right: 3 },
  },
  { name: "rows that see nothing", sizes: [1, 6, 2, 1, 1, 3, 3], dtype: f32, mask: "remainders" },
  {
    name: "capped and biased",
    sizes: [1, 4, 6, 2, 1, 3, 5],
    dtype: f32,
    softCap: 0.7,
    scale: 0.9,
    bias: [false, true, false, true],
  },
  {
    ...{ name: "a bias of each batch, for all heads, dropout", sizes: [2, 4, 6, 2, 1, 3, 5] },
    ...{ dtype: f32, bias: [true, false, true, false], dropout: 0.3, curved: true },
  },
  { name: "bf16, causal", sizes: [1, 9, 9, 2, 1, 8, 8], causal: true, gradients: plain },
  {
    name: "a score function, sinks",
    sizes: [2, 5, 6, 2, 1, 3, 4],
    dtype: f32,
    curved: true,
    sinks: true,
  },
];

/** Tiles of 64 rows and blocks of 128 columns, whole and cut. */
const wide: readonly AttentionCase[] = [
  {
    ...{ name: "dropout of wide heads, in parts", sizes: [1, 17, 33, 2, 1, 34, 36], dtype: f32 },
    ...{ causal: true, dropout: 0.3 },
  },
  {
    ...{ name: "a bias of all, in a window", sizes: [2, 40, 50, 2, 1, 3, 2], dtype: f32 },
    ...{ bias: [true, true, true, true], window: { left: 3, right: 2 } },
  },
  {
    name: "a score function, a cap, sinks",
    sizes: [1, 70, 40, 2, 1, 16, 16],
    kernel: "warp-specialized",
    ...{ curved: true, sinks: true, softCap: 1.5 },
  },
  {
    ...{ name: "dropout, groups of heads", sizes: [2, 70, 140, 2, 1, 16, 16] },
    ...{ kernel: "warp-specialized", dropout: 0.25, causal: true },
  },
  { name: "one tile", sizes: [1, 64, 128, 1, 1, 32, 32], kernel: "warp-specialized" },
  {
    name: "tails of rows and columns",
    sizes: [1, 70, 150, 1, 1, 16, 16],
    kernel: "warp-specialized",
  },
  {
    name: "half a block of columns",
    sizes: [1, 40, 192, 1, 1, 16, 16],
    kernel: "warp-specialized",
  },
  {
    name: "causal, groups of heads",
    sizes: [1, 70, 140, 4, 2, 16, 16],
    kernel: "warp-specialized",
    causal: true,
  },
  {
    name: "causal, more columns",
    sizes: [1, 40, 300, 2, 1, 16, 16],
    kernel: "warp-specialized",
    causal: true,
  },
  {
    name: "causal, more rows",
    sizes: [1, 200, 40, 2, 1, 16, 16],
    kernel: "warp-specialized",
    causal: true,
  },
  {
    name: "a window",
    sizes: [1, 300, 300, 1, 1, 16, 16],
    kernel: "warp-specialized",
    window: { left: 10, right: 5 },
  },
  {
    name: "rows that see nothing",
    sizes: [1, 70, 2, 1, 1, 16, 16],
    kernel: "warp-specialized",
    mask: "remainders",
  },
  { name: "values of another size", sizes: [1, 64, 64, 1, 1, 24, 80], kernel: "warp-specialized" },
  { name: "heads of 128", sizes: [1, 64, 64, 1, 1, 128, 128], kernel: "warp-specialized" },
  { name: "f16", sizes: [1, 33, 40, 1, 1, 24, 8], kernel: "warp-specialized", dtype: f16 },
  { name: "in order", sizes: [1, 70, 260, 2, 1, 16, 16], deterministic: true },
  {
    name: "in order, a window",
    sizes: [1, 300, 300, 1, 1, 16, 16],
    window: { left: 150 },
    deterministic: true,
  },
  {
    name: "heads of 256, tails, causal",
    sizes: [1, 70, 140, 1, 1, 256, 256],
    kernel: "warp-specialized",
    causal: true,
  },
  {
    name: "wide heads, in order",
    sizes: [1, 70, 140, 2, 1, 136, 136],
    ...{ kernel: "warp-specialized", window: { left: 60 }, deterministic: true },
  },
  {
    ...{ name: "wide heads, narrower values, dropout", sizes: [1, 70, 70, 1, 1, 192, 128] },
    ...{ kernel: "warp-specialized", dropout: 0.25 },
  },
  { name: "wider values, a mask", sizes: [1, 66, 70, 1, 1, 16, 144], mask: "remainders" },
  {
    name: "capped and biased",
    sizes: [1, 70, 140, 2, 1, 16, 16],
    kernel: "warp-specialized",
    softCap: 0.7,
    scale: 0.9,
    bias: [false, true, false, true],
  },
];

/** Σ out · dOut as a function of one element of an input. */
function differences(
  one: AttentionCase,
  dOut: readonly number[],
  name: "q" | "k" | "v" | "sinks" | "bias",
): number[] {
  const given = inputsOf(one);
  const own = given[name];
  if (own === undefined) return [];
  const step = 1e-5;
  const loss = (values: readonly number[]): number => {
    const { out } = expected(one, { ...given, [name]: { ...own, values } });
    return out.values.reduce((sum, value, index) => sum + value * (dOut[index] ?? NaN), 0);
  };
  return own.values.map((value, index) => {
    const moved = (by: number) => own.values.with(index, value + by);
    return (loss(moved(step)) - loss(moved(-step))) / (2 * step);
  });
}

test.each(cases)("the reference against central differences: $name", (one) => {
  const [b, s, , h, , , e] = one.sizes;
  const dOut = numbersOf(b * s * h * e, 9);
  const gradients = expectedGradients(one, inputsOf(one), dOut);
  for (const name of ["q", "k", "v"] as const)
    closeTo(gradients[name].values, differences(one, dOut, name), 1e-7);
  if (gradients.bias) closeTo(gradients.bias.values, differences(one, dOut, "bias"), 1e-7);
  if (one.sinks === true) closeTo(gradients.sinks.values, differences(one, dOut, "sinks"), 1e-7);
});

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });
  // The emulator takes seconds for each of them, and these have all of the kernels' instructions.
  const emulated = usually(
    ["tails of rows and columns", "a score function, a cap, sinks", "heads of 256, tails, causal"],
    ["bf16, causal", "dropout of wide heads, in parts"],
  );
  const all = [...cases, ...wide];
  const tried =
    kind === "simulator"
      ? notEmulated(all, emulated)
      : all.filter(({ name }) => emulated.includes(name));
  test.each(tried)("$name", (one) => checkGradients(device, one));
});

test.each([
  ["heads of 16", 70, 200, 16],
  // As many tiles of rows as it takes for places in shared memory to be used again.
  ["wide heads", 260, 64, 136],
])("in order, schedules give the same bits, and nothing is found: %s", async (_, s, t, d) => {
  const [b, h, kv, e] = [1, 1, 1, d];
  const op = attentionBackward({ q: bf16, k: bf16, v: bf16, causal: true, deterministic: true });
  const numbers = (shape: readonly number[], seed: number) =>
    fromNumbers(
      bf16,
      shape,
      numbersOf(
        shape.reduce((all, one) => all * one, 1),
        seed,
      ),
    );
  const given = {
    ...{ q: numbers([b, s, h, d], 1), k: numbers([b, t, kv, d], 2), v: numbers([b, t, kv, e], 3) },
    ...{ out: numbers([b, s, h, e], 4), dOut: numbers([b, s, h, e], 5) },
    logSumExp: fromNumbers(f32, [b, h, s], numbersOf(b * h * s, 6)),
  };
  const results = new Set<string>();
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", {
      schedule: seed % 2 === 0 ? "adversarial" : "random",
      seed,
    });
    onTestFinished(() => {
      device.dispose();
    });
    const { dq } = await device.run(op, given);
    results.add(toNumbers(dq).join());
  }
  expect(results.size).toBe(1);
});

test("a score function without its slope is refused, and the other way round", () => {
  const given = { q: bf16, k: bf16, v: bf16 };
  const same = ({ score }: { readonly score: Tile<"f32"> }) => score;
  expect(codeOf(() => attentionBackward({ ...given, score: same }))).toBe("TW9905");
  expect(codeOf(() => attentionBackward({ ...given, slope: same }))).toBe("TW9905");
});

test("what a bias of -∞ hides has no gradient, whatever its slope, and is hidden as by a mask", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  onTestFinished(() => {
    device.dispose();
  });
  const given = {
    ...{ q: f32, k: f32, v: f32, score: ({ score }: { readonly score: Tile<"f32"> }) => score },
    slope: ({ score }: { readonly score: Tile<"f32"> }) => score.mul(0).add(1),
  };
  const rows = (seed: number) => fromNumbers(f32, [1, 3, 1, 2], numbersOf(6, seed));
  const arrays = {
    ...{ q: rows(1), k: rows(2), v: rows(3), out: rows(4), dOut: rows(5) },
    logSumExp: fromNumbers(f32, [1, 1, 3], [0.5, 1, 1.5]),
  };
  const causal = [0, -Infinity, -Infinity, 0, 0, -Infinity, 0, 0, 0];
  const byBias = await device.run(
    attentionBackward({ ...given, bias: tensor(f32, [1, 1, dim("s"), dim("t")]) }),
    { ...arrays, bias: fromNumbers(f32, [1, 1, 3, 3], causal) },
  );
  const byMask = await device.run(attentionBackward({ ...given, causal: true }), arrays);
  for (const name of ["dq", "dk", "dv"] as const)
    expect([...toNumbers(byBias[name])]).toEqual([...toNumbers(byMask[name])]);
});

test("the gradient of a bias that is not there is refused", () => {
  expect(codeOf(() => attentionBackward({ q: bf16, k: bf16, v: bf16, dBias: true }))).toBe(
    "TW9902",
  );
});

test.skipIf(!hasPtxas)("dropout spills no registers", { timeout: 600_000 }, () => {
  const op = attentionBackward({ q: bf16, k: bf16, v: bf16, causal: true, dropout: 0.1 });
  // Heads of 256 are the most that there are; those of 128 are tried with a bias.
  for (const d of takesAll ? [128, 256] : [256]) {
    const kernels = op.kernels({ b: 1, s: 1024, t: 1024, h: 8, kv: 8, d, e: d });
    expect(assemblyProblems(kernels)).toEqual([]);
  }
});

test("f32 of wide heads is short for the assembler, which took minutes for a megabyte of it", () => {
  const given = { q: f32, k: f32, v: f32 };
  for (const op of [attentionBackward(given), attentionBackward({ ...given, dropout: 0.1 })])
    for (const each of op.kernels({ b: 1, s: 64, t: 64, h: 2, kv: 1, d: 256, e: 256 }))
      expect(compileAhead(each, "sm_90a").ptx.length).toBeLessThan(200_000);
});
