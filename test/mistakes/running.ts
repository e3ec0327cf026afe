/** Mistakes that show when a kernel runs, reported by the names that the user gave. */
import {
  tensor,
  tensors,
  assert,
  barrier,
  bf16,
  blockSync,
  clusterWait,
  copyAsync,
  f32,
  fromNumbers,
  i32,
  iota,
  kernel,
  loop,
  open,
  scalar,
  semaphore,
  slice,
  smem,
  union,
  zeros,
} from "tilewright";
import type { Barrier, KernelDefinition, Ref, RunArguments, TargetName } from "tilewright";
import { mistakeTable } from "./mistake.ts";

async function run<K extends KernelDefinition>(
  k: K,
  inputs: RunArguments<K>,
  target: TargetName = "sm_90a",
): Promise<void> {
  const device = await open("simulator", { target, onLeak: () => undefined });
  try {
    await device.run(k, inputs);
  } finally {
    device.dispose();
  }
}

interface Big {
  readonly left: Ref<"f32">;
  readonly right: Ref<"f32">;
  readonly full: Barrier;
}

const numbers = fromNumbers(f32, [8], [1, 2, 3, 4, 5, 6, 7, 8]);

export const runningMistakes = mistakeTable(import.meta.url, [
  {
    name: "buffer read while a copy writes it",
    code: "TW3001",
    make: () =>
      run(
        kernel(
          {
            name: "hasty",
            inputs: { x: tensor(f32, [8]) },
            outputs: { out: tensor(f32, [8]) },
            scratch: { stage: smem(f32, [8]), landed: barrier() },
          },
          ({ x, out, stage, landed }) => {
            stage.store(zeros(f32, [8]));
            copyAsync(x, stage, { barrier: landed }); // <- buffer read while a copy writes it
            landed.wait();
            out.store(stage.load());
          },
        ),
        { x: numbers },
      ),
    message: "data race on stage: copyAsync and store are not ordered",
    remedy: "commitShared()",
    notes: ["store writes it", "stage is allocated here"],
  },
  {
    name: "output written by two blocks",
    code: "TW3001",
    make: () =>
      run(
        kernel({ name: "crowd", grid: { i: 2 }, outputs: { out: tensor(f32, [8]) } }, ({ out }) => {
          out.store(zeros(f32, [8])); // <- output written by two blocks
        }),
        {},
      ),
    message: "data race on out: store and store are not ordered",
    remedy: "semaphore",
  },
  {
    name: "buffer that nobody wrote",
    code: "TW3002",
    make: () =>
      run(
        kernel(
          {
            name: "empty",
            outputs: { out: tensor(f32, [8]) },
            scratch: { stage: smem(f32, [8]) },
          },
          ({ out, stage }) => {
            out.store(stage.load()); // <- buffer that nobody wrote
          },
        ),
        {},
      ),
    message: "load of stage, which nobody has written",
    notes: ["stage is allocated here"],
  },
  {
    name: "other member of a union",
    code: "TW3003",
    make: () =>
      run(
        kernel(
          {
            name: "members",
            outputs: { out: tensor(f32, [8]) },
            scratch: { bytes: union({ a: smem(f32, [8]) }, { b: smem(f32, [8]) }) },
          },
          ({ out, bytes: { a, b } }) => {
            a.store(zeros(f32, [8]));
            out.store(b.load()); // <- other member of a union
          },
        ),
        {},
      ),
    message: "load of b reads bytes of bytes that a has written",
    notes: ["store through a", "bytes is allocated here"],
  },
  {
    name: "window that leaves shared memory",
    code: "TW3004",
    make: () =>
      run(
        kernel(
          {
            name: "wide",
            inputs: { start: scalar(i32) },
            scratch: { stage: smem(f32, [8]) },
          },
          ({ start, stage }) => {
            stage.at(slice(start, 8)).store(zeros(f32, [8])); // <- window that leaves shared memory
          },
        ),
        { start: 4 },
      ),
    message: "store of a window that reaches outside stage on axis 0",
    found: "4 to 11",
  },
  {
    name: "index beyond the array",
    code: "TW3005",
    make: () =>
      run(
        kernel(
          { name: "beyond", inputs: { x: tensor(f32, [8]), at: scalar(i32) } },
          ({ x, at }) => {
            assert(x.at(at).loadScalar().ge(0), "positive"); // <- index beyond the array
          },
        ),
        { x: numbers, at: 8 },
      ),
    message: "load with index 8 on axis 0 of x, which has 8",
    expected: "indices from 0 to 7",
  },
  {
    name: "array beyond its list",
    code: "TW3005",
    make: () =>
      run(
        kernel(
          { name: "beyond", inputs: { xs: tensors(2, f32, [8]), at: scalar(i32) } },
          ({ xs, at }) => {
            const x = xs.at(at);
            assert(x.load().max().ge(0), "positive"); // <- array beyond its list
          },
        ),
        { xs: [numbers, numbers], at: -1 },
      ),
    message: "load with index -1 of xs, which has 2 arrays",
    expected: "indices from 0 to 1",
    notes: ["the array is chosen here"],
  },
  {
    name: "array of a list written by two blocks",
    code: "TW3001",
    make: () =>
      run(
        kernel(
          {
            name: "crowd",
            grid: { i: 2 },
            inputs: { which: tensor(i32, [2]) },
            inouts: { ys: tensors(2, f32, [8]) },
          },
          ({ i, which, ys }) => {
            ys.at(which.at(i).loadScalar()).store(i.cast(f32)); // <- array of a list written by two blocks
          },
        ),
        { which: fromNumbers(i32, [2], [1, 1]), ys: [numbers, numbers] },
      ),
    message: "ys[1]",
  },
  {
    name: "barrier beyond its array",
    code: "TW3006",
    make: () =>
      run(
        kernel(
          { name: "ring", inputs: { at: scalar(i32) }, scratch: { full: barrier({ count: 2 }) } },
          ({ at, full }) => {
            full.at(at).arrive(); // <- barrier beyond its array
          },
        ),
        { at: 2 },
      ),
    message: "Barrier.arrive on barrier full[2], an array of 2",
  },
  {
    name: "arrivals left over",
    code: "TW3008",
    make: () =>
      run(
        kernel(
          { name: "half", scratch: { full: barrier({ arrivals: 2, count: 2 }) } },
          ({ full }) => {
            full.at(1).arrive(); // <- arrivals left over
          },
        ),
        {},
      ),
    message: "arrivals are left over on barrier full[1]",
    expected: "2 arrivals",
  },
  {
    name: "copy not awaited",
    code: "TW3009",
    make: () =>
      run(
        kernel(
          {
            name: "hurried",
            outputs: { out: tensor(f32, [8]) },
            inputs: { x: tensor(f32, [8]) },
            scratch: { stage: smem(f32, [8]), landed: barrier() },
          },
          ({ x, out, stage, landed }) => {
            copyAsync(x, stage, { barrier: landed }); // <- copy not awaited
            out.store(x.load());
          },
        ),
        { x: numbers },
      ),
    message: "copyAsync is not awaited",
    remedy: "the barrier of a copy into smem",
  },
  {
    name: "wait for nobody",
    code: "TW3011",
    make: () =>
      run(
        kernel({ name: "stuck", scratch: { full: barrier() } }, ({ full }) => {
          full.wait(); // <- wait for nobody
        }),
        {},
      ),
    message: "deadlock",
    notes: ["waits for phase 0 of barrier full (0 of 1 arrivals so far); nobody has arrived"],
  },
  {
    name: "semaphore that nobody signals",
    code: "TW3011",
    make: () =>
      run(
        kernel({ name: "silent", scratch: { done: semaphore([2]) } }, ({ done }) => {
          done.at(1).wait(1); // <- semaphore that nobody signals
        }),
        {},
      ),
    message: "deadlock",
    notes: ["waits for semaphore done[1] to reach 1: it is at 0"],
  },
  {
    name: "assertion that fails",
    code: "TW3012",
    make: () =>
      run(
        kernel({ name: "sure", inputs: { x: tensor(f32, [8]) } }, ({ x }) => {
          assert(x.load().lt(8), "all below 8"); // <- assertion that fails
        }),
        { x: numbers },
      ),
    message: "all below 8",
  },
  {
    name: "too much shared memory",
    code: "TW3013",
    make: () => {
      const half = smem(f32, [128, 256]);
      const spec = { name: "big", scratch: { left: half, right: half, full: barrier() } };
      const body = ({ left, right, full }: Big) => {
        left.store(0);
        right.store(0);
        full.arrive();
      };
      const big = kernel(spec, body); // <- too much shared memory
      return run(big, {});
    },
    message: "kernel big needs 262152 bytes of shared memory",
    expected: "at most 232448 bytes in a block of sm_90a",
    notes: ["left takes 131072 bytes", "right takes 131072 bytes", "full takes 8 bytes"],
  },
  {
    name: "step that is zero",
    code: "TW3014",
    make: () =>
      run(
        kernel({ name: "still", inputs: { by: scalar(i32) } }, ({ by }) => {
          loop({ to: 8, step: by }, blockSync); // <- step that is zero
        }),
        { by: 0 },
      ),
    remedy: "at least 1",
  },
  {
    name: "cluster that sm_120a cannot place",
    code: "TW3017",
    make: () => {
      const spec = { name: "sixteen", grid: { i: 16 }, cluster: { i: 16 } };
      const sixteen = kernel(spec, () => zeros(bf16, [8])); // <- cluster that sm_120a cannot place
      return run(sixteen, {}, "sm_120a");
    },
    message: "kernel sixteen has larger clusters than sm_120a can place",
    expected: "at most 8 blocks",
  },
  {
    name: "wait without an arrival",
    code: "TW3018",
    make: () =>
      run(
        kernel({ name: "late", grid: { i: 2 }, cluster: { i: 2 } }, () => {
          clusterWait(); // <- wait without an arrival
        }),
        {},
      ),
    message: "clusterWait waits without having arrived",
  },
  {
    name: "peer that is not there",
    code: "TW3019",
    make: () =>
      run(
        kernel(
          {
            name: "peers",
            grid: { i: 2 },
            cluster: { i: 2 },
            inputs: { rank: scalar(i32) },
            scratch: { stage: smem(i32, [8]) },
          },
          ({ rank, stage }) => {
            stage.peer(rank).store(iota(i32, [8], { axis: 0 })); // <- peer that is not there
          },
        ),
        { rank: 2 },
      ),
    remedy: "modulo the cluster's size",
  },
]);
