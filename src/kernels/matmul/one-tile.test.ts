/** Blocks that have one tile each, which they find by their place in the grid and store through the slots that rows came by. */
import { expect, onTestFinished, test } from "vitest";
import { productOf } from "../../../test/support/exact-product.ts";
import { scheduleSeeds } from "../../../test/support/sample.ts";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { lower } from "../../lower/pipeline.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import type { PersistentConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", multipliers: 2, columns: 128, stages: 3 },
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
  readonly byColumns?: boolean;
  readonly schedule?: "random" | "adversarial";
  readonly seed?: number;
}

function productFor({ configuration, byColumns = false }: Case) {
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  return matmul({
    a: array(bf16, [rows, depth]),
    b: array(bf16, [depth, columns], byColumns ? { strides: [1, depth] } : {}),
    inputs: { bias: array(f32, [columns]) },
    epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
      sums.add(bias).cast(bf16),
    configuration: { ...usual, ...configuration },
  } as unknown as Parameters<typeof matmul>[0]);
}

/** What a product gives, and what it should give. */
async function run(place: "simulator" | "emulator", one: Case): Promise<[number[], number[]]> {
  const { sizes, byColumns = false } = one;
  const [m, n, k] = sizes;
  const [left, right, added] = [numbers(m * k, 1.37), numbers(k * n, 2.71), numbers(n, 1.9)];
  const device = await open(place, {
    onNotes: () => undefined,
    ...(one.schedule && { schedule: one.schedule, seed: one.seed ?? 0 }),
  });
  onTestFinished(() => {
    device.dispose();
  });
  const given = {
    a: fromNumbers(bf16, [m, k], left),
    b: fromNumbers(bf16, byColumns ? [n, k] : [k, n], right),
    bias: fromNumbers(f32, [n], added),
  };
  const { out } = await device.run(productFor(one), given as never, { dimensions: { m, n, k } });
  const exact = productOf(
    { values: left, down: k, along: 1 },
    byColumns ? { values: right, down: 1, along: k } : { values: right, down: n, along: 1 },
    sizes,
  ).map((sum, index) => sum + (added[index % n] ?? NaN));
  expect(Math.max(...exact.map(Math.abs))).toBeLessThanOrEqual(256);
  return [[...toNumbers(out)], [...exact]];
}

const cases: readonly Case[] = [
  { name: "two pieces", sizes: [250, 264, 264] },
  { name: "b by columns", sizes: [130, 136, 208], byColumns: true },
  { name: "pairs of blocks", sizes: [250, 136, 200], configuration: { cluster: 2 } },
  {
    name: "more pieces than slots",
    sizes: [64, 192, 72],
    configuration: { columns: 192, stages: 2 },
  },
  { name: "narrow pieces", sizes: [64, 168, 72], configuration: { columns: 160 } },
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
    const sizes = [70, 72, 200] as const;
    const [found, exact] = await run("simulator", {
      ...{ name: "", sizes, configuration: { columns: 64, stages: 2 }, schedule, seed },
    });
    expect(found).toEqual(exact);
  }
});

/** The kernel of a product, as PTX. */
function textOf(sizes: { m: number; n: number; k: number }): string {
  const op = matmul({ a: bf16, b: bf16, configuration: usual });
  return op
    .kernels(sizes)
    .map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module))
    .join("");
}

test("tiles of one round have no buffers beside the ring, and nobody waits for one", () => {
  const [once, often] = [
    { m: 1024, n: 1024, k: 1024 },
    { m: 4096, n: 4096, k: 1024 },
  ].map(textOf);
  const waits = /wait_group\.read 1/;
  expect(once).not.toMatch(waits);
  expect(often).toMatch(waits);
});
