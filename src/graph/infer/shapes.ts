/** Result types of ops that move elements. */
import type { shapeOps } from "../ops/shapes.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import {
  declaredTensor,
  extentOf,
  reject,
  requireAxes,
  requireCount,
  requireFit,
  requireKinds,
  requireParameters,
  requireShape,
  scalarResults,
  shapeText,
  tensorOf,
} from "./draft.ts";
import type { Draft, InferRules } from "./draft.ts";

/** The type that the op was declared to have; shapes known when it runs are not inferred. */
function declared(draft: Draft): readonly GraphType[] {
  return [declaredTensor(draft)];
}

function broadcastInDim(draft: Draft<"stablehlo.broadcast_in_dim">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const type = declaredTensor(draft);
  const { broadcast_dimensions: axes } = draft.attributes;
  requireCount(draft, "broadcast_dimensions", axes, shape.length);
  requireAxes(draft, "broadcast_dimensions", axes, type.shape.length);
  const fits = shape.every((extent, axis) => {
    const target = extentOf(type.shape, axes[axis] ?? 0);
    return extent === 1 || extent === target;
  });
  requireFit(
    draft,
    fits,
    "an extent is neither 1 nor that of the result",
    `extents of ${shapeText(type.shape)} at ${shapeText(axes)}`,
    shapeText(shape),
  );
  if (type.element !== element)
    reject(draft, "TW9101", "operand and result differ", element, type.element);
  return [type];
}

function reshape(draft: Draft<"stablehlo.reshape">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const type = declaredTensor(draft);
  requireFit(
    draft,
    sizeOf(shape) === sizeOf(type.shape) && element === type.element,
    "the numbers of elements differ",
    `${sizeOf(shape)} elements of ${element}, as in ${shapeText(shape)}`,
    `${sizeOf(type.shape)} of ${type.element} in ${shapeText(type.shape)}`,
  );
  return [type];
}

function transpose(draft: Draft<"stablehlo.transpose">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { permutation } = draft.attributes;
  requireAxes(draft, "permutation", permutation, shape.length);
  requireCount(draft, "permutation", permutation, shape.length);
  return [
    tensorType(
      element,
      permutation.map((axis) => extentOf(shape, axis)),
    ),
  ];
}

function concatenate(draft: Draft<"stablehlo.concatenate">): readonly GraphType[] {
  const { dimension } = draft.attributes;
  const [first, ...rest] = draft.operands.inputs.map((value) => tensorOf(draft, value));
  if (first === undefined)
    return reject(draft, "TW9104", "it has no operands", "one or more", "none");
  requireAxes(draft, "dimension", [dimension], first.shape.length);
  for (const { shape, element } of rest) {
    if (element !== first.element)
      reject(draft, "TW9101", "its operands differ", first.element, element);
    const expected = first.shape.map((extent, axis) =>
      axis === dimension ? (shape[axis] ?? extent) : extent,
    );
    requireShape(draft, `operands beside axis ${dimension}`, expected, shape);
  }
  const extent = [first, ...rest].reduce((sum, { shape }) => sum + extentOf(shape, dimension), 0);
  return [tensorType(first.element, first.shape.with(dimension, extent))];
}

function slice(draft: Draft<"stablehlo.slice">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { start_indices: starts, limit_indices: limits, strides } = draft.attributes;
  requireCount(draft, "start_indices", starts, shape.length);
  requireCount(draft, "limit_indices", limits, shape.length);
  requireCount(draft, "strides", strides, shape.length);
  const result = shape.map((extent, axis) => {
    const start = extentOf(starts, axis);
    const limit = extentOf(limits, axis);
    const stride = extentOf(strides, axis);
    requireFit(
      draft,
      0 <= start && start <= limit && limit <= extent && stride >= 1,
      `the slice does not lie within axis ${axis}`,
      `0 <= start <= limit <= ${extent}, stride from 1 up`,
      `${start}:${limit}:${stride} of ${shapeText(shape)}`,
    );
    return Math.ceil((limit - start) / stride);
  });
  return [tensorType(element, result)];
}

function pad(draft: Draft<"stablehlo.pad">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const value = tensorOf(draft, draft.operands.padding_value);
  if (value.element !== element || value.shape.length > 0)
    reject(
      draft,
      "TW9101",
      "the value is of another type",
      `tensor<${element}>`,
      shapeText(value.shape),
    );
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = draft.attributes;
  for (const [name, list] of Object.entries({ low, high, interior }))
    requireCount(draft, name, list, shape.length);
  const result = shape.map((extent, axis) => {
    const between = extentOf(interior, axis);
    const padded =
      extentOf(low, axis) + extent + Math.max(extent - 1, 0) * between + extentOf(high, axis);
    requireFit(
      draft,
      padded >= 0 && between >= 0,
      `nothing is left along axis ${axis}`,
      "an extent from 0 up",
      `${padded}`,
    );
    return padded;
  });
  return [tensorType(element, result)];
}

function dynamicSlice(draft: Draft<"stablehlo.dynamic_slice">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { slice_sizes: sizes } = draft.attributes;
  requireCount(draft, "slice_sizes", sizes, shape.length);
  requireCount(draft, "start_indices", draft.operands.start_indices, shape.length);
  requireFit(
    draft,
    sizes.every((size, axis) => size >= 0 && size <= extentOf(shape, axis)),
    "the slice is larger than its operand",
    `at most ${shapeText(shape)}`,
    shapeText(sizes),
  );
  return [tensorType(element, sizes)];
}

function dynamicUpdateSlice(draft: Draft<"stablehlo.dynamic_update_slice">): readonly GraphType[] {
  const type = tensorOf(draft, draft.operands.operand);
  const update = tensorOf(draft, draft.operands.update);
  requireCount(draft, "start_indices", draft.operands.start_indices, type.shape.length);
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

function gather(draft: Draft<"stablehlo.gather">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const indices = tensorOf(draft, draft.operands.start_indices).shape;
  const { dimension_numbers: numbers, slice_sizes: sizes } = draft.attributes;
  requireCount(draft, "slice_sizes", sizes, shape.length);
  const removed = [...numbers.collapsed_slice_dims, ...numbers.operand_batching_dims];
  requireAxes(draft, "collapsed and batching axes", removed, shape.length);
  requireAxes(draft, "start_index_map", numbers.start_index_map, shape.length);
  requireFit(
    draft,
    sizes.every((size, axis) => size >= 0 && size <= extentOf(shape, axis)),
    "the slices are larger than the operand",
    `at most ${shapeText(shape)}`,
    shapeText(sizes),
  );
  const batch = indices.filter((_, axis) => axis !== numbers.index_vector_dim);
  const offsets = sizes.filter((_, axis) => !removed.includes(axis));
  const rank = batch.length + offsets.length;
  requireAxes(draft, "offset_dims", numbers.offset_dims, rank);
  requireCount(draft, "offset_dims", numbers.offset_dims, offsets.length);
  const nextBatch = batch[Symbol.iterator]();
  const result = Array.from({ length: rank }, (_, axis) => {
    const place = numbers.offset_dims.indexOf(axis);
    return place >= 0 ? extentOf(offsets, place) : (nextBatch.next().value ?? 0);
  });
  return [tensorType(element, result)];
}

function scatter(draft: Draft<"stablehlo.scatter">): readonly GraphType[] {
  const { inputs, updates, scatter_indices: indices } = draft.operands;
  const inputTypes = inputs.map((value) => tensorOf(draft, value));
  const updateTypes = updates.map((value) => tensorOf(draft, value));
  const numbers = draft.attributes.scatter_dimension_numbers;
  const indexShape = tensorOf(draft, indices).shape;
  const batch = indexShape.filter((_, axis) => axis !== numbers.index_vector_dim);
  const { update_computation: body } = draft.regions;
  const results = scalarResults(draft, body, inputs.length);
  requireParameters(draft, body, [...results, ...results]);
  for (const [i, { shape }] of updateTypes.entries()) {
    const rank = numbers.update_window_dims.length + batch.length;
    requireFit(
      draft,
      shape.length === rank,
      "an update has another rank",
      `${rank}: ${numbers.update_window_dims.length} window axes and ${shapeText(batch)}`,
      shapeText(shape),
    );
    requireAxes(draft, "update_window_dims", numbers.update_window_dims, rank);
    const found = shape.filter((_, axis) => !numbers.update_window_dims.includes(axis));
    requireShape(draft, "updates and indices", batch, found);
    const removed = [...numbers.inserted_window_dims, ...numbers.input_batching_dims];
    const input = inputTypes[i]?.shape ?? [];
    requireFit(
      draft,
      input.length === removed.length + numbers.update_window_dims.length,
      "the axes of the windows are not those of the operand",
      `${input.length} axes of ${shapeText(input)}`,
      `${removed.length} without and ${numbers.update_window_dims.length} with a window`,
    );
  }
  return inputTypes.map(({ shape }, i) => tensorType(results[i]?.element ?? "f32", shape));
}

function iota(draft: Draft<"stablehlo.iota">): readonly GraphType[] {
  const type = declaredTensor(draft);
  requireKinds(draft, type, ["signed", "unsigned", "float", "complex"]);
  requireAxes(draft, "iota_dimension", [draft.attributes.iota_dimension], type.shape.length);
  return [type];
}

function constant(draft: Draft<"stablehlo.constant">): readonly GraphType[] {
  const { value } = draft.attributes;
  return "kind" in value ? draft.declared : [value.type];
}

function broadcast(draft: Draft<"stablehlo.broadcast">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  return [tensorType(element, [...draft.attributes.broadcast_sizes, ...shape])];
}

function reverse(draft: Draft<"stablehlo.reverse">): readonly GraphType[] {
  const type = tensorOf(draft, draft.operands.operand);
  requireAxes(draft, "dimensions", draft.attributes.dimensions, type.shape.length);
  return [type];
}

function dimensionSize(draft: Draft<"stablehlo.get_dimension_size">): readonly GraphType[] {
  const { shape } = tensorOf(draft, draft.operands.operand);
  requireAxes(draft, "dimension", [draft.attributes.dimension], shape.length);
  return [tensorType("i32", [])];
}

function indexSelect(draft: Draft<"stablehlo.torch_index_select">): readonly GraphType[] {
  const operand = tensorOf(draft, draft.operands.operand);
  const index = tensorOf(draft, draft.operands.index).shape;
  const { dim, batch_dims: batch } = draft.attributes;
  requireAxes(draft, "dim", [dim], operand.shape.length);
  return [
    tensorType(operand.element, [
      ...operand.shape.slice(0, dim),
      ...index.slice(batch),
      ...operand.shape.slice(dim + 1),
    ]),
  ];
}

export const shapeRules: InferRules<keyof typeof shapeOps> = {
  "stablehlo.constant": constant,
  "stablehlo.iota": iota,
  "stablehlo.dynamic_iota": declared,
  "stablehlo.broadcast_in_dim": broadcastInDim,
  "stablehlo.dynamic_broadcast_in_dim": declared,
  "stablehlo.broadcast": broadcast,
  "stablehlo.reshape": reshape,
  "stablehlo.dynamic_reshape": declared,
  "stablehlo.transpose": transpose,
  "stablehlo.reverse": reverse,
  "stablehlo.concatenate": concatenate,
  "stablehlo.slice": slice,
  "stablehlo.real_dynamic_slice": declared,
  "stablehlo.pad": pad,
  "stablehlo.dynamic_pad": declared,
  "stablehlo.dynamic_slice": dynamicSlice,
  "stablehlo.dynamic_update_slice": dynamicUpdateSlice,
  "stablehlo.gather": gather,
  "stablehlo.dynamic_gather": declared,
  "stablehlo.scatter": scatter,
  "stablehlo.get_dimension_size": dimensionSize,
  "stablehlo.set_dimension_size": declared,
  "stablehlo.torch_index_select": indexSelect,
};
