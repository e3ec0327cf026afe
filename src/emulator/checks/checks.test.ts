/** What orders accesses and what does not: ends of blocks, overwritten flags, reads that are done and writes that are not. */
import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seeds = [0, 1, 2, 3];

function codes(launch: Parameters<typeof runBlocks>[0], seed: number): readonly string[] {
  const { result } = runBlocks({ ...launch, options: { seed } });
  return result.findings.map(({ code }) => code);
}

describe("the end of a block", () => {
  const reading = (end: string): string => `
    .shared .align 4 .b32 own; mov.u32 %r0, %cluster_ctarank; st.shared.b32 [own], %r0;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mov.u32 %r1, own; xor.b32 %r2, %r0, 1; mapa.shared::cluster.u32 %r3, %r1, %r2;
    ld.shared::cluster.b32 %r4, [%r3]; ${end} ret;`;
  const arrays = [new Uint32Array(1)];
  const shape = { arrays, blocks: 2, cluster: 2 };

  test.each(seeds)("is not ordered with others that read its memory, seed %i", (seed) => {
    const later = `mov.b32 %r5, 0; $spin: add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 3000;
      @%p0 bra $spin;`;
    expect(codes({ ...shape, body: reading(later) }, seed)).toContain("TW8014");
  });

  test.each(seeds)("may come before the access, seed %i", (seed) => {
    expect(() => codes({ ...shape, body: reading("") }, seed)).toThrow("TW8010");
  });

  test.each(seeds)("is ordered by a barrier of the cluster, seed %i", (seed) => {
    const end = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    expect(codes({ ...shape, body: reading(end) }, seed)).toEqual([]);
  });
});

describe("a flag", () => {
  /** Warp 0 writes data and releases 1; warp 1 sees 1 and sets 2; warp 2 acquires 2 and reads the data. */
  const relayed = (update: string): string => `
    mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; setp.ne.u32 %p0, %r2, 0; @%p0 exit;
    setp.eq.u32 %p1, %r1, 1; @%p1 bra $second; setp.eq.u32 %p1, %r1, 2; @%p1 bra $third;
    mov.b32 %r3, 7; st.global.b32 [%d0], %r3; mov.b32 %r4, 1; st.release.gpu.global.b32 [%d0+4], %r4; exit;
    $second: ld.relaxed.gpu.global.b32 %r5, [%d0+4]; setp.ne.u32 %p2, %r5, 1; @%p2 bra $second;
    ${update} exit;
    $third: ld.relaxed.gpu.global.b32 %r6, [%d0+4]; setp.ne.u32 %p3, %r6, 2; @%p3 bra $third;
    ld.acquire.gpu.global.b32 %r6, [%d0+4]; setp.ne.u32 %p3, %r6, 2; @%p3 bra $third;
    ld.global.b32 %r7, [%d0]; st.global.b32 [%d0+8], %r7; ret;`;
  const launch = { arrays: [new Uint32Array(4)], threads: 96 };

  test.each(seeds)(
    "that a plain store overwrites no longer tells what it told, seed %i",
    (seed) => {
      const store = "mov.b32 %r5, 2; st.relaxed.gpu.global.b32 [%d0+4], %r5;";
      expect(codes({ ...launch, body: relayed(store) }, seed)).toContain("TW8014");
    },
  );

  test.each(seeds)("that an atomic changes still tells it, seed %i", (seed) => {
    const add = "red.relaxed.gpu.global.add.u32 [%d0+4], 1;";
    expect(codes({ ...launch, body: relayed(add) }, seed)).toEqual([]);
  });
});

test("bytes that lie 65536 apart are not the same", () => {
  const storing = (distance: number): readonly string[] =>
    codes(
      {
        body: `mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r0, 0; @%p0 exit;
          mul.wide.u32 %d1, %r1, ${distance}; add.s64 %d1, %d0, %d1; st.global.b32 [%d1+8], %r1; ret;`,
        arrays: [new Uint32Array(3 * 65536)],
        blocks: 3,
      },
      1,
    );
  expect(storing(65536)).toEqual([]);
  expect(storing(4)).toEqual([]);
  expect(storing(0)).toContain("TW8014");
});

describe("a bulk store whose source has been read", () => {
  const stored = (wait: string): readonly string[] =>
    runPtx({
      body: `shl.b32 %r0, %thread, 2; add.u32 %r0, %smem, %r0; st.shared.b32 [%r0], %thread;
        fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;
        cp.async.bulk.global.shared::cta.bulk_group [%out], [%smem], 128;
        cp.async.bulk.commit_group; ${wait}
        st.shared.b32 [%smem], %thread; $end:`,
      arrays: { out: new Uint8Array(128) },
    }).codes;

  test("leaves its source to others", () => {
    expect(stored("cp.async.bulk.wait_group.read 0;")).toEqual([]);
    expect(stored("")).not.toEqual([]);
  });

  test("has not yet written", () => {
    const { codes: found } = runPtx({
      body: `shl.b32 %r0, %thread, 2; add.u32 %r0, %smem, %r0; st.shared.b32 [%r0], %thread;
        fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;
        cp.async.bulk.global.shared::cta.bulk_group [%out], [%smem], 128;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
        ld.global.b32 %r1, [%out]; st.shared.b32 [%smem+512], %r1; $end:`,
      arrays: { out: new Uint8Array(128) },
    });
    expect(found.some((code) => code === "TW8014" || code === "TW8015")).toBe(true);
  });
});

describe("lanes of a warp that store to one place by one instruction", () => {
  const lane = "mov.u32 %r0, %tid.x;";
  const arrays = [new Uint32Array(64)];
  const found = (body: string): readonly string[] =>
    codes({ arrays, body: `${lane} ${body} ret;` }, 0);

  test.each([
    ["global memory", "st.global.u32 [%d0], %r0;"],
    ["a generic address", "st.u32 [%d0+8], %r0;"],
    ["shared memory", ".shared .align 4 .b32 cell[4]; st.shared.u32 [cell], %r0;"],
    [
      "pairs of lanes",
      "shr.u32 %r1, %r0, 1; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r0;",
    ],
    [
      "places that fall with the lanes, two of them the same",
      "sub.u32 %r1, 31, %r0; max.u32 %r1, %r1, 1; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r0;",
    ],
  ])("different values, in %s", (_, body) => {
    expect(found(body)).toEqual(["TW8019"]);
  });

  test.each([
    ["the same value", "mov.u32 %r1, 7; st.global.u32 [%d0], %r1;"],
    ["one lane", "setp.eq.u32 %p0, %r0, 3; @%p0 st.global.u32 [%d0], %r0;"],
    ["an atomic", "red.global.add.u32 [%d0], %r0;"],
    ["a store that may meet others", "st.relaxed.gpu.global.u32 [%d0], %r0;"],
    [
      "lanes in another order",
      "sub.u32 %r1, 31, %r0; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r0;",
    ],
  ])("%s is no mistake", (_, body) => {
    expect(found(body)).toEqual([]);
  });
});

describe("a reduction of bits", () => {
  /** Warp 0 updates a word while warp 1 touches its second byte. */
  const beside = (update: string, touch: string): readonly string[] => {
    const found = [0, 1, 2].flatMap((seed) =>
      codes(
        {
          body: `mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 32;
            @%p0 ${update} @%p1 ${touch} ret;`,
          arrays: [new Uint32Array(2)],
          threads: 64,
        },
        seed,
      ),
    );
    return [...new Set(found)];
  };
  const touches = ["st.global.b8 [%d0+1], %r0;", "ld.global.b8 %r1, [%d0+1];"];

  test.each([
    "red.global.and.b32 [%d0], 0xfffffff0;",
    "red.global.or.b32 [%d0], 0x00030005;",
    "red.global.xor.b32 [%d0], 0xff0000ff;",
  ])("does not meet those who touch bytes that it leaves: %s", (update) => {
    for (const touch of touches) expect(beside(update, touch)).toEqual([]);
  });

  test.each([
    ["that it changes", "red.global.and.b32 [%d0], 0xffff0fff;"],
    ["that it changes", "red.global.or.b32 [%d0], 0x100;"],
    ["that it reads", "atom.global.or.b32 %r2, [%d0], 1;"],
    ["that it may carry into", "red.global.add.u32 [%d0], 1;"],
  ])("meets those who touch bytes %s: %s", (_, update) => {
    for (const touch of touches) expect(beside(update, touch)).toContain("TW8014");
  });

  test("is held against other lanes of its warp in the same way", () => {
    const lanes = (mask: string): readonly string[] =>
      codes(
        {
          body: `mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1;
            @%p0 red.global.and.b32 [%d0], ${mask}; @%p1 ld.global.b8 %r1, [%d0+1]; ret;`,
          arrays: [new Uint32Array(2)],
        },
        0,
      );
    expect(lanes("0xfffffff0")).toEqual([]);
    expect(lanes("0xfffff0ff")).toEqual(["TW8023"]);
  });
});
