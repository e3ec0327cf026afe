/**
 * Dots of block-scaled operands by native instructions of sm_120a, against float64: behaviours 48 to 51. Scales lie as
 * libraries hand them over, in tiles of 128 rows by 4 blocks, of which a lane loads a row's four with one word:
 *
 *   byte of (row r, block b)   512·(4-block tile) + 16·(r mod 32) + 4·⌊r/32⌋ + b mod 4
 */
import { describe, expect, test } from "vitest";
import { decodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 51;
const [rows, columns] = [16, 8];

const names = {
  e4m3: "f8e4m3fn",
  e2m1: "f4e2m1fn",
  ue8m0: "f8e8m0fnu",
  ue4m3: "f8e4m3fn",
} as const;

interface Dot {
  readonly kind: "mxf8f6f4" | "mxf4" | "mxf4nvf4";
  readonly a: "e4m3" | "e2m1";
  readonly b: "e4m3" | "e2m1";
  readonly scale: "ue8m0" | "ue4m3";
  /** Elements that have a scale together. */
  readonly block: 16 | 32;
  readonly k: number;
  readonly scales: "one" | "random";
}

/** Codes of rows of k, and a scale for each block of them. */
interface Operand {
  readonly codes: readonly (readonly number[])[];
  readonly scales: readonly (readonly number[])[];
}

function drawOperand(dot: Dot, format: "e4m3" | "e2m1", lines: number, random: Random): Operand {
  const most = format === "e4m3" ? 0x48 : 8;
  const sign = format === "e4m3" ? 0x80 : 8;
  const one = dot.scale === "ue8m0" ? 127 : 0x38;
  const scale = (): number =>
    dot.scales === "one"
      ? one
      : one - (dot.scale === "ue8m0" ? 3 : 12) + random.below(dot.scale === "ue8m0" ? 7 : 24);
  const list = (count: number, make: () => number): number[] => Array.from({ length: count }, make);
  const lists = (count: number, make: () => number): number[][] =>
    Array.from({ length: lines }, () => list(count, make));
  return {
    codes: lists(dot.k, () => random.below(most) + random.below(2) * sign),
    scales: lists(dot.k / dot.block, scale),
  };
}

function valueOf(
  dot: Dot,
  format: "e4m3" | "e2m1",
  { codes, scales }: Operand,
  line: number,
  k: number,
) {
  const element = decodeFloat(names[format], codes[line]?.[k] ?? 0);
  return element * decodeFloat(names[dot.scale], scales[line]?.[Math.floor(k / dot.block)] ?? 0);
}

/** Elements as bytes of a row: two in one where the kind packs them, else padded. */
function rowBytes(dot: Dot, format: "e4m3" | "e2m1", codes: readonly number[]): Uint8Array {
  if (dot.kind === "mxf8f6f4")
    return Uint8Array.from(codes, (code) => (format === "e2m1" ? code << 2 : code));
  return Uint8Array.from(
    { length: codes.length / 2 },
    (_, at) => (codes[2 * at] ?? 0) | ((codes[2 * at + 1] ?? 0) << 4),
  );
}

function matrixBytes(dot: Dot, format: "e4m3" | "e2m1", { codes }: Operand): Uint8Array {
  return Uint8Array.from(codes.flatMap((line) => [...rowBytes(dot, format, line)]));
}

function tiledScales({ scales }: Operand): Uint8Array {
  const blocks = scales[0]?.length ?? 0;
  const bytes = new Uint8Array(512 * Math.ceil(blocks / 4));
  scales.forEach((line, row) =>
    line.forEach((code, block) => {
      bytes[512 * (block >> 2) + 16 * (row % 32) + 4 * (row >> 5) + (block & 3)] = code;
    }),
  );
  return bytes;
}

/** One instruction after the other along k, each with the bytes of its scales. */
function bodyOf(dot: Dot): string {
  const packed = dot.kind !== "mxf8f6f4";
  const depth = packed ? 64 : 32;
  const perStep = depth / dot.block;
  const perRow = packed ? dot.k / 2 : dot.k;
  const { kind, a, b, scale } = dot;
  const opcode = `mma.sync.aligned.kind::${kind}.block_scale.scale_vec::${perStep}X.m16n8k${depth}.row.col.f32.${a}.${b}.f32.${scale}`;
  const steps = Array.from({ length: dot.k / depth }, (_, step) => {
    const first = step * perStep;
    const at = 32 * step;
    return `
      ld.global.b32 %r10, [%d1+${at}]; ld.global.b32 %r11, [%d1+${at + 8 * perRow}];
      ld.global.b32 %r12, [%d1+${at + 16}]; ld.global.b32 %r13, [%d1+${at + 16 + 8 * perRow}];
      ld.global.b32 %r14, [%d2+${at}]; ld.global.b32 %r15, [%d2+${at + 16}];
      ld.global.b32 %r16, [%d3+${512 * (first >> 2)}]; ld.global.b32 %r17, [%d4+${512 * (first >> 2)}];
      ${opcode} {%r20, %r21, %r22, %r23}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r20, %r21, %r22, %r23},
        %r16, {${first & 3}, 0}, %r17, {${first & 3}, 0};`;
  });
  // Lanes 4g and 4g + 1 have the scales of rows g and g + 8, lane 4g those of column g.
  return `shr.u32 %r1, %thread, 2; and.b32 %r2, %thread, 3; and.b32 %r3, %thread, 1;
    mad.lo.u32 %r4, %r1, ${perRow}, 0; mad.lo.u32 %r4, %r2, 4, %r4; cvt.u64.u32 %d5, %r4;
    add.u64 %d1, %a, %d5; add.u64 %d2, %b, %d5;
    mad.lo.u32 %r5, %r3, 8, %r1; mul.wide.u32 %d3, %r5, 16; add.u64 %d3, %d3, %sa;
    mul.wide.u32 %d4, %r1, 16; add.u64 %d4, %d4, %sb;
    mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;
    ${steps.join("")}
    mul.wide.u32 %d5, %thread, 16; add.u64 %d5, %d5, %out; st.global.v4.b32 [%d5], {%r20, %r21, %r22, %r23};`;
}

function expectDot(dot: Dot, tolerance: number): void {
  const random = new Random(seed);
  const [a, b] = [drawOperand(dot, dot.a, rows, random), drawOperand(dot, dot.b, columns, random)];
  const { arrays, codes } = runPtx({
    body: bodyOf(dot),
    target: "sm_120a",
    arrays: {
      ...{ a: matrixBytes(dot, dot.a, a), b: matrixBytes(dot, dot.b, b), out: 512 },
      ...{ sa: tiledScales(a), sb: tiledScales(b) },
    },
  });
  expect(codes).toEqual([]);
  const out = new Float32Array(arrays["out"]?.buffer ?? new ArrayBuffer(512));
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let [sum, magnitude] = [0, 0];
      for (let k = 0; k < dot.k; k++) {
        const product = valueOf(dot, dot.a, a, row, k) * valueOf(dot, dot.b, b, column, k);
        sum += product;
        magnitude += Math.abs(product);
      }
      const found = out[4 * (4 * (row & 7) + (column >> 1)) + 2 * (row >> 3) + (column & 1)] ?? NaN;
      const error = Math.abs(found - sum) / Math.max(1, magnitude);
      expect(error, `seed ${seed}: row ${row}, column ${column}`).toBeLessThan(tolerance);
    }
}

const mxf8: Dot = {
  kind: "mxf8f6f4",
  a: "e4m3",
  b: "e4m3",
  scale: "ue8m0",
  block: 32,
  k: 256,
  scales: "one",
};

describe("with scales in tiles (51)", () => {
  test("48: mxfp8, all scales 1", () => {
    expectDot(mxf8, 1e-6);
  });

  test("48: mxfp8, scales at random", () => {
    expectDot({ ...mxf8, scales: "random" }, 1e-6);
  });

  test.each([
    { ...mxf8, kind: "mxf4", a: "e2m1", b: "e2m1" },
    { ...mxf8, kind: "mxf4nvf4", a: "e2m1", b: "e2m1" },
    { ...mxf8, kind: "mxf4nvf4", a: "e2m1", b: "e2m1", scale: "ue4m3", block: 16 },
  ] as const)("49: $kind with $scale for $block elements, packed along k", (dot) => {
    expectDot(dot, 1e-9);
    expectDot({ ...dot, scales: "random" }, 1e-6);
  });

  test("50: mxfp8 by mxfp4 in padded bytes", () => {
    expectDot({ ...mxf8, b: "e2m1", scales: "random" }, 1e-6);
    expectDot({ ...mxf8, a: "e2m1", scales: "random" }, 1e-6);
  });
});
