/**
 * Random numbers as JAX makes them: Threefry-2x32 over counters, so equal keys give equal bits on every device.
 *
 *   const key = random.key(0);
 *   const [left, right] = random.split(key);
 *   random.uniform(left, [4]);       bits equal to jax.random.uniform(left, (4,))
 */
import type { GraphValue } from "../graph/ops/node.ts";
import { sizeOf } from "../graph/ops/types.ts";
import { inverseErrorCoefficients } from "../support/inverse-error.ts";
import { LazyArray, recordWith } from "./array.ts";
import {
  add,
  astype,
  bitcast,
  bitwiseOr,
  bitwiseXor,
  full,
  less,
  log,
  log1p,
  maximum,
  mul,
  neg,
  rem,
  shiftLeft,
  shiftRight,
  sqrt,
  sub,
  where,
} from "./functions.ts";
import { argmax } from "./reductions.ts";
import { array, iota, reshape, slice, stack, zeros } from "./shapes.ts";

/** Two words that random numbers follow from. */
export type Key = LazyArray<"u32">;
type Words = LazyArray<"u32">;

/** The key of a seed: its high and low word. */
export function key(seed: number): Key {
  const low = seed >>> 0;
  const high = Math.floor(seed / 2 ** 32) >>> 0;
  return array([high, low], "u32");
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
  const low = iota([count], 0, "u32");
  return threefry(seed, zeros([count], "u32"), low);
}

/** 32 random bits an element. */
export function bits(seed: Key, shape: readonly number[]): Words {
  const [a, b] = hashes(seed, sizeOf(shape));
  return reshape(bitwiseXor(a, b), shape);
}

/** New keys from one. */
export function split(seed: Key, count = 2): readonly Key[] {
  const [a, b] = hashes(seed, count);
  const rows = stack([a, b], 1);
  return Array.from({ length: count }, (_, i) => reshape(slice(rows, [[i, i + 1], null]), [2]));
}

/** A key from a key and a number. */
export function foldIn(seed: Key, data: number): Key {
  const [a, b] = threefry(seed, zeros([], "u32"), full([], data >>> 0, "u32"));
  return stack([a, b]);
}

export interface UniformOptions {
  readonly low?: number | undefined;
  readonly high?: number | undefined;
}

/** Numbers from `low` up to and without `high`, all equally likely. */
export function uniform(
  seed: Key,
  shape: readonly number[],
  { low = 0, high = 1 }: UniformOptions = {},
): LazyArray<"f32"> {
  const mantissa = bitwiseOr(shiftRight(bits(seed, shape), 9), 0x3f800000);
  const unit = sub(bitcast(mantissa, "f32"), 1);
  const span = Math.fround(Math.fround(high) - Math.fround(low));
  return maximum(add(mul(unit, span), low), low);
}

/** The f32 just above -1. */
const aboveMinusOne = -(1 - 2 ** -24);

/** Numbers of the standard normal distribution. */
export function normal(seed: Key, shape: readonly number[]): LazyArray<"f32"> {
  const drawn = uniform(seed, shape, { low: aboveMinusOne, high: 1 });
  return mul(inverseError(drawn), Math.fround(Math.SQRT2));
}

/** The number whose error function is x, as JAX rounds it (`support/inverse-error.ts`). */
function inverseError(x: LazyArray<"f32">): LazyArray<"f32"> {
  const w = neg(log1p(neg(mul(x, x))));
  const isCentral = less(w, 5);
  const at = where(isCentral, sub(w, 2.5), sub(sqrt(w), 3));
  const everywhere = (value: number): LazyArray<"f32"> => full(x.shape, value, "f32");
  const sum = inverseErrorCoefficients
    .map(([central, outer]) => where(isCentral, everywhere(central), everywhere(outer)))
    .reduce((higher, coefficient) => add(mul(higher, at), coefficient));
  return mul(sum, x);
}

/** Whether each draw falls below a probability. */
export function bernoulli(seed: Key, p: number, shape: readonly number[]): LazyArray<"bool"> {
  return less(uniform(seed, shape), p);
}

/** Integers from `low` up to and without `high`. */
export function randint(
  seed: Key,
  shape: readonly number[],
  low: number,
  high: number,
): LazyArray<"i32"> {
  const [first, second] = split(seed);
  if (first === undefined || second === undefined) throw new Error("split gives two keys");
  const span = full(shape, high - low, "u32");
  const half = rem(full(shape, 2 ** 16, "u32"), span);
  const multiplier = rem(mul(half, half), span);
  const upper = rem(bits(first, shape), span);
  const lower = rem(bits(second, shape), span);
  const offset = rem(add(mul(upper, multiplier), lower), span);
  return add(astype(offset, "i32"), low);
}

const smallestNormal = 2 ** -126;

/** Numbers of the standard Gumbel distribution. */
export function gumbel(seed: Key, shape: readonly number[]): LazyArray<"f32"> {
  return neg(log(neg(log(uniform(seed, shape, { low: smallestNormal, high: 1 })))));
}

/** An index along the last axis, drawn by logits. */
export function categorical(seed: Key, logits: LazyArray<"f32">): LazyArray<"i32"> {
  return argmax(add(logits, gumbel(seed, logits.shape)), -1);
}

/** 0 … count - 1 in random order. */
export function permutation(seed: Key, count: number): LazyArray<"i32"> {
  const rounds = Math.ceil((3 * Math.log(count)) / Math.log(2 ** 32 - 1));
  let current = seed;
  let order: GraphValue = iota([count], 0, "i32").value;
  for (let round = 0; round < rounds; round++) {
    const [next, own] = split(current);
    if (next === undefined || own === undefined) throw new Error("split gives two keys");
    current = next;
    order = sortedBy(bits(own, [count]).value, order);
  }
  return new LazyArray<"i32">(order);
}

function sortedBy(keys: GraphValue, values: GraphValue): GraphValue {
  return recordWith("sort", (builder) => {
    const scalars = [keys, keys, values, values].map(({ type }) => ({ ...type, shape: [] }));
    const comparator = builder.region(scalars, (inner, [left, right]) => [
      inner.one(
        "stablehlo.compare",
        { lhs: left as GraphValue, rhs: right as GraphValue },
        { comparison_direction: "LT" },
      ),
    ]);
    const [, sorted] = builder.add(
      "stablehlo.sort",
      { inputs: [keys, values] },
      { dimension: 0, is_stable: true },
      { regions: { comparator } },
    );
    return sorted as GraphValue;
  });
}
