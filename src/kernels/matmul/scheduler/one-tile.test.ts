/** Blocks that have one tile each, which they find by their place in the grid and store through the slots that rows came by. */
import { expect, onTestFinished, test } from "vitest";
import { wholeProduct } from "../../../../test/support/products/whole-product.ts";
import type { WholeProductCase } from "../../../../test/support/products/whole-product.ts";
import { scheduleSeeds } from "../../../../test/support/sample.ts";
import { bf16 } from "../../../formats/dtype.ts";
import { toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { lower } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { open } from "../../../runtime/open.ts";
import { targets } from "../../../targets/target.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";

const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 128, stages: 3 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

interface Case extends Pick<WholeProductCase, "sizes" | "byColumns"> {
  readonly name: string;
  readonly configuration?: Partial<PersistentConfiguration>;
  readonly schedule?: "random" | "adversarial";
  readonly seed?: number;
}

/** What a product gives, and what it should give. */
async function run(
  place: "simulator" | "emulator",
  { schedule, seed = 0, ...one }: Case,
): Promise<readonly [readonly number[], readonly number[]]> {
  const [m, n, k] = one.sizes;
  const configuration = { ...usual, ...one.configuration };
  const { op, given, exact } = wholeProduct({ ...one, configuration });
  const device = await open(place, {
    onNotes: () => undefined,
    ...(schedule && { schedule, seed }),
  });
  onTestFinished(() => {
    device.dispose();
  });
  const { out } = (await device.run(op, given as never, { dimensions: { m, n, k } })) as {
    readonly [name: string]: HostArray;
  };
  if (out === undefined) throw new Error("a product has a result");
  return [[...toNumbers(out)], exact];
}

const cases: readonly Case[] = [
  { name: "two pieces", sizes: [250, 264, 264] },
  { name: "b by columns", sizes: [130, 136, 208], byColumns: true },
  { name: "pairs of blocks", sizes: [250, 136, 200], configuration: { cluster: 2 } },
  {
    name: "a slot for each of three pieces",
    sizes: [64, 192, 72],
    configuration: { columns: 192 },
  },
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

test("a share of the first steps is asked for before the kernel before has ended", () => {
  const [once, often] = [
    { m: 1024, n: 1024, k: 1024 },
    { m: 4096, n: 4096, k: 1024 },
  ].map(textOf);
  const asks = /prefetch\.global[^]*griddepcontrol\.wait/;
  expect(once).toMatch(asks);
  expect(often).not.toMatch(asks);
});

test("a pair of blocks has a tile where there is one processor", () => {
  const op = matmul({ a: bf16, b: bf16, configuration: { ...usual, cluster: 2 } });
  const { launches } = op.plan({ m: 300, n: 8, k: 8 }, { ...targets.sm_90a, processors: 1 });
  expect(launches.map(({ dimensions }) => dimensions?.["workers"])).toEqual([1]);
});
