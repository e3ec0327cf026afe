/** What the simulator and the emulator used to say differently has one meaning, here by kernel. */
import { describe, expect, test } from "vitest";
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  bool,
  clusterArrive,
  commitGlobal,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  full,
  gmem,
  i32,
  i4,
  i64,
  kernel,
  loop,
  open,
  scoped,
  semaphore,
  slice,
  smem,
  TilewrightError,
  toNumbers,
  u8,
  waitGroup,
  warps,
  wgmma,
  commitGroup,
  when,
} from "tilewright";
import type { HostArray, KernelDefinition, OpenOptions } from "tilewright";
import { rolledProducts } from "./support/lowered-kernels.ts";

/** What a device says: the code of what it found, or the elements of the output. */
async function verdict(
  device: "simulator" | "emulator",
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray } = {},
  options: Pick<OpenOptions, "target"> = {},
): Promise<string | readonly number[]> {
  const opened = await open(device, options);
  try {
    const results: { readonly [name: string]: HostArray } = await opened.run(definition, inputs);
    return Object.values(results).flatMap((array) => [...toNumbers(array)].map(Number));
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return error.code;
  } finally {
    opened.dispose();
  }
}

const devices = ["simulator", "emulator"] as const;

/** The same with either device, but for the code, of which each has its own. */
async function expectBoth(
  expected: { readonly simulator: string; readonly emulator: string } | readonly number[],
  definition: KernelDefinition,
  ...more: [inputs?: { readonly [name: string]: HostArray }, options?: Pick<OpenOptions, "target">]
): Promise<void> {
  for (const device of devices) {
    const wanted = "simulator" in expected ? expected[device] : expected;
    expect(await verdict(device, definition, ...more), device).toEqual(wanted);
  }
}

describe("4-bit elements that share a byte", () => {
  test("are stored by different blocks without a race", async () => {
    const stores = kernel(
      { name: "stores", grid: { i: 4 }, outputs: { out: tensor(i4, [4, 1]) } },
      ({ i, out }) => {
        out.at(i).at(0).store(i.cast(i4).add(1));
      },
    );
    await expectBoth([1, 2, 3, 4], stores);
  });

  test("are stored by blocks whose rows end within a byte", async () => {
    const rows = kernel(
      {
        name: "rows",
        grid: { i: 8 },
        inputs: { w: tensor(i4, [8, 5]) },
        outputs: { out: tensor(i4, [8, 5]) },
      },
      ({ i, w, out }) => out.at(i).store(w.at(i).load()),
    );
    const numbers = Array.from({ length: 40 }, (_, index) => ((index * 7) % 16) - 8);
    await expectBoth(numbers, rows, { w: fromNumbers(i4, [8, 5], numbers) });
  });

  test("race where one block loads the byte of which another stores a half", async () => {
    const updates = kernel(
      { name: "updates", grid: { i: 8 }, inouts: { x: tensor(i4, [8, 5]) } },
      ({ i, x }) => {
        x.at(i).store(x.at(i).load().add(1));
      },
    );
    const x = { dtype: i4, shape: [8, 5], data: new Uint8Array(20) } as const;
    await expectBoth({ simulator: "TW3001", emulator: "TW8014" }, updates, { x });
  });
});

test("an arrival at the cluster's barrier needs a wait, also at the end", async () => {
  const trailing = kernel(
    { name: "trailing", grid: { i: 2 }, cluster: { i: 2 }, outputs: { out: tensor(f32, [2, 4]) } },
    ({ i, out }) => {
      out.at(i).store(full(f32, [4], 1));
      clusterArrive();
    },
  );
  await expectBoth({ simulator: "TW3018", emulator: "TW8080" }, trailing);
});

test("counters that are restored, and are not left at 0, are reported by both", async () => {
  const told = (decrement: boolean) =>
    kernel(
      {
        name: "told",
        grid: { i: 4 },
        outputs: { out: tensor(f32, [4]) },
        scratch: { turns: semaphore([4], { restored: true }) },
      },
      ({ i, out, turns }) => {
        turns.at(i).signal(2);
        turns.at(i).wait(2, { decrement });
        out.at(i).store(i.cast(f32));
      },
    );
  await expectBoth([0, 1, 2, 3], told(true));
  await expectBoth({ simulator: "TW3025", emulator: "TW3025" }, told(false));
  const emulator = await open("emulator");
  await expect(emulator.run(told(false), {})).rejects.toThrow(
    "semaphore turns[0] at 2, and 3 more are not 0",
  );
  emulator.dispose();
});

test("a semaphore past 2^31 - 1 is negative", async () => {
  const count = (least: number) =>
    kernel(
      { name: "count", outputs: { out: tensor(f32, [1]) }, scratch: { s: semaphore() } },
      ({ out, s }) => {
        s.signal(2 ** 31 - 1);
        s.signal(1);
        s.wait(least);
        out.at(0).store(1);
      },
    );
  await expectBoth({ simulator: "TW3011", emulator: "TW8020" }, count(1));
  await expectBoth([1], count(-(2 ** 31)));
});

test("several phases behind the last wait are one arrival too many", async () => {
  const extra = kernel(
    {
      name: "extra",
      threads: ["arriving", "waiting"],
      outputs: { out: tensor(f32, [1]) },
      scratch: { b: barrier() },
    },
    ({ out, b, arriving, waiting }) => {
      arriving(() => {
        b.arrive();
        b.arrive();
      });
      waiting(() => {
        out.at(0).store(1);
      });
    },
  );
  await expectBoth({ simulator: "TW3008", emulator: "TW8066" }, extra);
});

test("what needs wgmma is refused for a target without it", async () => {
  const product = kernel({ name: "product", outputs: { out: tensor(f32, [64, 8]) } }, ({ out }) => {
    out.store(accumulator(f32, [64, 8]).wait());
  });
  const target = { target: "sm_80" } as const;
  await expectBoth({ simulator: "TW6105", emulator: "TW6105" }, product, {}, target);
});

describe("a commit counts for all that whoever makes it knows of", () => {
  test("in shared memory, by the thread that copies", async () => {
    const handOver = kernel(
      {
        name: "handOver",
        threads: ["write", "send"],
        outputs: { out: tensor(f32, [64]) },
        scratch: { tile: smem(f32, [64]), ready: barrier() },
      },
      ({ out, tile, ready, write, send }) => {
        write(() => {
          tile.store(full(f32, [64], 3));
          ready.arrive();
        });
        send(() => {
          ready.wait();
          commitShared();
          copyAsync(tile, out);
          commitGroup();
          waitGroup();
        });
      },
    );
    await expectBoth(new Array<number>(64).fill(3), handOver);
  });

  test("in global memory, by the block that copies", async () => {
    const gather = kernel(
      {
        name: "gather",
        grid: { i: 2 },
        outputs: { out: tensor(f32, [64]) },
        scratch: {
          message: gmem(f32, [64]),
          sent: semaphore(),
          tile: smem(f32, [64]),
          landed: barrier(),
        },
      },
      ({ i, out, message, sent, tile, landed }) => {
        when(
          i.eq(0),
          () => {
            message.store(full(f32, [64], 5));
            sent.signal();
          },
          () => {
            sent.wait(1);
            commitGlobal();
            copyAsync(message.at(slice(0, 64)), tile, { barrier: landed });
            landed.wait();
            out.store(tile.load());
          },
        );
      },
    );
    await expectBoth(new Array<number>(64).fill(5), gather);
  });
});

test("a product that does not add takes the place of all that was there, in every slab and over all of k", async () => {
  const [m, n, k] = [128, 8, 32];
  const products = kernel(
    {
      name: "products",
      grid: { i: 2 },
      inputs: { before: tensor(f32, [2, m, n]) },
      outputs: { out: tensor(f32, [2, m, n]) },
      scratch: { a: smem(bf16, [m, k]), b: smem(bf16, [k, n]) },
    },
    ({ i, before, out, a, b }) => {
      a.store(full(bf16, [m, k], 1));
      b.store(full(bf16, [k, n], 2));
      commitShared();
      const sums = accumulator(f32, [m, n], before.at(i).load());
      out.at(i).store(wgmma(sums, a, b, { adds: i.gt(0) }).wait());
    },
  );
  const halves = (first: number, second: number): number[] => [
    ...new Array<number>(m * n).fill(first),
    ...new Array<number>(m * n).fill(second),
  ];
  await expectBoth(halves(64, 69), products, {
    before: fromNumbers(f32, [2, m, n], halves(NaN, 5)),
  });
});

describe("an accumulator of anything", () => {
  const [m, n, k] = [64, 8, 16];
  /** The first of the products adds to what nobody wrote from a step on. */
  const products = (least: number) =>
    kernel(
      {
        name: "products",
        outputs: { out: tensor(f32, [m, n]) },
        scratch: { a: smem(bf16, [m, k]), b: smem(bf16, [k, n]) },
      },
      ({ out, a, b }) => {
        a.store(full(bf16, [m, k], 1));
        b.store(full(bf16, [k, n], 2));
        commitShared();
        const carry = accumulator(f32, [m, n], "anything");
        const sums = loop({ to: 3, carry }, (step, before) =>
          wgmma(before, a, b, { adds: step.ge(least) }).waitPending(1),
        );
        out.store(sums.wait());
      },
    );

  test("is that of a first product that does not add", async () => {
    await expectBoth(new Array<number>(m * n).fill(96), products(1));
  });

  // 96 of the sum lie in runs of 32, so that the steps from instruction to instruction differ: that product is no loop.
  test.each([64, 96])("is that of products that may be loops, %i deep", async (depth) => {
    const [height, width] = [64, 16];
    const [x, y] = [height * depth, depth * width].map((count) =>
      Array.from({ length: count }, (_, index) => ((index * 7) % 11) - 5),
    ) as [number[], number[]];
    const expected = Array.from({ length: height * width }, (_, index) => {
      const [row, column] = [Math.floor(index / width), index % width];
      let sum = 0;
      for (let at = 0; at < depth; at += 1)
        sum += (x[row * depth + at] ?? NaN) * (y[at * width + column] ?? NaN);
      return 3 * sum;
    });
    await expectBoth(expected, rolledProducts(depth), {
      x: fromNumbers(bf16, [height, depth], x),
      y: fromNumbers(bf16, [depth, width], y),
    });
  });

  test("spoils what is added to it on the simulator, and is found on the emulator", async () => {
    const device = await open("simulator");
    const { out } = await device.run(products(0), {});
    device.dispose();
    expect(toNumbers(out).every(Number.isNaN)).toBe(true);
    const emulator = await open("emulator");
    await expect(emulator.run(products(0), {})).rejects.toThrow("TW8");
    emulator.dispose();
  });
});

test("bytes of a scope's barriers are used again only behind the lane that ends them", async () => {
  const size = 32;
  const widened = kernel(
    {
      name: "widened",
      inputs: { x: tensor(u8, [size, size]) },
      outputs: { out: tensor(i64, [size, size]) },
    },
    ({ x, out }) => {
      const own = { buffer: smem(u8, [size, size]), ready: barrier() };
      const narrow = scoped(own, ({ buffer, ready }) => {
        copyAsync(x, buffer, { barrier: ready });
        ready.wait();
        return buffer.load();
      });
      // Elements eight times as wide change threads through more bytes than the buffer had.
      out.store(narrow.cast(i64).cumsum({ axis: 0 }).transpose().cumsum({ axis: 0 }));
    },
  );
  const x = fromNumbers(u8, [size, size], new Uint8Array(size * size).fill(1));
  const counts = Array.from({ length: size * size }, (_, index) => {
    const [row, column] = [Math.floor(index / size), index % size];
    return (row + 1) * (column + 1);
  });
  await expectBoth(counts, widened, { x });
});

test("warps on their own have all of a tile that the thread held in parts", async () => {
  const [rows, columns] = [64, 4];
  const greatest = kernel(
    {
      name: "greatest",
      inputs: { x: tensor(i32, [rows, columns]) },
      outputs: { places: tensor(i32, [4, rows]), sums: tensor(i32, [rows, columns]) },
    },
    ({ x, places, sums }) => {
      const running = x.load().cumsum({ axis: 0 });
      const place = running.argmax({ axis: 1 });
      warps((warp) => {
        places.at(warp).store(place.mul(4).add(warp));
      });
      sums.store(running.add(place.expand({ axis: 1 })));
    },
  );
  const numbers = Array.from({ length: rows * columns }, (_, index) => (index * 7) % 5);
  const sums = numbers.map((_, index) => {
    let sum = 0;
    for (let at = index; at >= 0; at -= columns) sum += numbers[at] ?? 0;
    return sum;
  });
  const place = Array.from({ length: rows }, (_, row) => {
    const line = sums.slice(row * columns, (row + 1) * columns);
    return line.indexOf(Math.max(...line));
  });
  const expected = [0, 1, 2, 3].flatMap((warp) => place.map((at) => 4 * at + warp));
  const plus = sums.map((sum, index) => sum + (place[Math.floor(index / columns)] ?? 0));
  const x = fromNumbers(i32, [rows, columns], numbers);
  await expectBoth([...expected, ...plus], greatest, { x });
});

test("a byte of bool other than 0 is true", async () => {
  const turned = kernel(
    { name: "turned", inputs: { x: tensor(bool, [4]) }, outputs: { out: tensor(bool, [4]) } },
    ({ x, out }) => {
      out.store(x.load().not());
    },
  );
  const x = { dtype: bool, shape: [4], data: new Uint8Array([0, 1, 2, 255]) } as const;
  await expectBoth([1, 0, 0, 0], turned, { x });
});

test("an output that is written in part is reported by both, with its elements", async () => {
  const part = kernel(
    { name: "part", grid: { i: 2 }, outputs: { out: tensor(f32, [3, 4]) } },
    ({ i, out }) => {
      out.at(i).store(full(f32, [4], 1));
    },
  );
  await expectBoth({ simulator: "TW3020", emulator: "TW3020" }, part);
  const half = kernel(
    { name: "half", outputs: { out: tensor(f32, [64]) }, scratch: { t: smem(f32, [64]) } },
    ({ out, t }) => {
      t.at(slice(0, 32)).store(full(f32, [32], 1));
      commitShared();
      copyAsync(t, out);
      commitGroup();
      waitGroup();
    },
  );
  await expectBoth({ simulator: "TW3002", emulator: "TW8013" }, half);
});
