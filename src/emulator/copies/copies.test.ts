import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import {
  awaitBarrier,
  dumpShared,
  fillShared,
  initBarriers,
  runPtx,
} from "../../../test/support/ptx-kernel.ts";

const seed = 77;

function bytesOf(count: number, start = seed): Uint8Array {
  const random = new Random(start);
  return Uint8Array.from({ length: count }, () => random.below(256));
}

function words(bytes: Uint8Array | undefined): Uint32Array {
  return new Uint32Array((bytes ?? new Uint8Array()).slice().buffer);
}

const leader = "setp.ne.u32 %p0, %thread, 0; @%p0 bra $others;";

describe("bulk copies", () => {
  const load = [
    initBarriers([{ at: 0, count: 1 }]),
    leader,
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], 512;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem+128], [%x+16], 512, [%smem];",
    "$others:",
    awaitBarrier(0, 0),
    dumpShared("out", 128, 512, 32),
  ].join("\n");
  const x = bytesOf(1024);

  test("a load brings bytes to shared memory, and its barrier counts them", () => {
    const { arrays, codes } = runPtx({ body: load, arrays: { x, out: 512 } });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(x.slice(16, 528));
  });

  test("whoever does not wait reads what was there before", () => {
    const hasty = load.replace(/\$wait\d+:.*/, "");
    const { codes } = runPtx({ body: hasty, arrays: { x, out: 512 } });
    expect(codes).toContain("TW8014");
  });

  test("sizes are multiples of 16 (TW8052)", () => {
    const odd = load.replaceAll("512, [%smem]", "%r3, [%smem]").replace("$others:", "$others:");
    const body = odd.replace(leader, `mov.u32 %r3, 24; ${leader}`);
    expect(runPtx({ body, arrays: { x, out: 512 } }).codes).toContain("TW8052");
  });

  const store = (wait: string): string =>
    [
      fillShared("x", 0, 1024, 32),
      "fence.proxy.async.shared::cta; bar.sync 0;",
      leader,
      "cp.async.bulk.global.shared::cta.bulk_group [%out], [%smem+256], 256;",
      "cp.async.bulk.commit_group;",
      wait,
      "$others:",
    ].join("\n");

  test("a store brings bytes to global memory", () => {
    const body = store("cp.async.bulk.wait_group 0;");
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 256 } });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(x.slice(256, 512));
  });

  test("waiting for the reads lets shared memory be used again", () => {
    const again = (wait: string): string =>
      store(`${wait} st.shared.b32 [%smem+256], 7; cp.async.bulk.wait_group 0;`);
    const clean = runPtx({
      body: again("cp.async.bulk.wait_group.read 0;"),
      arrays: { x, out: 256 },
    });
    expect(clean.codes).toEqual([]);
    expect(clean.arrays["out"]).toEqual(x.slice(256, 512));
    const hasty = runPtx({ body: again(""), arrays: { x, out: 256 } });
    expect(hasty.codes).toContain("TW8014");
  });

  test("a reduction adds to global memory", () => {
    const body = store("cp.async.bulk.wait_group 0;").replace(
      "cp.async.bulk.global.shared::cta.bulk_group",
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
    );
    const out = bytesOf(256, 3);
    const { arrays, codes } = runPtx({ body, arrays: { x, out } });
    expect(codes).toEqual([]);
    const added = words(x.slice(256, 512));
    expect(words(arrays["out"])).toEqual(words(out).map((old, index) => old + (added[index] ?? 0)));
  });
});

describe("copies between the blocks of a cluster", () => {
  const meet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

  test("a block copies to the shared memory of another, whose barrier counts", () => {
    const body = [
      initBarriers([{ at: 0, count: 1 }]),
      meet,
      fillShared("x", 256, 256, 32),
      "fence.proxy.async.shared::cta; bar.sync 0;",
      leader,
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], 256;",
      "xor.b32 %r1, %rank, 1; mapa.shared::cluster.u32 %r2, %smem, %r1;",
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r2+1024], [%smem+256], 256, [%r2];",
      "$others:",
      awaitBarrier(0, 0),
      "mul.wide.u32 %d1, %rank, 256; add.u64 %out, %out, %d1;",
      dumpShared("out", 1024, 256, 32),
      meet,
    ].join("\n");
    const x = bytesOf(256);
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 512 }, blocks: 2, cluster: 2 });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(Uint8Array.from([...x, ...x]));
  });

  const multicast = (mask: number, expecting: string): string =>
    [
      initBarriers([{ at: 0, count: 1 }]),
      meet,
      leader,
      `setp.ge.u32 %p2, %rank, ${expecting}; @%p2 bra $others;`,
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], 256;",
      "setp.ne.u32 %p1, %rank, 0; @%p1 bra $others;",
      `mov.u16 %h1, ${mask};`,
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%smem+128], [%x], 256, [%smem], %h1;",
      "$others:",
      `setp.ge.u32 %p3, %rank, ${expecting}; @%p3 bra $gone;`,
      awaitBarrier(0, 0),
      "mul.wide.u32 %d1, %rank, 256; add.u64 %out, %out, %d1;",
      dumpShared("out", 128, 256, 32),
      "$gone:",
      meet,
    ].join("\n");

  test("a multicast brings the same bytes to every block of its mask", () => {
    const x = bytesOf(256);
    const arrays = { x, out: new Uint8Array(1024) };
    const run = runPtx({ body: multicast(7, "3"), arrays, blocks: 4, cluster: 4 });
    expect(run.codes).toEqual([]);
    expect(run.arrays["out"]).toEqual(Uint8Array.from([...x, ...x, ...x, ...new Uint8Array(256)]));
  });

  test("a mask beyond the cluster (TW8054)", () => {
    const arrays = { x: bytesOf(256), out: 1024 };
    const { codes } = runPtx({ body: multicast(0x13, "4"), arrays, blocks: 4, cluster: 4 });
    expect(codes).toContain("TW8054");
  });
});

describe("cp.async", () => {
  const address =
    "shl.b32 %r1, %thread, 4; add.u32 %r2, %smem, %r1; cvt.u64.u32 %d1, %r1; add.u64 %d1, %d1, %x;";

  test("copies 4, 8 and 16 bytes, and fills a short source with zeros", () => {
    const body = [
      address,
      "and.b32 %r3, %thread, 15; setp.gt.u32 %p1, %thread, 15;",
      "cp.async.cg.shared.global [%r2], [%d1], 16, %r3;",
      "cp.async.ca.shared.global [%r2+512], [%d1], 8;",
      "cp.async.ca.shared.global [%r2+520], [%d1+4], 4, %p1;",
      "cp.async.ca.shared.global [%r2+524], [%d1+8], 4;",
      "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;",
      dumpShared("out", 0, 1024, 32),
    ].join("\n");
    const x = bytesOf(512);
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 1024 } });
    expect(codes).toEqual([]);
    const expected = new Uint8Array(1024);
    for (let lane = 0; lane < 32; lane++) {
      const from = 16 * lane;
      expected.set(x.subarray(from, from + (lane & 15)), from);
      expected.set(x.subarray(from, from + 8), 512 + from);
      if (lane <= 15) expected.set(x.subarray(from + 4, from + 8), 512 + from + 8);
      expected.set(x.subarray(from + 8, from + 12), 512 + from + 12);
    }
    expect(arrays["out"]).toEqual(expected);
  });

  const grouped = (wait: string): string =>
    [
      address,
      "cp.async.cg.shared.global [%r2], [%d1], 16; cp.async.commit_group;",
      "cp.async.cg.shared.global [%r2+512], [%d1+512], 16; cp.async.commit_group;",
      wait,
      "ld.shared.b32 %r5, [%r2]; st.global.b32 [%d1+1024], %r5; cp.async.wait_all;",
    ].join("\n");
  const grouping = (wait: string): readonly string[] =>
    runPtx({ body: grouped(wait), arrays: { x: bytesOf(1536) } }).codes;

  test("a wait for all groups but the newest covers the older ones", () => {
    expect(grouping("cp.async.wait_group 1;")).toEqual([]);
    expect(grouping("cp.async.wait_group 2;")).toContain("TW8014");
    expect(grouping("")).toContain("TW8014");
  });

  test("lanes can arrive on an mbarrier when their copies are done", () => {
    const body = [
      initBarriers([{ at: 0, count: 33 }]),
      address,
      "cp.async.cg.shared.global [%r2+128], [%d1], 16;",
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%smem];",
      leader,
      "mbarrier.arrive.shared::cta.b64 _, [%smem];",
      "$others:",
      awaitBarrier(0, 0),
      dumpShared("out", 128, 512, 32),
    ].join("\n");
    const x = bytesOf(512);
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 512 } });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(x);
  });

  test("without .noinc such an arrival is one that the barrier did not count on", () => {
    const body = [
      initBarriers([{ at: 0, count: 1 }]),
      address,
      "cp.async.cg.shared.global [%r2+128], [%d1], 16;",
      "cp.async.mbarrier.arrive.shared::cta.b64 [%smem];",
      "bar.sync 0;",
      leader,
      "mbarrier.arrive.shared::cta.b64 _, [%smem];",
      "$others:",
      awaitBarrier(0, 0),
      dumpShared("out", 128, 512, 32),
    ].join("\n");
    const x = bytesOf(512);
    const { arrays, codes } = runPtx({ body, arrays: { x, out: 512 } });
    expect(codes).toEqual([]);
    expect(arrays["out"]).toEqual(x);
  });
});

describe("arrivals for copies that nobody waits for by groups", () => {
  /** Each turn copies four bytes a thread and waits at the barrier that the copies arrive at. */
  const turns = (count: number): string => `
    setp.ne.u32 %p0, %thread, 0; @%p0 bra $begin; mbarrier.init.shared.b64 [%smem], 32;
    $begin: bar.sync 0; shl.b32 %r0, %thread, 2; add.u32 %r1, %smem, %r0; cvt.u64.u32 %d0, %r0;
    add.s64 %d0, %in, %d0; mov.b32 %r2, 0; mov.b32 %r5, 0;
    $turn: cp.async.ca.shared.global [%r1+64], [%d0], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%smem]; and.b32 %r3, %r2, 1;
    $wait: mbarrier.try_wait.parity.shared.b64 %p1, [%smem], %r3; @!%p1 bra $wait;
    ld.shared.b32 %r4, [%r1+64]; add.u32 %r5, %r5, %r4; bar.sync 0;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, ${count}; @%p2 bra $turn;
    cvt.u64.u32 %d1, %r0; add.s64 %d1, %out, %d1; st.global.b32 [%d1], %r5;`;
  const run = (count: number, order: number) =>
    runPtx({
      body: turns(count),
      arrays: {
        in: new Uint8Array(Uint32Array.from({ length: 32 }, (_, lane) => lane).buffer),
        out: new Uint8Array(128),
      },
      seed: order,
    });

  test.each([0, 1, 2])("tell of all copies before them, seed %i", (order) => {
    const { codes, arrays } = run(9, order);
    expect(codes).toEqual([]);
    const sums = [...words(arrays.out)];
    expect(sums).toEqual(Array.from({ length: 32 }, (_, lane) => 9 * lane));
  });

  test.each([0, 1, 2])("tell it to every barrier they arrive at, seed %i", (order) => {
    const { codes } = runPtx({
      body: `setp.ne.u32 %p0, %thread, 0; @%p0 bra $begin;
        mbarrier.init.shared.b64 [%smem], 32; mbarrier.init.shared.b64 [%smem+8], 32;
        $begin: bar.sync 0; setp.ge.u32 %p1, %thread, 32; @%p1 bra $read;
        shl.b32 %r0, %thread, 2; add.u32 %r1, %smem, %r0; cvt.u64.u32 %d0, %r0; add.s64 %d0, %in, %d0;
        cp.async.ca.shared.global [%r1+64], [%d0], 4;
        cp.async.mbarrier.arrive.noinc.shared.b64 [%smem];
        cp.async.mbarrier.arrive.noinc.shared.b64 [%smem+8]; bra $end;
        $read: mov.b32 %r3, 0; sub.u32 %r0, %thread, 32; shl.b32 %r0, %r0, 2;
        $wait: mbarrier.try_wait.parity.shared.b64 %p2, [%smem+8], %r3; @!%p2 bra $wait;
        add.u32 %r1, %smem, %r0; ld.shared.b32 %r4, [%r1+64]; cvt.u64.u32 %d1, %r0;
        add.s64 %d1, %out, %d1; st.global.b32 [%d1], %r4; $end:`,
      arrays: { in: new Uint8Array(128), out: new Uint8Array(128) },
      threads: 64,
      seed: order,
    });
    expect(codes).toEqual([]);
  });
});
