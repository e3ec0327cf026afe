/**
 * Random numbers in kernels, as functions of a key and of numbers that count: without state, so that every block draws its own
 * part of one array, and the same on every device. Keys are two words of 32 bits, from which a generator makes other keys and the
 * bits of elements. The counter of an element is its row-major number in the whole array.
 *
 *   const key = randomKey(keys.at(i));        two words in memory, two u32 scalars, or a seed
 *   const [own, rest] = key.split(2);         as jax.random.split
 *   own.uniform(numbers);                     as jax.random.uniform, of the elements that `numbers` names
 *
 *   | generator | bits of element 5                          | key number 5 of split, foldIn(5)     | as in          |
 *   |-----------|--------------------------------------------|--------------------------------------|----------------|
 *   | threefry  | hash of (0, 5) is (a, b): a ^ b            | (a, b)                               | jax.random     |
 *   | philox    | hash of (5, 0, 0, 0) is (a, b, c, d): a    | of (5, 0, 0, 1): (b, a)              | Triton, bits   |
 *
 * Uniform numbers have the upper 23 bits behind the point.
 */
import { f32, i32, u32, u64 } from "../formats/dtype.ts";
import { inverseErrorCoefficients } from "../support/inverse-error.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { full } from "./create.ts";
import { Ref } from "./ref.ts";
import { Scalar } from "./scalar.ts";
import { isPositiveInteger } from "./sizes.ts";
import { Tile } from "./tile.ts";
import { wrongKind } from "./traced.ts";

/** Words of 32 bits; an extent of 1 stands for all elements. */
export type Words = Tile<"u32">;

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

function rotated(word: Words, distance: number): Words {
  return word.shl(distance).or(word.shr(32 - distance));
}

/** Twenty rounds of Threefry-2x32, element by element. */
export function threefry2x32(
  [first, second]: readonly [Words, Words],
  counter: readonly [Words, Words],
): readonly [Words, Words] {
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

type FourWords = readonly [Words, Words, Words, Words];

/** Ten rounds of Philox-4x32, element by element. */
export function philox4x32(key: readonly [Words, Words], counter: FourWords): FourWords {
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

/** The numbers between which uniform ones lie. */
export interface UniformOptions {
  /** 0 unless given. */
  readonly low?: number;
  /** Above all of them; 1 unless given. */
  readonly high?: number;
}

/** Row-major numbers of elements in the whole array that is drawn. */
export type ElementNumbers = Tile<"u32"> | Tile<"i32">;

/** The f32 just above -1. */
const aboveMinusOne = -(1 - 2 ** -24);
const smallestNormal = 2 ** -126;

/** What makes keys and bits of a key. */
export type RandomGenerator = "threefry" | "philox";

interface Hashes {
  /** The key of a number. */
  readonly key: (words: readonly [Words, Words], number: Words) => readonly [Words, Words];
  readonly bits: (words: readonly [Words, Words], number: Words) => Words;
}

const generators: { readonly [G in RandomGenerator]: Hashes } = {
  threefry: {
    key: (words, number) => threefry2x32(words, [lone(0), number]),
    bits: (words, number) => {
      const [a, b] = threefry2x32(words, [lone(0), number]);
      return a.xor(b);
    },
  },
  philox: {
    // The last word of the counter keeps keys apart from elements.
    key: ([high, low], number) => {
      const [a, b] = philox4x32([low, high], [number, lone(0), lone(0), lone(1)]);
      return [b, a];
    },
    bits: ([high, low], number) => {
      const [a] = philox4x32([low, high], [number, lone(0), lone(0), lone(0)]);
      return a;
    },
  },
};

/** Two words that random numbers follow from. */
export class RandomKey<G extends RandomGenerator = RandomGenerator> {
  /** The words, upper one first, as tiles of one element. */
  readonly words: readonly [Words, Words];
  /** What makes its keys and bits. */
  readonly generator: G;

  /** @internal */
  constructor(words: readonly [Words, Words], generator: G) {
    this.words = words;
    this.generator = generator;
  }

  /** Keys that have nothing to do with each other or with this one. */
  split(count = 2): readonly RandomKey<G>[] {
    const location = captureLocation();
    if (!isPositiveInteger(count))
      wrongKind("the keys of split", "a positive whole number", count, location);
    return Array.from({ length: count }, (_, index) => this.#hashed(lone(index)));
  }

  /** A key for a number, such as a block's. */
  foldIn(data: number | Scalar<"i32"> | Scalar<"u32">): RandomKey<G> {
    const location = captureLocation();
    if (typeof data === "number") return this.#hashed(lone(data));
    if (!(data instanceof Scalar) || data.dtype.bits !== 32 || data.dtype.kind === "float")
      wrongKind("what foldIn takes", "a number or a scalar of 32 bits", data, location);
    return this.#hashed(lone(0).add(data.dtype === u32 ? (data as Scalar<"u32">) : data.cast(u32)));
  }

  #hashed(number: Words): RandomKey<G> {
    return new RandomKey(generators[this.generator].key(this.words, number), this.generator);
  }

  /** 32 random bits an element. */
  bits(numbers: ElementNumbers): Words {
    const counter = requireNumbers("bits", numbers, captureLocation());
    return generators[this.generator].bits(this.words, counter);
  }

  /** Numbers from `low` up to and without `high`, all equally likely. */
  uniform(numbers: ElementNumbers, options: UniformOptions = {}): Tile<"f32"> {
    requireKnownOptions("uniform", options, ["low", "high"], "TW1033", captureLocation());
    const { low = 0, high = 1 } = options;
    const unit = this.bits(numbers).shr(9).or(0x3f800000).bitcast(f32).sub(1);
    const span = Math.fround(Math.fround(high) - Math.fround(low));
    const drawn = unit.mul(span).add(low);
    // What is not negative takes no sum below `low`.
    return span >= 0 && Number.isFinite(span) ? drawn : drawn.maximum(low);
  }

  /** Numbers of the standard normal distribution. */
  normal(numbers: ElementNumbers): Tile<"f32"> {
    const uniform = this.uniform(numbers, { low: aboveMinusOne, high: 1 });
    return inverseError(uniform).mul(Math.fround(Math.SQRT2));
  }

  /** Whether each draw falls below a probability. */
  bernoulli(probability: number | Tile<"f32">, numbers: ElementNumbers): Tile<"bool"> {
    return this.uniform(numbers).lt(probability as never);
  }

  /** Numbers of the standard Gumbel distribution. */
  gumbel(numbers: ElementNumbers): Tile<"f32"> {
    return this.uniform(numbers, { low: smallestNormal, high: 1 }).log().neg().log().neg();
  }

  /** An index along an axis, drawn by logits. */
  categorical(logits: Tile<"f32">, numbers: ElementNumbers, axis = -1): Tile<"i32"> {
    return logits.add(this.gumbel(numbers)).argmax(axis);
  }
}

function lone(value: number): Words {
  return full(u32, [1], value >>> 0);
}

function requireNumbers(label: string, numbers: unknown, location: Location): Words {
  if (numbers instanceof Tile) {
    if (numbers.dtype === u32) return numbers as Words;
    if (numbers.dtype === i32) return (numbers as Tile<"i32">).bitcast(u32);
  }
  return wrongKind(`the numbers of ${label}`, "a tile of u32 or i32", numbers, location);
}

/** How a key makes its numbers. */
export interface RandomKeyOptions<G extends RandomGenerator> {
  /** Threefry-2x32, as JAX has it, which is taken where nothing is said, or Philox-4x32, with the bits of Triton. */
  readonly generator: G;
}

type KeySource = number | readonly [Scalar<"u32">, Scalar<"u32">] | Ref<"u32">;

/**
 * A key: of a seed, as `jax.random.key` makes it; of two scalars, its upper word first; or of two words in memory, so that
 * an array of shape [n, 2] holds n keys.
 */
export function randomKey(source: KeySource): RandomKey<"threefry">;
export function randomKey<G extends RandomGenerator>(
  source: KeySource,
  options: RandomKeyOptions<G>,
): RandomKey<G>;
export function randomKey(
  source: KeySource,
  options: Partial<RandomKeyOptions<RandomGenerator>> = {},
): RandomKey {
  const location = captureLocation();
  requireKnownOptions("randomKey", options, ["generator"], "TW1033", location);
  const { generator = "threefry" } = options;
  if (!Object.hasOwn(generators, generator))
    wrongKind("a generator", '"threefry" or "philox"', generator, location);
  return new RandomKey(keyWords(source, location), generator);
}

function keyWords(source: unknown, location: Location): readonly [Words, Words] {
  if (typeof source === "number") {
    if (!Number.isSafeInteger(source) || source < 0)
      wrongKind("a seed", "a whole number from 0", source, location);
    return [lone(Math.floor(source / 2 ** 32)), lone(source)];
  }
  if (source instanceof Ref) {
    if (source.dtype !== u32 || source.shape.length !== 1 || source.shape[0] !== 2)
      wrongKind("a key in memory", "a window of two u32", source, location);
    const words = (source as Ref<"u32">).load();
    return [words.slice([0], [1]), words.slice([1], [1])];
  }
  const scalars: readonly unknown[] = Array.isArray(source) ? source : [];
  const [high, low] = scalars.filter(isWord);
  if (scalars.length !== 2 || high === undefined || low === undefined)
    return wrongKind("a key", "a seed, two scalars of u32, or a window of two", source, location);
  return [lone(0).add(high), lone(0).add(low)];
}

function isWord(item: unknown): item is Scalar<"u32"> {
  return item instanceof Scalar && item.dtype === u32;
}

/**
 * The number whose error function is x (`support/inverse-error.ts`). Approximations of the GPU are enough for it: w is added
 * to 2.5 or more, so that 2^-22 of it is no unit in the last place of the result.
 */
function inverseError(x: Tile<"f32">): Tile<"f32"> {
  const rest = x.mul(x).neg().add(1);
  const w = rest.log2({ approximate: true }).mul(-Math.LN2);
  const everywhere = (value: number): Tile<"f32"> => full(f32, [1], value).broadcastTo(x.shape);
  const polynomial = (which: 0 | 1, at: Tile<"f32">): Tile<"f32"> =>
    inverseErrorCoefficients
      .map((coefficients) => everywhere(coefficients[which]))
      .reduce((higher, coefficient) => higher.fma(at, coefficient));
  // Both of them everywhere, and one choice: the hash of the bits keeps the pipe busy that would choose each coefficient.
  const central = polynomial(0, w.sub(2.5));
  const outer = polynomial(1, w.sqrt({ approximate: true }).sub(3));
  return w.lt(5).select(central, outer).mul(x);
}
