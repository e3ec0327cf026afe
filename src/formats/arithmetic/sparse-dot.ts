/**
 * Products with a sparse A, of which half of every row is there. Metadata say which: four bits a chunk, the index of the
 * first element that A holds in the low two, and that of the second above. A word of u16 has four chunks:
 *
 *   row of A     0 a 0 b   c d 0 0   0 0 e f   g 0 0 h          k 0 … 15
 *   A holds      a b       c d       e f       g h              k / 2 elements
 *   metadata     0b1101    0b0100    0b1110    0b1100           0xce4d, the first chunk in the low bits
 *
 * Two tf32 are a chunk of which A holds one: 0b0100 names the first, 0b1110 the second.
 *
 * The arithmetic is that of a dense product of what A holds with those elements of B that it meets: others do not
 * count, not even infinities and NaNs.
 */
import type { DType, Elements } from "../dtype.ts";
import { dotElements } from "./dot.ts";
import type { DotShape } from "./dot.ts";

const chunksPerWord = 4;

/** Elements of a row in a chunk, and how many of them A holds. */
export function chunkOf({ name }: DType): { readonly length: number; readonly held: number } {
  return name === "tf32" ? { length: 2, held: 1 } : { length: 4, held: 2 };
}

/** Elements of a row that a word of metadata speaks of. */
export function elementsPerWord(dtype: DType): number {
  return chunksPerWord * chunkOf(dtype).length;
}

/** What is wrong with the four bits of a chunk; undefined where they are valid. */
export function chunkProblem({ name }: DType, bits: number): string | undefined {
  if ((bits & 3) === bits >> 2) return "both indices are the same";
  return name === "tf32" && bits !== 0b0100 && bits !== 0b1110
    ? "of tf32 there are 0b0100 and 0b1110"
    : undefined;
}

/** The four bits of a chunk of a row. */
export function chunkBits(words: Uint16Array, chunk: number): number {
  return ((words[chunk >> 2] as number) >> (4 * (chunk & 3))) & 15;
}

/** For each element that A holds of a row, its place in the row. */
export function heldPlaces(dtype: DType, words: Uint16Array): Uint32Array {
  const { length, held } = chunkOf(dtype);
  const places = new Uint32Array(words.length * chunksPerWord * held);
  for (let at = 0; at < places.length; at++) {
    const chunk = Math.floor(at / held);
    const bits = chunkBits(words, chunk);
    const index = at % held === 0 ? bits & 3 : bits >> 2;
    places[at] = chunk * length + (held === 1 ? index >> 1 : index);
  }
  return places;
}

/** c += a·b; a has m rows of k / 2, with the metadata of a row one behind the other; b is k × n and c m × n, by rows. */
export function sparseDotElements(
  shape: DotShape,
  a: Elements,
  metadata: Uint16Array,
  b: Elements,
  c: Elements,
): void {
  const { m, n, k, operand } = shape;
  const [half, words] = [k / 2, k / elementsPerWord(operand)];
  const met = b.slice(0, half * n);
  const line: DotShape = { ...shape, m: 1, k: half };
  for (let row = 0; row < m; row++) {
    const places = heldPlaces(operand, metadata.subarray(row * words, (row + 1) * words));
    for (const [at, place] of places.entries())
      met.set(b.subarray(place * n, (place + 1) * n) as never, at * n);
    const own = a.subarray(row * half, (row + 1) * half);
    dotElements(line, own, met, c.subarray(row * n, (row + 1) * n));
  }
}
