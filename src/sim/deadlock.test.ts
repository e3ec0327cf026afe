import { describe, expect, test } from "vitest";
import { findingsOf, runKernel } from "../../test/simulation.ts";
import { f32 } from "../formats/dtype.ts";
import {
  all,
  barrier,
  blockSync,
  dim,
  kernel,
  semaphore,
  smem,
  threadIndex,
  when,
  zeros,
} from "../lang/index.ts";
import { targets } from "../targets/target.ts";

const { expectFinding } = findingsOf(import.meta.url);

describe("deadlock", () => {
  test("two threads that wait for each other", async () => {
    const k = kernel(
      {
        name: "cycle",
        threads: ["left", "right"],
        scratch: { ping: barrier(), pong: barrier() },
      },
      ({ left, right, ping, pong }) => {
        left(() => {
          ping.wait(); // cycle left
          pong.arrive();
        });
        right(() => {
          pong.wait(); // cycle right
          ping.arrive();
        });
      },
    );
    await expectFinding(
      k,
      {},
      { code: "TW3011", marks: ["cycle left", "cycle right"], text: /phase 0.*0 of 1 arrivals/ },
    );
  });

  test("a barrier with too few arrivals names those that came", async () => {
    const k = kernel({ name: "few", scratch: { bar: barrier({ arrivals: 2 }) } }, ({ bar }) => {
      bar.arrive();
      bar.wait(); // few wait
    });
    await expectFinding(
      k,
      {},
      { code: "TW3011", marks: ["few wait"], text: /1 of 2 arrivals: thread main/ },
    );
  });

  test("a semaphore that nobody signals", async () => {
    const k = kernel({ name: "silent", scratch: { counter: semaphore() } }, ({ counter }) => {
      counter.wait(2); // silent wait
    });
    await expectFinding(
      k,
      {},
      { code: "TW3011", marks: ["silent wait"], text: /to reach 2: it is at 0/ },
    );
  });

  test("a block sync that one thread does not reach", async () => {
    const k = kernel({ name: "absent", threads: ["a", "b"] }, () => {
      when(threadIndex().eq(0), () => {
        blockSync(); // absent sync
      });
    });
    await expectFinding(
      k,
      {},
      { code: "TW3011", marks: ["absent sync"], text: /blockSync: 1 of 2 have arrived/ },
    );
  });

  test("blocks that wait for blocks which do not fit", async () => {
    const k = kernel(
      { name: "residency", grid: { i: 40 }, scratch: { counter: semaphore() } },
      ({ counter }) => {
        counter.signal(1);
        counter.wait(40);
      },
    );
    const small = { ...targets.sm_90a, processors: 1 };
    await expectFinding(
      k,
      {},
      { code: "TW3011", text: /24 blocks have not started/ },
      { target: small },
    );
    expect((await runKernel(k)).findings).toEqual([]);
  });
});

describe("launches that cannot be", () => {
  test("more shared memory than a block may have", async () => {
    const k = kernel(
      { name: "large", scratch: { a: smem(f32, [256, 128]), b: smem(f32, [256, 128]) } },
      ({ a, b }) => {
        a.at(0, all).store(zeros(f32, [128]));
        b.at(0, all).store(zeros(f32, [128]));
      },
    );
    await expect(runKernel(k)).rejects.toMatchObject({
      code: "TW3013",
      notes: [{ message: "a takes 131072 bytes" }, { message: "b takes 131072 bytes" }],
    });
  });

  test("too many program threads, too large clusters, incomplete clusters", async () => {
    const threaded = kernel({ name: "wide", threads: ["a", "b", "c"] }, () => {});
    const narrow = { ...targets.sm_90a, lanesPerBlock: 256 };
    await expect(runKernel(threaded, {}, { target: narrow })).rejects.toMatchObject({
      code: "TW3016",
    });
    const clustered = kernel({ name: "big", grid: { i: 16 }, cluster: { i: 4 } }, () => {});
    await expect(runKernel(clustered, {}, { target: targets.sm_80 })).rejects.toMatchObject({
      code: "TW3017",
    });
    const odd = kernel({ name: "odd", grid: { i: dim("n") }, cluster: { i: 2 } }, () => {});
    await expect(runKernel(odd, {}, { dimensions: { n: 3 } })).rejects.toMatchObject({
      code: "TW3015",
    });
  });
});
