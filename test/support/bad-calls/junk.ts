/** Values that a program without types may give, and what parameters take of them by their documented types. */

export const junk = {
  undefined: () => undefined,
  null: () => null,
  nan: () => NaN,
  infinite: () => Infinity,
  negative: () => -1,
  zero: () => 0,
  fraction: () => 1.5,
  huge: () => 2 ** 53,
  bigint: () => 10n,
  text: () => "4",
  empty: () => "",
  symbol: () => Symbol("s"),
  function: () => () => 1,
  object: () => ({}),
  bare: () => Object.create(null) as unknown,
  list: () => [],
  numbers: () => [1],
  date: () => new Date(0),
  expression: () => /a/,
  map: () => new Map(),
  boolean: () => true,
  refusing: () =>
    new Proxy(
      {},
      {
        get: () => {
          throw new Error("trap");
        },
      },
    ),
} satisfies { readonly [name: string]: () => unknown };

export type Junk = keyof typeof junk;

export interface Parameter {
  readonly valid: () => unknown;
  /** What its type takes besides, so that a call may do anything but end without a code. */
  readonly takes: readonly Junk[];
}

export function parameter(valid: () => unknown, ...takes: readonly Junk[]): Parameter {
  return { valid, takes };
}

/** Objects with names: without any, all defaults hold. */
export const options = (valid: () => unknown = () => ({})): Parameter =>
  parameter(valid, "undefined", "object", "bare");

export const numberTakes: readonly Junk[] = [
  "nan",
  "infinite",
  "negative",
  "zero",
  "fraction",
  "huge",
];
