import { describe, expect, test } from "vitest";
import { runKernel, schedules } from "../../test/simulation.ts";
import type { Run } from "../../test/simulation.ts";
import { withHostTurns } from "../../test/support/clocks.ts";
import { bf16, f32, i32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { Kernel } from "../ir/node.ts";
import {
  accumulator,
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  commitGroup,
  commitShared,
  copyAsync,
  full,
  gmem,
  kernel,
  loop,
  prefetch,
  semaphore,
  slice,
  smem,
  waitGroup,
  wgmma,
  when,
  whileLoop,
} from "../lang/index.ts";
import { Random } from "../support/random.ts";

function counting(count: number): HostArray {
  return fromNumbers(
    f32,
    [count],
    Float64Array.from({ length: count }, (_, i) => i),
  );
}

/** Every schedule is clean and gives the same result. */
async function expectClean(
  definition: { readonly kernel: Kernel },
  inputs: { readonly [name: string]: HostArray | number },
  name: string,
  expected: readonly number[],
): Promise<void> {
  for (const schedule of schedules)
    for (const checks of [true, false]) {
      const run = await runKernel(definition, inputs, { ...schedule, checks });
      const label = `${schedule.schedule} ${schedule.seed}: ${run.findings.join("\n")}`;
      expect(run.findings, label).toEqual([]);
      expect(run.numbers(name), label).toEqual(expected);
    }
}

/** Two threads hand tiles over through a ring of two buffers. */
function ring(tiles: number) {
  return kernel(
    {
      name: "ring",
      threads: ["load", "store"],
      inputs: { x: tensor(f32, [tiles * 64]) },
      outputs: { out: tensor(f32, [tiles * 64]) },
      scratch: {
        buffer: smem(f32, [2, 64]),
        full: barrier({ count: 2 }),
        empty: barrier({ count: 2 }),
      },
    },
    ({ load, store, x, out, buffer, full: filled, empty }) => {
      load(() => {
        loop(tiles, (i) => {
          const stage = i.rem(2);
          when(i.ge(2), () => {
            empty.at(stage).wait();
          });
          copyAsync(x.at(slice(i.mul(64), 64)), buffer.at(stage), { barrier: filled.at(stage) });
        });
      });
      store(() => {
        loop(tiles, (i) => {
          const stage = i.rem(2);
          filled.at(stage).wait();
          out.at(slice(i.mul(64), 64)).store(buffer.at(stage).load().mul(2));
          when(i.lt(tiles - 2), () => {
            commitShared();
            empty.at(stage).arrive();
          });
        });
      });
    },
  );
}

describe("barriers and copies", () => {
  test("a ring of buffers between two threads", async () => {
    const expected = Array.from({ length: 7 * 64 }, (_, i) => 2 * i);
    await expectClean(ring(7), { x: counting(7 * 64) }, "out", expected);
  });

  test("waits by parity", async () => {
    const k = kernel(
      {
        name: "parity",
        inputs: { x: tensor(f32, [4 * 64]) },
        outputs: { out: tensor(f32, [4 * 64]) },
        scratch: { buffer: smem(f32, [64]), filled: barrier() },
      },
      ({ x, out, buffer, filled }) => {
        loop(4, (i) => {
          const here = slice(i.mul(64), 64);
          commitShared();
          copyAsync(x.at(here), buffer, { barrier: filled });
          filled.wait({ parity: i.rem(2) });
          out.at(here).store(buffer.load());
        });
      },
    );
    await expectClean(
      k,
      { x: counting(256) },
      "out",
      Array.from({ length: 256 }, (_, i) => i),
    );
  });

  test("copies fill what overhangs with zero or NaN, and clip", async () => {
    const k = kernel(
      {
        name: "overhang",
        inputs: { x: tensor(f32, [6]) },
        outputs: { out: tensor(f32, [2, 8]), clipped: tensor(f32, [6]) },
        scratch: { a: smem(f32, [8]), b: smem(f32, [8]), filled: barrier({ arrivals: 2 }) },
      },
      ({ x, out, clipped, a, b, filled }) => {
        prefetch(x);
        copyAsync(x.at(slice(0, 8)), a, { barrier: filled });
        copyAsync(x.at(slice(0, 8)), b, { barrier: filled, fill: "nan" });
        filled.wait();
        out.at(0).store(a.load());
        out.at(1).store(b.load());
        copyAsync(a, clipped.at(slice(0, 8)));
        commitGroup();
        waitGroup();
      },
    );
    const values = [0, 1, 2, 3, 4, 5];
    await expectClean(k, { x: counting(6) }, "out", [...values, 0, 0, ...values, NaN, NaN]);
    await expectClean(k, { x: counting(6) }, "clipped", values);
  });

  test("groups are awaited in order, for reading or to the end", async () => {
    const k = kernel(
      {
        name: "groups",
        outputs: { out: tensor(f32, [8, 64]) },
        scratch: { buffer: smem(f32, [2, 64]) },
      },
      ({ out, buffer }) => {
        loop(8, (i) => {
          const stage = buffer.at(i.rem(2));
          waitGroup(1, { read: true });
          stage.store(full(f32, [64], 1).mul(i.cast(f32)));
          commitShared();
          copyAsync(stage, out.at(i));
          commitGroup();
        });
        waitGroup();
      },
    );
    const expected = Array.from({ length: 512 }, (_, i) => Math.floor(i / 64));
    await expectClean(k, {}, "out", expected);
  });

  test("copies that add do not race with each other", async () => {
    const k = kernel(
      {
        name: "adding",
        grid: { i: 5 },
        inouts: { sum: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]) },
      },
      ({ i, sum, buffer }) => {
        buffer.store(full(f32, [64], 1).mul(i.cast(f32)));
        commitShared();
        copyAsync(buffer, sum, { reduction: "add" });
        commitGroup();
        waitGroup(0, { read: true });
      },
    );
    await expectClean(
      k,
      { sum: counting(64) },
      "sum",
      Array.from({ length: 64 }, (_, i) => i + 10),
    );
  });
});

describe("wgmma", () => {
  test("accumulates in order over shared and register operands", async () => {
    const k = kernel(
      {
        name: "products",
        inputs: { a: tensor(bf16, [64, 32]), b: tensor(bf16, [32, 8]) },
        outputs: { out: tensor(f32, [64, 8]) },
        scratch: { sa: smem(bf16, [64, 32]), sb: smem(bf16, [32, 8]) },
      },
      ({ a, b, out, sa, sb }) => {
        sa.store(a.load());
        sb.store(b.load());
        commitShared();
        const half = (start: number) => slice(start, 16);
        const first = wgmma(
          accumulator(f32, [64, 8], full(f32, [64, 8], 1)),
          sa.at(slice(0, 64), half(0)),
          sb.at(half(0), slice(0, 8)),
        );
        const right = a.at(slice(0, 64), half(16)).load();
        const second = wgmma(first.waitPending(1), right, sb.at(half(16), slice(0, 8)));
        out.store(second.wait());
      },
    );
    const random = new Random(3);
    const a = Array.from({ length: 64 * 32 }, () => random.below(9) - 4);
    const b = Array.from({ length: 32 * 8 }, () => random.below(9) - 4);
    const expected = Array.from({ length: 512 }, (_, element) => {
      const [row, column] = [Math.floor(element / 8), element % 8];
      let sum = 1;
      for (let i = 0; i < 32; i++) sum += (a[row * 32 + i] ?? 0) * (b[i * 8 + column] ?? 0);
      return sum;
    });
    const inputs = { a: fromNumbers(bf16, [64, 32], a), b: fromNumbers(bf16, [32, 8], b) };
    await expectClean(k, inputs, "out", expected);
  });
});

describe("clusters", () => {
  test("blocks read each other's shared memory", async () => {
    const k = kernel(
      {
        name: "exchange",
        grid: { i: 2, j: 4 },
        cluster: { i: 2, j: 2 },
        outputs: { out: tensor(i32, [2, 4]) },
        scratch: { buffer: smem(i32, [1]) },
      },
      ({ i, j, out, buffer }) => {
        buffer.at(0).store(i.mul(10).add(j));
        clusterSync();
        const rank = clusterRank("i").mul(2).add(clusterRank("j"));
        const other = buffer.peer(rank.add(1).rem(4)).at(0).loadScalar();
        clusterSync();
        out.at(i, j).store(other);
      },
    );
    await expectClean(k, {}, "out", [1, 10, 3, 12, 11, 0, 13, 2]);
  });

  test("a multicast copy lands, and arrives, in every block along its axis", async () => {
    const k = kernel(
      {
        name: "multicast",
        grid: { i: 2, j: 2 },
        cluster: { i: 2, j: 2 },
        inputs: { x: tensor(f32, [2, 64]) },
        outputs: { out: tensor(f32, [2, 2, 64]) },
        scratch: { buffer: smem(f32, [64]), filled: barrier() },
      },
      ({ i, j, x, out, buffer, filled }) => {
        clusterSync();
        when(clusterRank("j").eq(0), () => {
          copyAsync(x.at(i), buffer, { barrier: filled, multicast: ["j"] });
        });
        filled.wait();
        out.at(i, j).store(buffer.load());
        clusterSync();
      },
    );
    const rows = [0, 0, 1, 1].flatMap((row) => Array.from({ length: 64 }, (_, i) => row * 64 + i));
    const x = fromNumbers(
      f32,
      [2, 64],
      Float64Array.from({ length: 128 }, (_, i) => i),
    );
    await expectClean(k, { x }, "out", rows);
  });

  test("arrivals on a peer's barrier order what came before", async () => {
    const k = kernel(
      {
        name: "remote",
        grid: { i: 2 },
        cluster: { i: 2 },
        outputs: { out: tensor(i32, [2]) },
        scratch: { buffer: smem(i32, [1]), filled: barrier() },
      },
      ({ i, out, buffer, filled }) => {
        const other = i.xor(1);
        buffer.peer(other).at(0).store(i.add(5));
        filled.arrive({ peer: other });
        filled.wait();
        out.at(i).store(buffer.at(0).loadScalar());
      },
    );
    await expectClean(k, {}, "out", [6, 5]);
  });
});

describe("semaphores", () => {
  /** Each block adds to what the one before it left. */
  const chain = (blocks: number) =>
    kernel(
      {
        name: "chain",
        grid: { i: blocks },
        outputs: { out: tensor(i32, [blocks]) },
        scratch: { total: gmem(i32, [1]), turn: semaphore() },
      },
      ({ i, out, total, turn }) => {
        turn.wait(i);
        const before = when(
          i.eq(0),
          () => i,
          () => total.at(0).loadScalar(),
        );
        total.at(0).store(before.add(i));
        out.at(i).store(before);
        turn.signal();
      },
    );

  test("blocks wait for blocks before them", async () => {
    const expected = Array.from({ length: 20 }, (_, i) => (i === 0 ? 0 : (i * (i - 1)) / 2));
    await expectClean(chain(20), {}, "out", expected);
  });

  test("those that a kernel restores are at 0 in the end, or it is told so", async () => {
    const told = (decrement: boolean) =>
      kernel(
        {
          name: "told",
          grid: { i: 4 },
          outputs: { out: tensor(i32, [4]) },
          scratch: { turns: semaphore([4], { restored: true }) },
        },
        ({ i, out, turns }) => {
          turns.at(i).signal(2);
          turns.at(i).wait(2, { decrement });
          out.at(i).store(i);
        },
      );
    await expectClean(told(true), {}, "out", [0, 1, 2, 3]);
    const { findings } = await runKernel(told(false), {});
    expect(findings).toMatchObject([
      {
        code: "TW3025",
        summary: "semaphore turns[0] is not left at 0",
        found: "semaphore turns[0] at 2, and 3 more are not 0",
      },
    ]);
  });

  test("a wait that decrements leaves the rest", async () => {
    const k = kernel(
      {
        name: "tokens",
        grid: { i: 6 },
        inouts: { used: tensor(i32, [1]) },
        scratch: { tokens: semaphore([1]) },
      },
      ({ i, used, tokens }) => {
        when(i.eq(0), () => {
          tokens.at(0).signal(1);
        });
        tokens.at(0).wait(1, { decrement: true });
        used.at(0).store(used.at(0).loadScalar().add(1));
        tokens.at(0).signal();
      },
    );
    await expectClean(k, { used: fromNumbers(i32, [1], [0]) }, "used", [6]);
  });

  test("a thread that polls lets others run, even in the fixed schedule", async () => {
    const k = kernel(
      {
        name: "poll",
        grid: { i: 2 },
        inouts: { flag: tensor(i32, [1]) },
        outputs: { out: tensor(i32, [1]) },
      },
      ({ i, flag, out }) => {
        when(
          i.eq(0),
          () => {
            const seen = whileLoop(
              i,
              (value) => value.eq(0),
              () => flag.at(0).atomicAdd(0),
            );
            out.at(0).store(seen);
          },
          () => {
            flag.at(0).atomic("exchange", 7);
          },
        );
      },
    );
    await expectClean(k, { flag: fromNumbers(i32, [1], [0]) }, "out", [7]);
  });
});

describe("schedules", () => {
  const racing = kernel(
    {
      name: "racing",
      threads: ["a", "b", "c"],
      grid: { i: 4 },
      inouts: { log: tensor(i32, [1]) },
      outputs: { out: tensor(i32, [4, 3]) },
    },
    ({ i, a, b, c, log, out }) => {
      [a, b, c].forEach((thread, position) => {
        thread(() => {
          out.at(i, position).store(log.at(0).atomicAdd(1));
        });
      });
    },
  );
  const trace = async (schedule: "random" | "adversarial", seed: number): Promise<Run> =>
    runKernel(racing, { log: fromNumbers(i32, [1], [0]) }, { schedule, seed });

  test.each(["random", "adversarial"] as const)("%s is decided by its seed", async (schedule) => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 6; seed++) {
      const [once, again] = [await trace(schedule, seed), await trace(schedule, seed)];
      expect(again.numbers("out")).toEqual(once.numbers("out"));
      expect(again.statistics).toEqual(once.statistics);
      orders.add(once.numbers("out").join());
    }
    expect(orders.size).toBeGreaterThan(3);
  });

  test("steps grow linearly with the work", async () => {
    const steps = async (tiles: number): Promise<number> => {
      const run = await runKernel(ring(tiles), { x: counting(tiles * 64) }, { schedule: "random" });
      return run.statistics.steps;
    };
    const [short, long] = [await steps(50), await steps(200)];
    expect(long / short).toBeLessThan(4.4);
  });

  test("a run leaves room for the host", async () => {
    const k = kernel(
      {
        name: "long",
        grid: { i: 16 },
        inputs: { x: tensor(f32, [1 << 14]) },
        outputs: { out: tensor(f32, [1 << 14]) },
      },
      ({ i, x, out }) => {
        const here = slice(i.mul(1024), 1024);
        out.at(here).store(x.at(here).load().exp());
      },
    );
    const { result, turns } = await withHostTurns(
      () => undefined,
      () => runKernel(k, { x: counting(1 << 14) }),
    );
    expect(result.findings).toEqual([]);
    expect(turns).toBeGreaterThan(2);
  });
});
