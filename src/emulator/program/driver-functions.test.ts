/** What the driver gives kernels beside their parameters: functions, the workspace of a grid, reserved memory. */
import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { printed } from "./printf.ts";

const seeds = [0, 1, 2, 3];

function failure(run: () => unknown): TilewrightError {
  try {
    run();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was found");
}

describe("printf", () => {
  /** Packs arguments as compilers do. */
  function text(format: string, given: readonly (number | bigint | string | { single: number })[]) {
    const view = new DataView(new ArrayBuffer(256));
    let at = 0;
    const strings: string[] = [];
    for (const value of given) {
      const bytes = typeof value === "number" ? 4 : 8;
      at = Math.ceil(at / bytes) * bytes;
      if (typeof value === "number") view.setInt32(at, value, true);
      else if (typeof value === "bigint") view.setBigInt64(at, value, true);
      else if (typeof value === "string")
        view.setBigInt64(at, BigInt(strings.push(value) - 1), true);
      else view.setFloat64(at, value.single, true);
      at += bytes;
    }
    return printed(format, 0, {
      word: (address) => view.getInt32(address, true),
      wide: (address) => view.getBigUint64(address, true),
      text: (address) => strings[address] ?? "",
    });
  }

  test.each([
    ["%d|%5d|%-5d|%05d|%+d|% d", [1, 2, 3, -4, 5, 6], "1|    2|3    |-0004|+5| 6"],
    ["%u %x %X %#x %o %08x", [-1, 255, 255, 255, 8, 77], "4294967295 ff FF 0xff 10 0000004d"],
    ["%c%c %s|%6s|%-4s|%.2s", [104, 105, "abc", "de", "f", "ghij"], "hi abc|    de|f   |gh"],
    [
      "%lld %ld %llu %hd",
      [-(2n ** 40n), 7n, -1n, 65537],
      "-1099511627776 7 18446744073709551615 1",
    ],
    [
      "%f %.2f %8.3f %e",
      [1.5, -2.345, 3.14159, 12345.678].map((single) => ({ single })),
      "1.500000 -2.35    3.142 1.234568e+04",
    ],
    [
      "%g %g %g %G",
      [0.0001, 1e-5, 1234567, 1e20].map((single) => ({ single })),
      "0.0001 1e-05 1.23457e+06 1E+20",
    ],
    ["%f %f %g", [Infinity, NaN, -0].map((single) => ({ single })), "inf nan -0"],
    ["%d %f %d %%", [1, { single: 2 }, 3], "1 2.000000 3 %"],
    ["%*d %.*f", [4, 7, 1, { single: 2.55 }], "   7 2.5"],
    ["%p none", [0xabcn], "0xabc none"],
  ])("%s", (format, given, expected) => {
    expect(text(format, given).text).toBe(expected);
  });

  test("counts its arguments", () => {
    expect(text("%d %s %% %f", [1, "a", { single: 1 }]).count).toBe(3);
  });

  test("in a kernel", () => {
    const module = `.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
      .global .align 1 .b8 format[14] = {108, 97, 110, 101, 32, 37, 100, 58, 32, 37, 115, 10, 0};
      .global .align 1 .b8 name[4] = {97, 98, 99, 0};`;
    const body = `.local .align 8 .b8 given[16]; mov.u32 %r0, %tid.x; setp.gt.u32 %p0, %r0, 1; @%p0 exit;
      mov.u64 %d1, given; cvta.local.u64 %d2, %d1; st.local.b32 [given], %r0;
      mov.u64 %d3, name; cvta.global.u64 %d3, %d3; st.local.b64 [given+8], %d3;
      mov.u64 %d4, format; cvta.global.u64 %d4, %d4;
      { .param .b64 first; .param .b64 second; .param .b32 count;
        st.param.b64 [first], %d4; st.param.b64 [second], %d2;
        call (count), vprintf, (first, second); ld.param.b32 %r1, [count]; }
      mul.wide.u32 %d5, %r0, 4; add.s64 %d5, %d0, %d5; st.global.b32 [%d5], %r1; ret;`;
    const { arrays, result } = runBlocks({ module, body, arrays: [new Uint32Array(2)] });
    expect(result.printed).toEqual(["lane 0: abc\n", "lane 1: abc\n"]);
    expect([...(arrays[0] ?? [])]).toEqual([2, 2]);
    expect(result.findings).toEqual([]);
  });
});

test("assertions that fail stop the kernel", () => {
  const module = `.extern .func __assertfail
      (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .global .align 1 .b8 text[3] = {110, 111, 0};`;
  const body = `mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 5; @%p0 bra $end;
    mov.u64 %d1, text; cvta.global.u64 %d1, %d1;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], %d1; st.param.b64 [b], %d1; st.param.b32 [c], 42; st.param.b64 [d], %d1;
      st.param.b64 [e], 1; call __assertfail, (a, b, c, d, e); }
    $end: ret;`;
  const error = failure(() => runBlocks({ module, body, arrays: [] }));
  expect(error).toMatchObject({ code: "TW8017", found: "no:42, in no" });
  expect(error.summary).toContain("assertion no failed in lane 5");
});

describe("malloc", () => {
  const module = `.extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);`;
  const allocate = (bytes: number, register: string): string => `{ .param .b64 n; .param .b64 r;
    st.param.b64 [n], ${bytes}; call (r), malloc, (n); ld.param.b64 ${register}, [r]; }`;
  const release = (register: string): string =>
    `{ .param .b64 p; st.param.b64 [p], ${register}; call free, (p); }`;
  const run = (body: string) =>
    runBlocks({ module, body, arrays: [new Uint32Array(64)], blocks: 2, threads: 32 });
  const lane = `mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.s32 %r0, %r1, 32, %r0;
    mul.wide.u32 %d8, %r0, 4; add.s64 %d8, %d0, %d8;`;

  test("gives every lane memory of its own", () => {
    const { arrays, result } = run(`${lane} ${allocate(20, "%d1")} ${allocate(4, "%d2")}
      st.b32 [%d1+16], %r0; st.b32 [%d2], 7; ld.b32 %r2, [%d1+16]; ${release("%d1")} ${release("%d2")}
      ${release("0")} st.global.b32 [%d8], %r2; ret;`);
    expect(result.findings).toEqual([]);
    expect([...(arrays[0] ?? [])]).toEqual(Array.from({ length: 64 }, (_, at) => at));
  });

  test("gives nothing where nothing is left", () => {
    const { arrays } = run(`${lane} ${allocate(9 << 20, "%d1")} cvt.u32.u64 %r2, %d1;
      st.global.b32 [%d8], %r2; ret;`);
    expect(new Set(arrays[0])).toEqual(new Set([0]));
  });

  test.each([
    ["past the end", "ld.b32 %r2, [%d1+20];"],
    ["behind free", `${release("%d1")} ld.b32 %r2, [%d1];`],
    ["freed twice", `${release("%d1")} ${release("%d1")}`],
    ["freed at another place", `add.s64 %d1, %d1, 4; ${release("%d1")}`],
  ])("%s", (_, use) => {
    const error = failure(() => run(`${lane} ${allocate(20, "%d1")} st.b32 [%d1], 1; ${use} ret;`));
    expect(error.code).toBe("TW8010");
  });

  test("has nothing written in it", () => {
    const { result } = run(`${lane} ${allocate(20, "%d1")} ld.b32 %r2, [%d1];
      st.global.b32 [%d8], %r2; ret;`);
    expect(result.findings.map(({ code }) => code)).toEqual(["TW8013"]);
  });
});

test.each(seeds)("blocks of a grid meet in its workspace, seed %i", (seed) => {
  const body = `mov.u32 %r9, %envreg1; mov.u32 %r8, %envreg2; cvt.u64.u32 %d1, %r9; cvt.u64.u32 %d2, %r8;
    bfi.b64 %d1, %d1, %d2, 32, 32; setp.eq.s64 %p0, %d1, 0; @%p0 trap;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d3, %r1, 4; add.s64 %d3, %d0, %d3;
    setp.ne.u32 %p1, %r0, 0; @%p1 bra $end; st.global.b32 [%d3], %r1;
    atom.add.release.gpu.u32 %r2, [%d1+4], 1;
    $poll: ld.acquire.gpu.u32 %r3, [%d1+4]; setp.lt.u32 %p2, %r3, 5; @%p2 bra $poll;
    sub.u32 %r4, 4, %r1; mul.wide.u32 %d4, %r4, 4; add.s64 %d4, %d0, %d4; ld.global.b32 %r5, [%d4];
    st.global.b32 [%d3+20], %r5;
    $end: ret;`;
  const { arrays, result } = runBlocks({
    body,
    arrays: [new Uint32Array(10)],
    blocks: 5,
    options: { seed },
  });
  expect(result.findings).toEqual([]);
  expect([...(arrays[0] ?? [])]).toEqual([0, 1, 2, 3, 4, 4, 3, 2, 1, 0]);
});

test("reserved shared memory lies beside the block's own", () => {
  const body = `.shared .align 4 .b32 own; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 exit;
    mov.u32 %r1, %reserved_smem_offset_1; mov.u32 %r2, %reserved_smem_offset_begin;
    mov.u32 %r3, %reserved_smem_offset_end; sub.u32 %r4, %r3, %r2; st.global.b32 [%d0], %r4;
    st.shared.b32 [own], 1; st.shared.b32 [%r1], 2; ld.shared.b32 %r5, [own]; st.global.b32 [%d0+4], %r5; ret;`;
  const { arrays, result } = runBlocks({ body, arrays: [new Uint32Array(2)] });
  expect(result.findings).toEqual([]);
  expect([...(arrays[0] ?? [])]).toEqual([1024, 1]);
});

test("variables hold addresses of constants", () => {
  const module = `.const .align 4 .b32 table[3] = {5, 6, 7}; .global .align 8 .u64 where = generic(table);`;
  const body = `ld.global.u64 %d1, [where]; ld.b32 %r0, [%d1+8]; st.global.b32 [%d0], %r0; ret;`;
  const { arrays } = runBlocks({ module, body, arrays: [new Uint32Array(1)], threads: 1 });
  expect(arrays[0]?.[0]).toBe(7);
});

describe("alloca", () => {
  const body = (size: string): string => `mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 1; ${size}
    stacksave.u64 %d5; alloca.u64 %d2, %d1, 16; cvta.local.u64 %d3, %d2; mov.b32 %r2, 0;
    $fill: mul.wide.u32 %d4, %r2, 4; add.s64 %d4, %d3, %d4; mul.lo.u32 %r3, %r2, %r0; st.b32 [%d4], %r3;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, %r1; @%p0 bra $fill;
    ld.b32 %r4, [%d4]; stackrestore.u64 %d5; mul.wide.u32 %d6, %r0, 4; add.s64 %d6, %d0, %d6;
    st.global.b32 [%d6], %r4; ret;`;

  test("gives each lane as much as it asks for", () => {
    const ask = "mul.wide.u32 %d1, %r1, 4;";
    const { arrays, result } = runBlocks({ body: body(ask), arrays: [new Uint32Array(32)] });
    expect(result.findings).toEqual([]);
    expect([...(arrays[0] ?? [])]).toEqual(Array.from({ length: 32 }, (_, lane) => lane * lane));
  });

  test("gives memory that nothing else lies in", () => {
    const { arrays } = runBlocks({
      body: `mov.u32 %r0, %tid.x; add.u32 %r1, %r0, 1; mul.wide.u32 %d1, %r1, 4; mul.wide.u32 %d6, %r0, 4;
        alloca.u64 %d2, %d1; add.s64 %d2, %d2, %d6; st.local.b32 [%d2], %r0;
        alloca.u64 %d3, %d1; add.s64 %d3, %d3, %d6; setp.lt.u32 %p0, %r0, 4; @!%p0 st.local.b32 [%d3-16], 99;
        ld.local.b32 %r2, [%d2]; add.s64 %d6, %d0, %d6; st.global.b32 [%d6], %r2; ret;`,
      arrays: [new Uint32Array(32)],
    });
    expect([...(arrays[0] ?? [])]).toEqual(Array.from({ length: 32 }, (_, lane) => lane));
  });

  test("ends with the stack", () => {
    const ask = "mov.u64 %d1, 600000;";
    const error = failure(() => runBlocks({ body: body(ask), arrays: [new Uint32Array(32)] }));
    expect(error.code).toBe("TW8010");
  });
});
