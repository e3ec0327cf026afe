/** What canonicalisation rules recognise. */
import type { BinaryFunction } from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import { isWide } from "../../formats/dtype.ts";
import type { Literal } from "../../ir/schema.ts";

/** Functions whose operands may change places; NaN or not, signed zeros or not. */
export const commutative: ReadonlySet<BinaryFunction> = new Set([
  "add",
  "mul",
  "min",
  "max",
  "and",
  "or",
  "xor",
]);

/** Whether the literal is this number, of either sign where it is zero; false is 0 and true is 1. */
export function isNumber(literal: Literal | undefined, number: number): boolean {
  return literal !== undefined && Number(literal) === number;
}

/** Whether every bit of an integer or bool literal is set. */
export function isAllOnes(literal: Literal | undefined, dtype: DType): boolean {
  if (literal === undefined || dtype.kind === "float") return false;
  if (dtype.kind === "bool") return literal === true;
  const ones = dtype.kind === "signed" ? -1n : (1n << BigInt(dtype.bits)) - 1n;
  return BigInt(literal) === ones;
}

/** The number as the format's literals are written. */
export function literalFor(dtype: DType, number: 0 | 1): Literal {
  if (dtype.kind === "bool") return number === 1;
  return isWide(dtype) ? BigInt(number) : number;
}

export function sameNumbers(left: readonly number[], right: readonly number[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}

/** 0, 1, 2 … */
export function isIdentity(permutation: readonly number[]): boolean {
  return permutation.every((axis, index) => axis === index);
}
