/**
 * Products of pairs of blocks: what is found of waits, commits and arrivals that are left out, by the simulator and by the emulator.
 */
import { describe, expect, test } from "vitest";
import { takesAll } from "./support/sample.ts";
import { runKernel, schedules as allSchedules } from "./simulation.ts";
import type { Kernel } from "../src/ir/node.ts";
import { bf16, f32, f8e4m3fn, f8e8m0fnu } from "../src/formats/dtype.ts";
import { fromNumbers } from "../src/formats/hostarray.ts";
import {
  all,
  barrier,
  block,
  clusterSync,
  commitShared,
  copyAsync,
  full,
  kernel,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tensor,
  tmem,
  when,
} from "../src/lang/index.ts";
import { open } from "../src/runtime/open.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import { targets } from "../src/targets/target.ts";
import type { KernelDefinition } from "../src/lang/index.ts";

const [rows, n, k] = [128, 32, 32];

/** What is found hangs on what the kernel orders, not on the schedule: one in order and an adversarial one are usually enough. */
const schedules = takesAll ? allSchedules : [allSchedules.at(0) ?? {}, allSchedules.at(-1) ?? {}];

function numbers(height: number, width: number, of: (row: number, column: number) => number) {
  const values = Float64Array.from({ length: height * width }, (_, at) =>
    of(Math.floor(at / width), at % width),
  );
  return fromNumbers(bf16, [height, width], values);
}

const left = (row: number, column: number): number => ((row * 7 + column * 3) % 9) - 4;
const right = (row: number, column: number): number => ((row * 5 + column * 11) % 7) - 3;

const expected = Array.from({ length: 2 * rows * n }, (_, at) => {
  let sum = 0;
  for (let each = 0; each < k; each += 1)
    sum += left(Math.floor(at / n), each) * right(each, at % n);
  return 2 * sum;
});

/** What may be left out of the kernel. */
interface Left {
  readonly fullWait?: boolean;
  readonly emptyWait?: boolean;
  readonly commit?: boolean;
  readonly stay?: boolean;
  readonly emptyMulticast?: boolean;
  readonly doneMulticast?: boolean;
  readonly doneWait?: boolean;
  readonly leader?: boolean;
  readonly partner?: boolean;
}

/** A product of a pair, whose second half of k takes the place of the first in shared memory. */
function multiplying(out: Left = {}) {
  const without = (part: keyof Left): boolean => out[part] === false;
  return kernel(
    {
      name: "multiplying",
      grid: { i: 1 },
      cluster: { half: 2 },
      threads: ["copy", "multiply", "store"],
      inputs: { a: tensor(bf16, [2 * rows, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(f32, [2 * rows, n]) },
      scratch: {
        sums: tmem(f32, [rows, n], { pair: true }),
        left: smem(bf16, [rows, k]),
        right: smem(bf16, [k, n / 2]),
        landed: barrier({ arrivals: 2 }),
        empty: barrier(),
        done: barrier(),
      },
    },
    ({ half, a, b, c, left: own, right: other, sums, landed, empty, done, ...threads }) => {
      const { copy, multiply, store } = threads;
      copy(() => {
        for (const step of [0, 1]) {
          if (step > 0 && !without("emptyWait")) empty.wait();
          copyAsync(a.at(block(half, rows), all), own, { barrier: landed, pair: true });
          const columns = slice(half.mul(n / 2), n / 2);
          const copyRight = (): void => {
            copyAsync(b.at(all, columns), other, { barrier: landed, pair: true });
          };
          if (without("partner")) when(half.eq(0), copyRight);
          else copyRight();
        }
      });
      multiply(() => {
        const issue = (): void => {
          for (const step of [0, 1]) {
            if (!without("fullWait")) landed.wait();
            tcgen05Mma(sums, own, other, { adds: step > 0, pair: true });
            tcgen05Commit(empty, without("emptyMulticast") ? {} : { multicast: "half" });
          }
          if (without("commit")) done.arrive();
          else tcgen05Commit(done, without("doneMulticast") ? {} : { multicast: "half" });
        };
        if (without("leader")) issue();
        else when(half.eq(0), issue);
      });
      store(() => {
        const finish = (): void => {
          if (!without("doneWait")) done.wait();
          c.at(block(half, rows), all).store(sums.load());
        };
        if (without("stay")) when(half.eq(0), finish);
        else finish();
      });
    },
  );
}

const inputs = { a: numbers(2 * rows, k, left), b: numbers(k, n, right) };

async function codes(definition: { readonly kernel: Kernel }): Promise<string> {
  const found = new Set<string>();
  const given = definition.kernel.parameters.length > 0 ? inputs : {};
  for (const schedule of schedules) {
    const run = await runKernel(definition, given, { ...schedule, target: targets.sm_100a });
    for (const finding of run.findings) found.add(JSON.stringify(finding));
  }
  return [...found].join("\n");
}

/** What the emulator finds under some seeds. */
async function emulated(definition: KernelDefinition): Promise<string> {
  const found = new Set<string>();
  const given = definition.kernel.parameters.length > 0 ? inputs : {};
  for (const seed of takesAll ? [0, 1, 2, 3, 4, 5, 6, 7] : [0]) {
    const device = await open("emulator", { target: "sm_100a", seed });
    try {
      await device.run(definition, given as never);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      found.add(`${error.code} ${error.message}`);
    } finally {
      device.dispose();
    }
  }
  return [...found].join("\n");
}

describe("a product of a pair", () => {
  test("has the rows of both blocks, and columns of both", async () => {
    for (const schedule of schedules) {
      const run = await runKernel(multiplying(), inputs, { ...schedule, target: targets.sm_100a });
      expect(run.findings).toEqual([]);
      expect(run.numbers("c")).toEqual(expected);
    }
    expect(await emulated(multiplying())).toBe("");
  });

  test.each<[keyof Left, string, RegExp]>([
    ["fullWait", "a wait for both blocks' copies", /TW3001.*left: tcgen05Mma and copyAsync/s],
    ["emptyWait", "a wait before operands are copied over", /TW3001.*copyAsync and tcgen05Mma/s],
    [
      "emptyMulticast",
      "the other block's commit of operands",
      /TW3011.*half = 1\) waits for .*empty/s,
    ],
    ["doneMulticast", "the other block's commit of sums", /TW3011.*half = 1\) waits for .*done/s],
    ["commit", "a commit behind the last product", /TW3001.*sums: load and tcgen05Mma/s],
    ["doneWait", "a wait for the commit", /TW300[12].*sums/s],
    ["leader", "a block that leads", /TW3011.*half = 1\) waits for .*landed.*pair's leader/s],
    ["partner", "the other block's copy", /TW3011.*half = 0\) waits for .*landed/s],
    ["stay", "a block that stays until the product is over", /TW3010.*block can end.*tcgen05Mma/s],
  ])("without %s: %s", async (part, _, message) => {
    const found = await codes(multiplying({ [part]: false }));
    expect(found).toMatch(message);
    expect(found).toContain("pair-faults.test.ts");
    expect(await emulated(multiplying({ [part]: false }))).toContain("pair-faults.test.ts");
  });

  test("products that both blocks start, at one time", async () => {
    const both = kernel(
      {
        name: "both",
        grid: { i: 1 },
        cluster: { half: 2 },
        scratch: {
          sums: tmem(f32, [rows, n], { pair: true }),
          own: smem(bf16, [rows, k]),
          other: smem(bf16, [k, n / 2]),
          done: barrier({ arrivals: 2 }),
        },
      },
      ({ sums, own, other, done }) => {
        own.store(full(bf16, [rows, k], 1));
        other.store(full(bf16, [k, n / 2], 1));
        commitShared();
        clusterSync();
        tcgen05Mma(sums, own, other, { adds: false, pair: true });
        tcgen05Commit(done, { multicast: "half" });
        done.wait();
      },
    );
    expect(await codes(both)).toMatch(/TW3001.*sums: tcgen05Mma and tcgen05Mma/s);
    expect(await emulated(both)).toMatch(/TW8085.*pair-faults.test.ts/s);
  });

  /** A product of so many rows in each block, in one of which lanes of scales of b are others from here on. */
  function scaled(own: 64 | 128, from?: number) {
    const isHalved = own === 64;
    const lanes = isHalved ? 64 : 32;
    const bRows = isHalved ? 256 : 128;
    const pair = true;
    return kernel(
      {
        name: "scaled",
        grid: { i: 1 },
        cluster: { half: 2 },
        scratch: {
          sums: tmem(f32, [own, n], { pair }),
          a: smem(f8e4m3fn, [own, k]),
          b: smem(f8e4m3fn, [k, n / 2]),
          first: smem(f8e8m0fnu, [1, 1, 32, 16]),
          second: smem(f8e8m0fnu, [1, 1, lanes, 16]),
          aScales: tmem(f8e8m0fnu, [128, 4], { scales: true, pair }),
          bScales: tmem(f8e8m0fnu, [bRows, 4], { scales: isHalved ? "halves" : true, pair }),
          done: barrier(),
        },
      },
      ({ half, sums, a, b, first, second, aScales, bScales, done }) => {
        a.store(full(f8e4m3fn, [own, k], 1));
        b.store(full(f8e4m3fn, [k, n / 2], 1));
        first.store(full(f8e8m0fnu, [1, 1, 32, 16], 1));
        second.store(full(f8e8m0fnu, [1, 1, lanes, 16], 1));
        if (from !== undefined)
          when(half.eq(1), () => {
            second.at(all, all, slice(from, 16), all).store(full(f8e8m0fnu, [1, 1, 16, 16], 2));
          });
        commitShared();
        clusterSync();
        when(half.eq(0), () => {
          tcgen05Copy(first, aScales, { pair });
          tcgen05Copy(second, bScales, { pair });
          tcgen05Mma(sums, a, b, { adds: false, pair, scales: [aScales, bScales] });
          tcgen05Commit(done, { multicast: "half" });
        });
        done.wait();
      },
    );
  }

  test.each<[what: string, own: 64 | 128, from: number, RegExp]>([
    ["all", 128, 0, /TW3027.*different scales of b.*row 0, block 0/s],
    ["those of the second half", 64, 32, /TW3027.*different scales of b.*row 128, block 0/s],
  ])("scales of b that the blocks have different copies of: %s", async (_, own, from, message) => {
    expect(await codes(scaled(own, from))).toMatch(message);
    expect(await emulated(scaled(own, from))).toMatch(
      /TW8090.*copies of the scales of B.*pair-faults.test.ts/s,
    );
  });

  test.each<[what: string, own: 64 | 128, from?: number]>([
    ["no scales of b", 128],
    ["scales of more columns than b has", 64, 16],
  ])("%s that differ are no finding", async (_, own, from) => {
    expect(await codes(scaled(own, from))).toBe("");
    expect(await emulated(scaled(own, from))).toBe("");
  });
});
