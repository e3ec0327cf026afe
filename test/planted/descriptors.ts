/** Tensor maps that kernels write, im2col copies, 128-bit atomics, stores into other blocks, taken stacks. */
import { expect } from "vitest";
import { at, input, made, output } from "../foreign/case.ts";
import { module } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

const words = made(512, (index) => (index * 2654435761) % 100003);

const waitForBarrier = `$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %passed, [%bar], %turn;
  @!%passed bra $wait;
`;

const madeMap: PlantedKernel = {
  name: "a map made of zeros",
  blocks: [1, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    input("input", Uint32Array.from(words.slice(0, 256))),
    output("output", new Uint32Array(256)),
    output("scratch", new Uint32Array(64)),
  ],
  text: module(`made_map (.param .u64 input, .param .u64 output, .param .u64 scratch)
{
  .reg .pred %first, %warp, %passed, %more;
  .reg .b32 %lane, %map, %own, %tile, %slot, %bar, %turn, %a, %b;
  .reg .b64 %from, %to, %where, %step;
  .shared .align 128 .b8 tile[512];
  .shared .align 128 .b8 map[128];
  .shared .align 8 .b64 bar;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  ld.param.u64 %where, [scratch];
  mul.wide.u32 %step, %lane, 8;
  add.s64 %to, %to, %step;
  setp.eq.s32 %first, %lane, 0;
  setp.lt.s32 %warp, %lane, 32;
  mov.u32 %map, map;
  mad.lo.u32 %own, %lane, 4, %map;
  mov.u32 %tile, tile;
  mad.lo.u32 %slot, %lane, 8, %tile;
  mov.u32 %bar, bar;
  @%first mbarrier.init.shared::cta.b64 [%bar], 1;
  @%first fence.mbarrier_init.release.cluster;
  @%warp st.shared.b32 [%own], 0;
  bar.sync 0;
  @%first tensormap.replace.tile.rank.shared::cta.b1024.b32 [%map], 1;
  @%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%map], 0, 8;
  @%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%map], 1, 16;
  @%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%map], 0, 8;
  @%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%map], 1, 16;
  @%first tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%map], 0, 32;
  @%first tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%map], 2;
  mov.b32 %turn, 0;
$turn:
  @%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%map], %from;
  bar.warp.sync -1;
  @%warp tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%where], [%map], 128;
  @%warp fence.proxy.tensormap::generic.acquire.gpu [%where], 128;
  @!%first bra $issued;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%where, {0, 0}], [%bar];
$issued:
${waitForBarrier}  ld.shared.v2.b32 {%a, %b}, [%slot];
  st.global.v2.b32 [%to], {%a, %b};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  add.s64 %from, %from, 512;
  add.s64 %to, %to, 512;
  add.s32 %turn, %turn, 1;
  setp.lt.s32 %more, %turn, 2;
  @%more bra $turn;
  ret;
}`),
  check(results) {
    expect([...results.numbers("output")]).toEqual(words.slice(0, 256));
  },
  bugs: [
    {
      name: "no acquire of a tensor map",
      change: ["  @%warp fence.proxy.tensormap::generic.acquire.gpu [%where], 128;\n", ""],
      caught: "TW8059",
    },
    {
      name: "an acquire of another tensor map",
      change: ["acquire.gpu [%where], 128", "acquire.gpu [%where+128], 128"],
      caught: "TW8059",
    },
    {
      name: "a tensor map in memory that nothing set",
      change: ["  @%warp st.shared.b32 [%own], 0;\n", ""],
      caught: "TW8013",
    },
    {
      name: "no synchronisation before a tensor map is copied",
      change: [
        "  @%warp tensormap.cp_fenceproxy",
        "  setp.ge.s32 %warp, %lane, 32;\n  @%warp tensormap.cp_fenceproxy",
      ],
      caught: ["TW8014", "TW8059", "TW8051"],
    },
    {
      name: "the number of axes of a tensor map not set",
      change: ["  @%first tensormap.replace.tile.rank.shared::cta.b1024.b32 [%map], 1;\n", ""],
      caught: "TW8053",
    },
    {
      name: "a box whose rows are no multiple of 16 bytes",
      change: [
        "[%map], 0, 8;\n  @%first tensormap.replace.tile.box_dim",
        "[%map], 0, 7;\n  @%first tensormap.replace.tile.box_dim",
      ],
      caught: "TW8051",
    },
    {
      name: "a stride in elements instead of bytes",
      change: ["[%map], 0, 32;", "[%map], 0, 16;"],
      caught: "result",
    },
  ],
};

const changedMap: PlantedKernel = {
  name: "a map changed in place",
  blocks: [1, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    input("input", Uint32Array.from(words.slice(0, 256))),
    output("output", new Uint32Array(256)),
    output("scratch", new Uint32Array(32)),
    {
      kind: "map",
      data: new Uint32Array(128),
      map: {
        type: "u32",
        extents: [8, 16],
        strides: [32],
        box: [8, 16],
        swizzle: 0,
        fill: "zero",
      },
    },
  ],
  text: module(`changed_map (.param .u64 input, .param .u64 output, .param .u64 scratch,
  .param .align 64 .b8 host[128])
{
  .reg .pred %first, %issuer, %warp, %passed, %more;
  .reg .b32 %lane, %tile, %slot, %bar, %turn, %a, %b;
  .reg .b64 %from, %to, %where, %step, %map, %part;
  .shared .align 128 .b8 tile[512];
  .shared .align 8 .b64 bar;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  ld.param.u64 %where, [scratch];
  mul.wide.u32 %step, %lane, 8;
  add.s64 %to, %to, %step;
  setp.eq.s32 %first, %lane, 0;
  setp.eq.s32 %issuer, %lane, 32;
  setp.lt.s32 %warp, %lane, 32;
  mov.u32 %tile, tile;
  mad.lo.u32 %slot, %lane, 8, %tile;
  mov.u32 %bar, bar;
  @%first mbarrier.init.shared::cta.b64 [%bar], 1;
  @%first fence.mbarrier_init.release.cluster;
  mov.b64 %map, host;
  cvta.param.u64 %map, %map;
  mul.wide.u32 %step, %lane, 4;
  add.s64 %map, %map, %step;
  add.s64 %part, %where, %step;
  @%warp ld.b32 %a, [%map];
  @%warp st.global.b32 [%part], %a;
  mov.b32 %turn, 0;
$turn:
  bar.sync 0;
  @%first tensormap.replace.tile.global_address.global.b1024.b64 [%where], %from;
  @%warp fence.proxy.tensormap::generic.release.gpu;
  bar.sync 1;
  @!%issuer bra $issued;
  fence.proxy.tensormap::generic.acquire.gpu [%where], 128;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%where, {0, 0}], [%bar];
$issued:
${waitForBarrier}  ld.shared.v2.b32 {%a, %b}, [%slot];
  st.global.v2.b32 [%to], {%a, %b};
  fence.proxy.async.shared::cta;
  add.s64 %from, %from, 512;
  add.s64 %to, %to, 512;
  add.s32 %turn, %turn, 1;
  setp.lt.s32 %more, %turn, 2;
  @%more bra $turn;
  ret;
}`),
  check(results) {
    expect([...results.numbers("output")]).toEqual(words.slice(0, 256));
  },
  bugs: [
    {
      name: "no release of a tensor map",
      change: ["  @%warp fence.proxy.tensormap::generic.release.gpu;\n", ""],
      caught: "TW8059",
    },
    {
      name: "a release of a tensor map behind the barrier",
      change: [
        "  @%warp fence.proxy.tensormap::generic.release.gpu;\n  bar.sync 1;\n",
        "  bar.sync 1;\n  @%warp fence.proxy.tensormap::generic.release.gpu;\n",
      ],
      caught: "TW8059",
    },
    {
      name: "an acquire of a tensor map before the barrier",
      change: [
        "  bar.sync 1;\n  @!%issuer bra $issued;\n  fence.proxy.tensormap::generic.acquire.gpu [%where], 128;\n",
        "  @%issuer fence.proxy.tensormap::generic.acquire.gpu [%where], 128;\n  bar.sync 1;\n  @!%issuer bra $issued;\n",
      ],
      caught: "TW8059",
    },
    {
      name: "no barrier behind the change of a tensor map",
      change: ["  bar.sync 1;\n", ""],
      caught: ["TW8014", "TW8059"],
    },
    {
      name: "a tensor map changed while a copy reads it",
      change: [
        "[%where, {0, 0}], [%bar];\n",
        "[%where, {0, 0}], [%bar];\n  tensormap.replace.tile.fill_mode.global.b1024.b32 [%where], 0;\n",
      ],
      caught: "TW8014",
    },
    {
      name: "a proxy fence of another kind for a tensor map",
      change: ["fence.proxy.tensormap::generic.release.gpu", "fence.proxy.async.global"],
      caught: "TW8059",
    },
  ],
};

/** Channels, width, images; pixels −1 to 2 of each image, read one further on. */
const imageColumns: PlantedKernel = {
  name: "columns of images",
  blocks: [1, 1, 1],
  threads: [32, 1, 1],
  arguments: [
    output("output", new Uint32Array(32)),
    {
      kind: "map",
      data: Uint32Array.from(words.slice(0, 64)),
      map: {
        type: "u32",
        extents: [4, 4, 4],
        strides: [16, 64],
        box: [4, 8],
        corners: { lower: [-1], upper: [-1] },
        swizzle: 0,
        fill: "zero",
      },
    },
  ],
  text: module(`image_columns (.param .u64 output, .param .align 64 .b8 map[128])
{
  .reg .pred %first, %passed;
  .reg .b16 %offset;
  .reg .b32 %lane, %tile, %slot, %bar, %turn, %a;
  .reg .b64 %to, %step, %where;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 bar;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 4;
  add.s64 %to, %to, %step;
  setp.eq.s32 %first, %lane, 0;
  mov.u32 %tile, tile;
  mad.lo.u32 %slot, %lane, 4, %tile;
  mov.u32 %bar, bar;
  mov.b64 %where, map;
  cvta.param.u64 %where, %where;
  mov.b16 %offset, 1;
  mov.b32 %turn, 0;
  @%first mbarrier.init.shared::cta.b64 [%bar], 1;
  @%first fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 128;
  @%first cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%tile], [%where, {0, -1, 1}], [%bar], {%offset};
${waitForBarrier}  ld.shared.b32 %a, [%slot];
  st.global.b32 [%to], %a;
  ret;
}`),
  check(results) {
    const pixel = (image: number, x: number): readonly number[] =>
      x < 0 || x > 3 ? [0, 0, 0, 0] : made(4, (channel) => at(words, image * 16 + x * 4 + channel));
    const expected = [1, 2].flatMap((image) => [-1, 0, 1, 2].flatMap((x) => pixel(image, x + 1)));
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "an im2col map read as tiles",
      change: [
        "global.im2col.mbarrier::complete_tx::bytes [%tile], [%where, {0, -1, 1}], [%bar], {%offset};",
        "global.tile.mbarrier::complete_tx::bytes [%tile], [%where, {0, -1, 1}], [%bar];",
      ],
      caught: "TW8053",
    },
    {
      name: "an im2col offset that is off by one",
      change: ["mov.b16 %offset, 1;", "mov.b16 %offset, 0;"],
      caught: "result",
    },
    {
      name: "more bytes expected than pixels copied",
      change: ["[%bar], 128;", "[%bar], 144;"],
      caught: ["TW8021", "TW8020"],
    },
  ],
};

/** Each lane exchanges 16 bytes of shared memory and then claims a slot of 16 bytes by comparison. */
const wideAtomics: PlantedKernel = {
  name: "atomics on 128 bits",
  blocks: [1, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    input("slots", Uint32Array.from(made(256, (index) => (index % 8 < 4 ? 0 : index)))),
    output("output", new Uint32Array(64)),
  ],
  text: module(`wide_atomics (.param .u64 slots, .param .u64 output)
{
  .reg .b32 %lane, %slot, %value;
  .reg .b64 %from, %to, %step, %low, %high;
  .reg .b128 %empty, %mine, %old;
  .shared .align 16 .b8 tile[1024];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %from, [slots];
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 16;
  add.s64 %from, %from, %step;
  mul.wide.u32 %step, %lane, 4;
  add.s64 %to, %to, %step;
  mov.u32 %slot, tile;
  mad.lo.u32 %slot, %lane, 16, %slot;
  cvt.u64.u32 %low, %lane;
  mov.b64 %high, 77;
  mov.b128 %mine, {%low, %high};
  mov.b64 %step, 0;
  mov.b128 %empty, {%step, %step};
  st.shared.b128 [%slot], %mine;
  atom.shared.exch.b128 %old, [%slot], %empty;
  mov.b128 {%low, %high}, %old;
  atom.global.cas.b128 %old, [%from], %empty, %mine;
  mov.b128 {%step, %high}, %old;
  add.s64 %low, %low, %high;
  cvt.u32.u64 %value, %low;
  st.global.b32 [%to], %value;
  ret;
}`),
  check(results) {
    const slots = made(256, (index) => (index % 8 < 4 ? 0 : index));
    const sums = made(64, (lane) => lane + (lane % 2 === 0 ? 0 : at(slots, lane * 4 + 2)));
    expect([...results.numbers("output")]).toEqual(sums);
    const claimed = made(256, (index) => {
      const [lane, word] = [index >> 2, index & 3];
      if (lane % 2 === 1) return at(slots, index);
      return word === 0 ? lane : word === 2 ? 77 : 0;
    });
    expect([...results.numbers("slots")]).toEqual(claimed);
  },
  bugs: [
    {
      name: "an atomic on 128 bits between 16 bytes",
      change: ["[%from], %empty, %mine", "[%from+8], %empty, %mine"],
      caught: "TW8011",
    },
    {
      name: "an exchange of 128 bits between 16 bytes of shared memory",
      change: ["[%slot], %empty;", "[%slot+4], %empty;"],
      caught: "TW8011",
    },
    {
      name: "a store of 128 bits between 16 bytes",
      change: ["st.shared.b128 [%slot], %mine", "st.shared.b128 [%slot+8], %mine"],
      caught: "TW8011",
    },
    {
      name: "an atomic on 128 bits where another warp stores",
      change: [
        "  st.shared.b128 [%slot], %mine;\n",
        "  st.shared.b128 [%slot], %mine;\n  xor.b32 %slot, %slot, 512;\n",
      ],
      caught: ["TW8014", "TW8013"],
    },
  ],
};

/** Two blocks hand each other a word a lane. */
const remoteStores: PlantedKernel = {
  name: "stores into another block",
  blocks: [2, 1, 1],
  threads: [32, 1, 1],
  cluster: 2,
  arguments: [output("output", new Uint32Array(64))],
  text: module(`remote_stores (.param .u64 output)
.explicitcluster
.reqnctapercluster 2, 1, 1
{
  .reg .pred %first, %passed;
  .reg .b32 %lane, %rank, %next, %slot, %bar, %far, %signal, %value, %turn;
  .reg .b64 %to, %step;
  .shared .align 16 .b8 tile[128];
  .shared .align 8 .b64 bar;
  mov.u32 %lane, %tid.x;
  mov.u32 %rank, %cluster_ctarank;
  xor.b32 %next, %rank, 1;
  ld.param.u64 %to, [output];
  mad.lo.u32 %value, %rank, 32, %lane;
  mul.wide.u32 %step, %value, 4;
  add.s64 %to, %to, %step;
  mad.lo.u32 %value, %value, 3, 5;
  setp.eq.s32 %first, %lane, 0;
  mov.u32 %slot, tile;
  mad.lo.u32 %slot, %lane, 4, %slot;
  mov.u32 %bar, bar;
  mapa.shared::cluster.u32 %far, %slot, %next;
  mapa.shared::cluster.u32 %signal, %bar, %next;
  mov.b32 %turn, 0;
  @%first mbarrier.init.shared::cta.b64 [%bar], 1;
  @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 128;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%far], %value, [%signal];
${waitForBarrier}  ld.shared.b32 %value, [%slot];
  st.global.b32 [%to], %value;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}`),
  check(results) {
    const expected = made(64, (index) => 3 * (index ^ 32) + 5);
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no wait for stores of another block",
      change: ["  @!%passed bra $wait;\n", ""],
      caught: ["TW8014", "TW8013", "TW8056"],
    },
    {
      name: "fewer bytes expected than another block stores",
      change: ["[%bar], 128;", "[%bar], 64;"],
      caught: ["TW8014", "TW8013", "TW8062", "TW8056"],
    },
    {
      name: "a store into another block that tells its own barrier",
      change: ["%value, [%signal];", "%value, [%bar];"],
      caught: ["TW8014", "TW8013"],
    },
  ],
};

/** Each lane takes as many words as it has to sum. */
const takenStack: PlantedKernel = {
  name: "a stack that lanes take",
  blocks: [1, 1, 1],
  threads: [32, 1, 1],
  arguments: [output("output", new Uint32Array(32))],
  text: module(`taken_stack (.param .u64 output)
{
  .reg .pred %more;
  .reg .b32 %lane, %count, %at, %value, %sum;
  .reg .b64 %to, %step, %words, %place;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 4;
  add.s64 %to, %to, %step;
  add.s32 %count, %lane, 1;
  mul.wide.u32 %step, %count, 4;
  alloca.u64 %words, %step, 16;
  mov.b32 %at, 0;
$fill:
  mul.wide.u32 %step, %at, 4;
  add.s64 %place, %words, %step;
  mul.lo.s32 %value, %at, %at;
  st.local.u32 [%place], %value;
  add.s32 %at, %at, 1;
  setp.lt.s32 %more, %at, %count;
  @%more bra $fill;
  mov.b32 %sum, 0;
$add:
  sub.s32 %at, %at, 1;
  mul.wide.u32 %step, %at, 4;
  add.s64 %place, %words, %step;
  ld.local.u32 %value, [%place];
  add.s32 %sum, %sum, %value;
  setp.gt.s32 %more, %at, 0;
  @%more bra $add;
  st.global.u32 [%to], %sum;
  ret;
}`),
  check(results) {
    const sums = made(32, (lane) => made(lane + 1, (k) => k * k).reduce((all, k) => all + k, 0));
    expect([...results.numbers("output")]).toEqual(sums);
  },
  bugs: [
    {
      name: "one word less of the stack than is used",
      change: ["mul.wide.u32 %step, %count, 4;", "mul.wide.u32 %step, %lane, 4;"],
      caught: "TW8010",
    },
  ],
};

export const descriptorKernels: readonly PlantedKernel[] = [
  madeMap,
  changedMap,
  imageColumns,
  wideAtomics,
  remoteStores,
  takenStack,
];
