/** What must not be left when a kernel ends, or a scope within it: both devices find it, by the kernel's own names, under every schedule. */
import { describe, test } from "vitest";
import {
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  scoped,
  smem,
  waitGroup,
  warps,
  when,
} from "tilewright";
import type { Barrier, KernelDefinition, Ref } from "tilewright";
import { expectClean, expectFound } from "./support/verdicts.ts";

const length = 32;
const numbers = Array.from({ length }, (_, at) => at);
const inputs = { x: fromNumbers(f32, [length], numbers) };
const arrays = {
  inputs: { x: tensor(f32, [length]) },
  outputs: { out: tensor(f32, [length]) },
};

interface Given {
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly tile: Ref<"f32">;
  readonly b: Barrier;
}

/** A kernel of one thread with a buffer and a barrier. */
function single(body: (given: Given) => void, arrivals = 1): KernelDefinition {
  return kernel(
    {
      name: "single",
      ...arrays,
      scratch: { tile: smem(f32, [2, length]), b: barrier({ count: 2, arrivals }) },
    },
    body,
  ) as unknown as KernelDefinition;
}

describe("copies", () => {
  const unawaited = { simulator: "TW3009", emulator: "TW8056" } as const;

  const sent = (end: () => void): KernelDefinition =>
    single(({ x, out, tile }) => {
      tile.at(0).store(x.load());
      commitShared();
      copyAsync(tile.at(0), out);
      end();
    });

  test("out of shared memory, in groups or in none, awaited or left to the end of the kernel", async () => {
    const ends = [
      () => undefined,
      () => {
        waitGroup();
      },
      () => {
        waitGroup(0, { read: true });
      },
    ];
    for (const end of ends)
      for (const close of [commitGroup, () => undefined])
        await expectClean(
          numbers,
          sent(() => {
            close();
            end();
          }),
          inputs,
        );
  });

  test("of which a wait leaves the newest group", async () => {
    const left = single(({ x, out, tile }) => {
      for (const at of [0, 1]) {
        tile.at(at).store(x.load());
        commitShared();
        copyAsync(tile.at(at), out);
        commitGroup();
        waitGroup(at);
      }
    });
    await expectClean(numbers, left, inputs);
  });

  test("out of shared memory that are waited for before it is written again", async () => {
    const again = (wait: () => void): KernelDefinition =>
      single(({ x, out, tile }) => {
        tile.at(0).store(x.load().mul(2));
        commitShared();
        copyAsync(tile.at(0), out);
        wait();
        tile.at(0).store(x.load());
        commitShared();
        copyAsync(tile.at(0), out);
      });
    await expectClean(numbers, again(waitGroup), inputs);
    const raced = { simulator: "TW3001", emulator: "TW8014" } as const;
    const newest = (): void => {
      waitGroup(1);
    };
    await expectFound(raced, again(newest), inputs);
  });

  test("into shared memory that nobody waits for, and that somebody waits for once of twice", async () => {
    const once = single(({ x, out, tile, b }) => {
      copyAsync(x, tile.at(0), { barrier: b.at(0) });
      out.store(x.load());
    });
    await expectFound({ ...unawaited, says: /element \[0, 0\] of tile/ }, once, inputs);
    const twice = single(({ x, out, tile, b }) => {
      copyAsync(x, tile.at(0), { barrier: b.at(0) });
      b.at(0).wait();
      copyAsync(x, tile.at(1), { barrier: b.at(0) });
      out.store(tile.at(0).load());
    });
    await expectFound({ ...unawaited, says: /element \[1, 0\] of tile/ }, twice, inputs);
  });

  test("of warps of their own", async () => {
    const ofWarps = single(({ x, out, tile }) => {
      tile.at(0).store(x.load());
      commitShared();
      warps((warp) => {
        when(warp.eq(2), () => {
          copyAsync(tile.at(0), out);
        });
      });
    });
    await expectClean(numbers, ofWarps, inputs);
  });
});

describe("arrivals", () => {
  const leftOver = { simulator: "TW3008", emulator: "TW8067" } as const;
  const tooMany = { simulator: "TW3008", emulator: "TW8066" } as const;

  test("of a phase that never completes", async () => {
    const one = single(({ x, out, b }) => {
      b.at(1).arrive();
      out.store(x.load());
    }, 2);
    const says = /left over on barrier 1 of b[^]*thread main \(warp 0\) arrived/;
    await expectFound({ ...leftOver, says }, one, inputs);
  });

  test("behind a phase that was waited for", async () => {
    const three = kernel(
      {
        name: "three",
        threads: ["arriving", "waiting"],
        ...arrays,
        scratch: { b: barrier({ arrivals: 2 }) },
      },
      ({ x, out, b, arriving, waiting }) => {
        arriving(() => {
          b.arrive();
          b.arrive();
          b.arrive();
        });
        waiting(() => {
          b.wait();
          out.store(x.load());
        });
      },
    );
    await expectFound(leftOver, three as unknown as KernelDefinition, inputs);
  });

  test("of a phase or several behind the last wait", async () => {
    const behind = (more: number): KernelDefinition =>
      kernel(
        {
          name: "behind",
          threads: ["arriving", "waiting"],
          ...arrays,
          scratch: { b: barrier(), done: barrier() },
        },
        ({ x, out, b, done, arriving, waiting }) => {
          arriving(() => {
            b.arrive();
            done.wait();
            for (let at = 0; at < more; at += 1) b.arrive();
          });
          waiting(() => {
            b.wait();
            done.arrive();
            out.store(x.load());
          });
        },
      ) as unknown as KernelDefinition;
    await expectClean(numbers, behind(1), inputs);
    await expectFound(tooMany, behind(2), inputs);
  });

  test("of some warps, and of a scope", async () => {
    const ofWarps = single(({ x, out, b }) => {
      warps((warp) => {
        when(warp.ge(1), () => {
          b.at(0).arrive();
        });
      });
      out.store(x.load());
    }, 4);
    await expectFound(leftOver, ofWarps, inputs);
    const inScope = single(({ x, out }) => {
      const loaded = scoped({ own: barrier({ arrivals: 2 }) }, ({ own }) => {
        own.arrive();
        return x.load();
      });
      out.store(loaded);
    });
    await expectFound(leftOver, inScope, inputs);
  });

  test("of other blocks of the cluster, and of some blocks alone", async () => {
    const cluster = (arrivals: number, body: (b: Barrier) => void): KernelDefinition =>
      kernel(
        {
          name: "cluster",
          grid: { i: 4 },
          cluster: { i: 2 },
          inputs: arrays.inputs,
          outputs: { out: tensor(f32, [4, length]) },
          scratch: { b: barrier({ arrivals }) },
        },
        ({ i, x, out, b }) => {
          body(b);
          out.at(i).store(x.load());
          clusterSync();
        },
      ) as unknown as KernelDefinition;
    const other = cluster(2, (b) => {
      b.arrive({ peer: clusterRank("i").add(1).rem(2) });
    });
    await expectFound(leftOver, other, inputs);
    const both = cluster(1, (b) => {
      b.arrive({ peer: 0 });
    });
    await expectFound(tooMany, both, inputs);
    const some = kernel(
      {
        name: "some",
        grid: { i: 3 },
        inputs: arrays.inputs,
        outputs: { out: tensor(f32, [3, length]) },
        scratch: { b: barrier({ arrivals: 2 }) },
      },
      ({ i, x, out, b }) => {
        when(i.eq(2), () => {
          b.arrive();
        });
        out.at(i).store(x.load());
      },
    );
    const says = /barrier 0 of b, of block \(i = 2\)/;
    await expectFound({ ...leftOver, says }, some as unknown as KernelDefinition, inputs);
  });
});
