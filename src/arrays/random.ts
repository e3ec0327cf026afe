/**
 * Random numbers as JAX makes them, so that equal keys give equal bits on every device (`random-bits.ts`), and their distributions.
 *
 *   const key = random.key(0);
 *   const [left, right] = random.split(key);
 *   random.uniform(left, [4]);       bits equal to jax.random.uniform(left, (4,))
 */
import type { GraphValue } from "../graph/ops/node.ts";
import { sizeOf } from "../graph/ops/types.ts";
import { inverseErrorCoefficients } from "../support/inverse-error.ts";
import { NDArray, recordWith } from "./array.ts";
import {
  add,
  astype,
  bitcast,
  bitwiseOr,
  cos,
  full,
  less,
  log,
  log1p,
  maximum,
  mul,
  neg,
  rem,
  shiftRight,
  sin,
  sqrt,
  sub,
  where,
} from "./functions.ts";
import { bits, generatorOf, hashedWords, split } from "./random-bits.ts";
import type { Key } from "./random-bits.ts";
import { argmax } from "./reductions.ts";
import { iota, reshape, slice, stack } from "./shapes.ts";

export { bits, foldIn, key, split } from "./random-bits.ts";
export type { Key, KeyOptions } from "./random-bits.ts";

/** The range of `random.uniform`. */
export interface UniformOptions {
  /** The smallest number that can be drawn; 0 by default. */
  readonly low?: number | undefined;
  /** The end of the range, which is never drawn; 1 by default. */
  readonly high?: number | undefined;
}

/** Numbers from `low` up to and without `high`, all equally likely. */
export function uniform(
  key: Key,
  shape: readonly number[],
  { low = 0, high = 1 }: UniformOptions = {},
): NDArray<"f32"> {
  const mantissa = bitwiseOr(shiftRight(bits(key, shape), 9), 0x3f800000);
  const unit = sub(bitcast(mantissa, "f32"), 1);
  const span = Math.fround(Math.fround(high) - Math.fround(low));
  return maximum(add(mul(unit, span), low), low);
}

/** The f32 just above -1. */
const aboveMinusOne = -(1 - 2 ** -24);

/** Numbers of the standard normal distribution; of keys of `rbg` by Box and Muller's transform of the bits that JAX has too. */
export function normal(key: Key, shape: readonly number[]): NDArray<"f32"> {
  if (generatorOf(key) === "rbg") return boxMuller(key, shape);
  const drawn = uniform(key, shape, { low: aboveMinusOne, high: 1 });
  return mul(inverseError(drawn), Math.fround(Math.SQRT2));
}

/** Two numbers of two words: what kernels draw (`lang/random-normals.ts`), by functions that are exact. */
function boxMuller(key: Key, shape: readonly number[]): NDArray<"f32"> {
  const hashes = hashedWords(key, shape);
  const count = hashes.shape[0] ?? 0;
  const pairs = reshape(hashes, [count, 2, 2]);
  const [radial, angular] = [0, 1].map((at) => slice(pairs, [null, null, [at, at + 1]]));
  if (radial === undefined || angular === undefined) throw new Error("words are pairs");
  const u = add(mul(astype(radial, "f32"), 2 ** -32), 2 ** -33);
  const radius = sqrt(mul(log(u), -2));
  const angle = mul(astype(bitcast(angular, "i32"), "f32"), Math.PI * 2 ** -31);
  const drawn = [mul(radius, cos(angle)), mul(radius, sin(angle))];
  const all = reshape(stack(drawn, { axis: 2 }), [count * 4]);
  return reshape(slice(all, [[0, sizeOf(shape)]]), shape);
}

/** The number whose error function is x, as JAX rounds it (`support/inverse-error.ts`). */
function inverseError(x: NDArray<"f32">): NDArray<"f32"> {
  const w = neg(log1p(neg(mul(x, x))));
  const isCentral = less(w, 5);
  const at = where(isCentral, sub(w, 2.5), sub(sqrt(w), 3));
  const everywhere = (value: number): NDArray<"f32"> => full(x.shape, value, "f32");
  const sum = inverseErrorCoefficients
    .map(([central, outer]) => where(isCentral, everywhere(central), everywhere(outer)))
    .reduce((higher, coefficient) => add(mul(higher, at), coefficient));
  return mul(sum, x);
}

/** Whether each draw falls below a probability. */
export function bernoulli(key: Key, p: number, shape: readonly number[]): NDArray<"bool"> {
  return less(uniform(key, shape), p);
}

/** Integers from `low` up to and without `high`. */
export function randint(
  key: Key,
  shape: readonly number[],
  low: number,
  high: number,
): NDArray<"i32"> {
  const [first, second] = split(key);
  if (first === undefined || second === undefined) throw new Error("split gives two keys");
  // All 2^32 integers are a span of 0 to u32, and the remainder by 0 is the number itself.
  const span = full(shape, (high - low) % 2 ** 32, "u32");
  const half = rem(full(shape, 2 ** 16, "u32"), span);
  const multiplier = rem(mul(half, half), span);
  const upper = rem(bits(first, shape), span);
  const lower = rem(bits(second, shape), span);
  const offset = rem(add(mul(upper, multiplier), lower), span);
  return add(astype(offset, "i32"), low);
}

const smallestNormal = 2 ** -126;

/** Numbers of the standard Gumbel distribution. */
export function gumbel(key: Key, shape: readonly number[]): NDArray<"f32"> {
  return neg(log(neg(log(uniform(key, shape, { low: smallestNormal, high: 1 })))));
}

/** An index along the last axis, drawn by logits. */
export function categorical(key: Key, logits: NDArray<"f32">): NDArray<"i32"> {
  return argmax(add(logits, gumbel(key, logits.shape)), { axis: -1 });
}

/** 0 … count - 1 in random order. */
export function permutation(key: Key, count: number): NDArray<"i32"> {
  const rounds = Math.ceil((3 * Math.log(count)) / Math.log(2 ** 32 - 1));
  let current = key;
  let order: GraphValue = iota([count], "i32", { axis: 0 }).value;
  for (let round = 0; round < rounds; round++) {
    const [next, own] = split(current);
    if (next === undefined || own === undefined) throw new Error("split gives two keys");
    current = next;
    order = sortedBy(bits(own, [count]).value, order);
  }
  return new NDArray<"i32">(order);
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
