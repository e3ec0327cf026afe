/**
 * Keys of random numbers and the bits that follow from them, as JAX has them. A key is words; how many there are says what draws by it:
 *
 *   | generator | words | bits                                                      | keys of split and foldIn          |
 *   |-----------|-------|-----------------------------------------------------------|-----------------------------------|
 *   | threefry  | 2     | both words of a hash of Threefry-2x32 an element, joined  | a hash                            |
 *   | rbg       | 4     | four elements a hash of Philox-4x32 (`rng_bit_generator`) | a hash of Threefry of either half |
 */
import { tensorType, sizeOf } from "../graph/ops/types.ts";
import { u32 } from "../formats/dtype.ts";
import { threefry as hashOf } from "../graph/evaluate/random.ts";
import { dataAtHand, NDArray, recordWith } from "./array.ts";
import { add, bitwiseOr, bitwiseXor, full, shiftLeft, shiftRight } from "./functions.ts";
import { array, iota, reshape, slice, stack, zeros } from "./shapes.ts";

/** Words that random numbers follow from: two, or four of `rbg`. */
export type Key = NDArray<"u32">;
type Words = NDArray<"u32">;

/** Options of `random.key`. */
export interface KeyOptions {
  /** JAX's `threefry` by default; or `rbg`, which draws by Philox-4x32 and is several times as fast. */
  readonly generator?: "threefry" | "rbg" | undefined;
}

/** The key of a seed: its high and low word; twice for `rbg`. */
export function key(seed: number, { generator = "threefry" }: KeyOptions = {}): Key {
  const half = [Math.floor(seed / 2 ** 32) >>> 0, seed >>> 0];
  return array(generator === "rbg" ? [...half, ...half] : half, "u32");
}

export function generatorOf({ shape }: Key): "threefry" | "rbg" {
  return shape[0] === 4 ? "rbg" : "threefry";
}

function word(words: Words, index: number): Words {
  return reshape(slice(words, [[index, index + 1]]), []);
}

function rotated(x: Words, distance: number): Words {
  return bitwiseOr(shiftLeft(x, distance), shiftRight(x, 32 - distance));
}

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

/** Threefry-2x32 with 20 rounds. */
function threefry(seed: Key, x0: Words, x1: Words): readonly [Words, Words] {
  const first = word(seed, 0);
  const second = word(seed, 1);
  const keys = [first, second, bitwiseXor(bitwiseXor(first, second), 0x1bd11bda)] as const;
  let a = add(x0, keys[0]);
  let b = add(x1, keys[1]);
  for (let group = 1; group <= 5; group++) {
    for (const distance of rotations[(group + 1) % 2] ?? rotations[0]) {
      a = add(a, b);
      b = bitwiseXor(rotated(b, distance), a);
    }
    a = add(a, keys[group % 3] ?? keys[0]);
    b = add(add(b, keys[(group + 1) % 3] ?? keys[0]), group);
  }
  return [a, b];
}

/** The hashes of the numbers 0, 1, …; arrays have fewer than 2^32 elements. */
function hashes(seed: Key, count: number): readonly [Words, Words] {
  const low = iota([count], "u32", { axis: 0 });
  return threefry(seed, zeros([count], "u32"), low);
}

/** The key of two words that a key is made of, or of four. */
function halves(seed: Key): readonly Key[] {
  return generatorOf(seed) === "threefry" ? [seed] : [slice(seed, [[0, 2]]), slice(seed, [[2, 4]])];
}

type Half = readonly [number, number];

/**
 * The words of a key that is there already, such as that of a seed, by halves. What is small and follows from it is computed at once:
 * recorded, each hash is two hundred ops, and a device would have a kernel or two for each key.
 */
function wordsAtHand({ value }: Key): readonly Half[] | undefined {
  const data = dataAtHand(value)?.data;
  if (data === undefined) return undefined;
  const words = Array.from(data, Number);
  return Array.from({ length: words.length / 2 }, (_, half) => [
    words[2 * half] ?? 0,
    words[2 * half + 1] ?? 0,
  ]);
}

/** Hashes that are computed at once: less work than to record them. */
const mostAtOnce = 4096;

/** The key that a number gives, by each half of a key. */
function keyOf(known: readonly Half[], number: number): Key {
  return array(
    known.flatMap((half) => hashOf(half, [0, number])),
    "u32",
  );
}

function bitsOf(key: Half, shape: readonly number[]): Words {
  const drawn = Uint32Array.from({ length: sizeOf(shape) }, (_, n) => {
    const [a, b] = hashOf(key, [0, n]);
    return a ^ b;
  });
  return array({ dtype: u32, shape, data: drawn });
}

/** 32 random bits an element. */
export function bits(seed: Key, shape: readonly number[]): Words {
  if (generatorOf(seed) === "rbg") return generated(seed, shape);
  const [known] = sizeOf(shape) <= mostAtOnce ? (wordsAtHand(seed) ?? []) : [];
  if (known !== undefined) return bitsOf(known, shape);
  const [a, b] = hashes(seed, sizeOf(shape));
  return reshape(bitwiseXor(a, b), shape);
}

/** The four words of so many hashes of `rbg` as hold the bits of a shape. */
export function hashedWords(seed: Key, shape: readonly number[]): Words {
  return generated(seed, [Math.ceil(sizeOf(shape) / 4), 4]);
}

/** XLA's Philox, whose state of 64-bit words is the key. */
function generated(seed: Key, shape: readonly number[]): Words {
  const operand = reshape(seed, [2, 2]).value;
  const value = recordWith("bits", (builder) => {
    const state = builder.one(
      "stablehlo.bitcast_convert",
      { operand },
      {},
      { types: [tensorType("ui64", [2])] },
    );
    const [, drawn] = builder.add(
      "stablehlo.rng_bit_generator",
      { initial_state: state },
      { rng_algorithm: "PHILOX" },
      { types: [tensorType("ui64", [2]), tensorType("ui32", shape)] },
    );
    if (drawn === undefined) throw new Error("a generator has bits");
    return drawn;
  });
  return new NDArray<"u32">(value);
}

/** New keys from one. */
export function split(seed: Key): readonly [Key, Key];
export function split(seed: Key, count?: number): readonly Key[];
export function split(seed: Key, count = 2): readonly Key[] {
  const known = count <= mostAtOnce ? wordsAtHand(seed) : undefined;
  if (known !== undefined) return Array.from({ length: count }, (_, i) => keyOf(known, i));
  const columns = halves(seed).flatMap((half) => hashes(half, count));
  const rows = stack(columns, { axis: 1 });
  return Array.from({ length: count }, (_, i) =>
    reshape(slice(rows, [[i, i + 1], null]), [columns.length]),
  );
}

/** A key from a key and a number. */
export function foldIn(seed: Key, data: number): Key {
  const known = wordsAtHand(seed);
  if (known !== undefined) return keyOf(known, data >>> 0);
  const counter = [zeros([], "u32"), full([], data >>> 0, "u32")] as const;
  return stack(halves(seed).flatMap((half) => threefry(half, ...counter)));
}
