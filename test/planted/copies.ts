/** Asynchronous copies: cp.async groups, bulk stores, a ring of tiles through a tensor map. */
import { expect } from "vitest";
import { at, input, made, output, scalar } from "../foreign/case.ts";
import { module } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

const words = made(512, (index) => (index * 2654435761) % 100003);

const laneCopies: PlantedKernel = {
  name: "lane copies",
  blocks: [1, 1, 1],
  threads: [64, 1, 1],
  arguments: [input("input", Uint32Array.from(words)), output("output", new Uint32Array(128))],
  text: module(`lane_copies (.param .u64 input, .param .u64 output)
{
  .reg .b32 %lane, %first, %second, %other, %a, %b;
  .reg .b64 %from, %to, %step;
  .shared .align 16 .b8 one[1024];
  .shared .align 16 .b8 two[1024];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 16;
  add.s64 %from, %from, %step;
  shl.b32 %other, %lane, 4;
  mov.u32 %first, one;
  mov.u32 %second, two;
  add.s32 %first, %first, %other;
  add.s32 %second, %second, %other;
  cp.async.cg.shared.global [%first], [%from], 16;
  cp.async.commit_group;
  cp.async.cg.shared.global [%second], [%from+1024], 16;
  cp.async.commit_group;
  cp.async.wait_group 1;
  bar.sync 0;
  xor.b32 %other, %first, 512;
  ld.shared.b32 %a, [%other+4];
  cp.async.wait_group 0;
  bar.sync 0;
  xor.b32 %other, %second, 512;
  ld.shared.b32 %b, [%other+8];
  mul.wide.u32 %step, %lane, 8;
  add.s64 %to, %to, %step;
  st.global.v2.b32 [%to], {%a, %b};
  ret;
}`),
  check(results) {
    const expected = made(128, (index) => {
      const lane = (index >> 1) ^ 32;
      return at(words, index % 2 === 0 ? lane * 4 + 1 : 256 + lane * 4 + 2);
    });
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no wait for the last group",
      change: ["  cp.async.wait_group 0;\n", ""],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a wait that leaves the group under way",
      change: ["cp.async.wait_group 1;", "cp.async.wait_group 2;"],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "copies in one group, waited for as two",
      change: [
        "  cp.async.commit_group;\n  cp.async.cg.shared.global [%second]",
        "  cp.async.cg.shared.global [%second]",
      ],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a copy behind the last commit",
      change: ["+1024], 16;\n  cp.async.commit_group;\n", "+1024], 16;\n"],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a wait without a barrier of the block",
      change: ["  cp.async.wait_group 0;\n  bar.sync 0;\n", "  cp.async.wait_group 0;\n"],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a misaligned source",
      change: ["[%from+1024], 16", "[%from+1032], 16"],
      caught: "TW8011",
    },
    {
      name: "a source past the end of the array",
      change: ["[%from+1024], 16", "[%from+1040], 16"],
      caught: "TW8010",
    },
  ],
};

const bulkStore: PlantedKernel = {
  name: "bulk store",
  blocks: [2, 1, 1],
  threads: [64, 1, 1],
  arguments: [output("output", new Uint32Array(256)), scalar(256)],
  text: module(`bulk_store (.param .u64 output, .param .u32 size)
{
  .reg .pred %first, %more;
  .reg .b32 %lane, %block, %turn, %value, %base, %slot, %size;
  .reg .b64 %to, %step;
  .shared .align 128 .b8 tile[256];
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  ld.param.u64 %to, [output];
  ld.param.u32 %size, [size];
  mul.wide.u32 %step, %block, 512;
  add.s64 %to, %to, %step;
  mov.u32 %base, tile;
  shl.b32 %slot, %lane, 2;
  add.s32 %slot, %slot, %base;
  setp.eq.s32 %first, %lane, 0;
  mov.b32 %turn, 0;
$turn:
  mad.lo.s32 %value, %block, 2, %turn;
  mad.lo.s32 %value, %value, 1000, %lane;
  st.shared.b32 [%slot], %value;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @!%first bra $issued;
  cp.async.bulk.global.shared::cta.bulk_group [%to], [%base], %size;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
$issued:
  bar.sync 1;
  add.s64 %to, %to, 256;
  add.s32 %turn, %turn, 1;
  setp.lt.s32 %more, %turn, 2;
  @%more bra $turn;
  ret;
}`),
  check(results) {
    const expected = made(256, (index) => Math.floor(index / 64) * 1000 + (index % 64));
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no proxy fence before a bulk store",
      change: ["  fence.proxy.async.shared::cta;\n", ""],
      caught: "TW8015",
    },
    {
      name: "a proxy fence of the issuing lane alone",
      change: [
        "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n",
        "  @%first fence.proxy.async.shared::cta;\n  bar.sync 0;\n",
      ],
      caught: "TW8015",
    },
    {
      name: "no barrier before a bulk store",
      change: ["  bar.sync 0;\n", ""],
      caught: ["TW8014", "TW8015", "TW8013"],
    },
    {
      name: "no wait for a bulk store to have read",
      change: ["  cp.async.bulk.wait_group.read 0;\n", ""],
      caught: ["TW8014", "TW8056"],
    },
    {
      name: "a bulk store that is never committed",
      change: ["  cp.async.bulk.commit_group;\n", ""],
      caught: ["TW8014", "TW8056"],
    },
    {
      name: "a wait that leaves a bulk store under way",
      change: ["wait_group.read 0", "wait_group.read 1"],
      caught: ["TW8014", "TW8056"],
    },
    {
      name: "no barrier behind the wait for a bulk store",
      change: ["  bar.sync 1;\n", ""],
      caught: ["TW8014", "TW8015"],
    },
    {
      name: "a bulk store of a size that is no multiple of 16",
      change: [
        "ld.param.u32 %size, [size];",
        "ld.param.u32 %size, [size];\n  sub.s32 %size, %size, 4;",
      ],
      caught: "TW8052",
    },
    {
      name: "a bulk store past the end of shared memory",
      change: [
        "ld.param.u32 %size, [size];",
        "ld.param.u32 %size, [size];\n  add.s32 %size, %size, 16;",
      ],
      caught: "TW8010",
    },
    {
      name: "a bulk store to a misaligned address",
      change: ["  setp.eq.s32 %first", "  add.s64 %to, %to, 8;\n  setp.eq.s32 %first"],
      caught: "TW8011",
    },
  ],
};

const turns = 5;
const matrix = made(turns * 8 * 32, (index) => (index * 7919) % 1009);

const ring: PlantedKernel = {
  name: "ring",
  blocks: [1, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    {
      kind: "map",
      data: Uint32Array.from(matrix),
      map: {
        type: "u32",
        extents: [32, turns * 8],
        strides: [128],
        box: [32, 8],
        swizzle: 128,
        fill: "zero",
      },
    },
    output("output", new Uint32Array(turns * 32)),
    scalar(turns),
  ],
  text: module(`ring (.param .align 64 .b8 map[128], .param .u64 output, .param .u32 turns)
.reqntid 64, 1, 1
{
  .reg .pred %first, %consumer, %done, %ready, %wrapped;
  .reg .b32 %thread, %lane, %turns, %turn, %stage, %parity, %stages, %barriers;
  .reg .b32 %full, %empty, %place, %y, %row, %sum, %weight, %column, %value, %mask;
  .reg .b64 %map, %to, %step;
  .shared .align 1024 .b8 tiles[2048];
  .shared .align 8 .b8 signals[32];
  mov.u32 %thread, %tid.x;
  and.b32 %lane, %thread, 31;
  ld.param.u32 %turns, [turns];
  ld.param.u64 %to, [output];
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  mov.u32 %stages, tiles;
  mov.u32 %barriers, signals;
  setp.ne.s32 %first, %thread, 0;
  @%first bra $initialised;
  mbarrier.init.shared::cta.b64 [%barriers], 1;
  mbarrier.init.shared::cta.b64 [%barriers+8], 1;
  mbarrier.init.shared::cta.b64 [%barriers+16], 1;
  mbarrier.init.shared::cta.b64 [%barriers+24], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
$initialised:
  bar.sync 0;
  mov.b32 %turn, 0;
  mov.b32 %stage, 0;
  setp.ge.u32 %consumer, %thread, 32;
  @%consumer bra $consumer;
  @%first bra $end;
  mov.b32 %parity, 1;
$produce:
  shl.b32 %full, %stage, 3;
  add.s32 %full, %full, %barriers;
  add.s32 %empty, %full, 16;
$free:
  mbarrier.try_wait.parity.shared::cta.b64 %ready, [%empty], %parity;
  @!%ready bra $free;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 1024;
  shl.b32 %place, %stage, 10;
  add.s32 %place, %place, %stages;
  shl.b32 %y, %turn, 3;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%place], [%map, {0, %y}], [%full];
  xor.b32 %stage, %stage, 1;
  setp.eq.s32 %wrapped, %stage, 0;
  @%wrapped xor.b32 %parity, %parity, 1;
  add.s32 %turn, %turn, 1;
  setp.lt.s32 %done, %turn, %turns;
  @%done bra $produce;
  bra $end;
$consumer:
  mov.b32 %parity, 0;
$consume:
  shl.b32 %full, %stage, 3;
  add.s32 %full, %full, %barriers;
  add.s32 %empty, %full, 16;
$filled:
  mbarrier.try_wait.parity.shared::cta.b64 %ready, [%full], %parity;
  @!%ready bra $filled;
  shl.b32 %place, %stage, 10;
  add.s32 %place, %place, %stages;
  mov.b32 %row, 0;
  mov.b32 %sum, 0;
$rows:
  shl.b32 %column, %lane, 2;
  shl.b32 %mask, %row, 4;
  xor.b32 %column, %column, %mask;
  shl.b32 %value, %row, 7;
  add.s32 %column, %column, %value;
  add.s32 %column, %column, %place;
  ld.shared.b32 %value, [%column];
  add.s32 %row, %row, 1;
  mad.lo.s32 %sum, %value, %row, %sum;
  setp.lt.s32 %done, %row, 8;
  @%done bra $rows;
  mad.lo.s32 %value, %turn, 32, %lane;
  mul.wide.u32 %step, %value, 4;
  add.s64 %step, %step, %to;
  st.global.b32 [%step], %sum;
  fence.proxy.async.shared::cta;
  bar.warp.sync -1;
  setp.eq.s32 %first, %lane, 0;
  @%first mbarrier.arrive.shared::cta.b64 _, [%empty];
  xor.b32 %stage, %stage, 1;
  setp.eq.s32 %wrapped, %stage, 0;
  @%wrapped xor.b32 %parity, %parity, 1; // consumer
  add.s32 %turn, %turn, 1;
  setp.lt.s32 %done, %turn, %turns;
  @%done bra $consume;
$end:
  ret;
}`),
  check(results) {
    const expected = made(turns * 32, (index) => {
      const [turn, lane] = [Math.floor(index / 32), index % 32];
      return made(8, (row) => (row + 1) * at(matrix, (turn * 8 + row) * 32 + lane)).reduce(
        (a, b) => a + b,
      );
    });
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no barrier behind mbarrier.init",
      change: ["  bar.sync 0;\n", ""],
      caught: ["TW8060", "TW8014"],
    },
    {
      name: "an mbarrier that is never initialised",
      change: ["  mbarrier.init.shared::cta.b64 [%barriers+24], 1;\n", ""],
      caught: "TW8060",
    },
    {
      name: "an mbarrier that expects an arrival too many",
      change: ["[%barriers+16], 1", "[%barriers+16], 2"],
      caught: "TW8020",
    },
    {
      name: "an mbarrier that expects no arrival",
      change: ["[%barriers+8], 1", "[%barriers+8], 0"],
      caught: ["TW8065"],
    },
    {
      name: "every lane arrives instead of one",
      change: ["@%first mbarrier.arrive", "mbarrier.arrive"],
      caught: ["TW8020", "TW8061", "TW8064"],
    },
    {
      name: "expects 16 bytes too many",
      change: ["[%full], 1024;", "[%full], 1040;"],
      caught: "TW8020",
    },
    {
      name: "expects 16 bytes too few",
      change: ["[%full], 1024;", "[%full], 1008;"],
      caught: ["TW8020", "TW8013", "TW8014"],
    },
    {
      name: "expects one byte too many",
      change: ["[%full], 1024;", "[%full], 1025;"],
      caught: "TW8020",
    },
    {
      name: "arrives without expecting the copy's bytes",
      change: [
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], 1024;",
        "mbarrier.arrive.shared::cta.b64 _, [%full];",
      ],
      caught: ["TW8013", "TW8014", "TW8020"],
    },
    {
      name: "a consumer that starts with the other parity",
      change: ["mov.b32 %parity, 0;", "mov.b32 %parity, 1;"],
      caught: ["TW8013", "TW8014", "TW8020"],
    },
    {
      name: "a producer that starts with the other parity",
      change: ["mov.b32 %parity, 1;", "mov.b32 %parity, 0;"],
      caught: "TW8020",
    },
    {
      name: "a consumer that never flips its parity",
      change: ["  @%wrapped xor.b32 %parity, %parity, 1; // consumer\n", ""],
      caught: ["TW8014", "TW8020", "TW8064"],
    },
    {
      name: "a producer that does not wait for a free stage",
      change: ["  @!%ready bra $free;\n", ""],
      caught: ["TW8014", "TW8015", "TW8064", "TW8061"],
    },
    {
      name: "a consumer that does not wait for the tile",
      change: ["  @!%ready bra $filled;\n", ""],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a consumer that never frees a stage",
      change: ["  @%first mbarrier.arrive.shared::cta.b64 _, [%empty];\n", ""],
      caught: "TW8020",
    },
    {
      name: "a stage freed twice a turn",
      change: [
        "  mov.b32 %row, 0;\n",
        "  mov.b32 %row, 0;\n  setp.eq.s32 %first, %lane, 0;\n  @%first mbarrier.arrive.shared::cta.b64 _, [%empty];\n",
      ],
      caught: ["TW8014", "TW8015", "TW8020", "TW8061", "TW8064"],
    },
    {
      name: "reads without the swizzle",
      change: ["xor.b32 %column, %column, %mask;", "or.b32 %column, %column, 0;"],
      caught: "result",
    },
    { name: "coordinates in the wrong order", change: ["{0, %y}", "{%y, 0}"], caught: "result" },
    {
      name: "both stages in one place",
      change: [
        "shl.b32 %place, %stage, 10;\n  add.s32 %place, %place, %stages;\n  shl.b32 %y",
        "shl.b32 %place, %stage, 9;\n  add.s32 %place, %place, %stages;\n  shl.b32 %y",
      ],
      caught: ["TW8014", "TW8013", "TW8011"],
    },
    {
      name: "a copy with an axis too many",
      change: [
        ".tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%place], [%map, {0, %y}]",
        ".tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%place], [%map, {0, %y, 0}]",
      ],
      caught: "TW8053",
    },
    {
      name: "the array's address for the map's",
      change: ["cvta.param.u64 %map, %map;", "mov.b64 %map, %to;"],
      caught: ["TW8051", "TW8013"],
    },
    {
      name: "a misaligned tile",
      change: [
        "  shl.b32 %y, %turn, 3;\n",
        "  add.s32 %place, %place, 16;\n  shl.b32 %y, %turn, 3;\n",
      ],
      caught: ["TW8011", "TW8010"],
    },
    {
      name: "a copy that signals the wrong barrier",
      change: ["[%map, {0, %y}], [%full];", "[%map, {0, %y}], [%empty];"],
      caught: ["TW8020", "TW8014", "TW8013", "TW8064"],
    },
  ],
};

export const copyKernels: readonly PlantedKernel[] = [laneCopies, bulkStore, ring];
