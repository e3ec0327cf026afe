/** Results whose rows TMA cannot write, which lanes write along rows (`store-tile.ts`). */
import { describe, expect, onTestFinished, test } from "vitest";
import { assemblyProblems } from "../../../../test/support/clean-assembly.ts";
import { dealtTo, takesAll } from "../../../../test/support/sample.ts";
import { wholeProduct } from "../../../../test/support/products/whole-product.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import type { Device } from "../../../device/device.ts";
import type { Operation } from "../../../device/operation.ts";
import { bf16, f16, f32, f8e4m3fn, i4 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { knownCut } from "../../../lang/pipeline/stream-k.ts";
import { lower, place } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { open } from "../../../runtime/open.ts";
import { targets } from "../../../targets/target.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { sparse24 } from "../weights/sparse-weights.ts";
import { tileCount } from "../tile-shapes.ts";

const usual: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 128, stages: 3 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

const cases: readonly (readonly [string, number, Partial<PersistentConfiguration>])[] = [
  ["rows at odd elements", 131, {}],
  ["rows at pairs of elements", 134, { consumers: 1 }],
  ["rows at four elements", 132, {}],
  ["tiles of one piece", 67, { columns: 64 }],
  ["pieces of 16 columns", 150, { columns: 144 }],
  ["pairs of blocks", 131, { cluster: 2, columns: 64 }],
  [
    "swapped operands, pairs of blocks",
    131,
    { cluster: 2, columns: 64, swapAB: true, consumers: 1 },
  ],
];

async function opened(name: "simulator" | "emulator"): Promise<Device> {
  const device = await open(name, { onNotes: () => undefined });
  onTestFinished(() => {
    device.dispose();
  });
  return device;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each(dealtTo(name, cases))("%s", async (_, columns, form) => {
    const sizes = [200, columns, 136] as const;
    const configuration = { ...usual, ...form };
    const dtype = columns === 131 ? f16 : bf16;
    const { op, given, exact } = wholeProduct({ sizes, dtype, configuration });
    const device = await opened(name);
    const { out } = await device.run(op, given);
    expect([...toNumbers(out as HostArray)]).toEqual(exact);
  });

  test("tiles of which halves of the columns are cut along k", async () => {
    const [m, n, k] = [20, 259, 840];
    const halved = { consumers: 1, columns: 256, stages: 2, schedule: "stream-k" } as const;
    const configuration: PersistentConfiguration = { ...usual, ...halved };
    const steps = Math.ceil(k / 64);
    const tiles = tileCount(configuration, { m, n, k, batch: 1 });
    expect(knownCut(tiles, tiles * Math.floor(steps / 4), steps, true).isHalved).toBe(true);
    const { op, given, exact } = wholeProduct({ sizes: [m, n, k], configuration });
    const device = await opened(name);
    const { out } = await device.run(op, given);
    expect([...toNumbers(out as HostArray)]).toEqual(exact);
  });

  test("tile after tile of one block", async () => {
    const sizes = [200, 131, 136] as const;
    const { op, given, exact } = wholeProduct({ sizes, byColumns: true, configuration: usual });
    const [m, n, k] = sizes;
    const [launched] = op.kernels({ m, n, k }, { ...targets.sm_90a, processors: 1 });
    if (launched === undefined) throw new Error("a product has a launch");
    const device = await opened(name);
    const { out } = await device.run(launched, given, { dimensions: { m, n, k, workers: 1 } });
    expect([...toNumbers(out as HostArray)]).toEqual(exact);
  });

  test.each(dealtTo(name, [64, 96, 128] as const))("bytes, %i columns a tile", async (columns) => {
    const [m, n, k] = [65, 75, 160];
    const op = matmul({
      ...{ a: f8e4m3fn, b: f8e4m3fn, out: f8e4m3fn, accumulation: "fast" as const },
      configuration: { ...usual, columns, stages: 2 },
    });
    const device = await opened(name);
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

const [n, k] = [dim("n"), dim("k")];
const byColumns = tensor(bf16, [k, n], { strides: [1, k] });

test.each([
  ["bytes of 96 columns", { a: bf16, b: byColumns, out: f8e4m3fn }, [710, 963, 1952]],
  ["bytes in parts of k", { a: bf16, b: bf16, out: f8e4m3fn }, [171, 928, 4832]],
  ["four bits", { a: bf16, b: bf16, out: i4 }, [3300, 1893, 464]],
  [
    "sparse bytes",
    { a: f8e4m3fn, b: sparse24(f8e4m3fn, [k, n]), accumulation: "fast", out: f8e4m3fn },
    [2048, 2001, 4096],
  ],
] as const)("what is chosen for %s has room and is placed", (_, spec, [rows, columns, depth]) => {
  const op = matmul(spec as never) as unknown as Operation;
  const sizes = { m: rows, n: columns, k: depth };
  const { choices } = op;
  if (choices === undefined) throw new Error("products have choices");
  const timed = choices.candidates(sizes, targets.sm_90a).map((each) => op.with(each));
  const some = timed.filter((_each, index) => index % (takesAll ? 15 : 45) === 0);
  for (const each of [op, ...some])
    for (const { kernel } of each.kernels(sizes, targets.sm_90a)) {
      const { kernel: placed } = place(kernel, targets.sm_90a);
      expect(placed.name).toBe(kernel.name);
    }
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

test.skipIf(!hasPtxas)(
  "nor where an epilogue reads a matrix besides, which leaves none for what goes through a buffer",
  () => {
    const op = matmul({
      ...{ a: bf16, b: bf16 },
      configuration: { ...usual, consumers: 1, columns: 256, stages: 4, schedule: "stream-k" },
      inputs: { bias: tensor(f32, [n]), residual: tensor(bf16, [dim("m"), n]) },
      epilogue: ({ sums, bias, residual }) =>
        sums.add(bias).add(residual.cast(f32)).maximum(0).cast(bf16),
    });
    expect(assemblyProblems(op.kernels({ m: 1000, n: 1001, k: 512 }))).toEqual([]);
  },
);
