/**
 * Result types of ops that take elements from, or put them at, places that are known when they run.
 *
 * Gathers and scatters say by lists of axes how index vectors, windows and batches lie. What the lists have to fulfil is the same for
 * both, under other names; a list that does not is refused, since it would point beyond the elements that there are.
 *
 *   operand axes   =  those of windows  +  removed ones  +  batching ones
 *   index vectors  =  one for each place of the indices beside the vector's axis; a component for each axis of `map`
 */
import type { GraphValue } from "../ops/node.ts";
import { tensorType } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import {
  extentOf,
  requireAxes,
  requireCount,
  requireFit,
  requireKinds,
  requireParameters,
  requirePromotion,
  requireRising,
  requireShape,
  scalarResults,
  shapeText,
  tensorOf,
} from "./inference-input.ts";
import type { Draft } from "./inference-input.ts";

const whole = ["signed", "unsigned"] as const;

/** One start an axis: scalars, which are all of one type of whole numbers. */
function requireStarts(
  draft: Draft<"stablehlo.dynamic_slice" | "stablehlo.dynamic_update_slice">,
  rank: number,
): void {
  const starts = draft.operands.start_indices;
  requireCount(draft, "start_indices", starts, rank);
  const types = starts.map((value) => requireKinds(draft, tensorOf(draft, value), whole));
  const [first] = types;
  for (const { element, shape } of types) {
    requireShape(draft, "start_indices, which are scalars,", [], shape);
    requireFit(
      draft,
      element === first?.element,
      "start_indices have different types",
      first?.element ?? "",
      element,
    );
  }
}

export function dynamicSlice(draft: Draft<"stablehlo.dynamic_slice">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { slice_sizes: sizes } = draft.attributes;
  requireCount(draft, "slice_sizes", sizes, shape.length);
  requireStarts(draft, shape.length);
  requireSlices(draft, sizes, shape);
  return [tensorType(element, sizes)];
}

function requireSlices(draft: Draft, sizes: readonly number[], shape: readonly number[]): void {
  requireFit(
    draft,
    sizes.every((size, axis) => size >= 0 && size <= extentOf(shape, axis)),
    "the slices are larger than the operand",
    `at most ${shapeText(shape)}`,
    shapeText(sizes),
  );
}

export function dynamicUpdateSlice(
  draft: Draft<"stablehlo.dynamic_update_slice">,
): readonly GraphType[] {
  const type = tensorOf(draft, draft.operands.operand);
  const update = tensorOf(draft, draft.operands.update);
  requireStarts(draft, type.shape.length);
  const fits =
    update.shape.length === type.shape.length &&
    update.shape.every((extent, axis) => extent <= extentOf(type.shape, axis)) &&
    update.element === type.element;
  requireFit(
    draft,
    fits,
    "the update is larger than the operand",
    `at most ${shapeText(type.shape)} of ${type.element}`,
    `${shapeText(update.shape)} of ${update.element}`,
  );
  return [type];
}

/** The lists of a gather or a scatter, each with the name that its text gives it. */
interface Indexing {
  readonly indices: GraphValue;
  readonly vectorAxis: number;
  readonly map: Named;
  readonly removed: Named;
  readonly operandBatching: Named;
  readonly indicesBatching: Named;
}

type Named = readonly [name: string, axes: readonly number[]];

/** What the lists have to fulfil; the extents of the indices beside their vectors' axis. */
function requireIndexing(
  draft: Draft,
  shape: readonly number[],
  { indices, vectorAxis, map, removed, operandBatching, indicesBatching }: Indexing,
): readonly number[] {
  const extents = requireKinds(draft, tensorOf(draft, indices), whole).shape;
  requireFit(
    draft,
    vectorAxis >= 0 && vectorAxis <= extents.length,
    "index_vector_dim is no axis of the indices, nor the one after them",
    `0 to ${extents.length}`,
    `${vectorAxis}`,
  );
  for (const [name, axes] of [removed, operandBatching]) requireRising(draft, name, axes);
  requireAxes(
    draft,
    `${removed[0]} and ${operandBatching[0]}`,
    [...removed[1], ...operandBatching[1]],
    shape.length,
  );
  requireAxes(
    draft,
    `${map[0]} and ${operandBatching[0]}`,
    [...map[1], ...operandBatching[1]],
    shape.length,
  );
  requireCount(draft, map[0], map[1], extents[vectorAxis] ?? 1);
  requireAxes(draft, indicesBatching[0], indicesBatching[1], extents.length);
  requireFit(
    draft,
    !indicesBatching[1].includes(vectorAxis),
    `${indicesBatching[0]} has the axis of the index vectors`,
    `axes beside ${vectorAxis}`,
    shapeText(indicesBatching[1]),
  );
  requireShape(
    draft,
    `extents at ${operandBatching[0]} and ${indicesBatching[0]}`,
    operandBatching[1].map((axis) => extentOf(shape, axis)),
    indicesBatching[1].map((axis) => extentOf(extents, axis)),
  );
  return extents.filter((_, axis) => axis !== vectorAxis);
}

export function gather(draft: Draft<"stablehlo.gather">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { dimension_numbers: numbers, slice_sizes: sizes } = draft.attributes;
  const batch = requireIndexing(draft, shape, {
    indices: draft.operands.start_indices,
    vectorAxis: numbers.index_vector_dim,
    map: ["start_index_map", numbers.start_index_map],
    removed: ["collapsed_slice_dims", numbers.collapsed_slice_dims],
    operandBatching: ["operand_batching_dims", numbers.operand_batching_dims],
    indicesBatching: ["start_indices_batching_dims", numbers.start_indices_batching_dims],
  });
  const removed = [...numbers.collapsed_slice_dims, ...numbers.operand_batching_dims];
  requireCount(draft, "slice_sizes", sizes, shape.length);
  requireSlices(draft, sizes, shape);
  requireFit(
    draft,
    removed.every((axis) => extentOf(sizes, axis) <= 1),
    "slice_sizes of collapsed and batching axes are not 1",
    "at most 1",
    shapeText(removed.map((axis) => extentOf(sizes, axis))),
  );
  const offsets = sizes.filter((_, axis) => !removed.includes(axis));
  const rank = batch.length + offsets.length;
  requireAxes(draft, "offset_dims", numbers.offset_dims, rank);
  requireRising(draft, "offset_dims", numbers.offset_dims);
  requireCount(draft, "offset_dims", numbers.offset_dims, offsets.length);
  const nextBatch = batch[Symbol.iterator]();
  const result = Array.from({ length: rank }, (_, axis) => {
    const place = numbers.offset_dims.indexOf(axis);
    return place >= 0 ? extentOf(offsets, place) : (nextBatch.next().value ?? 0);
  });
  return [tensorType(element, result)];
}

export function scatter(draft: Draft<"stablehlo.scatter">): readonly GraphType[] {
  const { inputs, updates } = draft.operands;
  const inputTypes = inputs.map((value) => tensorOf(draft, value));
  const updateTypes = updates.map((value) => tensorOf(draft, value));
  const numbers = draft.attributes.scatter_dimension_numbers;
  requireFit(draft, inputs.length > 0, "it has no operands", "one or more", "none");
  requireCount(draft, "updates", updates, inputs.length);
  const shape = inputTypes[0]?.shape ?? [];
  const batch = requireIndexing(draft, shape, {
    indices: draft.operands.scatter_indices,
    vectorAxis: numbers.index_vector_dim,
    map: ["scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims],
    removed: ["inserted_window_dims", numbers.inserted_window_dims],
    operandBatching: ["input_batching_dims", numbers.input_batching_dims],
    indicesBatching: ["scatter_indices_batching_dims", numbers.scatter_indices_batching_dims],
  });
  const removed = [...numbers.inserted_window_dims, ...numbers.input_batching_dims];
  const windows = numbers.update_window_dims;
  requireFit(
    draft,
    shape.length === removed.length + windows.length,
    "the axes of the windows are not those of the operand",
    `${shape.length} axes of ${shapeText(shape)}`,
    `${removed.length} without and ${windows.length} with a window`,
  );
  const rank = windows.length + batch.length;
  requireAxes(draft, "update_window_dims", windows, rank);
  requireRising(draft, "update_window_dims", windows);
  const most = shape.filter((_, axis) => !removed.includes(axis));
  for (const [i, update] of updateTypes.entries()) {
    requireFit(
      draft,
      update.shape.length === rank,
      "an update has another rank",
      `${rank}: ${windows.length} window axes and ${shapeText(batch)}`,
      shapeText(update.shape),
    );
    const found = update.shape.filter((_, axis) => !windows.includes(axis));
    requireShape(draft, "updates and indices", batch, found);
    const window = windows.map((axis) => extentOf(update.shape, axis));
    requireFit(
      draft,
      window.every((extent, axis) => extent <= extentOf(most, axis)),
      "the windows are larger than the operand",
      `at most ${shapeText(most)}`,
      shapeText(window),
    );
    const input = inputTypes[i] ?? update;
    requireShape(draft, "its operands", shape, input.shape);
    requireFit(
      draft,
      input.element === update.element,
      "an update has another element type",
      input.element,
      update.element,
    );
  }
  const { update_computation: body } = draft.regions;
  const results = scalarResults(draft, body, inputs.length);
  requireParameters(draft, body, [...results, ...results]);
  requirePromotion(draft, inputTypes, results);
  return results.map(({ element }) => tensorType(element, shape));
}

export function indexSelect(draft: Draft<"stablehlo.torch_index_select">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const index = requireKinds(draft, tensorOf(draft, draft.operands.index), whole).shape;
  const { dim, batch_dims: batch } = draft.attributes;
  requireAxes(draft, "dim", [dim], shape.length);
  requireFit(
    draft,
    batch >= 0 && batch <= dim && batch <= index.length,
    "batch_dims are not axes before dim, of the index too",
    `0 to ${Math.min(dim, index.length)}`,
    `${batch}`,
  );
  requireShape(draft, "batches of operand and index", shape.slice(0, batch), index.slice(0, batch));
  return [
    tensorType(element, [...shape.slice(0, dim), ...index.slice(batch), ...shape.slice(dim + 1)]),
  ];
}
