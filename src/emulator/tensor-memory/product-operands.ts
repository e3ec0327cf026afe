/**
 * Operands of `tcgen05.mma`: A from shared or tensor memory, B from shared memory, scales and metadata from tensor
 * memory, each as rows of codes whatever way it lies.
 *
 *   e2m1 in shared memory, kind::f8f6f4    16 elements in 16 bytes, of which 8 are used
 *   e2m1 in tensor memory, kind::f8f6f4    a byte each, in bits 2 to 5
 *   e2m1 of kind::mxf4                     two a byte
 */
import { decodeTerms } from "../../formats/arithmetic/tensor-core-terms.ts";
import type { Terms } from "../../formats/arithmetic/tensor-core-terms.ts";
import {
  tmemMetadataNibble,
  tmemRowLane,
  tmemScaleByte,
} from "../../layout/algebra/tensor-memory-products.ts";
import type { TmemPlacement } from "../../layout/algebra/tensor-memory-products.ts";
import type { BlockView } from "../collective.ts";
import { isSubByte } from "./instruction-descriptor.ts";
import type {
  ElementFormat,
  InstructionDescriptor,
  ProductKind,
} from "./instruction-descriptor.ts";
import { gatherMatrix } from "./matrix-descriptor.ts";
import type { MatrixShape } from "./matrix-descriptor.ts";
import { columns as allColumns, halves, tensorMemoryOf } from "./state.ts";

/** Bytes of k of a row that one instruction takes; of B twice as many where A is sparse. */
export const stepBytes = 32;

const elementBytes: { readonly [K in ProductKind]: number } = {
  f16: 2,
  tf32: 4,
  f8f6f4: 1,
  i8: 1,
  mxf8f6f4: 1,
  mxf4: 1,
  mxf4nvf4: 1,
};

export function shapeOfA(
  kind: ProductKind,
  { majorA: major }: InstructionDescriptor,
  rows: number,
): MatrixShape {
  return { major, rows, rowBytes: stepBytes, elementBytes: elementBytes[kind] };
}

export function shapeOfB(
  kind: ProductKind,
  { majorB: major }: InstructionDescriptor,
  rows: number,
  isSparse: boolean,
): MatrixShape {
  const rowBytes = stepBytes * (isSparse ? 2 : 1);
  return { major, rows, rowBytes, elementBytes: elementBytes[kind] };
}

/** Whether a kind holds two elements in a byte. */
export function isFourBit(kind: ProductKind): boolean {
  return kind === "mxf4" || kind === "mxf4nvf4";
}

/** Codes of elements that lie in shared memory, as rows of bytes. */
export function codesFromShared(
  kind: ProductKind,
  format: ElementFormat,
  bytes: Uint8Array,
): Uint8Array | Uint16Array | Uint32Array {
  if (kind === "f16") return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  if (kind === "tf32") return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  if (isFourBit(kind)) return nibbles(bytes);
  if (!isSubByte(format)) return bytes;
  return bytes.map((_, at) => {
    const from = at & ~15;
    const bit = (at & 15) * (format.startsWith("f4") ? 4 : 6);
    const low = bytes[from + (bit >> 3)] ?? 0;
    const word = low | ((bytes[from + (bit >> 3) + 1] ?? 0) << 8);
    return (word >>> (bit & 7)) & (format.startsWith("f4") ? 15 : 63);
  });
}

/** Codes of elements that lie in tensor memory, as rows of bytes. */
function codesFromTensor(
  kind: ProductKind,
  format: ElementFormat,
  bytes: Uint8Array,
): Uint8Array | Uint16Array | Uint32Array {
  if (!isSubByte(format) || isFourBit(kind)) return codesFromShared(kind, format, bytes);
  return bytes.map((byte) => (format.startsWith("f4") ? (byte >>> 2) & 15 : byte & 63));
}

function nibbles(bytes: Uint8Array): Uint8Array {
  const codes = new Uint8Array(2 * bytes.length);
  for (let at = 0; at < bytes.length; at++) {
    codes[2 * at] = (bytes[at] ?? 0) & 15;
    codes[2 * at + 1] = (bytes[at] ?? 0) >>> 4;
  }
  return codes;
}

export type Codes = Uint8Array | Uint16Array | Uint32Array;

export function sharedCodes(
  { shared }: BlockView,
  kind: ProductKind,
  format: ElementFormat,
  chunks: Int32Array,
  shape: MatrixShape,
): Codes {
  return codesFromShared(kind, format, gatherMatrix(shared.bytes, chunks, shape));
}

/** Where A in tensor memory begins. */
export interface TensorPlace {
  readonly lane: number;
  readonly column: number;
}

/** Cells of tensor memory that were read and hold nothing defined. */
export interface Undefined {
  cell: { readonly lane: number; readonly column: number } | undefined;
}

/** A in tensor memory, as an instruction names it. */
export interface TensorMatrix {
  readonly place: TensorPlace;
  readonly kind: ProductKind;
  readonly format: ElementFormat;
  readonly placement: TmemPlacement;
  readonly rows: number;
  /** Whether each row is the next one's, but for the last. */
  readonly shifts: boolean;
}

/** A in tensor memory, as one bank has it. */
export function tensorCodes(
  block: BlockView,
  matrix: TensorMatrix,
  bank: number,
  missing: Undefined,
): Codes {
  const { kind, format, placement, rows, shifts } = matrix;
  const { lane, column } = matrix.place;
  const { words, states } = tensorMemoryOf(block);
  const perRow = stepBytes / 4;
  const found = new Uint32Array(rows * perRow);
  for (let row = 0; row < rows; row++) {
    const source = shifts ? Math.min(row + 1, rows - 1) : row;
    const own = lane + tmemRowLane(placement, source, bank);
    for (let word = 0; word < perRow; word++) {
      const cell = own * allColumns + column + word;
      if (states[cell] !== halves.both) missing.cell ??= { lane: own, column: column + word };
      found[row * perRow + word] = words[cell] ?? 0;
    }
  }
  return codesFromTensor(kind, format, new Uint8Array(found.buffer));
}

/** Signed or unsigned bytes as numbers. */
export function integersOf(format: ElementFormat, codes: Codes): Int16Array {
  return Int16Array.from(codes, (code) => (format === "s8" ? (code << 24) >> 24 : code));
}

export function termsOf(
  format: ElementFormat,
  codes: Codes,
  rows: number,
  negated: boolean,
): Terms {
  if (format === "u8" || format === "s8") throw new Error(`${format} has no exponent`);
  return decodeTerms(format, codes, rows, negated ? -1 : 1);
}

/** Scales as they were read. */
export interface ReadScales {
  readonly codes: Uint8Array;
  /** Where copies of a scale differ. */
  readonly disagreement: string | undefined;
}

/** The scales that an instruction takes of so many rows; all their copies are looked at. */
export function readScales(
  block: BlockView,
  { column }: TensorPlace,
  rows: number,
  perRow: number,
  id: number,
  isSplit: boolean,
  missing: Undefined,
): ReadScales {
  const { words, states } = tensorMemoryOf(block);
  const codes = new Uint8Array(rows * perRow);
  let disagreement: string | undefined;
  for (let row = 0; row < rows; row++)
    for (let vector = 0; vector < perRow; vector++) {
      const place = tmemScaleByte(rows, row, id, vector, isSplit);
      for (const [copy, lane] of place.lanes.entries()) {
        const cell = lane * allColumns + column + place.column;
        if (states[cell] !== halves.both) missing.cell ??= { lane, column: column + place.column };
        const code = ((words[cell] ?? 0) >>> (8 * place.byte)) & 255;
        const index = row * perRow + vector;
        if (copy === 0) codes[index] = code;
        else if (codes[index] !== code)
          disagreement ??= `row ${row}: ${codes[index]} in lane ${place.lanes[0]}, ${code} in lane ${lane}, column ${column + place.column}`;
      }
    }
  return { codes, disagreement };
}

/** Columns that scales of so many rows take, from their address on. */
export function scaleColumns(rows: number, perRow: number, id: number, isSplit: boolean): number {
  const perHalf = isSplit ? rows / 2 : rows;
  const last = tmemScaleByte(rows, perHalf - 1, id, perRow - 1, isSplit);
  return Math.max(last.column + 1, Math.min(4, Math.ceil(perHalf / 32)));
}

/* ---- metadata of a sparse A ---- */

/** Elements of a group, and how many of them A has. */
interface Grouping {
  readonly groups: 8 | 16;
  readonly kept: number;
  /** The elements that a code names; undefined where it means nothing. */
  readonly elements: (code: number) => readonly number[] | undefined;
}

function twoOfFour(code: number): readonly number[] | undefined {
  const [low, high] = [code & 3, code >> 2];
  return low < high ? [low, high] : undefined;
}

export function groupingOf(kind: ProductKind): Grouping {
  if (kind === "tf32")
    return {
      groups: 8,
      kept: 1,
      elements: (code) => (code === 4 ? [0] : code === 14 ? [1] : undefined),
    };
  if (kind === "f16") return { groups: 8, kept: 2, elements: twoOfFour };
  if (!isFourBit(kind)) return { groups: 16, kept: 2, elements: twoOfFour };
  return {
    groups: 16,
    kept: 4,
    elements: (code) => twoOfFour(code)?.flatMap((pair) => [2 * pair, 2 * pair + 1]),
  };
}

/** Columns of metadata, from the address on. */
export const metadataColumns = 2;

/** For each element of A, the k of B that it is multiplied by; a text where a code means nothing. */
export function readMetadata(
  block: BlockView,
  { lane, column }: TensorPlace,
  kind: ProductKind,
  placement: TmemPlacement,
  rows: number,
  selector: number,
  missing: Undefined,
): Uint16Array | string {
  const { words, states } = tensorMemoryOf(block);
  const { groups, kept, elements } = groupingOf(kind);
  const size = kind === "tf32" ? 2 : isFourBit(kind) ? 8 : 4;
  const indices = new Uint16Array(rows * groups * kept);
  for (let row = 0; row < rows; row++)
    for (let group = 0; group < groups; group++) {
      const place = tmemMetadataNibble(placement, groups, row, group, selector);
      const own = { lane: lane + place.row, column: column + place.column };
      const cell = own.lane * allColumns + own.column;
      if (states[cell] !== halves.both) missing.cell ??= own;
      const code = ((words[cell] ?? 0) >>> (4 * place.nibble)) & 15;
      const named = elements(code);
      if (named === undefined)
        return `0b${code.toString(2).padStart(4, "0")} for group ${group} of row ${row}`;
      for (const [at, element] of named.entries())
        indices[(row * groups + group) * kept + at] = group * size + element;
    }
  return indices;
}
