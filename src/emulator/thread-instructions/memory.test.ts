import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const words = Uint32Array.from({ length: 16 }, (_, at) => (0x8f01f203 * (at + 1)) >>> 0);
const bytes = new Uint8Array(words.buffer);

/** What one lane stores to the second array. */
function run(body: string, module = ""): Uint32Array {
  const { arrays, result } = runBlocks({
    body: `${body} ret;`,
    module,
    arrays: [words, new Uint32Array(16)],
    threads: 1,
  });
  expect(result.findings).toEqual([]);
  return arrays[1] ?? new Uint32Array();
}

describe("loads and stores", () => {
  test("extend narrow elements by their type", () => {
    const body = `ld.global.u8 %r0, [%d0+3]; ld.global.s8 %r1, [%d0+3]; ld.global.u16 %r2, [%d0+2];
      ld.global.s16 %r3, [%d0+2]; ld.global.s8 %d8, [%d0+3]; ld.global.s8 %h0, [%d0+3];
      st.global.v4.b32 [%d1], {%r0, %r1, %r2, %r3}; st.global.b64 [%d1+16], %d8; st.global.b16 [%d1+24], %h0;`;
    const byte = bytes[3] ?? 0;
    const half = byte * 256 + (bytes[2] ?? 0);
    const signed = (byte << 24) >> 24;
    expect([...run(body).slice(0, 7)]).toEqual([
      byte,
      signed >>> 0,
      half,
      ((half << 16) >> 16) >>> 0,
      signed >>> 0,
      0xffffffff,
      signed & 0xffff,
    ]);
  });

  test("move vectors of every width", () => {
    const body = `.reg .b8 %b<4>; .reg .b16 %s<4>;
      ld.global.v2.b64 {%d8, %d9}, [%d0]; st.global.v2.b64 [%d1+16], {%d9, %d8};
      ld.global.v4.u8 {%s0, %s1, %s2, %s3}, [%d0+4]; st.global.v4.u8 [%d1], {%s3, %s2, %s1, %s0};
      ld.global.v2.u16 {%s0, %s1}, [%d0+8]; st.global.v2.u16 [%d1+4], {%s1, %s0};`;
    const [, second = 0, third = 0] = words;
    const swapped = new DataView(new ArrayBuffer(4));
    swapped.setUint32(0, second, true);
    expect([...run(body).slice(0, 8)]).toEqual([
      swapped.getUint32(0, false),
      (((third & 0xffff) << 16) | (third >>> 16)) >>> 0,
      0,
      0,
      words[2],
      words[3],
      words[0],
      words[1],
    ]);
  });

  test("reach shared, local, constant and parameter memory through generic addresses", () => {
    const module = `.const .align 4 .b32 table[3] = {11, 22, 33}; .global .align 4 .b32 counter = 5;`;
    const body = `.shared .align 4 .b32 tile; .local .align 4 .b8 stack[16];
      mov.b32 %r0, 7; mov.u64 %d8, tile; cvta.shared.u64 %d8, %d8; st.b32 [%d8], %r0; ld.shared.b32 %r1, [tile];
      mov.b32 %r0, 8; mov.u64 %d9, stack; cvta.local.u64 %d9, %d9; st.b32 [%d9+4], %r0; ld.local.b32 %r2, [stack+4];
      mov.u64 %d10, table; cvta.const.u64 %d10, %d10; ld.b32 %r3, [%d10+8];
      ld.global.b32 %r4, [counter]; mov.u64 %d11, counter; ld.global.b32 %r5, [%d11];
      isspacep.shared %p0, %d8; isspacep.global %p1, %d8; isspacep.local %p2, %d9; isspacep.global %p3, %d1;
      selp.b32 %r6, 1, 0, %p0; selp.b32 %r7, 1, 0, %p1; selp.b32 %r8, 1, 0, %p2; selp.b32 %r9, 1, 0, %p3;
      st.global.v4.b32 [%d1], {%r1, %r2, %r3, %r4}; st.global.b32 [%d1+16], %r5;
      st.global.v4.b32 [%d1+32], {%r6, %r7, %r8, %r9};
      mov.b64 %d12, p1; cvta.param.u64 %d12, %d12; ld.b64 %d13, [%d12]; sub.s64 %d13, %d13, %d1;
      cvt.u32.u64 %r10, %d13; st.global.b32 [%d1+20], %r10;`;
    expect([...run(body, module).slice(0, 12)]).toEqual([7, 8, 33, 5, 5, 0, 0, 0, 1, 0, 1, 1]);
  });

  test("keep variables of the module from launch to launch of one memory", () => {
    const module = ".global .align 8 .b64 place = table; .global .align 4 .b32 table[2] = {1, 2};";
    const body = `ld.global.b64 %d8, [place]; ld.global.b32 %r0, [%d8+4]; st.global.b32 [%d1], %r0;`;
    expect(run(body, module)[0]).toBe(2);
  });

  test("give each lane local memory of its own", () => {
    const { arrays } = runBlocks({
      body: `.local .align 4 .b8 stack[64]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 15; shl.b32 %r1, %r1, 2;
        mov.u32 %r2, stack; add.s32 %r2, %r2, %r1; st.local.b32 [%r2], %r0; ld.local.b32 %r3, [%r2];
        mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8; st.global.b32 [%d8], %r3; ret;`,
      arrays: [new Uint32Array(64)],
      threads: 64,
    });
    expect([...(arrays[0] ?? [])]).toEqual(Array.from({ length: 64 }, (_, lane) => lane));
  });
});

describe("special registers", () => {
  test("say where a lane is", () => {
    const names = ["%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid", "%warpid", "%nwarpid"];
    const masks = ["%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge"];
    const all = [...names, ...masks];
    const { arrays } = runBlocks({
      body: `mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.s32 %r0, %r1, 40, %r0;
        mul.wide.u32 %d8, %r0, ${4 * all.length}; add.s64 %d8, %d0, %d8;
        ${all.map((name, at) => `mov.u32 %r2, ${name}; st.global.b32 [%d8+${4 * at}], %r2;`).join("\n")} ret;`,
      arrays: [new Uint32Array(3 * 40 * all.length)],
      blocks: 3,
      threads: 40,
    });
    const lane = (index: number): readonly number[] =>
      [...(arrays[0] ?? [])].slice(index * all.length, (index + 1) * all.length);
    expect(lane(0)).toEqual([0, 40, 0, 3, 0, 0, 2, 1, 0, 1, 0xfffffffe, 0xffffffff]);
    expect(lane(2 * 40 + 35)).toEqual([35, 40, 2, 3, 3, 1, 2, 8, 7, 15, 0xfffffff0, 0xfffffff8]);
  });
});
