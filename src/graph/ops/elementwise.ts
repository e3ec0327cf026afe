/** Ops that compute each element of their result from the elements at the same place. */
import { integer32, optional, words } from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

const operand = { operand: "one" } as const;
const sides = { lhs: "one", rhs: "one" } as const;
const pure = { attributes: {}, regions: {}, effect: "none", text: "short" } as const;

function unary(summary: string) {
  return { ...pure, summary, operands: operand } as const;
}

function binary(summary: string) {
  return { ...pure, summary, operands: sides } as const;
}

const comparisonDirections = ["EQ", "NE", "GE", "GT", "LE", "LT"] as const;
const comparisonTypes = [
  "NOTYPE",
  "FLOAT",
  "TOTALORDER",
  "WEAKORDER",
  "SIGNED",
  "UNSIGNED",
] as const;

/**
 * How floats are ordered. `ieee`: NaN compares with nothing. `total`: by bits, -NaN < -∞ … -0 < +0 … ∞ < NaN.
 * `weak`: zeros are equal, and so are all NaNs, which are greater than everything else.
 */
export type FloatOrder = "ieee" | "total" | "weak";

export const floatOrders: { readonly [T in (typeof comparisonTypes)[number]]: FloatOrder } = {
  NOTYPE: "ieee",
  FLOAT: "ieee",
  TOTALORDER: "total",
  WEAKORDER: "weak",
  SIGNED: "ieee",
  UNSIGNED: "ieee",
};

export const elementwiseOps = defineGraphOps({
  "stablehlo.abs": unary("Magnitude of each element."),
  "stablehlo.cbrt": unary("Cube root."),
  "stablehlo.ceil": unary("The next whole number above."),
  "stablehlo.count_leading_zeros": unary("Zero bits above the topmost one."),
  "stablehlo.cosine": unary("Cosine."),
  "stablehlo.exponential": unary("e to the power of each element."),
  "stablehlo.exponential_minus_one": unary("e to the power of each element, less one."),
  "stablehlo.floor": unary("The next whole number below."),
  "stablehlo.imag": unary("Imaginary part."),
  "stablehlo.is_finite": unary("Whether an element is neither infinite nor NaN."),
  "stablehlo.log": unary("Natural logarithm."),
  "stablehlo.log_plus_one": unary("Natural logarithm of one more."),
  "stablehlo.logistic": unary("1 / (1 + exp(-x))."),
  "stablehlo.negate": unary("Negation."),
  "stablehlo.not": unary("Complement of the bits, or of the truth value."),
  "stablehlo.popcnt": unary("Number of one bits."),
  "stablehlo.real": unary("Real part."),
  "stablehlo.round_nearest_afz": unary("The nearest whole number, halves away from zero."),
  "stablehlo.round_nearest_even": unary("The nearest whole number, halves to even."),
  "stablehlo.rsqrt": unary("1 / sqrt(x)."),
  "stablehlo.sign": unary("-1, 0 or 1, NaN for NaN."),
  "stablehlo.sine": unary("Sine."),
  "stablehlo.sqrt": unary("Square root."),
  "stablehlo.tan": unary("Tangent."),
  "stablehlo.tanh": unary("Hyperbolic tangent."),
  "stablehlo.convert": unary("The value in another element type."),
  "stablehlo.bitcast_convert": unary("The bits as another element type."),
  "stablehlo.uniform_quantize": unary("Quantises."),
  "stablehlo.uniform_dequantize": unary("Back from a quantised type."),
  "stablehlo.add": binary("Sum; or for i1."),
  "stablehlo.and": binary("And of the bits."),
  "stablehlo.atan2": binary("Angle of the point (rhs, lhs)."),
  "stablehlo.complex": binary("Complex number of a real and an imaginary part."),
  "stablehlo.divide": binary("Quotient; truncated for integers."),
  "stablehlo.maximum": binary("The larger; NaN wins."),
  "stablehlo.minimum": binary("The smaller; NaN wins."),
  "stablehlo.multiply": binary("Product; and for i1."),
  "stablehlo.or": binary("Or of the bits."),
  "stablehlo.power": binary("lhs to the power of rhs."),
  "stablehlo.remainder": binary("Remainder with the dividend's sign."),
  "stablehlo.shift_left": binary("Bits to the left; zero beyond the width."),
  "stablehlo.shift_right_arithmetic": binary("Bits to the right, filled with the sign."),
  "stablehlo.shift_right_logical": binary("Bits to the right, filled with zeros."),
  "stablehlo.subtract": binary("Difference."),
  "stablehlo.xor": binary("Exclusive or of the bits."),
  "stablehlo.compare": {
    summary: "Whether a comparison holds.",
    operands: sides,
    attributes: {
      comparison_direction: words("comparison_direction", comparisonDirections),
      compare_type: optional(words("comparison_type", comparisonTypes)),
    },
    regions: {},
    effect: "none",
    text: "compare",
  },
  "stablehlo.select": {
    summary: "Elements of one operand or the other by a predicate.",
    operands: { pred: "one", on_true: "one", on_false: "one" },
    attributes: {},
    regions: {},
    effect: "none",
    text: "select",
  },
  "stablehlo.clamp": {
    summary: "minimum(maximum(operand, min), max).",
    operands: { min: "one", operand: "one", max: "one" },
    attributes: {},
    regions: {},
    effect: "none",
    text: "short",
  },
  "stablehlo.reduce_precision": {
    summary: "Rounds as if to a format with fewer bits.",
    operands: operand,
    attributes: { exponent_bits: integer32, mantissa_bits: integer32 },
    regions: {},
    effect: "none",
    text: "reduce_precision",
  },
});
