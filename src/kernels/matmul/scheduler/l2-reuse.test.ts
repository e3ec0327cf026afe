/** Rounds of tiles that go back along k, and results that leave the cache first: where, and that sums are right. */
import { expect, test } from "vitest";
import { bf16 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { open } from "../../../runtime/open.ts";
import { captureLocation } from "../../../support/location.ts";
import { targets } from "../../../targets/target.ts";
import { passesResult, turnsBack } from "./l2-reuse.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul, problemOf } from "../matmul.ts";
import { persistentKernel } from "../persistent.ts";
import type { PersistentForm } from "../kernel-context.ts";
import { recipeOf } from "../f32-emulation.ts";

const location = captureLocation();
const wide: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 256, stages: 4 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

function formOf(
  [m, n, k]: readonly [m: number, n: number, k: number],
  changed: Partial<PersistentForm> = {},
): PersistentForm {
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const operands = { a: tensor(bf16, [rows, depth]), b: tensor(bf16, [depth, columns]) };
  const problem = problemOf("matmul", operands, location);
  const recipe = recipeOf(problem);
  if (recipe === undefined) throw new Error("no recipe");
  return {
    ...{ problem, recipe, configuration: wide, sizes: { m, n, k, batch: 1 }, location, edges: {} },
    ...{ prepared: { a: undefined, b: undefined }, copiesOut: true, parts: 1 },
    ...{ processors: 132, cache: 50e6, sums: "registers" },
    ...changed,
  };
}

test("rounds go back along k where the cache keeps a part of one", () => {
  const goesBack = (...sizes: readonly [number, number, number]): boolean =>
    turnsBack(formOf(sizes));
  expect([goesBack(4096, 4096, 4096), goesBack(8192, 8192, 8192)]).toEqual([true, true]);
  // All of a round, and little of it.
  expect([goesBack(16384, 16384, 1024), goesBack(4096, 4096, 16384)]).toEqual([false, false]);
  // There is no other round.
  expect(goesBack(2048, 2048, 4096)).toBe(false);
  const split = { ...wide, schedule: "stream-k" } as const;
  expect(turnsBack(formOf([4096, 4096, 4096], { configuration: split }))).toBe(false);
});

test("results that the cache cannot hold leave it before operands that it can", () => {
  const passes = (...sizes: readonly [number, number, number]): boolean =>
    passesResult(formOf(sizes));
  expect(passes(8192, 8192, 512)).toBe(true);
  expect([passes(4096, 4096, 512), passes(16384, 16384, 1024)]).toEqual([false, false]);
  const texts = [8192, 2048].map((columns) =>
    matmul({ a: bf16, b: bf16, configuration: wide })
      .kernels({ m: 8192, n: columns, k: 512 })
      .map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module))
      .join(),
  );
  expect(texts.map((text) => text.includes("L2::evict_first"))).toEqual([true, false]);
});

test.each(["simulator", "emulator"] as const)(
  "sums of rounds that go back, on the %s",
  async (place) => {
    const [m, n, k] = [128, 32, 200];
    const form = formOf([m, n, k], {
      configuration: { ...wide, consumers: 1, columns: 16, stages: 2 },
      ...{ processors: 1, cache: 50e3 },
    });
    expect(turnsBack(form)).toBe(true);
    // Of -1, 0 and 1, whose sums bf16 holds.
    const of = (count: number, step: number): number[] =>
      Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
    const [left, right] = [of(m * k, 1.37), of(k * n, 2.71)];
    const device = await open(place, { onNotes: () => undefined });
    const { out } = (await device.run(
      persistentKernel(form) as never,
      { a: fromNumbers(bf16, [m, k], left), b: fromNumbers(bf16, [k, n], right) } as never,
      { dimensions: { workers: 1 } },
    )) as unknown as { readonly out: HostArray };
    device.dispose();
    const exact = Array.from({ length: m * n }, (_, index) => {
      const [row, column] = [Math.floor(index / n), index % n];
      let sum = 0;
      for (let at = 0; at < k; at += 1)
        sum += (left[row * k + at] ?? 0) * (right[at * n + column] ?? 0);
      return sum;
    });
    expect([...toNumbers(out)]).toEqual(exact);
  },
);
