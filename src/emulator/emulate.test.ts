import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { runBlocks } from "../../test/support/emulated-blocks.ts";
import type { BlockLaunch } from "../../test/support/emulated-blocks.ts";
import { EmulatedMemory } from "./memory.ts";

/** What stops the launch, or the first finding. */
function failure(launch: Partial<BlockLaunch> & { readonly body: string }): TilewrightError {
  try {
    const { result } = runBlocks({ arrays: [new Uint32Array(64)], ...launch });
    const [finding] = result.findings;
    if (finding !== undefined) return finding;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was found");
}

const lane = "mov.u32 %r0, %tid.x; mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8;";

describe("what cannot be run is said before anything runs", () => {
  test("unknown instructions", () => {
    expect(failure({ body: "frobnicate.b32 %r0, %r1; ret;" }).code).toBe("TW8001");
    expect(failure({ body: "cvt.u32.e4m3x2 %r0, %h0; ret;" }).code).toBe("TW7107");
  });

  test("names that objects have of themselves, and barriers without a number", () => {
    for (const body of ["constructor; ret;", "mov.b32 %r0, valueOf; ret;", "bar.sync; ret;"])
      expect(failure({ body }).code, body).toMatch(/^TW[78]\d{3}$/);
    expect(failure({ body: "bar.red.popc.u32 %r0, %p0; ret;" }).code).toMatch(/^TW[78]\d{3}$/);
  });

  test("unknown names", () => {
    const module = ".extern .func elsewhere (.param .b32 n);";
    const body = "{ .param .b32 a; st.param.b32 [a], %r0; call elsewhere, (a); } ret;";
    expect(failure({ body, module })).toMatchObject({
      code: "TW8002",
      summary: "elsewhere is not defined",
    });
  });

  test("launches that do not fit", () => {
    const sharedBytes = 300 * 1024;
    expect(failure({ body: "ret;", sharedBytes })).toMatchObject({
      code: "TW8003",
      found: `${sharedBytes} bytes`,
    });
    expect(failure({ body: ".local .b8 x[9999999999]; ret;" })).toMatchObject({
      code: "TW8003",
      found: "9999999999 bytes",
    });
    const module = ".const .b8 x[9999999999];";
    expect(failure({ body: ".reg .u64 %a; mov.u64 %a, x; ret;", module })).toMatchObject({
      code: "TW8003",
      found: "9999999999 bytes",
    });
    expect(failure({ body: "ret;", threads: 2048 }).code).toBe("TW8003");
    expect(failure({ body: "ret;", blocks: 3, cluster: 2 }).code).toBe("TW8003");
  });
});

describe("what stops a kernel", () => {
  test("addresses outside of memory, with the array they miss", () => {
    const body = `${lane} ld.global.b32 %r1, [%d8+192]; ret;`;
    const error = failure({ body });
    expect(error.code).toBe("TW8010");
    expect(error.found).toMatch(/byte 256 of p0 of 256 bytes/);
    expect(failure({ body: "ld.shared.b32 %r0, [%r1+4096]; ret;" }).code).toBe("TW8010");
    expect(failure({ body: "mov.b64 %d8, 12; ld.b32 %r0, [%d8]; ret;" }).code).toBe("TW8010");
  });

  test("misaligned addresses", () => {
    expect(failure({ body: "ld.global.b32 %r0, [%d0+2]; ret;" }).code).toBe("TW8011");
    const vector = "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0+8]; ret;";
    expect(failure({ body: vector }).code).toBe("TW8011");
  });

  test("traps", () => {
    const body = `${lane} setp.eq.u32 %p0, %r0, 5; @%p0 trap; ret;`;
    const error = failure({ body });
    expect(error.code).toBe("TW8016");
    expect(error.summary).toContain("lane 5");
  });

  test("barriers that only some lanes of a warp reach", () => {
    const guarded = `${lane} setp.lt.u32 %p0, %r0, 9; @%p0 bar.sync 0; ret;`;
    expect(failure({ body: guarded }).code).toBe("TW8021");
    const branched = `${lane} setp.lt.u32 %p0, %r0, 9; @%p0 bra $past; bar.sync 0; $past: add.s32 %r1, %r0, 1; bar.sync 1; ret;`;
    expect(failure({ body: branched }).code).toBe("TW8021");
  });

  test("register budgets", () => {
    const directives = ".reqntid 384 .minnctapersm 1";
    const body = "setmaxnreg.dec.sync.aligned.u32 200; ret;";
    expect(failure({ body, directives, threads: 384 }).code).toBe("TW8022");
  });
});

describe("deadlocks name where each warp stands", () => {
  test("at barriers", () => {
    const body = `${lane} setp.lt.u32 %p0, %r0, 32; @%p0 bra $first; bar.sync 1, 64; ret; $first: bar.sync 2, 64; ret;`;
    const error = failure({ body, threads: 64 });
    expect(error.code).toBe("TW8020");
    expect([error.summary, ...error.notes.map(({ message }) => message)].sort()).toEqual([
      "warp 0 of block 0 (all lanes) waits at bar.sync",
      "warp 1 of block 0 (all lanes) waits at bar.sync",
    ]);
  });

  test("in polls that nothing can end", () => {
    const body =
      "$again: ld.volatile.global.b32 %r0, [%d0]; setp.eq.u32 %p0, %r0, 0; @%p0 bra $again; ret;";
    expect(failure({ body, blocks: 3 }).code).toBe("TW8020");
  });

  test("not in long computations", () => {
    const body = `mov.b32 %r0, 0; $loop: add.s32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 300000; @%p0 bra $loop;
      st.global.b32 [%d0], %r0; ret;`;
    const { arrays } = runBlocks({ body, arrays: [new Uint32Array(1)], threads: 1 });
    expect(arrays[0]?.[0]).toBe(300000);
  });
});

describe("checks", () => {
  test("values that depend on registers nobody wrote, where they can be seen", () => {
    const body = `${lane} setp.lt.u32 %p0, %r0, 7; @%p0 mov.b32 %r1, 3; add.s32 %r2, %r1, 1; st.global.b32 [%d8], %r2; ret;`;
    const error = failure({ body });
    expect(error.code).toBe("TW8012");
    expect(error.summary).toContain("st.global.b32 depends on %r2");
    const harmless = `${lane} setp.lt.u32 %p0, %r0, 7; @%p0 mov.b32 %r1, 3; add.s32 %r2, %r1, 1;
      selp.b32 %r3, %r2, 9, %p0; @%p0 st.global.b32 [%d8], %r2; st.global.b32 [%d8], %r3; ret;`;
    const { result } = runBlocks({ body: harmless, arrays: [new Uint32Array(64)] });
    expect(result.findings).toEqual([]);
  });

  test("memory that nobody wrote", () => {
    const body = `.shared .align 4 .b32 tile; ld.shared.b32 %r0, [tile]; add.s32 %r1, %r0, 1;
      st.global.b32 [%d0], %r1; ret;`;
    const { code, notes } = failure({ body, threads: 1 });
    expect([code, notes[0]?.message]).toEqual(["TW8013", "st.global.b32 depends on it by %r1"]);
  });

  test("undefined registers, at the store that takes them to shared memory", () => {
    const body = `.shared .align 4 .b32 tile; st.shared.b32 [tile], %r4; ld.shared.b32 %r5, [tile];
      st.global.b32 [%d0], %r5; ret;`;
    const { code, summary } = failure({ body, threads: 1 });
    expect([code, summary.split(",")[0]]).toEqual(["TW8012", "st.shared.b32 depends on %r4"]);
  });

  test("memory that nobody wrote, where nothing comes of it", () => {
    const { result } = runBlocks({
      body: `.shared .align 16 .b8 tile[32]; st.shared.v2.b32 [tile], {1, 2}; mov.b32 %r9, 4;
        st.shared.b32 [tile+8], %r9; ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [tile];
        st.shared.b32 [tile+16], %r3; add.s32 %r4, %r0, %r2; add.s32 %r5, %r3, %r4;
        st.global.b32 [%d0], %r4; setp.lt.s32 %p0, %r3, 5; setp.gt.and.s32 %p1, %r4, 7, %p0;
        setp.gt.s32 %p2, %r4, 7; and.pred %p2, %p0, %p2; setp.lt.or.s32 %p3, %r4, 7, %p0;
        selp.b32 %r6, %r4, 3, %p1; selp.b32 %r7, 5, %r6, %p2; @!%p3 trap; st.global.b32 [%d0+4], %r7; ret;`,
      arrays: [new Uint32Array(2)],
      threads: 1,
    });
    expect(result.findings).toEqual([]);
  });

  test.each([
    ["st.global.b32 [%d0], %r1;", "TW8013"],
    ["@%p0 st.global.b32 [%d0], 1;", "TW8013"],
    ["@%p1 bra $end;", "TW8013"],
    ["add.s32 %r1, %r1, %r3; ld.shared.b32 %r2, [%r1];", "TW8013"],
    ["st.shared.b32 [%r3+4], %r1; ld.shared.b32 %r5, [%r3+4]; st.global.b32 [%d0], %r5;", "TW8013"],
  ])("undefined values that are seen: %s", (seen, code) => {
    const body = `.shared .align 4 .b8 tile[8]; mov.u32 %r3, tile; ld.shared.b32 %r1, [%r3];
      setp.eq.s32 %p0, %r1, 0; setp.eq.or.s32 %p1, %r3, 77, %p0; ${seen} $end: ret;`;
    expect(failure({ body, threads: 1 }).code).toBe(code);
  });

  test.each([0, 1, 2, 3])("races between warps, seed %i", (seed) => {
    const body = `.shared .align 4 .b8 tile[256]; ${lane} shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.s32 %r1, %r1, %r2;
      st.shared.b32 [%r1], %r0; xor.b32 %r1, %r1, 128; ld.shared.b32 %r3, [%r1]; ret;`;
    const options = { seed };
    expect(["TW8013", "TW8014"]).toContain(failure({ body, threads: 64, options }).code);
    const plain = "st.global.b32 [%d0], 1; ret;";
    expect(failure({ body: plain, blocks: 2, threads: 1, options }).code).toBe("TW8014");
  });

  test("bytes that only lie next to each other do not race", () => {
    const body = `${lane} mov.u32 %r1, %ctaid.x; cvt.u64.u32 %d9, %r1; add.s64 %d9, %d0, %d9; st.global.u8 [%d9], %r1; ret;`;
    const { result } = runBlocks({ body, arrays: [new Uint32Array(1)], blocks: 4, threads: 1 });
    expect(result.findings).toEqual([]);
  });

  test("accesses of the asynchronous proxy without a fence", () => {
    const body = `.shared .align 16 .b8 tile[16]; mov.b32 %r0, 5; st.shared.b32 [tile], %r0; st.shared.b32 [tile+4], %r0;
      st.shared.b32 [tile+8], %r0; st.shared.b32 [tile+12], %r0; mov.u32 %r1, tile;
      cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 16;
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;`;
    expect(failure({ body, threads: 1 }).code).toBe("TW8015");
    const fenced = body.replace("cp.async.bulk.global", "fence.proxy.async; cp.async.bulk.global");
    const { result } = runBlocks({ body: fenced, arrays: [new Uint32Array(4)], threads: 1 });
    expect(result.findings).toEqual([]);
  });

  test("can be turned off", () => {
    const body =
      ".shared .align 4 .b32 tile; ld.shared.b32 %r0, [tile]; st.global.b32 [%d0], %r7; ret;";
    const options = { checks: false };
    const { result } = runBlocks({ body, arrays: [new Uint32Array(1)], blocks: 2, options });
    expect(result.findings).toEqual([]);
  });
});

describe("emulated memory", () => {
  test("holds what is written, apart from its neighbours", () => {
    const memory = new EmulatedMemory();
    const first = memory.allocate(10);
    const second = memory.allocate(10);
    memory.write(first, Uint8Array.from([1, 2, 3]));
    memory.fill(second, 10, Uint8Array.of(9));
    expect([...memory.read(first, 3)]).toEqual([1, 2, 3]);
    expect(() => memory.read(first, 11)).toThrow(RangeError);
    expect(() => memory.write(first + 8, new Uint8Array(3))).toThrow(RangeError);
    expect(() => memory.free(first + 1)).toThrow(RangeError);
  });

  test("grows, and gives freed memory out again", () => {
    const memory = new EmulatedMemory();
    const small = memory.allocate(100);
    memory.fill(small, 100, Uint8Array.of(7));
    const large = memory.allocate(8 << 20);
    memory.fill(large, 8 << 20, Uint8Array.of(1));
    expect([...memory.read(small, 2)]).toEqual([7, 7]);
    memory.free(large);
    expect(() => memory.read(large, 1)).toThrow(RangeError);
    expect(memory.allocate(4 << 20)).toBe(large);
    expect(memory.allocate(1 << 20)).toBeGreaterThan(large);
  });
});
