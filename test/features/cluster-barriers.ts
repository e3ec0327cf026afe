/** Barriers across the blocks of a cluster, and peers of clusters with several axes. */
import {
  barrier,
  clusterBarrier,
  clusterRank,
  clusterSync,
  copyAsync,
  f32,
  fromNumbers,
  full,
  i32,
  kernel,
  loop,
  open,
  scoped,
  smem,
  tensor,
  when,
} from "tilewright";
import type { Scalar } from "tilewright";
import { lower } from "../../src/lower/stages.ts";
import { targets } from "../../src/targets/target.ts";
import type { TargetName } from "../../src/targets/target.ts";
import type { Feature } from "./feature.ts";

const clusterTargets: readonly TargetName[] = ["sm_90a", "sm_100a", "sm_120a"];

type Axis = "i" | "j" | "part";

/** Rank of the block of a cluster of [2, 2, 2] that lies across the axes. */
function across(axes: readonly Axis[], part: Scalar<"i32">): Scalar<"i32"> {
  const along = (axis: Axis, own: Scalar<"i32">): Scalar<"i32"> =>
    axes.includes(axis) ? own.xor(1) : own;
  return along("i", clusterRank("i"))
    .mul(4)
    .add(along("j", clusterRank("j")).mul(2))
    .add(along("part", part));
}

/** The indices of every block of a grid of [rows, columns] with two parts, and of the one across the axes. */
function blocksAcross(rows: number, columns: number, axes: readonly Axis[]) {
  const change = (axis: Axis): number => (axes.includes(axis) ? 1 : 0);
  return Array.from({ length: rows * columns * 2 }, (_, place) => ({
    i: Math.floor(place / (2 * columns)) ^ change("i"),
    j: (Math.floor(place / 2) % columns) ^ change("j"),
    part: (place % 2) ^ change("part"),
  }));
}

/** In each round a block gives a number to its peer across the axes. */
const rounds = (axes: readonly Axis[]) =>
  kernel(
    {
      name: "across_cluster",
      grid: { i: 2, j: 4 },
      cluster: { i: 2, j: 2, part: 2 },
      outputs: { out: tensor(i32, [2, 4, 2, 2]) },
      scratch: { box: smem(i32, [2]), told: clusterBarrier(axes, { count: 2 }) },
    },
    ({ i, j, part, out, box, told }) => {
      const peer = across(axes, part);
      const own = i.mul(100).add(j.mul(10)).add(part);
      loop(2, (round) => {
        box
          .peer(peer)
          .at(round)
          .store(own.add(round.mul(1000)));
        told.at(round).arrive();
        told.at(round).wait();
        out.at(i, j, part, round).store(box.at(round).loadScalar());
      });
      clusterSync();
    },
  );

const roundCases: readonly (readonly Axis[])[] = [["j"], ["i", "part"], ["i", "j", "part"]];

const clusterBarriers: Feature = {
  name: "Barriers across the blocks of a cluster, along some of its axes",
  written: ['clusterBarrier("j")', "told.arrive()", "told.wait()"],
  page: "language.md#cluster-barriers",
  cases: () => [
    ...roundCases.map((axes) => ({
      name: `along ${axes.join(" and ")}`,
      kernel: () => rounds(axes),
      inputs: {},
      expected: {
        out: blocksAcross(2, 4, axes).flatMap(({ i, j, part }) => {
          const own = i * 100 + j * 10 + part;
          return [own, own + 1000];
        }),
      },
      targets: clusterTargets,
    })),
    {
      name: "of a scope, several arrivals a block",
      kernel: () =>
        kernel(
          {
            name: "scoped_cluster_barrier",
            grid: { i: 2 },
            cluster: { i: 2 },
            threads: ["a", "b"],
            outputs: { out: tensor(i32, [2, 2, 2]) },
          },
          ({ i, out, a, b }) => {
            loop(2, (round) => {
              scoped(
                { box: smem(i32, [2]), told: clusterBarrier("i", { arrivals: 2 }) },
                ({ box, told }) => {
                  [a, b].forEach((thread, side) =>
                    thread(() => {
                      const own = i.add(round.mul(10)).add(side * 100);
                      box.peer(i.xor(1)).at(side).store(own);
                      told.arrive();
                      told.wait();
                      out.at(round, i, side).store(box.at(1 - side).loadScalar());
                    }),
                  );
                  clusterSync();
                },
              );
            });
          },
        ),
      inputs: {},
      expected: { out: [101, 1, 100, 0, 111, 11, 110, 10] },
    },
  ],
  refused: [
    {
      code: "TW1107",
      by: () =>
        kernel(
          {
            name: "no_such_axis",
            grid: { i: 2, j: 2 },
            cluster: { i: 2 },
            scratch: { told: clusterBarrier("j") },
          },
          () => undefined,
        ),
    },
    {
      code: "TW2210",
      by: () =>
        kernel({ name: "one", grid: { i: 2 }, cluster: { i: 2 }, threads: ["a", "b"] }, ({ a }) => {
          a(() => scoped({ told: clusterBarrier() }, ({ told }) => told.arrive()));
        }),
    },
  ],
};

const peerCases: readonly (readonly Axis[])[] = [["part"], ["i", "j"]];

const peers: Feature = {
  name: "Peers of a cluster with several axes",
  written: ["sums.peer(peer)", 'clusterRank("i").mul(columns).add(column)'],
  page: "language.md#cluster-barriers",
  cases: () =>
    peerCases.map((axes) => ({
      name: `across ${axes.join(" and ")}, in memory and by arrivals`,
      kernel: () =>
        kernel(
          {
            name: "peers",
            grid: { i: 4, j: 2 },
            cluster: { i: 2, j: 2, part: 2 },
            outputs: { out: tensor(f32, [4, 2, 2, 16]) },
            scratch: { box: smem(f32, [16]), told: barrier() },
          },
          ({ i, j, part, out, box, told }) => {
            const peer = across(axes, part);
            const own = i.mul(8).add(j.mul(4)).add(part);
            box.peer(peer).store(full(f32, [16], 1).mul(own.cast(f32)));
            told.arrive({ peer });
            told.wait();
            out.at(i, j, part).store(box.load());
            clusterSync();
          },
        ),
      inputs: {},
      expected: {
        out: blocksAcross(4, 2, axes).flatMap(({ i, j, part }) =>
          Array.from({ length: 16 }, () => i * 8 + j * 4 + part),
        ),
      },
      targets: clusterTargets,
    })),
  refused: [
    {
      code: "TW3019",
      async by() {
        const beyond = kernel(
          {
            name: "beyond",
            grid: { i: 2, j: 2 },
            cluster: { i: 2, j: 2 },
            scratch: { box: smem(f32, [1]) },
          },
          ({ i, box }) => {
            box.peer(i.mul(3).add(4)).at(0).store(1);
          },
        );
        const device = await open("simulator", { onNotes: () => undefined });
        try {
          await device.run(beyond, {});
        } finally {
          device.dispose();
        }
      },
    },
  ],
};

/** Sixteen blocks give each other their numbers and hand a copied row to all. */
const sixteen = () =>
  kernel(
    {
      name: "sixteen",
      grid: { i: 32 },
      cluster: { i: 16 },
      inputs: { x: tensor(f32, [2, 64]) },
      outputs: { out: tensor(f32, [32, 64]) },
      scratch: {
        row: smem(f32, [64]),
        box: smem(f32, [16]),
        landed: barrier(),
        told: clusterBarrier(),
      },
    },
    ({ i, x, out, row, box, landed, told }) => {
      const rank = clusterRank("i");
      when(rank.eq(15), () => {
        copyAsync(x.at(i.div(16)), row, { barrier: landed, multicast: "i" });
      });
      for (let peer = 0; peer < 16; peer++) box.peer(peer).at(rank).store(i.cast(f32));
      told.arrive();
      told.wait();
      landed.wait();
      out.at(i).store(row.load().add(box.load().sum()));
      clusterSync();
    },
  );

const rows = Array.from({ length: 128 }, (_, place) => (place * 5) % 31);

const largeClusters: Feature = {
  name: "Clusters of 16 blocks",
  written: ["cluster: { i: 16 }"],
  page: "language.md#clusters",
  cases: () => [
    {
      name: "all to all, and a multicast",
      kernel: sixteen,
      inputs: { x: fromNumbers(f32, [2, 64], rows) },
      expected: {
        out: Array.from({ length: 32 * 64 }, (_, place) => {
          const cluster = Math.floor(place / (16 * 64));
          const numbers = Array.from({ length: 16 }, (__, rank) => 16 * cluster + rank);
          const sum = numbers.reduce((total, number) => total + number, 0);
          return (rows[64 * cluster + (place % 64)] ?? 0) + sum;
        }),
      },
      targets: ["sm_90a", "sm_100a"],
    },
  ],
  refused: [
    { code: "TW3017", by: () => lower(sixteen().kernel, targets.sm_120a) },
    {
      code: "TW2216",
      by: () => kernel({ name: "more", grid: { i: 32 }, cluster: { i: 32 } }, () => undefined),
    },
  ],
};

export const clusterFeatures: readonly Feature[] = [clusterBarriers, peers, largeClusters];
