import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const lanes = Array.from({ length: 32 }, (_, lane) => lane);
const place = `mov.u32 %r0, %tid.x; mul.wide.u32 %d8, %r0, 4; add.s64 %d9, %d1, %d8; add.s64 %d8, %d0, %d8;`;

/** %r1: the lane's word of the first array; %r2 is stored to the second. */
function each(body: string, values: readonly number[]): readonly number[] {
  const { arrays, result } = runBlocks({
    body: `${place} ld.global.b32 %r1, [%d8]; ${body} st.global.b32 [%d9], %r2; ret;`,
    arrays: [Uint32Array.from(values), new Uint32Array(32)],
  });
  expect(result.findings).toEqual([]);
  return [...(arrays[1] ?? [])];
}

const random = new Random(7);
const noise = lanes.map(() => random.bits());

describe("shfl.sync", () => {
  const shuffles: readonly (readonly [string, (lane: number) => number])[] = [
    ["shfl.sync.idx.b32 %r2, %r1, 5, 31, -1;", () => 5],
    ["shfl.sync.idx.b32 %r2, %r1, 3, 0x181f, -1;", (lane) => (lane & 24) + 3],
    ["shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;", (lane) => lane ^ 16],
    ["shfl.sync.up.b32 %r2, %r1, 3, 0, -1;", (lane) => (lane < 3 ? lane : lane - 3)],
    ["shfl.sync.down.b32 %r2, %r1, 3, 31, -1;", (lane) => (lane > 28 ? lane : lane + 3)],
    ["shfl.sync.up.b32 %r2, %r1, 1, 0x1800, -1;", (lane) => ((lane & 7) === 0 ? lane : lane - 1)],
    ["shfl.sync.down.b32 %r2, %r1, 2, 0x181f, -1;", (lane) => ((lane & 7) > 5 ? lane : lane + 2)],
  ];

  test.each(shuffles)("%s", (text, source) => {
    expect(each(text, noise)).toEqual(lanes.map((lane) => noise[source(lane)]));
  });

  test("tells whether the source was in range", () => {
    const body = "shfl.sync.up.b32 %r3|%p0, %r1, 4, 0, -1; selp.b32 %r2, 1, 0, %p0;";
    expect(each(body, noise)).toEqual(lanes.map((lane) => (lane < 4 ? 0 : 1)));
  });

  test("waits for the lanes of its mask that come from elsewhere", () => {
    const body = `setp.lt.u32 %p0, %r0, 16; @%p0 bra $low; mov.b32 %r3, 1; bra $meet;
      $low: mov.b32 %r3, 2; $meet: shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1;`;
    expect(each(body, noise)).toEqual(lanes.map((lane) => (lane < 16 ? 1 : 2)));
  });

  test("takes a mask for each half", () => {
    const body = `setp.lt.u32 %p0, %r0, 16; selp.b32 %r3, 0xffff, 0xffff0000, %p0;
      shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r3;`;
    expect(each(body, noise)).toEqual(lanes.map((lane) => noise[lane ^ 1]));
  });
});

describe("votes, matches and reductions", () => {
  const values = lanes.map((lane) => (lane * 7) % 5);

  test("vote.sync", () => {
    const isTwo = values.map((value) => value === 2);
    const ballot = isTwo.reduce((sum, held, lane) => (held ? sum + 2 ** lane : sum), 0);
    const predicate = "setp.eq.u32 %p0, %r1, 2;";
    expect(each(`${predicate} vote.sync.ballot.b32 %r2, %p0, -1;`, values)).toEqual(
      lanes.map(() => ballot),
    );
    const bit = (mode: string, sign: string): number | undefined =>
      each(
        `${predicate} vote.sync.${mode}.pred %p1, ${sign}%p0, -1; selp.b32 %r2, 1, 0, %p1;`,
        values,
      )[0];
    expect(["any", "all", "uni"].map((mode) => bit(mode, ""))).toEqual([1, 0, 0]);
    expect(["any", "all", "uni"].map((mode) => bit(mode, "!"))).toEqual([1, 0, 0]);
  });

  test("match.sync", () => {
    const same = values.map((value) =>
      values.reduce((sum, other, lane) => (other === value ? sum + 2 ** lane : sum), 0),
    );
    expect(each("match.any.sync.b32 %r2, %r1, -1;", values)).toEqual(same);
    const all = "match.all.sync.b32 %r2|%p0, %r1, -1; @%p0 add.s32 %r2, %r2, 1;";
    expect(each(all, values)).toEqual(lanes.map(() => 0));
    expect(
      each(
        all,
        lanes.map(() => 9),
      ),
    ).toEqual(lanes.map(() => 0));
  });

  test("redux.sync", () => {
    const reduce = (mode: string): number | undefined =>
      each(`redux.sync.${mode} %r2, %r1, -1;`, noise)[0];
    const fold = (combine: (a: number, b: number) => number): number =>
      noise.reduce((a, b) => combine(a, b) >>> 0);
    expect(reduce("add.u32")).toBe(fold((a, b) => a + b));
    expect(reduce("and.b32")).toBe(fold((a, b) => a & b));
    expect(reduce("or.b32")).toBe(fold((a, b) => a | b));
    expect(reduce("xor.b32")).toBe(fold((a, b) => a ^ b));
    expect(reduce("min.u32")).toBe(Math.min(...noise));
    expect(reduce("max.u32")).toBe(Math.max(...noise));
    expect(reduce("min.s32")).toBe(Math.min(...noise.map((value) => value | 0)) >>> 0);
    expect(reduce("max.s32")).toBe(Math.max(...noise.map((value) => value | 0)) >>> 0);
  });

  test("elect.sync chooses one lane of its mask", () => {
    const body = `setp.ge.u32 %p0, %r0, 8; mov.b32 %r2, 99; @!%p0 bra $end;
      elect.sync %r2|%p1, 0xffffff00; @%p1 add.s32 %r2, %r2, 100; $end:`;
    expect(each(body, noise)).toEqual(lanes.map((lane) => (lane < 8 ? 99 : lane === 8 ? 108 : 8)));
  });
});

describe("bar.warp.sync", () => {
  test("lets lanes meet that stand at different places", () => {
    const body = `setp.lt.u32 %p0, %r0, 16; @%p0 bra $low;
      mov.b32 %r3, 5; st.global.b32 [%d9], %r3; bar.warp.sync 0xffffffff; bra $end;
      $low: bar.warp.sync 0xffffffff; ld.global.b32 %r4, [%d9+64]; st.global.b32 [%d9], %r4;
      $end: bar.warp.sync 0xffffffff; ld.global.b32 %r2, [%d9];`;
    expect(each(body, noise)).toEqual(lanes.map(() => 5));
  });
});
