/**
 * Products with a sparse A: of every four elements of a row two are there (of two tf32 one, of eight of 4 bits
 * two pairs). Metadata have four bits for each such chunk, the index of the first in the two low ones:
 *
 *   chunk of A         0  a  0  b          B of the column      p  q  r  s
 *   A holds            a b                 is multiplied by     q  s
 *   metadata           0b1101              a·q + b·s
 *
 * Indices count elements of 16 or 8 bits, or pairs of 4 bits. A tf32 counts as two: 0b0100 is the first one of
 * the chunk, 0b1110 the second.
 *
 * The bits are in a register of some lanes of each quad, which the selector s chooses. With g = lane >> 2, c the
 * number of chunks in a row, and p counting them by fours (16 bits) or eights:
 *
 * | elements     | lane 4g + …          | has the chunks of                                     |
 * |--------------|----------------------|-------------------------------------------------------|
 * | 16, 32 bits  | c/4 · s + p          | row g in the low half, row g + 8 in the high half     |
 * | 8, 4 bits    | 2 · s + 2p + h       | row g + 8h in all 32 bits                             |
 *
 * The arithmetic is that of the products that take place, in the order in which A holds its elements.
 */
import type { RegisterWords } from "./fragments.ts";
import { operandBits } from "./forms.ts";
import type { SparseIndices, OperandType } from "./multiply.ts";

const rowsPerWarp = 16;

export interface Sparsity {
  readonly type: OperandType;
  /** Chunks in a row. */
  readonly chunks: number;
  readonly selector: number;
  /** Whether a chunk's indices must ascend. */
  readonly ordered: boolean;
}

/** Whether indices count in 16 bits; else in 8. */
function countsHalves(type: OperandType): boolean {
  return operandBits(type) >= 16;
}

/** Of a product with `k` elements of a type in a row; undefined where no lanes have that selector. */
export function sparsityOf(
  type: OperandType,
  k: number,
  selector: number,
  ordered: boolean,
): Sparsity | undefined {
  const chunks = (k * operandBits(type)) / (countsHalves(type) ? 64 : 32);
  const selectors = 16 / chunks;
  return selector >= 0 && selector < selectors ? { type, chunks, selector, ordered } : undefined;
}

/** The four bits of each chunk of 16 rows, from the register that has them. */
export function chunkBits({ type, chunks, selector }: Sparsity, words: RegisterWords): Uint8Array {
  const bits = new Uint8Array(rowsPerWarp * chunks);
  const halves = countsHalves(type);
  const perPart = halves ? 4 : 8;
  for (let row = 0; row < rowsPerWarp; row++)
    for (let chunk = 0; chunk < chunks; chunk++) {
      const part = Math.floor(chunk / perPart);
      const upper = row >> 3;
      const lane = halves ? (chunks / 4) * selector + part : 2 * (selector + part) + upper;
      const word = words[4 * (row & 7) + lane] as number;
      const shift = 4 * (chunk % perPart) + (halves ? 16 * upper : 0);
      bits[row * chunks + chunk] = (word >>> shift) & 15;
    }
  return bits;
}

/** What is wrong with the bits of a chunk; undefined where they are valid. */
export function chunkProblem({ type, ordered }: Sparsity, bits: number): string | undefined {
  const [first, second] = [bits & 3, bits >> 2];
  if (first === second) return "both indices are the same";
  if (type === "tf32" && bits !== 0b0100 && bits !== 0b1110)
    return "of tf32 there are 0b0100 and 0b1110";
  return ordered && first > second ? "the indices do not ascend" : undefined;
}

/** For each element that A holds of some rows, its k of B. */
export function sparseIndicesOf({ type, chunks }: Sparsity, bits: Uint8Array): SparseIndices {
  const elementBits = operandBits(type);
  // Elements that A holds of a chunk, and how many of them an index stands for.
  const held = elementBits === 32 ? 1 : elementBits === 4 ? 4 : 2;
  const each = elementBits === 4 ? 2 : 1;
  const columns = new Uint16Array(bits.length * held);
  for (const [index, indices] of bits.entries())
    for (let at = 0; at < held; at++) {
      const which = at < each ? indices & 3 : indices >> 2;
      const within = elementBits === 32 ? which >> 1 : which * each + (at % each);
      columns[index * held + at] = (index % chunks) * 2 * held + within;
    }
  return columns;
}
