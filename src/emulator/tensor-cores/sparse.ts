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
 */
import type { RegisterWords } from "./fragments.ts";
import { operandBits } from "./forms.ts";
import { multiplyBytes } from "./multiply.ts";
import type { OperandType, ProductForm } from "./multiply.ts";

const rowsPerWarp = 16;

export interface Sparsity {
  /** Bytes that an index counts in. */
  readonly granule: 1 | 2;
  /** Chunks in a row: four granules each. */
  readonly chunks: number;
  readonly selector: number;
  /** Whether a chunk's indices must ascend. */
  readonly ordered: boolean;
  readonly isTf32: boolean;
}

/** Of a product with `k` elements of a type in a row; undefined where no lanes have that selector. */
export function sparsityOf(
  type: OperandType,
  k: number,
  selector: number,
  ordered: boolean,
): Sparsity | undefined {
  const bits = operandBits(type);
  const granule = bits >= 16 ? 2 : 1;
  const chunks = (k * bits) / (32 * granule);
  const selectors = 16 / chunks;
  if (!(selector >= 0 && selector < selectors)) return undefined;
  return { granule, chunks, selector, ordered, isTf32: type === "tf32" };
}

/** The four bits of each chunk of 16 rows, from the register that has them. */
export function chunkBits(
  { granule, chunks, selector }: Sparsity,
  words: RegisterWords,
): Uint8Array {
  const bits = new Uint8Array(rowsPerWarp * chunks);
  const perLane = granule === 2 ? 4 : 8;
  for (let row = 0; row < rowsPerWarp; row++)
    for (let chunk = 0; chunk < chunks; chunk++) {
      const part = Math.floor(chunk / perLane);
      const upper = row >> 3;
      const within = granule === 2 ? (chunks / 4) * selector + part : 2 * (selector + part) + upper;
      const word = words[4 * (row & 7) + within] as number;
      const shift = 4 * (chunk % perLane) + (granule === 2 ? 16 * upper : 0);
      bits[row * chunks + chunk] = (word >>> shift) & 15;
    }
  return bits;
}

/** What is wrong with the bits of a chunk; undefined where they are valid. */
export function chunkProblem({ ordered, isTf32 }: Sparsity, bits: number): string | undefined {
  const [first, second] = [bits & 3, bits >> 2];
  if (first === second) return "both indices are the same";
  if (isTf32 && bits !== 0b0100 && bits !== 0b1110) return "of tf32 there are 0b0100 and 0b1110";
  return ordered && first > second ? "the indices do not ascend" : undefined;
}

/** c += a·b with half of the elements in `a`, and four bits a chunk that say which. */
export function multiplySparse(
  form: ProductForm,
  { granule, chunks }: Sparsity,
  bits: Uint8Array,
  a: Uint8Array,
  m: number,
  b: Uint8Array,
  n: number,
  c: Uint32Array,
): void {
  const rowBytes = a.length / m;
  const columnBytes = b.length / n;
  const met = new Uint8Array(n * rowBytes);
  for (let row = 0; row < m; row++) {
    for (let chunk = 0; chunk < chunks; chunk++) {
      const indices = bits[row * chunks + chunk] as number;
      for (const which of [0, 1]) {
        const from = (4 * chunk + ((indices >> (2 * which)) & 3)) * granule;
        const to = (2 * chunk + which) * granule;
        for (let column = 0; column < n; column++)
          for (let byte = 0; byte < granule; byte++)
            met[column * rowBytes + to + byte] = b[column * columnBytes + from + byte] as number;
      }
    }
    const own = a.subarray(row * rowBytes, (row + 1) * rowBytes);
    multiplyBytes(form, own, 1, met, n, c.subarray(row * n, (row + 1) * n));
  }
}
