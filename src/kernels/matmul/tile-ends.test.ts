/** Threads that end tiles one after the other (`tile-ends.ts`), several tiles a block, of a step more than there are slots and of many. */
import { expect, onTestFinished, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { productOf } from "../../../test/support/exact-product.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { scheduleSeeds } from "../../../test/support/sample.ts";
import { bf16, f16, f32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { activations } from "../elementwise/activations.ts";
import { matmul } from "./matmul.ts";
import type { PersistentConfiguration } from "./configuration.ts";

const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", multipliers: 2, columns: 64, stages: 3 },
  ...{ schedule: "tiles", turned: false, cluster: 1 },
};

/** Of -1, 0 and 1, whose sums every format holds. */
function numbers(count: number, step: number): number[] {
  return Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
}

interface Case {
  readonly name: string;
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly configuration?: Partial<PersistentConfiguration>;
  readonly dtype?: DType;
  readonly out?: DType;
  /** Blocks, or pairs of them; as many as there are tiles unless told. */
  readonly workers?: number;
  readonly bias?: boolean;
  /** Whether b lies by columns. */
  readonly byColumns?: boolean;
  readonly precision?: "tf32";
  readonly schedule?: "random" | "adversarial";
  readonly seed?: number;
}

/** What a product gives, and what it should give. */
async function run(place: "simulator" | "emulator", one: Case): Promise<[number[], number[]]> {
  const {
    sizes,
    dtype = bf16,
    out: format = dtype,
    workers,
    bias = false,
    byColumns = false,
  } = one;
  const [m, n, k] = sizes;
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const ended = {
    inputs: { bias: array(f32, [columns]) },
    epilogue: ({ sums, bias: added }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
      sums.add(added).cast(format),
  };
  const spec = {
    a: array(dtype, [rows, depth]),
    b: array(dtype, [depth, columns], byColumns ? { strides: [1, depth] } : {}),
    ...{ out: format, configuration: { ...usual, ...one.configuration }, ...(bias && ended) },
    ...(one.precision && { precision: one.precision }),
  };
  const op = matmul(spec as unknown as Parameters<typeof matmul>[0]);
  const [launched] = op.kernels({ m, n, k });
  if (launched === undefined) throw new Error("a product has a launch");
  const [left, right, added] = [numbers(m * k, 1.37), numbers(k * n, 2.71), numbers(n, 1.9)];
  const device = await open(place, {
    onNotes: () => undefined,
    ...(one.schedule && { schedule: one.schedule, seed: one.seed ?? 0 }),
  });
  onTestFinished(() => {
    device.dispose();
  });
  const given = {
    a: fromNumbers(dtype, [m, k], left),
    b: fromNumbers(dtype, byColumns ? [n, k] : [k, n], right),
    ...(bias && { bias: fromNumbers(f32, [n], added) }),
  };
  const dimensions = { m, n, k, ...(workers !== undefined && { workers }) };
  const { out } = await device.run(launched, given, { dimensions });
  if (out === undefined) throw new Error("a product has a result");
  const exact = productOf(
    { values: left, down: k, along: 1 },
    byColumns ? { values: right, down: 1, along: k } : { values: right, down: n, along: 1 },
    sizes,
  ).map((sum, index) => sum + (bias ? (added[index % n] ?? NaN) : 0));
  expect(Math.max(...exact.map(Math.abs))).toBeLessThanOrEqual(256);
  return [[...toNumbers(out)], [...exact]];
}

const cases: readonly Case[] = [
  { name: "a step more than slots", sizes: [250, 136, 200] },
  { name: "two slots", sizes: [250, 136, 328], configuration: { stages: 2 } },
  { name: "many steps", sizes: [250, 72, 2056], bias: true },
  { name: "pairs of blocks", sizes: [500, 72, 328], configuration: { stages: 4, cluster: 2 } },
  {
    name: "pieces of two columns of tiles",
    sizes: [200, 304, 264],
    configuration: { columns: 128 },
  },
  { name: "bias", sizes: [200, 136, 264], bias: true },
  { name: "results of 32 bits", sizes: [200, 72, 264], out: f32 },
  { name: "stored by lanes", sizes: [200, 67, 264], dtype: f16, byColumns: true },
];

test.each(
  cases.flatMap((one) => (["simulator", "emulator"] as const).map((place) => ({ ...one, place }))),
)("$name, on the $place", async ({ place, ...one }) => {
  const [found, exact] = await run(place, { workers: 1, ...one });
  expect(found).toEqual(exact);
});

test("schedules give the same bits, and nothing is found", async () => {
  for (const seed of scheduleSeeds) {
    const schedule = seed % 2 === 0 ? "random" : "adversarial";
    const [found, exact] = await run("simulator", {
      ...{ name: "", sizes: [260, 72, 200], configuration: { stages: 2 }, workers: 1 },
      ...{ schedule, seed },
    });
    expect(found).toEqual(exact);
  }
});

test.skipIf(!hasPtxas)("no registers are spilled, no products serialised", () => {
  const op = matmul({
    ...{ a: bf16, b: bf16, inputs: { bias: array(f32, [dim("n")]) } },
    epilogue: ({ sums, bias }) =>
      activations.gelu((sums as Tile<"f32">).add(bias as Tile<"f32">)).cast(bf16),
    configuration: { ...usual, columns: 256, stages: 4, cluster: 2 },
  });
  expect(assemblyProblems(op.kernels({ m: 4096, n: 4096, k: 4096 }))).toEqual([]);
});
