/** Accesses through one array that land in another, in the forms in which addresses are computed. */
import { describe, expect, test } from "vitest";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";

/** From the first array to the second: its own 512 bytes and as many between them. */
const distance = 1024;

function run(body: string, options: { readonly checks?: boolean } = {}): readonly string[] {
  const arrays = [new Uint32Array(16), new Uint32Array(16), Uint32Array.of(distance, 0, 0, 0)];
  return runBlocks({ body, arrays, options }).result.findings.map(({ code }) => code);
}

/** What lands in the second array by an address that began as the first. */
const forms: readonly (readonly [string, string])[] = [
  ["an immediate", `ld.global.b32 %r0, [%d0+${distance}];`],
  ["a sum", `add.s64 %d4, %d0, ${distance}; ld.global.b32 %r0, [%d4];`],
  ["a difference", `sub.s64 %d4, %d0, ${-distance}; ld.global.b32 %r0, [%d4];`],
  ["a product", `mov.b32 %r1, 256; mad.wide.s32 %d4, %r1, 4, %d0; ld.global.b32 %r0, [%d4];`],
  [
    "a product of 64 bits",
    "mov.b64 %d5, 256; mad.lo.s64 %d4, %d5, 4, %d0; ld.global.b32 %r0, [%d4];",
  ],
  [
    "a shifted offset",
    "mov.b64 %d5, 256; shl.b64 %d6, %d5, 2; add.s64 %d4, %d0, %d6; ld.global.b32 %r0, [%d4];",
  ],
  [
    "a converted address",
    `cvta.to.global.u64 %d4, %d0; mov.b64 %d5, %d4; ld.global.b32 %r0, [%d5+${distance}];`,
  ],
  ["an address without a space", `ld.b32 %r0, [%d0+${distance}];`],
  [
    "an offset that memory holds",
    "ld.global.b32 %r1, [%d2]; cvt.u64.u32 %d5, %r1; add.s64 %d4, %d0, %d5; ld.global.b32 %r0, [%d4];",
  ],
  [
    "a pointer that a loop moves",
    `mov.b64 %d4, %d0; mov.b32 %r1, 0;
     $next: ld.global.b32 %r0, [%d4]; add.s64 %d4, %d4, ${distance};
     add.s32 %r1, %r1, 1; setp.lt.s32 %p0, %r1, 2; @%p0 bra $next;`,
  ],
  [
    "a choice",
    `setp.eq.s64 %p0, %d0, %d0; selp.b64 %d4, %d0, %d0, %p0;
     ld.global.b32 %r0, [%d4+${distance}];`,
  ],
  ["a store", `mov.b32 %r0, 1; st.global.b32 [%d0+${distance}], %r0;`],
  ["an atomic", `mov.b32 %r0, 1; atom.global.add.u32 %r1, [%d0+${distance}], %r0;`],
  ["a reduction", `mov.b32 %r0, 1; red.global.add.u32 [%d0+${distance}], %r0;`],
  [
    "a copy into shared memory",
    `.shared .align 16 .b8 own[16]; mov.u32 %r1, own;
     cp.async.ca.shared.global [%r1], [%d0+${distance}], 4; cp.async.wait_all;`,
  ],
];

describe("through one array into another", () => {
  test.each(forms)("by %s", (_, body) => {
    expect(() => run(`${body} ret;`)).toThrow("TW8018");
  });

  test("is not looked for without checks", () => {
    expect(run(`ld.global.b32 %r0, [%d0+${distance}]; ret;`, { checks: false })).toEqual([]);
  });
});

describe("what is right", () => {
  test.each([
    ["its own array", "ld.global.b32 %r0, [%d0+60];"],
    [
      "either of two arrays",
      "setp.eq.s64 %p0, %d0, %d1; selp.b64 %d4, %d0, %d1, %p0; ld.global.b32 %r0, [%d4];",
    ],
    [
      "an address that memory holds",
      "st.global.b64 [%d2+8], %d1; bar.warp.sync -1; ld.global.b64 %d4, [%d2+8]; ld.global.b32 %r0, [%d4];",
    ],
    [
      "the way from one array to the other",
      "sub.s64 %d4, %d1, %d0; add.s64 %d5, %d0, %d4; ld.global.b32 %r0, [%d5];",
    ],
    [
      "an address put together from halves",
      "mov.b64 {%r1, %r2}, %d1; mov.b64 %d4, {%r1, %r2}; ld.global.b32 %r0, [%d4];",
    ],
  ])("%s", (_, body) => {
    expect(run(`${body} ret;`)).toEqual([]);
  });
});

test("both arrays are told by their names", () => {
  const arrays = [new Uint32Array(16), new Uint32Array(16)];
  const launch = { body: `ld.global.b32 %r0, [%d0+${distance}]; ret;`, arrays };
  expect(() => runBlocks(launch)).toThrow(
    expect.objectContaining({
      code: "TW8018",
      expected: "an address in p0",
      found: "byte 0 of p1 of 64 bytes",
    }),
  );
});
