/**
 * Order-preserving keys: unsigned integers in the order of the numbers they stand for, so that sorting, selecting and searching work on one
 * format. The mapping of bits is invertible:
 *
 *   | f32                | bits       | sign flipped, or all where negative | less 2²³ − 1: the key |
 *   |--------------------|------------|-------------------------------------|-----------------------|
 *   | −∞                 | ff800000   | 007fffff                            | 00000000              |
 *   | −1                 | bf800000   | 407fffff                            | 40000000              |
 *   | −0                 | 80000000   | 7fffffff                            | 7f800000              |
 *   | 0                  | 00000000   | 80000000                            | 7f800001              |
 *   | ∞                  | 7f800000   | ff800000                            | ff000001              |
 *   | NaN                | 7fc00000   | ffc00000                            | ff400001              |
 *   | NaN, sign set      | ffc00000   | 003fffff                            | ffc00000              |
 *
 * The last step moves negative NaNs, which would come first, to the end: every NaN is greater than all numbers.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import type { TensorSpec, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { refused } from "../support/arguments.ts";

/** How many negative NaNs the floats have that have keys; f8e4m3fn has one, and no infinity before it. */
const negativeNaNs: { readonly [F in FloatName]?: bigint } = {
  f64: 2n ** 52n - 1n,
  f32: 2n ** 23n - 1n,
  f16: 2n ** 10n - 1n,
  bf16: 2n ** 7n - 1n,
  f8e5m2: 3n,
  f8e4m3fn: 1n,
};

/** Refuses formats that have no keys. */
export function requireKeys(
  name: string,
  of: string,
  { dtype }: TensorSpec,
  location: Location,
): void {
  const isFloat = dtype.kind === "float";
  const hasKeys = isFloat ? negativeNaNs[dtype.name as FloatName] !== undefined : dtype.bits >= 8;
  if (hasKeys) return;
  throw refused(
    "TW9901",
    `${of} does not compare ${name}`,
    "bool, integers of 8 bits or more, f8e4m3fn, f8e5m2, f16, bf16, f32 or f64",
    dtype.name,
    location,
  );
}

/** The format of keys: 64 bits for numbers of 64 bits, else 32. Tiles of both are typed as u32. */
export function keyFormat({ bits }: DType): DType<"u32"> {
  return (bits === 64 ? dtypes.u64 : dtypes.u32) as DType<"u32">;
}

/** A constant of a key's format. */
function literal(dtype: DType, value: bigint): number {
  return (dtype.bits === 64 ? value : Number(value)) as number;
}

/** The greatest key of a format. */
export function greatestKey(dtype: DType): number {
  return literal(dtype, 2n ** BigInt(dtype.bits) - 1n);
}

const storedBits = { 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64 } as const;

function bitsFormat({ bits, name }: DType): DType {
  if (bits === 4) throw new Error(`${name} has no keys`);
  return storedBits[bits];
}

/** The keys of numbers; least first, or greatest first. */
export function keysOf(numbers: Tile, descending: boolean): Tile<"u32"> {
  const { dtype } = numbers;
  const top = literal(dtype, 2n ** BigInt(dtype.bits - 1));
  const all = greatestKey(dtype);
  const bits = (dtype.kind === "bool" ? numbers : numbers.bitcast(bitsFormat(dtype))).cast(
    keyFormat(dtype),
  );
  let keys = bits;
  if (dtype.kind === "signed") keys = bits.xor(top);
  if (dtype.kind === "float") {
    const flipped = bits.ge(top).select(bits.xor(all), bits.xor(top));
    keys = flipped.sub(belowNumbers(dtype)).and(all);
  }
  return descending ? keys.xor(all) : keys;
}

/** The numbers of keys. */
export function numbersOf<D extends DTypeName>(
  given: Tile<"u32">,
  dtype: DType<D>,
  descending: boolean,
): Tile<D> {
  const top = literal(dtype, 2n ** BigInt(dtype.bits - 1));
  const all = greatestKey(dtype);
  const keys = descending ? given.xor(all) : given;
  let bits = keys;
  if (dtype.kind === "signed") bits = keys.xor(top);
  if (dtype.kind === "float") {
    const flipped = keys.add(belowNumbers(dtype)).and(all);
    bits = flipped.ge(top).select(flipped.xor(top), flipped.xor(all));
  }
  if (dtype.kind === "bool") return bits.ne(0) as Tile as Tile<D>;
  return bits.cast(bitsFormat(dtype)).bitcast(dtype);
}

/** How many keys of floats would lie before that of the least number. */
function belowNumbers(dtype: DType): number {
  return literal(dtype, negativeNaNs[dtype.name as FloatName] ?? 0n);
}
