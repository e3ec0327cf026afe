/**
 * Random numbers in kernels, as functions of a key and of numbers that count: without state, so that every block draws its own
 * part of one array, and the same on every device. A key is words of 32 bits, from which its generator makes other keys and the
 * bits of elements. The counter of an element is its row-major number in the whole array.
 *
 *   const key = randomKey(keys.at(i));        words in memory, scalars, or a seed
 *   const [own, rest] = key.split(2);         as jax.random.split
 *   own.uniform(numbers);                     as jax.random.uniform, of the elements that `numbers` names
 *
 *   | generator | key     | bits of element 5                        | key number 5 of split, foldIn(5)    | as in                |
 *   |-----------|---------|------------------------------------------|-------------------------------------|----------------------|
 *   | threefry  | 2 words | hash of (0, 5) is (a, b): a ^ b          | (a, b)                              | JAX, threefry2x32    |
 *   | rbg       | 4 words | Philox of counter + 1 is (a, b, c, d): b | Threefry of either half             | JAX, rbg, but normal |
 *   | philox    | 2 words | Philox of (5, 0, 0, 0) is (a, b, c, d): a| of (5, 0, 0, 1): (b, a)             | Triton, bits         |
 *
 * Uniform numbers have the upper 23 bits behind the point.
 */
import { u32 } from "../formats/dtype.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { lone, requireNumbers } from "./random-elements.ts";
import type { ElementNumbers } from "./random-elements.ts";
import { generators, unitOf } from "./random-generators.ts";
import type { RandomGenerator } from "./random-generators.ts";
import type { Words } from "./random-hashes.ts";
import { Ref } from "./ref.ts";
import { Scalar } from "./elementwise.ts";
import { isPositiveInteger } from "./sizes.ts";
import type { AxisOption, Tile } from "./tile.ts";
import { wrongKind } from "./traced.ts";

/** The numbers between which uniform ones lie. */
export interface UniformOptions {
  /** 0 unless given. */
  readonly low?: number;
  /** Above all of them; 1 unless given. */
  readonly high?: number;
}

const smallestNormal = 2 ** -126;

/** Draws are the same in a kernel of approximations. */
const accurate = { approximate: false } as const;

/** Words that random numbers follow from. */
export class RandomKey<G extends RandomGenerator = RandomGenerator> {
  /** The words, of a seed its upper one first, as tiles of one element. */
  readonly words: readonly Words[];
  /** What makes its keys and bits. */
  readonly generator: G;

  /** @internal */
  constructor(words: readonly Words[], generator: G) {
    this.words = words;
    this.generator = generator;
  }

  /** Keys that have nothing to do with each other or with this one. */
  split(count = 2): readonly RandomKey<G>[] {
    const location = captureLocation();
    if (!isPositiveInteger(count))
      wrongKind("the keys of split", "a positive whole number", count, location);
    return atLocation(location, () =>
      Array.from({ length: count }, (_, index) => this.#hashed(lone(index))),
    );
  }

  /** A key for a number, such as a block's. */
  foldIn(data: number | Scalar<"i32"> | Scalar<"u32">): RandomKey<G> {
    const location = captureLocation();
    if (typeof data === "number") return atLocation(location, () => this.#hashed(lone(data)));
    if (!(data instanceof Scalar) || data.dtype.bits !== 32 || data.dtype.kind === "float")
      wrongKind("what foldIn takes", "a number or a scalar of 32 bits", data, location);
    return atLocation(location, () =>
      this.#hashed(lone(0).add(data.dtype === u32 ? (data as Scalar<"u32">) : data.cast(u32))),
    );
  }

  #hashed(number: Words): RandomKey<G> {
    return new RandomKey(generators[this.generator].key(this.words, number), this.generator);
  }

  /** 32 random bits an element. */
  bits(numbers: ElementNumbers): Words {
    const location = captureLocation();
    const checked = requireNumbers("bits", numbers, location);
    return atLocation(location, () => generators[this.generator].bits(this.words, checked));
  }

  /** Numbers from `low` up to and without `high`, all equally likely. */
  uniform(numbers: ElementNumbers, options: UniformOptions = {}): Tile<"f32"> {
    requireKnownOptions("uniform", options, ["low", "high"], "TW1033", captureLocation());
    const { low = 0, high = 1 } = options;
    const unit = unitOf(this.bits(numbers));
    const span = Math.fround(Math.fround(high) - Math.fround(low));
    const drawn = unit.mul(span).add(low);
    // What is not negative takes no sum below `low`.
    return span >= 0 && Number.isFinite(span) ? drawn : drawn.maximum(low);
  }

  /** Numbers of the standard normal distribution: of `threefry` those of JAX, of `rbg` by Box and Muller's transform of JAX's bits. */
  normal(numbers: ElementNumbers): Tile<"f32"> {
    const location = captureLocation();
    const checked = requireNumbers("normal", numbers, location);
    return atLocation(location, () => generators[this.generator].normal(this.words, checked));
  }

  /** Whether each draw falls below a probability. */
  bernoulli(probability: number | Tile<"f32">, numbers: ElementNumbers): Tile<"bool"> {
    return this.uniform(numbers).lt(probability);
  }

  /** Numbers of the standard Gumbel distribution. */
  gumbel(numbers: ElementNumbers): Tile<"f32"> {
    const uniform = this.uniform(numbers, { low: smallestNormal, high: 1 });
    return uniform.log(accurate).neg().log(accurate).neg();
  }

  /** An index along an axis, drawn by logits. */
  categorical(
    logits: Tile<"f32">,
    numbers: ElementNumbers,
    options: AxisOption = { axis: -1 },
  ): Tile<"i32"> {
    return logits.add(this.gumbel(numbers)).argmax(options);
  }
}

/** How a key makes its numbers. */
export interface RandomKeyOptions<G extends RandomGenerator> {
  /**
   * Threefry-2x32, JAX's default, which is taken where nothing is said; JAX's `rbg`, which draws by Philox-4x32 and makes keys by Threefry;
   * or Philox-4x32 with the bits of Triton.
   */
  readonly generator: G;
}

type Word = Scalar<"u32">;
type WordsOf<G> = G extends "rbg" ? readonly [Word, Word, Word, Word] : readonly [Word, Word];
type KeySource<G extends RandomGenerator> = number | WordsOf<G> | Ref<"u32">;

/**
 * A key: of a seed, as `jax.random.key` makes it; of scalars, the upper word of a seed first; or of words in memory, so that
 * an array of shape [n, 2] holds n keys, and one of [n, 4] n keys of `rbg`.
 */
export function randomKey(source: KeySource<"threefry">): RandomKey<"threefry">;
export function randomKey<G extends RandomGenerator>(
  source: KeySource<NoInfer<G>>,
  options: RandomKeyOptions<G>,
): RandomKey<G>;
export function randomKey(
  source: KeySource<RandomGenerator>,
  options: Partial<RandomKeyOptions<RandomGenerator>> = {},
): RandomKey {
  const location = captureLocation();
  requireKnownOptions("randomKey", options, ["generator"], "TW1033", location);
  const { generator = "threefry" } = options;
  if (!Object.hasOwn(generators, generator))
    wrongKind("a generator", '"threefry", "rbg" or "philox"', generator, location);
  return new RandomKey(keyWords(source, generators[generator].keyWords, location), generator);
}

const counted = { 2: "two", 4: "four" } as const;

function keyWords(source: unknown, count: 2 | 4, location: Location): readonly Words[] {
  if (typeof source === "number") {
    if (!Number.isSafeInteger(source) || source < 0)
      wrongKind("a seed", "a whole number from 0", source, location);
    const half = [lone(Math.floor(source / 2 ** 32)), lone(source)];
    return count === 2 ? half : [...half, ...half];
  }
  if (source instanceof Ref) {
    if (source.dtype !== u32 || source.shape.length !== 1 || source.shape[0] !== count)
      wrongKind("a key in memory", `a window of ${counted[count]} u32`, source, location);
    const words = source.load();
    return Array.from({ length: count }, (_, index) => words.slice([index], [1]));
  }
  const scalars: readonly unknown[] = Array.isArray(source) ? source : [];
  const words = scalars.filter(isWord);
  if (scalars.length !== count || words.length !== count)
    return wrongKind(
      "a key",
      `a seed, ${counted[count]} scalars of u32, or a window of ${counted[count]}`,
      source,
      location,
    );
  return words.map((word) => lone(0).add(word));
}

function isWord(item: unknown): item is Scalar<"u32"> {
  return item instanceof Scalar && item.dtype === u32;
}
