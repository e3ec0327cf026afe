/**
 * How matrices are spread over the registers of a warp. With g = lane >> 2 and t = lane & 3:
 *
 * | matrix            | register r of a lane holds                                               |
 * |-------------------|--------------------------------------------------------------------------|
 * | A, by bytes of k  | row g + 8·(r mod 2), bytes 4t … 4t+3 behind 16·⌊r/2⌋ (16 rows)            |
 * | B, by bytes of k  | column g, bytes 4t … 4t+3 behind 16·r                                    |
 * | C and D, 32 bits  | row g + 8·(⌊r/2⌋ mod 2), column 8·⌊r/4⌋ + 2t + (r mod 2)                  |
 * | C and D, 16 bits  | row g + 8·(r mod 2), columns 8·⌊r/2⌋ + 2t, + 1, the lower one in the low half |
 *
 * Matrices of 8 rows have the registers of rows 0 to 7 alone. Registers are given as 32 words each.
 */

/** The 32 words of a register, a lane each. */
export type RegisterWords = Int32Array;

const lanes = 32;

function putWord(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word;
  bytes[at + 1] = word >>> 8;
  bytes[at + 2] = word >>> 16;
  bytes[at + 3] = word >>> 24;
}

/** Rows of A as bytes of k, at `into` on; `rows` is 8 or 16. */
export function gatherRows(
  registers: readonly RegisterWords[],
  rows: 8 | 16,
  into: Uint8Array,
  rowBytes: number,
): void {
  const perChunk = rows / 8;
  for (const [index, register] of registers.entries()) {
    const row = 8 * (index % perChunk);
    const start = 16 * Math.floor(index / perChunk);
    for (let lane = 0; lane < lanes; lane++)
      putWord(
        into,
        (row + (lane >> 2)) * rowBytes + start + 4 * (lane & 3),
        register[lane] as number,
      );
  }
}

/** Columns of B as bytes of k. */
export function gatherColumns(registers: readonly RegisterWords[], rowBytes: number): Uint8Array {
  const bytes = new Uint8Array(8 * rowBytes);
  gatherRows(registers, 8, bytes, rowBytes);
  return bytes;
}

/** Where lane 0's element of a register of 32-bit accumulators lies; other lanes follow from it. */
function wordIndex(index: number, columns: number, rows: 8 | 16): number {
  const pairs = rows / 8;
  const row = 8 * ((index >> 1) % pairs);
  return row * columns + 8 * Math.floor(index / (2 * pairs)) + (index & 1);
}

/** Elements of C from registers of 32 bits; `matrix` has `columns` columns. */
export function gatherWords(
  registers: readonly RegisterWords[],
  rows: 8 | 16,
  columns: number,
  matrix: Uint32Array,
): void {
  for (const [index, register] of registers.entries()) {
    const start = wordIndex(index, columns, rows);
    for (let lane = 0; lane < lanes; lane++)
      matrix[start + (lane >> 2) * columns + 2 * (lane & 3)] = register[lane] as number;
  }
}

export function scatterWords(
  matrix: Uint32Array,
  rows: 8 | 16,
  columns: number,
  registers: readonly RegisterWords[],
): void {
  for (const [index, register] of registers.entries()) {
    const start = wordIndex(index, columns, rows);
    for (let lane = 0; lane < lanes; lane++)
      register[lane] = matrix[start + (lane >> 2) * columns + 2 * (lane & 3)] as number;
  }
}

/** Elements of C from registers that hold two of 16 bits. */
export function gatherHalves(
  registers: readonly RegisterWords[],
  columns: number,
  matrix: Uint32Array,
): void {
  for (const [index, register] of registers.entries()) {
    const start = 8 * (index & 1) * columns + 8 * (index >> 1);
    for (let lane = 0; lane < lanes; lane++) {
      const at = start + (lane >> 2) * columns + 2 * (lane & 3);
      const word = register[lane] as number;
      matrix[at] = word & 0xffff;
      matrix[at + 1] = word >>> 16;
    }
  }
}

export function scatterHalves(
  matrix: Uint32Array,
  columns: number,
  registers: readonly RegisterWords[],
): void {
  for (const [index, register] of registers.entries()) {
    const start = 8 * (index & 1) * columns + 8 * (index >> 1);
    for (let lane = 0; lane < lanes; lane++) {
      const at = start + (lane >> 2) * columns + 2 * (lane & 3);
      register[lane] = (matrix[at] as number) | ((matrix[at + 1] as number) << 16);
    }
  }
}
