/** What arguments of the functions on arrays are, where several files check them. */
import { dtypes } from "../formats/dtype.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { checkedCall, fieldsOf, isListOf, isWhole } from "../support/checked-call.ts";
import { isReadable, isRecord } from "../support/options.ts";
import { NDArray } from "./array.ts";

/** The function as programs call it: a value of another kind is refused where it is given (TW4023). */
export function checked<F extends (...values: never[]) => unknown>(
  name: string,
  kinds: readonly ArgumentKind[],
  call: F,
): F {
  return checkedCall(name, "TW4023", kinds, call);
}

export const isArray = (value: unknown): value is NDArray => value instanceof NDArray;

export const array: ArgumentKind = { expected: "an array, as array(…) gives it", holds: isArray };

export const shape: ArgumentKind = {
  expected: "a shape, a list of whole numbers from 0",
  holds: isListOf(isWhole(0)),
};

export const axis: ArgumentKind = {
  expected: "an axis, a whole number",
  holds: Number.isSafeInteger,
};

export const number: ArgumentKind = {
  expected: "a number",
  holds: (value) => typeof value === "number",
};

export const count: ArgumentKind = { expected: "a whole number from 0", holds: isWhole(0) };

/** Records and lists of arrays; whatever else is in them is static. A proxy that refuses to be read is neither. */
export const tree: ArgumentKind = {
  expected: "an array, or records and lists of arrays",
  holds: (value) => typeof value !== "object" || value === null || isReadable(value, []),
};

/** Options: a record of these names and no others, each of which is left out or what its test says. */
export function options(
  expected: string,
  tests: { readonly [name: string]: (value: unknown) => boolean },
): ArgumentKind {
  const names = Object.keys(tests);
  return {
    expected: `${expected}, or nothing`,
    holds: (value) => {
      if (value === undefined) return true;
      if (!isRecord(value) || !isReadable(value, names)) return false;
      return Object.keys(value).every(
        (name) => names.includes(name) && (value[name] === undefined || tests[name]?.(value[name])),
      );
    },
  };
}

/** An axis by name, where there is a usual one. */
export const axisOption = options("{ axis }, an axis", { axis: Number.isSafeInteger });

/** An axis by name that has to be given. */
export const requiredAxis: ArgumentKind = {
  expected: "{ axis }, an axis",
  holds: (value) => value !== undefined && axisOption.holds(value, []) && isGiven(value),
};

const isGiven = (value: unknown): boolean => fieldsOf(value, ["axis"])["axis"] !== undefined;

export const isFlag = (value: unknown): boolean => typeof value === "boolean";
export const isNumber = (value: unknown): boolean => typeof value === "number";

/** Two whole numbers for each axis. */
export const isPairs = isListOf(isPairOf(Number.isSafeInteger));

/** A list of two values that a test holds of. */
export function isPairOf(test: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length === 2 && isListOf(test)(value);
}

export const arrays: ArgumentKind = {
  expected: "a list of arrays, at least one",
  holds: (value) => Array.isArray(value) && value.length > 0 && isListOf(isArray)(value),
};

export const operand: ArgumentKind = {
  expected: "an array or a number",
  holds: (value) => isArray(value) || typeof value === "number",
};

export const openShape: ArgumentKind = {
  expected: "a shape, a list of whole numbers from 0, or -1 for what is left",
  holds: isListOf(isWhole(-1)),
};

export const axes: ArgumentKind = {
  expected: "a list of axes",
  holds: isListOf(Number.isSafeInteger),
};

export const dtype: ArgumentKind = {
  expected: 'the name of a number format, such as "f32"',
  holds: (value) => typeof value === "string" && Object.hasOwn(dtypes, value),
};

export const truths: ArgumentKind = {
  expected: "an array of bool",
  holds: (value) => isArray(value) && value.dtype === "bool",
};

export const reduceOptions = options("{ axis, keepDims }, one or several axes and a boolean", {
  axis: (given) => axis.holds(given, []) || axes.holds(given, []),
  keepDims: isFlag,
});

/** An axis and a flag, each of which may be left out. */
export const axisAnd = (name: string): ArgumentKind =>
  options(`{ axis, ${name} }, an axis and a boolean`, {
    axis: (given) => axis.holds(given, []),
    [name]: isFlag,
  });

export const indices: ArgumentKind = {
  expected: "an array of i32",
  holds: (value) => isArray(value) && value.dtype === "i32",
};
