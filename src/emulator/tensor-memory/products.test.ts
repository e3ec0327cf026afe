/**
 * Products in tensor memory: every kind, shape and placement, on whole numbers whose products are exact. One case in three, or all with
 * `TILEWRIGHT_CASES=all`.
 */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  moveDescriptor,
  placeMatrix,
  tensorKernel,
} from "../../../test/support/tensor-memory-kernel.ts";
import type { PlacedMatrix, Swizzle } from "../../../test/support/tensor-memory-kernel.ts";
import { isTaken } from "../../../test/support/sample.ts";
import { encodeFloat, decodeFloat } from "../../formats/floats.ts";
import type { CodedFloatName } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";

type Kind = "f16" | "tf32" | "f8f6f4" | "i8";

interface Format {
  readonly kind: Kind;
  readonly code: number;
  readonly bytes: number;
  readonly encode: (value: number) => number;
  /** Whole numbers up to this are there. */
  readonly most: number;
}

const float = (name: CodedFloatName) => (value: number) => encodeFloat(name, value);
const formats = {
  f16: { kind: "f16", code: 0, bytes: 2, encode: float("f16"), most: 4 },
  bf16: { kind: "f16", code: 1, bytes: 2, encode: float("bf16"), most: 4 },
  tf32: { kind: "tf32", code: 2, bytes: 4, encode: float("f32"), most: 4 },
  e4m3: { kind: "f8f6f4", code: 0, bytes: 1, encode: float("f8e4m3fn"), most: 4 },
  e5m2: { kind: "f8f6f4", code: 1, bytes: 1, encode: float("f8e5m2"), most: 4 },
  u8: { kind: "i8", code: 0, bytes: 1, encode: (value: number) => Math.abs(value), most: 100 },
  s8: { kind: "i8", code: 1, bytes: 1, encode: (value: number) => value & 255, most: 100 },
} as const satisfies { readonly [name: string]: Format };
type FormatName = keyof typeof formats;

const isUnsigned = (name: FormatName): boolean => name === "u8";

interface Product {
  readonly a: FormatName;
  readonly b?: FormatName;
  readonly m: number;
  readonly n: number;
  readonly d?: "f16" | "f32";
  readonly majorA?: "k" | "mn";
  readonly majorB?: "k" | "mn";
  readonly swizzleA?: Swizzle;
  readonly swizzleB?: Swizzle;
  readonly pair?: boolean;
  readonly ws?: boolean;
  /** Lane offset of D. */
  readonly lane?: number;
  readonly aInTensorMemory?: boolean;
  /** Whether tiles follow each other along k first, where rows lie side by side. */
  readonly turned?: boolean;
  /** Steps of k. */
  readonly steps?: number;
  readonly seed?: number;
}

const lineOf = { none: 16, "32": 32, "64": 64, "128": 128, "128 by 32": 128 } as const;

/** A matrix of `rows`, of steps of 32 bytes of k, with descriptors of each step. */
function laidOut(
  bytes: Uint8Array,
  rows: number,
  elementBytes: number,
  major: "k" | "mn",
  swizzle: Swizzle,
  start: number,
  turned: boolean,
): PlacedMatrix & { readonly size: number; readonly offset: (step: number) => number } {
  const depth = bytes.length / rows;
  const width = lineOf[swizzle];
  const lines = swizzle === "128 by 32" ? 4 : 8;
  const tile = lines * width;
  const common = { bytes, rows, elementBytes, major, swizzle, start };
  if (major === "k") {
    // Tiles of 8 rows follow each other; further parts of k lie behind all rows.
    const all = (rows / 8) * tile;
    return {
      ...common,
      stride: tile,
      leading: all,
      size: (depth / width) * all,
      offset: (step) => Math.floor((32 * step) / width) * all + ((32 * step) % width),
    };
  }
  // Parts of the rows follow each other; further k lies behind all rows.
  const parts = Math.ceil((rows * elementBytes) / width);
  const deep = depth / elementBytes / lines;
  // Turned, k follows at once, and parts of the rows lie behind all of it.
  const [ofRows, ofK] = turned ? [deep * tile, tile] : [tile, parts * tile];
  const offset = (step: number): number => (32 / elementBytes / lines) * step * ofK;
  const [stride, leading] = swizzle === "none" ? [ofRows, ofK] : [ofK, ofRows];
  return { ...common, stride, leading, size: deep * parts * tile, offset };
}

type Whole = Required<Product>;

function completed(product: Product): Whole {
  const swizzleA = product.swizzleA ?? "128";
  const swizzleB = product.swizzleB ?? swizzleA;
  return {
    ...{ b: product.a, d: "f32", majorA: "k", majorB: "k", swizzleA, swizzleB },
    ...{ pair: false, ws: false, lane: 0, aInTensorMemory: false, seed: 7, turned: false },
    steps: Math.max(lineOf[swizzleA], lineOf[swizzleB], 32) / 32,
    ...product,
  };
}

/** Whole numbers of a matrix, rows of k. */
function numbersOf(
  random: Random,
  name: FormatName,
  rows: number,
  depth: number,
): readonly number[] {
  const { most } = formats[name];
  return Array.from({ length: rows * depth }, () => {
    const value = random.below(2 * most + 1) - most;
    return isUnsigned(name) ? Math.abs(value) : value;
  });
}

function bytesOf(values: readonly number[], format: Format): Uint8Array {
  const codes = values.map((value) => format.encode(value));
  if (format.bytes === 1) return Uint8Array.from(codes);
  const words = format.bytes === 2 ? Uint16Array.from(codes) : Uint32Array.from(codes);
  return new Uint8Array(words.buffer);
}

/** The matrices of a product, and those of each block as bytes where they lie. */
function matricesOf(product: Whole) {
  const { a, b, m, n, pair, steps, seed, majorA, majorB, swizzleA, swizzleB, turned } = product;
  const [left, right] = [formats[a], formats[b]];
  const blocks = pair ? 2 : 1;
  const depth = (steps * 32) / left.bytes;
  const random = new Random(seed);
  const valuesA = numbersOf(random, a, m, depth);
  const valuesB = numbersOf(random, b, n, depth);
  const part = (values: readonly number[], block: number): readonly number[] =>
    values.slice((block * values.length) / blocks, ((block + 1) * values.length) / blocks);
  const partA = (block: number): Uint8Array => bytesOf(part(valuesA, block), left);
  const partB = (block: number): Uint8Array => bytesOf(part(valuesB, block), right);
  const placedA = laidOut(partA(0), m / blocks, left.bytes, majorA, swizzleA, 0, turned);
  const startB = 1024 * Math.ceil(placedA.size / 1024);
  const placedB = laidOut(partB(0), n / blocks, left.bytes, majorB, swizzleB, startB, turned);
  const images = Array.from({ length: blocks }, (_, block) => {
    const image = new Uint8Array(startB + 1024 * Math.ceil(placedB.size / 1024));
    placeMatrix(image, { ...placedA, bytes: partA(block) });
    placeMatrix(image, { ...placedB, bytes: partB(block) });
    return image;
  });
  return { valuesA, valuesB, depth, partA, placedA, placedB, images };
}

type Matrices = ReturnType<typeof matricesOf>;

const accumulatorCodes = { f16: 0, f32: 1, s32: 2 } as const;

function accumulatorOf({ a, d }: Whole): keyof typeof accumulatorCodes {
  return formats[a].kind === "i8" ? "s32" : d;
}

function descriptorOf(product: Whole): number {
  const { a, b, m, n, majorA, majorB } = product;
  const majors = (Number(majorA === "mn") << 15) | (Number(majorB === "mn") << 16);
  const codes = (formats[a].code << 7) | (formats[b].code << 10);
  return (
    (accumulatorCodes[accumulatorOf(product)] << 4) |
    codes |
    majors |
    ((n >> 3) << 17) |
    ((m >> 4) << 24)
  );
}

/** Garbage everywhere, and A behind the columns of D where it is to be in tensor memory. */
function fillOf(product: Whole, { partA }: Matrices, block: number, columns: number): Uint32Array {
  const { m, n, pair, lane, steps, aInTensorMemory } = product;
  const words = new Uint32Array(128 * columns).fill(0x7fc0_0bad);
  if (!aInTensorMemory) return words;
  const own = new Uint32Array(partA(block).slice().buffer);
  for (let row = 0; row < m / (pair ? 2 : 1); row++)
    for (const [at] of lanesOf(product, row))
      words.set(own.subarray(row * 8 * steps, (row + 1) * 8 * steps), (at + lane) * columns + n);
  return words;
}

function issueOf(product: Whole, { placedA, placedB }: Matrices): string {
  const { a, n, lane, pair, ws, steps, aInTensorMemory } = product;
  const mma = `tcgen05.mma${ws ? ".ws" : ""}.cta_group::${pair ? 2 : 1}.kind::${formats[a].kind}`;
  const all = Array.from({ length: steps }, (_, step) => {
    const bitsA = descriptorBits({ ...placedA, start: placedA.start + placedA.offset(step) });
    const bitsB = descriptorBits({ ...placedB, start: placedB.start + placedB.offset(step) });
    const operandA = aInTensorMemory ? `[%r11+${n + 8 * step}]` : "%d10";
    return `${moveDescriptor(10, bitsA)} ${moveDescriptor(11, bitsB)} add.s32 %r11, %r2, ${lane << 16};
      mov.b32 %r10, ${descriptorOf(product)}; ${mma} [%r11], ${operandA}, %d11, %r10, ${step === 0 ? 0 : 1};`;
  });
  return all.join("\n");
}

/** The element of D that was found at its place. */
function foundAt(
  product: Whole,
  cells: readonly Uint32Array[],
  row: number,
  column: number,
): number {
  const { m, pair, lane } = product;
  const own = m / (pair ? 2 : 1);
  const words = cells[Math.floor(row / own)] ?? new Uint32Array();
  const places = lanesOf(product, row % own);
  const place = places.find(([, from, to]) => column >= from && column < to) ?? [0, 0, 0];
  const word = words[(place[0] + lane) * (words.length / 128) + column - place[1]] ?? 0;
  const accumulator = accumulatorOf(product);
  return accumulator === "s32" ? word | 0 : decodeFloat(accumulator, word);
}

function run(given: Product): void {
  const product = completed(given);
  const { m, n, pair, steps, seed, aInTensorMemory } = product;
  const matrices = matricesOf(product);
  const { valuesA, valuesB, depth, images } = matrices;
  const columns = Math.max(32, 2 ** Math.ceil(Math.log2(n + (aInTensorMemory ? 8 * steps : 0))));
  const fills = images.map((_, block) => fillOf(product, matrices, block, columns));
  const { cells, result } = tensorKernel({
    ...{ columns, issue: issueOf(product, matrices), images, fills, pair, seed },
    packed: accumulatorOf(product) === "f16",
  });
  expect(result.findings.map(({ message }) => message)).toEqual([]);
  const wrong: string[] = [];
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = 0;
      for (let k = 0; k < depth; k++)
        sum += (valuesA[row * depth + k] ?? 0) * (valuesB[column * depth + k] ?? 0);
      const found = foundAt(product, cells, row, column);
      if (found !== sum) wrong.push(`${row}, ${column}: ${found} for ${sum}`);
    }
  expect(wrong.slice(0, 4)).toEqual([]);
}

/** For a row of a block: its lanes, and which columns each of them holds. */
function lanesOf(
  { m, n, pair, ws }: Whole,
  row: number,
): readonly (readonly [lane: number, from: number, to: number])[] {
  if (m === 64 && !ws) return [[32 * Math.floor(row / 16) + (row % 16), 0, n]];
  if (m === 128 && pair)
    return [
      [row, 0, n / 2],
      [row + 64, n / 2, n],
    ];
  if (m === 64)
    return [0, 1].map((bank) => [row + 64 * bank, (bank * n) / 2, ((bank + 1) * n) / 2]);
  if (m === 32)
    return [0, 1, 2, 3].map((bank) => [row + 32 * bank, (bank * n) / 4, ((bank + 1) * n) / 4]);
  return [[row, 0, n]];
}

const titled = (products: readonly Product[]) =>
  products
    .filter((_, place) => isTaken(place, 3))
    .map((product) => [JSON.stringify(product), product] as const);

describe("products of one block", () => {
  const cases: readonly Product[] = [
    // 1 to 4
    { a: "f16", m: 128, n: 64, swizzleA: "128" },
    { a: "bf16", m: 64, n: 72, swizzleA: "64" },
    { a: "e4m3", m: 128, n: 136, swizzleA: "32" },
    { a: "e5m2", m: 64, n: 256, swizzleA: "128" },
    { a: "tf32", m: 128, n: 16, swizzleA: "64" },
    { a: "f16", m: 128, n: 8, swizzleA: "none" },
    // 5
    { a: "f16", m: 128, n: 32, d: "f16" },
    { a: "e4m3", m: 64, n: 64, d: "f16" },
    // 6
    { a: "f16", m: 128, n: 64, majorA: "mn" },
    { a: "bf16", m: 64, n: 128, majorB: "mn" },
    { a: "f16", m: 128, n: 64, majorA: "mn", majorB: "mn", swizzleA: "64" },
    { a: "f16", m: 128, n: 64, majorA: "mn", majorB: "mn", swizzleA: "none", steps: 2 },
    { a: "e4m3", m: 128, n: 128, majorA: "mn", majorB: "mn", swizzleA: "128" },
    { a: "e5m2", m: 128, n: 32, majorB: "mn", swizzleA: "32" },
    { a: "tf32", m: 128, n: 32, majorA: "mn", majorB: "mn", swizzleA: "128 by 32" },
    // 7
    { a: "f16", m: 128, n: 64, swizzleA: "128", swizzleB: "32" },
    { a: "f16", m: 128, n: 64, swizzleA: "none", swizzleB: "64" },
    // 8
    { a: "f16", m: 128, n: 64, majorA: "mn", majorB: "mn", swizzleA: "64", turned: true },
    { a: "bf16", m: 128, n: 64, majorA: "mn", swizzleA: "none", steps: 2, turned: true },
    // 9
    { a: "s8", m: 128, n: 64 },
    { a: "u8", b: "s8", m: 64, n: 32 },
    // 10, 11
    { a: "u8", m: 128, n: 64, aInTensorMemory: true },
    { a: "f16", m: 128, n: 160, aInTensorMemory: true },
    { a: "bf16", m: 128, n: 256, aInTensorMemory: true },
    // 12
    { a: "f16", m: 64, n: 64, lane: 16 },
    { a: "f16", m: 64, n: 32, lane: 16, aInTensorMemory: true },
    // 20, without scales
    { a: "e4m3", b: "e5m2", m: 128, n: 64 },
    // Weight-stationary.
    { a: "f16", m: 128, n: 64, ws: true },
    { a: "bf16", m: 64, n: 128, ws: true },
    { a: "e4m3", m: 32, n: 64, ws: true },
    { a: "s8", m: 32, n: 256, ws: true },
    { a: "f16", m: 64, n: 64, ws: true, aInTensorMemory: true },
    { a: "f16", m: 32, n: 64, ws: true, aInTensorMemory: true },
  ];
  test.each(titled(cases))("%s", (_, product) => {
    run(product);
  });
});

describe("products of a pair", () => {
  const cases: readonly Product[] = [
    // 13
    { a: "f16", m: 256, n: 128 },
    { a: "bf16", m: 128, n: 160 },
    { a: "f16", m: 128, n: 256, majorA: "mn" },
    { a: "f16", m: 256, n: 256, majorB: "mn" },
    { a: "e4m3", m: 256, n: 64, majorB: "mn", swizzleA: "32" },
    { a: "s8", m: 256, n: 32 },
    // 14
    { a: "f16", m: 256, n: 192, aInTensorMemory: true },
    { a: "f16", m: 128, n: 224, aInTensorMemory: true },
  ];
  test.each(titled(cases))("%s", (_, product) => {
    run({ ...product, pair: true });
  });
});
