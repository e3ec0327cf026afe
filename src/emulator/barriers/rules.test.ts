import { describe, expect, test } from "vitest";
import { awaitBarrier, initBarriers, runPtx } from "../../../test/support/ptx-kernel.ts";

function words(bytes: Uint8Array | undefined): number[] {
  return [...new Uint32Array((bytes ?? new Uint8Array()).slice().buffer)];
}

/** Runs a body with one barrier that expects `count`; thread 0 leaves numbers in out. */
function run(
  count: number,
  body: string,
  threads = 32,
): { codes: readonly string[]; out: number[] } {
  const text = `${initBarriers([{ at: 0, count }])}\n${body}`;
  const { codes, arrays } = runPtx({ body: text, arrays: { out: new Uint8Array(64) }, threads });
  return { codes, out: words(arrays["out"]) };
}

const first = "setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;";

describe("mbarrier instructions", () => {
  test("arrivals of all lanes end the phase, and a wait passes", () => {
    const body = `mbarrier.arrive.shared::cta.b64 _, [%smem]; ${awaitBarrier(0, 0)} ${first} st.global.b32 [%out], 5; $end:`;
    expect(run(64, body, 64)).toMatchObject({ codes: [] });
    expect(run(64, body, 64).out[0]).toBe(5);
  });

  test("generic addresses work too, and counts", () => {
    const body = `${first} cvt.u64.u32 %d1, %smem; cvta.shared.u64 %d1, %d1; mbarrier.arrive.b64 _, [%d1], 7; ${awaitBarrier(0, 0)} st.global.b32 [%out], 5; $end:`;
    expect(run(7, body).out[0]).toBe(5);
  });

  test("a token tells what was pending, and its phase can be waited for", () => {
    const body = [
      first,
      "mbarrier.arrive.shared::cta.b64 %d1, [%smem]; mbarrier.pending_count.b64 %r1, %d1;",
      "mbarrier.test_wait.shared::cta.b64 %p1, [%smem], %d1; selp.u32 %r2, 1, 0, %p1;",
      "mbarrier.arrive.noComplete.shared::cta.b64 %d2, [%smem], 2; mbarrier.pending_count.b64 %r3, %d2;",
      "mbarrier.arrive_drop.shared::cta.b64 _, [%smem];",
      "mbarrier.test_wait.shared::cta.b64 %p1, [%smem], %d1; selp.u32 %r4, 1, 0, %p1;",
      "mbarrier.arrive.shared::cta.b64 %d3, [%smem]; mbarrier.pending_count.b64 %r5, %d3;",
      "st.global.v4.b32 [%out], {%r1, %r2, %r3, %r4}; st.global.b32 [%out+16], %r5;",
      "$end:",
    ].join("\n");
    const { out, codes } = run(4, body);
    expect(codes).toEqual([]);
    expect(out.slice(0, 5)).toEqual([4, 0, 3, 1, 3]);
  });

  test("transactions hold a phase open", () => {
    const body = [
      first,
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 32;",
      "mbarrier.arrive.shared::cta.b64 _, [%smem];",
      "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%smem], 0; selp.u32 %r1, 1, 0, %p1;",
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%smem], 32;",
      "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%smem], 0; selp.u32 %r2, 1, 0, %p1;",
      "st.global.v2.b32 [%out], {%r1, %r2};",
      "$end:",
    ].join("\n");
    expect(run(1, body).out.slice(0, 2)).toEqual([0, 1]);
  });

  test("a release and an acquire order ordinary stores between warps", () => {
    const share = (arrive: string): string =>
      [
        "setp.ge.u32 %p0, %thread, 32; @%p0 bra $reader;",
        "st.shared.b32 [%smem+64], 9; bar.warp.sync -1; setp.ne.u32 %p1, %thread, 0; @%p1 bra $end;",
        `${arrive}.shared::cta.b64 _, [%smem]; bra $end;`,
        `$reader: ${awaitBarrier(0, 0)}`,
        "ld.shared.b32 %r1, [%smem+64]; st.global.b32 [%out], %r1;",
        "$end:",
      ].join("\n");
    const ordered = run(1, share("mbarrier.arrive"), 64);
    expect(ordered.codes).toEqual([]);
    expect(ordered.out[0]).toBe(9);
    expect(run(1, share("mbarrier.arrive.relaxed.cta"), 64).codes).toContain("TW8014");
  });
});

describe("mbarriers used wrongly", () => {
  const codes = (count: number, body: string, threads = 32): readonly string[] =>
    run(count, body, threads).codes;

  test("never initialised, invalidated or overwritten (TW8060)", () => {
    const arrive = "mbarrier.arrive.shared::cta.b64 _, [%smem+8]; $end:";
    expect(codes(1, `${first} ${arrive}`)).toContain("TW8060");
    const inval = "mbarrier.inval.shared::cta.b64 [%smem];";
    expect(
      codes(1, `${first} ${inval} mbarrier.arrive.shared::cta.b64 _, [%smem]; $end:`),
    ).toContain("TW8060");
    const store = "st.shared.b32 [%smem], 0;";
    expect(
      codes(1, `${first} ${store} mbarrier.arrive.shared::cta.b64 _, [%smem]; $end:`),
    ).toContain("TW8060");
  });

  test("an address in global memory (TW8060)", () => {
    expect(codes(1, `${first} mbarrier.arrive.b64 _, [%out]; $end:`)).toContain("TW8060");
  });

  test("more arrivals than expected (TW8061)", () => {
    expect(
      codes(
        31,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 16; mbarrier.arrive.shared::cta.b64 _, [%smem];",
      ),
    ).toContain("TW8061");
  });

  test("more bytes than it can count (TW8062)", () => {
    expect(
      codes(1, `${first} mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%smem], 1048576; $end:`),
    ).toContain("TW8062");
  });

  test("an arrival that must not be the last, and is (TW8063)", () => {
    expect(
      codes(2, `${first} mbarrier.arrive.noComplete.shared::cta.b64 _, [%smem], 2; $end:`),
    ).toContain("TW8063");
  });

  test("a wait that the other side outruns (TW8064)", () => {
    const body = [
      "setp.ge.u32 %p0, %thread, 32; @%p0 bra $waiter;",
      "setp.ne.u32 %p1, %thread, 0; @%p1 bra $end; mov.u32 %r1, 0;",
      "$arrive: mbarrier.arrive.shared::cta.b64 _, [%smem]; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 2000; @%p2 bra $arrive; bra $end;",
      `$waiter: mov.u32 %r2, 0; $again: and.b32 %r3, %r2, 1;`,
      "$try: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%smem], %r3; @!%p3 bra $try;",
      "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 2000; @%p2 bra $again;",
      "$end:",
    ].join("\n");
    expect(codes(1, body, 64)).toContain("TW8064");
  });

  test("a count that no barrier has (TW8065)", () => {
    expect(codes(1, `${first} mbarrier.init.shared::cta.b64 [%smem+8], 0; $end:`)).toContain(
      "TW8065",
    );
  });

  test("a wait for the wrong parity never ends", () => {
    expect(codes(1, `${first} ${awaitBarrier(0, 0)} $end:`)).toContain("TW8020");
  });

  test("initialised by one warp, used by another without a barrier between", () => {
    const body = [
      "setp.ge.u32 %p0, %thread, 32; @%p0 bra $user;",
      "setp.ne.u32 %p1, %thread, 0; @%p1 bra $end; mbarrier.init.shared::cta.b64 [%smem], 1; bra $end;",
      "$user: nanosleep.u32 1000; $end:",
    ].join("\n");
    const late = `${body}\n setp.ne.u32 %p1, %thread, 32; @%p1 bra $over; nanosleep.u32 100; mbarrier.arrive.shared::cta.b64 _, [%smem]; $over:`;
    const found = new Set<string>();
    for (let seed = 0; seed < 8; seed++)
      for (const code of runPtx({ body: late, threads: 64, seed }).codes) found.add(code);
    expect([...found].every((code) => code === "TW8014" || code === "TW8060")).toBe(true);
    expect(found.size).toBeGreaterThan(0);
  });
});

describe("the barrier of a cluster", () => {
  const meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
  const remote = (before: string, after: string): string =>
    [
      "add.u32 %r9, %rank, 40; st.shared.b32 [%smem], %r9;",
      before,
      "xor.b32 %r1, %rank, 1; mapa.shared::cluster.u32 %r2, %smem, %r1; ld.shared::cluster.b32 %r3, [%r2];",
      "mul.wide.u32 %d1, %rank, 4; add.u64 %d1, %d1, %out; st.global.b32 [%d1], %r3;",
      after,
    ].join("\n");
  const runCluster = (body: string): { codes: readonly string[]; out: number[] } => {
    const { codes, arrays } = runPtx({ body, arrays: { out: 8 }, blocks: 2, cluster: 2 });
    return { codes, out: words(arrays["out"]) };
  };

  test("orders accesses to the shared memory of other blocks", () => {
    expect(runCluster(remote(meet, meet))).toEqual({ codes: [], out: [41, 40] });
    expect(runCluster(remote("", meet)).codes).toContain("TW8014");
  });

  test("lets other work come between arriving and waiting", () => {
    const split = "barrier.cluster.arrive; mov.u32 %r5, 1; barrier.cluster.wait;";
    expect(runCluster(remote(split, split))).toEqual({ codes: [], out: [41, 40] });
  });

  test("a relaxed arrival orders nothing", () => {
    const relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;";
    expect(runCluster(remote(relaxed, meet)).codes).toContain("TW8014");
  });

  test("threads arrive and wait in turns (TW8080)", () => {
    expect(runCluster("barrier.cluster.wait.aligned;").codes).toContain("TW8080");
    expect(runCluster("barrier.cluster.arrive; barrier.cluster.arrive;").codes).toContain("TW8080");
  });

  describe("blocks arrive on each other's mbarriers", () => {
    const exchange = (arrive: string, wait: string): string =>
      [
        initBarriers([{ at: 0, count: 1 }]),
        meet,
        "st.shared.b32 [%smem+64], 3; bar.warp.sync -1;",
        "setp.ne.u32 %p0, %thread, 0; @%p0 bra $sent;",
        "xor.b32 %r1, %rank, 1; mapa.shared::cluster.u32 %r2, %smem, %r1;",
        `mbarrier.arrive${arrive}.shared::cluster.b64 _, [%r2];`,
        "$sent:",
        awaitBarrier(0, 0).replace("try_wait.parity", `try_wait.parity${wait}`),
        "xor.b32 %r1, %rank, 1; mapa.shared::cluster.u32 %r2, %smem, %r1; ld.shared::cluster.b32 %r3, [%r2+64];",
        "mul.wide.u32 %d1, %rank, 4; add.u64 %d1, %d1, %out; st.global.b32 [%d1], %r3;",
        meet,
      ].join("\n");

    test("and tell of ordinary accesses where both reach the cluster", () => {
      const body = exchange(".release.cluster", ".acquire.cluster");
      expect(runCluster(body)).toEqual({ codes: [], out: [3, 3] });
    });

    test.each([
      ["", ".acquire.cluster"],
      [".release.cta", ".acquire.cluster"],
      [".release.cluster", ""],
    ])("and tell of none with arrive%s and try_wait%s", (arrive, wait) => {
      expect(runCluster(exchange(arrive, wait)).codes).toContain("TW8014");
    });
  });
});
