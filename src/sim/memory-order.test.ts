/** What accesses with a memory order hand on in the simulator, and what becomes of loops that poll. */
import { describe, expect, test } from "vitest";
import { codesOf, findingsOf, runKernel, schedules } from "../../test/simulation.ts";
import { i32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import {
  barrier,
  blockSync,
  constant,
  delay,
  gmem,
  kernel,
  loop,
  semaphore,
  tensor,
  warps,
  when,
  whileLoop,
} from "../lang/index.ts";
import type { KernelDefinition, Ref, Scalar } from "../lang/index.ts";

const { expectFinding } = findingsOf(import.meta.url);
const zeros = (count: number): HostArray => fromNumbers(i32, [count], new Float64Array(count));

/** Repeats until it is so. */
function until(isSo: () => Scalar<"bool">): void {
  whileLoop(
    { waits: constant(i32, 1) },
    ({ waits }) => waits.ne(0),
    () => ({ waits: isSo().not().cast(i32) }),
  );
}

const acquires = { memoryOrder: "acquire" } as const;
const releases = { memoryOrder: "release" } as const;
const relaxed = { memoryOrder: "relaxed" } as const;

/** Block 0 writes, then signals; block 1 waits, then reads. */
function message(
  blocks: number,
  signal: (parts: { readonly i: Scalar<"i32">; readonly flag: Ref<"i32"> }) => void,
  wait: (flag: Ref<"i32">) => void,
): KernelDefinition {
  return kernel(
    {
      name: "message",
      grid: { i: blocks },
      outputs: { out: tensor(i32, [2]) },
      inouts: { flag: tensor(i32, [2]) },
    },
    ({ i, out, flag }) => {
      when(i.eq(0), () => out.at(0).store(5));
      signal({ i, flag });
      when(i.eq(blocks - 1), () => {
        wait(flag);
        out.at(1).store(out.at(0).loadScalar());
      });
    },
  );
}

async function codesUnder(definition: KernelDefinition, size = 2): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const schedule of schedules) {
    const run = await runKernel(definition, { flag: zeros(size) }, schedule);
    codesOf(run).forEach((code) => found.add(code));
    if (codesOf(run).length === 0) expect(run.numbers("out")).toEqual([5, 5]);
  }
  return [...found];
}

describe("a message", () => {
  test("arrives through updates in between, also relaxed ones", async () => {
    const between = message(
      3,
      ({ i, flag }) => {
        when(i.eq(0), () => flag.at(0).store(1, releases));
        when(i.eq(1), () => {
          until(() => flag.at(0).loadScalar(relaxed).eq(1));
          flag.at(0).atomicAdd(1);
        });
      },
      (flag) => until(() => flag.at(0).loadScalar(acquires).eq(2)),
    );
    expect(await codesUnder(between)).toEqual([]);
  });

  test("ends with a store in between", async () => {
    const between = message(
      3,
      ({ i, flag }) => {
        when(i.eq(0), () => flag.at(0).store(1, releases));
        when(i.eq(1), () => {
          until(() => flag.at(0).loadScalar(relaxed).eq(1));
          flag.at(0).store(2, relaxed);
        });
      },
      (flag) => until(() => flag.at(0).loadScalar(acquires).eq(2)),
    );
    expect(await codesUnder(between)).toEqual(["TW3001"]);
  });

  test("is handed on by whoever has acquired it", async () => {
    const chained = message(
      3,
      ({ i, flag }) => {
        when(i.eq(0), () => flag.at(0).store(1, releases));
        when(i.eq(1), () => {
          until(() => flag.at(0).loadScalar(acquires).eq(1));
          flag.at(1).store(1, releases);
        });
      },
      (flag) => until(() => flag.at(1).loadScalar(acquires).eq(1)),
    );
    expect(await codesUnder(chained)).toEqual([]);
  });

  test("is not released by a compare-and-swap that fails", async () => {
    const failing = message(
      2,
      ({ i, flag }) => {
        when(i.eq(0), () => {
          flag.at(0).compareExchange(7, 8, releases);
        });
      },
      (flag) => {
        flag.at(0).loadScalar(acquires);
      },
    );
    expect(await codesUnder(failing)).toContain("TW3001");
  });

  test("arrives by an update of both orders", async () => {
    const both = message(
      2,
      ({ i, flag }) => {
        when(i.eq(0), () => {
          flag.at(0).compareExchange(0, 1, { memoryOrder: "acq_rel" });
        });
      },
      (flag) => until(() => flag.at(0).atomicAdd(0, { memoryOrder: "acq_rel" }).eq(1)),
    );
    expect(await codesUnder(both)).toEqual([]);
  });
});

describe("accesses that may meet", () => {
  test("race where one of them is of another block's scope", async () => {
    const narrow = kernel(
      { name: "narrow", grid: { i: 2 }, inouts: { flag: tensor(i32, [1]) } },
      ({ i, flag }) => {
        when(i.eq(0), () => {
          flag.at(0).store(1, { memoryOrder: "relaxed", scope: "block" }); // narrow
        });
        when(i.eq(1), () => {
          flag.at(0).atomicAdd(1); // wide
        });
      },
    );
    await expectFinding(narrow, { flag: zeros(1) }, { code: "TW3001", marks: ["narrow", "wide"] });
  });

  test("race with weak ones", async () => {
    const weak = kernel(
      { name: "weak", grid: { i: 2 }, inouts: { flag: tensor(i32, [1]) } },
      ({ i, flag }) => {
        when(i.eq(0), () => {
          flag.at(0).store(1); // weak store
        });
        when(i.eq(1), () => {
          flag.at(0).loadScalar(acquires); // polled
        });
      },
    );
    const marks = ["weak store", "polled"];
    await expectFinding(weak, { flag: zeros(1) }, { code: "TW3001", marks, text: /load reads it/ });
  });

  test("read nothing that nobody has written", async () => {
    const unwritten = kernel(
      { name: "unwritten", outputs: { out: tensor(i32, [1]) }, scratch: { flag: gmem(i32, [1]) } },
      ({ out, flag }) => {
        out.at(0).store(flag.at(0).loadScalar(acquires)); // unwritten
      },
    );
    await expectFinding(unwritten, {}, { code: "TW3002", marks: ["unwritten"] });
  });
});

describe("a loop that polls", () => {
  test("in vain is a deadlock, with what it looks at", async () => {
    const vain = kernel(
      { name: "vain", grid: { i: 2 }, inouts: { flag: tensor(i32, [2]) } },
      ({ i, flag }) => {
        until(() => flag.at(i).loadScalar(acquires).eq(1)); // in vain
      },
    );
    const text = /waits for a change of flag, which its loop looks at again and again/;
    await expectFinding(vain, { flag: zeros(2) }, { code: "TW3011", marks: [], text });
  });

  test("in vain by an update, with a time between the tries, is one too", async () => {
    const vain = kernel({ name: "vain", inouts: { flag: tensor(i32, [2]) } }, ({ flag }) => {
      until(() => {
        delay(100);
        return flag.at(0).compareExchange(3, 4, acquires).eq(3);
      });
    });
    await expectFinding(vain, { flag: zeros(2) }, { code: "TW3011" });
  });

  test("without an end is one", async () => {
    const endless = kernel({ name: "endless", inouts: { flag: tensor(i32, [2]) } }, ({ flag }) => {
      until(() => constant(i32, 0).eq(1));
      flag.at(0).store(1);
    });
    const text = /waits for nothing: its loop repeats without an end/;
    await expectFinding(endless, { flag: zeros(2) }, { code: "TW3011", text });
  });

  test("goes on once something has changed: memory, a barrier, a counter", async () => {
    const rounds = 5;
    const both = kernel(
      {
        name: "both",
        threads: ["left", "right"],
        outputs: { out: tensor(i32, [3]) },
        inouts: { flag: tensor(i32, [2]) },
        scratch: { full: barrier(), done: semaphore() },
      },
      ({ flag, out, full, done, left, right }) => {
        left(() => {
          loop(rounds, (round) => {
            flag.at(0).store(round.add(1), releases);
            until(() => flag.at(1).loadScalar(acquires).eq(round.add(1)));
          });
          out.at(0).store(1);
          full.arrive();
          until(() => done.read().ge(1));
          out.at(2).store(out.at(1).loadScalar().add(1));
        });
        right(() => {
          loop(rounds, (round) => {
            until(() => flag.at(0).loadScalar(acquires).eq(round.add(1)));
            flag.at(1).store(round.add(1), releases);
          });
          until(() => full.test(0));
          out.at(1).store(out.at(0).loadScalar().add(1));
          done.signal();
        });
        blockSync();
      },
    );
    for (const schedule of [...schedules, { schedule: "timed" } as const]) {
      const run = await runKernel(both, { flag: zeros(2) }, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual([1, 2, 3]);
    }
  });

  test("may be entered again with what it began with", async () => {
    const again = kernel(
      { name: "again", outputs: { out: tensor(i32, [1]) }, inouts: { flag: tensor(i32, [2]) } },
      ({ flag, out }) => {
        loop(4, () => {
          until(() => flag.at(0).loadScalar(acquires).eq(0));
        });
        out.at(0).store(1);
      },
    );
    const run = await runKernel(again, { flag: zeros(2) });
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual([1]);
  });

  test("lets the other warps of its thread go on", async () => {
    const apart = kernel(
      { name: "apart", outputs: { out: tensor(i32, [4]) }, inouts: { flag: tensor(i32, [1]) } },
      ({ flag, out }) => {
        warps((warp) => {
          until(() => flag.at(0).loadScalar(acquires).eq(warp));
          out.at(warp).store(warp.add(10));
          flag.at(0).store(warp.add(1), releases);
        });
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(apart, { flag: zeros(1) }, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual([10, 11, 12, 13]);
    }
  });
});
