/** The linear map of a scatter that adds: linear in the operand and in the updates. */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphValue } from "../ops/node.ts";
import type { ScatterNumbers } from "../ops/structures.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  broadcastInDim,
  combiner,
  compare,
  binary,
  indexLimit,
  select,
  splatOf,
  typeOfValue,
  zerosOf,
} from "./arithmetic.ts";
import type { LinearMap } from "./linear.ts";
import { gatherNumbersOf, required } from "./maps.ts";

export interface ScatterPlace {
  readonly operand: TensorType;
  readonly update: TensorType;
  readonly indices: GraphValue;
  readonly numbers: ScatterNumbers;
  readonly sorted: boolean;
  readonly unique: boolean;
}

/** The extents of the windows, an axis of the operand each. */
function windowSizes({ operand, update, numbers }: ScatterPlace): readonly number[] {
  const absent = [...numbers.inserted_window_dims, ...numbers.input_batching_dims];
  const windows = numbers.update_window_dims.map((axis) => update.shape[axis] ?? 1);
  let next = 0;
  return operand.shape.map((_, axis) => (absent.includes(axis) ? 1 : (windows[next++] ?? 1)));
}

/** Whether each update's window fits: a scatter drops those that do not, a gather would clamp them. */
function fits(builder: GraphBuilder, place: ScatterPlace): GraphValue {
  const { indices, numbers, operand, update } = place;
  const type = typeOfValue(indices);
  const sizes = windowSizes(place);
  const { index_vector_dim: vector } = numbers;
  const inVector = vector < type.shape.length;
  const bounds = numbers.scatter_dims_to_operand_dims.map((axis) => {
    const extents = type.shape.map((extent, i) => (i === vector ? 1 : extent));
    const limit = (operand.shape[axis] ?? 0) - (sizes[axis] ?? 0);
    return indexLimit(builder, tensorType(type.element, extents), limit);
  });
  const high = inVector
    ? builder.one("stablehlo.concatenate", { inputs: bounds }, { dimension: vector })
    : required(bounds[0]);
  const above = compare(builder, "GE", indices, zerosOf(builder, type));
  const both = binary(builder, "stablehlo.and", above, compare(builder, "LE", indices, high));
  const all = inVector ? allAlong(builder, both, vector) : both;
  const batch = update.shape
    .map((_, axis) => axis)
    .filter((axis) => !numbers.update_window_dims.includes(axis));
  return broadcastInDim(builder, all, update.shape, batch);
}

function allAlong(builder: GraphBuilder, flags: GraphValue, axis: number): GraphValue {
  const yes = splatOf(builder, tensorType("i1", []), 1);
  return builder.one(
    "stablehlo.reduce",
    { inputs: [flags], init_values: [yes] },
    { dimensions: [axis] },
    { regions: { body: combiner(builder, "i1", "stablehlo.and") } },
  );
}

export function scatterAdding(
  place: ScatterPlace,
  active: { readonly operand: boolean; readonly update: boolean },
): LinearMap {
  const { operand, update, indices, numbers } = place;
  return {
    outputs: [operand],
    apply(builder, inputs) {
      const target = active.operand ? required(inputs[0]) : zerosOf(builder, operand);
      if (!active.update) return [target];
      return [
        builder.one(
          "stablehlo.scatter",
          { inputs: [target], scatter_indices: indices, updates: [required(inputs.at(-1))] },
          {
            scatter_dimension_numbers: numbers,
            indices_are_sorted: place.sorted,
            unique_indices: place.unique,
          },
          { regions: { update_computation: combiner(builder, operand.element, "stablehlo.add") } },
        ),
      ];
    },
    transpose(builder, [cotangent]) {
      if (cotangent === undefined) return [];
      const gathered = (): GraphValue => {
        const found = builder.one(
          "stablehlo.gather",
          { operand: cotangent, start_indices: indices },
          {
            dimension_numbers: gatherNumbersOf(numbers),
            slice_sizes: windowSizes(place),
            indices_are_sorted: place.sorted,
          },
        );
        // Without indices every window starts at the first element, where it fits.
        if (numbers.scatter_dims_to_operand_dims.length === 0) return found;
        return select(builder, fits(builder, place), found, zerosOf(builder, update));
      };
      return [...(active.operand ? [cotangent] : []), ...(active.update ? [gathered()] : [])];
    },
  };
}
