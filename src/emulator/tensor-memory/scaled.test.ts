/**
 * Products with scales and sparse products: operands, scales and metadata are put where hardware wants them by walks over memory, and
 * results compared with sums of products of numbers that are exact.
 */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  moveDescriptor,
  placeMatrix,
  tensorKernel,
} from "../../../test/support/tensor-memory-kernel.ts";
import type { PlacedMatrix } from "../../../test/support/tensor-memory-kernel.ts";
import { isTaken } from "../../../test/support/sample.ts";
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";

interface Format {
  readonly code: number;
  readonly name:
    | "f8e4m3fn"
    | "f8e5m2"
    | "f6e2m3fn"
    | "f6e3m2fn"
    | "f4e2m1fn"
    | "f16"
    | "f32"
    | "s8";
}

const formats = {
  e4m3: { code: 0, name: "f8e4m3fn" },
  e5m2: { code: 1, name: "f8e5m2" },
  e2m3: { code: 3, name: "f6e2m3fn" },
  e3m2: { code: 4, name: "f6e3m2fn" },
  e2m1: { code: 5, name: "f4e2m1fn" },
  f16: { code: 0, name: "f16" },
  tf32: { code: 2, name: "f32" },
  s8: { code: 1, name: "s8" },
} as const satisfies { readonly [name: string]: Format };

interface Case {
  readonly kind: "f16" | "tf32" | "f8f6f4" | "i8" | "mxf8f6f4" | "mxf4" | "mxf4nvf4";
  readonly a: keyof typeof formats;
  readonly b?: keyof typeof formats;
  readonly m: number;
  readonly n: number;
  /** Of a row, for an instruction. */
  readonly vector?: 1 | 2 | 4;
  readonly scale?: "ue8m0" | "ue4m3";
  readonly id?: number;
  readonly sparse?: boolean;
  readonly pair?: boolean;
  readonly aInTensorMemory?: boolean;
  /** Copies scales by tcgen05.cp instead of storing them. */
  readonly copied?: boolean;
  readonly selector?: number;
}

const bitsOf = (kind: Case["kind"]): number =>
  kind === "tf32" ? 32 : kind === "f16" ? 16 : kind.startsWith("mxf4") ? 4 : 8;

/** Whole numbers as elements of a format. */
function encode(format: Format, value: number): number {
  return format.name === "s8" ? value & 255 : encodeFloat(format.name, value);
}

/** Elements as bytes of shared memory: those of 4 and 6 bits, where others have bytes, as 16 elements in 16 bytes. */
function pack(kind: Case["kind"], format: Format, codes: readonly number[]): Uint8Array {
  const bits = bitsOf(kind);
  if (bits === 32) return new Uint8Array(Uint32Array.from(codes).buffer);
  if (bits === 16) return new Uint8Array(Uint16Array.from(codes).buffer);
  if (bits === 4)
    return Uint8Array.from(
      { length: codes.length / 2 },
      (_, at) => (codes[2 * at] ?? 0) | ((codes[2 * at + 1] ?? 0) << 4),
    );
  const width = format.name.startsWith("f4") ? 4 : format.name.startsWith("f6") ? 6 : 8;
  const bytes = new Uint8Array(codes.length);
  for (const [at, code] of codes.entries())
    for (let bit = 0; bit < width; bit++) {
      const to = (at % 16) * width + bit;
      const byte = (at & ~15) + (to >> 3);
      bytes[byte] = (bytes[byte] ?? 0) | (((code >> bit) & 1) << (to & 7));
    }
  return bytes;
}

/** Bytes of an operand in tensor memory, where 4-bit elements have bytes of their own. */
function containers(kind: Case["kind"], format: Format, codes: readonly number[]): Uint8Array {
  if (bitsOf(kind) !== 8) return pack(kind, format, codes);
  return Uint8Array.from(codes, (code) => (format.name.startsWith("f4") ? code << 2 : code));
}

/** How a sparse row is told: elements of a group, which of them are there, by code. */
const groupings: { readonly [bits: number]: readonly [size: number, groups: number] } = {
  32: [2, 8],
  16: [4, 8],
  8: [4, 16],
  4: [8, 16],
};

function choose(
  random: Random,
  bits: number,
): { readonly code: number; readonly kept: readonly number[] } {
  if (bits === 32) {
    const second = random.below(2);
    return { code: second === 0 ? 0b0100 : 0b1110, kept: [second] };
  }
  const pairs = [
    [0, 1],
    [0, 2],
    [0, 3],
    [1, 2],
    [1, 3],
    [2, 3],
  ] as const;
  const [low, high] = pairs[random.below(6)] ?? pairs[0];
  const kept = bits === 4 ? [2 * low, 2 * low + 1, 2 * high, 2 * high + 1] : [low, high];
  return { code: low | (high << 2), kept };
}

function run(given: Case): void {
  const { kind, a, b = a, m, n, vector = 0, scale = "ue8m0", id = 0, selector = 0 } = given;
  const { sparse = false, pair = false, aInTensorMemory = false, copied = false } = given;
  const random = new Random(11);
  const blocks = pair ? 2 : 1;
  const bits = bitsOf(kind);
  const [left, right] = [formats[a], formats[b]];
  const kept = 256 / bits;
  const depth = sparse ? 2 * kept : kept;
  const small = (): number => random.below(5) - 2;
  const scaleCode = (): number =>
    scale === "ue8m0"
      ? 126 + random.below(4)
      : encodeFloat("f8e4m3fn", [0.5, 1, 1.5, 2][random.below(4)] ?? 1);
  const scaleValue = (code: number): number =>
    scale === "ue8m0" ? 2 ** (code - 127) : decodeFloat("f8e4m3fn", code);
  const valuesB = Array.from({ length: n * depth }, small);
  const scalesA = Array.from({ length: m * vector }, scaleCode);
  const scalesB = Array.from({ length: n * vector }, scaleCode);
  const [size = 4, groups = 16] = groupings[bits] ?? [];
  const stored: number[] = [];
  const full = new Array<number>(m * depth).fill(0);
  const codes: number[] = [];
  for (let row = 0; row < m; row++)
    for (let group = 0; group < (sparse ? groups : 1); group++) {
      const chosen = sparse
        ? choose(random, bits)
        : { code: 0, kept: Array.from({ length: kept }, (_, at) => at) };
      codes.push(chosen.code);
      for (const at of chosen.kept) {
        const value = small();
        stored.push(value);
        full[row * depth + (sparse ? group * size : 0) + at] = value;
      }
    }
  const [rowsA, rowsB] = [m / blocks, n / blocks];
  const slice = (values: readonly number[], block: number): readonly number[] =>
    values.slice((block * values.length) / blocks, ((block + 1) * values.length) / blocks);
  // K side by side: 32 bytes a row of A without a swizzle, and of B 32 or 64.
  const matrix = (bytes: Uint8Array, rows: number, start: number): PlacedMatrix => ({
    ...{ bytes, rows, start, elementBytes: 1, major: "k", swizzle: "none" },
    leading: 16 * rows,
    stride: 128,
  });
  const codesA = (block: number): readonly number[] =>
    slice(stored, block).map((value) => encode(left, value));
  const codesB = (block: number): readonly number[] =>
    slice(valuesB, block).map((value) => encode(right, value));
  const startB = 32 * rowsA;
  const bytesB = pack(kind, right, codesB(0)).length;
  const scaleStart = 1024 * Math.ceil((startB + bytesB) / 1024);
  const placedA = matrix(pack(kind, left, codesA(0)), rowsA, 0);
  const placedB = matrix(pack(kind, right, codesB(0)), rowsB, startB);
  // Columns: D, A, metadata, scales of A, scales of B.
  const isSplit = pair && m === 128;
  const spread = sparse && (pair ? m === 128 : m === 64);
  const perBank = isSplit && !sparse ? n / 2 : n;
  const columnA = perBank;
  const columnMeta = columnA + 8;
  const columnScaleA = columnMeta + 4;
  const columnScaleB = columnScaleA + 8;
  const columns = 2 ** Math.ceil(Math.log2(columnScaleB + 20));
  const laneOf = (row: number): number =>
    spread || (m === 64 && !pair) ? 32 * (row >> 4) + (row & 15) : row;
  const images = Array.from({ length: blocks }, (_, block) => {
    const image = new Uint8Array(scaleStart + 4096);
    placeMatrix(image, { ...placedA, bytes: pack(kind, left, codesA(block)) });
    placeMatrix(image, { ...placedB, bytes: pack(kind, right, codesB(block)) });
    return image;
  });
  const fills = Array.from({ length: blocks }, (_, block) => {
    const words = new Uint32Array(128 * columns);
    const bytes = new Uint8Array(words.buffer);
    for (let row = 0; row < rowsA; row++) {
      const own = containers(kind, left, codesA(block).slice(row * kept, (row + 1) * kept));
      const banks = isSplit && !sparse ? [0, 64] : [0];
      if (aInTensorMemory)
        for (const bank of banks) bytes.set(own, 4 * ((laneOf(row) + bank) * columns + columnA));
      if (!sparse) continue;
      for (let group = 0; group < groups; group++) {
        const code = codes[(block * rowsA + row) * groups + group] ?? 0;
        const put = (lane: number, column: number, nibble: number): void => {
          const at = lane * columns + columnMeta + column;
          words[at] = ((words[at] ?? 0) | (code << (4 * nibble))) >>> 0;
        };
        if (groups === 16) put(laneOf(row), group >> 3, group & 7);
        else
          put(
            laneOf(row & ~15) + (row & 7) + 8 * (group >> 2),
            selector,
            4 * ((row >> 3) & 1) + (group & 3),
          );
      }
    }
    const putScale = (
      column: number,
      lanes: readonly number[],
      byte: number,
      code: number,
    ): void => {
      for (const lane of lanes)
        bytes[4 * (lane * columns + column + (byte >> 2)) + (byte & 3)] = code;
    };
    const quarters = [0, 32, 64, 96];
    for (let row = 0; row < rowsA; row++)
      for (let at = 0; at < vector; at++) {
        const code = scalesA[(block * rowsA + row) * vector + at] ?? 0;
        putScale(
          columnScaleA + (row >> 5),
          quarters.map((quarter) => quarter + (row & 31)),
          id + at,
          code,
        );
      }
    for (let column = 0; column < n; column++)
      for (let at = 0; at < vector; at++) {
        const code = scalesB[column * vector + at] ?? 0;
        const half = isSplit ? Math.floor(column / (n / 2)) : 0;
        const within = isSplit ? column % (n / 2) : column;
        const copies = isSplit ? [64 * half, 64 * half + 32] : quarters;
        putScale(
          columnScaleB + (within >> 5),
          copies.map((copy) => copy + (within & 31)),
          id + at,
          code,
        );
      }
    return words;
  });
  if (copied) {
    // Atoms of 512 bytes: words of a row of 32 lie beside each other; nothing of them is stored.
    for (const [block, image] of images.entries())
      for (let atom = 0; atom < 3; atom++)
        for (let lane = 0; lane < 32; lane++)
          for (let word = 0; word < 4; word++) {
            const column = (atom === 0 ? columnScaleA : columnScaleB + 4 * (atom - 1)) + word;
            const own = fills[block] ?? new Uint32Array();
            new DataView(image.buffer).setUint32(
              scaleStart + 512 * atom + 16 * lane + 4 * word,
              own[lane * columns + column] ?? 0,
              true,
            );
            for (const quarter of [0, 32, 64, 96])
              own[(quarter + lane) * columns + column] = 0xffff_ffff;
          }
  }
  const scaled = vector !== 0;
  const element = (name: keyof typeof formats): number =>
    kind.startsWith("mxf4") ? 1 : formats[name].code;
  const accumulator = kind === "i8" ? 2 : 1;
  const word =
    (selector |
      (sparse ? 4 : 0) |
      (scaled ? id << 4 : accumulator << 4) |
      (element(a) << 7) |
      (element(b) << 10) |
      ((n >> 3) << 17) |
      (scaled
        ? ((scale === "ue8m0" ? 1 : 0) << 23) | ((m >> 7) << 27) | (id << 29)
        : (m >> 4) << 24)) >>>
    0;
  const copies = copied
    ? [columnScaleA, columnScaleB, columnScaleB + 4].map((column, atom) => {
        const bits64 = descriptorBits({
          start: scaleStart + 512 * atom,
          leading: 0,
          stride: 128,
          swizzle: "none",
        });
        return `${moveDescriptor(12, bits64)} add.s32 %r12, %r2, ${column}; tcgen05.cp.cta_group::${blocks}.32x128b.warpx4 [%r12], %d12;`;
      })
    : [];
  const vectors = scaled ? `.block_scale.scale_vec::${vector}X` : "";
  const operands = [
    "[%r2]",
    aInTensorMemory ? `[%r2+${columnA}]` : "%d10",
    "%d11",
    ...(sparse ? [`[%r2+${columnMeta}]`] : []),
    "%r10",
    ...(scaled ? [`[%r2+${columnScaleA}]`, `[%r2+${columnScaleB}]`] : []),
    "0",
  ];
  const issue = `${copies.join("\n")} ${moveDescriptor(10, descriptorBits(placedA))} ${moveDescriptor(11, descriptorBits(placedB))}
    mov.b32 %r10, ${word}; tcgen05.mma${sparse ? ".sp" : ""}.cta_group::${blocks}.kind::${kind}${vectors} ${operands.join(", ")};`;
  const { cells, result } = tensorKernel({ columns, issue, images, fills, pair });
  expect(result.findings.map(({ message }) => message)).toEqual([]);
  const wrong: string[] = [];
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let k = 0; k < depth; k++) {
        const block = scaled ? Math.floor((k * vector) / depth) : 0;
        const factor = scaled
          ? scaleValue(scalesA[row * vector + block] ?? 0) *
            scaleValue(scalesB[column * vector + block] ?? 0)
          : 1;
        sum += (full[row * depth + k] ?? 0) * (valuesB[column * depth + k] ?? 0) * factor;
      }
      const own = row % rowsA;
      const half = perBank < n && column >= perBank ? 1 : 0;
      const cell =
        cells[Math.floor(row / rowsA)]?.[
          (laneOf(own) + 64 * half) * columns + column - half * perBank
        ] ?? 0;
      const found = kind === "i8" ? cell | 0 : decodeFloat("f32", cell);
      if (found !== sum) wrong.push(`${row}, ${column}: ${found} for ${sum}`);
    }
  expect(wrong.slice(0, 4)).toEqual([]);
}

const cases: readonly Case[] = [
  // 15 to 17, 20
  { kind: "mxf8f6f4", a: "e5m2", m: 128, n: 32, vector: 1 },
  { kind: "mxf8f6f4", a: "e4m3", m: 128, n: 8, vector: 1, id: 3 },
  { kind: "mxf8f6f4", a: "e4m3", b: "e5m2", m: 128, n: 64, vector: 1, id: 1, copied: true },
  { kind: "mxf8f6f4", a: "e4m3", m: 128, n: 192, vector: 1, aInTensorMemory: true },
  { kind: "mxf8f6f4", a: "e4m3", b: "e2m1", m: 128, n: 64, vector: 1 },
  { kind: "mxf8f6f4", a: "e2m3", b: "e3m2", m: 128, n: 32, vector: 1, aInTensorMemory: true },
  { kind: "mxf8f6f4", a: "e2m1", m: 128, n: 32, vector: 1, aInTensorMemory: true },
  { kind: "f8f6f4", a: "e2m1", b: "e3m2", m: 128, n: 32 },
  { kind: "f8f6f4", a: "e2m3", b: "e4m3", m: 64, n: 16, aInTensorMemory: true },
  { kind: "mxf4", a: "e2m1", m: 128, n: 128, vector: 2, id: 2 },
  { kind: "mxf4", a: "e2m1", m: 128, n: 64, vector: 2, aInTensorMemory: true, copied: true },
  { kind: "mxf4nvf4", a: "e2m1", m: 128, n: 64, vector: 4, scale: "ue4m3" },
  { kind: "mxf4nvf4", a: "e2m1", m: 128, n: 256, vector: 2 },
  // 18, 19
  { kind: "mxf8f6f4", a: "e4m3", m: 256, n: 64, vector: 1, pair: true },
  {
    kind: "mxf4nvf4",
    a: "e2m1",
    m: 256,
    n: 128,
    vector: 4,
    scale: "ue4m3",
    pair: true,
    copied: true,
  },
  { kind: "mxf8f6f4", a: "e4m3", m: 128, n: 128, vector: 1, pair: true },
  // 21 to 23
  { kind: "f16", a: "f16", m: 128, n: 32, sparse: true, selector: 1 },
  { kind: "f16", a: "f16", m: 64, n: 16, sparse: true },
  { kind: "tf32", a: "tf32", m: 128, n: 64, sparse: true },
  { kind: "i8", a: "s8", m: 128, n: 32, sparse: true },
  { kind: "f8f6f4", a: "e4m3", m: 128, n: 64, sparse: true, aInTensorMemory: true },
  { kind: "f16", a: "f16", m: 256, n: 64, sparse: true, pair: true },
  { kind: "f8f6f4", a: "e4m3", m: 128, n: 64, sparse: true, pair: true },
  // 24, 25
  { kind: "mxf8f6f4", a: "e4m3", m: 128, n: 32, vector: 1, sparse: true },
  { kind: "mxf4", a: "e2m1", m: 128, n: 32, vector: 2, sparse: true },
  { kind: "mxf4nvf4", a: "e2m1", m: 128, n: 32, vector: 4, scale: "ue4m3", sparse: true },
];

describe("products with scales, and of a sparse A", () => {
  const taken = cases.filter((_, place) => isTaken(place, 3));
  test.each(taken.map((each) => [JSON.stringify(each), each] as const))("%s", (_, each) => {
    run(each);
  });
});
