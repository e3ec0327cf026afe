/** Stores and reductions into the shared memory of the next block of a cluster. */
import { describe, expect, test } from "vitest";
import { awaitBarrier, initBarriers, runPtx } from "../../../test/support/ptx-kernel.ts";

const threads = 32;

/** What each lane's 16 bytes hold in both blocks, behind an instruction of every lane of the other one. */
function exchanged(
  instruction: string,
  bytes: number,
  expected = bytes,
): { readonly codes: readonly string[]; readonly words: readonly (readonly number[])[] } {
  const { arrays, codes } = runPtx({
    body: [
      initBarriers([{ at: 0, count: 1 }]),
      "xor.b32 %r0, %rank, 1; mapa.shared::cluster.u32 %r1, %smem, %r0; shl.b32 %r2, %thread, 4;",
      "add.u32 %r3, %r1, %r2; add.u32 %r4, %smem, %r2; mov.b32 %r5, 100; mov.b32 %r6, 7;",
      "st.shared.v4.b32 [%r4+1024], {%r5, %r6, %r5, %r6};",
      `setp.eq.u32 %p0, %thread, 0; @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], ${threads * expected};`,
      "barrier.cluster.arrive; barrier.cluster.wait;",
      "mad.lo.u32 %r10, %rank, 1000, %thread; add.u32 %r11, %r10, 1; add.u32 %r12, %r10, 2; add.u32 %r13, %r10, 3;",
      "mov.b64 %d0, {%r10, %r11}; mov.b64 %d1, {%r12, %r13};",
      instruction,
      awaitBarrier(0, 0),
      "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r4+1024];",
      "mad.lo.u32 %r24, %rank, 32, %thread; mul.wide.u32 %d2, %r24, 16; add.u64 %d2, %d2, %out;",
      "st.global.v4.b32 [%d2], {%r20, %r21, %r22, %r23};",
      "barrier.cluster.arrive; barrier.cluster.wait;",
    ].join("\n"),
    arrays: { out: 2 * threads * 16 },
    threads,
    blocks: 2,
    cluster: 2,
  });
  const found = new Uint32Array((arrays.out ?? new Uint8Array()).slice().buffer);
  const words = Array.from({ length: 2 * threads }, (_, lane) => [
    ...found.subarray(4 * lane, 4 * lane + 4),
  ]);
  return { codes, words };
}

/** The first value of the lane that wrote to this one. */
function sent(lane: number): number {
  return (lane < threads ? 1000 : 0) + (lane % threads);
}

const bulk = "mbarrier::complete_tx::bytes";

describe("st.async", () => {
  test.each([
    ["b32 [%r3+1024], %r10", 4],
    ["v2.u32 [%r3+1024], {%r10, %r11}", 8],
    ["v4.f32 [%r3+1024], {%r10, %r11, %r12, %r13}", 16],
    ["u64 [%r3+1024], %d0", 8],
    ["v2.b64 [%r3+1024], {%d0, %d1}", 16],
  ])("%s", (operands, bytes) => {
    const { codes, words } = exchanged(
      `st.async.shared::cluster.${bulk}.${operands}, [%r1];`,
      bytes,
    );
    expect(codes).toEqual([]);
    const expected = words.map((_, lane) =>
      [100, 7, 100, 7].map((old, at) => (4 * at < bytes ? sent(lane) + at : old)),
    );
    expect(words).toEqual(expected);
  });

  test("a barrier that expects fewer bytes lets go too early", () => {
    const text = `st.async.shared::cluster.${bulk}.b32 [%r3+1024], %r10, [%r1];`;
    const { codes } = exchanged(text, 4, 2);
    expect(codes.length).toBeGreaterThan(0);
  });
});

describe("red.async", () => {
  test.each<[string, (value: number) => number]>([
    ["add.u32", (value) => 100 + value],
    ["max.s32", (value) => Math.max(100, value)],
    ["min.u32", (value) => Math.min(100, value)],
    ["inc.u32", (value) => (100 >= value ? 0 : 101)],
    ["dec.u32", (value) => (100 > value ? value : 99)],
    ["xor.b32", (value) => 100 ^ value],
  ])("%s", (operation, reference) => {
    const text = `red.async.relaxed.cluster.shared::cluster.${bulk}.${operation} [%r3+1024], %r10, [%r1];`;
    const { codes, words } = exchanged(text, 4);
    expect(codes).toEqual([]);
    expect(words).toEqual(words.map((_, lane) => [reference(sent(lane)), 7, 100, 7]));
  });

  test("of a type that the instruction does not have is refused", () => {
    const text = `red.async.relaxed.cluster.shared::cluster.${bulk}.min.f32 [%r3+1024], %r10, [%r1];`;
    expect(exchanged(text, 4).codes).toEqual(["TW8001"]);
  });
});
