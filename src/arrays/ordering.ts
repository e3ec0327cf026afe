/** Arrays in order. Zeros of both signs are equal, and NaN is greater than every number. */
import type { DTypeName } from "../formats/dtype.ts";
import { tensorType } from "../graph/ops/types.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { NDArray, recordAll, typeOfArray } from "./array.ts";
import { isFloatElement } from "../graph/ops/elements.ts";
import { abs, greater, where } from "./functions.ts";
import { takeAlongAxis } from "./indexing.ts";
import { axisOf, iota } from "./shapes.ts";

/** Options of `sort` and `argsort`. */
export interface SortOptions {
  /** The last by default. */
  readonly axis?: number | undefined;
  /** Whether the largest come first. */
  readonly descending?: boolean | undefined;
}

/** Arrays moved along an axis, so that the first is in order; equal elements keep theirs. */
function sorted(inputs: readonly NDArray[], options: SortOptions): readonly GraphValue[] {
  const [first] = inputs;
  const types = inputs.map(({ value }) => tensorType(typeOfArray(value).element, []));
  const isFloat = types[0] !== undefined && isFloatElement(types[0].element);
  const comparator = new GraphBuilder().region(
    types.flatMap((type) => [type, type]),
    (inner, [lhs, rhs]) =>
      inner.add(
        "stablehlo.compare",
        { lhs: lhs as GraphValue, rhs: rhs as GraphValue },
        {
          comparison_direction: options.descending === true ? "GT" : "LT",
          ...(isFloat ? { compare_type: "WEAKORDER" as const } : {}),
        },
      ),
  );
  return recordAll(
    "stablehlo.sort",
    { inputs: inputs.map(({ value }) => value) },
    { dimension: axisOf(options.axis ?? -1, first?.rank ?? 0), is_stable: true },
    { regions: { comparator } },
  );
}

export function sort<D extends DTypeName>(x: NDArray<D>, options: SortOptions = {}): NDArray<D> {
  const [value] = sorted([x], options);
  return new NDArray<D>(value as GraphValue);
}

/** The indices along the axis that put it in order. */
export function argsort(x: NDArray, options: SortOptions = {}): NDArray<"i32"> {
  const places = iota(x.shape, "i32", { axis: axisOf(options.axis ?? -1, x.rank) });
  const [, value] = sorted([x, places], options);
  return new NDArray<"i32">(value as GraphValue);
}

/** The k largest elements of the last axis, in the order of a descending `sort`, and their indices. */
export function topK<D extends DTypeName>(
  x: NDArray<D>,
  k: number,
): readonly [values: NDArray<D>, indices: NDArray<"i32">] {
  const isFloat = isFloatElement(typeOfArray(x.value).element);
  const keys = isFloat ? withoutSigns(x) : x;
  const [values, found] = recordAll("chlo.top_k", { operand: keys.value }, { k });
  const indices = new NDArray<"i32">(found as GraphValue);
  return [isFloat ? takeAlongAxis(x, indices) : new NDArray<D>(values as GraphValue), indices];
}

/** Zeros and NaN without their signs, by which the order of `chlo.top_k` tells them apart. */
function withoutSigns<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return where(greater(abs(x), 0), x, abs(x));
}
