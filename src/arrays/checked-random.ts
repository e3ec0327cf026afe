/** The functions of `random` as programs call them, with what their arguments are. */
import type { ArgumentKind } from "../support/checked-call.ts";
import { isWhole, optional } from "../support/checked-call.ts";
import { array, checked, count, isArray, options, shape } from "./argument-checks.ts";
import * as random from "./random.ts";

export type * from "./random.ts";

const keyKind: ArgumentKind = {
  expected: "a key, as random.key(…) gives it",
  holds: (value) =>
    isArray(value) &&
    value.dtype === "u32" &&
    value.shape.length === 1 &&
    [2, 4].includes(value.shape[0] ?? 0),
};

const keyOptions = options('{ generator }, "threefry" or "rbg"', {
  generator: (value) => value === "threefry" || value === "rbg",
});

const whole: ArgumentKind = { expected: "a whole number", holds: Number.isSafeInteger };

const uniformOptions = options("{ low, high }, numbers both", {
  low: Number.isFinite,
  high: Number.isFinite,
});

const probability: ArgumentKind = {
  expected: "a probability, from 0 to 1",
  holds: (value) => typeof value === "number" && value >= 0 && value <= 1,
};

const ofI32: ArgumentKind = {
  expected: "a whole number from -2^31, below 2^31",
  holds: isWhole(-(2 ** 31), 2 ** 31 - 1),
};

/** The number behind `low`; below it all integers are of i32. */
const above: ArgumentKind = {
  expected: "a whole number above the one before it, up to 2^31",
  holds: (value, [, , low]) => isWhole(Number(low) + 1, 2 ** 31)(value),
};

/**
 * A key to draw from, made of a seed. Draws with the same key are the same; `split` makes new keys.
 *
 * @example
 * ```ts
 * import { random } from "tilewright/arrays";
 *
 * const [first, second] = random.split(random.key(0));
 * const x = random.normal(first, [2, 3]);
 * const y = random.uniform(second, [2, 3], { low: -1, high: 1 });
 * ```
 */
export const key = checked("random.key", [whole, keyOptions], random.key);
/** Random bits, as an array of u32. */
export const bits = checked("random.bits", [keyKind, shape], random.bits);
/** New keys from one, 2 by default. The old one should not be used again. */
export const split = checked("random.split", [keyKind, optional(count)], random.split);
/** A new key from a key and a number, such as the step of a loop. */
export const foldIn = checked("random.foldIn", [keyKind, whole], random.foldIn);
/** Numbers of f32 from `low` up to and without `high`, from 0 to 1 by default, all equally likely. */
export const uniform = checked("random.uniform", [keyKind, shape, uniformOptions], random.uniform);
/** Numbers of f32 of the standard normal distribution. */
export const normal = checked("random.normal", [keyKind, shape], random.normal);
/** Bools, each true with a probability. */
export const bernoulli = checked(
  "random.bernoulli",
  [keyKind, probability, shape],
  random.bernoulli,
);
/** Integers of i32 from `low` up to and without `high`, all equally likely. */
export const randint = checked("random.randint", [keyKind, shape, ofI32, above], random.randint);
/** Numbers of f32 of the standard Gumbel distribution. */
export const gumbel = checked("random.gumbel", [keyKind, shape], random.gumbel);
/** Indices along the last axis, each drawn with the probabilities softmax(logits). */
export const categorical = checked("random.categorical", [keyKind, array], random.categorical);
/** The numbers 0, 1, …, count - 1 in random order. */
export const permutation = checked("random.permutation", [keyKind, count], random.permutation);
