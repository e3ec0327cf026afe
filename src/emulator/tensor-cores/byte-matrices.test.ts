import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { fillShared, runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 120;

/** Rows of 16 bytes, each `pitch` from the next; lane l gives row l, and stores its registers. */
function loaded(form: string, registers: number, target: "sm_100a" | "sm_120a") {
  const random = new Random(seed);
  const rows = Uint8Array.from({ length: 32 * 32 }, () => random.below(256));
  const list = `{${Array.from({ length: registers }, (_, at) => `%r1${at}`).join(", ")}}`;
  const body = `${fillShared("x", 0, 1024, 32)} bar.sync 0; shl.b32 %r1, %thread, 5; add.u32 %r1, %r1, %smem;
    ldmatrix.sync.aligned.${form} ${list}, [%r1];
    mul.wide.u32 %d1, %thread, ${4 * registers}; add.u64 %d1, %d1, %out;
    ${Array.from({ length: registers }, (_, at) => `st.global.b32 [%d1+${4 * at}], %r1${at};`).join(" ")}`;
  const arrays = { x: rows, out: 128 * registers };
  const run = runPtx({ body, target, sharedBytes: 1024, arrays });
  expect(run.codes).toEqual([]);
  const out = run.arrays["out"] ?? new Uint8Array();
  /** Byte `at` of a register of a lane. */
  const found = (lane: number, register: number, at: number): number =>
    out[4 * (registers * lane + register) + at] ?? -1;
  return { rows, found };
}

/** Element `at` of a row of so many bits each, the low ones first. */
function element(rows: Uint8Array, row: number, at: number, bits: number): number {
  let value = 0;
  for (let bit = 0; bit < bits; bit++) {
    const index = at * bits + bit;
    value += (((rows[32 * row + (index >> 3)] ?? 0) >> (index & 7)) & 1) * 2 ** bit;
  }
  return value;
}

describe.each(["sm_100a", "sm_120a"] as const)("ldmatrix on %s", (target) => {
  test.each([
    ["x1", "b4x16_p64", 4, 1],
    ["x2", "b6x16_p32", 6, 2],
    ["x4", "b4x16_p64", 4, 4],
  ] as const)(
    "m8n16.%s.%s: elements come into the low bits of bytes",
    (count, format, bits, registers) => {
      const { rows, found } = loaded(`m8n16.${count}.shared.b8x16.${format}`, registers, target);
      for (let lane = 0; lane < 32; lane++)
        for (let register = 0; register < registers; register++)
          for (let at = 0; at < 4; at++) {
            const row = 8 * register + (lane >> 2);
            const expected = element(rows, row, 4 * (lane & 3) + at, bits);
            expect(found(lane, register, at)).toBe(expected);
          }
    },
  );

  test.each([
    ["x1", "b8", 8, 2],
    ["x2", "b8", 8, 4],
    ["x2", "b8x16.b6x16_p32", 6, 4],
  ] as const)(
    "m16n16.%s.trans.%s: a lane has a column of four rows",
    (count, format, bits, registers) => {
      const { rows, found } = loaded(`m16n16.${count}.trans.shared.${format}`, registers, target);
      for (let lane = 0; lane < 32; lane++)
        for (let register = 0; register < registers; register++)
          for (let at = 0; at < 4; at++) {
            const row = 16 * (register >> 1) + 4 * (lane & 3) + at;
            const expected = element(rows, row, (lane >> 2) + 8 * (register % 2), bits);
            expect(found(lane, register, at)).toBe(expected);
          }
    },
  );
});
