/** Memory order and scope, locks and flags made of them, and atomic updates by compare-and-swap. */
import {
  blockSync,
  bool,
  clusterRank,
  constant,
  f32,
  f64,
  fromNumbers,
  full,
  i32,
  i8,
  inlinePtx,
  kernel,
  open,
  optimizationBarrier,
  smem,
  tensor,
  when,
  whileLoop,
} from "tilewright";
import type { DType, KernelDefinition, MemoryOrder, Ref, Scalar } from "tilewright";
import type { TargetName } from "../../src/targets/target.ts";
import { handedRows, lockedSum, lookBackScan, ordered } from "../support/ordered-programs.ts";
import type { Arrays } from "../matrix/case.ts";
import type { Feature } from "./feature.ts";

const everyTarget: readonly TargetName[] = [
  ...(["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"] as const),
];
const blocks = 4;
const zeros = (count: number) => fromNumbers(i32, [count], new Float64Array(count));
const row = Array.from({ length: 256 }, (_, index) => index - 100);
const parts = Array.from({ length: blocks * 64 }, (_, index) => ((index * 7) % 11) - 4);

function runningSums(values: readonly number[]): readonly number[] {
  let sum = 0;
  return values.map((value) => (sum += value));
}

/** Waits until the flag is set. */
function poll(flag: Ref<"i32">, memoryOrder: "acquire" | "relaxed"): void {
  whileLoop(
    { found: constant(i32, 0) },
    ({ found }) => found.eq(0),
    () => ({ found: flag.loadScalar({ memoryOrder }) }),
  );
}

/** One program thread of a block leaves a tile in shared memory for the other. */
function betweenThreads(): KernelDefinition {
  return kernel(
    {
      name: "between_threads",
      threads: ["first", "second"],
      inputs: { x: tensor(f32, [256]) },
      outputs: { out: tensor(f32, [256]) },
      scratch: { tile: smem(f32, [256]), flag: smem(i32, [1]) },
    },
    ({ x, out, tile, flag, first, second }) => {
      first(() => flag.at(0).store(0));
      blockSync();
      first(() => {
        tile.store(x.load().mul(2));
        flag.at(0).atomic("exchange", 1, { memoryOrder: "release" });
      });
      second(() => {
        poll(flag.at(0), "acquire");
        out.store(tile.load());
      });
    },
  );
}

/** Each block of a cluster leaves its rank for the other, in the other's memory. */
function betweenPeers(): KernelDefinition {
  return kernel(
    {
      name: "between_peers",
      grid: { i: 2 },
      cluster: { i: 2 },
      outputs: { out: tensor(i32, [2, 32]) },
      inouts: { flags: tensor(i32, [2]) },
    },
    ({ i, out, flags }) => {
      const other = clusterRank("i").xor(1);
      out.at(other).store(i.add(5));
      flags.at(other).store(1, { memoryOrder: "release", scope: "cluster" });
      whileLoop(
        { found: constant(i32, 0) },
        ({ found }) => found.eq(0),
        () => ({ found: flags.at(i).atomicAdd(0, { memoryOrder: "acquire", scope: "cluster" }) }),
      );
      out.at(i).store(out.at(i).load().mul(10));
    },
  );
}

/** All orders and scopes of a tile of each update. */
function everyOrder(): KernelDefinition {
  const orders: readonly MemoryOrder[] = ["relaxed", "acquire", "release", "acq_rel"];
  const tile = (value: number) => full(i32, [40], value);
  const words = tensor(i32, [orders.length, 3, 40]);
  const sums = tensor(f32, [256]);
  return kernel({ name: "every_order", inouts: { words, sums } }, ({ words: all, sums: added }) => {
    added.atomicAdd(added.load(), { memoryOrder: "release" });
    orders.forEach((memoryOrder, at) => {
      all.at(at, 0).atomicAdd(tile(at), { memoryOrder, scope: "block" });
      const old = all.at(at, 1).atomic("max", tile(1), { memoryOrder, scope: "system" });
      all.at(at, 2).compareExchange(old, tile(7), { memoryOrder, scope: "device" });
    });
  });
}

/** The product of factors, a block each. */
function productOf(dtype: DType<"f32"> | DType<"f64">): KernelDefinition {
  return kernel(
    {
      name: "product",
      grid: { i: 5 },
      inputs: { factors: tensor<"f32" | "f64">(dtype, [5]) },
      inouts: { total: tensor<"f32" | "f64">(dtype, [1]) },
    },
    ({ i, factors, total }) => {
      const factor = factors.at(i).loadScalar();
      whileLoop(
        { seen: constant<"f32" | "f64">(dtype, 1), isDone: constant(bool, false) },
        ({ isDone }) => isDone.not(),
        ({ seen }) => {
          const found: Scalar<"f32" | "f64"> = total.at(0).compareExchange(seen, seen.mul(factor));
          return { seen: found, isDone: found.eq(seen) };
        },
      );
    },
  );
}

/** Runs a kernel that the simulator must refuse. */
async function simulated(definition: KernelDefinition, inputs: Arrays): Promise<void> {
  const device = await open("simulator", { onNotes: () => undefined });
  try {
    await device.run(definition, inputs);
  } finally {
    device.dispose();
  }
}

const memoryOrder: Feature = {
  name: "Memory order and scope of loads, stores and atomic updates",
  written: ['memoryOrder: "acquire"', 'memoryOrder: "release"', 'scope: "device"'],
  page: "language.md#memory-order",
  cases: () => [
    {
      name: "a lock",
      kernel: () => lockedSum(blocks, ordered),
      inputs: { lock: zeros(1), total: zeros(1) },
      expected: { lock: [0], total: [10] },
      targets: everyTarget,
    },
    {
      name: "a flag for the next block",
      kernel: () => handedRows(blocks, ordered),
      inputs: { x: fromNumbers(f32, [256], row), flags: zeros(blocks) },
      expected: {
        rows: Array.from({ length: blocks }, (_, block) => row.map((each) => each + block)).flat(),
        flags: [1, 1, 1, 1],
      },
      targets: everyTarget,
    },
    {
      name: "a scan that looks back",
      kernel: () => lookBackScan(blocks, ordered),
      inputs: { x: fromNumbers(i32, [parts.length], parts), status: zeros(blocks) },
      expected: { out: runningSums(parts), status: [2, 2, 2, 2] },
    },
    {
      name: "a flag in shared memory, between program threads",
      kernel: betweenThreads,
      inputs: { x: fromNumbers(f32, [256], row) },
      expected: { out: row.map((each) => 2 * each) },
      targets: everyTarget,
    },
    {
      name: "between blocks of a cluster",
      kernel: betweenPeers,
      inputs: { flags: zeros(2) },
      expected: {
        out: [...Array.from({ length: 32 }, () => 60), ...Array.from({ length: 32 }, () => 50)],
        flags: [1, 1],
      },
    },
    {
      name: "every order of updates of tiles",
      kernel: everyOrder,
      inputs: {
        words: fromNumbers(i32, [4, 3, 40], new Float64Array(4 * 3 * 40)),
        sums: fromNumbers(f32, [256], row),
      },
      expected: {
        sums: row.map((each) => 2 * each),
        words: [0, 1, 2, 3].flatMap((at) =>
          [at, 1, 7].flatMap((each) => Array.from({ length: 40 }, () => each)),
        ),
      },
      targets: everyTarget,
    },
  ],
  refused: [
    {
      code: "TW1044",
      by: () =>
        kernel({ name: "wrong_order", inouts: { flag: tensor(i32, [1]) } }, ({ flag }) => {
          // @ts-expect-error a load releases nothing
          flag.at(0).loadScalar({ memoryOrder: "release" });
        }),
    },
    {
      code: "TW2058",
      by: () =>
        kernel({ name: "no_cluster", inouts: { flag: tensor(i32, [1]) } }, ({ flag }) => {
          flag.at(0).store(1, { memoryOrder: "release", scope: "cluster" });
        }),
    },
    {
      code: "TW3001",
      by: () =>
        simulated(
          kernel(
            {
              name: "relaxed_flag",
              grid: { i: 2 },
              outputs: { out: tensor(i32, [2, 32]) },
              inouts: { flag: tensor(i32, [1]) },
            },
            ({ i, out, flag }) => {
              when(
                i.eq(0),
                () => {
                  out.at(0).store(3);
                  flag.at(0).store(1, { memoryOrder: "release" });
                },
                () => {
                  poll(flag.at(0), "relaxed");
                  out.at(1).store(out.at(0).load());
                },
              );
            },
          ),
          { flag: zeros(1) },
        ),
    },
    {
      code: "TW3011",
      by: () =>
        simulated(
          kernel({ name: "in_vain", inouts: { flag: tensor(i32, [1]) } }, ({ flag }) => {
            poll(flag.at(0), "acquire");
          }),
          { flag: zeros(1) },
        ),
    },
  ],
};

const compareAndSwap: Feature = {
  name: "Compare-and-swap of f32 and f64",
  written: [".compareExchange("],
  page: "language.md#atomic-updates",
  cases: () =>
    ([f32, f64] as const).map((dtype) => ({
      name: dtype.name,
      kernel: () => productOf(dtype),
      inputs: {
        factors: fromNumbers(dtype, [5], [2, 3, 0.5, 7, 11]),
        total: fromNumbers(dtype, [1], [1]),
      },
      expected: { total: [231] },
      targets: everyTarget,
    })),
  refused: [
    {
      code: "TW2045",
      by: () =>
        kernel({ name: "no_half", inouts: { total: tensor(bool, [1]) } }, ({ total }) => {
          total.at(0).compareExchange(false, true);
        }),
    },
  ],
};

const barrier: Feature = {
  name: "Optimization barriers",
  written: ["optimizationBarrier(own)"],
  page: "language.md#optimization-barriers",
  cases: () => [
    {
      name: "tiles and scalars of several formats, in a tree",
      kernel: () =>
        kernel(
          {
            name: "hidden",
            inputs: { x: tensor(f32, [256]) },
            outputs: { out: tensor(f32, [256]), count: tensor(f64, [1]) },
          },
          ({ x, out, count }) => {
            const tile = x.load();
            const hidden = optimizationBarrier({
              tile,
              others: [tile.lt(0), constant(f64, 2.5), tile.cast(i8)],
            });
            const [isLow, number, small] = hidden.others;
            const sum = hidden.tile.add(tile).add(small.cast(f32).sub(small.cast(f32)));
            out.store(isLow.select(sum, 1));
            count.at(0).store(number);
          },
        ),
      inputs: { x: fromNumbers(f32, [256], row) },
      expected: { out: row.map((each) => (each < 0 ? 2 * each : 1)), count: [2.5] },
      targets: everyTarget,
    },
  ],
  refused: [
    {
      code: "TW1008",
      by: () =>
        kernel({ name: "a_window", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
          // @ts-expect-error a window is no value
          optimizationBarrier(x);
        }),
    },
  ],
};

const inline: Feature = {
  name: "Inline PTX that touches memory",
  written: ["memory: { reads: [x] }"],
  page: "language.md#code-that-touches-memory",
  cases: () => [
    {
      name: "a vector load of global memory, and an update of it by every lane",
      kernel: () =>
        kernel(
          {
            name: "inline_memory",
            inputs: { x: tensor(f32, [512]) },
            outputs: { out: tensor(f32, [512]) },
            inouts: { count: tensor(i32, [2]) },
          },
          ({ x, out, count }) => {
            const [tile] = inlinePtx({
              operands: [],
              memory: { reads: [x], writes: [count.at(1)] },
              results: [{ dtype: f32, shape: [512] }],
              layouts: { operands: [], results: ["(R0 R1 L0 L1 L2 L3 L4 W0 W1)"] },
              code: (_, [to], { reads: [from], writes: [counter] }) => `
                .reg .b32 t; .reg .b64 w; mov.u32 t, %tid.x; mul.wide.u32 w, t, 16;
                add.s64 w, w, ${from}; ld.global.v4.f32 {${to.join(", ")}}, [w];
                red.global.add.s32 [${counter}], 1;`,
              meaning: () => {
                count.at(1).atomicAdd(128);
                return [x.load()];
              },
            });
            out.store(tile.add(1));
          },
        ),
      inputs: { x: fromNumbers(f32, [512], [...row, ...row]), count: zeros(2) },
      expected: { out: [...row, ...row].map((each) => each + 1), count: [0, 128] },
      targets: everyTarget,
    },
  ],
  refused: [
    {
      code: "TW1008",
      by: () =>
        kernel({ name: "no_window", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
          inlinePtx({
            operands: [],
            // @ts-expect-error a tile is no window
            memory: { reads: [x.load()] },
            results: [],
            layouts: { operands: [], results: [] },
            code: () => "",
            meaning: () => [],
          });
        }),
    },
  ],
};

export const memoryOrderFeatures: readonly Feature[] = [
  memoryOrder,
  compareAndSwap,
  barrier,
  inline,
];
