/** Arrays in order. Zeros of both signs are equal, and NaN is greater than every number. */
import type { DTypeName } from "../formats/dtype.ts";
import { tensorType } from "../graph/ops/types.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { LazyArray, recordAll, typeOfArray } from "./array.ts";
import { axisOf, iota } from "./shapes.ts";

export interface SortOptions {
  /** The last unless told. */
  readonly axis?: number | undefined;
  /** Whether the largest come first. */
  readonly descending?: boolean | undefined;
}

/** Arrays moved along an axis, so that the first is in order; equal elements keep theirs. */
function sorted(inputs: readonly LazyArray[], options: SortOptions): readonly GraphValue[] {
  const [first] = inputs;
  const types = inputs.map(({ value }) => tensorType(typeOfArray(value).element, []));
  const isFloat = types[0]?.element.includes("f") === true;
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

export function sort<D extends DTypeName>(
  x: LazyArray<D>,
  options: SortOptions = {},
): LazyArray<D> {
  const [value] = sorted([x], options);
  return new LazyArray<D>(value as GraphValue);
}

/** The indices along the axis that put it in order. */
export function argsort(x: LazyArray, options: SortOptions = {}): LazyArray<"i32"> {
  const places = iota(x.shape, axisOf(options.axis ?? -1, x.rank), "i32");
  const [, value] = sorted([x, places], options);
  return new LazyArray<"i32">(value as GraphValue);
}

/** The k largest elements of the last axis, in order, and their indices. */
export function topK<D extends DTypeName>(
  x: LazyArray<D>,
  k: number,
): readonly [values: LazyArray<D>, indices: LazyArray<"i32">] {
  const [values, indices] = recordAll("chlo.top_k", { operand: x.value }, { k });
  return [new LazyArray<D>(values as GraphValue), new LazyArray<"i32">(indices as GraphValue)];
}
