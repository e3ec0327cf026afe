import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const lanes = Array.from({ length: 64 }, (_, lane) => lane);

/** The word that all lanes work on, and the old values that they saw. */
function apply(
  start: number,
  text: string,
): { readonly word: number; readonly old: readonly number[] } {
  const { arrays, result } = runBlocks({
    body: `mov.u32 %r0, %tid.x; mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d1, %d8; mov.b32 %r1, 0;
      ${text} st.global.b32 [%d8], %r1; ret;`,
    arrays: [Uint32Array.from([start]), new Uint32Array(64)],
    threads: 64,
  });
  expect(result.findings).toEqual([]);
  return { word: arrays[0]?.[0] ?? -1, old: [...(arrays[1] ?? [])] };
}

function bitsOf(value: number): number {
  return new Uint32Array(new Float32Array([value]).buffer)[0] ?? 0;
}

describe("atom", () => {
  test("add gives each lane another old value", () => {
    const { word, old } = apply(5, "atom.global.add.u32 %r1, [%d0], 1;");
    expect(word).toBe(69);
    expect([...old].sort((a, b) => a - b)).toEqual(lanes.map((lane) => lane + 5));
  });

  test.each([
    ["min.s32", 0xffffffff, 0xffffffff],
    ["min.u32", 40, 0],
    ["max.s32", 0xffffffff, 63],
    ["max.u32", 0xffffffff, 0xffffffff],
    ["or.b32", 64, 127],
    ["and.b32", 0xff, 0],
    ["xor.b32", 9, 9],
  ])("%s", (operation, start, expected) => {
    expect(apply(start, `red.global.${operation} [%d0], %r0;`).word).toBe(expected);
  });

  test("inc and dec wrap at their bound", () => {
    expect(apply(0, "atom.global.inc.u32 %r1, [%d0], 9;").word).toBe(64 % 10);
    expect(apply(3, "atom.global.dec.u32 %r1, [%d0], 9;").word).toBe((((3 - 64) % 10) + 10) % 10);
  });

  test("exch and cas", () => {
    const exchanged = apply(1000, "atom.global.exch.b32 %r1, [%d0], %r0;");
    expect([...exchanged.old, exchanged.word].sort((a, b) => a - b)).toEqual([...lanes, 1000]);
    const swapped = apply(7, "add.s32 %r2, %r0, 100; atom.global.cas.b32 %r1, [%d0], 7, %r2;");
    expect(swapped.old.filter((value) => value === 7)).toHaveLength(1);
    expect(swapped.word).toBeGreaterThanOrEqual(100);
  });

  test("floats", () => {
    const text = ".reg .f32 %f; cvt.rn.f32.u32 %f, %r0; red.global.add.f32 [%d0], %f;";
    expect(apply(bitsOf(0.5), text).word).toBe(bitsOf(2016.5));
    const packed = "mov.b32 %r2, 0x3c004000; red.global.add.noftz.f16x2 [%d0], %r2;";
    expect(apply(0, packed).word).toBe(0x5400_5800);
  });

  test("shared memory and 64 bits", () => {
    const text = `.shared .align 8 .b64 sum; setp.eq.u32 %p0, %r0, 0; mov.b64 %d9, 0;
      @%p0 st.shared.b64 [sum], %d9; bar.sync 0;
      mov.b64 %d10, 0x100000001; atom.shared.add.u64 %d11, [sum], %d10; bar.sync 0;
      ld.shared.b64 %d12, [sum]; mov.b64 {%r2, %r3}, %d12; add.s32 %r1, %r2, %r3;`;
    expect(apply(0, text).old).toEqual(lanes.map(() => 128));
  });

  test("a vector of floats at once", () => {
    const { arrays } = runBlocks({
      body: ".reg .f32 %f<2>; mov.b32 %f0, 0f3F800000; mov.b32 %f1, 0f40000000; red.global.add.v2.f32 [%d0], {%f0, %f1}; ret;",
      arrays: [new Uint32Array(2)],
    });
    expect([...(arrays[0] ?? [])]).toEqual([bitsOf(32), bitsOf(64)]);
  });
});

describe("128 bits", () => {
  /** Four words of memory that the first lane works on, and what it got back. */
  function applyQuad(start: readonly number[], text: string): readonly (readonly number[])[] {
    const { arrays, result } = runBlocks({
      body: `.reg .b128 %q<4>; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 ret;
        mov.b64 %d8, 0x0000000200000001; mov.b64 %d9, 0x0000000400000003; mov.b128 %q0, {%d8, %d9};
        mov.b128 %q1, {%d9, %d8}; ${text} st.global.b128 [%d1], %q2; ret;`,
      arrays: [Uint32Array.from(start), new Uint32Array(4)],
      threads: 32,
    });
    expect(result.findings).toEqual([]);
    return [[...(arrays[0] ?? [])], [...(arrays[1] ?? [])]];
  }

  test("exch", () => {
    const [memory, old] = applyQuad([9, 8, 7, 6], "atom.global.exch.b128 %q2, [%d0], %q0;");
    expect(memory).toEqual([1, 2, 3, 4]);
    expect(old).toEqual([9, 8, 7, 6]);
  });

  test.each([
    [
      [1, 2, 3, 4],
      [3, 4, 1, 2],
    ],
    [
      [1, 2, 3, 5],
      [1, 2, 3, 5],
    ],
    [
      [0, 2, 3, 4],
      [0, 2, 3, 4],
    ],
  ])("cas of %j", (start, expected) => {
    const [memory, old] = applyQuad(start, "atom.global.cas.b128 %q2, [%d0], %q0, %q1;");
    expect(memory).toEqual(expected);
    expect(old).toEqual(start);
  });
});
