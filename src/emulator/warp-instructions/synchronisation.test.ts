import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const seeds = [0, 1, 2, 3];

describe("barriers of a block", () => {
  test.each(seeds)("bar.sync orders warps, seed %i", (seed) => {
    const body = `.shared .align 4 .b8 tile[512]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile;
      add.s32 %r3, %r2, %r1; mul.lo.s32 %r4, %r0, %r0; st.shared.b32 [%r3], %r4; bar.sync 0;
      sub.s32 %r5, 127, %r0; shl.b32 %r5, %r5, 2; add.s32 %r5, %r5, %r2; ld.shared.b32 %r6, [%r5];
      mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8; st.global.b32 [%d8], %r6; ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [new Uint32Array(128)],
      threads: 128,
      options: { seed },
    });
    expect(result.findings).toEqual([]);
    expect([...(arrays[0] ?? [])]).toEqual(
      Array.from({ length: 128 }, (_, lane) => (127 - lane) ** 2),
    );
  });

  test("bar.red counts, and asks whether all or any hold", () => {
    const body = `mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 40; bar.red.popc.u32 %r1, 0, %p0;
      bar.red.and.pred %p1, 0, %p0; bar.red.or.pred %p2, 0, %p0;
      selp.b32 %r2, 100, 0, %p1; selp.b32 %r3, 1000, 0, %p2; add.s32 %r1, %r1, %r2; add.s32 %r1, %r1, %r3;
      setp.eq.u32 %p3, %r0, 77; @%p3 st.global.b32 [%d0], %r1; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(1)], threads: 96 });
    expect(arrays[0]?.[0]).toBe(1040);
  });

  test("warps that have exited are not waited for", () => {
    const body = `mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; @%p0 bra $end; bar.sync 0;
      red.global.add.u32 [%d0], 1; $end: ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(1)], threads: 128 });
    expect(arrays[0]?.[0]).toBe(32);
  });

  test.each(seeds)("bar.arrive lets a producer go on, seed %i", (seed) => {
    const body = `.shared .align 4 .b32 value; mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, 32; @%p0 bra $consumer;
      mov.b32 %r1, 42; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.b32 [value], %r1; bar.arrive 3, 64; ret;
      $consumer: bar.sync 3, 64; ld.shared.b32 %r2, [value]; red.global.add.u32 [%d0], %r2; ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [new Uint32Array(1)],
      threads: 64,
      options: { seed },
    });
    expect(result.findings).toEqual([]);
    expect(arrays[0]?.[0]).toBe(32 * 42);
  });

  test("barrier.sync without .aligned takes lanes of a warp one by one", () => {
    const body = `mov.u32 %r0, %tid.x; setp.lt.u32 %p0, %r0, 7; @%p0 bra $low; barrier.sync 1, 64; bra $end;
      $low: barrier.sync 1, 64; $end: red.global.add.u32 [%d0], 1; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(1)], threads: 64 });
    expect(arrays[0]?.[0]).toBe(64);
  });
});

describe("blocks", () => {
  test.each([0, 1, 2, 3, 4, 5])("signal by counters that others count up, seed %i", (seed) => {
    const body = `mov.u32 %r0, %ctaid.x; mul.wide.u32 %d2, %r0, 4; add.s64 %d3, %d1, %d2;
      st.global.b32 [%d3], %r0; red.release.gpu.global.add.u32 [%d0], 1;
      setp.ne.u32 %p0, %r0, 3; @%p0 bra $end;
      $wait: ld.acquire.gpu.global.b32 %r1, [%d0]; setp.lt.u32 %p1, %r1, 4; @%p1 bra $wait;
      ld.global.b32 %r2, [%d1]; ld.global.b32 %r3, [%d1+4]; ld.global.b32 %r4, [%d1+8];
      add.s32 %r2, %r2, %r3; add.s32 %r2, %r2, %r4; st.global.b32 [%d1+16], %r2;
      $end: ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [new Uint32Array(1), new Uint32Array(5)],
      blocks: 4,
      threads: 1,
      options: { seed },
    });
    expect(result.findings).toEqual([]);
    expect(arrays[1]?.[4]).toBe(3);
  });

  test.each([0, 1, 2, 3])("signal by a store that releases, seed %i", (seed) => {
    const body = `mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra $reader;
      mov.b32 %r1, 7; st.global.b32 [%d0], %r1; mov.b32 %r2, 1; st.release.gpu.global.b32 [%d0+4], %r2; ret;
      $reader: ld.acquire.gpu.global.b32 %r3, [%d0+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra $reader;
      ld.global.b32 %r4, [%d0]; st.global.b32 [%d0+8], %r4; ret;`;
    const arrays = [new Uint32Array(3)];
    const run = runBlocks({ body, arrays, blocks: 2, threads: 1, options: { seed } });
    expect(run.result.findings).toEqual([]);
    expect([...(run.arrays[0] ?? [])]).toEqual([7, 1, 7]);
  });

  test("wait for each other through memory", () => {
    const body = `mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra $other;
      $wait: ld.acquire.gpu.global.b32 %r1, [%d0]; setp.lt.u32 %p1, %r1, 9; @%p1 bra $wait;
      ld.global.b32 %r2, [%d1]; add.s32 %r2, %r2, 1; st.global.b32 [%d1], %r2; ret;
      $other: setp.eq.u32 %p2, %r0, 9; mov.b32 %r3, 55; @%p2 st.global.b32 [%d1], %r3;
      atom.release.gpu.global.add.u32 %r4, [%d0], 1; ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [new Uint32Array(1), new Uint32Array(1)],
      blocks: 10,
      threads: 1,
    });
    expect(result.findings).toEqual([]);
    expect(arrays[1]?.[0]).toBe(56);
  });

  test("reach each other's shared memory within a cluster", () => {
    const body = `.shared .align 4 .b32 own; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, own;
      add.s32 %r2, %r0, 10; st.shared.b32 [own], %r2;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
      xor.b32 %r3, %r0, 1; mapa.shared::cluster.u32 %r4, %r1, %r3; ld.shared::cluster.b32 %r5, [%r4];
      mov.u32 %r6, %ctaid.x; mul.wide.u32 %d8, %r6, 4; add.s64 %d8, %d0, %d8; st.global.b32 [%d8], %r5;
      cvt.u64.u32 %d9, %r4; cvta.shared.u64 %d9, %d9; getctarank.u64 %r7, %d9; st.global.b32 [%d8+16], %r7;
      barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;`;
    const { arrays } = runBlocks({
      body,
      arrays: [new Uint32Array(8)],
      blocks: 4,
      cluster: 2,
      threads: 1,
    });
    expect([...(arrays[0] ?? [])]).toEqual([11, 10, 11, 10, 1, 0, 1, 0]);
  });
});
