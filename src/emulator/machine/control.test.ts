import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

const seeds = [0, 1, 2, 3, 4];
const lanes = Array.from({ length: 32 }, (_, lane) => lane);

/** %r0: the lane; %d8: its place in the first array. */
const place = `mov.u32 %r0, %tid.x; mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8;`;

describe("lanes that part", () => {
  test("take both sides and meet behind them", () => {
    const body = `${place}
      and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
      @%p0 bra $even;
      mul.lo.s32 %r2, %r0, 3; bra $join;
      $even: add.s32 %r2, %r0, 100;
      $join: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.s32 %r2, %r3, 1000, %r2;
      st.global.b32 [%d8], %r2; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(32)] });
    const expected = lanes.map((lane) => 32000 + (lane % 2 === 0 ? lane + 100 : 3 * lane));
    expect([...(arrays[0] ?? [])]).toEqual(expected);
  });

  test("leave a loop each after its own number of turns, and meet behind it", () => {
    const body = `${place} mov.b32 %r1, 0; mov.b32 %r2, 0;
      $loop: setp.ge.u32 %p0, %r1, %r0; @%p0 bra $done;
      add.s32 %r1, %r1, 1; add.s32 %r2, %r2, %r1; bra $loop;
      $done: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.s32 %r2, %r3, 10000, %r2;
      st.global.b32 [%d8], %r2; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(32)] });
    const expected = lanes.map((lane) => 320000 + (lane * (lane + 1)) / 2);
    expect([...(arrays[0] ?? [])]).toEqual(expected);
  });

  test("nest", () => {
    const body = `${place} mov.b32 %r2, 0;
      setp.lt.u32 %p0, %r0, 16; @!%p0 bra $outer;
      setp.lt.u32 %p1, %r0, 8; @!%p1 bra $inner;
      add.s32 %r2, %r2, 1;
      $inner: activemask.b32 %r3; popc.b32 %r3, %r3; add.s32 %r2, %r2, %r3;
      $outer: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.s32 %r2, %r3, 100, %r2;
      st.global.b32 [%d8], %r2; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(32)] });
    const expected = lanes.map((lane) => 3200 + (lane < 16 ? 16 : 0) + (lane < 8 ? 1 : 0));
    expect([...(arrays[0] ?? [])]).toEqual(expected);
  });

  // Few seeds, which choose whose turn it is: there is one warp, and it goes round for a hundred microseconds.
  test.each(seeds.slice(0, 2))(
    "that look at the time go round until it has come, seed %i",
    (seed) => {
      const body = `${place} mov.u64 %d1, %globaltimer;
      $loop: ld.relaxed.gpu.global.b32 %r1, [%d0]; setp.ne.u32 %p0, %r1, 0; @%p0 bra $done;
      mov.u64 %d2, %globaltimer; sub.u64 %d2, %d2, %d1; setp.lt.u64 %p0, %d2, 100000; @%p0 bra $loop;
      $done: st.global.b32 [%d8+4], 1; ret;`;
      const { arrays } = runBlocks({ body, arrays: [new Uint32Array(33)], options: { seed } });
      expect([...(arrays[0] ?? [])]).toEqual([0, ...lanes.map(() => 1)]);
    },
  );

  test("may exit while others go on", () => {
    const body = `${place} setp.ge.u32 %p0, %r0, 20; @%p0 exit;
      activemask.b32 %r1; vote.sync.ballot.b32 %r2, 1, 0xffffffff; add.s32 %r1, %r2, 0;
      st.global.b32 [%d8], %r1; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(32)] });
    expect([...(arrays[0] ?? [])]).toEqual(lanes.map((lane) => (lane < 20 ? 0xfffff : 0)));
  });

  test.each(seeds)(
    "are not waited for at a barrier once they only have the end before them, seed %i",
    (seed) => {
      const body = `${place} setp.ge.u32 %p0, %r0, 44; @%p0 bra $end;
      mov.u32 %r3, space; shl.b32 %r4, %r0, 2; add.s32 %r4, %r3, %r4;
      st.shared.b32 [%r4], %r0; bar.sync 0;
      sub.s32 %r5, 43, %r0; shl.b32 %r5, %r5, 2; add.s32 %r5, %r3, %r5;
      ld.shared.b32 %r6, [%r5]; st.global.b32 [%d8], %r6;
      $end: ret;`;
      const { arrays, result } = runBlocks({
        body,
        arrays: [new Uint32Array(64)],
        threads: 64,
        module: ".shared .align 4 .b8 space[256];",
        options: { seed },
      });
      expect(result.findings).toEqual([]);
      const expected = Array.from({ length: 64 }, (_, lane) => (lane < 44 ? 43 - lane : 0));
      expect([...(arrays[0] ?? [])]).toEqual(expected);
    },
  );

  test.each(seeds)("do not starve each other in a spin lock, seed %i", (seed) => {
    const body = `${place}
      $try: atom.global.cas.b32 %r1, [%d1], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra $try;
      fence.acq_rel.gpu;
      ld.global.b32 %r2, [%d0]; add.s32 %r2, %r2, %r0; st.global.b32 [%d0], %r2;
      fence.acq_rel.gpu;
      atom.global.exch.b32 %r3, [%d1], 0; ret;`;
    const { arrays, result } = runBlocks({
      body,
      arrays: [new Uint32Array(1), new Uint32Array(1)],
      blocks: 3,
      threads: 64,
      options: { seed },
    });
    expect(result.findings).toEqual([]);
    expect([...(arrays[0] ?? [])]).toEqual([3 * ((63 * 64) / 2)]);
  });

  test("wait for a lane of their own warp", () => {
    const body = `${place} setp.eq.u32 %p0, %r0, 31; @%p0 bra $store;
      $poll: ld.volatile.global.b32 %r1, [%d0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra $poll;
      bra $end;
      $store: mov.b32 %r2, 7; st.volatile.global.b32 [%d0], %r2;
      $end: ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(1)] });
    expect([...(arrays[0] ?? [])]).toEqual([7]);
  });
  // Counting, they change at each look, so that nobody can take them for lanes that wait. They give up after a million instructions.
  test.each(["first", "last"])(
    "are looked for by others who count, the one that stores %s",
    (order) => {
      const poll = `$poll: add.u32 %r3, %r3, 1; ld.volatile.global.b32 %r1, [%d0];
      setp.eq.u32 %p1, %r1, 0; setp.lt.and.u32 %p1, %r3, 250000, %p1; @%p1 bra $poll; bra $end;`;
      const store =
        "$store: mov.b32 %r2, 7; st.volatile.global.b32 [%d0], %r2; mov.b32 %r1, 7; bra $end;";
      const body = `${place} mov.b32 %r3, 0; setp.eq.u32 %p0, %r0, 31;
      ${order === "first" ? `@!%p0 bra $poll; ${store} ${poll}` : `@%p0 bra $store; ${poll} ${store}`}
      $end: st.global.b32 [%d8+4], %r1; ret;`;
      const { arrays } = runBlocks({ body, arrays: [new Uint32Array(33)] });
      expect([...(arrays[0] ?? [])]).toEqual(new Array(33).fill(7));
    },
  );
});

describe("guards", () => {
  test("keep what lanes had whose guard says no, in either form", () => {
    const body = `.reg .f32 %f<4>; ${place}
      and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
      cvt.rn.f32.u32 %f0, %r0; mov.b32 %r2, %f0;
      @%p0 add.f32 %f0, %f0, 0f3F000000;
      @!%p0 mov.b32 %f0, 0x7fc12345;
      @%p0 xor.b32 %r2, %r2, 0x80000000;
      mov.b32 %r3, %f0; st.global.b32 [%d8], %r3; st.global.b32 [%d8+128], %r2; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(64)] });
    const bits = (value: number): number =>
      new Uint32Array(new Float32Array([value]).buffer)[0] ?? 0;
    expect([...(arrays[0] ?? [])]).toEqual([
      ...lanes.map((lane) => (lane % 2 === 0 ? bits(lane + 0.5) : 0x7fc12345)),
      ...lanes.map((lane) => (lane % 2 === 0 ? bits(-lane) : bits(lane))),
    ]);
  });
});

describe("calls", () => {
  test("hand over arguments and results, and may recurse", () => {
    const module = `.func (.param .b32 result) factorial (.param .b32 n)
{
  .reg .pred %p; .reg .b32 %r<4>;
  ld.param.u32 %r0, [n]; setp.gt.u32 %p, %r0, 1; mov.b32 %r1, 1; @!%p bra $end;
  sub.s32 %r2, %r0, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), factorial, (a); ld.param.b32 %r3, [b]; }
  mul.lo.s32 %r1, %r0, %r3;
  $end: st.param.b32 [result], %r1; ret;
}`;
    const body = `${place} and.b32 %r1, %r0, 7;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), factorial, (a); ld.param.b32 %r2, [b]; }
      activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.s32 %r2, %r3, 100000, %r2;
      st.global.b32 [%d8], %r2; ret;`;
    const { arrays } = runBlocks({ body, module, arrays: [new Uint32Array(32)] });
    const factorials = [1, 1, 2, 6, 24, 120, 720, 5040];
    expect([...(arrays[0] ?? [])]).toEqual(
      lanes.map((lane) => 3200000 + (factorials[lane & 7] ?? 0)),
    );
  });

  test("go through addresses that differ from lane to lane", () => {
    const twice = (
      name: string,
      factor: number,
    ): string => `.func (.param .b32 r) ${name} (.param .b32 n)
{ .reg .b32 %r<2>; ld.param.u32 %r0, [n]; mul.lo.s32 %r1, %r0, ${factor}; st.param.b32 [r], %r1; ret; }`;
    const body = `${place} and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
      mov.u64 %d9, two; mov.u64 %d10, three; selp.b64 %d9, %d9, %d10, %p0;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0;
        call (b), %d9, (a), prototype; ld.param.b32 %r2, [b]; }
      st.global.b32 [%d8], %r2; ret;
      prototype: .callprototype (.param .b32 _) _ (.param .b32 _);`;
    const module = `${twice("two", 2)}\n${twice("three", 3)}`;
    const { arrays } = runBlocks({ body, module, arrays: [new Uint32Array(32)] });
    expect([...(arrays[0] ?? [])]).toEqual(lanes.map((lane) => lane * (lane % 2 === 0 ? 2 : 3)));
  });

  test("jumps by index", () => {
    const body = `${place} and.b32 %r1, %r0, 3;
      table: .branchtargets $a, $b, $c, $b;
      brx.idx %r1, table;
      $a: mov.b32 %r2, 10; bra $end;
      $b: mov.b32 %r2, 20; bra $end;
      $c: mov.b32 %r2, 30;
      $end: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.s32 %r2, %r3, 100, %r2;
      st.global.b32 [%d8], %r2; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(32)] });
    const values = [10, 20, 30, 20];
    expect([...(arrays[0] ?? [])]).toEqual(lanes.map((lane) => 3200 + (values[lane & 3] ?? 0)));
  });
});
