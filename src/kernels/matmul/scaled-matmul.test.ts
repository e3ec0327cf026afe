/** Products of operands in formats with scales, against sums in float64 of the numbers that they stand for. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { dealtTo } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { decodeFloat } from "../../formats/floats.ts";
import { fromElements, fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { dequantizeElements } from "../../formats/scaled/dequantize.ts";
import { scaledFormats } from "../../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../../formats/scaled/formats.ts";
import { scaleShape } from "../../formats/scaled/layout.ts";
import type { ScaleLayout } from "../../formats/scaled/layout.ts";
import { dim, tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { scaledMatmul } from "./scaled-matmul.ts";

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

/** An operand: its arrays by name, and the numbers that they stand for. */
function drawn(
  name: "a" | "b",
  of: ScaledFormatName | "bf16",
  shape: readonly number[],
  layout: ScaleLayout,
  random: Random,
) {
  const count = shape.reduce((all, each) => all * each, 1);
  if (of === "bf16") {
    const numbers = Float64Array.from({ length: count }, () => random.below(9) - 4);
    return { arrays: { [name]: fromNumbers(bf16, shape, numbers) }, numbers };
  }
  const format: ScaledFormat = scaledFormats[of];
  const finite = (dtype: string, bits: number): number => {
    for (;;) {
      const code = random.below(1 << bits);
      if (Number.isFinite(decodeFloat(dtype as "f8e4m3fn", code))) return code;
    }
  };
  const bits = format.element.name.startsWith("f4")
    ? 4
    : format.element.name.startsWith("f6")
      ? 6
      : 8;
  const elements = Uint8Array.from({ length: count }, () => finite(format.element.name, bits));
  const places = scaleShape(format, shape, shape.length - 1, layout);
  const total = places.reduce((all, each) => all * each, 1);
  const isF32 = format.scale === f32;
  const scales = isF32
    ? Float32Array.from(
        { length: total },
        () => 2 ** (random.below(5) - 2) * (1 + random.below(4) / 4),
      )
    : Uint8Array.from({ length: total }, () =>
        format.scale.name === "f8e8m0fnu" ? 124 + random.below(7) : finite("f8e4m3fn", 7),
      );
  return {
    arrays: {
      [name]: fromElements(format.element, shape, elements as never),
      [`${name}Scale`]: fromElements(format.scale, places, scales as never),
    },
    numbers: dequantizeElements(format, {
      ...{ shape, elements: elements as never, scales: scales as never, layout },
      globalScale: 1,
    }),
  };
}

interface Case {
  readonly name: string;
  readonly a: ScaledFormatName | "bf16";
  readonly b: ScaledFormatName | "bf16";
  readonly sizes: readonly [batch: number, m: number, n: number, k: number];
  readonly layouts?: readonly [ScaleLayout, ScaleLayout];
  readonly globalScale?: number;
  readonly dequantize?: "prologue" | "before";
}

// Behaviours 48 to 51, 56 and 57 of products: formats alone and mixed, odd sizes, a batch, every layout of scales, a global scale.
const cases: readonly Case[] = [
  {
    name: "MXFP8, scales in tiles",
    a: "mxfp8e4m3",
    b: "mxfp8e4m3",
    sizes: [1, 70, 40, 160],
    layouts: ["tiled", "padded"],
    dequantize: "before",
  },
  {
    name: "MXFP8, packed",
    a: "mxfp8e4m3",
    b: "mxfp8e4m3",
    sizes: [1, 17, 40, 160],
    layouts: ["padded", "padded"],
    dequantize: "prologue",
  },
  {
    name: "MXFP4, packed, scales in tiles",
    ...{ a: "bf16", b: "mxfp4", sizes: [1, 3, 72, 288] },
    layouts: ["plain", "tiled"],
    dequantize: "prologue",
    globalScale: 3,
  },
  {
    name: "NVFP4, packed, a batch",
    ...{ a: "nvfp4", b: "nvfp4", sizes: [3, 2, 24, 80] },
    dequantize: "prologue",
    globalScale: 0.25,
  },
  {
    name: "MXFP6, packed, long k",
    ...{ a: "bf16", b: "mxfp6e3m2", sizes: [1, 1, 16, 4160] },
    dequantize: "prologue",
  },
  {
    name: "NVFP4 with a global scale",
    a: "nvfp4",
    b: "nvfp4",
    sizes: [1, 5, 24, 144],
    layouts: ["plain", "tiled"],
    globalScale: 0.375,
  },
  { name: "MXFP8 by MXFP4, a batch", a: "mxfp8e5m2", b: "mxfp4", sizes: [2, 3, 16, 96] },
  { name: "bf16 by MXFP6", a: "bf16", b: "mxfp6e2m3", sizes: [1, 1, 33, 64] },
  {
    name: "FP8 by blocks",
    a: "fp8Block1x128",
    b: "fp8Block128x128",
    sizes: [1, 20, 136, 256],
    globalScale: 0.5,
  },
  {
    name: "FP8 by blocks, a batch",
    a: "fp8Block1x128",
    b: "fp8Block1x128",
    sizes: [2, 4, 16, 160],
  },
];

describe.each(["simulator", "emulator"] as const)("products with scales on the %s", (kind) => {
  test.each(dealtTo(kind, cases))(
    "$name",
    async ({ a, b, sizes, layouts, globalScale, dequantize }) => {
      const [batch, m, n, k] = sizes;
      const device = devices.get(kind);
      if (device === undefined) throw new Error(`${kind} is not open`);
      const random = new Random(31);
      const lead = batch === 1 ? [] : [batch];
      const [ofA, ofB] = layouts ?? ["plain", "plain"];
      const left = drawn("a", a, [...lead, m, k], ofA, random);
      const right = drawn("b", b, [...lead, n, k], ofB, random);
      const operation = scaledMatmul({
        a: a === "bf16" ? bf16 : a,
        b: b === "bf16" ? bf16 : b,
        ...{ out: f32, batched: batch > 1, scaleLayout: { a: ofA, b: ofB } },
        ...{
          globalScale: globalScale !== undefined,
          ...(dequantize !== undefined && { dequantize }),
        },
        inputs: { bias: tensor(f32, [dim("n")]) },
        epilogue: ({ sums, bias }) => sums.add(bias as never),
      });
      const bias = Float64Array.from({ length: n }, (_, j) => j);
      const { out } = await device.run(operation, {
        ...{ ...left.arrays, ...right.arrays, bias: fromNumbers(f32, [n], bias) },
        ...(globalScale !== undefined && { globalScale: fromNumbers(f32, [1], [globalScale]) }),
      } as never);
      const isFp8 = a.startsWith("fp8");
      const found = toNumbers(out);
      for (let each = 0; each < batch; each++)
        for (let i = 0; i < m; i++)
          for (let j = 0; j < n; j++) {
            let [sum, size] = [0, 0];
            for (let l = 0; l < k; l++) {
              const term =
                (left.numbers[(each * m + i) * k + l] ?? NaN) *
                (right.numbers[(each * n + j) * k + l] ?? NaN);
              [sum, size] = [sum + term, size + Math.abs(term)];
            }
            const wanted = sum * (globalScale ?? 1) + j;
            // Tensor cores cut sums of FP8 off after 13 bits, those of bf16 after 24.
            const bound = size * (isFp8 ? 2 ** -11 : 2 ** -20) + 2 ** -20 * j;
            expect(
              Math.abs((found[(each * m + i) * n + j] ?? NaN) - wanted),
              `${each}, ${i}, ${j}`,
            ).toBeLessThanOrEqual(bound);
          }
    },
  );
});

const byBlocks = { dequantize: undefined, layout: "plain" } as const;

// Rows of groups, an empty one among them, and rows behind all groups, which are 0.
describe.each(["simulator", "emulator"] as const)("rows in groups on the %s", (kind) => {
  test.each(
    dealtTo(kind, [
      { a: "bf16", b: "mxfp4", dequantize: "prologue", layout: "plain", relative: 2 ** -20 },
      { a: "mxfp8e4m3", b: "nvfp4", dequantize: "before", layout: "tiled", relative: 2 ** -20 },
      { ...byBlocks, a: "fp8Block1x128", b: "fp8Block128x128", relative: 2 ** -11 },
      { ...byBlocks, a: "fp8Block128x128", b: "fp8Block1x128", relative: 2 ** -7 },
    ] as const),
  )("$a by $b, $dequantize", async ({ a, b, dequantize, layout, relative }) => {
    const groups = [3, 0, 4];
    const [m, n, k] = [9, b === "fp8Block128x128" ? 136 : 24, 160];
    const device = devices.get(kind);
    if (device === undefined) throw new Error(`${kind} is not open`);
    const random = new Random(32);
    const left = drawn("a", a, [m, k], layout, random);
    const right = drawn("b", b, [groups.length, n, k], "plain", random);
    const operation = scaledMatmul({
      ...{ a: a === "bf16" ? bf16 : a, b, out: f32, grouped: true, globalScale: true },
      ...{ scaleLayout: { a: layout }, ...(dequantize !== undefined && { dequantize }) },
    });
    const { out } = await device.run(operation, {
      ...{ ...left.arrays, ...right.arrays, globalScale: fromNumbers(f32, [1], [0.5]) },
      groupSizes: fromNumbers(i32, [groups.length], groups),
    } as never);
    const found = toNumbers(out);
    const owner = groups.flatMap((size, group) => Array.from({ length: size }, () => group));
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let [sum, size] = [0, 0];
        const group = owner[i];
        for (let l = 0; l < k && group !== undefined; l++) {
          const term =
            (left.numbers[i * k + l] ?? NaN) * (right.numbers[(group * n + j) * k + l] ?? NaN);
          [sum, size] = [sum + term / 2, size + Math.abs(term) / 2];
        }
        // FP8 is summed as it is, or becomes bf16, to which both operands are rounded.
        const bound = size * relative;
        expect(Math.abs((found[i * n + j] ?? NaN) - sum), `${i}, ${j}`).toBeLessThanOrEqual(bound);
      }
  });
});

test("the plan of rows in groups", () => {
  const notesOf = (a: ScaledFormatName | "bf16", b: ScaledFormatName, m: number) =>
    scaledMatmul({ a: a === "bf16" ? bf16 : a, b, grouped: true })
      .plan({ ...{ m, n: 4096, k: 4096 }, g: 8 })
      .notes.join();
  expect(notesOf("bf16", "mxfp4", 64)).toContain("b is dequantised in the prologue");
  expect(notesOf("bf16", "mxfp4", 65536)).toContain("b becomes bf16 first");
  expect(notesOf("fp8Block1x128", "fp8Block128x128", 256)).toContain("FP8 with promoted sums");
  expect(notesOf("fp8Block128x128", "fp8Block128x128", 256)).toContain("a and b become bf16 first");
  const both = { a: "mxfp4", b: "mxfp4", grouped: true, batched: true } as const;
  expect(codeOf(() => scaledMatmul(both))).toBe("TW9905");
  const [configuration] =
    scaledMatmul({ a: bf16, b: "mxfp4" })
      .choices?.candidates({ m: 1, n: 4096, k: 4096 }, targets.sm_90a)
      .filter(({ kernel }) => kernel === "skinny") ?? [];
  expect(configuration).toBeDefined();
  const skinny = {
    a: bf16,
    b: "mxfp4",
    grouped: true,
    configuration: configuration as never,
  } as const;
  expect(codeOf(() => scaledMatmul(skinny))).toBe("TW9904");
});

test("the plan says which way, and what there is not is refused", () => {
  const planned = (a: ScaledFormatName | "bf16", b: ScaledFormatName, m: number) =>
    scaledMatmul({ a: a === "bf16" ? bf16 : a, b }).plan({ m, n: 4096, k: 4096 });
  const notesOf = (...given: Parameters<typeof planned>) => planned(...given).notes.join();
  // Few rows: weights stay as they are. Many: the product of bf16 is faster.
  expect(notesOf("bf16", "mxfp4", 16)).toMatch(
    /^b is dequantised in the prologue; an error of 2\^-19/,
  );
  expect(notesOf("mxfp8e4m3", "mxfp4", 16)).toMatch(/^a becomes bf16 first; b is dequantised/);
  expect(notesOf("mxfp8e4m3", "mxfp8e4m3", 8192)).toMatch(/^a and b become bf16 first; an error/);
  const bytes = (m: number) => planned("bf16", "mxfp4", m).scratchBytes;
  expect(bytes(16)).toBeLessThan(4096 * 4096);
  expect(bytes(8192)).toBeGreaterThanOrEqual(2 * 4096 * 4096);
  expect(notesOf("fp8Block1x128", "fp8Block128x128", 256)).toBe(
    "FP8 with promoted sums: an error of 2^-9.8, of operands in bf16 2^-8.5",
  );
  const refused = (spec: object) => codeOf(() => scaledMatmul(spec as never));
  expect(refused({ a: "mxfp9", b: "mxfp4" })).toBe("TW9901");
  expect(refused({ a: f32, b: "mxfp4" })).toBe("TW9901");
  expect(refused({ a: "mxfp4", b: "mxfp4", scaleLayout: { a: "swizzled" } })).toBe("TW9905");
  expect(refused({ a: "fp8Block1x128", b: "mxfp4", scaleLayout: { a: "tiled" } })).toBe("TW9905");
  expect(refused({ a: bf16, b: "fp8Block1x128", dequantize: "prologue" })).toBe("TW9905");
  expect(refused({ a: bf16, b: "mxfp4", dequantize: "after" })).toBe("TW9905");
  expect(refused({ a: "mxfp4", b: "mxfp4", inputs: { aScale: tensor(f32, [dim("m")]) } })).toBe(
    "TW9905",
  );
});

test("a tuner chooses in products with scales, of each way what its product has", () => {
  const choices = scaledMatmul({ a: bf16, b: "mxfp4" }).choices;
  const kernels = (m: number) =>
    choices?.candidates({ m, n: 4096, k: 4096 }, targets.sm_90a).map(({ kernel }) => kernel) ?? [];
  expect(kernels(16)).toContain("skinny");
  expect(kernels(8192)).toContain("persistent");
  expect(kernels(8192)).not.toContain("skinny");
  expect(choices?.variant).not.toBe(scaledMatmul({ a: bf16, b: "nvfp4" }).choices?.variant);
  // What was chosen for a bucket is possible for all sizes in it.
  for (const m of [3, 300])
    for (const each of choices?.candidates({ m, n: 4096, k: 4096 }, targets.sm_90a) ?? [])
      expect(() =>
        scaledMatmul({ a: bf16, b: "mxfp4", configuration: each as never }).plan({
          ...{ m, n: 4096, k: 4096 },
        }),
      ).not.toThrow();
});
