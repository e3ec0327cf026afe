/** Barriers, semaphores and clusters. */
import {
  all,
  assert,
  barrier,
  block,
  constant,
  copyAsync,
  delay,
  f32,
  fromNumbers,
  full,
  i32,
  kernel,
  loop,
  open,
  pipeline,
  scoped,
  semaphore,
  slice,
  smem,
  tensor,
  warps,
  when,
  whileLoop,
  zeros,
} from "tilewright";
import type { Scalar } from "tilewright";
import type { KernelDefinition } from "../../src/lang/index.ts";
import type { TargetName } from "../../src/targets/target.ts";
import type { Feature } from "./feature.ts";

const everyTarget: readonly TargetName[] = [
  ...(["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"] as const),
];
const numbers = Array.from({ length: 128 }, (_, index) => index - 30);

/** Runs a kernel that the simulator must refuse. */
async function simulated(definition: KernelDefinition): Promise<void> {
  const device = await open("simulator", { onNotes: () => undefined });
  try {
    await device.run(definition, {});
  } finally {
    device.dispose();
  }
}

/** Tries again, after a little more time each time, until it is so. */
function until(isSo: () => Scalar<"bool">): void {
  const tries = whileLoop(
    constant(i32, 20),
    () => isSo().not(),
    (time) => {
      delay(time);
      return time.add(20);
    },
  );
  assert(tries.ge(20), "time does not go back");
}

const test: Feature = {
  name: "A barrier asked without waiting, and time between two tries",
  written: ["landed.test(0)", "delay(time)"],
  page: "language.md#program-threads-and-barriers",
  cases: () => [
    {
      name: "a copy",
      kernel: () =>
        kernel(
          {
            name: "polled_copy",
            inputs: { x: tensor(f32, [128]) },
            outputs: { out: tensor(f32, [128]) },
            scratch: { tile: smem(f32, [128]), landed: barrier() },
          },
          ({ x, out, tile, landed }) => {
            copyAsync(x, tile, { barrier: landed });
            until(() => landed.test(0));
            out.store(tile.load());
          },
        ),
      inputs: { x: fromNumbers(f32, [128], numbers) },
      expected: { out: numbers },
      targets: everyTarget,
    },
  ],
  refused: [
    {
      code: "TW1016",
      by: () =>
        kernel({ name: "long", outputs: {} }, () => {
          delay(2_000_000);
        }),
    },
    {
      code: "TW2080",
      by: () =>
        kernel({ name: "which", scratch: { landed: barrier({ count: 2 }) } }, ({ landed }) => {
          landed.test(0);
        }),
    },
  ],
};

/** Each of two producers fills three boxes, whose barriers the consumer takes column by column. */
const grids = () =>
  kernel(
    {
      name: "grids",
      grid: { i: 2 },
      threads: ["first", "second", "consumer"],
      inputs: { x: tensor(i32, [2, 2, 3, 16]) },
      outputs: { out: tensor(i32, [2, 2, 3, 16]) },
      scratch: {
        boxes: smem(i32, [2, 3, 16]),
        full: barrier({ count: [2, 3, 2], arrivals: 1 }),
      },
    },
    ({ i, x, out, boxes, full: ready, first, second, consumer }) => {
      [first, second].forEach((producer, side) =>
        producer(() => {
          const own = ready.at(side);
          loop(3, (column) => {
            copyAsync(x.at(i, side, column), boxes.at(side, column), {
              barrier: own.at(column, 0),
            });
            own.at(all, 1).at(column).arrive();
          });
        }),
      );
      consumer(() => {
        loop(3, (column) => {
          loop(2, (side) => {
            const box = boxes.at(side, column);
            const pair = ready.at(slice(side, 1), column).at(0);
            pair.at(0).wait();
            pair.at(1).wait({ parity: 0 });
            out.at(i, side, column).store(box.load().mul(column.add(1)));
          });
        });
      });
    },
  );

const gridNumbers = Array.from({ length: 2 * 2 * 3 * 16 }, (_, place) => place % 23);

const arrays: Feature = {
  name: "Arrays of barriers with several axes, and their parts",
  written: ["barrier({ count: [lists, slots] })", "full.at(list)", "landed.at(slot)"],
  page: "language.md#arrays-of-barriers",
  cases: () => [
    {
      name: "filled by rows and emptied by columns",
      kernel: grids,
      inputs: { x: fromNumbers(i32, [2, 2, 3, 16], gridNumbers) },
      expected: {
        out: gridNumbers.map((value, place) => value * ((Math.floor(place / 16) % 3) + 1)),
      },
      targets: everyTarget,
    },
  ],
  refused: [
    {
      code: "TW2080",
      by: () =>
        kernel({ name: "row", scratch: { ready: barrier({ count: [2, 3] }) } }, ({ ready }) => {
          ready.at(1).wait();
        }),
    },
    {
      code: "TW1017",
      by: () =>
        kernel({ name: "deep", scratch: { ready: barrier({ count: [2, 3] }) } }, ({ ready }) => {
          ready.at(1, 2, 0).wait();
        }),
    },
    {
      code: "TW3006",
      by: () =>
        simulated(
          kernel(
            { name: "beyond", scratch: { ready: barrier({ count: [2, 3] }) } },
            ({ ready }) => {
              loop({ from: 2, to: 4 }, (column) => ready.at(0, column).arrive());
            },
          ),
        ),
    },
  ],
};

/** Blocks hand tiles on, each polling the counter of the one before it. */
const chain = () =>
  kernel(
    {
      name: "chain",
      grid: { i: 4 },
      inouts: { box: tensor(i32, [5, 32]) },
      scratch: { ready: semaphore([4]) },
    },
    ({ i, box, ready }) => {
      when(i.gt(0), () => {
        until(() => ready.at(i.sub(1)).read().ge(3));
      });
      box.at(i.add(1)).store(box.at(i).load().mul(2).add(1));
      ready.at(i).signal(3);
    },
  );

const chained = Array.from({ length: 5 }, (_, row) =>
  Array.from({ length: 32 }, (__, column) => (column + 1) * 2 ** row - 1),
).flat();

const reading: Feature = {
  name: "Counters of semaphores, read without waiting",
  written: ["done.read()"],
  page: "language.md#semaphores",
  cases: () => [
    {
      name: "a chain of blocks",
      kernel: chain,
      inputs: {
        box: fromNumbers(
          i32,
          [5, 32],
          Array.from({ length: 160 }, (_, k) => k % 32),
        ),
      },
      expected: { box: chained },
      targets: everyTarget,
    },
    {
      name: "by warps",
      kernel: () =>
        kernel(
          {
            name: "read_by_warps",
            outputs: { out: tensor(i32, [4]) },
            scratch: { count: semaphore() },
          },
          ({ out, count }) => {
            count.signal(9);
            warps((warp) => out.at(warp).store(count.read().mul(warp)));
          },
        ),
      inputs: {},
      expected: { out: [0, 9, 18, 27] },
    },
  ],
  refused: [
    {
      code: "TW2083",
      by: () =>
        kernel({ name: "which", scratch: { counts: semaphore([2]) } }, ({ counts }) => {
          counts.read();
        }),
    },
  ],
};

const scopes: Feature = {
  name: "Scopes of semaphores: block, cluster, device, system",
  written: ['{ scope: "block" }'],
  page: "language.md#semaphores",
  cases: () =>
    (["block", "cluster", "device", "system"] as const).map((scope) => ({
      name: `within the ${scope}`,
      kernel: () =>
        kernel(
          {
            name: `within_${scope}`,
            grid: { i: 4 },
            cluster: { i: 2 },
            threads: ["writer", "reader"],
            inouts: { box: tensor(i32, [4]) },
            outputs: { out: tensor(i32, [4]) },
            scratch: { ready: semaphore([4]) },
          },
          ({ i, box, out, ready, writer, reader }) => {
            const from = scope === "block" ? i : scope === "cluster" ? i.xor(1) : i.mul(-1).add(3);
            writer(() => {
              box.at(i).store(i.mul(i));
              ready.at(i).signal(2, { scope });
            });
            reader(() => {
              until(() => ready.at(from).read({ scope }).ge(2));
              ready.at(from).wait(2, { decrement: true, scope });
              out.at(i).store(box.at(from).loadScalar());
            });
          },
        ),
      inputs: { box: fromNumbers(i32, [4], [0, 0, 0, 0]) },
      expected: {
        box: [0, 1, 4, 9],
        out: { block: [0, 1, 4, 9], cluster: [1, 0, 9, 4], device: [9, 4, 1, 0] }[
          scope === "system" ? "device" : scope
        ],
      },
      targets: ["sm_90a", "sm_100a", "sm_120a"] as const,
    })),
  refused: [
    {
      code: "TW1008",
      by: () =>
        kernel({ name: "warp_scope", scratch: { count: semaphore() } }, ({ count }) => {
          // @ts-expect-error there is no such scope
          count.signal(1, { scope: "warp" });
        }),
    },
    {
      code: "TW3001",
      by: () =>
        simulated(
          kernel(
            { name: "too_narrow", grid: { i: 2 }, scratch: { count: semaphore() } },
            ({ count }) => {
              count.signal(1, { scope: "block" });
            },
          ),
        ),
    },
  ],
};

/** Counts the blocks that have come here, by a counter of its own. */
function countBlocks(): Scalar<"i32"> {
  return scoped({ here: semaphore(), all: semaphore([1]) }, ({ here, all }) => {
    here.signal();
    all.at(0).signal();
    here.wait(3);
    return all.at(0).read();
  });
}

const ownCounters: Feature = {
  name: "Semaphores of a scope",
  written: ["scoped({ done: semaphore() }"],
  page: "language.md#semaphores",
  cases: () => [
    {
      name: "two calls of a function, and a thread's own",
      kernel: () =>
        kernel(
          {
            name: "own_counters",
            grid: { i: 3 },
            threads: ["a", "b"],
            outputs: { out: tensor(i32, [3, 2]), tile: tensor(f32, [3, 8]) },
          },
          ({ i, out, tile, a, b }) => {
            b(() => {
              out.at(i, 0).store(countBlocks());
              out.at(i, 1).store(countBlocks());
            });
            a(() => {
              scoped({ buffer: smem(f32, [8]), count: semaphore([3]) }, ({ buffer, count }) => {
                count.at(i).signal(i);
                buffer.store(full(f32, [8], 0.5).add(count.at(i).read().cast(f32)));
                tile.at(i).store(buffer.load());
              });
            });
          },
        ),
      inputs: {},
      expected: {
        out: [3, 3, 3, 3, 3, 3],
        tile: Array.from({ length: 24 }, (_, place) => Math.floor(place / 8) + 0.5),
      },
    },
  ],
  refused: [
    {
      code: "TW1008",
      by: () =>
        kernel({ name: "leaks" }, () => {
          scoped({ count: semaphore() }, ({ count }) => count);
        }),
    },
  ],
};

/** Two roles of a thread's warps, each with a pipeline that it opens in every turn. */
const roles = () =>
  kernel(
    {
      name: "warp_roles",
      threads: ["work", "rest"],
      inputs: { x: tensor(f32, [2, 12, 32]) },
      outputs: { out: tensor(f32, [2, 12, 32]), sums: tensor(f32, [2, 32]) },
    },
    ({ x, out, sums, work, rest }) => {
      work(() => {
        warps((warp) => {
          loop(2, (turn) => {
            when(warp.eq(3), () => {
              pipeline(
                {
                  grid: { k: 3 },
                  inputs: { tile: ({ k }) => x.at(turn, block(k, 4)) },
                  outputs: { result: ({ k }) => out.at(turn, block(k, 4)) },
                },
                ({ k, tile, result }) => result.store(tile.load().add(k.cast(f32))),
              );
            });
            when(warp.eq(1), () => {
              const sum = pipeline(
                {
                  grid: { k: 12 },
                  inputs: { row: ({ k }) => x.at(turn, k) },
                  depth: 5,
                  carry: zeros(f32, [32]),
                },
                ({ row }, before) => before.add(row.load()),
              );
              sums.at(turn).store(sum);
            });
          });
        });
      });
      rest(() => undefined);
    },
  );

const roleNumbers = Array.from({ length: 2 * 12 * 32 }, (_, place) => (place % 29) - 9);

const warpPipelines: Feature = {
  name: "Pipelines of single warps",
  written: ["switchCase(warp, [", "pipeline("],
  page: "pipelines.md#pipelines-of-single-warps",
  cases: () => [
    {
      name: "two roles, again and again",
      kernel: roles,
      inputs: { x: fromNumbers(f32, [2, 12, 32], roleNumbers) },
      expected: {
        out: roleNumbers.map((value, place) => value + (Math.floor(place / 128) % 3)),
        sums: Array.from({ length: 64 }, (_, place) => {
          const rows = Array.from({ length: 12 }, (__, row) => 384 * (place >> 5) + 32 * row);
          return rows.reduce((sum, row) => sum + (roleNumbers[row + (place & 31)] ?? 0), 0);
        }),
      },
      targets: everyTarget,
    },
    {
      name: "every warp its own",
      kernel: () =>
        kernel(
          {
            name: "own_pipelines",
            warps: 2,
            inputs: { x: tensor(f32, [2, 12, 32]) },
            outputs: { out: tensor(f32, [2, 12, 32]) },
          },
          ({ x, out }) => {
            warps((warp) => {
              pipeline(
                {
                  grid: { k: 6 },
                  inputs: { tile: ({ k }) => x.at(warp, block(k, 2)) },
                  outputs: { result: ({ k }) => out.at(warp, block(k, 2)) },
                },
                ({ tile, result }) => result.store(tile.load().mul(3)),
              );
            });
          },
        ),
      inputs: { x: fromNumbers(f32, [2, 12, 32], roleNumbers) },
      expected: { out: roleNumbers.map((value) => value * 3) },
    },
  ],
  refused: [
    {
      code: "TW1106",
      by: () =>
        kernel(
          { name: "of_several", threads: ["a", "b"], inputs: { x: tensor(f32, [8, 32]) } },
          ({ x }) => {
            warps(() => {
              pipeline({ grid: { k: 8 }, inputs: { row: ({ k }) => x.at(k) } }, () => undefined);
            });
          },
        ),
    },
  ],
};

export const synchronisationFeatures: readonly Feature[] = [
  test,
  arrays,
  reading,
  scopes,
  ownCounters,
  warpPipelines,
];
