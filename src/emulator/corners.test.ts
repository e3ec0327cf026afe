/** Single instructions where they are easily got wrong: signs, zeros, empty sets, bounds, lanes apart. */
import { describe, expect, test } from "vitest";
import { runBlocks } from "../../test/support/emulated-blocks.ts";
import { runLanes } from "../../test/support/emulated-lanes.ts";

/** What the body leaves in %r1 of each of 64 lanes; %r0 is the lane's number. */
function perLane(body: string): readonly number[] {
  const { arrays, result } = runBlocks({
    body: `mov.u32 %r0, %tid.x; mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8;
      ${body} st.global.b32 [%d8], %r1; ret;`,
    arrays: [new Uint32Array(64)],
    threads: 64,
  });
  expect(result.findings).toEqual([]);
  return [...(arrays[0] ?? [])];
}

/** The 64-bit word that lane 5 alone works on, and the old one that it saw. */
function wideAtomic(text: string, start: bigint): readonly bigint[] {
  const words = new BigUint64Array([BigInt.asUintN(64, start), 0n]);
  const { arrays } = runBlocks({
    body: `mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 5; @%p0 exit;
      mov.b64 %d1, -3; ${text} st.global.b64 [%d0+8], %d2; ret;`,
    arrays: [new Uint32Array(words.buffer)],
  });
  return [...new BigInt64Array((arrays[0] ?? new Uint32Array(4)).slice().buffer)];
}

describe("atomics of 64 bits", () => {
  test.each([
    ["min.s64", 7n, -3n],
    ["min.u64", 7n, 7n],
    ["max.s64", -9n, -3n],
    ["max.u64", -9n, -3n],
    ["add.u64", 2n ** 32n, 2n ** 32n - 3n],
    ["xor.b64", -1n, 2n],
    ["exch.b64", 2n ** 40n, -3n],
  ])("%s", (operation, start, expected) => {
    const text = `atom.global.${operation} %d2, [%d0], %d1;`;
    expect(wideAtomic(text, start)).toEqual([expected, start]);
  });
});

describe("carries", () => {
  const cases = [
    [0xffff_ffff_ffff_ffffn, 1n],
    [0x8000_0000n, 0x8000_0000n],
    [0x7fff_ffff_7fff_ffffn, 0x7fff_ffffn],
    [5n, 7n],
    [0x1_0000_0000n, 1n],
  ] as const;
  const halves = "mov.b64 {%t0, %t1}, %i0; mov.b64 {%t2, %t3}, %i1;";

  test("of sums of 32 bits reach the next sum", () => {
    const body = `.reg .b32 %t<8>; ${halves} add.cc.u32 %t4, %t0, %t2; addc.cc.u32 %t5, %t1, %t3;
      addc.u32 %t6, 0, 0; mov.b64 %o0, {%t4, %t5}; cvt.u64.u32 %o1, %t6;`;
    const results = runLanes({ inputs: ["b64", "b64"], outputs: ["b64", "b64"], body }, cases);
    const sums = cases.map(([a, b]) => [BigInt.asUintN(64, a + b), (a + b) >> 64n]);
    expect(results).toEqual(sums);
  });

  test("of differences of 64 bits reach the next difference", () => {
    const body = "sub.cc.u64 %o0, %i0, %i1; subc.u64 %o1, 9, 0;";
    const results = runLanes({ inputs: ["b64", "b64"], outputs: ["b64", "b64"], body }, cases);
    const differences = cases.map(([a, b]) => [BigInt.asUintN(64, a - b), a < b ? 8n : 9n]);
    expect(results).toEqual(differences);
  });
});

describe("selections and parts", () => {
  test("slct takes the first operand where the third is not negative", () => {
    const program = { inputs: ["b32"], outputs: ["b32"] } as const;
    const body = "slct.b32.s32 %o0, 11, 22, %i0;";
    expect(runLanes({ ...program, body }, [[0n], [1n], [-1n]])).toEqual([[11n], [11n], [22n]]);
  });

  test("mov takes a register apart, the lowest part first", () => {
    const program = { inputs: ["b64"], outputs: ["b16", "b16", "b16", "b16"] } as const;
    const body = "mov.b64 {%o0, %o1, %o2, %o3}, %i0;";
    expect(runLanes({ ...program, body }, [[0x4444_3333_2222_1111n]])).toEqual([
      [0x1111n, 0x2222n, 0x3333n, 0x4444n],
    ]);
    const halves = { inputs: ["b32"], outputs: ["b16", "b16"] } as const;
    const apart = { ...halves, body: "mov.b32 {%o0, %o1}, %i0;" };
    expect(runLanes(apart, [[0xabcd_1234n]])).toEqual([[0x1234n, 0xabcdn]]);
  });

  test("satfinite keeps the sign of what it bounds", () => {
    const program = { inputs: ["b32", "b32"], outputs: ["b32"] } as const;
    const body = "cvt.rn.satfinite.f16x2.f32 %o0, %i0, %i1;";
    const [large, small] = [0x7f000000n, 0xff000000n];
    expect(runLanes({ ...program, body }, [[large, small]])).toEqual([[0x7bff_fbffn]]);
  });
});

describe("lanes together and apart", () => {
  test("vote.uni holds where no lane's predicate does", () => {
    const body = `setp.gt.u32 %p0, %r0, 100; vote.sync.uni.pred %p1, %p0, -1;
      selp.b32 %r1, 1, 0, %p1;`;
    expect(perLane(body)).toEqual(new Array(64).fill(1));
  });

  test("local memory belongs to a lane across a barrier", () => {
    const body = `.local .align 4 .b32 own; st.local.b32 [own], %r0; bar.sync 0;
      ld.local.b32 %r1, [own];`;
    expect(perLane(body)).toEqual(Array.from({ length: 64 }, (_, lane) => lane));
  });

  test.each(["-1", "%r5"])("a shuffle waits for lanes that are late, mask %s", (mask) => {
    const body = `mov.b32 %r5, -1; and.b32 %r2, %r0, 31; mov.b32 %r3, 0;
      setp.lt.u32 %p0, %r2, 16; @%p0 bra $meet;
      $spin: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 9000; @%p1 bra $spin;
      $meet: shfl.sync.bfly.b32 %r1, %r3, 16, 31, ${mask};`;
    expect(perLane(body)).toEqual(
      Array.from({ length: 64 }, (_, lane) => ((lane & 16) === 0 ? 9000 : 0)),
    );
  });

  test("lanes that wait for each other at two instructions are found out", () => {
    const body = `and.b32 %r2, %r0, 1; setp.eq.u32 %p0, %r2, 0; @%p0 bra $even;
      shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; bra $end;
      $even: shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;
      $end: `;
    expect(() => perLane(body)).toThrow("TW8021");
  });

  test("an access that only begins in an array is outside", () => {
    const body = "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0]; ret;";
    const run = (words: number) => runBlocks({ body, arrays: [new Uint32Array(words)] });
    expect(() => run(2)).toThrow("TW8010");
    expect(run(4).result.findings).toEqual([]);
  });
});

describe("registers of the wrong kind", () => {
  test.each([
    ["setp.lt.s32 %r1, %r0, 5;", "setp.lt.s32"],
    ["selp.b32 %r1, 1, 2, %r0;", "selp.b32"],
    ["and.pred %p1, %p0, %r0;", "and.pred"],
    ["cvt.f32.s32 %p0, %r0;", "cvt.f32.s32"],
    ["cvt.u64.u32 %p0, %r0;", "cvt.u64.u32"],
    ["cvt.f64.s32 %r1, %r0;", "cvt.f64.s32"],
    ["shfl.sync.bfly.b32 1, %r0, 4, 31, -1;", "shfl.sync.bfly.b32"],
  ])("%s is refused", (line, opcode) => {
    const body = `mov.u32 %r0, 1; setp.eq.u32 %p0, %r0, 1; ${line} ret;`;
    expect(() => runBlocks({ body, arrays: [] })).toThrow(
      `TW8001: the emulator cannot run ${opcode}`,
    );
  });
});

test("the clock goes on between two looks at it", () => {
  const between = "add.u32 %r2, %r0, 1; add.u32 %r2, %r2, 1; add.u32 %r2, %r2, 1;";
  const spent = perLane(
    `mov.u32 %r3, %clock; ${between} mov.u32 %r4, %clock; sub.u32 %r1, %r4, %r3;`,
  );
  expect(Math.min(...spent)).toBeGreaterThanOrEqual(3);
});
