/** Threads that end tiles one after the other (`ping-pong.ts`), several tiles a block. */
import { expect, onTestFinished, test } from "vitest";
import { assemblyProblems } from "../../../../test/support/clean-assembly.ts";
import { wholeProduct } from "../../../../test/support/products/whole-product.ts";
import type { WholeProductCase } from "../../../../test/support/products/whole-product.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { scheduleSeeds } from "../../../../test/support/sample.ts";
import { bf16, f16, f32 } from "../../../formats/dtype.ts";
import { toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { captureLocation } from "../../../support/location.ts";
import { targets } from "../../../targets/target.ts";
import { activations } from "../../elementwise/activations.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul, problemOf } from "../matmul.ts";
import { recipeOf } from "../f32-emulation.ts";
import { endsInOrder } from "../tile-shapes.ts";

const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 64, stages: 3 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

interface Case extends Omit<WholeProductCase, "configuration"> {
  readonly name: string;
  readonly configuration?: Partial<PersistentConfiguration>;
  /** Whether tiles have as many steps as they have; otherwise the kernel is that of tiles of many, which takes fewer, too. */
  readonly isShort?: boolean;
  readonly schedule?: "random" | "adversarial";
  readonly seed?: number;
}

/** What a product gives, and what it should give. */
async function run(
  place: "simulator" | "emulator",
  { schedule, seed = 0, isShort = false, ...one }: Case,
): Promise<readonly [readonly number[], readonly number[]]> {
  const [m, n, k] = one.sizes;
  const configuration = { ...usual, ...one.configuration };
  const { op, given, exact } = wholeProduct({ ...one, configuration });
  // All there is to tiles of many steps are the last ones, and those of the next tile.
  const target = { ...targets.sm_90a, processors: configuration.cluster };
  const [launched] = op.kernels({ m, n, k: isShort ? k : 2048 + k }, target);
  if (launched === undefined) throw new Error("a product has a launch");
  const device = await open(place, {
    onNotes: () => undefined,
    ...(schedule && { schedule, seed }),
  });
  onTestFinished(() => {
    device.dispose();
  });
  const dimensions = { m, n, k, workers: 1 };
  const { out } = await device.run(launched, given, { dimensions });
  if (out === undefined) throw new Error("a product has a result");
  return [[...toNumbers(out)], exact];
}

const cases: readonly Case[] = [
  { name: "three slots", sizes: [250, 72, 392] },
  { name: "two slots", sizes: [250, 40, 320], configuration: { stages: 2 } },
  { name: "pairs of blocks", sizes: [500, 40, 392], configuration: { stages: 4, cluster: 2 } },
  { name: "stored by lanes", sizes: [200, 67, 392], dtype: f16, byColumns: true },
  {
    name: "the widest tiles of few steps",
    ...{ sizes: [72, 264, 520], configuration: { columns: 256 }, plain: true, isShort: true },
  },
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
    const problem = problemOf("matmul", { a: bf16, b: bf16, ...spec }, captureLocation());
    const recipe = recipeOf(problem);
    if (recipe === undefined) throw new Error("tensor cores multiply bf16");
    const configuration = { ...usual, ...given };
    const sizes = { m, n: 256, k, batch: 1 };
    return endsInOrder({
      problem,
      recipe,
      configuration,
      sizes,
      processors: 132,
      parts: 1,
      sums: "registers",
    });
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
  expect(ended({ epilogue }, { consumers: 1 }, 2048)).toBe(false);
  expect(ended({ epilogue }, { schedule: "stream-k" }, 2048)).toBe(false);
});

test.skipIf(!hasPtxas)("long products have them in a row, which spills nothing either", () => {
  const configuration = { ...usual, columns: 256, stages: 4 } as const;
  const op = matmul({ a: bf16, b: bf16, configuration });
  expect(assemblyProblems(op.kernels({ m: 4096, n: 4096, k: 16384 }))).toEqual([]);
});

test.skipIf(!hasPtxas)("no registers are spilled, no products serialised", () => {
  const op = matmul({
    ...{ a: bf16, b: bf16, inputs: { bias: tensor(f32, [dim("n")]) } },
    epilogue: ({ sums, bias }) =>
      activations.gelu((sums as Tile<"f32">).add(bias as Tile<"f32">)).cast(bf16),
    configuration: { ...usual, columns: 256, stages: 4, cluster: 2 },
  });
  expect(assemblyProblems(op.kernels({ m: 4096, n: 4096, k: 4096 }))).toEqual([]);
});
