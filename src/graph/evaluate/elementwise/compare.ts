/** Comparisons: IEEE's for floats unless another order is asked for, by parts for complex numbers. */
import type { ElementType, FloatOrder } from "../../ops/index.ts";
import { domainOf } from "../scalars.ts";
import type { Complex, Scalar } from "../scalars.ts";
import { totalOrder } from "./convert.ts";
import type { ScalarFunction } from "./forms.ts";

export type Direction = "EQ" | "NE" | "GE" | "GT" | "LE" | "LT";

type Ordered = number | bigint;

const orders: { readonly [D in Direction]: (left: Ordered, right: Ordered) => boolean } = {
  EQ: (left, right) => left === right,
  NE: (left, right) => left !== right,
  GE: (left, right) => left >= right,
  GT: (left, right) => left > right,
  LE: (left, right) => left <= right,
  LT: (left, right) => left < right,
};

function isEqual(left: Complex, right: Complex): boolean {
  return left.re === right.re && left.im === right.im;
}

/** The number that stands for its equals in the weak order: +0 for both zeros, one NaN for all. */
function weakKey(value: number): number {
  if (value === 0) return 0;
  return value === value ? value : NaN;
}

/** 1 or 0 for a pair of elements; undefined where the element type has no such comparison. */
export function comparison(
  direction: Direction,
  order: FloatOrder,
  element: ElementType,
): ScalarFunction | undefined {
  const holds = orders[direction];
  if (domainOf(element) === "complex") {
    if (direction !== "EQ" && direction !== "NE") return undefined;
    const wanted = direction === "EQ";
    return (left, right) => Number(isEqual(left as Complex, right as Complex) === wanted);
  }
  if (order === "total" && domainOf(element) === "real")
    return (left: Scalar, right: Scalar) =>
      Number(holds(totalOrder(left as number, right as number), 0));
  if (order === "weak" && domainOf(element) === "real")
    return (left, right) =>
      Number(holds(totalOrder(weakKey(left as number), weakKey(right as number)), 0));
  return (left, right) => Number(holds(left as Ordered, right as Ordered));
}
