/**
 * Products whose sums lie in tensor memory: against sums of whole numbers, and of others within bounds of float64, on the simulator and by what is
 * emitted; which are made so, and what is made otherwise.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { assemble } from "../../../../test/support/accepted-assembly.ts";
import { codeOf } from "../../../../test/support/library-checks.ts";
import { randomProducts } from "../../../../test/support/random-products.ts";
import { scheduleSeeds, takesAll } from "../../../../test/support/sample.ts";
import { hasPtxas, textWithoutLines } from "../../../../test/ptxas.ts";
import { wholeProduct } from "../../../../test/support/products/whole-product.ts";
import { bf16, f16, f32, f8e4m3fn, i8 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { dim, tensor } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 64, stages: 3 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};
const sizes = { m: 136, n: 80, k: 144 };

describe("which products these are", () => {
  const kernels = (spec: Parameters<typeof matmul>[0]): readonly (string | undefined)[] =>
    Object.values(targets).map((target) => {
      const { configuration } = matmul(spec).plan(sizes, target);
      return `${target.name} ${(configuration as { readonly kernel: string }).kernel}`;
    });
  test("targets with tensor memory have the persistent kernel, others what they had", () => {
    expect(kernels({ a: bf16, b: bf16 })).toEqual([
      ...["sm_80 plain", "sm_86 plain", "sm_89 plain", "sm_90a persistent"],
      ...["sm_100a persistent", "sm_103a persistent", "sm_120a plain", "sm_121a plain"],
    ]);
    expect(kernels({ a: i8, b: i8 }).slice(4, 6)).toEqual(["sm_100a persistent", "sm_103a plain"]);
  });

  test.each<[string, Parameters<typeof matmul>[0], RegExp]>([
    ["f32 in parts", { a: f32, b: f32, precision: "bf16x3" }, /sums of bf16x3 .* by lanes/],
    ["integers on sm_103a", { a: i8, b: i8 }, /sm_103a does not multiply i8/],
    [
      "computed operands",
      { a: f32, b: bf16, prologue: { a: { as: bf16, compute: ({ a }) => a.cast(bf16) } } },
      /a is computed by lanes/,
    ],
  ])("%s: a note says why not", (_, spec, why) => {
    const { notes } = matmul(spec).plan(sizes, targets.sm_103a);
    expect(notes?.join()).toMatch(why);
  });

  test.each<[string, Partial<PersistentConfiguration>]>([
    ["256 rows", { consumers: 4 }],
    ["8 columns of 128 rows", { columns: 8 }],
    ["sums handed on", { schedule: "stream-k" }],
  ])("tiles of %s are refused", (_, changed) => {
    const op = matmul({ a: bf16, b: bf16, configuration: { ...usual, ...changed } });
    expect(codeOf(() => op.plan(sizes, targets.sm_100a))).toBe("TW9904");
  });

  test("many tiles are wide, and few rows lie along columns, in parts of k", () => {
    const chosen = (rows: number, columns: number, depth: number): unknown =>
      matmul({ a: bf16, b: bf16 }).plan({ m: rows, n: columns, k: depth }, targets.sm_100a)
        .configuration;
    expect(chosen(8192, 8192, 8192)).toMatchObject({ columns: 256, swapAB: false });
    expect(chosen(16, 8192, 28672)).toMatchObject({ columns: 16, swapAB: true });
    expect(chosen(16, 1024, 28672)).toMatchObject({ schedule: "split-k" });
  });
});

type Case = Parameters<typeof wholeProduct>[0];

test.each<[string, Omit<Case, "configuration"> & { readonly configuration?: object }]>([
  ["several tiles for a block, odd rows", { sizes: [390, 67, 200] }],
  ["b by columns", { sizes: [130, 136, 72], byColumns: true }],
  ["few rows", { sizes: [20, 200, 72], configuration: { swapAB: true, columns: 16 } }],
  ["64 rows", { sizes: [70, 72, 72], configuration: { consumers: 1, columns: 8 } }],
  ["in parts of k", { sizes: [130, 72, 1100], configuration: { schedule: "split-k" } }],
  ["columns in three powers of two", { sizes: [72, 230, 72], configuration: { columns: 224 } }],
])("%s, on the simulator", async (_, { configuration, ...one }) => {
  const { op, given, exact } = wholeProduct({
    ...one,
    configuration: { ...usual, ...configuration },
  });
  // Two blocks, which have several tiles each.
  const device = await open("simulator", {
    onNotes: () => undefined,
    target: { ...targets.sm_100a, processors: 2 },
  });
  onTestFinished(() => {
    device.dispose();
  });
  const [rows, columns, depth] = one.sizes;
  const dimensions = { m: rows, n: columns, k: depth };
  const { out } = (await device.run(op, given as never, { dimensions })) as { out: HostArray };
  expect([...toNumbers(out)]).toEqual(exact);
});

/** A product of normal numbers, as a device gives it. */
async function run(
  place: "simulator" | "emulator",
  format: typeof bf16,
  options: object = {},
): Promise<{
  readonly found: readonly number[];
  readonly a: Float64Array;
  readonly b: Float64Array;
}> {
  const random = new Random(11);
  const draw = (shape: readonly [number, number]): HostArray<"bf16"> =>
    fromNumbers(
      format,
      shape,
      Array.from({ length: shape[0] * shape[1] }, () => random.normal()),
    );
  const [a, b] = [draw([sizes.m, sizes.k]), draw([sizes.k, sizes.n])];
  const op = matmul({
    ...{ a: format, b: tensor(format, [k, n]), out: f32 },
    ...(format.bits === 8 && { accumulation: "promoted" as const }),
    inputs: { bias: tensor(f32, [n]) },
    epilogue: ({ sums, bias }) => sums.add(bias),
    configuration: { ...usual, columns: 32 },
  });
  const device = await open(place, {
    ...{ onNotes: () => undefined, target: { ...targets.sm_100a, processors: 2 } },
    ...options,
  });
  onTestFinished(() => {
    device.dispose();
  });
  const bias = fromNumbers(f32, [sizes.n], new Float64Array(sizes.n).fill(0.5));
  const { out } = await device.run(op, { a, b, bias });
  return { found: [...toNumbers(out)], a: toNumbers(a), b: toNumbers(b) };
}

test.each([
  ["bf16", bf16],
  ["FP8", f8e4m3fn as unknown as typeof bf16],
])("%s: the emulator gives the simulator's bits, within bounds of float64", async (_, format) => {
  const { found, a, b } = await run("simulator", format);
  expect((await run("emulator", format)).found).toEqual(found);
  const wrong = found.filter((value, index) => {
    const [row, column] = [Math.floor(index / sizes.n), index % sizes.n];
    let [sum, most] = [0.5, 0.5];
    for (let at = 0; at < sizes.k; at += 1) {
      const term = (a[row * sizes.k + at] ?? NaN) * (b[at * sizes.n + column] ?? NaN);
      [sum, most] = [sum + term, most + Math.abs(term)];
    }
    // Products are exact; each instruction cuts what it adds off 24 bits below the greatest, 17 or 33 terms at once.
    const instructions = Math.ceil((sizes.k * format.bits) / 256);
    const terms = 1 + 256 / format.bits;
    return !(Math.abs(value - sum) <= most * (instructions * terms * 2 ** -24 + 2 ** -23));
  });
  expect(wrong).toEqual([]);
});

test("schedules give the same bits, and nothing is found", async () => {
  const { found } = await run("simulator", bf16);
  for (const seed of scheduleSeeds) {
    const schedule = seed % 2 === 0 ? "random" : "adversarial";
    expect((await run("simulator", bf16, { schedule, seed })).found).toEqual(found);
  }
});

const [seed, options] = [Number(process.env["MATMUL_SEED"] ?? 5), takesAll ? 60 : 5];
test(`random products are right on the simulator, from seed ${seed}`, async () => {
  const device = await open("simulator", { onNotes: () => undefined, target: "sm_100a" });
  const most = { m: 150, n: 90, k: 150 };
  expect(await randomProducts(device, { seed, options, sizes: 1, most })).toEqual([]);
  device.dispose();
});

test.skipIf(!hasPtxas).each([
  ["bf16, as chosen", ["sm_100a", "sm_103a"], { a: bf16, b: bf16 }, [4096, 4096, 4096]],
  [
    "columns of odd sizes, an epilogue",
    ["sm_100a"],
    {
      ...{ a: tensor(f16, [m, k], { strides: [1, m] }), b: f16, out: f16 },
      inputs: { bias: tensor(f32, [n]) },
      epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
        sums.add(bias).cast(f16),
    },
    [1001, 3003, 2001],
  ],
  ["FP8", ["sm_103a"], { a: f8e4m3fn, b: f8e4m3fn, accumulation: "fast" }, [4096, 4096, 4096]],
] as const)("%s: assembled for %s without a word", (_, names, spec, [rows, columns, depth]) => {
  for (const target of names)
    for (const { kernel } of matmul(spec as never).kernels(
      { m: rows, n: columns, k: depth },
      target,
    ))
      expect(assemble(textWithoutLines(lower(kernel, targets[target]).module), target)).toBe("");
});
