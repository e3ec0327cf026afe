/** Result types of ops with regions, of calls and of tuples. */
import type { controlOps } from "../ops/control.ts";
import type { derivativeOps } from "../ops/derivatives.ts";
import { isFloatElement } from "../ops/elements.ts";
import type { GraphRegion } from "../ops/node.ts";
import type { reductionOps } from "../ops/reductions.ts";
import { tensorType, tupleType, typeText } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import {
  reject,
  requireAxes,
  requireCount,
  requireKinds,
  requireParameters,
  requirePromotion,
  requireResults,
  requireScalars,
  requireShape,
  scalarOf,
  scalarResults,
  tensorOf,
} from "./inference-input.ts";
import type { Draft, InferRules } from "./inference-input.ts";
import { requireWindow, windowExtent } from "./window.ts";

/** The inputs, which have one shape, and the scalars that their combination gives. */
function reduction(draft: Draft<"stablehlo.reduce" | "stablehlo.reduce_window">): {
  readonly shape: readonly number[];
  readonly scalars: readonly TensorType[];
} {
  const inputs = draft.operands.inputs.map((value) => tensorOf(draft, value));
  requireCount(draft, "init_values", draft.operands.init_values, inputs.length);
  const [first] = inputs;
  if (first === undefined)
    return reject(draft, "TW9104", "it has no operands", "one or more", "none");
  for (const { shape } of inputs) requireShape(draft, "its operands", first.shape, shape);
  requireScalars(draft, "init_values", draft.operands.init_values, inputs);
  const { body } = draft.regions;
  const scalars = scalarResults(draft, body, inputs.length);
  requireParameters(draft, body, [...scalars, ...scalars]);
  requirePromotion(draft, inputs, scalars);
  return { shape: first.shape, scalars };
}

function reduce(draft: Draft<"stablehlo.reduce">): readonly GraphType[] {
  const { shape, scalars } = reduction(draft);
  const { dimensions } = draft.attributes;
  requireAxes(draft, "dimensions", dimensions, shape.length);
  const result = shape.filter((_, axis) => !dimensions.includes(axis));
  return scalars.map(({ element }) => tensorType(element, result));
}

function reduceWindow(draft: Draft<"stablehlo.reduce_window">): readonly GraphType[] {
  const { shape, scalars } = reduction(draft);
  const { attributes } = draft;
  const window = requireWindow(draft, shape.length, {
    sizes: attributes.window_dimensions,
    strides: attributes.window_strides,
    padding: attributes.padding,
    baseDilations: attributes.base_dilations,
    windowDilations: attributes.window_dilations,
  });
  const result = shape.map((extent, axis) => windowExtent(window, axis, extent));
  return scalars.map(({ element }) => tensorType(element, result));
}

function selectAndScatter(draft: Draft<"stablehlo.select_and_scatter">): readonly GraphType[] {
  const operand = tensorOf(draft, draft.operands.operand);
  const source = tensorOf(draft, draft.operands.source);
  const { attributes, regions } = draft;
  const rank = operand.shape.length;
  const window = requireWindow(draft, rank, {
    sizes: attributes.window_dimensions ?? Array.from({ length: rank }, () => 1),
    strides: attributes.window_strides,
    padding: attributes.padding,
    baseDilations: undefined,
    windowDilations: undefined,
  });
  const windows = operand.shape.map((extent, axis) => windowExtent(window, axis, extent));
  requireShape(draft, "source and windows", windows, source.shape);
  const scalar = scalarOf(operand);
  requireScalars(draft, "init_value", [draft.operands.init_value], [operand]);
  if (source.element !== operand.element)
    reject(draft, "TW9101", "its operands differ", operand.element, source.element);
  requireParameters(draft, regions.select, [scalar, scalar]);
  requireResults(draft, regions.select, [tensorType("i1", [])]);
  const [result = scalar] = scalarResults(draft, regions.scatter, 1);
  requireParameters(draft, regions.scatter, [result, result]);
  requirePromotion(draft, [operand], [result]);
  return [tensorType(result.element, operand.shape)];
}

function sort(draft: Draft<"stablehlo.sort">): readonly GraphType[] {
  const types = draft.operands.inputs.map((value) => tensorOf(draft, value));
  const [first] = types;
  if (first === undefined)
    return reject(draft, "TW9104", "it has no operands", "one or more", "none");
  const rank = first.shape.length;
  const { dimension } = draft.attributes;
  requireAxes(draft, "dimension", [dimension < 0 ? dimension + rank : dimension], rank);
  for (const { shape } of types) requireShape(draft, "its operands", first.shape, shape);
  const { comparator } = draft.regions;
  requireParameters(
    draft,
    comparator,
    types.flatMap((type) => [scalarOf(type), scalarOf(type)]),
  );
  requireResults(draft, comparator, [tensorType("i1", [])]);
  return types;
}

function map(draft: Draft<"stablehlo.map">): readonly GraphType[] {
  const types = draft.operands.inputs.map((value) => tensorOf(draft, value));
  const shape = types[0]?.shape ?? [];
  for (const type of types) requireShape(draft, "its operands", shape, type.shape);
  const { dimensions } = draft.attributes;
  requireShape(
    draft,
    "dimensions, which are all in order,",
    shape.map((_, axis) => axis),
    dimensions,
  );
  const { computation } = draft.regions;
  requireParameters(draft, computation, types.map(scalarOf));
  const [result] = scalarResults(draft, computation, 1);
  return [tensorType(result?.element ?? "f32", shape)];
}

export const reductionRules: InferRules<keyof typeof reductionOps> = {
  "stablehlo.reduce": reduce,
  "stablehlo.reduce_window": reduceWindow,
  "stablehlo.select_and_scatter": selectAndScatter,
  "stablehlo.sort": sort,
  "stablehlo.map": map,
};

function whileLoop(draft: Draft<"stablehlo.while">): readonly GraphType[] {
  const types = draft.operands.operand.map(({ type }) => type);
  const { cond, body } = draft.regions;
  requireParameters(draft, cond, types);
  requireParameters(draft, body, types);
  requireResults(draft, cond, [tensorType("i1", [])]);
  requireResults(draft, body, types);
  return types;
}

/** Branches take nothing and return the same types. */
function branches(draft: Draft, regions: readonly GraphRegion[]): readonly GraphType[] {
  const [first, ...rest] = regions;
  if (first === undefined)
    return reject(draft, "TW9105", "it has no branches", "one or more", "none");
  for (const region of regions) requireParameters(draft, region, []);
  const types = first.results.map(({ type }) => type);
  for (const region of rest) requireResults(draft, region, types);
  return types;
}

function tupleElement(draft: Draft<"stablehlo.get_tuple_element">): readonly GraphType[] {
  const { type } = draft.operands.operand;
  const member = type.kind === "tuple" ? type.members[draft.attributes.index] : undefined;
  if (member !== undefined) return [member];
  const { index } = draft.attributes;
  return reject(
    draft,
    "TW9104",
    `the tuple has no member ${index}`,
    `${index + 1} members`,
    typeText(type),
  );
}

function barrier(draft: Draft<"stablehlo.optimization_barrier">): readonly GraphType[] {
  return draft.operands.operand.map(({ type }) => type);
}

/** The verifier looks up the function; here its types are taken as written. */
function declared(draft: Draft): readonly GraphType[] {
  return draft.declared;
}

export const controlRules: InferRules<keyof typeof controlOps> = {
  "stablehlo.while": whileLoop,
  "stablehlo.case": (draft) => {
    const { shape } = requireKinds(draft, tensorOf(draft, draft.operands.index), ["signed"]);
    requireShape(draft, "the index, which is a scalar,", [], shape);
    return branches(draft, draft.regions.branches);
  },
  "stablehlo.if": (draft) => {
    const { shape } = requireKinds(draft, tensorOf(draft, draft.operands.pred), ["bool"]);
    requireShape(draft, "the predicate, which is a scalar,", [], shape);
    return branches(draft, [draft.regions.true_branch, draft.regions.false_branch]);
  },
  "stablehlo.optimization_barrier": barrier,
  "func.call": declared,
  "stablehlo.composite": declared,
  "stablehlo.custom_call": declared,
  "stablehlo.tuple": (draft) => [tupleType(draft.operands.val.map(({ type }) => type))],
  "stablehlo.get_tuple_element": tupleElement,
  "sdy.sharding_constraint": (draft) => [draft.operands.input.type],
  "sdy.manual_computation": declared,
  foreign: declared,
};

/** What a region gives that takes the op's operands. */
function ofBody(
  draft: Draft<"tilewright.custom_vjp" | "tilewright.checkpoint">,
  region: GraphRegion,
): readonly GraphType[] {
  requireParameters(
    draft,
    region,
    draft.operands.inputs.map((value) => tensorOf(draft, value)),
  );
  return region.results.map(({ type }) => type);
}

function isFloat(type: GraphType): boolean {
  return type.kind === "tensor" && isFloatElement(type.element);
}

/** Its three regions fit each other: results and residuals forward, residuals and cotangents backward. */
function customVjp(draft: Draft<"tilewright.custom_vjp">): readonly GraphType[] {
  const { body, forward, backward } = draft.regions;
  const results = ofBody(draft, body);
  const all = ofBody(draft, forward);
  const residuals = all.slice(results.length);
  requireResults(draft, forward, [...results, ...residuals]);
  requireParameters(draft, backward, [...residuals, ...results.filter(isFloat)]);
  const inputs = draft.operands.inputs.map((value) => tensorOf(draft, value)).filter(isFloat);
  requireResults(draft, backward, inputs);
  return results;
}

export const derivativeRules: InferRules<keyof typeof derivativeOps> = {
  "tilewright.custom_vjp": customVjp,
  "tilewright.checkpoint": (draft) => ofBody(draft, draft.regions.body),
  "tilewright.name": (draft) => [draft.operands.operand.type],
  "tilewright.stop_gradient": (draft) => [draft.operands.operand.type],
};
