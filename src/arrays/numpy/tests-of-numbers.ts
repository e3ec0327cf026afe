/**
 * Questions about single elements, answered by arrays of bool: is it NaN, is it finite, is it close to another.
 *
 *   isclose(x, y)       |x − y| ≤ absolute + relative · |y|
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import { array, checked, isFlag, isNumber, operand, options } from "../argument-checks.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import type { Operand } from "../functions.ts";
import { all } from "../reductions.ts";

type Question = <D extends DTypeName>(x: NDArray<D>) => NDArray<"bool">;
const question = (name: string, call: Question): Question => checked(name, [array], call);

const isFloat = (x: NDArray): boolean => dtypes[x.dtype].kind === "float";
const never: Question = (x) => base.full(x.shape, 0, "bool");

/** Whether each element is NaN; no integer is. */
export const isnan: Question = question("isnan", (x) => base.notEqual(x, x));
/** Whether each element is one of both infinities; no integer is. */
export const isinf: Question = question("isinf", (x) =>
  isFloat(x) ? base.equal(base.abs(x), Infinity) : never(x),
);
/** Whether each element is a number and not infinite, as every integer is. */
export const isfinite: Question = question("isfinite", (x) =>
  isFloat(x) ? base.less(base.abs(x), Infinity) : base.full(x.shape, 1, "bool"),
);
/** Whether each element is ∞. */
export const isposinf: Question = question("isposinf", (x) =>
  isFloat(x) ? base.equal(x, Infinity) : never(x),
);
/** Whether each element is -∞. */
export const isneginf: Question = question("isneginf", (x) =>
  isFloat(x) ? base.equal(x, -Infinity) : never(x),
);
/** Whether each element has the sign of negative numbers, as -0 has. */
export const signbit: Question = question("signbit", (x) => {
  if (!isFloat(x)) return base.less(x, 0);
  return base.less(base.where(base.equal(x, 0), base.div(1, x), x), 0);
});

/** How far apart two numbers may be. */
export interface ClosenessOptions {
  /** Beside the second number, 1e-5 by default. */
  readonly relative?: number | undefined;
  /** Beside 0, 1e-8 by default. */
  readonly absolute?: number | undefined;
  /** Whether NaN is close to NaN. */
  readonly equalNaN?: boolean | undefined;
}

const closeness = options("{ relative, absolute, equalNaN }, two numbers and a boolean", {
  relative: isNumber,
  absolute: isNumber,
  equalNaN: isFlag,
});

function areClose<D extends DTypeName>(
  x: Operand<D>,
  y: Operand<D>,
  { relative = 1e-5, absolute = 1e-8, equalNaN = false }: ClosenessOptions = {},
): NDArray<"bool"> {
  const [left, right] = base.together(x, y);
  const same = base.equal(left, right);
  if (!isFloat(left)) {
    const [a, b] = [base.astype(left, "f64"), base.astype(right, "f64")];
    return areClose(a, b, { relative, absolute });
  }
  const distance = base.abs(base.sub(left, right));
  const bound = base.add(base.mul(base.abs(right), relative), absolute);
  const isNear = base.bitwiseAnd(base.lessEqual(distance, bound), base.less(bound, Infinity));
  const found = base.bitwiseOr(same, isNear);
  if (!equalNaN) return found;
  const areBoth = base.bitwiseAnd(base.notEqual(left, left), base.notEqual(right, right));
  return base.bitwiseOr(found, areBoth);
}

/** Whether |x - y| ≤ absolute + relative · |y|, element by element. */
export const isclose = checked("isclose", [operand, operand, closeness], areClose);
/** Whether all elements are close, as `isclose` says, as one bool. */
export const allclose = checked(
  "allclose",
  [operand, operand, closeness],
  <D extends DTypeName>(x: Operand<D>, y: Operand<D>, given?: ClosenessOptions): NDArray<"bool"> =>
    all(areClose(x, y, given)),
);
/** Whether two arrays have one shape and equal elements, as one bool. */
export const arrayEqual = checked(
  "arrayEqual",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<"bool"> =>
    x.shape.join() === y.shape.join() ? all(base.equal(x, y)) : base.full([], 0, "bool"),
);
/** Whether two arrays have equal elements once they are broadcast, as one bool. */
export const arrayEquiv = checked(
  "arrayEquiv",
  [array, array],
  <D extends DTypeName>(x: NDArray<D>, y: NDArray<D>): NDArray<"bool"> => all(base.equal(x, y)),
);
