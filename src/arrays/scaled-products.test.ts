/**
 * Products of arrays in formats with scales, against sums in float64 of the numbers that they stand for, on the evaluator and on the
 * simulator, and where tiles are chosen for caches on the CPU.
 */
import { afterEach, describe, expect, test } from "vitest";
import { wgmmaBound } from "../../test/support/fp8-sums.ts";
import { codeOf } from "../../test/support/library-checks.ts";
import { bf16, f32, fromNumbers } from "tilewright";
import { array, astype, grad, mul, nn, sum, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { ScaledFormatName } from "../formats/scaled/formats.ts";
import { open } from "../runtime/open.ts";
import { Random } from "../support/random.ts";

afterEach(() => useDevice());

async function onBoth(body: (kind: string) => Promise<void>): Promise<void> {
  await useDevice("evaluator");
  await body("evaluator");
  const device = await open("simulator", { onNotes: () => undefined });
  try {
    await useDevice(device);
    await body("simulator");
  } finally {
    await useDevice();
    device.dispose();
  }
}

function normal(shape: readonly number[], seed: number): NDArray<"f32"> {
  const random = new Random(seed);
  const count = shape.reduce((all, each) => all * each, 1);
  return array(
    fromNumbers(
      f32,
      shape,
      Float64Array.from({ length: count }, () => random.normal()),
    ),
  );
}

async function numbersOf(x: NDArray): Promise<readonly number[]> {
  const { data } = await astype(x, "f64").read();
  return Array.from(data, Number);
}

type Sizes = readonly [batch: number, m: number, n: number, k: number];

/** Σ a[b, i, k] · b[b, j, k], and the sums of magnitudes. */
function productOf(a: readonly number[], b: readonly number[], [batch, m, n, k]: Sizes) {
  const [sums, sizes]: [number[], number[]] = [[], []];
  for (let each = 0; each < batch; each++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let [total, size] = [0, 0];
        for (let l = 0; l < k; l++) {
          const term = (a[(each * m + i) * k + l] ?? NaN) * (b[(each * n + j) * k + l] ?? NaN);
          [total, size] = [total + term, size + Math.abs(term)];
        }
        sums.push(total);
        sizes.push(size);
      }
  return { sums, sizes };
}

/** Within a rounding of f32 for each term, and one of the result's format. */
function expectNear(
  found: readonly number[],
  { sums, sizes }: ReturnType<typeof productOf>,
  k: number,
  rounding = 2 ** -23,
): void {
  expect(found.length).toBe(sums.length);
  for (const [i, total] of sums.entries()) {
    const bound = (k + 4) * 2 ** -23 * (sizes[i] ?? 0) + rounding * Math.abs(total);
    expect(Math.abs((found[i] ?? NaN) - total), `element ${i}`).toBeLessThanOrEqual(bound);
  }
}

describe("nn.scaledMatmul", () => {
  // Behaviours 48 to 50 and 58: every format, mixed ones, one row, a batch, k that blocks do not divide.
  test.each<readonly [ScaledFormatName | null, ScaledFormatName | null, Sizes]>([
    ["mxfp8e4m3", "mxfp8e4m3", [1, 5, 7, 96]],
    ["mxfp8e4m3", "mxfp4", [2, 3, 4, 64]],
    ["nvfp4", "nvfp4", [1, 1, 9, 48]],
    ["mxfp6e2m3", "mxfp6e3m2", [1, 3, 3, 50]],
    ["fp8Block1x128", "fp8Block128x128", [1, 2, 130, 200]],
    [null, "mxfp4", [1, 2, 6, 64]],
  ])("%s by %s, %j", async (left, right, sizes) => {
    const [batch, m, n, k] = sizes;
    await onBoth(async (kind) => {
      const lead = batch === 1 ? [] : [batch];
      const [x, y] = [normal([...lead, m, k], 1), normal([...lead, n, k], 2)];
      const a = left === null ? astype(x, "bf16") : nn.quantizeBlocks(x, left);
      const b = right === null ? astype(y, "bf16") : nn.quantizeBlocks(y, right);
      const numbers = async (factor: typeof a) =>
        numbersOf("format" in factor ? nn.dequantizeBlocks(factor, "f64") : factor);
      const wanted = productOf(await numbers(a), await numbers(b), sizes);
      const found = nn.scaledMatmul(a, b);
      expect(found.dtype, kind).toBe("f32");
      expectNear(await numbersOf(found), wanted, k);
      if (left === "mxfp8e4m3")
        expectNear(await numbersOf(nn.scaledMatmul(a, b, { dtype: "bf16" })), wanted, k, 2 ** -8);
    });
  });

  test("FP8 by blocks of 128 is multiplied as it is where there is much of it", async () => {
    const [m, n, k] = [16, 160, 448];
    const [x, y] = [normal([m, k], 7), normal([n, k], 8)];
    await onBoth(async (kind) => {
      const a = nn.quantizeBlocks(x, "fp8Block1x128");
      const b = nn.quantizeBlocks(y, "fp8Block128x128");
      const [left, right] = [a, b].map((each) => nn.dequantizeBlocks(each, "f64"));
      const wanted = productOf(
        await numbersOf(left as NDArray),
        await numbersOf(right as NDArray),
        [1, m, n, k],
      );
      const found = await numbersOf(nn.scaledMatmul(a, b));
      // Sums of 128 of FP8, of which each 32 products are cut off after 13 bits.
      const bound =
        kind === "evaluator" ? (k + 4) * 2 ** -23 : wgmmaBound(k, "promoted") + 2 ** -22;
      const errors = wanted.sums.map(
        (sum, i) => Math.abs((found[i] ?? NaN) - sum) / (wanted.sizes[i] ?? NaN),
      );
      expect(Math.max(...errors)).toBeLessThanOrEqual(bound);
      // Devices multiply FP8, which f32 sums would not err as much as.
      if (kind !== "evaluator") expect(Math.max(...errors)).toBeGreaterThan(2 ** -15);
    });
  });

  test.each<readonly [m: number, n: number, k: number]>([
    [16, 160, 448],
    [70, 130, 256],
    [1, 128, 1024],
  ])("FP8 by blocks of 128 on the CPU, %i × %i × %i", async (m, n, k) => {
    const [x, y] = [normal([m, k], 11), normal([n, k], 12)];
    const device = await open("cpu", { onNotes: () => undefined });
    try {
      await useDevice(device);
      const a = nn.quantizeBlocks(x, "fp8Block1x128");
      const b = nn.quantizeBlocks(y, "fp8Block128x128");
      const numbers = async (factor: typeof a | typeof b) =>
        numbersOf(nn.dequantizeBlocks(factor, "f64"));
      const wanted = productOf(await numbers(a), await numbers(b), [1, m, n, k]);
      expectNear(await numbersOf(nn.scaledMatmul(a, b)), wanted, k);
    } finally {
      await useDevice();
      device.dispose();
    }
  });

  test("scales in tiles give the same bits, those of another order do not", async () => {
    const [x, y] = [normal([6, 128], 3), normal([5, 128], 4)];
    const [a, b] = [nn.quantizeBlocks(x, "mxfp8e4m3"), nn.quantizeBlocks(y, "mxfp8e4m3")];
    const plain = await numbersOf(nn.scaledMatmul(a, b));
    const tiled = nn.withScaleLayout(a, "tiled");
    expect(await numbersOf(nn.scaledMatmul(tiled, b))).toEqual(plain);
    const code = nn.quantizeBlocks(normal([6, 128], 5), "mxfp8e4m3").scales;
    expect(await numbersOf(nn.scaledMatmul({ ...a, scales: code }, b))).not.toEqual(plain);
  });

  test("arrays that do not fit are refused", () => {
    const a = nn.quantizeBlocks(normal([4, 64], 1), "mxfp4");
    expect(codeOf(() => nn.scaledMatmul(a, normal([8, 32], 2)))).toBe("TW9326");
    const across = nn.quantizeBlocks(normal([64, 64], 1), "mxfp4", { axis: 0 });
    expect(codeOf(() => nn.scaledMatmul(a, across))).toBe("TW9326");
    expect(codeOf(() => nn.scaledMatmul(a, 3 as never))).toBe("TW4023");
  });
});

describe("nn.scaledDotGeneral", () => {
  const formats = ["mxfp8e4m3", "mxfp8e4m3", "mxfp8e5m2"] as const;

  test("sums the axes that are asked for, beside a batch", async () => {
    const [x, y] = [normal([3, 64, 2], 6), normal([64, 2, 5], 7)];
    await onBoth(async () => {
      const found = nn.scaledDotGeneral(x, y, {
        contracting: [[1], [0]],
        batch: [[2], [1]],
        formats,
      });
      expect(found.shape).toEqual([2, 3, 5]);
      const [left, right] = [await numbersOf(x), await numbersOf(y)];
      const numbers = await numbersOf(found);
      for (let b = 0; b < 2; b++)
        for (let i = 0; i < 3; i++)
          for (let j = 0; j < 5; j++) {
            let [total, size] = [0, 0];
            for (let l = 0; l < 64; l++) {
              const term =
                (left[(i * 64 + l) * 2 + b] ?? NaN) * (right[(l * 2 + b) * 5 + j] ?? NaN);
              [total, size] = [total + term, size + Math.abs(term)];
            }
            // Elements of both are rounded to 3 bits after the first.
            const far = Math.abs((numbers[(b * 3 + i) * 5 + j] ?? NaN) - total);
            expect(far).toBeLessThanOrEqual(size * 2 ** -3);
          }
    });
  });

  test("gradients are products of quantised arrays (59)", async () => {
    const [x, y, c] = [normal([4, 64], 8), normal([6, 64], 9), normal([4, 6], 10)];
    const loss = (a: NDArray<"f32">, b: NDArray<"f32">) =>
      sum(mul(nn.scaledDotGeneral(a, b, { formats }), c));
    await onBoth(async () => {
      const found = [
        await numbersOf(grad((a: NDArray<"f32">) => loss(a, y))(x)),
        await numbersOf(grad((b: NDArray<"f32">) => loss(x, b))(y)),
      ];
      const [a, b, g] = [await numbersOf(x), await numbersOf(y), await numbersOf(c)];
      const turned = (from: readonly number[], rows: number, columns: number) =>
        Array.from(
          { length: rows * columns },
          (_, i) => from[(i % rows) * columns + Math.floor(i / rows)] ?? NaN,
        );
      const exact = [
        productOf(g, turned(b, 6, 64), [1, 4, 64, 6]),
        productOf(turned(g, 4, 6), turned(a, 4, 64), [1, 6, 64, 4]),
      ];
      for (const [side, { sums, sizes }] of exact.entries())
        for (const [i, total] of sums.entries()) {
          const far = Math.abs((found[side]?.[i] ?? NaN) - total);
          expect(far, `gradient ${side}, ${i}`).toBeLessThanOrEqual((sizes[i] ?? 0) * 0.2);
        }
    });
  });

  test("without formats it is the product itself, and axes that do not fit are refused", async () => {
    const [x, y] = [normal([3, 8], 11), normal([2, 8], 12)];
    const found = nn.scaledDotGeneral(x, y, { formats: [null, null, null] });
    const exact = productOf(await numbersOf(x), await numbersOf(y), [1, 3, 2, 8]);
    expectNear(await numbersOf(found), exact, 8);
    expect(nn.scaledDotGeneral(astype(x, "bf16"), astype(y, "bf16")).dtype).toBe(bf16.name);
    expect(codeOf(() => nn.scaledDotGeneral(x, y, { contracting: [[0], [0]] }))).toBe("TW9326");
    expect(
      codeOf(() =>
        nn.scaledDotGeneral(x, y, {
          contracting: [
            [1, 1],
            [1, 1],
          ],
        }),
      ),
    ).toBe("TW9326");
  });
});
