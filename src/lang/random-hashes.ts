/**
 * The hashes behind random numbers, element by element: what they are made of, and how XLA counts for its Philox. A state there is a key and
 * a counter of 128 bits; hash number n is of the counter + n.
 *
 *   | key of 64 bits            | counter of 128 bits: low, then high                   | four words, in the order of elements |
 *   |---------------------------|-------------------------------------------------------|--------------------------------------|
 *   | words 0 and 1 of a state  | words 2 and 3, then the rest; the key where none is   | 4n, 4n + 1, 4n + 2, 4n + 3           |
 */
import { u32, u64 } from "../formats/dtype.ts";
import { when } from "./control.ts";
import { iota } from "./create.ts";
import type { Tile } from "./tile.ts";

/** Words of 32 bits; an extent of 1 stands for all elements. */
export type Words = Tile<"u32">;
export type TwoWords = readonly [Words, Words];
export type FourWords = readonly [Words, Words, Words, Words];

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

function rotated(word: Words, distance: number): Words {
  return word.shl(distance).or(word.shr(32 - distance));
}

/** Twenty rounds of Threefry-2x32, element by element. */
export function threefry2x32([first, second]: TwoWords, counter: TwoWords): TwoWords {
  const schedule = [first, second, first.xor(second).xor(0x1bd11bda)] as const;
  const keyWord = (index: number): Words => schedule[index % 3] ?? first;
  let x = counter[0].add(first);
  let y = counter[1].add(second);
  for (let group = 1; group <= 5; group += 1) {
    for (const distance of rotations[(group - 1) % 2] ?? rotations[0]) {
      x = x.add(y);
      y = rotated(y, distance).xor(x);
    }
    x = x.add(keyWord(group));
    y = y.add(keyWord(group + 1)).add(group);
  }
  return [x, y];
}

/** Ten rounds of Philox-4x32, element by element. */
export function philox4x32(key: TwoWords, counter: FourWords): FourWords {
  let words = counter;
  let [first, second] = key;
  for (let round = 0; round < 10; round += 1) {
    const [a, b, c, d] = words;
    const left = a.cast(u64).mul(0xd2511f53n);
    const right = c.cast(u64).mul(0xcd9e8d57n);
    words = [
      right.shr(32n).cast(u32).xor(b).xor(first),
      right.cast(u32),
      left.shr(32n).cast(u32).xor(d).xor(second),
      left.cast(u32),
    ];
    first = first.add(0x9e3779b9);
    second = second.add(0xbb67ae85);
  }
  return words;
}

/** A state of XLA's Philox. */
export interface PhiloxState {
  readonly key: Tile<"u64">;
  readonly low: Tile<"u64">;
  readonly high: Tile<"u64">;
}

/** Low word first. */
export function wordsOf(wide: Tile<"u64">): TwoWords {
  return [wide.cast(u32), wide.shr(32n).cast(u32)];
}

export function joinedWords(low: Words, high: Words): Tile<"u64"> {
  return high.cast(u64).shl(32n).or(low.cast(u64));
}

/** The state whose hash 0 is hash `number` of this one. */
function moved({ key, low, high }: PhiloxState, number: Tile<"u64">): PhiloxState {
  const sum = number.add(low);
  return { key, low: sum, high: sum.lt(low).select(high.add(1n), high) };
}

/** The hashes of these numbers. */
export function philoxHashes(state: PhiloxState, numbers: Tile<"u64">): FourWords {
  const { key, low, high } = moved(state, numbers);
  return philox4x32(wordsOf(key), [...wordsOf(low), ...wordsOf(high)]);
}

/**
 * The hashes of so many numbers from a first one on. All but the lowest word of the counter are the same for them, and with them a
 * product of each of the first two rounds, unless that word ends among them: then each has a counter of its own.
 */
export function philoxRun(state: PhiloxState, first: Tile<"u64">, count: number): FourWords {
  const from = moved(state, first);
  const [lowest, low] = wordsOf(from.low);
  const numbers = iota(u32, [count], { axis: 0 });
  return when(
    lowest.max().gt(2 ** 32 - count),
    () => philoxHashes(from, numbers.cast(u64)),
    () => philox4x32(wordsOf(from.key), [numbers.add(lowest), low, ...wordsOf(from.high)]),
  );
}
