/** Warpgroups, warps and clusters: wgmma, shuffles, ldmatrix, cluster barriers, register budgets. */
import { expect } from "vitest";
import { at, input, made, output } from "../foreign/case.ts";
import { module } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

/** bf16 bits of a small integer. */
function bf16Bits(value: number): number {
  const bits = new DataView(new ArrayBuffer(4));
  bits.setFloat32(0, value);
  return bits.getUint16(0);
}

const left = made(64 * 16, (index) => ((index * 37) % 17) - 8);
const right = made(8 * 16, (index) => ((index * 29) % 13) - 6);

/**
 * D = A B^T with A of 64 × 16 and B of 8 × 16, both with k innermost in rows of 32 bytes under the
 * 32-byte swizzle: bit 4 of the address is turned by bit 7, which is bit 2 of the row.
 */
const product: PlantedKernel = {
  name: "product",
  blocks: [1, 1, 1],
  threads: [128, 1, 1],
  arguments: [
    input("left", Uint16Array.from(left, bf16Bits)),
    input("right", Uint16Array.from(right, bf16Bits)),
    output("output", new Float32Array(64 * 8)),
  ],
  text: module(`product (.param .u64 left, .param .u64 right, .param .u64 output)
.reqntid 128, 1, 1
{
  .reg .pred %few, %skip;
  .reg .b32 %lane, %row, %chunk, %turned, %place, %a, %b, %w0, %w1, %w2, %w3, %d0, %d1, %d2, %d3;
  .reg .b64 %left, %right, %to, %step, %descA, %descB, %part;
  .shared .align 256 .b8 tileA[2048];
  .shared .align 256 .b8 tileB[256];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %left, [left];
  ld.param.u64 %right, [right];
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 16;
  add.s64 %left, %left, %step;
  add.s64 %right, %right, %step;
  shr.u32 %row, %lane, 1;
  and.b32 %chunk, %lane, 1;
  shr.u32 %turned, %row, 2;
  and.b32 %turned, %turned, 1;
  xor.b32 %chunk, %chunk, %turned;
  shl.b32 %place, %row, 5;
  shl.b32 %chunk, %chunk, 4;
  add.s32 %place, %place, %chunk;
  mov.u32 %a, tileA;
  mov.u32 %b, tileB;
  ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%left];
  add.s32 %row, %a, %place;
  st.shared.v4.b32 [%row], {%w0, %w1, %w2, %w3};
  setp.lt.u32 %few, %lane, 16;
  @%few ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%right];
  add.s32 %row, %b, %place;
  @%few st.shared.v4.b32 [%row], {%w0, %w1, %w2, %w3};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %a, %a, 4;
  shr.u32 %b, %b, 4;
  cvt.u64.u32 %descA, %a;
  cvt.u64.u32 %descB, %b;
  mov.b64 %part, 0xC000001000010000;
  or.b64 %descA, %descA, %part;
  or.b64 %descB, %descB, %part;
  mov.b32 %d0, 0;
  mov.b32 %d1, 0;
  mov.b32 %d2, 0;
  mov.b32 %d3, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%d0, %d1, %d2, %d3}, %descA, %descB, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  shr.u32 %row, %lane, 5;
  shl.b32 %row, %row, 4;
  shr.u32 %chunk, %lane, 2;
  and.b32 %chunk, %chunk, 7;
  add.s32 %row, %row, %chunk;
  and.b32 %chunk, %lane, 3;
  shl.b32 %row, %row, 5;
  shl.b32 %chunk, %chunk, 3;
  add.s32 %row, %row, %chunk;
  cvt.u64.u32 %step, %row;
  add.s64 %to, %to, %step;
$skip:
  st.global.v2.b32 [%to], {%d0, %d1};
  st.global.v2.b32 [%to+256], {%d2, %d3};
  ret;
}`),
  check(results) {
    const expected = made(64 * 8, (index) => {
      const [row, column] = [index >> 3, index & 7];
      return made(16, (k) => at(left, row * 16 + k) * at(right, column * 16 + k)).reduce(
        (a, b) => a + b,
      );
    });
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no proxy fence before wgmma",
      change: ["  fence.proxy.async.shared::cta;\n", ""],
      caught: "TW8015",
    },
    {
      name: "no barrier before wgmma",
      change: ["  bar.sync 0;\n", ""],
      caught: ["TW8014", "TW8013", "TW8015"],
    },
    { name: "no wgmma.fence", change: ["  wgmma.fence.sync.aligned;\n", ""], caught: "TW8071" },
    {
      name: "an accumulator written behind wgmma.fence",
      change: [
        "  mov.b32 %d3, 0;\n  wgmma.fence.sync.aligned;\n",
        "  mov.b32 %d3, %lane;\n  wgmma.fence.sync.aligned;\n  mov.b32 %d3, 0;\n",
      ],
      caught: "TW8071",
    },
    {
      name: "no wait for wgmma",
      change: ["  wgmma.wait_group.sync.aligned 0;\n", ""],
      caught: "TW8070",
    },
    {
      name: "wgmma never committed",
      change: ["  wgmma.commit_group.sync.aligned;\n", ""],
      caught: "TW8070",
    },
    {
      name: "a wait that leaves wgmma under way",
      change: ["wait_group.sync.aligned 0", "wait_group.sync.aligned 1"],
      caught: "TW8070",
    },
    {
      name: "an accumulator written in flight",
      change: [
        "  wgmma.commit_group.sync.aligned;\n",
        "  wgmma.commit_group.sync.aligned;\n  mov.b32 %d1, 0;\n",
      ],
      caught: "TW8070",
    },
    {
      name: "wrong swizzle in a descriptor: 64 bytes",
      change: ["0xC000001000010000", "0x8000001000010000"],
      caught: ["TW8073", "TW8010"],
    },
    {
      name: "wrong swizzle in a descriptor: none",
      change: ["0xC000001000010000", "0x0000001000010000"],
      caught: "result",
    },
    {
      name: "wrong stride in a descriptor",
      change: ["0xC000001000010000", "0xC000000800010000"],
      caught: "result",
    },
    {
      name: "a reserved bit of a descriptor",
      change: ["0xC000001000010000", "0xC000001000018000"],
      caught: "TW8073",
    },
    {
      name: "an address that was not shifted",
      change: ["  shr.u32 %b, %b, 4;\n", ""],
      caught: ["TW8073", "TW8010"],
    },
    {
      name: "a descriptor that differs from lane to lane",
      change: ["cvt.u64.u32 %descB, %b;", "add.s32 %b, %b, %chunk;\n  cvt.u64.u32 %descB, %b;"],
      caught: "TW8074",
    },
    {
      name: "an operand taken as transposed",
      change: ["1, 1, 1, 0, 0;", "1, 1, 1, 0, 1;"],
      caught: ["TW8073", "TW8010", "TW8013"],
    },
    { name: "a negated operand", change: ["1, 1, 1, 0, 0;", "1, 1, -1, 0, 0;"], caught: "result" },
    {
      name: "one warp of the warpgroup skips wgmma",
      change: [
        "  wgmma.mma_async",
        "  setp.ge.u32 %skip, %lane, 96;\n  @%skip bra $skip;\n  wgmma.mma_async",
      ],
      caught: ["TW8072", "TW8020"],
    },
    {
      name: "the swizzle forgotten in the stores",
      change: ["xor.b32 %chunk, %chunk, %turned;", "or.b32 %chunk, %chunk, 0;"],
      caught: "result",
    },
    {
      name: "operands overwritten while wgmma reads them",
      change: [
        "  wgmma.wait_group.sync.aligned 0;\n",
        "  @%few st.shared.b32 [%row], %w0;\n  wgmma.wait_group.sync.aligned 0;\n",
      ],
      caught: ["TW8014", "TW8015"],
    },
  ],
};

const values = made(128, (index) => (index * 71) % 257);

const cluster: PlantedKernel = {
  name: "cluster",
  blocks: [4, 1, 1],
  threads: [32, 1, 1],
  cluster: 2,
  arguments: [input("input", Int32Array.from(values)), output("output", new Int32Array(128))],
  text: module(`cluster (.param .u64 input, .param .u64 output)
.reqnctapercluster 2, 1, 1
{
  .reg .b32 %lane, %block, %rank, %value, %slot, %there, %index;
  .reg .b64 %from, %to, %step;
  .shared .align 16 .b8 tile[128];
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %rank, %cluster_ctarank;
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  mad.lo.s32 %index, %block, 32, %lane;
  mul.wide.u32 %step, %index, 4;
  add.s64 %from, %from, %step;
  add.s64 %to, %to, %step;
  ld.global.b32 %value, [%from];
  mov.u32 %slot, tile;
  mad.lo.s32 %slot, %lane, 4, %slot;
  st.shared.b32 [%slot], %value;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  xor.b32 %rank, %rank, 1;
  mapa.shared::cluster.u32 %there, %slot, %rank;
  ld.shared::cluster.b32 %value, [%there];
  st.global.b32 [%to], %value;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
}`),
  check(results) {
    const expected = made(128, (index) => at(values, index ^ 32));
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no cluster barrier before reading another block",
      change: [
        "  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n",
        "",
      ],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a barrier of the block for one of the cluster",
      change: [
        "barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;",
        "bar.sync 0;",
      ],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "an arrival without release",
      change: ["arrive.release.aligned", "arrive.relaxed.aligned"],
      caught: "TW8014",
    },
    {
      name: "a wait without an arrival",
      change: ["  barrier.cluster.arrive.release.aligned;\n", ""],
      caught: "TW8080",
    },
    {
      name: "two arrivals and one wait",
      change: ["  barrier.cluster.wait.acquire.aligned;\n", ""],
      caught: ["TW8080", "TW8014", "TW8013"],
    },
    {
      name: "a rank that the cluster does not have",
      change: ["xor.b32 %rank, %rank, 1;", "add.s32 %rank, %rank, 2;"],
      caught: "TW8010",
    },
    {
      name: "blocks that end while others still read them",
      change: ["  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n", ""],
      caught: ["TW8010", "TW8014"],
    },
    {
      name: "its own memory for the other block's",
      change: ["xor.b32 %rank, %rank, 1;", "xor.b32 %rank, %rank, 0;"],
      caught: "result",
    },
  ],
};

const warp: PlantedKernel = {
  name: "warp",
  blocks: [1, 1, 1],
  threads: [32, 1, 1],
  arguments: [input("input", Int32Array.from(values)), output("output", new Int32Array(64))],
  text: module(`warp (.param .u64 input, .param .u64 output)
{
  .reg .pred %half;
  .reg .b32 %lane, %value, %sum, %slot, %row, %matrix;
  .reg .b64 %from, %to, %step;
  .shared .align 16 .b8 tile[128];
  mov.u32 %lane, %tid.x;
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 4;
  add.s64 %from, %from, %step;
  mul.wide.u32 %step, %lane, 8;
  add.s64 %to, %to, %step;
  ld.global.b32 %value, [%from];
  mov.u32 %slot, tile;
  and.b32 %row, %lane, 7;
  mad.lo.s32 %row, %row, 16, %slot;
  mad.lo.s32 %slot, %lane, 4, %slot;
  st.shared.b32 [%slot], %value;
  bar.warp.sync 0xffffffff;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%matrix}, [%row];
  setp.lt.u32 %half, %lane, 16;
  mov.b32 %sum, 0;
  @!%half bra $others;
  redux.sync.add.s32 %sum, %value, 0x0000ffff;
$others:
  shfl.sync.bfly.b32 %value, %sum, 16, 31, 0xffffffff;
  add.s32 %sum, %sum, %value;
  st.global.v2.b32 [%to], {%matrix, %sum};
  ret;
}`),
  check(results) {
    const total = made(16, (lane) => at(values, lane)).reduce((a, b) => a + b);
    const expected = made(64, (index) => (index % 2 === 0 ? at(values, index >> 1) : total));
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "a mask of lanes that are not there",
      change: ["%value, 0x0000ffff;", "%value, 0x0003ffff;"],
      caught: ["TW8021", "TW8020"],
    },
    {
      name: "a shuffle in divergent code with a full mask",
      change: [
        "  @!%half bra $others;\n",
        "  @!%half bra $others;\n  shfl.sync.bfly.b32 %sum, %value, 1, 31, 0xffffffff;\n",
      ],
      caught: ["TW8021", "TW8020"],
    },
    {
      name: "ldmatrix in divergent code",
      change: ["  ldmatrix.sync", "  setp.ne.s32 %half, %lane, 3;\n  @%half ldmatrix.sync"],
      caught: ["TW8021", "TW8020"],
    },
    {
      name: "a misaligned row of ldmatrix",
      change: ["mad.lo.s32 %row, %row, 16, %slot;", "mad.lo.s32 %row, %row, 8, %slot;"],
      caught: "TW8011",
    },
    {
      name: "a row of ldmatrix outside of the tile",
      change: ["mad.lo.s32 %row, %row, 16, %slot;", "mad.lo.s32 %row, %row, 32, %slot;"],
      caught: ["TW8010", "TW8013"],
    },
    {
      name: "a shuffle by the wrong distance",
      change: ["%sum, 16, 31,", "%sum, 8, 31,"],
      caught: "result",
    },
  ],
};

const budget: PlantedKernel = {
  name: "budget",
  blocks: [1, 1, 1],
  threads: [256, 1, 1],
  arguments: [output("output", new Uint32Array(256))],
  text: module(`budget (.param .u64 output)
.reqntid 256, 1, 1
.minnctapersm 2
{
  .reg .pred %second;
  .reg .b32 %lane, %value;
  .reg .b64 %to, %step;
  mov.u32 %lane, %tid.x;
  ld.param.u64 %to, [output];
  mul.wide.u32 %step, %lane, 4;
  add.s64 %to, %to, %step;
  mov.b32 %value, 1;
  setp.ge.u32 %second, %lane, 128;
  @%second bra $second;
  setmaxnreg.dec.sync.aligned.u32 40;
  bra $end;
$second:
  setmaxnreg.inc.sync.aligned.u32 216;
  mov.b32 %value, 2;
$end:
  st.global.b32 [%to], %value;
  ret;
}`),
  check(results) {
    expect([...results.numbers("output")]).toEqual(made(256, (lane) => (lane < 128 ? 1 : 2)));
  },
  bugs: [
    {
      name: "registers taken that nobody gives back",
      change: ["  setmaxnreg.dec.sync.aligned.u32 40;\n", ""],
      caught: ["TW8022", "TW8020"],
    },
    {
      name: "more registers taken than were given back",
      change: ["u32 216", "u32 232"],
      caught: ["TW8022", "TW8020"],
    },
    { name: "a decrease above what the warp has", change: ["u32 40", "u32 200"], caught: "TW8022" },
    {
      name: "an increase below what the warp has",
      change: ["u32 216", "u32 64"],
      caught: "TW8022",
    },
  ],
};

export const collectiveKernels: readonly PlantedKernel[] = [product, cluster, warp, budget];
