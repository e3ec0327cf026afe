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
import { TilewrightError } from "../support/diagnostics.ts";
import { targets } from "../targets/target.ts";

const { expectFinding, lineOf } = findingsOf(import.meta.url);

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
          pong.arrive(); // cycle pong
        });
        right(() => {
          pong.wait(); // cycle right
          ping.arrive(); // cycle ping
        });
      },
    );
    await expectFinding(
      k,
      {},
      {
        code: "TW3011",
        marks: ["cycle left", "cycle right", "cycle ping", "cycle pong"],
        text: /thread left waits for phase 0 of barrier ping \(0 of 1 arrivals so far\); nobody has arrived/,
      },
    );
    const line = lineOf("cycle right");
    const { findings } = await runKernel(k);
    expect(findings[0]?.message).toMatch(
      new RegExp(`Barrier.arrive arrives on ping, in thread right, which waits at .*:${line}:`),
    );
  });

  test("a thread that ended without its arrival", async () => {
    const k = kernel(
      { name: "ended", threads: ["left", "right"], scratch: { ping: barrier({ count: 2 }) } },
      ({ left, right, ping }) => {
        left(() => {
          ping.at(1).wait(); // ended wait
        });
        right(() => {
          ping.at(0).arrive(); // ended arrive
        });
      },
    );
    await expectFinding(
      k,
      {},
      {
        code: "TW3011",
        marks: ["ended wait", "ended arrive"],
        text: /phase 0 of barrier ping\[1\] [^]*arrives on ping, in thread right, which has ended/,
      },
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
      {
        code: "TW3011",
        marks: ["few wait"],
        text: /\(1 of 2 arrivals so far\); arrived: thread main at/,
      },
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
      {
        code: "TW3011",
        marks: ["absent sync"],
        text: /blockSync \(1 of 2 so far\); arrived: thread a/,
      },
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

  test("more stages than fit", async () => {
    const remedyOf = async (stages: number, barriers: number): Promise<string | undefined> => {
      const scratch = {
        a: smem(f32, [stages, 64, 64]),
        b: smem(f32, [stages, 4096]),
        fixed: smem(f32, [64]),
        ready: barrier({ count: barriers }),
      };
      const k = kernel({ name: "deep", scratch }, () => {});
      const thrown: unknown = await runKernel(k).catch((error: unknown) => error);
      return thrown instanceof TilewrightError ? thrown.remedy : undefined;
    };
    expect(await remedyOf(8, 8)).toBe(
      "use fewer stages of a, b, ready: 8 stages need 262464 bytes; 7 fit",
    );
    expect(await remedyOf(7, 7)).toBeUndefined();
    // One buffer alone may have its first extent for any reason.
    expect(await remedyOf(8, 1)).toMatch(/smaller tiles/);
  });

  test("too many program threads, too large clusters, incomplete clusters", async () => {
    const threaded = kernel({ name: "wide", threads: ["a", "b", "c"] }, () => {});
    const narrow = { ...targets.sm_90a, threadsPerBlock: 256 };
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
