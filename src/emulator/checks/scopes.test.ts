/** How far fences and atomics reach, and what warps hand on where they meet. */
import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const seeds = [0, 1, 2, 3];

type BlockLaunch = Parameters<typeof runBlocks>[0];

function codes(launch: BlockLaunch, seed: number): readonly string[] {
  const { result } = runBlocks({ ...launch, options: { seed } });
  return [...new Set(result.findings.map(({ code }) => code))];
}

/** One lane of each of two warps runs: %p1 holds for the one that writes. */
const oneLaneEach = `mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; and.b32 %r2, %r0, 31;
  setp.ne.u32 %p0, %r2, 0; @%p0 exit; shr.u32 %r3, %r0, 5; add.s32 %r3, %r3, %r1;
  setp.eq.u32 %p1, %r3, 1;`;
const twoBlocks = { blocks: 2, threads: 32 };
const twoWarps = { blocks: 1, threads: 64 };
const oneCluster = { ...twoBlocks, cluster: 2 };

describe("a message of two warps", () => {
  interface Parts {
    readonly before?: string;
    readonly store: string;
    readonly load: string;
    readonly behind?: string;
  }
  const message = ({ before = "", store, load, behind = "" }: Parts): string => `${oneLaneEach}
    @!%p1 bra $read;
    mov.b32 %r4, 7; st.global.b32 [%d0], %r4; ${before}
    mov.b32 %r5, 1; st.${store}.global.b32 [%d0+4], %r5; exit;
    $read: ld.${load}.global.b32 %r6, [%d0+4]; setp.eq.u32 %p2, %r6, 0; @%p2 bra $read; ${behind}
    ld.global.b32 %r7, [%d0]; st.global.b32 [%d0+8], %r7; ret;`;
  const sent = (parts: Parts, shape: object, seed: number): readonly string[] =>
    codes({ body: message(parts), arrays: [new Uint32Array(4)], ...shape }, seed);

  const fenced = (release: string, acquire: string): Parts => ({
    before: `fence.acq_rel.${release};`,
    store: "relaxed.gpu",
    load: "relaxed.gpu",
    behind: `fence.acq_rel.${acquire};`,
  });

  describe.each(seeds)("seed %i", (seed) => {
    test.each([
      ["gpu", "gpu", twoBlocks],
      ["sys", "gpu", twoBlocks],
      ["cluster", "cluster", oneCluster],
      ["gpu", "cluster", oneCluster],
      ["cta", "cta", twoWarps],
      ["cta", "gpu", twoWarps],
      ["gpu", "cta", twoWarps],
    ])("arrives where fences of %s and %s have both warps in their scope", (from, to, shape) => {
      expect(sent(fenced(from, to), shape, seed)).toEqual([]);
    });

    test.each([
      ["cta", "gpu", twoBlocks],
      ["gpu", "cta", twoBlocks],
      ["cluster", "gpu", twoBlocks],
      ["gpu", "cluster", twoBlocks],
      ["cta", "cluster", oneCluster],
    ])("is lost where fences of %s and %s leave one of them out", (from, to, shape) => {
      expect(sent(fenced(from, to), shape, seed)).toContain("TW8014");
    });

    test("is lost as the flag is", () => {
      const reads = (parts: Parts): boolean => {
        const launch = { body: message(parts), arrays: [new Uint32Array(4)], ...twoBlocks };
        const { findings } = runBlocks({ ...launch, options: { seed } }).result;
        return findings.some(({ summary }) => summary.startsWith("ld.global.b32"));
      };
      expect(reads({ store: "release.cta", load: "acquire.gpu" })).toBe(true);
      expect(reads({ store: "release.gpu", load: "acquire.cta" })).toBe(true);
      expect(reads({ store: "release.gpu", load: "acquire.gpu" })).toBe(false);
      expect(reads({ ...fenced("gpu", "gpu"), load: "relaxed.cta" })).toBe(true);
      expect(reads({ ...fenced("gpu", "gpu"), store: "relaxed.cta" })).toBe(true);
    });

    test("is lost by a release or an acquire of another block's scope", () => {
      const wide = { store: "release.gpu", load: "acquire.gpu" };
      expect(sent(wide, twoBlocks, seed)).toEqual([]);
      expect(sent({ ...wide, store: "release.cta" }, twoBlocks, seed)).toContain("TW8014");
      expect(sent({ ...wide, load: "acquire.cta" }, twoBlocks, seed)).toContain("TW8014");
      expect(sent({ store: "release.cta", load: "acquire.cta" }, twoWarps, seed)).toEqual([]);
    });
  });
});

describe("atomics", () => {
  const adding = (scope: string): string =>
    `${oneLaneEach} red.relaxed.${scope}.global.add.u32 [%d0], 1; ret;`;
  const arrays = [new Uint32Array(1)];

  test.each(seeds)("race where their scope leaves one of them out, seed %i", (seed) => {
    expect(codes({ body: adding("cta"), arrays, ...twoBlocks }, seed)).toContain("TW8014");
    expect(codes({ body: adding("cluster"), arrays, ...twoBlocks }, seed)).toContain("TW8014");
    expect(codes({ body: adding("gpu"), arrays, ...twoBlocks }, seed)).toEqual([]);
    expect(codes({ body: adding("cluster"), arrays, ...oneCluster }, seed)).toEqual([]);
    expect(codes({ body: adding("cta"), arrays, ...twoWarps }, seed)).toEqual([]);
  });

  /** The last of four blocks to add sets the counter back, as sums over blocks do. */
  const counting = (
    order: string,
  ): string => `mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 exit;
    ${order}
    setp.ne.u32 %p1, %r1, 3; @%p1 exit; mov.b32 %r2, 0; st.global.b32 [%d0], %r2; ret;`;

  test.each(seeds)("stand for those that they have seen, seed %i", (seed) => {
    const seen = counting("atom.relaxed.gpu.global.add.u32 %r1, [%d0], 1;");
    expect(codes({ body: seen, arrays, blocks: 4 }, seed)).toEqual([]);
    const unseen = counting(`mov.u32 %r1, %ctaid.x; red.relaxed.gpu.global.add.u32 [%d0+4], 1;
      st.relaxed.gpu.global.b32 [%d0], %r1;`);
    const found = codes({ body: unseen, arrays: [new Uint32Array(2)], blocks: 4 }, seed);
    expect(found).toContain("TW8014");
  });
});

test.each(seeds)("a plain store behind somebody's poll is a race, seed %i", (seed) => {
  // The writer waits until the other warp has polled, without an order between the poll and its store.
  const body = `${oneLaneEach} @%p1 bra $write;
    ld.relaxed.gpu.global.b32 %r4, [%d0]; red.relaxed.gpu.global.add.u32 [%d0+4], 1; ret;
    $write: ld.relaxed.gpu.global.b32 %r5, [%d0+4]; setp.eq.u32 %p2, %r5, 0; @%p2 bra $write;
    ORDER st.global.b32 [%d0], %r5; ret;`;
  const arrays = [new Uint32Array(2)];
  expect(codes({ body: body.replace("ORDER", ""), arrays, ...twoWarps }, seed)).toContain("TW8014");
});

describe("warps that meet at a barrier", () => {
  /** All lanes write and fence; one adds to a counter behind the barrier; the last block reads everything. */
  const handing = (first: string, last: string): string => `
    .shared .align 4 .b32 turn;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.s32 %r2, %r1, 64, %r0;
    mul.wide.u32 %d2, %r2, 4; add.s64 %d2, %d1, %d2; st.global.b32 [%d2], %r2;
    ${first} bar.sync 0; setp.ne.u32 %p0, %r0, 0; @%p0 bra $wait;
    atom.relaxed.gpu.global.add.u32 %r3, [%d0], 1; st.shared.b32 [turn], %r3;
    $wait: bar.sync 0; ld.shared.b32 %r4, [turn]; setp.ne.u32 %p1, %r4, 1; @%p1 bra $end;
    ${last} xor.b32 %r5, %r2, 64; mul.wide.u32 %d3, %r5, 4; add.s64 %d3, %d1, %d3;
    ld.global.b32 %r6, [%d3]; add.s32 %r7, %r0, 128; mul.wide.u32 %d3, %r7, 4; add.s64 %d3, %d1, %d3;
    st.global.b32 [%d3], %r6;
    $end: ret;`;
  const shape = { arrays: [new Uint32Array(1), new Uint32Array(192)], blocks: 2, threads: 64 };
  const fence = "fence.acq_rel.gpu;";

  test.each(seeds)("hand on what they have fenced and found, seed %i", (seed) => {
    expect(codes({ body: handing(fence, fence), ...shape }, seed)).toEqual([]);
    expect(codes({ body: handing("", fence), ...shape }, seed)).toContain("TW8014");
    expect(codes({ body: handing(fence, ""), ...shape }, seed)).toContain("TW8014");
    const near = "fence.acq_rel.cta;";
    expect(codes({ body: handing(near, fence), ...shape }, seed)).toContain("TW8014");
  });
});
