/** Operands that are computed on their way to the tensor cores, and weights in few bits. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bf16, f16, f32, f8e4m3fn, i4, i8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { Device } from "../../../device/device.ts";
import { tensor, cdiv, dim, full } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { codeOf } from "../../../../test/support/library-checks.ts";
import type { MatmulConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { dequantizeWeights, quantizeWeights } from "../weights/quantize-weights.ts";
import { quantized } from "../weights/quantized.ts";
import type { WeightFormat } from "../weights/quantized.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];

const swapAB: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 8, stages: 3 },
  ...{ schedule: "tiles", swapAB: true, cluster: 1 },
};

const plain: MatmulConfiguration = {
  ...{ kernel: "plain", rows: 64, columns: 64, depth: 64, splitK: 1 },
};

const skinny: MatmulConfiguration = {
  ...{ kernel: "skinny", rows: 16, columns: 16, sliceK: 1, stages: 3, splitK: 3 },
};

/** Whole numbers, so that sums of few of them are exact. */
function whole(count: number, limit: number, seed: number): Float64Array {
  const random = new Random(seed);
  return Float64Array.from({ length: count }, () => random.below(2 * limit + 1) - limit);
}

function product(
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  [rows, columns, depth]: readonly [number, number, number],
): Float64Array {
  return Float64Array.from({ length: rows * columns }, (_, index) => {
    const [i, j] = [Math.floor(index / columns), index % columns];
    let sum = 0;
    for (let l = 0; l < depth; l += 1)
      sum += (a[i * depth + l] ?? NaN) * (b[l * columns + j] ?? NaN);
    return sum + 0;
  });
}

interface WeightCase {
  readonly name: string;
  readonly dtype: DType<WeightFormat>;
  readonly scale: DType<"bf16"> | DType<"f16">;
  readonly group?: number;
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly configuration?: MatmulConfiguration;
}

const cases: readonly WeightCase[] = [
  {
    name: "4 bits in groups",
    dtype: i4,
    scale: bf16,
    group: 128,
    sizes: [5, 72, 384],
    configuration: swapAB,
  },
  {
    name: "4 bits, four consumers, split",
    dtype: i4,
    scale: bf16,
    group: 256,
    sizes: [9, 136, 640],
    configuration: { ...swapAB, consumers: 4, columns: 16, schedule: "stream-k" },
  },
  {
    name: "4 bits, few rows",
    dtype: i4,
    scale: bf16,
    group: 128,
    sizes: [5, 72, 384],
    configuration: skinny,
  },
  {
    name: "4 bits, few rows, more of them than a block has, whole k",
    dtype: i4,
    scale: f16,
    group: 256,
    sizes: [18, 24, 256],
    configuration: { ...skinny, rows: 8, columns: 64, sliceK: 4, stages: 4, splitK: 1 },
  },
  {
    name: "FP8 by columns, few rows",
    dtype: f8e4m3fn,
    scale: bf16,
    sizes: [20, 40, 200],
    configuration: { ...skinny, rows: 32 },
  },
  { name: "8 bits by columns", dtype: i8, scale: f16, sizes: [3, 64, 200], configuration: swapAB },
  {
    name: "FP8 in groups",
    dtype: f8e4m3fn,
    scale: bf16,
    group: 128,
    sizes: [70, 64, 130],
    configuration: { ...swapAB, columns: 64 },
  },
  {
    name: "columns that TMA cannot take",
    dtype: i4,
    scale: bf16,
    group: 128,
    sizes: [3, 7, 130],
  },
  { name: "nothing to sum", dtype: i4, scale: bf16, group: 128, sizes: [3, 8, 0] },
];

const emulated = new Set(["4 bits in groups", "4 bits, few rows"]);

async function weightsAgree(device: Device, one: WeightCase): Promise<void> {
  const { dtype, scale, group, sizes, configuration } = one;
  const [rows, columns, depth] = sizes;
  const b = quantized(dtype, [k, n], { scale, ...(group !== undefined && { groupSize: group }) });
  // Scales are powers of two, and stored numbers whole ones, so that every product is exact.
  const groups = group === undefined ? 1 : Math.ceil(depth / group);
  const stored = whole(depth * columns, 6, 1);
  const random = new Random(2);
  const scales = Float64Array.from({ length: groups * columns }, () => 2 ** (random.below(4) - 2));
  const most = dtype === i4 ? 7 : dtype === i8 ? 127 : 448;
  const values = stored.map((value, index) => {
    const [i, j] = [Math.floor(index / columns), index % columns];
    const of = Math.floor(i / (group ?? Infinity)) * columns + j;
    // One element of each group has the greatest number, which makes the scale what it is.
    return (i % (group ?? depth) === 0 ? most : value) * (scales[of] ?? NaN);
  });
  const x = fromNumbers(f32, [depth, columns], values);
  const packed = await device.run(quantizeWeights({ x: f32, b }), { x });
  const back = await device.run(dequantizeWeights({ x: f32, b }), packed, {
    dimensions: { k: depth },
  });
  expect(toNumbers(back.x).map((value) => value + 0)).toEqual(values.map((value) => value + 0));
  const numbers = whole(rows * depth, 4, 3);
  const op = matmul({ a: scale, b, out: f32, ...(configuration && { configuration }) });
  const a = fromNumbers(scale, [rows, depth], numbers);
  const { out } = await device.run(op, { a, b: packed.b, bScale: packed.bScale });
  expect(toNumbers(out).map((value) => value + 0)).toEqual(product(numbers, values, sizes));
}

describe("weights in few bits", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases)("$name", (one) => weightsAgree(device, one));

  test("on the emulator", { timeout: 600_000 }, async () => {
    const emulator = await open("emulator", { onNotes: () => undefined });
    const few = cases.filter(({ name }) => emulated.has(name));
    expect(few.length).toBe(emulated.size);
    for (const one of few) await weightsAgree(emulator, one);
    emulator.dispose();
  });

  test("few rows have a kernel of their own, where TMA can take rows of a", () => {
    const op = matmul({ a: bf16, b: quantized(i4, [k, n], { groupSize: 128, scale: bf16 }) });
    expect(
      [1, 8, 9, 16].map((rows) => op.plan({ m: rows, n: 8192, k: 28672 }).configuration),
    ).toEqual(
      [8, 8, 16, 16].map((rows) => ({
        ...{ kernel: "skinny", rows, columns: 16, sliceK: 4, splitK: 1, stages: 12 },
      })),
    );
    // Blocks of 128 columns fill the processors once, and those of 16 rows are for more than 8.
    expect(
      [1, 16].map((rows) => op.plan({ m: rows, n: 16384, k: 4096 }).configuration),
    ).toMatchObject([
      { rows: 8, columns: 64, splitK: 2 },
      { rows: 16, columns: 32, splitK: 1 },
    ]);
    // Half a step would be left over.
    expect(op.plan({ m: 1, n: 8192, k: 28672 - 128 }).configuration).toMatchObject({ columns: 64 });
    const bytes = matmul({ a: bf16, b: quantized(i8, [k, n], { groupSize: 128, scale: bf16 }) });
    expect(
      [1, 16].map((rows) => bytes.plan({ m: rows, n: 8192, k: 28672 }).configuration),
    ).toMatchObject([8, 16].map((rows) => ({ rows, columns: 16, sliceK: 4, splitK: 1 })));
    const kernelOf = (rows: number, depth: number): string =>
      op.plan({ m: rows, n: 8192, k: depth }).configuration.kernel;
    expect([1, 16, 32, 64].map((rows) => kernelOf(rows, 28672))).toEqual(Array(4).fill("skinny"));
    expect(kernelOf(4096, 28672)).toBe("persistent");
    expect(kernelOf(16, 28676)).toBe("persistent");
  });

  test("groups of zeros stay zeros, and others are rounded to the nearest", async () => {
    const b = quantized(i4, [k, n], { groupSize: 128, scale: bf16 });
    const values = Float64Array.from({ length: 256 * 2 }, (_, index) => {
      const [i, j] = [Math.floor(index / 2), index % 2];
      return j === 0 && i < 128 ? 0 : (i % 29) / 4 - 3;
    });
    const x = fromNumbers(f32, [256, 2], values);
    const packed = await device.run(quantizeWeights({ x: f32, b }), { x });
    const back = await device.run(dequantizeWeights({ x: f32, b }), packed, {
      dimensions: { k: 256 },
    });
    const scales = toNumbers(packed.bScale);
    toNumbers(back.x).forEach((value, index) => {
      const [i, j] = [Math.floor(index / 2), index % 2];
      const scale = scales[Math.floor(i / 128) * 2 + j] ?? NaN;
      expect(Math.abs(value - (values[index] ?? NaN))).toBeLessThanOrEqual(0.51 * scale);
    });
    expect(scales[0]).toBe(0);
  });
});

describe("prologues", () => {
  test.each(["a", "b"] as const)("of %s see what belongs to them", async (operand) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const sizes = [24, 40, 192] as const;
    const [rows, columns, depth] = sizes;
    const [ofA, ofB] = [whole(rows * depth, 4, 5), whole(depth * columns, 4, 6)];
    const along = operand === "a" ? rows : columns;
    const factors = whole(3 * along, 3, 7);
    for (const group of [64, 192]) {
      const groups = depth / group;
      const inputs = { factor: tensor(f32, [cdiv(k, group), operand === "a" ? m : n]) };
      const spec = { as: bf16, inputs: ["factor"] as const };
      const op = matmul({
        ...{ a: bf16, b: bf16, out: f32, inputs },
        prologue:
          operand === "a"
            ? { a: { ...spec, compute: ({ a, factor }) => a.cast(f32).mul(factor).cast(bf16) } }
            : { b: { ...spec, compute: ({ b, factor }) => b.cast(f32).mul(factor).cast(bf16) } },
      });
      const given = {
        a: fromNumbers(bf16, [rows, depth], ofA),
        b: fromNumbers(bf16, [depth, columns], ofB),
        factor: fromNumbers(f32, [groups, along], factors.subarray(0, groups * along)),
      };
      const { out } = await device.run(op, given);
      const factorOf = (l: number, position: number): number =>
        factors[Math.floor(l / group) * along + position] ?? NaN;
      const expected =
        operand === "a"
          ? product(
              ofA.map((value, index) => value * factorOf(index % depth, Math.floor(index / depth))),
              ofB,
              sizes,
            )
          : product(
              ofA,
              ofB.map(
                (value, index) => value * factorOf(Math.floor(index / columns), index % columns),
              ),
              sizes,
            );
      expect(toNumbers(out).map((value) => value + 0)).toEqual(expected);
    }
    device.dispose();
  });

  test.each(["persistent", "plain"] as const)(
    "may give f32, which the %s kernel multiplies as tf32",
    async (kind) => {
      const device = await open("simulator", { onNotes: () => undefined });
      const sizes = [8, 16, 64] as const;
      const [rows, columns, depth] = sizes;
      const [ofA, ofB] = [whole(rows * depth, 4, 5), whole(depth * columns, 4, 6)];
      const op = matmul({
        ...{ a: f32, precision: "tf32" as const },
        b: tensor(f32, [k, n], { strides: [1, k] }),
        prologue: { b: { as: f32, compute: ({ b }) => b.mul(2) } },
        configuration:
          kind === "persistent"
            ? { ...swapAB, columns: 8 }
            : { kernel: "plain", rows: 64, columns: 32, depth: 16, splitK: 1 },
      });
      const byColumns = Float64Array.from({ length: depth * columns }, (_, index) => {
        const [j, l] = [Math.floor(index / depth), index % depth];
        return ofB[l * columns + j] ?? NaN;
      });
      const given = {
        a: fromNumbers(f32, [rows, depth], ofA),
        b: fromNumbers(f32, [columns, depth], byColumns),
      };
      const dimensions = { m: rows, n: columns, k: depth };
      const { out } = await device.run(op, given, { dimensions });
      const doubled = ofB.map((value) => 2 * value);
      expect(toNumbers(out).map((value) => value + 0)).toEqual(product(ofA, doubled, sizes));
      device.dispose();
    },
  );

  test("of both operands are computed by the plain kernel, which says so", async () => {
    const device = await open("simulator", { onNotes: () => undefined });
    const op = matmul({
      ...{ a: i8, b: i8, out: f32 },
      prologue: {
        a: { as: bf16, compute: ({ a }) => a.cast(bf16).mul(2) },
        b: { as: bf16, compute: ({ b }) => b.cast(bf16).add(1) },
      },
    });
    const sizes = [5, 6, 40] as const;
    const [ofA, ofB] = [whole(5 * 40, 9, 8), whole(40 * 6, 9, 9)];
    expect(op.plan({ m: 5, n: 6, k: 40 }).notes.join()).toContain(
      "takes one operand from registers",
    );
    const { out } = await device.run(op, {
      a: fromNumbers(i8, [5, 40], ofA),
      b: fromNumbers(i8, [40, 6], ofB),
    });
    const expected = product(
      ofA.map((value) => 2 * value),
      ofB.map((value) => value + 1),
      sizes,
    );
    expect(toNumbers(out).map((value) => value + 0)).toEqual(expected);
    device.dispose();
  });

  test.each([
    ["of one operand, A and B swapped", false],
    ["of both operands", true],
  ] as const)("%s: what overhangs k adds nothing", async (_, both) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const sizes = [9, 16, 72] as const;
    const [rows, columns, depth] = sizes;
    const [ofA, ofB] = [whole(rows * depth, 4, 10), whole(depth * columns, 4, 11)];
    const op = matmul({
      ...{ a: bf16, b: bf16, out: f32 },
      prologue: {
        // Of a zero it makes an infinity in one case, and one in the other.
        b: {
          as: bf16,
          compute: ({ b }) =>
            both
              ? b.add(1)
              : b
                  .cast(f32)
                  .eq(0)
                  .select(full(f32, b.shape, Infinity), b.cast(f32))
                  .cast(bf16),
        },
        ...(both && {
          a: { as: bf16, compute: ({ a }: { readonly a: Tile<"bf16"> }) => a.add(1) },
        }),
      },
      ...(!both && { configuration: swapAB }),
    });
    const numbers = both ? ofB : ofB.map((value) => (value === 0 ? 1 : value));
    const { out } = await device.run(op, {
      a: fromNumbers(bf16, [rows, depth], ofA),
      b: fromNumbers(bf16, [depth, columns], numbers),
    });
    const expected = both
      ? product(
          ofA.map((value) => value + 1),
          ofB.map((value) => value + 1),
          sizes,
        )
      : product(ofA, numbers, sizes);
    expect(toNumbers(out).map((value) => value + 0)).toEqual(expected);
    device.dispose();
  });

  test("mistakes are reported", () => {
    const never = (value: unknown): never => value as never;
    const fits = { m: 8, n: 8, k: 64 };
    const refused: readonly (readonly [string, () => unknown])[] = [
      ["TW9902", () => quantized(never(f32), [k, n], { scale: bf16 })],
      ["TW9902", () => quantized(i4, never([k]), { scale: bf16 })],
      ["TW9902", () => quantized(i4, [k, n], { scale: bf16, groupSize: 48 })],
      ["TW9902", () => quantized(i4, [k, n], { scale: never(f32) })],
      ["TW1033", () => quantized(i4, [k, n], never({ scale: bf16, zeros: i4 }))],
      ["TW9902", () => quantizeWeights({ x: f32, b: never(bf16) })],
      ["TW9905", () => matmul({ a: bf16, b: i8, prologue: { b: never({ as: bf16 }) } })],
      ["TW9905", () => matmul({ a: bf16, b: i8, prologue: { b: never({ compute: () => 1 }) } })],
      [
        "TW9905",
        () =>
          matmul({
            a: bf16,
            b: i8,
            prologue: { b: { as: bf16, inputs: never(["x"]), compute: ({ b }) => b.cast(bf16) } },
          }),
      ],
      [
        "TW9902",
        () =>
          matmul({
            a: bf16,
            b: i8,
            inputs: { s: tensor(f32, [m, n]) },
            prologue: { b: { as: bf16, inputs: ["s"], compute: ({ b }) => b.cast(bf16) } },
          }),
      ],
      [
        "TW9905",
        () =>
          matmul({ a: bf16, b: i8, prologue: { b: { as: bf16, compute: ({ b }) => b } } }).kernels({
            m: 8,
            n: 8,
            k: 64,
          }),
      ],
      [
        "TW9905",
        () =>
          matmul({
            ...{ a: bf16, b: quantized(i4, [k, n], { scale: bf16 }) },
            inputs: { bScale: tensor(f32, [n]) },
          }),
      ],
      ["TW9904", () => matmul({ a: bf16, b: bf16, configuration: skinny }).plan(fits)],
      ...[{ columns: 64 }, { splitK: 0 }, { stages: 90 }, { stages: 1 }].map(
        (wrong) =>
          [
            "TW9904",
            () =>
              matmul({
                a: bf16,
                b: quantized(i4, [k, n], { scale: bf16 }),
                configuration: { ...skinny, ...wrong } as MatmulConfiguration,
              }).plan(fits),
          ] as const,
      ),
      // Steps of 64 would have numbers of four groups, or half of what is stored together.
      [
        "TW9904",
        () =>
          matmul({
            ...{ a: bf16, b: i8, inputs: { s: tensor(f32, [cdiv(k, 16), n]) } },
            prologue: {
              b: { as: bf16, inputs: ["s"], compute: ({ b, s }) => b.cast(f32).mul(s).cast(bf16) },
            },
            configuration: plain,
          }).plan(fits),
      ],
      [
        "TW9904",
        () =>
          matmul({
            ...{ a: bf16, b: quantized(i4, [k, n], { scale: bf16 }), configuration: plain },
          }).plan(fits),
      ],
      ...[{ rows: 100 }, { columns: 8 }, { depth: 48 }, { depth: 8 }].map(
        (wrong) =>
          [
            "TW9904",
            () =>
              matmul({ a: bf16, b: bf16, configuration: { ...plain, ...wrong } as never }).plan(
                fits,
              ),
          ] as const,
      ),
      [
        "TW9904",
        () =>
          matmul({
            a: bf16,
            b: quantized(i4, [k, n], { scale: bf16 }),
            configuration: { ...swapAB, swapAB: false },
          }).plan({ m: 8, n: 8, k: 64 }),
      ],
    ];
    for (const [code, make] of refused) expect(codeOf(make)).toBe(code);
  });
});
