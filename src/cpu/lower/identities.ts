/** Numbers that change nothing that they are combined with: what reductions begin with, and what need not be computed at all. */
import type { BinaryFunction, ReduceFunction } from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Expression } from "../loops/ir.ts";
import { laneKind } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";

export const stepFunctions = {
  sum: "add",
  prod: "mul",
  min: "min",
  max: "max",
  and: "and",
  or: "or",
  xor: "xor",
} as const;

/** What changes no element that it is combined with. */
export function identityOf(fn: ReduceFunction, dtype: DType): number | bigint {
  const float = dtype.kind === "float";
  const wide = laneKind(dtype) === "i64";
  const signed = dtype.kind === "signed";
  const bits = BigInt(dtype.bits);
  const least = signed ? -(2n ** (bits - 1n)) : 0n;
  const greatest = signed ? 2n ** (bits - 1n) - 1n : 2n ** bits - 1n;
  const number = (value: bigint): number | bigint =>
    wide ? value : Number(BigInt.asIntN(32, value));
  if (fn === "sum") return float ? -0 : number(0n);
  if (fn === "prod") return float ? 1 : number(1n);
  if (fn === "min") return float ? Number.POSITIVE_INFINITY : number(greatest);
  if (fn === "max") return float ? Number.NEGATIVE_INFINITY : number(least);
  if (fn === "and") return dtype.kind === "bool" ? 1 : number(signed ? -1n : greatest);
  return number(0n);
}

const combining: { readonly [F in BinaryFunction]?: ReduceFunction } = {
  add: "sum",
  mul: "prod",
  min: "min",
  max: "max",
};

function isIdentity(fn: ReduceFunction, dtype: DType, scalar: Expression | undefined): boolean {
  return scalar?.form === "constant" && Object.is(scalar.value, identityOf(fn, dtype));
}

/** What is left of a combination with such a number: the other one. */
export function withoutIdentity(
  fn: BinaryFunction,
  [left, right]: readonly Lanes[],
): Lanes | undefined {
  const step = combining[fn];
  if (step === undefined || left === undefined || right === undefined) return undefined;
  const { dtype } = left;
  // Bits of narrow floats are no numbers, and those of tf32 may be rounded.
  const isNarrow = dtype.kind === "float" && (dtype.bits < 32 || dtype.name === "tf32");
  if (dtype.kind === "bool" || isNarrow) return undefined;
  if (isIdentity(step, dtype, left.scalar)) return right;
  return isIdentity(step, dtype, right.scalar) ? left : undefined;
}
