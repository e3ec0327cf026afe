/**
 * Where lanes, warps, blocks and TMA must meet so that a program thread is one: buffers used
 * again, barriers waited for again, operands that copies bring.
 */
import { gemmOf } from "../../examples/gemm.ts";
import { bf16, f32, i32 } from "../../src/formats/dtype.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import {
  accumulator,
  tensor,
  barrier,
  block,
  clusterRank,
  clusterSync,
  commitGroup,
  commitShared,
  copyAsync,
  kernel,
  loop,
  pipeline,
  scoped,
  slice,
  smem,
  union,
  waitGroup,
  warps,
  wgmma,
  when,
} from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { convertHost, ordinaryNumbers } from "./inputs.ts";

const x = ordinaryNumbers(f32, [4, 32, 32], 5);
const inputs = { x: tensor(f32, [4, 32, 32]) };
const outputs = { out: tensor(f32, [4, 32, 32]) };
const buffer = smem(f32, [32, 32]);

/** Whole numbers, whose sums of products are exact. */
function whole(shape: readonly number[], seed: number): HostArray {
  return convertHost(ordinaryNumbers(i32, shape, seed), bf16);
}

function bufferCases(): readonly MatrixCase[] {
  return [
    exactCase("a buffer used in every round", { x }, () =>
      kernel(
        { name: "rounds", inputs, outputs, scratch: { buffer } },
        ({ x: source, out, buffer: own }) => {
          loop(4, (round) => {
            own.store(source.at(round).load());
            out.at(round).store(own.transpose().load());
          });
        },
      ),
    ),
    exactCase("a buffer that one branch writes", { x }, () =>
      kernel(
        { name: "branches", grid: { i: 4 }, inputs, outputs, scratch: { buffer } },
        ({ i, x: source, out, buffer: own }) => {
          own.store(source.at(i).load());
          const first = own.transpose().load();
          when(
            i.rem(2).eq(0),
            () => undefined,
            () => own.store(first.mul(2)),
          );
          out.at(i).store(own.transpose().load().add(first));
        },
      ),
    ),
    exactCase("members of a union, one after the other", { x }, () =>
      kernel(
        {
          name: "members",
          inputs,
          outputs,
          scratch: { memory: union({ a: buffer }, { b: smem(i32, [32, 32]) }) },
        },
        ({ x: source, out, memory: { a, b } }) => {
          a.store(source.at(0).load());
          out.at(0).store(a.transpose().load());
          b.store(source.at(1).load().cast(i32));
          out.at(1).store(b.transpose().load().cast(f32));
          loop({ from: 2, to: 4 }, (round) => {
            out.at(round).store(source.at(round).load());
          });
        },
      ),
    ),
    exactCase("what warps wrote, read by all", { x }, () =>
      kernel(
        { name: "gathered", grid: { i: 4 }, inputs, outputs, scratch: { buffer } },
        ({ i, x: source, out, buffer: own }) => {
          warps((warp) => {
            const rows = slice(warp.mul(8), 8);
            own.at(rows).store(source.at(i, rows).load());
          });
          out.at(i).store(own.transpose().load());
        },
      ),
    ),
    exactCase("no round at all", { x }, () =>
      kernel({ name: "none", grid: { i: 4 }, inputs, outputs }, ({ i, x: source, out }) => {
        const rounds = i.rem(2);
        out
          .at(i)
          .store(loop({ to: rounds, carry: source.at(i).load() }, (_, value) => value.add(1)));
      }),
    ),
  ];
}

function barrierCases(): readonly MatrixCase[] {
  return [
    exactCase("a barrier waited for in every round", { x }, () =>
      kernel(
        { name: "again", inputs, outputs, scratch: { buffer, landed: barrier() } },
        ({ x: source, out, buffer: own, landed }) => {
          loop(4, (round) => {
            copyAsync(source.at(round), own, { barrier: landed });
            landed.wait();
            out.at(round).store(own.transpose().load());
            commitShared();
          });
        },
      ),
    ),
    exactCase("a barrier by its number", { x }, () =>
      kernel(
        {
          name: "numbered",
          grid: { i: 4 },
          inputs,
          outputs,
          scratch: { buffer, landed: barrier({ count: 40 }) },
        },
        ({ i, x: source, out, buffer: own, landed }) => {
          copyAsync(source.at(i), own, { barrier: landed.at(2) });
          landed.at(2).wait();
          const first = own.load();
          commitShared();
          // Barriers of one word take turns: each has a parity of its own.
          loop(5, (round) => {
            const turn = landed.at(round.rem(2).add(i).add(34));
            copyAsync(source.at(i), own, { barrier: turn });
            turn.wait();
          });
          out.at(i).store(own.load().add(first));
        },
      ),
    ),
    exactCase("a barrier of a scope", { x }, () =>
      kernel({ name: "scoped", inputs, outputs }, ({ x: source, out }) => {
        loop(4, (round) => {
          scoped({ own: buffer, landed: barrier() }, ({ own, landed }) => {
            copyAsync(source.at(round), own, { barrier: landed });
            landed.wait();
            out.at(round).store(own.transpose().load());
            commitShared();
          });
        });
      }),
    ),
  ];
}

function arrivalCases(): readonly MatrixCase[] {
  return [
    exactCase("arrivals of a thread and of a warp", { x }, () =>
      kernel(
        {
          name: "unlike",
          threads: ["write", "read"],
          grid: { i: 4 },
          inputs,
          outputs,
          scratch: { buffer, both: barrier({ arrivals: 2 }) },
        },
        ({ i, x: source, out, buffer: own, both, write, read }) => {
          write(() => {
            own.store(source.at(i).load());
            both.arrive();
          });
          read(() => {
            warps((warp) => {
              when(warp.eq(3), () => both.arrive());
            });
            both.wait();
            out.at(i).store(own.load());
          });
        },
      ),
    ),
    exactCase("arrivals of a thread and of a copy", { x }, () =>
      kernel(
        {
          name: "mixed",
          threads: ["write", "read"],
          grid: { i: 4 },
          inputs,
          outputs,
          scratch: { own: buffer, other: buffer, both: barrier({ arrivals: 2 }) },
        },
        ({ i, x: source, out, own, other, both, write, read }) => {
          write(() => {
            copyAsync(source.at(i), own, { barrier: both });
            other.store(source.at(0).load());
            both.arrive();
          });
          read(() => {
            both.wait();
            out.at(i).store(own.load().add(other.load()));
          });
        },
      ),
    ),
    exactCase("a wait of one warp, then of all", { x }, () =>
      kernel(
        { name: "joined", grid: { i: 4 }, inputs, outputs, scratch: { buffer, landed: barrier() } },
        ({ i, x: source, out, buffer: own, landed }) => {
          copyAsync(source.at(0), own, { barrier: landed });
          warps((warp) => {
            when(warp.eq(1), () => landed.wait());
          });
          copyAsync(source.at(i), own, { barrier: landed });
          landed.wait();
          out.at(i).store(own.load());
        },
      ),
    ),
  ];
}

function warpCopyCases(): readonly MatrixCase[] {
  const copies = (name: string, pending: number, again: boolean) =>
    exactCase(name, { x }, () =>
      kernel(
        {
          name: "waited",
          inputs,
          outputs: { ...outputs, kept: tensor(f32, [4, 32, 32]) },
          scratch: { buffers: smem(f32, [4, 32, 32]) },
        },
        ({ x: source, kept, out, buffers }) => {
          buffers.store(source.load());
          commitShared();
          const copyRows = (): void => {
            warps((warp) => {
              copyAsync(buffers.at(warp), kept.at(warp));
              commitGroup();
            });
          };
          copyRows();
          if (again) warps(commitGroup);
          waitGroup(pending);
          out.store(kept.load());
          if (pending > 0) waitGroup();
        },
      ),
    );
  return [
    copies("a thread waits for the copies of its warps", 0, false),
    copies("a thread waits for all but one group of each of its warps", 1, true),
  ];
}

function clusterCases(): readonly MatrixCase[] {
  return [
    exactCase("multicast along one of two axes", { x }, () =>
      kernel(
        {
          name: "directed",
          grid: { i: 2, j: 2 },
          cluster: { i: 2, j: 2 },
          inputs,
          outputs,
          scratch: { buffer, landed: barrier() },
        },
        ({ i, j, x: source, out, buffer: own, landed }) => {
          when(clusterRank("j").eq(0), () => {
            copyAsync(source.at(i), own, { barrier: landed, multicast: "j" });
          });
          landed.wait();
          out.at(i.mul(2).add(j)).store(own.load().add(j.cast(f32)));
          clusterSync();
        },
      ),
    ),
    exactCase("a pipeline whose blocks one block of the cluster copies for all", { x }, () =>
      kernel(
        { name: "small", grid: { i: 2, j: 2 }, cluster: { i: 2, j: 2 }, inputs, outputs },
        ({ i, j, x: source, out }) => {
          pipeline(
            {
              grid: { k: 16 },
              inputs: { part: { at: ({ k }) => source.at(0, block(k, 2)), multicast: ["i", "j"] } },
            },
            ({ k, part }) => {
              out.at(i.mul(2).add(j), block(k, 2)).store(part.load().add(k.cast(f32)));
            },
          );
        },
      ),
    ),
  ];
}

function productCases(): readonly MatrixCase[] {
  const [a, b] = [whole([128, 64], 1), whole([64, 128], 2)];
  return [
    exactCase("operands that copies bring", { a, b }, () =>
      kernel(
        {
          name: "brought",
          inputs: { a: tensor(bf16, [128, 64]), b: tensor(bf16, [64, 128]) },
          outputs: { out: tensor(f32, [128, 128]) },
          scratch: {
            left: smem(bf16, [128, 64]),
            right: smem(bf16, [64, 128]),
            landed: barrier({ arrivals: 2 }),
          },
        },
        ({ a: first, b: second, out, left, right, landed }) => {
          copyAsync(first, left, { barrier: landed });
          copyAsync(second, right, { barrier: landed });
          landed.wait();
          out.store(wgmma(accumulator(f32, [128, 128]), left, right).wait());
        },
      ),
    ),
    exactCase(
      "copying and multiplying threads",
      { a: whole([128, 200], 3), b: whole([200, 64], 4) },
      () => gemmOf({ columns: 64, stages: 2 }),
    ),
  ];
}

export function meetingCases(): readonly MatrixCase[] {
  return [
    ...bufferCases(),
    ...barrierCases(),
    ...arrivalCases(),
    ...warpCopyCases(),
    ...clusterCases(),
    ...productCases(),
  ];
}
