/** Result types of ops that work element by element. */
import { elements, isComplexElement, partOf } from "../ops/elements.ts";
import type { ElementKind } from "../ops/elements.ts";
import type { chloOps } from "../ops/chlo.ts";
import type { elementwiseOps } from "../ops/elementwise.ts";
import type { GraphOpKind, GraphOperands } from "../ops/table.ts";
import { tensorType } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";
import {
  declaredTensor,
  reject,
  requireAxes,
  requireCount,
  requireFit,
  requireKinds,
  requireParameters,
  requireSame,
  requireShape,
  sameShape,
  shapeText,
  tensorOf,
} from "./inference-input.ts";
import type { Draft, InferRules } from "./inference-input.ts";

const whole = ["signed", "unsigned"] as const;
const bits = ["bool", ...whole] as const;
const real = ["float"] as const;
const field = ["float", "complex"] as const;
const signed = ["signed", "float", "complex"] as const;
const numeric = [...whole, ...field] as const;
const any = ["bool", ...numeric] as const;

type UnaryKind = {
  [K in GraphOpKind]: GraphOperands<K> extends { readonly operand: infer V }
    ? V extends readonly unknown[]
      ? never
      : K
    : never;
}[GraphOpKind];

/** The operand's type, of an element kind that the op takes. */
function unary(kinds: readonly ElementKind[]) {
  return (draft: Draft<UnaryKind>): readonly TensorType[] => [
    requireKinds(draft, tensorOf(draft, draft.operands.operand), kinds),
  ];
}

type BinaryKind = {
  [K in GraphOpKind]: keyof GraphOperands<K> extends "lhs" | "rhs"
    ? "rhs" extends keyof GraphOperands<K>
      ? K
      : never
    : never;
}[GraphOpKind];

function binary(kinds: readonly ElementKind[]) {
  return (draft: Draft<BinaryKind>): readonly TensorType[] => [
    requireKinds(draft, requireSame(draft, [draft.operands.lhs, draft.operands.rhs]), kinds),
  ];
}

/** A flag an element. */
function predicate(draft: Draft<UnaryKind>): readonly TensorType[] {
  const { shape } = requireKinds(draft, tensorOf(draft, draft.operands.operand), real);
  return [tensorType("i1", shape)];
}

/** The real type of a complex one's parts; a real one itself. */
function part(draft: Draft<UnaryKind>): readonly TensorType[] {
  const { element, shape } = requireKinds(draft, tensorOf(draft, draft.operands.operand), signed);
  return [tensorType(isComplexElement(element) ? partOf(element) : element, shape)];
}

/** The declared type, which has the operand's shape. */
function converted(draft: Draft<UnaryKind>): readonly GraphType[] {
  const { shape } = tensorOf(draft, draft.operands.operand);
  const type = declaredTensor(draft);
  requireShape(draft, "the shapes of operand and result", shape, type.shape);
  return [type];
}

/** The declared type, whose last axis takes up the difference of the elements' widths. */
function bitcast(draft: Draft<UnaryKind>): readonly GraphType[] {
  const from = tensorOf(draft, draft.operands.operand);
  const to = declaredTensor(draft);
  const fromBits = elements[from.element].bits;
  const toBits = elements[to.element].bits;
  const [wide, narrow] = fromBits >= toBits ? [from, to] : [to, from];
  const ratio = Math.max(fromBits, toBits) / Math.min(fromBits, toBits);
  const expected = fromBits === toBits ? wide.shape : [...wide.shape, ratio];
  requireFit(
    draft,
    sameShape(expected, narrow.shape),
    "the bits of operand and result differ in number",
    `${shapeText(expected)} elements of ${narrow.element}`,
    shapeText(narrow.shape),
  );
  return [to];
}

function complex(draft: Draft<"stablehlo.complex">): readonly GraphType[] {
  const { element, shape } = requireSame(draft, [draft.operands.lhs, draft.operands.rhs]);
  if (element === "f32") return [tensorType("complex<f32>", shape)];
  if (element === "f64") return [tensorType("complex<f64>", shape)];
  return reject(draft, "TW9102", "the parts are of another type", "f32 or f64", element);
}

/** How elements of a kind may be compared; one that the text does not name is their own. */
const comparisons: { readonly [K in ElementKind]: readonly string[] } = {
  bool: ["UNSIGNED"],
  signed: ["SIGNED"],
  unsigned: ["UNSIGNED"],
  float: ["FLOAT", "TOTALORDER", "WEAKORDER"],
  complex: ["FLOAT"],
};

function compare(draft: Draft<"stablehlo.compare">): readonly TensorType[] {
  const type = requireSame(draft, [draft.operands.lhs, draft.operands.rhs]);
  const { compare_type: named = "NOTYPE" } = draft.attributes;
  const own = comparisons[elements[type.element].kind];
  requireFit(
    draft,
    named === "NOTYPE" || own.includes(named),
    `compare_type is not one of ${type.element}`,
    own.join(" or "),
    named,
  );
  return [tensorType("i1", type.shape)];
}

function select(draft: Draft<"stablehlo.select">): readonly GraphType[] {
  const { pred, on_true: onTrue, on_false: onFalse } = draft.operands;
  const type = requireSame(draft, [onTrue, onFalse]);
  const predicateType = requireKinds(draft, tensorOf(draft, pred), ["bool"]);
  if (predicateType.shape.length > 0)
    requireShape(draft, "predicate and operands", type.shape, predicateType.shape);
  return [type];
}

function clamp(draft: Draft<"stablehlo.clamp">): readonly GraphType[] {
  const { min, operand, max } = draft.operands;
  const type = tensorOf(draft, operand);
  for (const bound of [min, max].map((value) => tensorOf(draft, value))) {
    if (bound.element !== type.element)
      reject(draft, "TW9101", "a bound has another element type", type.element, bound.element);
    if (bound.shape.length > 0) requireShape(draft, "bound and operand", type.shape, bound.shape);
  }
  return [type];
}

/** The operand's type; a format has at least one bit of exponent. */
function reducePrecision(draft: Draft<"stablehlo.reduce_precision">): readonly TensorType[] {
  const { exponent_bits: exponent, mantissa_bits: mantissa } = draft.attributes;
  requireFit(
    draft,
    exponent >= 1 && mantissa >= 0,
    "the format has too few bits",
    "exponent_bits of at least 1, mantissa_bits of at least 0",
    `${exponent} and ${mantissa}`,
  );
  return [requireKinds(draft, tensorOf(draft, draft.operands.operand), real)];
}

export const elementwiseRules: InferRules<keyof typeof elementwiseOps> = {
  "stablehlo.abs": part,
  "stablehlo.cbrt": unary(field),
  "stablehlo.ceil": unary(real),
  "stablehlo.count_leading_zeros": unary(whole),
  "stablehlo.cosine": unary(field),
  "stablehlo.exponential": unary(field),
  "stablehlo.exponential_minus_one": unary(field),
  "stablehlo.floor": unary(real),
  "stablehlo.imag": part,
  "stablehlo.is_finite": predicate,
  "stablehlo.log": unary(field),
  "stablehlo.log_plus_one": unary(field),
  "stablehlo.logistic": unary(field),
  "stablehlo.negate": unary(numeric),
  "stablehlo.not": unary(bits),
  "stablehlo.popcnt": unary(whole),
  "stablehlo.real": part,
  "stablehlo.round_nearest_afz": unary(real),
  "stablehlo.round_nearest_even": unary(real),
  "stablehlo.rsqrt": unary(field),
  "stablehlo.sign": unary(signed),
  "stablehlo.sine": unary(field),
  "stablehlo.sqrt": unary(field),
  "stablehlo.tan": unary(field),
  "stablehlo.tanh": unary(field),
  "stablehlo.convert": converted,
  "stablehlo.bitcast_convert": bitcast,
  "stablehlo.uniform_quantize": converted,
  "stablehlo.uniform_dequantize": converted,
  "stablehlo.add": binary(any),
  "stablehlo.and": binary(bits),
  "stablehlo.atan2": binary(field),
  "stablehlo.complex": complex,
  "stablehlo.divide": binary(numeric),
  "stablehlo.maximum": binary(any),
  "stablehlo.minimum": binary(any),
  "stablehlo.multiply": binary(any),
  "stablehlo.or": binary(bits),
  "stablehlo.power": binary(numeric),
  "stablehlo.remainder": binary(numeric),
  "stablehlo.shift_left": binary(whole),
  "stablehlo.shift_right_arithmetic": binary(whole),
  "stablehlo.shift_right_logical": binary(whole),
  "stablehlo.subtract": binary(numeric),
  "stablehlo.xor": binary(bits),
  "stablehlo.compare": compare,
  "stablehlo.select": select,
  "stablehlo.clamp": clamp,
  "stablehlo.reduce_precision": reducePrecision,
};

function chloBinary(kinds: readonly ElementKind[]) {
  return (
    draft: Draft<"chlo.next_after" | "chlo.polygamma" | "chlo.zeta" | "chlo.mulhi">,
  ): readonly TensorType[] => [
    requireKinds(draft, requireSame(draft, Object.values(draft.operands)), kinds),
  ];
}

function topK(draft: Draft<"chlo.top_k">): readonly GraphType[] {
  const { element, shape } = tensorOf(draft, draft.operands.operand);
  const { k } = draft.attributes;
  const last = shape.at(-1);
  requireFit(
    draft,
    last !== undefined && k >= 0 && k <= last,
    "k is no number of elements of the last axis",
    `0 to ${last ?? 0}`,
    `${k} of ${shapeText(shape)}`,
  );
  const result = [...shape.slice(0, -1), k];
  return [tensorType(element, result), tensorType("i32", result)];
}

/** Which axes remain depends on where the ragged one is; the declared type says it. */
function raggedDot(draft: Draft<"chlo.ragged_dot">): readonly GraphType[] {
  const { lhs, rhs, group_sizes: sizes } = draft.operands;
  const [left, right] = [tensorOf(draft, lhs).shape, tensorOf(draft, rhs).shape];
  const groups = requireKinds(draft, tensorOf(draft, sizes), ["signed", "unsigned"]).shape;
  const numbers = draft.attributes.ragged_dot_dimension_numbers;
  for (const kind of ["batching", "contracting"] as const) {
    const [own, other] = [numbers[`lhs_${kind}_dimensions`], numbers[`rhs_${kind}_dimensions`]];
    requireAxes(draft, `lhs_${kind}_dimensions`, own, left.length);
    requireAxes(draft, `rhs_${kind}_dimensions`, other, right.length);
    const extents = (shape: readonly number[], axes: readonly number[]): readonly number[] =>
      axes.map((axis) => shape[axis] ?? 0);
    requireShape(draft, `${kind} dimensions`, extents(left, own), extents(right, other));
  }
  requireAxes(draft, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, left.length);
  requireAxes(draft, "rhs_group_dimensions", numbers.rhs_group_dimensions, right.length);
  requireCount(draft, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, 1);
  const matrices = numbers.rhs_group_dimensions.map((axis) => right[axis] ?? 0);
  requireShape(draft, "groups and matrices", groups.slice(-1).slice(0, matrices.length), matrices);
  return [declaredTensor(draft)];
}

/** What the body returns, stacked along the axis for each input, then the last carried values. */
function scan(draft: Draft<"chlo.scan">): readonly GraphType[] {
  const { inputs, inits } = draft.operands;
  const { dimension } = draft.attributes;
  const { body } = draft.regions;
  const first = inputs[0] === undefined ? undefined : tensorOf(draft, inputs[0]);
  const extent = first?.shape[dimension] ?? 0;
  if (first !== undefined) requireAxes(draft, "dimension", [dimension], first.shape.length);
  const slices = inputs.map((value) => {
    const { element, shape } = tensorOf(draft, value);
    requireFit(
      draft,
      shape[dimension] === extent,
      "an input has another length",
      `${extent}`,
      shapeText(shape),
    );
    return tensorType(element, shape.toSpliced(dimension, 1));
  });
  requireParameters(draft, body, [...slices, ...inits.map((value) => tensorOf(draft, value))]);
  const carried = body.results.slice(body.results.length - inits.length);
  const stacked = body.results.slice(0, body.results.length - inits.length).map((value) => {
    const { element, shape } = tensorOf(draft, value);
    return tensorType(element, [...shape.slice(0, dimension), extent, ...shape.slice(dimension)]);
  });
  return [...stacked, ...carried.map(({ type }) => type)];
}

export const chloRules: InferRules<keyof typeof chloOps> = {
  "chlo.acos": unary(field),
  "chlo.acosh": unary(field),
  "chlo.asin": unary(field),
  "chlo.asin_acos_kernel": unary(["complex"]),
  "chlo.asinh": unary(field),
  "chlo.atan": unary(field),
  "chlo.atanh": unary(field),
  "chlo.bessel_i1e": unary(real),
  "chlo.conj": unary(field),
  "chlo.cosh": unary(field),
  "chlo.digamma": unary(real),
  "chlo.erf": unary(real),
  "chlo.erf_inv": unary(real),
  "chlo.erfc": unary(real),
  "chlo.is_inf": predicate,
  "chlo.is_neg_inf": predicate,
  "chlo.is_pos_inf": predicate,
  "chlo.lgamma": unary(real),
  "chlo.sinh": unary(field),
  "chlo.square": unary(numeric),
  "chlo.tan": unary(field),
  "chlo.next_after": chloBinary(real),
  "chlo.polygamma": chloBinary(real),
  "chlo.zeta": chloBinary(real),
  "chlo.mulhi": chloBinary(whole),
  "chlo.top_k": topK,
  "chlo.ragged_dot": raggedDot,
  "chlo.scan": scan,
};
