/** Lanes of one warp that touch the same memory by different instructions need a meeting in between. */
import { describe, expect, test } from "vitest";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seeds = [0, 1, 2, 3];

/** Each lane has a word of its own, and one of the lane next to it. */
const words = `shl.b32 %r0, %thread, 2; add.u32 %r0, %smem, %r0; xor.b32 %r1, %thread, 1; shl.b32 %r1, %r1, 2;
  add.u32 %r1, %smem, %r1; mul.wide.u32 %d0, %thread, 4; add.u64 %d0, %x, %d0; xor.b64 %d1, %d0, 4;`;

function codes(body: string, seed = 0): readonly string[] {
  const arrays = { x: new Uint8Array(1024) };
  return runPtx({ body: `${words} ${body}`, arrays, seed }).codes;
}

const own = "st.shared.b32 [%r0], %thread;";
const next = "ld.shared.b32 %r2, [%r1];";

describe("without a meeting it is a race", () => {
  test.each([
    ["to read what another lane wrote", `${own} ${next}`],
    ["to write what another lane has read", `${own} bar.warp.sync -1; ${next} ${own}`],
    ["to write what another lane wrote", `${own} st.shared.b32 [%r1], %thread;`],
    ["in global memory", "st.global.b32 [%d0], %thread; ld.global.b32 %r2, [%d1];"],
    ["behind a shuffle", `${own} shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; ${next}`],
    ["behind a vote", `setp.eq.u32 %p1, %r0, 0; ${own} vote.sync.any.pred %p0, %p1, -1; ${next}`],
    ["behind a fence", `${own} fence.acq_rel.cta; ${next}`],
    [
      "of one byte of a word",
      "add.u32 %r4, %r0, 1; st.shared.b8 [%r4], 7; ld.shared.b8 %h0, [%r1+1];",
    ],
    [
      "of a vector",
      "and.b32 %r4, %r0, -8; setp.eq.u32 %p0, %r4, %r0; @%p0 st.shared.v2.b32 [%r4], {%r0, %r1}; @!%p0 ld.shared.b32 %r3, [%r0];",
    ],
    [
      "with an atomic of another lane",
      `${own} bar.warp.sync -1; red.shared.add.u32 [%r1], 1; ld.shared.b32 %r2, [%r0];`,
    ],
    [
      "with what a lane wrote in a branch",
      `setp.ne.u32 %p0, %thread, 0; @%p0 bra $others; st.shared.b32 [%smem], 5; $others: ld.shared.b32 %r2, [%smem];`,
    ],
  ])("%s", (_, body) => {
    for (const seed of seeds) expect(codes(body, seed)).toEqual(["TW8023"]);
  });
});

describe("matrices and copies of what other lanes wrote", () => {
  const bulk = `setp.ne.u32 %p0, %thread, 3; @%p0 bra $end;
    cp.async.bulk.global.shared::cta.bulk_group [%x], [%smem], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end:`;
  const matrix = `and.b32 %r4, %thread, 7; shl.b32 %r4, %r4, 4; add.u32 %r4, %smem, %r4;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r4];`;
  const ordinary = "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all;";
  const store = `${own} fence.proxy.async.shared::cta;`;

  test.each([
    ["a bulk store", bulk],
    ["ldmatrix", matrix],
    ["cp.async to the place", ordinary],
  ])("%s", (_, instruction) => {
    expect(codes(`${store} ${instruction}`)).toContain("TW8023");
    expect(codes(`${store} bar.warp.sync -1; ${instruction}`)).toEqual([]);
  });
});

describe("it is none", () => {
  const barrier =
    "setp.ne.u32 %p31, %thread, 0; @!%p31 mbarrier.init.shared::cta.b64 [%smem+512], 32; bar.sync 0;";
  test.each([
    ["behind bar.warp.sync", `${own} bar.warp.sync -1; ${next} bar.warp.sync -1; ${own}`],
    ["behind a barrier of the block", `${own} bar.sync 0; ${next} barrier.sync 0; ${own}`],
    [
      "behind a barrier of the cluster",
      `${own} barrier.cluster.arrive; barrier.cluster.wait; ${next}`,
    ],
    [
      "behind an mbarrier where all arrive",
      `${barrier} ${own} mbarrier.arrive.shared::cta.b64 _, [%smem+512];
       $wait: mbarrier.try_wait.parity.shared::cta.b64 %p0, [%smem+512], 0; @!%p0 bra $wait; ${next}`,
    ],
    [
      "behind a flag with release and acquire",
      `st.relaxed.cta.shared.b32 [%smem+260], 0; bar.warp.sync -1; setp.ne.u32 %p0, %thread, 3; @%p0 bra $reader; st.shared.b32 [%smem+256], 9; st.release.cta.shared.b32 [%smem+260], 1;
       bra $end; $reader: setp.ne.u32 %p1, %thread, 5; @%p1 bra $end;
       $again: ld.acquire.cta.shared.b32 %r2, [%smem+260]; setp.ne.u32 %p2, %r2, 1; @%p2 bra $again;
       ld.shared.b32 %r3, [%smem+256]; $end:`,
    ],
    [
      "within one lane",
      `${own} ld.shared.b32 %r2, [%r0]; st.shared.b32 [%r0], %r2; red.shared.add.u32 [%r0], 1; ld.shared.b32 %r2, [%r0];`,
    ],
    [
      "where each lane copies to what it wrote itself",
      `${own} cp.async.ca.shared.global [%r0], [%d0], 4; cp.async.wait_all; ld.shared.b32 %r2, [%r0];`,
    ],
    [
      "between reads",
      `${own} bar.warp.sync -1; ${next} ld.shared.b32 %r2, [%r0]; ld.shared.b32 %r2, [%smem];`,
    ],
    [
      "between bytes of one word",
      "add.u32 %r4, %smem, %thread; st.shared.b8 [%r4], 1; ld.shared.b8 %h0, [%r4];",
    ],
    [
      "between atomics",
      "st.shared.b32 [%r0], 0; bar.warp.sync -1; red.shared.add.u32 [%smem], 1; atom.shared.add.u32 %r3, [%smem], 1;",
    ],
    [
      "between volatile accesses",
      "st.volatile.shared.b32 [%r0], %thread; ld.volatile.shared.b32 %r2, [%r1];",
    ],
    [
      "where lanes store the same value by one instruction",
      "st.shared.b32 [%smem], 4; bar.warp.sync -1; ld.shared.b32 %r2, [%smem];",
    ],
  ])("%s", (_, body) => {
    for (const seed of seeds) expect(codes(body, seed)).toEqual([]);
  });
});

test("the report names both lanes, both instructions and the place", () => {
  const { errors } = runPtx({ body: `${words} ${own} ${next}`, arrays: { x: 1024 } });
  expect(errors[0]?.message).toContain(
    "ld.shared.b32 of lane 0 of warp 0 of block 0 is not ordered with st.shared.b32 of lane 1",
  );
  expect(errors[0]?.found).toBe("both touch byte 4 of memory");
});
