import { describe, expect, test } from "vitest";
import { codesOf, findingsOf, runKernel, schedules } from "../../test/simulation.ts";
import { bf16, f32, i32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import {
  accumulator,
  tensor,
  assert,
  barrier,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  commitGroup,
  commitShared,
  copyAsync,
  full,
  kernel,
  loop,
  scoped,
  slice,
  smem,
  union,
  waitGroup,
  warps,
  wgmma,
  when,
  zeros,
} from "../lang/index.ts";

const vector = (count: number): HostArray => fromNumbers(f32, [count], new Float64Array(count));

const { expectFinding, lineOf } = findingsOf(import.meta.url);

describe("data races", () => {
  test("a store and a load of two threads without a barrier", async () => {
    const k = kernel(
      {
        name: "race",
        threads: ["left", "right"],
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]) },
      },
      ({ left, right, out, buffer }) => {
        left(() => {
          buffer.store(full(f32, [64], 1)); // race store
        });
        right(() => {
          out.store(buffer.load()); // race load
        });
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(k, {}, schedule);
      // Where the load runs first it reads what nobody has written.
      expect(codesOf(run)).toContain("TW3001");
      const race = run.findings.find(({ code }) => code === "TW3001");
      const found = [
        race?.position?.line,
        ...(race?.notes ?? []).map((note) => note.position?.line),
      ];
      expect(found).toEqual(expect.arrayContaining([lineOf("race store"), lineOf("race load")]));
    }
  });

  test("two blocks that write the same elements", async () => {
    const k = kernel(
      { name: "clash", grid: { i: 3 }, outputs: { out: tensor(i32, [4]) } },
      ({ i, out }) => {
        out.store(i.add(full(i32, [4], 0))); // clash
      },
    );
    await expectFinding(k, {}, { code: "TW3001", marks: ["clash"], text: /semaphore/ });
  });

  test("a copy out of shared memory that was not committed", async () => {
    const k = kernel(
      {
        name: "uncommitted",
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]) },
      },
      ({ out, buffer }) => {
        buffer.store(full(f32, [64], 1)); // uncommitted store
        copyAsync(buffer, out); // uncommitted copy
        commitGroup();
        waitGroup();
      },
    );
    await expectFinding(
      k,
      {},
      {
        code: "TW3001",
        marks: ["uncommitted store", "uncommitted copy"],
        text: /call commitShared\(\) in thread main/,
      },
    );
  });

  test("a buffer overwritten before its copy has read it", async () => {
    const k = kernel(
      {
        name: "early",
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]) },
      },
      ({ out, buffer }) => {
        buffer.store(full(f32, [64], 1));
        commitShared();
        copyAsync(buffer, out); // early copy
        commitGroup();
        buffer.store(full(f32, [64], 2)); // early store
        waitGroup();
      },
    );
    await expectFinding(k, {}, { code: "TW3001", marks: ["early copy", "early store"] });
  });

  test("what a copy brings, read without a wait for its barrier", async () => {
    const k = kernel(
      {
        name: "hasty",
        inputs: { x: tensor(f32, [64]) },
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]), landed: barrier() },
      },
      ({ x, out, buffer, landed }) => {
        copyAsync(x, buffer, { barrier: landed }); // hasty copy
        out.store(buffer.load()); // hasty load
        landed.wait();
      },
    );
    await expectFinding(
      k,
      { x: vector(64) },
      {
        code: "TW3001",
        marks: ["hasty copy", "hasty load"],
        text: /wait on the copy's barrier landed before this load/,
      },
    );
  });

  test("what a copy wrote to global memory, read without a wait for its group", async () => {
    const k = kernel(
      {
        name: "returned",
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]) },
      },
      ({ out, buffer }) => {
        buffer.store(zeros(f32, [64]));
        commitShared();
        copyAsync(buffer, out);
        commitGroup();
        buffer.store(out.load());
        waitGroup();
      },
    );
    const { findings } = await runKernel(k);
    expect(findings.map(({ remedy }) => remedy)).toContain(
      "call waitGroup() in thread main after the copy, before this load",
    );
  });

  test("an operand of wgmma changed before the wait", async () => {
    const k = kernel(
      {
        name: "operand",
        outputs: { out: tensor(f32, [64, 8]) },
        scratch: { a: smem(bf16, [64, 16]), b: smem(bf16, [16, 8]) },
      },
      ({ out, a, b }) => {
        a.store(full(bf16, [64, 16], 1));
        b.store(full(bf16, [16, 8], 1));
        commitShared();
        const sum = wgmma(accumulator(f32, [64, 8]), a, b); // operand wgmma
        b.store(full(bf16, [16, 8], 2)); // operand store
        out.store(sum.wait());
      },
    );
    await expectFinding(k, {}, { code: "TW3001", marks: ["operand wgmma", "operand store"] });
  });

  test("a copy not waited for before its data are read", async () => {
    const k = kernel(
      {
        name: "unwaited",
        inputs: { x: tensor(f32, [64]) },
        outputs: { out: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]), full: barrier() },
      },
      ({ x, out, buffer, full }) => {
        copyAsync(x, buffer, { barrier: full }); // unwaited copy
        out.store(buffer.load()); // unwaited load
        full.wait();
      },
    );
    await expectFinding(
      k,
      { x: vector(64) },
      { code: "TW3001", marks: ["unwaited copy", "unwaited load"] },
    );
  });

  test("warps are apart from each other", async () => {
    const k = kernel({ name: "warped", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
      warps((warp) => {
        out.at(0).store(warp); // warp store
      });
    });
    await expectFinding(k, {}, { code: "TW3001", marks: ["warp store"], text: /warp/ });
  });
});

describe("memory", () => {
  test("a read of memory that nobody has written", async () => {
    const k = kernel(
      {
        name: "empty",
        outputs: { out: tensor(f32, [8]) },
        scratch: { buffer: smem(f32, [16]) },
      },
      ({ out, buffer }) => {
        buffer.at(slice(0, 8)).store(zeros(f32, [8]));
        out.store(buffer.at(slice(4, 8)).load()); // empty load
      },
    );
    await expectFinding(k, {}, { code: "TW3002", marks: ["empty load"], text: /byte 32/ });
  });

  test("a read of an output before it is written", async () => {
    const k = kernel({ name: "output", outputs: { out: tensor(f32, [8]) } }, ({ out }) => {
      out.store(out.load().add(1)); // output load
    });
    await expectFinding(k, {}, { code: "TW3002", marks: ["output load"] });
  });

  test("a read through another member of a union", async () => {
    const k = kernel(
      {
        name: "members",
        outputs: { out: tensor(i32, [8]) },
        scratch: { shared: union({ a: smem(f32, [8]) }, { b: smem(i32, [8]) }) },
      },
      ({ out, shared }) => {
        shared.a.store(zeros(f32, [8])); // member store
        out.store(shared.b.load()); // member load
      },
    );
    await expectFinding(k, {}, { code: "TW3003", marks: ["member store", "member load"] });
  });

  test("a window that leaves shared memory", async () => {
    const k = kernel(
      {
        name: "window",
        inputs: { x: tensor(i32, [1]) },
        outputs: { out: tensor(f32, [8]) },
        scratch: { buffer: smem(f32, [16]) },
      },
      ({ x, out, buffer }) => {
        buffer.store(zeros(f32, [16]));
        out.store(buffer.at(slice(x.at(0).loadScalar(), 8)).load()); // window load
      },
    );
    await expectFinding(
      k,
      { x: fromNumbers(i32, [1], [9]) },
      { code: "TW3004", marks: ["window load"], text: /9 to 16/ },
    );
    const inside = await runKernel(k, { x: fromNumbers(i32, [1], [8]) });
    expect(inside.findings).toEqual([]);
  });

  test("an index that is not there, even in global memory", async () => {
    const k = kernel(
      { name: "index", grid: { i: 3 }, outputs: { out: tensor(i32, [2]) } },
      ({ i, out }) => {
        out.at(i).store(i); // index store
      },
    );
    await expectFinding(k, {}, { code: "TW3005", marks: ["index store"] });
  });

  test("a bad window that is never used is no mistake", async () => {
    const k = kernel(
      { name: "unused", grid: { i: 3 }, outputs: { out: tensor(i32, [2]) } },
      ({ i, out }) => {
        const element = out.at(i);
        when(i.lt(2), () => {
          element.store(i);
        });
      },
    );
    expect((await runKernel(k)).findings).toEqual([]);
  });
});

describe("barriers", () => {
  test("an index out of range", async () => {
    const k = kernel(
      { name: "range", grid: { i: 2 }, scratch: { bars: barrier({ count: 1 + 1 }) } },
      ({ i, bars }) => {
        bars.at(i.add(1)).arrive(); // range arrive
        bars.at(i.add(1)).wait();
      },
    );
    await expectFinding(k, {}, { code: "TW3006", marks: ["range arrive"] });
  });

  test("a phase that can complete before its wait", async () => {
    const k = kernel(
      {
        name: "overrun",
        threads: ["producer", "consumer"],
        scratch: { full: barrier() },
      },
      ({ producer, consumer, full: ready }) => {
        producer(() => {
          loop(2, () => {
            ready.arrive(); // overrun arrive
          });
        });
        consumer(() => {
          loop(2, () => {
            ready.wait(); // overrun wait
          });
        });
      },
    );
    await expectFinding(k, {}, { code: "TW3007", marks: ["overrun wait", "overrun arrive"] });
  });

  test("arrivals that complete no phase", async () => {
    const k = kernel(
      { name: "leftover", scratch: { bar: barrier({ arrivals: 2 }) } },
      ({ bar }) => {
        bar.arrive(); // leftover arrive
      },
    );
    await expectFinding(
      k,
      {},
      { code: "TW3008", marks: ["leftover arrive"], text: /found: +1 when/ },
    );
  });
});

describe("operations that are not awaited", () => {
  test("a copy into shared memory", async () => {
    const k = kernel(
      {
        name: "copyIn",
        inputs: { x: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]), full: barrier() },
      },
      ({ x, buffer, full }) => {
        copyAsync(x, buffer, { barrier: full }); // copy in
      },
    );
    await expectFinding(k, { x: vector(64) }, { code: "TW3009", marks: ["copy in"] });
  });

  test("a copy that would have completed a barrier's phase", async () => {
    const k = kernel(
      {
        name: "partner",
        inputs: { x: tensor(f32, [64]) },
        scratch: { buffer: smem(f32, [64]), filled: barrier({ arrivals: 2 }) },
      },
      ({ x, buffer, filled }) => {
        filled.arrive();
        copyAsync(x, buffer, { barrier: filled }); // partner copy
      },
    );
    await expectFinding(k, { x: vector(64) }, { code: "TW3009", marks: ["partner copy"] });
  });

  test("a copy into a scope that has ended", async () => {
    const k = kernel(
      {
        name: "scopeEnd",
        inputs: { x: tensor(f32, [64]) },
        scratch: { full: barrier() },
      },
      ({ x, full }) => {
        scoped({ buffer: smem(f32, [64]) }, ({ buffer }) => {
          copyAsync(x, buffer, { barrier: full }); // scope copy
        });
        full.wait();
      },
    );
    await expectFinding(k, { x: vector(64) }, { code: "TW3009", marks: ["scope copy"] });
  });
});

describe("clusters", () => {
  test("a block that ends while another reads its shared memory", async () => {
    const k = kernel(
      {
        name: "exit",
        grid: { i: 2 },
        cluster: { i: 2 },
        outputs: { out: tensor(i32, [2]) },
        scratch: { buffer: smem(i32, [1]) },
      },
      ({ i, out, buffer }) => {
        buffer.at(0).store(i);
        clusterSync();
        const other = buffer.peer(clusterRank("i").xor(1));
        out.at(i).store(other.at(0).loadScalar()); // exit load
      },
    );
    await expectFinding(k, {}, { code: "TW3010", marks: ["exit load"] });
  });

  test("an access to a block that has ended", async () => {
    const k = kernel(
      {
        name: "gone",
        grid: { i: 2 },
        cluster: { i: 2 },
        scratch: { buffer: smem(i32, [1]) },
      },
      ({ i, buffer }) => {
        buffer.at(0).store(i);
        clusterSync();
        when(i.eq(1), () => {
          buffer.peer(0).at(0).store(5); // gone store
        });
      },
    );
    await expectFinding(k, {}, { code: "TW3010", marks: ["gone store"] });
  });

  test("an arrival on a block that may have ended", async () => {
    const k = kernel(
      {
        name: "lateArrival",
        grid: { i: 2 },
        cluster: { i: 2 },
        scratch: { bar: barrier({ arrivals: 2 }) },
      },
      ({ i, bar }) => {
        bar.arrive();
        when(i.eq(0), () => {
          bar.arrive({ peer: 1 }); // late arrival
        });
        when(i.eq(0), () => {
          bar.arrive();
        });
      },
    );
    for (const schedule of schedules)
      expect(codesOf(await runKernel(k, {}, schedule))).toContain("TW3010");
  });

  test("a wait without an arrival, and two arrivals without a wait", async () => {
    const spec = { name: "pairs", grid: { i: 2 }, cluster: { i: 2 } } as const;
    const unannounced = kernel(spec, () => {
      clusterWait(); // unannounced wait
    });
    await expectFinding(unannounced, {}, { code: "TW3018", marks: ["unannounced wait"] });
    const twice = kernel(spec, () => {
      clusterArrive();
      clusterArrive(); // second arrival
      clusterWait();
    });
    await expectFinding(twice, {}, { code: "TW3018", marks: ["second arrival"] });
  });

  test("a rank that the cluster does not have", async () => {
    const k = kernel(
      {
        name: "rank",
        grid: { i: 2 },
        cluster: { i: 2 },
        scratch: { buffer: smem(i32, [1]) },
      },
      ({ i, buffer }) => {
        buffer.peer(i.add(2)).at(0).store(i); // rank store
      },
    );
    await expectFinding(k, {}, { code: "TW3019", marks: ["rank store"] });
  });
});

describe("other mistakes", () => {
  test("an assertion that fails", async () => {
    const k = kernel({ name: "asserted", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      assert(x.load().ge(0), "x is not negative"); // assertion
    });
    await expectFinding(
      k,
      { x: fromNumbers(f32, [4], [0, 1, -1, 2]) },
      {
        code: "TW3012",
        marks: ["assertion"],
        text: /x is not negative[^]*false for 1 of 4 elements, at \[2\] in thread main/,
      },
    );
    await expectFinding(
      k,
      { x: fromNumbers(f32, [4], [-1, -1, -1, -1]) },
      { code: "TW3012", text: /false for 4 of 4 elements, at \[0\], \[1\], \[2\], … in/ },
    );
  });

  test("an assertion about scalars names them", async () => {
    const k = kernel({ name: "compared", inputs: { x: tensor(i32, [4]) } }, ({ x }) => {
      loop({ to: 4 }, (i) => {
        assert(x.at(i).loadScalar().lt(i), "below its index"); // compared
      });
    });
    await expectFinding(
      k,
      { x: fromNumbers(i32, [4], [-1, 0, 7, 0]) },
      { code: "TW3012", marks: ["compared"], text: /7 lt 2 is false in thread main, iteration 2/ },
    );
  });

  test("a loop that does not advance", async () => {
    const k = kernel({ name: "still", inputs: { x: tensor(i32, [1]) } }, ({ x }) => {
      loop({ to: 4, step: x.at(0).loadScalar() }, () => {}); // still loop
    });
    await expectFinding(
      k,
      { x: fromNumbers(i32, [1], [0]) },
      { code: "TW3014", marks: ["still loop"] },
    );
  });

  test("a mistake in every block is one finding, and findings are limited", async () => {
    const k = kernel(
      {
        name: "many",
        grid: { i: 50 },
        outputs: { out: tensor(f32, [50]) },
        scratch: { a: smem(f32, [1]), b: smem(f32, [1]) },
      },
      ({ i, out, a, b }) => {
        out.at(i).store(a.at(0).loadScalar().add(b.at(0).loadScalar()));
      },
    );
    expect(codesOf(await runKernel(k))).toEqual(["TW3002", "TW3002"]);
    expect(codesOf(await runKernel(k, {}, { maxFindings: 1 }))).toEqual(["TW3002"]);
    expect(codesOf(await runKernel(k, {}, { checks: false }))).toEqual([]);
  });
});
