/** Parts of arrays at places that are known when a program runs, reading and writing. */
import type { DTypeName } from "../formats/dtype.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { tensorType } from "../graph/ops/types.ts";
import { combiner, splatOf } from "../graph/transform/arithmetic.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { NDArray, recordAll, recordWith, typeOfArray } from "./array.ts";
import { full, one } from "./functions.ts";
import { requireNumber, requireOneDtype } from "./dtype-checks.ts";
import { axisOf, reshape } from "./shapes.ts";
import type { AxisOption } from "./shapes.ts";

/** Where a slice begins along an axis: a number, or an array without axes. */
export type Start = number | NDArray<"i32">;

function startValues(starts: readonly Start[]): readonly GraphValue[] {
  return starts.map((start) => (typeof start === "number" ? full([], start, "i32") : start).value);
}

/** A slice of known size; starts are clamped so that it fits. */
export function dynamicSlice<D extends DTypeName>(
  x: NDArray<D>,
  starts: readonly Start[],
  sizes: readonly number[],
): NDArray<D> {
  return one(
    recordAll(
      "stablehlo.dynamic_slice",
      { operand: x.value, start_indices: startValues(starts) },
      { slice_sizes: sizes },
    ),
  );
}

/** The array with a slice replaced; starts are clamped so that it fits. */
export function dynamicUpdateSlice<D extends DTypeName>(
  x: NDArray<D>,
  update: NDArray<D>,
  starts: readonly Start[],
): NDArray<D> {
  return one(
    recordAll(
      "stablehlo.dynamic_update_slice",
      { operand: x.value, update: update.value, start_indices: startValues(starts) },
      {},
    ),
  );
}

/** For each place, the element along an axis that the index there names, clamped; the other axes are those of the array. */
export function takeAlongAxis<D extends DTypeName>(
  x: NDArray<D>,
  indices: NDArray<"i32">,
  { axis = -1 }: AxisOption = {},
): NDArray<D> {
  const along = axisOf(axis, x.rank);
  const others = x.shape.map((_, each) => each).filter((each) => each !== along);
  const column = reshape(indices, [...indices.shape, 1]);
  return one(
    recordAll(
      "stablehlo.gather",
      { operand: x.value, start_indices: column.value },
      {
        dimension_numbers: {
          offset_dims: [],
          collapsed_slice_dims: [along],
          operand_batching_dims: others,
          start_indices_batching_dims: others,
          start_index_map: [along],
          index_vector_dim: x.rank,
        },
        slice_sizes: x.shape.map(() => 1),
        indices_are_sorted: false,
      },
    ),
  );
}

/** The array with rows of its first axis combined with updates, one for each index. */
function scattered<D extends DTypeName>(
  x: NDArray<D>,
  indices: NDArray<"i32">,
  updates: NDArray<D>,
  region: GraphRegion,
): NDArray<D> {
  const wanted = [...indices.shape, ...x.shape.slice(1)];
  requireOneDtype(x, updates);
  if (updates.shape.join() !== wanted.join())
    throw new TilewrightError({
      code: "TW9304",
      message: "the updates are not a row for each index",
      expected: `[${wanted.join(", ")}]`,
      found: `[${updates.shape.join(", ")}]`,
      remedy: "broadcast or reshape the updates: the shape of the indices, then that of a row",
    });
  const column = reshape(indices, [...indices.shape, 1]);
  return one(
    recordAll(
      "stablehlo.scatter",
      { inputs: [x.value], scatter_indices: column.value, updates: [updates.value] },
      {
        scatter_dimension_numbers: {
          update_window_dims: x.shape.slice(1).map((_, each) => each + indices.rank),
          inserted_window_dims: [0],
          input_batching_dims: [],
          scatter_indices_batching_dims: [],
          scatter_dims_to_operand_dims: [0],
          index_vector_dim: indices.rank,
        },
        indices_are_sorted: false,
        unique_indices: false,
      },
      { regions: { update_computation: region } },
    ),
  );
}

/** The array with updates added to rows of its first axis; those of indices outside vanish. */
export function addAt<D extends DTypeName>(
  x: NDArray<D>,
  indices: NDArray<"i32">,
  updates: NDArray<D>,
): NDArray<D> {
  const region = combiner(new GraphBuilder(), typeOfArray(x.value).element, "stablehlo.add");
  return scattered(x, indices, updates, region);
}

/** The array with rows of its first axis replaced, by the last of several; updates of indices outside vanish. */
export function setAt<D extends DTypeName>(
  x: NDArray<D>,
  indices: NDArray<"i32">,
  updates: NDArray<D>,
): NDArray<D> {
  const scalar = tensorType(typeOfArray(x.value).element, []);
  const region = new GraphBuilder().region([scalar, scalar], (_, [, update]) => [
    update as GraphValue,
  ]);
  return scattered(x, indices, updates, region);
}

/** A value before and behind along each axis; negative widths cut. */
export function pad<D extends DTypeName>(
  x: NDArray<D>,
  widths: readonly (readonly [before: number, behind: number])[],
  value = 0,
): NDArray<D> {
  requireNumber(value, x.dtype);
  const { element } = typeOfArray(x.value);
  return new NDArray<D>(
    recordWith("pad", (builder) =>
      builder.one(
        "stablehlo.pad",
        { operand: x.value, padding_value: splatOf(builder, tensorType(element, []), value) },
        {
          edge_padding_low: widths.map(([before]) => before),
          edge_padding_high: widths.map(([, behind]) => behind),
          interior_padding: widths.map(() => 0),
        },
      ),
    ),
  );
}
