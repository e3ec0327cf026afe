/** Threads that end tiles one after the other (`tile-ends.ts`), several tiles a block. */
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
import { captureLocation } from "../../support/location.ts";
import { targets } from "../../targets/target.ts";
import { activations } from "../elementwise/activations.ts";
import type { PersistentConfiguration } from "./configuration.ts";
import { matmul, problemOf } from "./matmul.ts";
import { recipeOf } from "./recipe.ts";
import { endsInOrder } from "./tile-shapes.ts";

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
  /** Whether b lies by columns. */
  readonly byColumns?: boolean;
  readonly schedule?: "random" | "adversarial";
  readonly seed?: number;
}

/** What a product gives, and what it should give. */
async function run(place: "simulator" | "emulator", one: Case): Promise<[number[], number[]]> {
  const { sizes, dtype = bf16, byColumns = false } = one;
  const [m, n, k] = sizes;
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const op = matmul({
    a: array(dtype, [rows, depth]),
    b: array(dtype, [depth, columns], byColumns ? { strides: [1, depth] } : {}),
    inputs: { bias: array(f32, [columns]) },
    epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
      sums.add(bias).cast(dtype),
    configuration: { ...usual, ...one.configuration },
  } as unknown as Parameters<typeof matmul>[0]);
  // The kernel of tiles of many steps takes fewer, too: all there is to it are the last ones, and those of the next tile.
  const cluster = one.configuration?.cluster ?? 1;
  const [launched] = op.kernels({ m, n, k: 2048 + k }, { ...targets.sm_90a, processors: cluster });
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
    bias: fromNumbers(f32, [n], added),
  };
  const dimensions = { m, n, k, workers: 1 };
  const { out } = await device.run(launched, given, { dimensions });
  if (out === undefined) throw new Error("a product has a result");
  const exact = productOf(
    { values: left, down: k, along: 1 },
    byColumns ? { values: right, down: 1, along: k } : { values: right, down: n, along: 1 },
    sizes,
  ).map((sum, index) => sum + (added[index % n] ?? NaN));
  expect(Math.max(...exact.map(Math.abs))).toBeLessThanOrEqual(256);
  return [[...toNumbers(out)], [...exact]];
}

const cases: readonly Case[] = [
  { name: "three slots", sizes: [250, 72, 392] },
  { name: "two slots", sizes: [250, 40, 320], configuration: { stages: 2 } },
  { name: "pairs of blocks", sizes: [500, 40, 392], configuration: { stages: 4, cluster: 2 } },
  { name: "stored by lanes", sizes: [200, 67, 392], dtype: f16, byColumns: true },
];

test.each([
  ...cases.map((one) => ({ ...one, place: "simulator" as const })),
  ...cases.slice(1, 3).map((one) => ({ ...one, place: "emulator" as const })),
])("$name, on the $place", async ({ place, ...one }) => {
  const [found, exact] = await run(place, one);
  expect(found).toEqual(exact);
});

test("schedules give the same bits, and nothing is found", async () => {
  for (const seed of scheduleSeeds) {
    const schedule = seed % 2 === 0 ? "random" : "adversarial";
    const [found, exact] = await run("simulator", {
      ...{ name: "", sizes: [250, 16, 392], configuration: { columns: 16 } },
      ...{ schedule, seed },
    });
    expect(found).toEqual(exact);
  }
});

test("where there is an epilogue, tiles are the widest or blocks have one, and tiles have many steps", () => {
  const ended = (
    spec: object,
    given: Partial<PersistentConfiguration>,
    k: number,
    m = 65536,
  ): boolean => {
    const problem = problemOf({ a: bf16, b: bf16, ...spec }, captureLocation());
    const recipe = recipeOf(problem);
    if (recipe === undefined) throw new Error("tensor cores multiply bf16");
    const configuration = { ...usual, ...given };
    const sizes = { m, n: 256, k, batch: 1 };
    return endsInOrder({ problem, recipe, configuration, sizes, processors: 132, parts: 1 });
  };
  const epilogue = ({ sums }: { readonly sums: Tile<"f32"> }) => sums.maximum(0).cast(bf16);
  expect(ended({ epilogue }, {}, 2048)).toBe(true);
  expect(ended({ epilogue }, {}, 1024)).toBe(false);
  expect(ended({}, {}, 2048)).toBe(false);
  expect(ended({}, { columns: 256 }, 2048)).toBe(true);
  expect(ended({}, { columns: 256 }, 1024)).toBe(true);
  expect(ended({}, { columns: 256 }, 256)).toBe(false);
  expect(ended({ epilogue }, { columns: 256 }, 1024)).toBe(false);
  expect(ended({}, { columns: 256 }, 1024, 4096)).toBe(false);
  expect(ended({}, {}, 2048, 4096)).toBe(true);
  expect(ended({ epilogue }, { multipliers: 1 }, 2048)).toBe(false);
  expect(ended({ epilogue }, { schedule: "split" }, 2048)).toBe(false);
});

test.skipIf(!hasPtxas)("long products have them in a row, which spills nothing either", () => {
  const configuration = { ...usual, columns: 256, stages: 4 } as const;
  const op = matmul({ a: bf16, b: bf16, configuration });
  expect(assemblyProblems(op.kernels({ m: 4096, n: 4096, k: 16384 }))).toEqual([]);
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
