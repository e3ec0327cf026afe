/** Tensor maps that kernels change, against the bytes that an H200 leaves. */
import { describe, expect, test } from "vitest";
import {
  awaitBarrier,
  dumpShared,
  initBarriers,
  runPtx,
} from "../../../test/support/ptx-kernel.ts";
import { encodeTensorMap } from "../tensor-map.ts";

/** The words that differ from the pattern which the 128 bytes hold before. */
function replaced(instruction: string, pattern: number): { readonly [word: number]: number } {
  const { arrays, codes } = runPtx({
    body: `setp.ne.u32 %p0, %thread, 0; @%p0 bra $end; ${instruction} $end:`,
    arrays: { map: new Uint8Array(128).fill(pattern) },
  });
  expect(codes).toEqual([]);
  const words = new Uint32Array((arrays.map ?? new Uint8Array()).slice().buffer);
  const old = pattern === 0 ? 0 : 0xffff_ffff;
  return Object.fromEntries([...words.entries()].filter(([, word]) => word !== old));
}

const rows: readonly (readonly [
  change: string,
  pattern: 0 | 0xff,
  words: { readonly [word: number]: number },
])[] = [
  [
    "global_address.global.b1024.b64 [%map], 0x123456789abcdef0",
    0,
    { 0: 0x9abcdef0, 1: 0x12345678 },
  ],
  ["rank.global.b1024.b32 [%map], 0xa5", 0, { 2: 0x50 }],
  ["rank.global.b1024.b32 [%map], 1", 0xff, { 2: 0xffffff9f }],
  ["box_dim.global.b1024.b32 [%map], 0, 0xa5", 0, { 13: 0xa4000000 }],
  ["box_dim.global.b1024.b32 [%map], 3, 0", 0, { 14: 0x00ff0000 }],
  ["box_dim.global.b1024.b32 [%map], 4, 1", 0xff, { 14: 0x00ffffff }],
  ["global_dim.global.b1024.b32 [%map], 2, 0xa5", 0xff, { 10: 0xa4 }],
  [
    "global_stride.global.b1024.b64 [%map], 1, 0x123456789abcdef0",
    0xff,
    { 4: 0x89abcdef, 7: 0xffffff7f },
  ],
  ["element_stride.global.b1024.b32 [%map], 3, 0xa5", 0, { 13: 0x800 }],
  ["element_stride.global.b1024.b32 [%map], 4, 1", 0xff, { 13: 0xffff8fff }],
  ["elemtype.global.b1024.b32 [%map], 9", 0, { 2: 0x480 }],
  ["elemtype.global.b1024.b32 [%map], 11", 0, { 2: 0x10380 }],
  ["elemtype.global.b1024.b32 [%map], 2", 0xff, { 2: 0xfffff97f }],
  ["interleave_layout.global.b1024.b32 [%map], 2", 0xff, { 2: 0xfffff7ff }],
  ["swizzle_mode.global.b1024.b32 [%map], 1", 0xff, { 2: 0xffbfbfff }],
  ["fill_mode.global.b1024.b32 [%map], 0", 0xff, { 2: 0xffff7fff }],
];

describe("tensormap.replace", () => {
  test.each(rows)("%s of %i", (change, pattern, words) => {
    expect(replaced(`tensormap.replace.tile.${change};`, pattern)).toEqual(words);
  });

  test("a map of zeros becomes the one that the host makes", () => {
    const { arrays, codes } = runPtx({
      body: `setp.ne.u32 %p0, %thread, 0; @%p0 bra $end;
        tensormap.replace.tile.global_address.b1024.b64 [%map], 0x7f0000000000;
        tensormap.replace.tile.rank.b1024.b32 [%map], 1;
        tensormap.replace.tile.box_dim.b1024.b32 [%map], 0, 16;
        tensormap.replace.tile.box_dim.b1024.b32 [%map], 1, 40;
        tensormap.replace.tile.global_dim.b1024.b32 [%map], 0, 100;
        tensormap.replace.tile.global_dim.b1024.b32 [%map], 1, 70;
        tensormap.replace.tile.global_stride.b1024.b64 [%map], 0, 208;
        tensormap.replace.tile.element_stride.b1024.b32 [%map], 1, 2;
        tensormap.replace.tile.elemtype.b1024.b32 [%map], 10;
        tensormap.replace.tile.swizzle_mode.b1024.b32 [%map], 1;
        tensormap.replace.tile.fill_mode.b1024.b32 [%map], 1; $end:`,
      arrays: { map: new Uint8Array(128) },
    });
    const host = encodeTensorMap({
      type: "bf16",
      address: 0x7f0000000000,
      extents: [100, 70],
      strides: [208],
      box: [16, 40],
      elementStrides: [1, 2],
      swizzle: 32,
      fill: "nan",
    });
    expect(codes).toEqual([]);
    // Behind the first half is what the driver keeps for itself.
    expect(arrays.map?.subarray(0, 64)).toEqual(host.subarray(0, 64));
  });

  test.each([
    ["an axis that maps do not have", "TW7108", "box_dim.global.b1024.b32 [%map], 5, 1"],
    ["a stride of the innermost axis", "TW8001", "global_stride.global.b1024.b64 [%map], 4, 16"],
    ["a field of later targets", "TW7109", "swizzle_atomicity.global.b1024.b32 [%map], 1"],
  ])("%s is refused", (_name, code, change) => {
    const { codes } = runPtx({
      body: `tensormap.replace.tile.${change};`,
      arrays: { map: new Uint8Array(128) },
    });
    expect(codes).toEqual([code]);
  });

  test("a map between 128 bytes is misaligned", () => {
    const { codes } = runPtx({
      body: "tensormap.replace.tile.rank.global.b1024.b32 [%map+64], 1;",
      arrays: { map: new Uint8Array(256) },
    });
    expect(codes).toEqual(["TW8011"]);
  });
});

/** Copies a map through shared memory, changes it there, and loads a box through the copy. */
function loadThrough(fences: { readonly release: string; readonly acquire: string }): {
  readonly codes: readonly string[];
  readonly out: Uint8Array | undefined;
} {
  const words = Uint32Array.from({ length: 64 }, (_, at) => 3 * at);
  const { arrays, codes } = runPtx({
    body: [
      initBarriers([{ at: 0, count: 1 }]),
      "mul.wide.u32 %d0, %thread, 4; add.u64 %d1, %m_x, %d0; ld.b32 %r0, [%d1];",
      "shl.b32 %r1, %thread, 2; add.u32 %r1, %r1, %smem; st.shared.b32 [%r1+128], %r0; bar.warp.sync -1;",
      "setp.ne.u32 %p0, %thread, 0; add.u32 %r2, %smem, 128; add.u32 %r3, %smem, 1024;",
      "@!%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r2], 1, 2; bar.warp.sync -1;",
      fences.release,
      fences.acquire,
      "@%p0 bra $issued; mov.b32 %r4, 0;",
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%smem], 128;",
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%map, {%r4, %r4}], [%smem];",
      "$issued:",
      awaitBarrier(0, 0),
      dumpShared("out", 1024, 128, 32),
    ].join("\n"),
    arrays: { x: new Uint8Array(words.buffer), out: 128, map: 128 },
    maps: {
      x: {
        ...{ type: "u32", extents: [8, 8], strides: [32], box: [8, 4], swizzle: 0, fill: "zero" },
        array: "x",
      },
    },
  });
  return { codes, out: arrays.out };
}

describe("tensormap.cp_fenceproxy", () => {
  const release =
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%r2], 128;";
  const acquire = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;";

  test("copies a map for others to acquire", () => {
    const { codes, out } = loadThrough({ release, acquire });
    expect(codes).toEqual([]);
    const found = [...new Uint32Array((out ?? new Uint8Array()).slice().buffer)];
    expect(found).toEqual(Array.from({ length: 32 }, (_, at) => (at < 16 ? 3 * at : 0)));
  });

  test("is not enough without an acquire", () => {
    expect(loadThrough({ release, acquire: "" }).codes).toEqual(["TW8059"]);
  });

  test("an ordinary copy of the bytes wants a release as well", () => {
    const copy = `ld.shared.b32 %r5, [%r1+128]; mul.wide.u32 %d2, %thread, 4; add.u64 %d2, %d2, %map;
      st.global.b32 [%d2], %r5; bar.warp.sync -1;`;
    expect(loadThrough({ release: copy, acquire }).codes).toEqual(["TW8059"]);
    const released = `${copy} fence.proxy.tensormap::generic.release.gpu;`;
    expect(loadThrough({ release: released, acquire }).codes).toEqual([]);
  });
});
