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
  requireShape,
  shapeText,
  tensorOf,
} from "./inference-input.ts";
import type { Draft, InferRules } from "./inference-input.ts";
import { dynamicSlice, dynamicUpdateSlice, gather, indexSelect, scatter } from "./indexing.ts";

/** The type that the op was declared to have; shapes known when it runs are not inferred. */
function declared(draft: Draft): readonly GraphType[] {
  return [declaredTensor(draft)];
}

/** The type that is declared, which the operand fits. */
function broadcastInDim(
  draft: Draft<"stablehlo.broadcast_in_dim" | "stablehlo.dynamic_broadcast_in_dim">,
): readonly GraphType[] {
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

function reshape(
  draft: Draft<"stablehlo.reshape" | "stablehlo.dynamic_reshape">,
): readonly GraphType[] {
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

function iota(draft: Draft<"stablehlo.iota" | "stablehlo.dynamic_iota">): readonly GraphType[] {
  const type = declaredTensor(draft);
  requireKinds(draft, type, ["signed", "unsigned", "float", "complex"]);
  requireAxes(draft, "iota_dimension", [draft.attributes.iota_dimension], type.shape.length);
  return [type];
}

function constant(draft: Draft<"stablehlo.constant">): readonly GraphType[] {
  const { value } = draft.attributes;
  if (!("kind" in value)) return [value.type];
  // A value that is kept as text has a type that is kept so, which is not verified.
  return reject(draft, "TW9106", "its value is of another type", "dense<…> of its type", "other");
}

function broadcast(draft: Draft<"stablehlo.broadcast">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { broadcast_sizes: sizes } = draft.attributes;
  requireFit(
    draft,
    sizes.every((extent) => extent >= 0),
    "an extent is negative",
    "extents from 0 up",
    shapeText(sizes),
  );
  return [tensorType(element, [...sizes, ...shape])];
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

export const shapeRules: InferRules<keyof typeof shapeOps> = {
  "stablehlo.constant": constant,
  "stablehlo.iota": iota,
  "stablehlo.dynamic_iota": iota,
  "stablehlo.broadcast_in_dim": broadcastInDim,
  "stablehlo.dynamic_broadcast_in_dim": broadcastInDim,
  "stablehlo.broadcast": broadcast,
  "stablehlo.reshape": reshape,
  "stablehlo.dynamic_reshape": reshape,
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
