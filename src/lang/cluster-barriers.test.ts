/** Barriers across the blocks of a cluster: who arrives where, in arrays, in scopes, on the simulator and on the emulator. */
import { expect, test } from "vitest";
import { emulateKernel } from "../../test/support/emulated-kernel.ts";
import { assembleNow, hasPtxas } from "../../test/ptxas.ts";
import { runKernel, schedules } from "../../test/simulation.ts";
import { i32 } from "../formats/dtype.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { lower } from "../lower/stages.ts";
import { printPtx } from "../ptx/printer.ts";
import { targets } from "../targets/target.ts";
import {
  clusterBarrier,
  clusterRank,
  clusterSync,
  constant,
  delay,
  full,
  kernel,
  loop,
  scoped,
  smem,
  tensor,
  whileLoop,
} from "./index.ts";
import type { KernelDefinition, Scalar } from "./index.ts";

async function results(definition: KernelDefinition, wanted: readonly number[]): Promise<void> {
  for (const schedule of schedules) {
    const run = await runKernel(definition, {}, schedule);
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual(wanted);
  }
  for (const seed of [1, 2]) {
    const { findings, results: found } = emulateKernel(definition, {}, { seed });
    expect(findings).toEqual([]);
    expect(found["out"] && [...toNumbers(found["out"])]).toEqual(wanted);
  }
}

const cluster = { i: 2, j: 2 } as const;
const rank = (i: Scalar<"i32">, j: Scalar<"i32">): Scalar<"i32"> => i.mul(2).add(j);

/** In each of three rounds every block hands its rank to its neighbour along `axes`. */
function handedAround(axes: "i" | "j" | readonly string[] | undefined) {
  return kernel(
    {
      name: "handed_around",
      grid: { i: 2, j: 4 },
      cluster,
      outputs: { out: tensor(i32, [8, 3]) },
      scratch: { box: smem(i32, [3, 32]), told: clusterBarrier(axes, { count: 3 }) },
    },
    ({ i, j, out, box, told }) => {
      const [own, next] = [
        rank(clusterRank("i"), clusterRank("j")),
        axes === "i"
          ? rank(clusterRank("i").xor(1), clusterRank("j"))
          : axes === "j"
            ? rank(clusterRank("i"), clusterRank("j").xor(1))
            : rank(clusterRank("i").xor(1), clusterRank("j").xor(1)),
      ];
      loop(3, (round) => {
        box
          .peer(next)
          .at(round)
          .store(full(i32, [32], 10).mul(round).add(own));
        told.at(round).arrive();
        told.at(round).wait();
        out.at(i.mul(4).add(j), round).store(box.at(round).load().max());
      });
      clusterSync();
    },
  );
}

/** The rank of a block of the grid in its cluster, and of its neighbour. */
const neighbours = (change: number): readonly number[] =>
  Array.from({ length: 8 * 3 }, (_, place) => {
    const [block, round] = [Math.floor(place / 3), place % 3];
    const own = 2 * Math.floor(block / 4) + (block % 2);
    return 10 * round + (own ^ change);
  });

test("blocks along an axis, along several, and all of the cluster", async () => {
  await results(handedAround("i"), neighbours(2));
  await results(handedAround("j"), neighbours(1));
  await results(handedAround(["i", "j"]), neighbours(3));
  await results(handedAround(undefined), neighbours(3));
});

test("whom the barrier does not reach is not ordered", async () => {
  const { kernel: traced } = kernel(
    {
      name: "too_few",
      grid: { i: 2, j: 2 },
      cluster,
      outputs: { out: tensor(i32, [4]) },
      scratch: { box: smem(i32, [32]), told: clusterBarrier("j") },
    },
    ({ i, j, out, box, told }) => {
      box.peer(rank(i.xor(1), j)).store(full(i32, [32], 1).mul(rank(i, j)));
      told.arrive();
      told.wait();
      out.at(rank(i, j)).store(box.load().max());
      clusterSync();
    },
  );
  for (const schedule of schedules) {
    const { findings } = await runKernel({ kernel: traced }, {}, schedule);
    expect(findings.map(({ code }) => code)).toContain("TW3001");
  }
});

test("arrivals count those of each block", async () => {
  const twice = kernel(
    {
      name: "twice",
      grid: { i: 2 },
      cluster: { i: 2 },
      threads: ["a", "b"],
      outputs: { out: tensor(i32, [2, 2]) },
      scratch: { box: smem(i32, [2, 2]), told: clusterBarrier("i", { arrivals: 2 }) },
    },
    ({ i, out, box, told, a, b }) => {
      [a, b].forEach((thread, side) =>
        thread(() => {
          box
            .peer(i.xor(1))
            .at(side, 0)
            .store(i.add(side * 10));
          told.arrive();
          whileLoop(
            constant(i32, 100),
            () => told.test(0).not(),
            (time) => {
              delay(time);
              return time.add(10);
            },
          );
          out.at(i, side).store(box.at(1 - side, 0).loadScalar());
        }),
      );
      clusterSync();
    },
  );
  await results(twice, [11, 1, 10, 0]);
});

test("a barrier of a scope", async () => {
  const within = kernel(
    {
      name: "within",
      grid: { i: 4 },
      cluster: { i: 4 },
      outputs: { out: tensor(i32, [3, 4]) },
    },
    ({ i, out }) => {
      loop(3, (round) => {
        scoped(
          { box: smem(i32, [4]), told: clusterBarrier("i", { count: [1, 2] }) },
          ({ box, told }) => {
            box
              .peer(i.add(1).rem(4))
              .at(round)
              .store(i.add(round.mul(10)));
            told.at(0, 1).arrive();
            told.at(0, 1).wait();
            out.at(round, i).store(box.at(round).loadScalar());
            clusterSync();
          },
        );
      });
    },
  );
  await results(within, [3, 0, 1, 2, 13, 10, 11, 12, 23, 20, 21, 22]);
});

function refused(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

test("without blocks along the axes it is refused", () => {
  const declared = (axes?: string | readonly string[]) => () =>
    kernel(
      {
        name: "declared",
        grid: { i: 2, j: 2 },
        cluster: { i: 2 },
        scratch: { told: clusterBarrier(axes) },
      },
      () => undefined,
    );
  expect(refused(declared("j"))).toBe("TW1107");
  expect(refused(declared("k"))).toBe("TW1107");
  expect(refused(declared(["i", "i"]))).toBe("TW1008");
  expect(refused(declared([]))).toBe("TW1008");
  expect(
    refused(() =>
      kernel(
        { name: "alone", grid: { i: 2 }, scratch: { told: clusterBarrier() } },
        () => undefined,
      ),
    ),
  ).toBe("TW1107");
  const ofThread = () =>
    kernel({ name: "own", grid: { i: 2 }, cluster: { i: 2 }, threads: ["a", "b"] }, ({ a }) => {
      a(() => scoped({ told: clusterBarrier() }, ({ told }) => told.arrive()));
    });
  expect(refused(ofThread)).toBe("TW2210");
  expect(refused(() => lower(handedAround("i").kernel, targets.sm_80))).toBe("TW3017");
});

test.skipIf(!hasPtxas)("the assembler takes them", () => {
  for (const target of [targets.sm_90a, targets.sm_100a, targets.sm_120a])
    expect(
      assembleNow(printPtx(lower(handedAround(undefined).kernel, target).module), target.name),
    ).toBe("");
});
