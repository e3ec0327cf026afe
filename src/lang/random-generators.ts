/**
 * What makes keys and bits of a key, a record keyed by the generator. One of `rbg` hashes four elements at once where they follow each other,
 * a lane four of them; of numbers that may be any it takes a hash for each, and one word of it.
 */
import { f32, u64 } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { concatenate } from "./create.ts";
import { eachNumber, firstOf, lone, sizeOf } from "./random-elements.ts";
import type { CheckedNumbers, ElementRun } from "./random-elements.ts";
import { joinedWords, philox4x32, philoxHashes, philoxRun, threefry2x32 } from "./random-hashes.ts";
import type { FourWords, PhiloxState, TwoWords, Words } from "./random-hashes.ts";
import { aboveMinusOne, normalOfUniform, normalsOfWords } from "./random-normals.ts";
import { Tile } from "./tile.ts";

/** What makes keys and bits of a key. */
export type RandomGenerator = "threefry" | "rbg" | "philox";

/** One tile of several with a number for each word of the hashes. */
type Joined = <D extends DTypeName>(values: readonly Tile<D>[]) => Tile<D>;

export interface Generator {
  /** Words of a key. */
  readonly keyWords: 2 | 4;
  /** The key of a number. */
  readonly key: (words: readonly Words[], number: Words) => readonly Words[];
  /** The bits of elements, and their normal numbers. */
  readonly bits: (words: readonly Words[], numbers: CheckedNumbers) => Words;
  readonly normal: (words: readonly Words[], numbers: CheckedNumbers) => Tile<"f32">;
}

/** From 0 up to and without 1. */
export function unitOf(bits: Words): Tile<"f32"> {
  return bits.shr(9).or(0x3f800000).bitcast(f32).sub(1);
}

/** A generator whose hashes are of elements. */
function elementwise(
  key: Generator["key"],
  bitsOf: (words: readonly Words[], numbers: Words) => Words,
): Generator {
  const bits: Generator["bits"] = (words, numbers) => bitsOf(words, eachNumber(numbers));
  return {
    ...{ keyWords: 2, key, bits },
    normal: (words, numbers) =>
      normalOfUniform(unitOf(bits(words, numbers)).mul(2).add(aboveMinusOne)),
  };
}

/** Hashes of four elements each, and how their words lie. */
interface Quads {
  readonly hashes: FourWords;
  readonly joined: Joined;
}

function quadsOfRun(state: PhiloxState, run: ElementRun): Quads {
  const count = sizeOf(run) / 4;
  return {
    hashes: philoxRun(state, firstOf(run, count).cast(u64), count),
    joined: (values) =>
      concatenate(
        values.map((each) => each.reshape([count, 1])),
        { axis: 1 },
      ).reshape(run.shape),
  };
}

function quads(words: readonly Words[], numbers: CheckedNumbers): Quads {
  const [a, b, c, d] = words as FourWords;
  const key = joinedWords(a, b);
  const state = { key, low: joinedWords(c, d), high: key };
  if (!(numbers instanceof Tile) && sizeOf(numbers) % 4 === 0) return quadsOfRun(state, numbers);
  const each = eachNumber(numbers);
  const [isOdd, isUpper] = [each.and(1).ne(0), each.and(2).ne(0)];
  return {
    hashes: philoxHashes(state, each.shr(2).cast(u64)),
    joined: (values) => {
      const [first, second, third, fourth] = values;
      if (first === undefined || second === undefined) throw new Error("four values of a hash");
      if (third === undefined || fourth === undefined) throw new Error("four values of a hash");
      return isUpper.select(isOdd.select(fourth, third), isOdd.select(second, first));
    },
  };
}

/** The bits of a run of elements, a multiple of four, that a state of XLA's Philox gives. */
export function philoxBits(state: PhiloxState, run: ElementRun): Words {
  const { hashes, joined } = quadsOfRun(state, run);
  return joined(hashes);
}

export const generators: { readonly [G in RandomGenerator]: Generator } = {
  threefry: elementwise(
    (words, number) => threefry2x32(words as TwoWords, [lone(0), number]),
    (words, number) => {
      const [a, b] = threefry2x32(words as TwoWords, [lone(0), number]);
      return a.xor(b);
    },
  ),
  rbg: {
    keyWords: 4,
    key: (words, number) => {
      const half = (at: number): TwoWords =>
        threefry2x32(words.slice(at, at + 2) as unknown as TwoWords, [lone(0), number]);
      return [...half(0), ...half(2)];
    },
    bits: (words, numbers) => {
      const { hashes, joined } = quads(words, numbers);
      return joined(hashes);
    },
    normal: (words, numbers) => {
      const { hashes, joined } = quads(words, numbers);
      return joined(normalsOfWords(hashes));
    },
  },
  philox: elementwise(
    // The last word of the counter keeps keys apart from elements.
    ([high = lone(0), low = lone(0)], number) => {
      const [a, b] = philox4x32([low, high], [number, lone(0), lone(0), lone(1)]);
      return [b, a];
    },
    ([high = lone(0), low = lone(0)], number) => {
      const [a] = philox4x32([low, high], [number, lone(0), lone(0), lone(0)]);
      return a;
    },
  ),
};
