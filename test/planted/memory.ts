/** Ordinary accesses, barriers of a block, flags between blocks. */
import { expect } from "vitest";
import { at, input, made, output, scalar } from "../foreign/case.ts";
import { module } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

const count = 100;
const values = made(128, (index) => index * index - 50 * index);

const exchange: PlantedKernel = {
  name: "exchange",
  blocks: [2, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    input("input", Int32Array.from(values.slice(0, count))),
    output("output", new Int32Array(128)),
    scalar(count),
  ],
  text: module(`exchange (.param .u64 input, .param .u64 output, .param .u32 count)
{
  .reg .pred %inside, %bad;
  .reg .b32 %lane, %index, %limit, %value, %base, %slot, %other, %low, %high;
  .reg .b64 %from, %to, %step;
  .shared .align 16 .b8 tile[256];
  mov.u32 %lane, %tid.x;
  mov.u32 %index, %ctaid.x;
  mad.lo.s32 %index, %index, 64, %lane;
  ld.param.u32 %limit, [count];
  ld.param.u64 %from, [input];
  ld.param.u64 %to, [output];
  setp.gt.s32 %bad, %limit, 1000;
  @%bad trap;
  setp.lt.s32 %inside, %index, %limit;
  mul.wide.s32 %step, %index, 4;
  add.s64 %from, %from, %step;
  mov.b32 %value, 7;
  @%inside ld.global.b32 %value, [%from];
  mov.u32 %base, tile;
  shl.b32 %slot, %lane, 2;
  add.s32 %slot, %slot, %base;
  st.shared.b32 [%slot], %value;
  bar.sync 0;
  xor.b32 %other, %lane, 62;
  shl.b32 %other, %other, 2;
  and.b32 %other, %other, 248;
  add.s32 %other, %other, %base;
  ld.shared.v2.b32 {%low, %high}, [%other];
  sub.s32 %low, %high, %low;
  add.s64 %to, %to, %step;
  st.global.b32 [%to], %low;
  ret;
}`),
  check(results) {
    const loaded = made(128, (index) => (index < count ? at(values, index) : 7));
    const expected = made(128, (index) => {
      const pair = (index & 64) | ((index ^ 62) & 62);
      return at(loaded, pair + 1) - at(loaded, pair);
    });
    expect([...results.numbers("output")]).toEqual(expected);
  },
  bugs: [
    {
      name: "no barrier between store and load",
      change: ["  bar.sync 0;\n", ""],
      caught: "TW8014",
    },
    {
      name: "a barrier before the store, not behind it",
      change: [
        "  st.shared.b32 [%slot], %value;\n  bar.sync 0;\n",
        "  bar.sync 0;\n  st.shared.b32 [%slot], %value;\n",
      ],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a barrier that only some lanes of a warp reach",
      change: ["  bar.sync 0;\n", "  setp.lt.s32 %bad, %lane, 40;\n  @%bad bar.sync 0;\n"],
      caught: "TW8021",
    },
    {
      name: "a barrier for more lanes than there are",
      change: ["bar.sync 0;", "bar.sync 0, 96;"],
      caught: "TW8020",
    },
    {
      name: "warps at barriers of different numbers",
      change: ["bar.sync 0;", "shr.u32 %high, %lane, 5;\n  bar.sync %high, 64;"],
      caught: "TW8020",
    },
    {
      name: "a barrier of one warp alone",
      change: ["bar.sync 0;", "shr.u32 %high, %lane, 5;\n  bar.sync %high, 32;"],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "no guard at the end of the array",
      change: ["@%inside ld.global", "ld.global"],
      caught: "TW8010",
    },
    {
      name: "a guard that lets one element too many in",
      change: ["setp.lt.s32 %inside", "setp.le.s32 %inside"],
      caught: "TW8010",
    },
    {
      name: "an address before the array",
      change: [
        "@%inside ld.global.b32 %value, [%from];",
        "@%inside ld.global.b32 %value, [%from+-4];",
      ],
      caught: "TW8010",
    },
    {
      name: "a shared address behind the variable",
      change: ["st.shared.b32 [%slot], %value;", "st.shared.b32 [%slot+4], %value;"],
      caught: ["TW8010", "TW8013"],
    },
    {
      name: "a misaligned shared address",
      change: ["st.shared.b32 [%slot]", "st.shared.b32 [%slot+2]"],
      caught: "TW8011",
    },
    {
      name: "a vector at an address for its elements only",
      change: ["and.b32 %other, %other, 248;", "and.b32 %other, %other, 244;"],
      caught: "TW8011",
    },
    {
      name: "a misaligned global address",
      change: [
        "add.s64 %from, %from, %step;",
        "add.s64 %from, %from, %step;\n  add.s64 %from, %from, 1;",
      ],
      caught: "TW8011",
    },
    {
      name: "shared memory that nothing wrote",
      change: ["  st.shared.b32 [%slot], %value;\n", ""],
      caught: "TW8013",
    },
    {
      name: "a register that only some lanes write",
      change: ["  mov.b32 %value, 7;\n", ""],
      caught: "TW8012",
    },
    {
      name: "a register that no lane writes",
      change: ["  mov.u32 %base, tile;\n", ""],
      caught: "TW8012",
    },
    {
      name: "a trap with its condition turned",
      change: ["@%bad trap;", "@!%bad trap;"],
      caught: "TW8016",
    },
    { name: "a wrong index", change: ["%lane, 62;", "%lane, 60;"], caught: "result" },
    {
      name: "two operands swapped",
      change: ["%low, %high, %low;", "%low, %low, %high;"],
      caught: "result",
    },
    {
      name: "lanes that store to the same place",
      change: [
        "add.s64 %to, %to, %step;",
        "and.b64 %step, %step, 127;\n  add.s64 %to, %to, %step;",
      ],
      caught: "TW8014",
    },
  ],
};

const publish: PlantedKernel = {
  name: "publish",
  blocks: [2, 1, 1],
  threads: [32, 1, 1],
  arguments: [
    output("data", new Int32Array(32)),
    input("flags", new Int32Array(32)),
    output("output", new Int32Array(32)),
    input("counter", new Uint32Array(1)),
  ],
  text: module(`publish (.param .u64 data, .param .u64 flags, .param .u64 output, .param .u64 counter)
{
  .reg .pred %second, %again;
  .reg .b32 %lane, %block, %value, %flag, %old;
  .reg .b64 %data, %flags, %output, %counter, %step;
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mul.wide.u32 %step, %lane, 4;
  ld.param.u64 %data, [data];
  ld.param.u64 %flags, [flags];
  ld.param.u64 %output, [output];
  ld.param.u64 %counter, [counter];
  add.s64 %data, %data, %step;
  add.s64 %flags, %flags, %step;
  add.s64 %output, %output, %step;
  atom.global.add.u32 %old, [%counter], 1;
  setp.eq.s32 %second, %block, 1;
  @%second bra $second;
  mad.lo.s32 %value, %lane, %lane, 5;
  st.global.b32 [%data], %value;
  mov.b32 %flag, 1;
  st.release.gpu.global.b32 [%flags], %flag;
  ret;
$second:
  ld.acquire.gpu.global.b32 %flag, [%flags];
  setp.ne.s32 %again, %flag, 1;
  @%again bra $second;
  ld.global.b32 %value, [%data];
  st.global.b32 [%output], %value;
  ret;
}`),
  check(results) {
    expect([...results.numbers("output")]).toEqual(made(32, (lane) => lane * lane + 5));
    expect([...results.numbers("counter")]).toEqual([64]);
  },
  bugs: [
    {
      name: "a flag stored without release",
      change: ["st.release.gpu.global", "st.relaxed.gpu.global"],
      caught: "TW8014",
    },
    {
      name: "a flag polled without acquire",
      change: ["ld.acquire.gpu.global", "ld.relaxed.gpu.global"],
      caught: "TW8014",
    },
    {
      name: "a release that reaches its own block alone",
      change: ["st.release.gpu.global", "st.release.cta.global"],
      caught: "TW8014",
    },
    {
      name: "an acquire that reaches its own block alone",
      change: ["ld.acquire.gpu.global", "ld.acquire.cta.global"],
      caught: "TW8014",
    },
    {
      name: "atomics of two blocks that reach their own alone",
      change: ["atom.global.add.u32", "atom.relaxed.cta.global.add.u32"],
      caught: "TW8014",
    },
    {
      name: "a flag stored as plain memory",
      change: ["st.release.gpu.global", "st.global"],
      caught: "TW8014",
    },
    {
      name: "a flag of the wrong value",
      change: ["mov.b32 %flag, 1;", "mov.b32 %flag, 2;"],
      caught: "TW8020",
    },
    {
      name: "the flag before the data",
      change: [
        "  st.global.b32 [%data], %value;\n  mov.b32 %flag, 1;\n  st.release.gpu.global.b32 [%flags], %flag;\n",
        "  mov.b32 %flag, 1;\n  st.release.gpu.global.b32 [%flags], %flag;\n  st.global.b32 [%data], %value;\n",
      ],
      caught: ["TW8014", "TW8013"],
    },
    {
      name: "a count without an atomic",
      change: [
        "atom.global.add.u32 %old, [%counter], 1;",
        "ld.global.b32 %old, [%counter];\n  add.s32 %old, %old, 1;\n  st.global.b32 [%counter], %old;",
      ],
      caught: "TW8014",
    },
  ],
};

const total: PlantedKernel = {
  name: "total",
  blocks: [4, 1, 1],
  threads: [64, 1, 1],
  arguments: [
    input("input", Int32Array.from(made(256, (index) => (index * 37) % 101))),
    output("parts", new Int32Array(256)),
    output("sums", new Int32Array(64)),
    input("counter", new Uint32Array(1)),
  ],
  text: module(`total (.param .u64 input, .param .u64 parts, .param .u64 sums, .param .u64 counter)
{
  .reg .pred %other, %early, %more;
  .reg .b32 %lane, %block, %index, %value, %turn, %sum, %row;
  .reg .b64 %input, %parts, %sums, %counter, %step, %column;
  .shared .align 4 .b32 turn;
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mad.lo.s32 %index, %block, 64, %lane;
  mul.wide.u32 %step, %index, 4;
  mul.wide.u32 %column, %lane, 4;
  ld.param.u64 %input, [input];
  ld.param.u64 %parts, [parts];
  ld.param.u64 %sums, [sums];
  ld.param.u64 %counter, [counter];
  add.s64 %input, %input, %step;
  ld.global.b32 %value, [%input];
  add.s64 %step, %parts, %step;
  st.global.b32 [%step], %value;
  fence.acq_rel.gpu;
  bar.sync 0;
  setp.ne.s32 %other, %lane, 0;
  @%other bra $known;
  atom.relaxed.gpu.global.add.u32 %turn, [%counter], 1;
  st.shared.b32 [turn], %turn;
$known:
  bar.sync 0;
  ld.shared.b32 %turn, [turn];
  setp.ne.s32 %early, %turn, 3;
  @%early bra $end;
  // the last block of all
  fence.acq_rel.gpu;
  add.s64 %parts, %parts, %column;
  mov.b32 %sum, 0;
  mov.b32 %row, 0;
$add:
  ld.global.b32 %value, [%parts];
  add.s32 %sum, %sum, %value;
  add.s64 %parts, %parts, 256;
  add.s32 %row, %row, 1;
  setp.lt.s32 %more, %row, 4;
  @%more bra $add;
  add.s64 %sums, %sums, %column;
  st.global.b32 [%sums], %sum;
  @!%other st.global.b32 [%counter], 0;
$end:
  ret;
}`),
  check(results) {
    const sums = made(64, (lane) =>
      made(4, (block) => ((block * 64 + lane) * 37) % 101).reduce((left, right) => left + right),
    );
    expect([...results.numbers("sums")]).toEqual(sums);
    expect([...results.numbers("counter")]).toEqual([0]);
  },
  bugs: [
    {
      name: "no fence before the counter",
      change: ["  fence.acq_rel.gpu;\n  bar.sync 0;\n  setp", "  bar.sync 0;\n  setp"],
      caught: "TW8014",
    },
    {
      name: "a fence before the counter that reaches the block alone",
      change: [
        "  fence.acq_rel.gpu;\n  bar.sync 0;\n  setp",
        "  fence.acq_rel.cta;\n  bar.sync 0;\n  setp",
      ],
      caught: "TW8014",
    },
    {
      name: "no fence behind the counter",
      change: ["  // the last block of all\n  fence.acq_rel.gpu;\n", ""],
      caught: "TW8014",
    },
    {
      name: "no barrier before the counter",
      change: ["  fence.acq_rel.gpu;\n  bar.sync 0;\n  setp", "  fence.acq_rel.gpu;\n  setp"],
      caught: "TW8014",
    },
    {
      name: "a counter that is set back by every block",
      change: [
        "  @%early bra $end;",
        "  @%early st.global.b32 [%counter], 0;\n  @%early bra $end;",
      ],
      caught: "TW8014",
    },
    {
      name: "a turn that the other lanes read before it is there",
      change: ["$known:\n  bar.sync 0;", "$known:"],
      caught: ["TW8014", "TW8013"],
    },
  ],
};

export const memoryKernels: readonly PlantedKernel[] = [exchange, publish, total];
