/** Sparse matrices for tests: rows with what metadata say of them, and where lanes keep it. */
import type { Random } from "../../src/support/random.ts";
import { elementOf } from "./product-elements.ts";

/**
 * A row of a sparse matrix, whole and packed, with the bits that tell one from the other. Chunks are four
 * elements with two that count, two tf32 with one, or eight of 4 bits with two pairs.
 */
export function sparseRow(type: string, k: number, ordered: boolean, random: Random) {
  const { draw } = elementOf(type);
  const [length, perIndex, taken] =
    type === "tf32" ? [2, 1, 1] : /4$/.test(type) && type.length === 2 ? [8, 2, 2] : [4, 1, 2];
  const whole = new Array<number>(k).fill(0);
  const packed: number[] = [];
  const codes: number[] = [];
  for (let start = 0; start < k; start += length) {
    const places = length / perIndex;
    const first = random.below(places);
    let second = taken === 1 ? first : random.below(places);
    while (taken === 2 && second === first) second = random.below(places);
    const order = [first, second].slice(0, taken);
    if (ordered) order.sort((left, right) => left - right);
    for (const place of order)
      for (let each = 0; each < perIndex; each++) {
        const value = draw(random);
        whole[start + place * perIndex + each] = value;
        packed.push(value);
      }
    const [low = 0, high = 0] = order;
    codes.push(type === "tf32" ? (low === 0 ? 0b0100 : 0b1110) : low | (high << 2));
  }
  return { whole, packed, codes };
}

/** Where the bits of a chunk are: for 16 and 32 bits, rows g and g + 8 share a word. */
function codePlace(type: string, chunks: number, selector: number, row: number, chunk: number) {
  const quad = 4 * (row % 8);
  const isLower = row < 8;
  if (elementOf(type).bits >= 16) {
    const lane = quad + (chunks === 4 ? selector : 2 * selector + (chunk < 4 ? 0 : 1));
    return { lane, shift: 4 * (chunk % 4) + (isLower ? 0 : 16) };
  }
  const pair = chunks === 8 ? selector : chunk < 8 ? 0 : 1;
  return { lane: quad + 2 * pair + (isLower ? 0 : 1), shift: 4 * (chunk % 8) };
}

export function metadataWords(
  type: string,
  selector: number,
  rows: readonly (readonly number[])[],
  random: Random,
): Uint32Array {
  const words = new Uint32Array(32);
  const used = new Set<number>();
  for (const [row, codes] of rows.entries())
    for (const [chunk, code] of codes.entries()) {
      const { lane, shift } = codePlace(type, codes.length, selector, row, chunk);
      words[lane] = (words[lane] ?? 0) | (code << shift);
      used.add(lane);
    }
  // What other lanes hold must not matter.
  for (let lane = 0; lane < 32; lane++) if (!used.has(lane)) words[lane] = random.bits();
  return words;
}
