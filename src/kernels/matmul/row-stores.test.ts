/** Results whose rows the copy engine cannot write, which lanes write along rows (`store-tile.ts`). */
import { describe, expect, onTestFinished, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { wholeProduct } from "../../../test/support/products/whole-product.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { bf16, f16, f32, f8e4m3fn } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
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

const cases: readonly (readonly [string, number, Partial<PersistentConfiguration>])[] = [
  ["rows at odd elements", 131, {}],
  ["rows at pairs of elements", 134, { multipliers: 1 }],
  ["rows at four elements", 132, {}],
  ["tiles of one piece", 67, { columns: 64 }],
  ["pieces of 16 columns", 150, { columns: 144 }],
  ["the widest tiles, of which the last ones are halved", 259, { columns: 256, schedule: "split" }],
  ["pairs of blocks", 131, { cluster: 2, columns: 64 }],
  ["turned tiles of pairs", 131, { cluster: 2, columns: 64, turned: true, multipliers: 1 }],
];

describe.each(["simulator", "emulator"] as const)("on the %s", (place) => {
  test.each(cases)("%s", async (_, columns, form) => {
    const sizes = [200, columns, 136] as const;
    const configuration = { ...usual, ...form };
    for (const dtype of [bf16, f16]) {
      const { op, given, exact } = wholeProduct({ sizes, dtype, configuration });
      const device = await open(place, { onNotes: () => undefined });
      onTestFinished(() => {
        device.dispose();
      });
      const { out } = await device.run(op, given);
      if (out === undefined) throw new Error("a product has a result");
      expect([...toNumbers(out)]).toEqual(exact);
    }
  });

  test("bytes", async () => {
    const [m, n, k] = [65, 75, 160];
    const op = matmul({
      ...{ a: f8e4m3fn, b: f8e4m3fn, out: f8e4m3fn, accumulation: "fast" as const },
      configuration: { ...usual, columns: 64, stages: 2 },
    });
    const device = await open(place, { onNotes: () => undefined });
    onTestFinished(() => {
      device.dispose();
    });
    const a = Array.from({ length: m * k }, (_, index) => (index % k < 3 ? (index % 5) - 2 : 0));
    const b = Array.from({ length: k * n }, (_, index) => (index % 4) - 1);
    const { out } = await device.run(op, {
      a: fromNumbers(f8e4m3fn, [m, k], a),
      b: fromNumbers(f8e4m3fn, [k, n], b),
    });
    const expected = Array.from({ length: m * n }, (_, index) => {
      const [i, j] = [Math.floor(index / n), index % n];
      return [0, 1, 2].reduce((sum, l) => sum + (a[i * k + l] ?? 0) * (b[l * n + j] ?? 0), 0);
    });
    expect([...toNumbers(out)]).toEqual(expected);
  });
});

/** What lanes of the product store at once, in bits. */
function storedWidths(n: number, out: typeof bf16 | typeof f32): ReadonlySet<string> {
  const op = matmul({ a: bf16, b: bf16, out, configuration: usual });
  const launched = op.kernels({ m: 1000, n, k: 512 }).at(-1);
  if (launched === undefined) throw new Error("a product has a launch");
  const text = printPtx(lower(launched.kernel, targets.sm_90a).module);
  return new Set([...text.matchAll(/st(?:\.global\.\S+|matrix)/gu)].map(([store]) => store));
}

test("lanes write as many neighbours at once as rows are aligned for, of 16 bits through shared memory", () => {
  expect(storedWidths(1001, bf16)).toEqual(new Set(["stmatrix", "st.global.u16"]));
  expect(storedWidths(1002, bf16)).toEqual(new Set(["stmatrix", "st.global.b32"]));
  expect(storedWidths(1004, bf16)).toEqual(new Set(["stmatrix", "st.global.v2.b32"]));
  expect(storedWidths(1001, f32)).not.toContain("stmatrix");
});

test.skipIf(!hasPtxas)("no registers are spilled", () => {
  for (const n of [1001, 1002, 1004]) {
    const op = matmul({
      a: bf16,
      b: bf16,
      configuration: { ...usual, columns: 256, stages: 4 },
    });
    expect(assemblyProblems(op.kernels({ m: 1000, n, k: 512 }))).toEqual([]);
  }
});
