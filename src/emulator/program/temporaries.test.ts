/** Registers that one step alone mentions: local to it where it writes them first, and kept from round to round where not. */
import { describe, expect, test } from "vitest";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

/** Three rounds, of which each lane writes one number a round; `%p0` holds in the first. */
function rounds(body: string, stored: string) {
  const { arrays, codes } = runPtx({
    body: `mov.b32 %r9, 0; setp.ne.u32 %p9, %thread, 0; @%p9 exit;
      $round: setp.eq.u32 %p0, %r9, 0; ${body}
      mul.wide.u32 %d9, %r9, 4; add.s64 %d9, %out, %d9; ${stored}
      add.u32 %r9, %r9, 1; setp.lt.u32 %p8, %r9, 3; @%p8 bra $round;`,
    arrays: { out: new Uint8Array(12) },
    threads: 32,
  });
  const { out = new Uint8Array(12) } = arrays;
  return { numbers: [...new Uint32Array(out.buffer, out.byteOffset, 3)], codes };
}

const store = "st.global.b32 [%d9], %r2;";

describe("what a round before has left", () => {
  test.each([
    ["32 bits", "@%p0 mov.b32 %r1, 7; add.u32 %r2, %r1, 1;"],
    ["64 bits", "@%p0 mov.b64 %d1, 7; add.u64 %d2, %d1, 1; cvt.u32.u64 %r2, %d2;"],
    ["f64", "@%p0 mov.f64 %f1, 0d401C000000000000; cvt.rni.u32.f64 %r2, %f1; add.u32 %r2, %r2, 1;"],
    ["a predicate", "@%p0 setp.eq.u32 %p1, %r9, 0; selp.b32 %r2, 8, 9, %p1;"],
  ])("is there where only some rounds write it: %s", (_, body) => {
    expect(rounds(body, store)).toEqual({ numbers: [8, 8, 8], codes: [] });
  });

  test("is there where it is read before it is written anew", () => {
    const body = "mov.b32 %r2, %r1; add.u32 %r1, %r9, 5;";
    expect(rounds(body, `@!%p0 ${store}`)).toEqual({ numbers: [0, 5, 6], codes: [] });
    expect(rounds(body, store).codes).toEqual(["TW8012"]);
  });

  test("counts where a guard writes something undefined over it", () => {
    const body = "mov.b32 %r2, 4; @%p0 mov.b32 %r2, %r3;";
    expect(rounds(body, store).codes).toEqual(["TW8012"]);
    expect(rounds(body, `@!%p0 ${store}`)).toEqual({ numbers: [0, 4, 4], codes: [] });
  });
});

test("what is computed from something undefined is so, however many steps it takes", () => {
  const sum = "add.u32 %r4, %r3, 1; shl.b32 %r5, %r4, 2; xor.b32 %r2, %r5, %r9;";
  expect(rounds(`mov.b32 %r3, 1; ${sum}`, store)).toEqual({ numbers: [8, 9, 10], codes: [] });
  expect(rounds(sum, store).codes).toEqual(["TW8012"]);
  expect(rounds(`@%p0 mov.b32 %r3, 1; ${sum}`, store).codes).toEqual([]);
  expect(rounds(`@!%p0 mov.b32 %r3, 1; ${sum}`, store).codes).toEqual(["TW8012"]);
});
