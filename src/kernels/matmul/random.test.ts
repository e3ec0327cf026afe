/**
 * Random products, and what the assembler makes of the kernels.
 *
 *   MATMUL_OPTIONS=60 MATMUL_SIZES=5 MATMUL_DEVICE=gpu MATMUL_SEED=7 npx vitest run src/kernels/matmul/random.test.ts
 *
 * MATMUL_TARGET=sm_80 has the emulator be another GPU; with MATMUL_PROGRESS=25 every 25th product says how far it is. A process
 * compiles most of the time: a thousand products are soonest done by several, each with a seed of its own.
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { randomProducts } from "../../../test/support/random-products.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { bf16, f16, f32, f64, f8e4m3fn, i32, i4, i8, u8 } from "../../formats/dtype.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import type { TargetName } from "../../targets/target.ts";
import { activations } from "../elementwise/activations.ts";
import { matmul } from "./matmul.ts";
import { quantized } from "./weights/quantized.ts";
import { sparse24 } from "./weights/sparse-weights.ts";

const options = Number(process.env["MATMUL_OPTIONS"] ?? 3);
const sizes = Number(process.env["MATMUL_SIZES"] ?? 1);
const seed = Number(process.env["MATMUL_SEED"] ?? 1);
const every = Number(process.env["MATMUL_PROGRESS"] ?? 0);
const kind = (process.env["MATMUL_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";
const target = (process.env["MATMUL_TARGET"] ?? "sm_90a") as TargetName;
const most = kind === "gpu" ? { m: 300, n: 400, k: 700 } : { m: 70, n: 80, k: 150 };

test(
  `random products are right on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const device = await open(kind, {
      onNotes: () => undefined,
      ...(kind !== "gpu" && { target }),
    });
    const onProgress = (tried: number, problems: readonly string[]): void => {
      if (every > 0 && tried % every === 0)
        process.stderr.write(
          `${tried} of ${options * sizes} products, ${problems.length} wrong ${problems.at(-1) ?? ""}\n`,
        );
    };
    expect(await randomProducts(device, { seed, options, sizes, most, onProgress })).toEqual([]);
    device.dispose();
  },
);

test.skipIf(!hasPtxas).each([
  ["bf16, split", { a: bf16, b: bf16 }, [1664, 2816, 16384]],
  ["bf16, A and B swapped", { a: bf16, b: bf16 }, [16, 8192, 28672]],
  [
    "bf16, pairs of blocks",
    {
      ...{ a: bf16, b: bf16 },
      configuration: {
        ...{ kernel: "persistent", consumers: 2, columns: 256, stages: 4 },
        ...{ schedule: "tiles", swapAB: false, cluster: 2 },
      },
    },
    [4096, 4096, 4096],
  ],
  [
    "bf16, pairs of blocks for few rows",
    {
      ...{ a: bf16, b: bf16 },
      configuration: {
        ...{ kernel: "persistent", consumers: 1, columns: 16, stages: 8 },
        ...{ schedule: "tiles", swapAB: true, cluster: 2 },
      },
    },
    [16, 8192, 28672],
  ],
  [
    "bf16, few rows in parts of k",
    {
      ...{ a: bf16, b: bf16 },
      configuration: {
        ...{ kernel: "persistent", consumers: 4, columns: 8, stages: 6 },
        ...{ schedule: "split-k", swapAB: true, cluster: 1 },
      },
    },
    [1, 8192, 28672],
  ],
  [
    "bf16, windows of the last tiles",
    {
      ...{ a: bf16, b: bf16 },
      configuration: {
        ...{ kernel: "persistent", consumers: 2, columns: 256, stages: 4 },
        ...{ schedule: "tiles", swapAB: false, cluster: 2 },
      },
    },
    [5464, 616, 3832],
  ],
  [
    "bf16, tiles that are no power of two wide",
    {
      ...{ a: bf16, b: bf16 },
      configuration: {
        ...{ kernel: "persistent", consumers: 2, columns: 224, stages: 4 },
        ...{ schedule: "tiles", swapAB: false, cluster: 2 },
      },
    },
    [2560, 2560, 640],
  ],
  // Two blocks at once have one another to look after, too.
  ...(takesAll ? ([1, 2] as const) : ([2] as const)).map(
    (cluster) =>
      [
        `f16, b by columns, tiles of 144 of them, ${cluster} blocks at once`,
        {
          a: tensor(f16, [dim("m"), dim("k")]),
          b: tensor(f16, [dim("k"), dim("n")], { strides: [1, dim("k")] }),
          configuration: {
            ...{ kernel: "persistent", consumers: 2, columns: 144, stages: 5 },
            ...{ schedule: "tiles", swapAB: false, cluster },
          },
        },
        [1664, 2816, 16384],
      ] as const,
  ),
  // The kernel for few rows, and of the other the most sums that there are.
  ...(takesAll ? ([16, 64, 256] as const) : ([16, 256] as const)).map(
    (rows) =>
      [
        `weights of 4 bits, ${rows} rows`,
        { a: bf16, b: quantized(i4, [dim("k"), dim("n")], { groupSize: 128, scale: bf16 }) },
        [rows, 8192, 28672],
      ] as const,
  ),
  [
    "sparse weights, pairs of blocks",
    { a: bf16, b: sparse24(bf16, [dim("k"), dim("n")]) },
    [8192, 8192, 8192],
  ],
  [
    "sparse weights of i8 and u8",
    { a: u8, b: sparse24(i8, [dim("k"), dim("n")]), out: i32 },
    [288, 288, 448],
  ],
  ["FP8, promoted", { a: f8e4m3fn, b: f8e4m3fn, accumulation: "promoted" }, [8192, 8192, 8192]],
  ["f32 as bf16x6", { a: f32, b: f32, precision: "bf16x6" }, [4096, 4096, 4096]],
  [
    "bf16, bias and GELU",
    {
      ...{ a: bf16, b: bf16, inputs: { bias: tensor(f32, [dim("n")]) } },
      epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
        activations.gelu(sums.add(bias)).cast(bf16),
    },
    [4096, 4096, 4096],
  ],
] as const)("%s: no registers are spilled, no products serialised", (_, spec, [m, n, k]) => {
  const op = matmul(spec as unknown as Parameters<typeof matmul>[0]);
  expect(assemblyProblems(op.kernels({ m, n, k }))).toEqual([]);
});

test.skipIf(!hasPtxas).each(
  // How a lies decides how its tiles are read; what is spilled is most where it lies by columns.
  [true, false].flatMap((aByRows) =>
    (takesAll ? [true, false] : [true]).map((bByRows) => [
      `a by ${aByRows ? "rows" : "columns"}, b by ${bByRows ? "rows" : "columns"}`,
      {
        a: tensor(f64, [dim("m"), dim("k")], aByRows ? {} : { strides: [1, dim("m")] }),
        b: tensor(f64, [dim("k"), dim("n")], bByRows ? {} : { strides: [1, dim("k")] }),
      },
    ]),
  ) as readonly (readonly [string, Parameters<typeof matmul>[0]])[],
)("f64, %s: no more is spilled than some words at the start", (_, spec) => {
  const op = matmul(spec);
  // Whole tiles have less to look after than cut ones.
  for (const [m, n, k] of [
    ...(takesAll ? [[4096, 4096, 4096] as const] : []),
    [1001, 3003, 2001] as const,
  ])
    expect(assemblyProblems(op.kernels({ m, n, k }), 32)).toEqual([]);
});
