/** Loads, stores, copies and shifts: what they move where, by maps written another way than those of the emulator. */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  moveDescriptor,
  tensorKernel,
  vectorOf,
} from "../../../test/support/tensor-memory-kernel.ts";
import { Random } from "../../support/random.ts";
import { encodeFloat } from "../../formats/floats.ts";

const columns = 64;

/** A word that tells its lane and column. */
const tag = (lane: number, column: number): number => (lane << 16) | column;

function tagged(): Uint32Array {
  return Uint32Array.from({ length: 128 * columns }, (_, at) =>
    tag(Math.floor(at / columns), at % columns),
  );
}

/** Every warp loads with one shape and stores what it has got at columns 32 and up, thread by register. */
function loaded(load: string, registers: number): readonly Uint32Array[] {
  const then = `${load} tcgen05.wait::ld.sync.aligned;
    tcgen05.st.sync.aligned.32x32b.x${registers}.b32 [%r3+32], ${vectorOf(100, registers)}; tcgen05.wait::st.sync.aligned;`;
  const { cells, result } = tensorKernel({ columns, issue: "", then, fills: [tagged()] });
  expect(result.findings.map(({ message }) => message)).toEqual([]);
  return cells;
}

/** Rows and columns of the register of each thread, as read back on hardware: the formulas. */
const formulas: {
  readonly [shape: string]: (thread: number, register: number) => readonly [number, number];
} = {
  "32x32b": (t, j) => [t, j],
  "16x64b": (t, j) => [Math.floor(t / 4) + 8 * (t % 2), 2 * j + (Math.floor(t / 2) % 2)],
  "16x128b": (t, j) => [Math.floor(t / 4) + 8 * (j % 2), 4 * Math.floor(j / 2) + (t % 4)],
  "16x256b": (t, j) => [
    Math.floor(t / 4) + 8 * (Math.floor(j / 2) % 2),
    8 * Math.floor(j / 4) + 2 * (t % 4) + (j % 2),
  ],
};

describe("34: loads of every shape", () => {
  test.each([
    ["32x32b", 8, 8],
    ["16x64b", 8, 8],
    ["16x128b", 4, 8],
    ["16x256b", 2, 8],
  ] as const)("%s.x%i", (shape, repeat, registers) => {
    const half = shape === "32x32b" ? 0 : 16;
    const load = `add.s32 %r10, %r3, ${(half << 16) + 4}; tcgen05.ld.sync.aligned.${shape}.x${repeat}.b32 ${vectorOf(100, registers)}, [%r10];`;
    const [cells] = loaded(load, registers);
    for (let thread = 0; thread < 128; thread++)
      for (let register = 0; register < registers; register++) {
        const [row, column] = formulas[shape]?.(thread % 32, register) ?? [0, 0];
        const expected = tag(32 * Math.floor(thread / 32) + half + row, 4 + column);
        expect(cells?.[thread * columns + 32 + register]).toBe(expected);
      }
  });

  test("16x32bx2, whose second half lies some columns on", () => {
    const load = `tcgen05.ld.sync.aligned.16x32bx2.x4.b32 ${vectorOf(100, 4)}, [%r3+1], 9;`;
    const [cells] = loaded(load, 4);
    for (let thread = 0; thread < 128; thread++)
      for (let register = 0; register < 4; register++) {
        const lane = 32 * Math.floor(thread / 32) + (thread % 16);
        const column = 1 + register + (thread % 32 < 16 ? 0 : 9);
        expect(cells?.[thread * columns + 32 + register]).toBe(tag(lane, column));
      }
  });

  test("29: a single register; an address without its lanes is of the warp's own quarter", () => {
    const load = `tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r100}, [%r2+5];`;
    const [cells] = loaded(load, 1);
    for (let thread = 0; thread < 128; thread++)
      expect(cells?.[thread * columns + 32]).toBe(tag(thread, 5));
  });
});

describe("26 to 28: round trips", () => {
  test.each([
    ["32x32b", 8, 8],
    ["16x64b", 8, 8],
    ["16x128b", 4, 8],
    ["16x256b", 2, 8],
  ] as const)("%s.x%i, stored and loaded, plain and packed", (shape, repeat, registers) => {
    const instruction = (name: string, packed: string): string =>
      `tcgen05.${name}.sync.aligned.${shape}.x${repeat}${packed}.b32`;
    const then = `tcgen05.ld.sync.aligned.${shape}.x${repeat}.b32 ${vectorOf(100, registers)}, [%r3]; tcgen05.wait::ld.sync.aligned;
      ${instruction("st", "")} [%r3+1], ${vectorOf(100, registers)}; tcgen05.wait::st.sync.aligned;
      ${instruction("ld", "")} ${vectorOf(120, registers)}, [%r3+1]; tcgen05.wait::ld.sync.aligned;
      ${instruction("st", ".unpack::16b")} [%r3+1], ${vectorOf(120, registers)}; tcgen05.wait::st.sync.aligned;
      ${instruction("ld", ".pack::16b")} ${vectorOf(140, registers)}, [%r3+1]; tcgen05.wait::ld.sync.aligned;
      ${instruction("st", "")} [%r3+1], ${vectorOf(140, registers)};
      tcgen05.wait::st.sync.aligned;`;
    const { cells } = tensorKernel({ columns, issue: "", then, fills: [tagged()] });
    const width = shape === "32x32b" ? 8 : 16;
    for (let warp = 0; warp < 4; warp++)
      for (let row = 0; row < (shape === "32x32b" ? 32 : 16); row++)
        for (let column = 0; column < width; column++) {
          const lane = 32 * warp + row;
          expect(cells[0]?.[lane * columns + 1 + column]).toBe(tag(lane, column));
        }
  });

  test("what becomes of upper halves after .unpack::16b is open: registers that hold them are undefined", () => {
    const then = `mov.b32 %r100, 0x00020001; tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r3], {%r100}; tcgen05.wait::st.sync.aligned;`;
    const { codes } = tensorKernel({ columns: 32, issue: "", then });
    expect(codes).toContain("TW8012");
    expect(tensorKernel({ columns: 32, issue: "", then, packed: true }).codes).toEqual([]);
  });
});

describe("30: loads that reduce", () => {
  const values = (random: Random): number[] =>
    Array.from({ length: 8 }, () => Math.fround(random.normal()));
  test.each(["max", "min", "max.abs", "min.abs", "max.NaN", "max.abs.NaN"])(
    "%s.f32",
    (operation) => {
      const random = new Random(30);
      const fill = tagged();
      const rows = Array.from({ length: 128 }, (_, lane) => {
        const row = values(random);
        if (lane % 5 === 0) row[3] = NaN;
        row.forEach((value, column) => (fill[lane * columns + column] = encodeFloat("f32", value)));
        return row;
      });
      const then = `tcgen05.ld.red.sync.aligned.32x32b.x8.${operation}.f32 ${vectorOf(100, 8)}, %r120, [%r3]; tcgen05.wait::ld.sync.aligned;
      tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3+40], {%r120}; tcgen05.wait::st.sync.aligned;`;
      const { cells, codes } = tensorKernel({
        columns,
        issue: "",
        then,
        fills: [fill],
        target: "sm_103a",
      });
      expect(codes).toEqual([]);
      for (const [lane, row] of rows.entries()) {
        const compared = operation.includes("abs") ? row.map(Math.abs) : row;
        const numbers = compared.filter((value) => !Number.isNaN(value));
        const best = operation.startsWith("max") ? Math.max(...numbers) : Math.min(...numbers);
        const expected =
          operation.includes("NaN") && numbers.length < 8 ? 0x7fffffff : encodeFloat("f32", best);
        expect(cells[0]?.[lane * columns + 40]).toBe(expected);
      }
    },
  );

  test.each(["u32", "s32"])("of %s", (type) => {
    const fill = tagged();
    for (let lane = 0; lane < 128; lane++)
      fill.set([5, 0xffff_fff0 + (lane & 7), 3, 100], lane * columns);
    const then = `tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.${type} ${vectorOf(100, 2)}, %r120, [%r3], 2; tcgen05.wait::ld.sync.aligned;
      tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3+40], {%r120}; tcgen05.wait::st.sync.aligned;`;
    const { cells } = tensorKernel({ columns, issue: "", then, fills: [fill], target: "sm_103a" });
    const found = (lane: number): number => cells[0]?.[lane * columns + 40] ?? 0;
    expect([found(1), found(17)]).toEqual([type === "u32" ? 5 : 0xffff_fff1, 3]);
  });
});

/** Words of an image that tell their byte. */
function numbered(bytes: number): Uint8Array {
  return new Uint8Array(
    Uint32Array.from({ length: bytes / 4 }, (_, at) => 0x0100_0000 + at).buffer,
  );
}

describe("31, 32, 36: copies from shared memory", () => {
  const cp = (shape: string, bits: bigint, at = 0): string =>
    `${moveDescriptor(10, bits)} add.s32 %r10, %r2, ${at}; tcgen05.cp.cta_group::1.${shape} [%r10], %d10;`;
  const plain = descriptorBits({ start: 0, leading: 2048, stride: 128, swizzle: "none" });
  const run = (issue: string, image: Uint8Array, fill = tagged()) => {
    const { cells, result } = tensorKernel({ columns, issue, images: [image], fills: [fill] });
    expect(result.findings.map(({ message }) => message)).toEqual([]);
    return (lane: number, column: number): number => cells[0]?.[lane * columns + column] ?? 0;
  };
  const word = (byte: number): number => 0x0100_0000 + byte / 4;

  test("32x128b.warpx4 replicates its rows over the quarters", () => {
    const at = run(cp("32x128b.warpx4", plain, 3), numbered(8192));
    for (let lane = 0; lane < 128; lane++)
      for (let column = 0; column < 4; column++)
        expect(at(lane, 3 + column)).toBe(word(16 * (lane % 32) + 4 * column));
    expect(at(40, 7)).toBe(tag(40, 7));
  });

  test("128x256b without a swizzle: the second half lies a leading offset on", () => {
    const at = run(cp("128x256b", plain), numbered(8192));
    for (let lane = 0; lane < 128; lane++)
      for (let column = 0; column < 8; column++)
        expect(at(lane, column)).toBe(word(16 * lane + 2048 * (column >> 2) + 4 * (column & 3)));
  });

  test("128x128b with a swizzle of 128 bytes", () => {
    const bits = descriptorBits({ start: 32, leading: 0, stride: 1024, swizzle: "128" });
    const at = run(cp("128x128b", bits), numbered(128 * 128));
    for (let lane = 0; lane < 128; lane++)
      for (let column = 0; column < 4; column++)
        expect(at(lane, column)).toBe(word(128 * lane + 16 * (2 ^ (lane % 8)) + 4 * column));
  });

  test("64x128b to two quarters each, either way; 4x256b to a lane of each", () => {
    const crossed = run(cp("64x128b.warpx2::02_13", plain), numbered(8192));
    const beside = run(cp("64x128b.warpx2::01_23", plain), numbered(8192));
    for (let lane = 0; lane < 128; lane++) {
      expect(crossed(lane, 1)).toBe(word(16 * (lane % 64) + 4));
      expect(beside(lane, 1)).toBe(word(16 * ((lane % 32) + (lane < 64 ? 0 : 32)) + 4));
    }
    const few = run(cp("4x256b", plain, 31 << 16), numbered(8192));
    expect([31, 63, 95, 127].map((lane) => few(lane, 5))).toEqual(
      [0, 1, 2, 3].map((row) => word(16 * row + 2048 + 4)),
    );
    expect(few(30, 5)).toBe(tag(30, 5));
  });

  test.each([
    ["b4x16_p64", 4],
    ["b6x16_p32", 6],
  ] as const)("expanded from %s", (format, width) => {
    const random = new Random(32);
    const codes = Array.from({ length: 128 * 16 }, () => random.below(2 ** width));
    const image = new Uint8Array(4096);
    for (const [at, code] of codes.entries())
      for (let bit = 0; bit < width; bit++) {
        const to = (at % 16) * width + bit;
        const byte = 16 * Math.floor(at / 16) + (to >> 3);
        image[byte] = (image[byte] ?? 0) | (((code >> bit) & 1) << (to & 7));
      }
    const at = run(cp(`128x128b.b8x16.${format}`, plain), image);
    for (let lane = 0; lane < 128; lane++)
      for (let element = 0; element < 16; element++) {
        const byte = (at(lane, element >> 2) >>> (8 * (element & 3))) & 255;
        const code = codes[16 * lane + element] ?? 0;
        expect(byte).toBe(width === 4 ? code << 2 : code);
      }
  });

  test("33: in a pair, each block from its own shared memory", () => {
    const images = [numbered(8192), numbered(8192).map((byte) => byte ^ 0x80)];
    const { cells, codes } = tensorKernel({
      ...{ columns, images, pair: true, fills: [tagged(), tagged()] },
      issue: `${moveDescriptor(10, plain)} tcgen05.cp.cta_group::2.128x128b [%r2], %d10;`,
    });
    expect(codes).toEqual([]);
    expect(cells[0]?.[77 * columns + 2]).toBe(word(16 * 77 + 8));
    expect(cells[1]?.[77 * columns + 2]).toBe((word(16 * 77 + 8) ^ 0x8080_8080) >>> 0);
  });

  test("35: shifted down by one and by three, 8 columns of each quarter", () => {
    for (const times of [1, 3]) {
      const shifts = "tcgen05.shift.cta_group::1.down [%r2];";
      // Shifts are kept in order by nothing but a commit.
      const wait = (phase: number): string =>
        `tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [extra];
         $again${phase}: mbarrier.try_wait.parity.shared::cta.b64 %p4, [extra], ${phase & 1}; @!%p4 bra $again${phase}; tcgen05.fence::after_thread_sync;`;
      const issue = Array.from({ length: times }, (_, at) => `${shifts} ${wait(at)}`).join("\n");
      const at = run(issue, new Uint8Array(16));
      for (let lane = 0; lane < 128; lane++) {
        const row = Math.min((lane % 32) + times, 31);
        expect(at(lane, 7)).toBe(tag(32 * Math.floor(lane / 32) + row, 7));
        expect(at(lane, 8)).toBe(tag(lane, 8));
      }
    }
  });
});
