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

type Whole = Required<Case>;

function completed(given: Case): Whole {
  return {
    ...{ b: given.a, vector: 1, scale: "ue8m0", id: 0, sparse: false, pair: false },
    ...{ aInTensorMemory: false, copied: false, selector: 0, ...given },
  };
}

const isScaled = ({ kind }: Whole): boolean => kind.startsWith("mx");
const blocksOf = ({ pair }: Whole): number => (pair ? 2 : 1);

/** Elements of a row of A that are stored, and of a row of B. */
function depthsOf({ kind, sparse }: Whole): { readonly kept: number; readonly depth: number } {
  const kept = 256 / bitsOf(kind);
  return { kept, depth: sparse ? 2 * kept : kept };
}

/** What is multiplied: numbers of A as stored and in full, of B, scales and metadata as codes. */
function dataOf(given: Whole) {
  const { kind, m, n, vector, scale, sparse } = given;
  const random = new Random(11);
  const bits = bitsOf(kind);
  const { kept, depth } = depthsOf(given);
  const small = (): number => random.below(5) - 2;
  const scaleCode = (): number => {
    const at = random.below(4);
    return scale === "ue8m0" ? 126 + at : encodeFloat("f8e4m3fn", [0.5, 1, 1.5, 2][at] ?? 1);
  };
  const valuesB = Array.from({ length: n * depth }, small);
  const scalesA = Array.from({ length: m * vector }, scaleCode);
  const scalesB = Array.from({ length: n * vector }, scaleCode);
  const [size = 4, groups = 16] = groupings[bits] ?? [];
  const all = { code: 0, kept: Array.from({ length: kept }, (_, at) => at) };
  const stored: number[] = [];
  const full = new Array<number>(m * depth).fill(0);
  const codes: number[] = [];
  for (let row = 0; row < m; row++)
    for (let group = 0; group < (sparse ? groups : 1); group++) {
      const chosen = sparse ? choose(random, bits) : all;
      codes.push(chosen.code);
      for (const at of chosen.kept) {
        const value = small();
        stored.push(value);
        full[row * depth + group * size + at] = value;
      }
    }
  return { valuesB, scalesA, scalesB, stored, full, codes, groups };
}

type Numbers = ReturnType<typeof dataOf>;

/** Where a row of a block lies: rows of 64 spread, others lane by lane. */
function laneOf({ m, pair, sparse }: Whole, row: number): number {
  const isSpread = pair ? m === 128 && sparse : m === 64;
  return isSpread ? 32 * (row >> 4) + (row & 15) : row;
}

/** Whether either half of the lanes has half of the columns of B. */
const isHalved = ({ m, pair, sparse }: Whole): boolean => pair && m === 128 && !sparse;

/** Columns: D, A, metadata, scales of A, scales of B. */
function columnsOf(given: Whole) {
  const d = isHalved(given) ? given.n / 2 : given.n;
  const [a, metadata, scalesA, scalesB] = [d, d + 8, d + 12, d + 20];
  return { d, a, metadata, scalesA, scalesB, all: 2 ** Math.ceil(Math.log2(scalesB + 20)) };
}

/** The part of a block, of what is divided between the blocks of a pair. */
function partOf<T>(given: Whole, values: readonly T[], block: number): readonly T[] {
  const size = values.length / blocksOf(given);
  return values.slice(block * size, (block + 1) * size);
}

/** K side by side, without a swizzle: 32 bytes a row of A, and of B 32 or 64. */
function placed(bytes: Uint8Array, rows: number, start: number): PlacedMatrix {
  return {
    ...{ bytes, rows, start, elementBytes: 1, major: "k", swizzle: "none" },
    leading: 16 * rows,
    stride: 128,
  };
}

function operandsOf(given: Whole, { stored, valuesB }: Numbers, block: number) {
  const { kind, a, b, m, n } = given;
  const [left, right] = [formats[a], formats[b]];
  const codesA = partOf(given, stored, block).map((value) => encode(left, value));
  const codesB = partOf(given, valuesB, block).map((value) => encode(right, value));
  const rows = m / blocksOf(given);
  return {
    codesA,
    placedA: placed(pack(kind, left, codesA), rows, 0),
    placedB: placed(pack(kind, right, codesB), n / blocksOf(given), 32 * rows),
  };
}

/** Where atoms of scales lie in shared memory. */
const scaleStart = 24 * 1024;

function imageOf(given: Whole, numbers: Numbers, block: number): Uint8Array {
  const image = new Uint8Array(scaleStart + 2048);
  const { placedA, placedB } = operandsOf(given, numbers, block);
  placeMatrix(image, placedA);
  placeMatrix(image, placedB);
  return image;
}

const quarters = [0, 32, 64, 96];

/** Scales of A and B, each in a byte of the lanes that want it. */
function putScales(
  given: Whole,
  { scalesA, scalesB }: Numbers,
  block: number,
  words: Uint32Array,
): void {
  const { m, n, vector, id, pair } = given;
  const columns = columnsOf(given);
  const bytes = new Uint8Array(words.buffer);
  const put = (column: number, lanes: readonly number[], byte: number, code: number): void => {
    for (const lane of lanes)
      bytes[4 * (lane * columns.all + column + (byte >> 2)) + (byte & 3)] = code;
  };
  const rows = m / blocksOf(given);
  for (let at = 0; at < rows * vector; at++) {
    const row = Math.floor(at / vector);
    const lanes = quarters.map((quarter) => quarter + (row & 31));
    put(
      columns.scalesA + (row >> 5),
      lanes,
      id + (at % vector),
      scalesA[block * rows * vector + at] ?? 0,
    );
  }
  const isSplit = pair && m === 128;
  const perHalf = isSplit ? n / 2 : n;
  for (let at = 0; at < n * vector; at++) {
    const half = Math.floor(at / vector / perHalf);
    const within = Math.floor(at / vector) % perHalf;
    const copies = isSplit ? [64 * half, 64 * half + 32] : quarters;
    const lanes = copies.map((copy) => copy + (within & 31));
    put(columns.scalesB + (within >> 5), lanes, id + (at % vector), scalesB[at] ?? 0);
  }
}

function putMetadata(
  given: Whole,
  { codes, groups }: Numbers,
  block: number,
  words: Uint32Array,
): void {
  const { selector } = given;
  const columns = columnsOf(given);
  for (const [at, code] of partOf(given, codes, block).entries()) {
    const [row, group] = [Math.floor(at / groups), at % groups];
    const [lane, column, nibble] =
      groups === 16
        ? [laneOf(given, row), group >> 3, group & 7]
        : [
            laneOf(given, row & ~15) + (row & 7) + 8 * (group >> 2),
            selector,
            4 * ((row >> 3) & 1) + (group & 3),
          ];
    const cell = lane * columns.all + columns.metadata + column;
    words[cell] = ((words[cell] ?? 0) | (code << (4 * nibble))) >>> 0;
  }
}

function fillOf(given: Whole, numbers: Numbers, block: number): Uint32Array {
  const { kind, a, sparse, aInTensorMemory } = given;
  const columns = columnsOf(given);
  const words = new Uint32Array(128 * columns.all);
  if (aInTensorMemory) {
    const { kept } = depthsOf(given);
    const { codesA } = operandsOf(given, numbers, block);
    for (let at = 0; at < codesA.length; at += kept) {
      const own = containers(kind, formats[a], codesA.slice(at, at + kept));
      for (const bank of isHalved(given) ? [0, 64] : [0])
        new Uint8Array(words.buffer).set(
          own,
          4 * ((laneOf(given, at / kept) + bank) * columns.all + columns.a),
        );
    }
  }
  if (sparse) putMetadata(given, numbers, block, words);
  if (isScaled(given)) putScales(given, numbers, block, words);
  return words;
}

/** Moves scales from tensor memory to atoms of 512 bytes, words of a row of 32 beside each other. */
function toAtoms(given: Whole, words: Uint32Array, image: Uint8Array): void {
  const { all, scalesA, scalesB } = columnsOf(given);
  const view = new DataView(image.buffer);
  for (const [atom, first] of [scalesA, scalesB, scalesB + 4].entries())
    for (let at = 0; at < 128; at++) {
      const [lane, word] = [at >> 2, at & 3];
      view.setUint32(scaleStart + 512 * atom + 4 * at, words[lane * all + first + word] ?? 0, true);
      for (const quarter of quarters) words[(quarter + lane) * all + first + word] = 0xffff_ffff;
    }
}

function descriptorOf(given: Whole): number {
  const { kind, a, b, m, n, scale, id, sparse, selector } = given;
  const element = (name: keyof typeof formats): number =>
    bitsOf(kind) === 4 ? 1 : formats[name].code;
  const common =
    selector | (sparse ? 4 : 0) | (element(a) << 7) | (element(b) << 10) | ((n >> 3) << 17);
  const rest = isScaled(given)
    ? (id << 4) | (Number(scale === "ue8m0") << 23) | ((m >> 7) << 27) | (id << 29)
    : ((kind === "i8" ? 2 : 1) << 4) | ((m >> 4) << 24);
  return (common | rest) >>> 0;
}

function issueOf(given: Whole, numbers: Numbers): string {
  const { kind, vector, sparse, aInTensorMemory, copied } = given;
  const columns = columnsOf(given);
  const { placedA, placedB } = operandsOf(given, numbers, 0);
  const group = blocksOf(given);
  const copies = [columns.scalesA, columns.scalesB, columns.scalesB + 4].map((column, atom) => {
    const at = {
      start: scaleStart + 512 * atom,
      leading: 0,
      stride: 128,
      swizzle: "none",
    } as const;
    return `${moveDescriptor(12, descriptorBits(at))} add.s32 %r12, %r2, ${column};
      tcgen05.cp.cta_group::${group}.32x128b.warpx4 [%r12], %d12;`;
  });
  const scaled = isScaled(given);
  const operands = [
    "[%r2]",
    aInTensorMemory ? `[%r2+${columns.a}]` : "%d10",
    "%d11",
    ...(sparse ? [`[%r2+${columns.metadata}]`] : []),
    "%r10",
    ...(scaled ? [`[%r2+${columns.scalesA}]`, `[%r2+${columns.scalesB}]`] : []),
    "0",
  ];
  const form = `cta_group::${group}.kind::${kind}${scaled ? `.block_scale.scale_vec::${vector}X` : ""}`;
  return `${copied ? copies.join("\n") : ""}
    ${moveDescriptor(10, descriptorBits(placedA))} ${moveDescriptor(11, descriptorBits(placedB))}
    mov.b32 %r10, ${descriptorOf(given)}; tcgen05.mma${sparse ? ".sp" : ""}.${form} ${operands.join(", ")};`;
}

/** The sum of products of a row and a column, with their scales. */
function expectedAt(given: Whole, numbers: Numbers, row: number, column: number): number {
  const { vector, scale } = given;
  const { depth } = depthsOf(given);
  const value = (code = 0): number =>
    scale === "ue8m0" ? 2 ** (code - 127) : decodeFloat("f8e4m3fn", code);
  let sum = 0;
  for (let k = 0; k < depth; k++) {
    const block = Math.floor((k * vector) / depth);
    const product =
      (numbers.full[row * depth + k] ?? 0) * (numbers.valuesB[column * depth + k] ?? 0);
    const left = numbers.scalesA[row * vector + block];
    const right = numbers.scalesB[column * vector + block];
    sum += isScaled(given) ? product * value(left) * value(right) : product;
  }
  return sum;
}

function run(one: Case): void {
  const given = completed(one);
  const { kind, m, n, pair, copied } = given;
  const numbers = dataOf(given);
  const columns = columnsOf(given);
  const ranks = Array.from({ length: blocksOf(given) }, (_, block) => block);
  const images = ranks.map((block) => imageOf(given, numbers, block));
  const fills = ranks.map((block) => fillOf(given, numbers, block));
  if (copied)
    for (const [block, image] of images.entries())
      toAtoms(given, fills[block] ?? new Uint32Array(), image);
  const issue = issueOf(given, numbers);
  const { cells, result } = tensorKernel({ columns: columns.all, issue, images, fills, pair });
  expect(result.findings.map(({ message }) => message)).toEqual([]);
  const rows = m / ranks.length;
  const wrong: string[] = [];
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      const half = Math.floor(column / columns.d);
      const lane = laneOf(given, row % rows) + 64 * half;
      const cell = cells[Math.floor(row / rows)]?.[lane * columns.all + column - half * columns.d];
      const found = kind === "i8" ? (cell ?? 0) | 0 : decodeFloat("f32", cell ?? 0);
      const sum = expectedAt(given, numbers, row, column);
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
