/** Result types of products, convolutions, solvers, transforms and random bits. */
import { algorithmText, isKnownAlgorithm, knownAlgorithmsText } from "../ops/dot-algorithms.ts";
import { elementKind, elements, isComplexElement, partOf } from "../ops/elements.ts";
import type { ElementKind } from "../ops/elements.ts";
import type { GraphValue } from "../ops/node.ts";
import type { productOps } from "../ops/products.ts";
import { sameType, tensorType, typeText } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import {
  declaredTensor,
  extentOf,
  reject,
  requireAxes,
  requireCount,
  requireFit,
  requireKinds,
  requireShape,
  sameShape,
  shapeText,
  tensorOf,
} from "./inference-input.ts";
import type { Draft, InferRules } from "./inference-input.ts";
import { requireWindow, windowExtent } from "./window.ts";

/** Kinds of elements that products may mix. */
const families: { readonly [K in ElementKind]: string } = {
  bool: "whole numbers",
  signed: "whole numbers",
  unsigned: "whole numbers",
  float: "floats",
  complex: "complex numbers",
};

/**
 * The element type that was asked for; the left operand's where nothing was. All three are of one kind of numbers, but that JAX
 * multiplies floats by whole numbers, which are taken as floats.
 */
function resultElement(draft: Draft, lhs: TensorType, rhs: TensorType): TensorType["element"] {
  const result = draft.declared.length === 0 ? lhs : declaredTensor(draft);
  const [left, right, family] = [lhs, rhs, result].map(
    ({ element }) => families[elementKind(element)],
  ) as [string, string, string];
  for (const [own, other, { element }] of [
    [left, right, lhs],
    [right, left, rhs],
  ] as const) {
    const isTaken = family === "floats" && other === family && own === "whole numbers";
    if (own !== family && !isTaken)
      reject(draft, "TW9101", "operands and result differ in kind", family, element);
  }
  return result.element;
}

function dotGeneral(draft: Draft<"stablehlo.dot_general">): readonly GraphType[] {
  const lhs = tensorOf(draft, draft.operands.lhs);
  const rhs = tensorOf(draft, draft.operands.rhs);
  const numbers = draft.attributes.dot_dimension_numbers;
  const left = [...numbers.lhs_batching_dimensions, ...numbers.lhs_contracting_dimensions];
  const right = [...numbers.rhs_batching_dimensions, ...numbers.rhs_contracting_dimensions];
  requireAxes(draft, "axes of the left operand", left, lhs.shape.length);
  requireAxes(draft, "axes of the right operand", right, rhs.shape.length);
  const pick = (shape: readonly number[], axes: readonly number[]): readonly number[] =>
    axes.map((axis) => extentOf(shape, axis));
  const agree = (what: string, a: readonly number[], b: readonly number[]): void => {
    const [one, other] = [pick(lhs.shape, a), pick(rhs.shape, b)];
    requireFit(
      draft,
      one.join() === other.join(),
      `the ${what} axes of ${shapeText(lhs.shape)} and ${shapeText(rhs.shape)} differ`,
      shapeText(one),
      shapeText(other),
    );
  };
  agree("batching", numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions);
  agree("contracting", numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions);
  const { algorithm } = draft.attributes;
  if (algorithm !== undefined)
    requireFit(
      draft,
      isKnownAlgorithm(algorithm, lhs.element, rhs.element),
      "there is no such algorithm of products",
      knownAlgorithmsText,
      algorithmText(algorithm),
    );
  const free = (shape: readonly number[], taken: readonly number[]): readonly number[] =>
    shape.filter((_, axis) => !taken.includes(axis));
  const batch = pick(lhs.shape, numbers.lhs_batching_dimensions);
  const shape = [...batch, ...free(lhs.shape, left), ...free(rhs.shape, right)];
  return [tensorType(resultElement(draft, lhs, rhs), shape)];
}

function dot(draft: Draft<"stablehlo.dot">): readonly GraphType[] {
  const lhs = tensorOf(draft, draft.operands.lhs);
  const rhs = tensorOf(draft, draft.operands.rhs);
  requireFit(
    draft,
    lhs.shape.length >= 1 && rhs.shape.length >= 1 && lhs.shape.at(-1) === rhs.shape[0],
    "the last axis of the left operand is not the first of the right one",
    shapeText(lhs.shape),
    shapeText(rhs.shape),
  );
  const shape = [...lhs.shape.slice(0, -1), ...rhs.shape.slice(1)];
  return [tensorType(resultElement(draft, lhs, rhs), shape)];
}

/** Letters are axes: each has one extent, and the result's are among the operands'. Other formulas are refused where they would run. */
function einsum(draft: Draft<"stablehlo.einsum" | "stablehlo.unary_einsum">): readonly GraphType[] {
  const type = declaredTensor(draft);
  const formula = draft.attributes.einsum_config.replaceAll(/\s/g, "");
  const [inputs = "", output = ""] = formula.split("->");
  const labels = inputs.split(",");
  const given: readonly GraphValue[] = Object.values(draft.operands);
  const operands = given.map((value) => tensorOf(draft, value).shape);
  // What dots stand for is not inferred; who runs the op refuses it.
  if (formula.includes(".")) return [type];
  requireFit(
    draft,
    /^[a-zA-Z,]*->[a-zA-Z]*$/.test(formula) && labels.length === operands.length,
    "its formula is none for its operands",
    operands.length === 1 ? "a formula such as ij->ji" : "a formula such as ij,jk->ik",
    draft.attributes.einsum_config,
  );
  const extents = new Map<string, number>();
  for (const [i, shape] of operands.entries()) {
    const letters = [...(labels[i] ?? "")];
    const fits =
      letters.length === shape.length &&
      letters.every((letter, axis) => {
        const extent = extentOf(shape, axis);
        const known = extents.get(letter) ?? extent;
        extents.set(letter, known);
        return known === extent;
      });
    requireFit(
      draft,
      fits,
      `an operand does not fit ${formula}`,
      `${labels[i]}, with one extent a letter`,
      shapeText(shape),
    );
  }
  const letters = [...output];
  requireFit(
    draft,
    new Set(letters).size === letters.length && letters.every((letter) => extents.has(letter)),
    "the result has letters twice, or some that no operand has",
    `different ones of ${[...extents.keys()].join("")}`,
    output,
  );
  return [
    tensorType(
      type.element,
      letters.map((letter) => extents.get(letter) ?? 0),
    ),
  ];
}

/** Fails unless features and batches come in the groups that are asked for, of which there is one kind. */
function requireGroups(
  draft: Draft<"stablehlo.convolution">,
  lhs: TensorType,
  rhs: TensorType,
): void {
  const { dimension_numbers: numbers } = draft.attributes;
  const { feature_group_count: groups, batch_group_count: batches } = draft.attributes;
  requireFit(
    draft,
    groups >= 1 && batches >= 1 && (groups === 1 || batches === 1),
    "groups are not of features or of batches",
    "two counts from 1 up, one of which is 1",
    `${groups} and ${batches}`,
  );
  const features = extentOf(lhs.shape, numbers.input_feature_dimension);
  const kernelFeatures = extentOf(rhs.shape, numbers.kernel_input_feature_dimension);
  requireFit(
    draft,
    features === kernelFeatures * groups,
    `the input ${shapeText(lhs.shape)} and the kernel ${shapeText(rhs.shape)} differ in features`,
    `${kernelFeatures} · ${groups}`,
    `${features}`,
  );
  const batch = extentOf(lhs.shape, numbers.input_batch_dimension);
  const outputs = extentOf(rhs.shape, numbers.kernel_output_feature_dimension);
  requireFit(
    draft,
    batch % batches === 0 && outputs % batches === 0 && outputs % groups === 0,
    "batch or output features are no multiple of the groups",
    `multiples of ${batches} and ${groups}`,
    `batch ${batch}, features ${outputs}`,
  );
}

function convolution(draft: Draft<"stablehlo.convolution">): readonly GraphType[] {
  const lhs = tensorOf(draft, draft.operands.lhs);
  const rhs = tensorOf(draft, draft.operands.rhs);
  const { dimension_numbers: numbers, ...rest } = draft.attributes;
  const spatial = numbers.input_spatial_dimensions;
  const rank = spatial.length + 2;
  const named = (batch: number, feature: number, axes: readonly number[]): readonly number[] => [
    batch,
    feature,
    ...axes,
  ];
  const input = named(numbers.input_batch_dimension, numbers.input_feature_dimension, spatial);
  const kernel = named(
    numbers.kernel_input_feature_dimension,
    numbers.kernel_output_feature_dimension,
    numbers.kernel_spatial_dimensions,
  );
  const output = named(
    numbers.output_batch_dimension,
    numbers.output_feature_dimension,
    numbers.output_spatial_dimensions,
  );
  for (const [name, axes, shape] of [
    ["axes of the input", input, lhs.shape],
    ["axes of the kernel", kernel, rhs.shape],
    ["axes of the output", output, Array.from({ length: rank }, () => 0)],
  ] as const) {
    requireAxes(draft, name, axes, shape.length);
    requireFit(
      draft,
      axes.length === shape.length,
      `${name} are not all named`,
      `${shape.length}`,
      `${axes.length}`,
    );
  }
  const batch = extentOf(lhs.shape, numbers.input_batch_dimension);
  const outputs = extentOf(rhs.shape, numbers.kernel_output_feature_dimension);
  requireGroups(draft, lhs, rhs);
  if (rest.window_reversal !== undefined)
    requireCount(draft, "window_reversal", rest.window_reversal, spatial.length);
  const result: number[] = [];
  result[numbers.output_batch_dimension] = batch / rest.batch_group_count;
  result[numbers.output_feature_dimension] = outputs;
  const window = requireWindow(draft, spatial.length, {
    sizes: numbers.kernel_spatial_dimensions.map((axis) => extentOf(rhs.shape, axis)),
    strides: rest.window_strides,
    padding: rest.padding,
    baseDilations: rest.lhs_dilation,
    windowDilations: rest.rhs_dilation,
  });
  for (const [i, axis] of spatial.entries())
    result[extentOf(numbers.output_spatial_dimensions, i)] = windowExtent(
      window,
      i,
      extentOf(lhs.shape, axis),
    );
  return [tensorType(resultElement(draft, lhs, rhs), result)];
}

function fft(draft: Draft<"stablehlo.fft">): readonly GraphType[] {
  const { shape, element } = tensorOf(draft, draft.operands.operand);
  const { fft_type: type, fft_length: length } = draft.attributes;
  requireFit(
    draft,
    length.length >= 1 && length.length <= Math.min(3, shape.length),
    "fft_length has another length",
    "1 to 3 axes",
    shapeText(length),
  );
  const outer = shape.slice(0, shape.length - length.length);
  const inner = shape.slice(shape.length - length.length);
  const half = length.map((extent, i) =>
    i === length.length - 1 ? Math.floor(extent / 2) + 1 : extent,
  );
  requireShape(draft, "operand and fft_length", type === "IRFFT" ? half : length, inner);
  if (type === "RFFT") {
    requireKinds(draft, tensorType(element, shape), ["float"]);
    return [tensorType(element === "f64" ? "complex<f64>" : "complex<f32>", [...outer, ...half])];
  }
  requireKinds(draft, tensorType(element, shape), ["complex"]);
  if (type === "IRFFT" && isComplexElement(element))
    return [tensorType(partOf(element), [...outer, ...length])];
  return [tensorType(element, shape)];
}

function squares(draft: Draft, type: TensorType): void {
  const [rows, columns] = type.shape.slice(-2);
  requireFit(
    draft,
    type.shape.length >= 2 && rows === columns,
    "the matrices are not square",
    "two equal last extents",
    shapeText(type.shape),
  );
}

function cholesky(draft: Draft<"stablehlo.cholesky">): readonly GraphType[] {
  const type = requireKinds(draft, tensorOf(draft, draft.operands.a), ["float", "complex"]);
  squares(draft, type);
  return [type];
}

function triangularSolve(draft: Draft<"stablehlo.triangular_solve">): readonly GraphType[] {
  const a = requireKinds(draft, tensorOf(draft, draft.operands.a), ["float", "complex"]);
  const b = tensorOf(draft, draft.operands.b);
  squares(draft, a);
  const axis = draft.attributes.left_side ? -2 : -1;
  requireFit(
    draft,
    a.element === b.element &&
      sameShape(a.shape.slice(0, -2), b.shape.slice(0, -2)) &&
      a.shape.length === b.shape.length &&
      a.shape.at(-1) === b.shape.at(axis),
    "the sides do not fit the matrices",
    typeText(a),
    typeText(b),
  );
  return [b];
}

/** The operand's type, a float's, and the one of its features, which all of these have: scale, offset, mean, variance. */
function normalized(
  draft: Draft<
    "stablehlo.batch_norm_inference" | "stablehlo.batch_norm_training" | "stablehlo.batch_norm_grad"
  >,
): readonly [type: TensorType, vector: TensorType] {
  const { operand, ...others } = draft.operands;
  const type = requireKinds(draft, tensorOf(draft, operand), ["float"]);
  const { feature_index: axis } = draft.attributes;
  requireAxes(draft, "feature_index", [axis], type.shape.length);
  const vector = tensorType(type.element, [extentOf(type.shape, axis)]);
  for (const [name, value] of Object.entries(others)) {
    const [expected, found] = [name === "grad_output" ? type : vector, tensorOf(draft, value)];
    if (!sameType(expected, found))
      reject(draft, "TW9101", `${name} does not fit`, typeText(expected), typeText(found));
  }
  return [type, vector];
}

/** A key and a counter, which has one word or, of PHILOX, also two; bits for elements that are made of whole bytes. */
function bitGenerator(draft: Draft<"stablehlo.rng_bit_generator">): readonly GraphType[] {
  const state = tensorOf(draft, draft.operands.initial_state);
  const lengths = draft.attributes.rng_algorithm === "THREE_FRY" ? [2] : [2, 3];
  const isState = lengths.some((length) => sameShape(state.shape, [length]));
  requireFit(
    draft,
    state.element === "ui64" && isState,
    "its state is none of the algorithm",
    lengths.map((length) => `tensor<${length}xui64>`).join(" or "),
    typeText(state),
  );
  const result = declaredTensor(draft, 1);
  requireKinds(draft, result, ["signed", "unsigned", "float"]);
  const { bits } = elements[result.element];
  requireFit(
    draft,
    bits >= 8,
    "its elements are no whole bytes",
    "elements of 8 bits or more",
    typeText(result),
  );
  return [state, result];
}

/** A type that operands and attributes leave open. */
function declared(draft: Draft): readonly GraphType[] {
  return [declaredTensor(draft)];
}

/** The result, and a vector of features for each of two others. */
function withVectors(
  draft: Draft<"stablehlo.batch_norm_training" | "stablehlo.batch_norm_grad">,
): readonly GraphType[] {
  const [type, vector] = normalized(draft);
  return [type, vector, vector];
}

export const productRules: InferRules<keyof typeof productOps> = {
  "stablehlo.dot_general": dotGeneral,
  "stablehlo.dot": dot,
  "stablehlo.einsum": einsum,
  "stablehlo.unary_einsum": einsum,
  "stablehlo.convolution": convolution,
  "stablehlo.dynamic_conv": declared,
  "stablehlo.fft": fft,
  "stablehlo.cholesky": cholesky,
  "stablehlo.triangular_solve": triangularSolve,
  "stablehlo.batch_norm_inference": (draft) => normalized(draft).slice(0, 1),
  "stablehlo.batch_norm_training": withVectors,
  "stablehlo.batch_norm_grad": withVectors,
  "stablehlo.rng": declared,
  "stablehlo.rng_bit_generator": bitGenerator,
};
