/**
 * Matrix descriptors of wgmma: where in shared memory the operand's chunks of 16 bytes lie.
 *
 *   bits  0–13     16–29           32–45          49–51        62–63
 *         start/16 leading offset/16 stride offset/16 base offset swizzle: 0 none, 1 128, 2 64, 3 32
 *
 * One instruction takes 32 bytes of k: two chunks a row where k lies side by side (K-major), and two
 * groups of 8 k where the rows do (MN-major; elements of 16 bits only). W is the swizzle's width:
 *
 * | major | swizzle | chunk (row r, half h of k)                        | adds                        |
 * |-------|---------|---------------------------------------------------|-----------------------------|
 * | K     | none    | (r mod 8)·16 + h·leading + ⌊r/8⌋·stride           |                             |
 * | K     | W       | (r mod 8)·W + h·16 + ⌊r/8⌋·stride                 | leading does not matter     |
 *
 * | major | swizzle | chunk (rows 8c…8c+7, k)                                          |
 * |-------|---------|------------------------------------------------------------------|
 * | MN    | none    | (k mod 8)·16 + ⌊k/8⌋·leading + c·stride                          |
 * | MN    | W       | (k mod 8)·W + ⌊k/8⌋·stride + (c mod W/16)·16 + ⌊c/(W/16)⌋·leading |
 *
 * The swizzle exchanges chunks by bits 7 and up of the address, counted from the base offset.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { CollectiveInstruction } from "../collective.ts";

export type SwizzleWidth = 0 | 32 | 64 | 128;

export interface MatrixDescriptor {
  readonly start: number;
  readonly leading: number;
  readonly stride: number;
  readonly baseOffset: number;
  readonly swizzle: SwizzleWidth;
}

export type Major = "k" | "mn";

const swizzleCodes = [0, 128, 64, 32] as const;
/** Bits that mean nothing on this hardware and must be clear. */
const reservedBits = 0x3ff1_c000_c000_c000n;

function field(bits: bigint, from: bigint, width: bigint): number {
  return Number((bits >> from) & ((1n << width) - 1n));
}

export function decodeDescriptor(bits: bigint): MatrixDescriptor {
  return {
    start: field(bits, 0n, 14n) * 16,
    leading: field(bits, 16n, 14n) * 16,
    stride: field(bits, 32n, 14n) * 16,
    baseOffset: field(bits, 49n, 3n),
    swizzle: swizzleCodes[field(bits, 62n, 2n)] ?? 0,
  };
}

/** What is wrong with a descriptor whatever it points to; undefined where it may be right. */
export function descriptorProblem(bits: bigint): string | undefined {
  const stray = bits & reservedBits;
  if (stray !== 0n) return `bits 0x${stray.toString(16)} of it are reserved and not zero`;
  const { swizzle, baseOffset } = decodeDescriptor(bits);
  return swizzle === 0 && baseOffset !== 0 ? "it has a base offset but no swizzle" : undefined;
}

/** The byte that the swizzle moves a byte to. */
function swizzled(address: number, { swizzle, baseOffset }: MatrixDescriptor): number {
  if (swizzle === 0) return address;
  const phase = ((address >> 7) - baseOffset) & (swizzle / 16 - 1);
  return address ^ (phase << 4);
}

/** Addresses are 18 bits: a chunk beyond them wraps. */
const addressMask = 0x3ffff;

/** The address of the chunk with bytes 16·part … of row `row`'s k. */
function rowChunk(descriptor: MatrixDescriptor, row: number, part: number): number {
  const { start, leading, stride, swizzle } = descriptor;
  const within =
    swizzle === 0
      ? (row & 7) * 16 + part * leading
      : (row & 7) * swizzle + groupOffset(part, swizzle, leading);
  return swizzled((start + within + (row >> 3) * stride) & addressMask, descriptor);
}

/** The address of the chunk with rows 8·group … 8·group + 7 at one k, elements of 16 bits. */
function columnChunk(descriptor: MatrixDescriptor, group: number, k: number): number {
  const { start, leading, stride, swizzle } = descriptor;
  const offset =
    swizzle === 0
      ? (k & 7) * 16 + (k >> 3) * leading + group * stride
      : (k & 7) * swizzle + (k >> 3) * stride + groupOffset(group, swizzle, leading);
  return swizzled((start + offset) & addressMask, descriptor);
}

function groupOffset(group: number, swizzle: number, leading: number): number {
  const chunks = swizzle / 16;
  return (group % chunks) * 16 + Math.floor(group / chunks) * leading;
}

/** Bytes of k that one instruction takes; of B twice as many where A is sparse. */
export const stepBytes = 32;

/** An operand: rows of A or columns of B, and how many bytes of k each has. */
export interface OperandShape {
  readonly major: Major;
  readonly rows: number;
  readonly rowBytes: number;
}

/** The addresses of all chunks that an operand has, for checks. */
export function operandChunks(
  descriptor: MatrixDescriptor,
  { major, rows, rowBytes }: OperandShape,
): readonly number[] {
  const chunks: number[] = [];
  if (major === "k")
    for (let row = 0; row < rows; row++)
      for (let part = 0; part < rowBytes / 16; part++) chunks.push(rowChunk(descriptor, row, part));
  else
    for (let group = 0; group < rows / 8; group++)
      for (let k = 0; k < rowBytes / 2; k++) chunks.push(columnChunk(descriptor, group, k));
  return chunks;
}

/** Reads an operand as rows of so many bytes of k, whichever way it lies. Every chunk must be in `shared`. */
export function gatherOperand(
  shared: Uint8Array,
  descriptor: MatrixDescriptor,
  { major, rows, rowBytes }: OperandShape,
): Uint8Array {
  const operand = new Uint8Array(rows * rowBytes);
  if (major === "k") {
    for (let row = 0; row < rows; row++)
      for (let part = 0; part < rowBytes / 16; part++) {
        const from = rowChunk(descriptor, row, part);
        operand.set(shared.subarray(from, from + 16), row * rowBytes + part * 16);
      }
    return operand;
  }
  for (let group = 0; group < rows / 8; group++)
    for (let k = 0; k < rowBytes / 2; k++) {
      const from = columnChunk(descriptor, group, k);
      for (let row = 0; row < 8; row++) {
        const to = (8 * group + row) * rowBytes + 2 * k;
        operand[to] = shared[from + 2 * row] ?? 0;
        operand[to + 1] = shared[from + 2 * row + 1] ?? 0;
      }
    }
  return operand;
}

/** What a launch says of a descriptor that names no matrix, of wgmma, of tcgen05.mma or of tcgen05.cp. */
export function descriptorError(
  { instruction, location }: CollectiveInstruction,
  bits: bigint,
  why: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW8073",
    message: `${instruction.opcode}: descriptor 0x${bits.toString(16)}: ${why}`,
    location,
    expected: "a descriptor of a matrix in shared memory",
    found: why,
  });
}
