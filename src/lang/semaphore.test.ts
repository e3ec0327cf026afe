/** Counters that are read, scopes of what is done to them, and counters of a scope, on the simulator and on the emulator. */
import { expect, test } from "vitest";
import { emulateKernel } from "../../test/support/emulated-kernel.ts";
import { assembleNow, combineModules, hasPtxas } from "../../test/ptxas.ts";
import { runKernel, schedules } from "../../test/simulation.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { lower } from "../lower/stages.ts";
import { printPtx } from "../ptx/printer.ts";
import { open } from "../runtime/open.ts";
import { targets } from "../targets/target.ts";
import type { MemoryScope } from "../ir/schema.ts";
import {
  constant,
  delay,
  full,
  kernel,
  loop,
  scoped,
  semaphore,
  tensor,
  vmap,
  warps,
  when,
  whileLoop,
} from "./index.ts";
import type { KernelDefinition } from "./index.ts";

interface Ran {
  readonly codes: readonly string[];
  readonly of: (name: string) => readonly number[];
}

/** Under every schedule of the simulator, then on the emulator under three seeds. */
async function runs(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray } = {},
): Promise<readonly Ran[]> {
  const found: Ran[] = [];
  for (const schedule of schedules) {
    const { findings, numbers } = await runKernel(definition, inputs, schedule);
    found.push({ codes: findings.map(({ code }) => code), of: numbers });
  }
  for (const seed of [1, 2, 3]) {
    const { findings, results } = emulateKernel(definition, inputs, { seed });
    const of = (name: string): readonly number[] => {
      const array = results[name];
      return array === undefined ? [] : [...toNumbers(array)];
    };
    found.push({ codes: findings.map(({ code }) => code), of });
  }
  return found;
}

/** One block writes, the others read once they have read the counter often enough. */
function published(heeds: boolean, scope?: MemoryScope) {
  const within = scope === undefined ? {} : { scope };
  return kernel(
    {
      name: "published",
      grid: { i: 3 },
      outputs: { out: tensor(f32, [3, 128]) },
      inouts: { box: tensor(f32, [128]) },
      scratch: { ready: semaphore([2]) },
    },
    ({ i, out, box, ready }) => {
      const flag = ready.at(1);
      when(
        i.eq(0),
        () => {
          box.store(full(f32, [128], 7));
          flag.signal(2, within);
        },
        () => {
          if (heeds)
            whileLoop(
              constant(i32, 50),
              () => flag.read(within).lt(2),
              (time) => {
                delay(time);
                return time.add(50);
              },
            );
          else flag.read(within);
        },
      );
      when(i.gt(0), () => out.at(i).store(box.load()));
      when(i.eq(0), () => out.at(i).store(full(f32, [128], 1)));
    },
  );
}

const box = () => ({ box: fromNumbers(f32, [128], new Array<number>(128).fill(0)) });
const expected = Array.from({ length: 3 * 128 }, (_, place) => (place < 128 ? 1 : 7));

test("what a read has counted is visible, under every schedule", async () => {
  for (const { codes, of } of await runs(published(true), box())) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual(expected);
  }
});

test("a read that nobody heeds orders nothing", async () => {
  const found = (await runs(published(false), box())).flatMap(({ codes }) => codes);
  expect(found).toContain("TW3001");
});

test("counters are read by every warp, by none that looks, and by several threads", async () => {
  const read = kernel(
    {
      name: "read_around",
      grid: { i: 1 },
      threads: ["a", "b"],
      outputs: { out: tensor(i32, [2, 5]) },
      scratch: { count: semaphore(), turn: semaphore([2]) },
    },
    ({ out, count, turn, a, b }) => {
      a(() => {
        count.signal(5);
        count.signal(-2);
        turn.at(0).signal();
      });
      b(() => {
        turn.at(0).wait(1);
        count.read();
        out.at(1, 4).store(count.read());
        warps((warp) => out.at(1, warp).store(count.read().add(warp)));
        turn.at(1).signal();
      });
      a(() => {
        turn.at(1).wait(1);
        count.wait(3, { decrement: true });
        out.at(0, 4).store(count.read().mul(2));
        warps((warp) => out.at(0, warp).store(count.read().sub(warp)));
      });
    },
  );
  for (const { codes, of } of await runs(read)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([0, -1, -2, -3, 0, 3, 4, 5, 6, 3]);
  }
});

test("the scope is the one of the instructions", () => {
  const spellings = { block: "cta", cluster: "cluster", device: "gpu", system: "sys" } as const;
  for (const scope of ["block", "cluster", "device", "system"] as const) {
    const spelling = spellings[scope];
    const { module } = lower(published(true, scope).kernel, targets.sm_90a);
    const text = printPtx(module);
    expect(text).toContain(`red.release.${spelling}.global.add.u32`);
    expect(text).toContain(`ld.acquire.${spelling}.global.u32`);
  }
  const { module } = lower(published(true, "cluster").kernel, targets.sm_80);
  expect(printPtx(module)).toContain("red.release.cta.global.add.u32");
});

test("blocks that are beyond the scope race", async () => {
  for (const scope of ["block", "cluster"] as const)
    for (const { codes } of await runs(published(true, scope), box()))
      expect(codes.length, scope).toBeGreaterThan(0);
  for (const { codes } of await runs(published(true, "system"), box())) expect(codes).toEqual([]);
  const [first] = (await runKernel(published(true, "block"), box())).findings;
  expect(first?.code).toBe("TW3001");
  expect(first?.remedy).toContain("leave out the scope");
});

/** Each block's threads, or each cluster's, hand over through a counter of their own. */
function within(scope: "block" | "cluster") {
  return kernel(
    {
      name: "within",
      grid: { i: 4 },
      ...(scope === "cluster" && { cluster: { i: 2 } }),
      threads: ["writer", "reader"],
      inouts: { box: tensor(i32, [4]) },
      outputs: { out: tensor(i32, [4]) },
      scratch: { ready: semaphore([4]) },
    },
    ({ i, box: boxes, out, ready, writer, reader }) => {
      const neighbour = scope === "cluster" ? i.xor(1) : i;
      writer(() => {
        boxes.at(i).store(i.add(10));
        ready.at(i).signal(1, { scope });
      });
      reader(() => {
        ready.at(neighbour).wait(1, { decrement: true, scope });
        out.at(i).store(boxes.at(neighbour).loadScalar());
      });
    },
  );
}

test("within the scope they hand over", async () => {
  const given = { box: fromNumbers(i32, [4], [0, 0, 0, 0]) };
  for (const { codes, of } of await runs(within("block"), given)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([10, 11, 12, 13]);
  }
  for (const { codes, of } of await runs(within("cluster"), given)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([11, 10, 13, 12]);
  }
});

test("a narrow op that is ordered with the others does not race", async () => {
  const ordered = kernel(
    {
      name: "ordered",
      grid: { i: 2 },
      outputs: { out: tensor(i32, [1]) },
      scratch: { count: semaphore(), turn: semaphore() },
    },
    ({ i, out, count, turn }) => {
      when(
        i.eq(0),
        () => {
          count.signal(3, { scope: "block" });
          turn.signal();
        },
        () => {
          turn.wait(1);
          out.at(0).store(count.read());
        },
      );
    },
  );
  for (const { codes, of } of await runs(ordered)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([3]);
  }
});

/** A helper that counts blocks without a word in the kernel's specification. */
function lastOf(blocks: number, use: () => void): void {
  scoped({ done: semaphore() }, ({ done }) => {
    done.signal();
    use();
    done.wait(blocks);
  });
}

test("a scope has counters of the grid", async () => {
  const met = kernel(
    {
      name: "met",
      grid: { i: 3 },
      inouts: { box: tensor(i32, [2, 3]) },
      outputs: { out: tensor(i32, [3]) },
    },
    ({ i, box: boxes, out }) => {
      boxes.at(0, i).store(i.add(1));
      lastOf(3, () => undefined);
      const sum = boxes.at(0).load().sum();
      boxes.at(1, i).store(sum);
      lastOf(3, () => undefined);
      out.at(i).store(boxes.at(1).load().sum());
    },
  );
  const given = { box: fromNumbers(i32, [2, 3], [0, 0, 0, 0, 0, 0]) };
  for (const { codes, of } of await runs(met, given)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([18, 18, 18]);
  }
});

test("counters of a scope that is entered again are as they were left", async () => {
  const again = kernel(
    { name: "again", grid: { i: 2 }, threads: ["a", "b"], outputs: { out: tensor(i32, [4]) } },
    ({ i, out, b }) => {
      loop(4, (step) => {
        scoped({ count: semaphore([2]) }, ({ count }) => {
          b(() => {
            count.at(i).signal(step.add(1));
            when(i.eq(1), () => out.at(step).store(count.at(1).read()));
          });
        });
      });
    },
  );
  for (const { codes, of } of await runs(again)) {
    expect(codes).toEqual([]);
    expect(of("out")).toEqual([1, 3, 6, 10]);
  }
});

test("counters of a scope are there once for each item of a batch", async () => {
  const one = kernel(
    {
      name: "one",
      grid: { i: 2 },
      inputs: { x: tensor(i32, [2]) },
      outputs: { out: tensor(i32, [2]) },
    },
    ({ i, x, out }) => {
      scoped({ sum: semaphore(), met: semaphore() }, ({ sum, met }) => {
        sum.signal(x.at(i).loadScalar());
        met.signal();
        met.wait(2);
        out.at(i).store(sum.read());
      });
    },
  );
  const device = await open("emulator");
  try {
    const x = fromNumbers(i32, [3, 2], [1, 2, 3, 4, 5, 6]);
    const { out } = await device.run(vmap(one, { x: 0 }), { x });
    expect([...toNumbers(out)]).toEqual([3, 3, 7, 7, 11, 11]);
  } finally {
    device.dispose();
  }
});

test.skipIf(!hasPtxas)("the assembler takes them for every target", () => {
  for (const target of Object.values(targets)) {
    const scopes = ["block", "cluster", "device", "system"] as const;
    const made = scopes.map(
      (scope) => [scope, lower(published(true, scope).kernel, target).module] as const,
    );
    expect(assembleNow(combineModules(made), target.name)).toBe("");
  }
});
