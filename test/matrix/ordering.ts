/** Control flow and synchronisation: loops, branches, threads, warps, barriers, clusters, semaphores. */
import { f32, i32 } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import {
  tensor,
  assert,
  barrier,
  blockSync,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  constant,
  commitGroup,
  copyAsync,
  delay,
  dim,
  gmem,
  gridSize,
  kernel,
  launchNextKernel,
  loop,
  scoped,
  semaphore,
  slice,
  smem,
  switchCase,
  threadIndex,
  union,
  waitForPreviousKernel,
  warps,
  waitGroup,
  when,
  whileLoop,
} from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

const x = ordinaryNumbers(f32, [8, 64], 3);
const ends = fromNumbers(i32, [4], [2 ** 31 - 1, 2 ** 31 - 3, -(2 ** 31) + 12, 100]);
/** Whole numbers, whose sums are the same in any order. */
const whole = fromNumbers(
  f32,
  [64],
  Array.from({ length: 64 }, (_, index) => index - 20),
);
const inputs = { x: tensor(f32, [8, 64]) };
const outputs = { out: tensor(f32, [8, 64]) };

function loopCases(): readonly MatrixCase[] {
  return [
    exactCase("loop with carries", { x }, () =>
      kernel({ name: "loops", inputs, outputs }, ({ x: source, out }) => {
        const sum = loop({ to: 8, carry: source.at(0).load() }, (row, total) =>
          total.maximum(source.at(row).load()),
        );
        loop({ from: 1, to: 8, step: 3 }, (row) => {
          out.at(row).store(sum);
        });
        loop({ from: 0, to: 8 }, (row) => {
          when(row.rem(3).ne(1), () => out.at(row).store(source.at(row).load().add(1)));
        });
      }),
    ),
    exactCase("loops up to the largest integer", { ends }, () =>
      kernel(
        {
          name: "ends",
          inputs: { ends: tensor(i32, [4]) },
          outputs: { out: tensor(i32, [4]) },
          grid: { i: 4 },
        },
        ({ i, ends: source, out }) => {
          const end = source.at(i).loadScalar();
          const known = loop({ from: 2 ** 31 - 9, to: 2 ** 31 - 1, step: 3, carry: i }, (at, sum) =>
            sum.add(at.and(7)),
          );
          const found = loop({ from: end.sub(10), to: end, step: 4, carry: known }, (at, sum) =>
            sum.add(at.and(15)),
          );
          out.at(i).store(found);
        },
      ),
    ),
    exactCase("loop that swaps its carries", { x }, () =>
      kernel({ name: "swaps", inputs, outputs }, ({ x: source, out }) => {
        const carry = [source.at(slice(0, 4)).load(), source.at(slice(4, 4)).load()] as const;
        const [first, second] = loop({ to: 5, carry: [...carry] }, (_, [a, b]) => [b.add(1), a]);
        out.at(slice(0, 4)).store(first);
        out.at(slice(4, 4)).store(second);
      }),
    ),
    exactCase("while until it is large", { x }, () =>
      kernel({ name: "grows", inputs, outputs, grid: { i: 8 } }, ({ i, x: source, out }) => {
        const row = source.at(i).load();
        const [, grown] = whileLoop(
          [constant(f32, 1), row] as const,
          ([size]) => size.lt(100),
          ([size, value]) => [size.mul(3), value.mul(2)] as const,
        );
        out.at(i).store(grown);
      }),
    ),
  ];
}

function branchCases(): readonly MatrixCase[] {
  return [
    exactCase("switch with an index out of range", { x }, () =>
      kernel({ name: "cases", inputs, outputs, grid: { i: 8 } }, ({ i, x: source, out }) => {
        const row = source.at(i).load();
        const value = switchCase(i.sub(2), [
          () => row.add(1),
          () => row.mul(2),
          () => row.sub(3),
          () => row.neg(),
        ]);
        out.at(i).store(value);
      }),
    ),
    exactCase("branches in loops", { x }, () =>
      kernel({ name: "nested", inputs, outputs, grid: { i: 8 } }, ({ i, x: source, out }) => {
        const value = loop({ to: i.add(1), carry: source.at(i).load() }, (step, total) =>
          when(
            step.rem(2).eq(0),
            () => total.add(step.cast(f32)),
            () => total.mul(2),
          ),
        );
        out.at(i).store(value);
      }),
    ),
    exactCase("scalars of the launch", { x }, () => {
      const rows = dim("rows");
      return kernel(
        {
          name: "scalars",
          grid: { i: rows, j: 2 },
          inputs: { x: tensor(f32, [rows, 64]) },
          outputs: { out: tensor(f32, [rows, 64]) },
        },
        ({ i, j, x: source, out }) => {
          const half = slice(j.mul(32), 32);
          const count = gridSize("i").mul(gridSize("j")).cast(f32);
          out.at(i, half).store(source.at(i, half).load().mul(count));
        },
      );
    }),
  ];
}

function memoryCases(): readonly MatrixCase[] {
  return [
    exactCase("scopes that share bytes", { x }, () =>
      kernel({ name: "scopes", inputs, outputs }, ({ x: source, out }) => {
        const first = scoped({ a: smem(f32, [4, 64]) }, ({ a }) => {
          a.store(source.at(slice(0, 4)).load());
          return a.transpose().load().transpose();
        });
        const second = scoped({ b: smem(f32, [4, 64]) }, ({ b }) => {
          b.store(source.at(slice(4, 4)).load());
          return b.transpose().load().transpose();
        });
        out.at(slice(0, 4)).store(second);
        out.at(slice(4, 4)).store(first);
      }),
    ),
    exactCase("members of a union", { x }, () =>
      kernel(
        {
          name: "unions",
          inputs,
          outputs,
          scratch: { memory: union({ a: smem(f32, [8, 64]) }, { b: smem(i32, [8, 64]) }) },
        },
        ({ x: source, out, memory }) => {
          memory.a.store(source.load());
          const turned = memory.a.transpose().load();
          memory.b.store(source.load().cast(i32));
          const whole = memory.b.transpose().load();
          out.store(turned.add(whole.cast(f32)).transpose());
        },
      ),
    ),
    exactCase("scratch in global memory", { x }, () =>
      kernel(
        {
          name: "global_scratch",
          inputs,
          outputs,
          scratch: { middle: gmem(f32, [8, 64]) },
        },
        ({ x: source, out, middle }) => {
          middle.store(source.load().mul(3));
          out.store(middle.transpose().load().transpose());
        },
      ),
    ),
  ];
}

function threadCases(): readonly MatrixCase[] {
  return [
    exactCase("program threads", { x }, () =>
      kernel(
        { name: "threads", threads: ["a", "b", "c"], inputs, outputs },
        ({ x: source, out, a, b, c }) => {
          const mine = threadIndex().cast(f32);
          a(() => out.at(slice(0, 4)).store(source.at(slice(0, 4)).load().add(mine)));
          b(() => out.at(slice(4, 2)).store(source.at(slice(4, 2)).load().add(mine)));
          c(() => out.at(slice(6, 2)).store(source.at(slice(6, 2)).load().add(mine)));
        },
      ),
    ),
    exactCase("barriers between threads", { x }, () =>
      kernel(
        {
          name: "meeting",
          threads: ["write", "read"],
          inputs,
          outputs,
          scratch: {
            ring: smem(f32, [2, 64]),
            filled: barrier({ count: 2 }),
            empty: barrier({ count: 2 }),
          },
        },
        ({ x: source, out, ring, filled, empty, write, read }) => {
          write(() => {
            loop(8, (row) => {
              const slot = row.rem(2);
              when(row.ge(2), () => empty.at(slot).wait());
              ring.at(slot).store(source.at(row).load());
              filled.at(slot).arrive();
            });
          });
          read(() => {
            loop(8, (row) => {
              const slot = row.rem(2);
              filled.at(slot).wait();
              out.at(row).store(ring.at(slot).load().mul(2));
              when(row.lt(6), () => empty.at(slot).arrive());
            });
          });
        },
      ),
    ),
    exactCase("all threads meet", { x }, () =>
      kernel(
        {
          name: "synced",
          threads: ["a", "b"],
          inputs,
          outputs,
          scratch: { halves: smem(f32, [2, 4, 64]) },
        },
        ({ x: source, out, halves, a, b }) => {
          a(() => halves.at(0).store(source.at(slice(0, 4)).load()));
          b(() => halves.at(1).store(source.at(slice(4, 4)).load()));
          blockSync();
          a(() => out.at(slice(0, 4)).store(halves.at(1).load()));
          b(() => out.at(slice(4, 4)).store(halves.at(0).load()));
        },
      ),
    ),
  ];
}

function testCases(): readonly MatrixCase[] {
  return [
    exactCase("a barrier tested until it is complete", { x }, () =>
      kernel(
        {
          name: "tested",
          inputs,
          outputs,
          scratch: { buffer: smem(f32, [8, 64]), landed: barrier() },
        },
        ({ x: source, out, buffer, landed }) => {
          copyAsync(source, buffer, { barrier: landed });
          const tries = whileLoop(
            constant(i32, 0),
            () => landed.test(0).not(),
            (count) => {
              delay(100);
              return count.add(1);
            },
          );
          assert(tries.ge(0), "tries were counted");
          out.store(buffer.load());
        },
      ),
    ),
    exactCase("a barrier tested by warps", { x }, () =>
      kernel(
        {
          name: "tested_by_warps",
          inputs,
          outputs,
          scratch: { buffer: smem(f32, [2, 4, 64]), landed: barrier({ count: 2 }) },
        },
        ({ x: source, out, buffer, landed }) => {
          copyAsync(source.at(slice(0, 4)), buffer.at(0), { barrier: landed.at(0) });
          copyAsync(source.at(slice(4, 4)), buffer.at(1), { barrier: landed.at(1) });
          warps((warp) => {
            const half = warp.div(2);
            whileLoop(
              warp,
              () => landed.at(half).test(0).not(),
              (time) => {
                delay(time);
                return time.add(1);
              },
            );
            const row = warp.sub(half.mul(2));
            out.at(warp.mul(2)).store(buffer.at(half, row.mul(2)).load());
            out.at(warp.mul(2).add(1)).store(buffer.at(half, row.mul(2).add(1)).load());
          });
        },
      ),
    ),
  ];
}

function warpCases(): readonly MatrixCase[] {
  return [
    exactCase("waits by parity", { x }, () =>
      kernel(
        {
          name: "parities",
          inputs,
          outputs,
          scratch: { buffer: smem(f32, [8, 64]), landed: barrier() },
        },
        ({ x: source, out, buffer, landed }) => {
          copyAsync(source, buffer, { barrier: landed });
          landed.wait({ parity: 0 });
          out.store(buffer.load());
        },
      ),
    ),
    exactCase("warps on their own", { x }, () =>
      kernel(
        { name: "warped", inputs, outputs, scratch: { parts: smem(f32, [4, 64]) } },
        ({ x: source, out, parts }) => {
          warps((warp) => {
            const row = source.at(warp).load();
            parts.at(warp).store(row.add(row.max()));
          });
          out.at(slice(0, 4)).store(parts.load());
          warps((warp) => {
            out.at(warp.add(4)).store(parts.at(warp).load().sub(parts.at(warp).load().max()));
          });
        },
      ),
    ),
    exactCase("one warp copies, all wait", { x }, () =>
      kernel(
        {
          name: "copier",
          inputs,
          outputs,
          scratch: { buffer: smem(f32, [8, 64]), landed: barrier() },
        },
        ({ x: source, out, buffer, landed }) => {
          warps((warp) => {
            when(warp.eq(2), () => copyAsync(source, buffer, { barrier: landed }));
          });
          landed.wait();
          out.store(buffer.load());
        },
      ),
    ),
  ];
}

function gridCases(): readonly MatrixCase[] {
  return [
    exactCase("blocks of a cluster", { x }, () =>
      kernel(
        {
          name: "peers",
          grid: { i: 4, j: 2 },
          cluster: { i: 2, j: 2 },
          inputs,
          outputs,
          scratch: { own: smem(f32, [64]) },
        },
        ({ i, j, x: source, out, own }) => {
          const row = i.mul(2).add(j);
          own.store(source.at(row).load());
          clusterSync();
          const rank = clusterRank("i").mul(2).add(clusterRank("j"));
          const other = own.peer(constant(i32, 3).sub(rank)).load();
          clusterArrive();
          out.at(row).store(other.add(clusterRank("i").cast(f32)));
          clusterWait();
        },
      ),
    ),
    exactCase("arrivals at a peer", { x }, () =>
      kernel(
        {
          name: "arrivals",
          grid: { i: 8 },
          cluster: { i: 2 },
          inputs,
          outputs,
          scratch: { inbox: smem(f32, [64]), ready: barrier() },
        },
        ({ i, x: source, out, inbox, ready }) => {
          const other = constant(i32, 1).sub(clusterRank("i"));
          inbox.peer(other).store(source.at(i).load().mul(2));
          ready.arrive({ peer: other });
          ready.wait();
          out.at(i).store(inbox.load());
          clusterSync();
        },
      ),
    ),
    exactCase("multicast", { x }, () =>
      kernel(
        {
          name: "multicast",
          grid: { i: 8 },
          cluster: { i: 4 },
          inputs,
          outputs,
          scratch: { row: smem(f32, [64]), landed: barrier() },
        },
        ({ i, x: source, out, row, landed }) => {
          when(clusterRank("i").eq(1), () => {
            copyAsync(source.at(i), row, { barrier: landed, multicast: ["i"] });
          });
          landed.wait();
          out.at(i).store(row.load().add(i.cast(f32)));
          clusterSync();
        },
      ),
    ),
  ];
}

/** Hints to the cache change no result. */
function evictionCases(): readonly MatrixCase[] {
  return [
    ...(["first", "last"] as const).map((evict) =>
      exactCase(`copies that the cache evicts ${evict}`, { x }, () =>
        kernel(
          {
            name: "evicted",
            grid: { i: 8 },
            inputs,
            outputs,
            scratch: { row: smem(f32, [64]), landed: barrier() },
          },
          ({ i, x: source, out, row, landed }) => {
            copyAsync(source.at(i), row, { barrier: landed, evict });
            landed.wait();
            copyAsync(row, out.at(i), { evict });
            commitGroup();
            waitGroup(0);
          },
        ),
      ),
    ),
  ];
}

function semaphoreCases(): readonly MatrixCase[] {
  return [
    exactCase("semaphores between blocks", { x }, () =>
      kernel(
        {
          name: "signals",
          grid: { i: 8 },
          inputs,
          outputs,
          scratch: { done: semaphore([8]), chain: gmem(f32, [8, 64]) },
        },
        ({ i, x: source, out, done, chain }) => {
          const row = source.at(i).load();
          when(
            i.gt(0),
            () => {
              done.at(i.sub(1)).wait(1);
              chain.at(i).store(row.add(chain.at(i.sub(1)).load()));
            },
            () => chain.at(i).store(row),
          );
          done.at(i).signal();
          out.at(i).store(chain.at(i).load().floor());
        },
      ),
    ),
    exactCase("semaphores that are taken", { x, total: whole }, () =>
      kernel(
        {
          name: "locks",
          grid: { i: 8 },
          inputs,
          inouts: { total: tensor(f32, [64]) },
          outputs,
          scratch: { lock: semaphore(), first: semaphore() },
        },
        ({ i, x: source, out, total, lock, first }) => {
          when(i.eq(0), () => lock.signal());
          lock.wait(1, { decrement: true });
          total.store(total.load().add(i.cast(f32)));
          lock.signal();
          first.signal(2);
          first.wait(16);
          out.at(i).store(source.at(i).load().add(total.load()));
        },
      ),
    ),
    exactCase("kernels in a row", { x }, () =>
      kernel({ name: "early", inputs, outputs, grid: { i: 8 } }, ({ i, x: source, out }) => {
        waitForPreviousKernel();
        const row = source.at(i).load();
        launchNextKernel();
        out.at(i).store(row.mul(2));
      }),
    ),
  ];
}

export function orderingCases(): readonly MatrixCase[] {
  return [
    ...loopCases(),
    ...branchCases(),
    ...memoryCases(),
    ...threadCases(),
    ...warpCases(),
    ...testCases(),
    ...gridCases(),
    ...evictionCases(),
    ...semaphoreCases(),
  ];
}
