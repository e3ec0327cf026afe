/** The functions of `random` as programs call them, with what their arguments are. */
import type { ArgumentKind } from "../support/checked-call.ts";
import { isWhole, optional } from "../support/checked-call.ts";
import { array, checked, count, isArray, options, shape } from "./kinds.ts";
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

export const key = checked("random.key", [whole, keyOptions], random.key);
export const bits = checked("random.bits", [keyKind, shape], random.bits);
export const split = checked("random.split", [keyKind, optional(count)], random.split);
export const foldIn = checked("random.foldIn", [keyKind, whole], random.foldIn);
export const uniform = checked("random.uniform", [keyKind, shape, uniformOptions], random.uniform);
export const normal = checked("random.normal", [keyKind, shape], random.normal);
export const bernoulli = checked(
  "random.bernoulli",
  [keyKind, probability, shape],
  random.bernoulli,
);
export const randint = checked("random.randint", [keyKind, shape, ofI32, above], random.randint);
export const gumbel = checked("random.gumbel", [keyKind, shape], random.gumbel);
export const categorical = checked("random.categorical", [keyKind, array], random.categorical);
export const permutation = checked("random.permutation", [keyKind, count], random.permutation);
