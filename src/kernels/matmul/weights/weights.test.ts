/**
 * Weights in few bits with scales of columns, groups and blocks, and with zero points, against float64: what was stored is
 * taken apart here by the documented order and formula, and multiplied by hand.
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { productOf } from "../../../../test/support/exact-product.ts";
import { codeOf } from "../../../../test/support/library-checks.ts";
import { storedAt } from "../../../../test/support/products/operands.ts";
import { sampleOf, takesAll, usually } from "../../../../test/support/sample.ts";
import type { Device } from "../../../device/device.ts";
import { bf16, f16, f32, f8e4m3fn, f8e5m2, i4, i8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { dim } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import type { MatmulConfiguration, SkinnyConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { dequantizeWeights, quantizeWeights } from "./quantize-weights.ts";
import { quantized } from "./quantized.ts";
import type { QuantizedSpec } from "./quantized.ts";

const [n, k] = [dim("n"), dim("k")];

const skinny: SkinnyConfiguration = {
  ...{ kernel: "skinny", rows: 16, columns: 16, sliceK: 1, stages: 2, splitK: 2 },
};
const inTurns: readonly MatmulConfiguration[] = [
  { kernel: "skinny", rows: 16, columns: 32, sliceK: 2, stages: 4, splitK: 1 },
  { kernel: "skinny", rows: 16, columns: 64, sliceK: 4, stages: 4, splitK: 2 },
  { kernel: "skinny", rows: 16, columns: 32, sliceK: 4, stages: 4, splitK: 2 },
  { kernel: "skinny", rows: 8, columns: 64, sliceK: 4, stages: 4, splitK: 1 },
];
/** Blocks of 64 columns, and steps of 256 of 4 bits. */
const ofLines: readonly MatmulConfiguration[] = [
  { kernel: "skinny", rows: 8, columns: 16, sliceK: 4, stages: 4, splitK: 1 },
  { kernel: "skinny", rows: 8, columns: 16, sliceK: 4, stages: 8, splitK: 2 },
  { kernel: "skinny", rows: 16, columns: 16, sliceK: 4, stages: 4, splitK: 1 },
  { kernel: "skinny", rows: 32, columns: 16, sliceK: 4, stages: 4, splitK: 1 },
];
const swapAB: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 8, stages: 2 },
  ...{ schedule: "stream-k", swapAB: true, cluster: 1 },
};
const plain: MatmulConfiguration = {
  ...{ kernel: "plain", rows: 64, columns: 64, depth: 128, splitK: 1 },
};

const specs: { readonly [name: string]: QuantizedSpec } = {
  "i4, groups, zero points": quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 }),
  "i8, columns, zero points": quantized(i8, [k, n], { scale: f16, zeroPoint: i8 }),
  "FP8, blocks": quantized(f8e4m3fn, [k, n], { blockSize: [128, 128], scale: f32, as: bf16 }),
  "i4, blocks, zero points": quantized(i4, [k, n], {
    blockSize: [256, 64],
    scale: bf16,
    zeroPoint: i4,
  }),
  "i8, groups, scales of f32": quantized(i8, [k, n], { groupSize: 128, scale: f32, as: f16 }),
};

/** Stores weights, and holds them, what they stand for, and their products against the numbers that they were made of. */
async function agrees(
  device: Device,
  spec: QuantizedSpec,
  configurations: readonly MatmulConfiguration[],
  depth = 264,
  columns = 96,
): Promise<void> {
  const rows = 3;
  const random = new Random(7);
  const draw = (count: number): Float64Array =>
    Float64Array.from({ length: count }, () => random.uniform() * 2 - 0.7);
  const x = fromNumbers(f32, [depth, columns], draw(depth * columns));
  const given = { x: f32, b: spec } as const;
  const packed = (await device.run(quantizeWeights(given), { x })) as never as {
    readonly [name: string]: ReturnType<typeof fromNumbers>;
  };
  const numbers = (name: string): Float64Array => {
    const found = packed[name];
    return found === undefined ? new Float64Array() : toNumbers(found);
  };
  const [b, scale, zero] = [numbers("b"), numbers("bScale"), numbers("bZero")];
  const { group = depth, span } = spec;
  const across = Math.ceil(columns / span);
  const pitch = Math.ceil(depth / 128) * 128;
  const units = new Float64Array(depth * columns);
  const weights = units.map((_, index) => {
    const [i, j] = [Math.floor(index / columns), index % columns];
    const of = Math.floor(i / group) * across + Math.floor(j / span);
    const unit = scale[of] ?? NaN;
    units[index] = unit;
    const stored = b[j * pitch + storedAt(spec.dtype, i)] ?? NaN;
    return (stored - (spec.zero ? (zero[of] ?? NaN) : 0)) * unit;
  });
  // Every weight is within half a unit, and what FP8 and scales are rounded by.
  const wanted = toNumbers(x);
  const isWhole = spec.dtype.name.startsWith("i");
  const far = Array.from(wanted, (weight, index) => {
    const [value, unit] = [weights[index] ?? NaN, units[index] ?? NaN];
    const bound = isWhole ? 1.01 * unit : 2 ** -4 * Math.abs(weight) + unit * 2 ** -9;
    return Math.abs(value - weight) <= bound ? [] : [{ index, value, weight }];
  });
  expect(far.flat()).toEqual([]);
  const back = await device.run(dequantizeWeights(given), packed as never, {
    dimensions: { k: depth },
  });
  const wrong = Array.from(toNumbers(back.x), (value, index) => {
    const exact = weights[index] ?? NaN;
    return Math.abs(value - exact) <= Math.abs(exact) * 2 ** -8 ? [] : [{ index, value, exact }];
  });
  expect(wrong.flat()).toEqual([]);
  const a = fromNumbers(spec.as as DType<"bf16">, [rows, depth], draw(rows * depth));
  const sizes = [rows, columns, depth] as const;
  const left = toNumbers(a);
  const sums = productOf(
    { values: left, down: depth, along: 1 },
    { values: weights, down: columns, along: 1 },
    sizes,
  );
  const magnitudes = productOf(
    { values: left.map(Math.abs), down: depth, along: 1 },
    { values: weights.map(Math.abs), down: columns, along: 1 },
    sizes,
  );
  for (const configuration of configurations) {
    const op = matmul({ a: spec.as as DType<"bf16">, b: spec, out: f32, configuration });
    const { out } = await device.run(op, { a, ...packed } as never);
    // The skinny kernel rounds no weight; sums of numbers with zero points are of greater ones.
    const rounding = configuration.kernel === "skinny" ? 2 ** -16 : 2 ** -8;
    expect(farFrom(sums, magnitudes, rounding, toNumbers(out))).toEqual([]);
  }
}

/** The results that are further from sums than so large a part of the magnitudes in them. */
function farFrom(
  sums: Float64Array,
  magnitudes: Float64Array,
  rounding: number,
  results: ArrayLike<number>,
): readonly object[] {
  expect(results.length).toBe(sums.length);
  const far = Array.from(results, (found, index) => {
    const [sum, bound] = [sums[index] ?? NaN, (magnitudes[index] ?? NaN) * rounding];
    return Math.abs(found - sum) <= bound ? [] : [{ index, found, sum, bound }];
  });
  return far.flat();
}

test.each(Object.entries(specs))("%s", async (_, spec) => {
  const device = await open("simulator", { onNotes: () => undefined });
  const few = spec.dtype === i4 ? [skinny, ...inTurns] : [skinny];
  await agrees(device, spec, [...few, swapAB, plain]);
  // Six units of 128, of which the last is not full.
  await agrees(device, spec, ofLines, 648);
  device.dispose();
});

test("lines of scales that TMA cannot take: each half of a step has its own", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  const spec = quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 });
  await agrees(device, spec as QuantizedSpec, ofLines.slice(0, 1), 512, 66);
  device.dispose();
});

test("slots that are filled again are those that warps have read all their columns of", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  const spec = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
  await agrees(device, spec as QuantizedSpec, inTurns.slice(0, 1), 6 * 128, 64);
  device.dispose();
});

test("on the emulator", { timeout: 600_000 }, async () => {
  const device = await open("emulator", { onNotes: () => undefined });
  const spec = specs["i4, blocks, zero points"];
  if (spec === undefined) throw new Error("no such case");
  await agrees(device, spec, [{ ...skinny, splitK: 1 }, ...sampleOf(inTurns, 2)]);
  await agrees(device, spec, sampleOf(ofLines, 2), 648);
  device.dispose();
});

/** Two parts of 32 steps, on two processors. */
const partsDepth = 2 * 32 * 128;
const twoProcessors = { ...targets.sm_90a, processors: 2 };

/** What every case in parts multiplies: numbers of 4 bits in the documented order, and the same as they lie along k. */
const partsGiven = (() => {
  const [rows, columns, depth] = [5, 72, partsDepth];
  const random = new Random(11);
  const numbers = Float64Array.from({ length: columns * depth }, () => random.below(16) - 8);
  const order = Int32Array.from({ length: depth }, (_, i) => storedAt(i4, i));
  const along = Float64Array.from({ length: depth * columns }, (_, index) => {
    const [i, column] = [Math.floor(index / columns), index % columns];
    return numbers[column * depth + (order[i] ?? NaN)] ?? NaN;
  });
  const draw = Float64Array.from({ length: rows * depth }, () => random.uniform() * 2 - 0.7);
  const a = fromNumbers(bf16, [rows, depth], draw);
  return { rows, columns, depth, a, b: fromNumbers(i4, [columns, depth], numbers), along };
})();

/** Numbers of 4 bits with given scales, multiplied in parts of k, against float64. */
async function partsAgree(
  device: Device,
  scales: Float64Array,
  group: number | undefined,
): Promise<void> {
  const { rows, columns, depth, a, b, along } = partsGiven;
  const lines = group === undefined ? [] : [Math.ceil(depth / group)];
  const bScale = fromNumbers(bf16, [...lines, columns], scales);
  const scale = toNumbers(bScale);
  const configuration: MatmulConfiguration = {
    ...{ kernel: "persistent", consumers: 4, columns: 8, stages: 2 },
    ...{ schedule: "split-k", swapAB: true, cluster: 1 },
  };
  const spec = quantized(i4, [k, n], {
    ...(group !== undefined && { groupSize: group }),
    scale: bf16,
  });
  const op = matmul({ a: bf16, b: spec, out: f32, configuration });
  const { out } = await device.run(op, { a, b, bScale });
  const left = toNumbers(a);
  const weights = along.map((stored, index) => {
    const line = Math.floor(Math.floor(index / columns) / (group ?? depth));
    return stored * (scale[line * columns + (index % columns)] ?? NaN);
  });
  const sizes = [rows, columns, depth] as const;
  const sums = productOf(
    { values: left, down: depth, along: 1 },
    { values: weights, down: columns, along: 1 },
    sizes,
  );
  const magnitudes = productOf(
    { values: left.map(Math.abs), down: depth, along: 1 },
    { values: weights.map(Math.abs), down: columns, along: 1 },
    sizes,
  );
  expect(farFrom(sums, magnitudes, 2 ** -8, toNumbers(out))).toEqual([]);
}

const usual = (at: number): number => (1 + (at % 7) / 8) * 2 ** -(at % 12);
const scaleCases: { readonly [name: string]: (at: number) => number } = {
  "usual ones": usual,
  "zeros among them": (at) => (at % 5 === 0 ? 0 : usual(at)),
  "a great one": (at) => (at === 300 ? 2 ** 100 : usual(at)),
  "great ones": (at) => usual(at) * 2 ** 116,
  "a negative one": (at) => (at === 77 ? -0.5 : usual(at)),
  "a small one": (at) => (at === 301 ? 2 ** -110 : usual(at)),
  "small ones": (at) => usual(at) * 2 ** -100,
};

/** All great or all small ones do what one of them does. */
const usualScales = Object.entries(scaleCases).filter(
  ([name]) => takesAll || !["great ones", "small ones"].includes(name),
);

test.each(usualScales)("scales of 4 bits in parts of k: %s", async (_, scaleAt) => {
  const device = await open("simulator", { target: twoProcessors });
  const scales = (group: number): Float64Array =>
    Float64Array.from({ length: (partsDepth / group) * 72 }, (_unused, at) => scaleAt(at));
  await partsAgree(device, scales(128), 128);
  device.dispose();
});

test("those of longer groups, and of whole columns", async () => {
  const device = await open("simulator", { target: twoProcessors });
  for (const group of [3 * 128, undefined])
    for (const negative of usually(
      [group === undefined ? 70 : -1],
      [group === undefined ? -1 : 70],
    )) {
      const count = Math.ceil(partsDepth / (group ?? partsDepth)) * 72;
      const given = Float64Array.from({ length: count }, (_, at) =>
        at === negative ? -usual(at) : usual(at),
      );
      await partsAgree(device, given, group);
    }
  device.dispose();
});

test("zeros stay zeros, whatever the zero point is", async () => {
  const device = await open("simulator");
  const b = quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 });
  const values = Float64Array.from({ length: 256 }, (_, index) => (index % 3 === 0 ? 0 : index));
  const x = fromNumbers(f32, [128, 2], values);
  const packed = await device.run(quantizeWeights({ x: f32, b }), { x });
  const back = await device.run(dequantizeWeights({ x: f32, b }), packed, {
    dimensions: { k: 128 },
  });
  toNumbers(back.x).forEach((value, index) => {
    if (index % 3 === 0) expect(value + 0).toBe(0);
  });
  expect([...toNumbers(packed.bZero)]).toEqual([-8, -8]);
  device.dispose();
});

test.skipIf(!hasPtxas).each([
  ["zero points", quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 })],
  ["blocks", quantized(f8e4m3fn, [k, n], { blockSize: [128, 128], scale: f32, as: bf16 })],
])("%s: no registers are spilled", (_, b) => {
  const op = matmul({ a: bf16, b: b as QuantizedSpec<"i4", "bf16", true> });
  for (const m of [8, 16, 64, 256])
    expect(assemblyProblems(op.kernels({ m, n: 8192, k: 8192 }))).toEqual([]);
});

test.skipIf(!hasPtxas)("few rows of many weights: no registers are spilled", () => {
  for (const [dtype, rows] of [
    [i4, [1, 16, 32, 64]],
    [i8, [1, 16]],
    [f8e4m3fn, [16]],
  ] as const) {
    const b = quantized(dtype as typeof i4, [k, n], { groupSize: 128, scale: bf16 });
    const op = matmul({ a: bf16, b });
    for (const m of rows)
      expect(assemblyProblems(op.kernels({ m, n: 8192, k: 28672 }))).toEqual([]);
  }
});

test("four warps multiply together where a block has 64 columns or more than 16 rows, others on their own", () => {
  const b = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
  const sizes = [
    { m: 16, n: 8192, k: 28672 },
    { m: 16, n: 16384, k: 4096 },
    { m: 32, n: 16384, k: 4096 },
  ];
  const instructions = sizes.map((each) => {
    const kernels = matmul({ a: bf16, b }).kernels(each);
    const text = kernels.map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module)).join();
    return ["wgmma.mma_async", "mma.sync"].filter((name) => text.includes(name));
  });
  expect(instructions).toEqual([["wgmma.mma_async"], ["mma.sync"], ["wgmma.mma_async"]]);
});

test("steps of 256 are refused where half of one would be left over", () => {
  const spec = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
  for (const configuration of ofLines) {
    const op = matmul({ a: bf16, b: spec, configuration });
    expect(codeOf(() => op.plan({ m: 1, n: 64, k: 384 }))).toBe("TW9904");
    expect(op.plan({ m: 1, n: 64, k: 512 }).configuration).toEqual(configuration);
  }
});

test("k that is no multiple of 8: the skinny kernel, whose rows of a TMA fetches, is refused and never chosen; others are right", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  const spec = specs["i4, groups, zero points"];
  if (spec === undefined) throw new Error("no such case");
  for (const depth of [1, 133, 255]) {
    await agrees(device, spec, [swapAB, plain], depth, 32);
    for (const configuration of [skinny, ...inTurns, ...ofLines])
      expect(
        codeOf(() =>
          matmul({ a: bf16, b: spec as never, configuration }).plan({ m: 3, n: 32, k: depth }),
        ),
      ).toBe("TW9904");
  }
  const op = matmul({ a: bf16, b: spec as never });
  expect(op.plan({ m: 3, n: 8192, k: 28672 }).configuration.kernel).toBe("skinny");
  for (const k of [28671, 28668])
    expect(op.plan({ m: 3, n: 8192, k }).configuration.kernel).not.toBe("skinny");
  device.dispose();
});

test("mistakes are reported", () => {
  const never = (value: unknown): never => value as never;
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9902", () => quantized(i4, [k, n], { scale: f32 })],
    ["TW9902", () => quantized(i4, [k, n], { scale: bf16, as: never(f32) })],
    ["TW9902", () => quantized(i4, [k, n], { scale: bf16, zeroPoint: never(i8) })],
    ["TW9902", () => quantized(f8e5m2, [k, n], { scale: bf16, zeroPoint: never(f8e5m2) })],
    ["TW9902", () => quantized(i4, [k, n], { scale: bf16, blockSize: [128, 32] })],
    ["TW9902", () => quantized(i4, [k, n], { scale: bf16, blockSize: never(128) })],
    ["TW9902", () => quantized(i4, [k, n], { scale: bf16, groupSize: 128, blockSize: [128, 128] })],
  ];
  for (const [code, make] of refused) expect(codeOf(make)).toBe(code);
});
