/** Arithmetic and accesses that GPUs have from sm_100 on: pairs of f32, sums of mixed formats, three operands, 256 bits. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";
import { runLanes, singleBits, singleValue } from "../../../test/support/emulated-lanes.ts";

const seed = 49;

function randomSingles(random: Random, count: number): readonly number[] {
  return Array.from({ length: count }, () => singleValue(BigInt(random.bits())));
}

/** Bits with the NaN of arithmetic. */
function bitsOf(value: number): bigint {
  return Number.isNaN(value) ? 0x7fffffffn : singleBits(value);
}

describe.each(["sm_100a", "sm_120a"] as const)("on %s", (target) => {
  const values = [0, -0, 1, -1.5, Infinity, NaN, 2 ** -149, 2 ** 127, 0.1];
  const random = new Random(seed);
  const rows = [...values, ...randomSingles(random, 60)].map((value, at, all) =>
    [value, all.at(at - 1) ?? 0, all.at(at - 2) ?? 0, ...randomSingles(random, 3)].map(Math.fround),
  );

  test.each([
    ["add.f32x2", 2, (a: number, b: number) => a + b],
    ["sub.rn.f32x2", 2, (a: number, b: number) => a - b],
    ["mul.rn.f32x2", 2, (a: number, b: number) => a * b],
  ] as const)("%s", (opcode, _count, operation) => {
    const found = runLanes(
      { inputs: ["b64", "b64"], outputs: ["b64"], body: `${opcode} %o0, %i0, %i1;`, target },
      rows.map(([a = 0, b = 0, c = 0, d = 0]) => [
        singleBits(a) | (singleBits(b) << 32n),
        singleBits(c) | (singleBits(d) << 32n),
      ]),
    );
    expect(found.flat(), `seed ${seed}`).toEqual(
      rows.map(
        ([a = 0, b = 0, c = 0, d = 0]) =>
          bitsOf(Math.fround(operation(a, c))) | (bitsOf(Math.fround(operation(b, d))) << 32n),
      ),
    );
  });

  test("fma.rn.f32x2 rounds once, and .ftz flushes both halves", () => {
    const body = "fma.rn.f32x2 %o0, %i0, %i1, %i2; fma.rn.ftz.f32x2 %o1, %i0, %i1, %i2;";
    // (1 + 2^-12)² = 1 + 2^-11 + 2^-24, of which the last is lost where the product is rounded.
    const near = singleBits(1 + 2 ** -12);
    const tiny = singleBits(2 ** -140);
    const one = singleBits(1);
    const pair = (low: bigint, high: bigint): bigint => low | (high << 32n);
    const [[fused, flushed] = []] = runLanes(
      { inputs: ["b64", "b64", "b64"], outputs: ["b64", "b64"], body, target },
      [[pair(near, tiny), pair(near, one), pair(singleBits(-1 - 2 ** -11), 0n)]],
    );
    expect(fused).toBe(pair(singleBits(2 ** -24), tiny));
    expect(flushed).toBe(pair(singleBits(2 ** -24), 0n));
  });

  test("sums of f32 and a narrower operand", () => {
    const body = `add.rn.f32.f16 %o0, %i0, %i1; sub.f32.bf16 %o1, %i0, %i1;
      fma.rn.f32.bf16 %o2, %i0, %i0, %i1; add.rz.sat.f32.f16 %o3, %i0, %i1;`;
    const cases = [
      [0x3c01, 0.25],
      [0xbf80, 2 ** -30],
      [0x0001, 1],
    ] as const;
    const half = (code: number): number =>
      code === 1 ? 2 ** -24 : code === 0x3c01 ? 1 + 2 ** -10 : -(1 + 7 / 8);
    const bfloat = (code: number): number => singleValue(BigInt(code) << 16n);
    const found = runLanes(
      { inputs: ["b16", "b32"], outputs: ["b32", "b32", "b32", "b32"], body, target },
      cases.map(([code, single]) => [BigInt(code), singleBits(single)]),
    );
    const cut = (value: number): number => {
      const near = Math.fround(value);
      const isAbove = Math.abs(near) > Math.abs(value);
      return isAbove ? singleValue(singleBits(near) - 1n) : near;
    };
    expect(found).toEqual(
      cases.map(([code, single]) => [
        singleBits(Math.fround(half(code) + single)),
        singleBits(Math.fround(bfloat(code) - single)),
        singleBits(Math.fround(bfloat(code) ** 2 + single)),
        singleBits(Math.max(0, Math.min(1, cut(half(code) + single)))),
      ]),
    );
  });

  test("extremes of three, where NaN loses or wins", () => {
    const body = `max.f32 %o0, %i0, %i1, %i2; min.f32 %o1, %i0, %i1, %i2;
      max.NaN.f32 %o2, %i0, %i1, %i2; min.abs.f32 %o3, %i0, %i1, %i2;`;
    const cases = [
      [1, -5, 3],
      [NaN, -5, -7],
      [NaN, NaN, NaN],
      [-0, 0, -0],
    ];
    const found = runLanes(
      { inputs: ["b32", "b32", "b32"], outputs: ["b32", "b32", "b32", "b32"], body, target },
      cases.map((row) => row.map(singleBits)),
    );
    const expected = [
      [3, -5, 3, 1],
      [-5, -7, NaN, 5],
      [NaN, NaN, NaN, NaN],
      [0, -0, 0, 0],
    ];
    expect(found).toEqual(expected.map((row) => row.map(bitsOf)));
  });

  test("256 bits at a time, with elements that nobody wants", () => {
    const input = Uint32Array.from({ length: 32 * 16 }, () => random.bits());
    const body = `mov.u32 %r9, %tid.x; mul.wide.u32 %d8, %r9, 64; add.s64 %d9, %d1, %d8; add.s64 %d8, %d0, %d8;
      ld.global.v8.b32 {%r0,%r1,_,%r3,%r4,%r5,%r6,%r7}, [%d8]; mov.b32 %r2, %r9;
      ld.global.L1::no_allocate.L2::evict_last.v4.b64 {%d4,%d5,%d6,%d7}, [%d8+32];
      st.global.v4.b64 [%d9], {%d7,%d6,%d5,%d4};
      st.global.v8.b32 [%d9+32], {%r7,%r6,%r5,%r4,%r3,%r2,%r1,%r0}; ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [input, new Uint32Array(input.length)],
      target,
    });
    expect(result.findings).toEqual([]);
    const expected = Array.from({ length: 32 }, (_, lane) => {
      const own = [...input.slice(16 * lane, 16 * lane + 16)];
      const [low, high] = [own.slice(0, 8), own.slice(8)];
      low[2] = lane;
      const pairs = [6, 4, 2, 0].flatMap((at) => high.slice(at, at + 2));
      return [...pairs, ...low.toReversed()];
    });
    expect([...(arrays[1] ?? [])]).toEqual(expected.flat());
  });

  test("256 bits between 32 bytes are misaligned", () => {
    const body = "ld.global.v4.b64 {%d4,%d5,%d6,%d7}, [%d0+16]; ret;";
    expect(() => runBlocks({ body, arrays: [new Uint32Array(64)], target })).toThrow("TW8011");
  });
});

test("extremes of f32 over a warp", () => {
  const random = new Random(seed);
  const values = randomSingles(random, 32).map((value, lane) => (lane === 7 ? NaN : value));
  const modes = ["max", "min", "max.abs", "min.abs", "max.NaN", "min.abs.NaN"];
  const body = `mov.u32 %r9, %tid.x; mul.wide.u32 %d8, %r9, 4; add.s64 %d8, %d0, %d8; ld.global.b32 %r0, [%d8];
    ${modes.map((mode, at) => `redux.sync.${mode}.f32 %r1, %r0, -1; st.global.b32 [%d1+${4 * at}], %r1;`).join("\n")}
    setp.ne.u32 %p0, %r9, 7; @%p0 bra $end; redux.sync.max.f32 %r1, %r0, 128; st.global.b32 [%d1+24], %r1; $end: ret;`;
  const { arrays } = runBlocks({
    body,
    arrays: [Uint32Array.from(values, (value) => Number(singleBits(value))), new Uint32Array(7)],
    target: "sm_100a",
    options: { checks: false },
  });
  const numbers = values.filter((value) => !Number.isNaN(value));
  const magnitudes = numbers.map(Math.abs);
  const expected = [
    ...[Math.max(...numbers), Math.min(...numbers)],
    ...[Math.max(...magnitudes), Math.min(...magnitudes), NaN, NaN, NaN],
  ];
  expect([...(arrays[1] ?? [])], `seed ${seed}`).toEqual(
    expected.map((each) => Number(bitsOf(each))),
  );
});
