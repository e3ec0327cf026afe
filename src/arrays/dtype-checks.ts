/**
 * What numbers and dtypes functions of arrays take. Plain numbers beside arrays, which become elements of the arrays' dtype. Floats take any number and round it; what an
 * integer or a truth cannot be is refused, since `mul(counts, 0.5)` would multiply by 0.
 * So are arrays of which a function would give something else than its name says: the mean of integers as an integer, a sum of truths as a truth.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeKind, DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";

/** Refuses a number that `dtype` does not have. */
export function requireNumber(value: number, dtype: DTypeName): void {
  const { kind, bits } = dtypes[dtype];
  if (kind === "float") return;
  const [least, greatest] =
    kind === "bool"
      ? [0, 1]
      : kind === "unsigned"
        ? [0, 2 ** bits]
        : [-(2 ** (bits - 1)), 2 ** (bits - 1)];
  // The end of a range is itself no number of it, and that before it none of f64 where there are 64 bits.
  const isBelow = kind === "bool" ? value <= greatest : value < greatest;
  if (Number.isInteger(value) && value >= least && isBelow) return;
  throw new TilewrightError({
    code: "TW9321",
    message: `${value} is no number of ${dtype}`,
    expected: kind === "bool" ? "0 or 1" : `a whole number from ${least}, below ${greatest}`,
    found: `${value}`,
  });
}

/** An element as lists give it: 64-bit integers and truths have values of their own in JavaScript. */
export type Listed = number | bigint | boolean;

/** Refuses an element of a list that `dtype` does not have. */
export function requireListed(value: Listed, dtype: DTypeName): void {
  if (typeof value === "number") {
    requireNumber(value, dtype);
    return;
  }
  const { kind, bits } = dtypes[dtype];
  if (typeof value === "boolean" ? kind === "bool" : isWithin(value, kind, bits)) return;
  throw new TilewrightError({
    code: "TW9321",
    message: `${value} is no number of ${dtype}`,
    expected:
      typeof value === "boolean"
        ? "a truth only where the dtype is bool"
        : "an integer of the dtype",
    found: typeof value === "bigint" ? `${value}n` : `${value}`,
  });
}

function isWithin(value: bigint, kind: DTypeKind, bits: number): boolean {
  if (kind === "unsigned") return BigInt.asUintN(bits, value) === value;
  return kind === "signed" && BigInt.asIntN(bits, value) === value;
}

/** Refuses two arrays of different dtypes. */
export function requireOneDtype(x: Described, y: Described): void {
  if (x.dtype === y.dtype) return;
  throw new TilewrightError({
    code: "TW9305",
    message: "two arrays of different dtypes were combined",
    expected: x.toString(),
    found: y.toString(),
    remedy: "convert one of them with astype",
  });
}

interface Described {
  readonly dtype: DTypeName;
  toString(): string;
}

/** Refuses an array of a kind that a function is not for. */
export function requireKind(
  name: string,
  { dtype }: { readonly dtype: DTypeName },
  kinds: readonly DTypeKind[],
  remedy: string,
): void {
  if (kinds.includes(dtypes[dtype].kind)) return;
  throw new TilewrightError({
    code: "TW9322",
    message: `${name} is not for arrays of ${dtype}`,
    expected: kinds.map((kind) => kindTexts[kind]).join(", "),
    found: dtype,
    remedy,
  });
}

const kindTexts: { readonly [K in DTypeKind]: string } = {
  float: "floats",
  signed: "signed integers",
  unsigned: "unsigned integers",
  bool: "truths",
};

/** What to do about sums of truths, which are truths themselves. */
export const countRemedy =
  'count them as integers: astype(x, "i32"); any(x) says whether one holds';
