/** Ops of the CHLO dialect, which JAX prints for functions that StableHLO lacks. */
import { flag, integer, list, optional, raggedDotNumbers, withDefault, words } from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

const pure = { attributes: {}, regions: {}, effect: "none", text: "arrow" } as const;

function unary(summary: string) {
  return { ...pure, summary, operands: { operand: "one" } } as const;
}

/** Those that compute each element from the elements at its place. */
export const chloElementwiseOps = defineGraphOps({
  "chlo.acos": unary("Inverse cosine."),
  "chlo.acosh": unary("Inverse hyperbolic cosine."),
  "chlo.asin": unary("Inverse sine."),
  "chlo.asin_acos_kernel": unary("What complex asin and acos share."),
  "chlo.asinh": unary("Inverse hyperbolic sine."),
  "chlo.atan": unary("Inverse tangent."),
  "chlo.atanh": unary("Inverse hyperbolic tangent."),
  "chlo.bessel_i1e": unary("Bessel function of order one, scaled by exp(-|x|)."),
  "chlo.conj": unary("Complex conjugate."),
  "chlo.cosh": unary("Hyperbolic cosine."),
  "chlo.digamma": unary("Derivative of lgamma."),
  "chlo.erf": unary("Error function."),
  "chlo.erf_inv": unary("Inverse of the error function."),
  "chlo.erfc": unary("1 - erf(x)."),
  "chlo.is_inf": unary("Whether an element is infinite."),
  "chlo.is_neg_inf": unary("Whether an element is minus infinity."),
  "chlo.is_pos_inf": unary("Whether an element is plus infinity."),
  "chlo.lgamma": unary("Logarithm of the magnitude of the gamma function."),
  "chlo.sinh": unary("Hyperbolic sine."),
  "chlo.square": unary("x · x."),
  "chlo.tan": unary("Tangent."),
  "chlo.next_after": { ...pure, summary: "One step towards y.", operands: { x: "one", y: "one" } },
  "chlo.polygamma": {
    ...pure,
    summary: "Derivative n of digamma.",
    operands: { n: "one", x: "one" },
  },
  "chlo.zeta": { ...pure, summary: "Hurwitz zeta function.", operands: { x: "one", q: "one" } },
  "chlo.mulhi": {
    ...pure,
    summary: "High half of the double-width product.",
    operands: { lhs: "one", rhs: "one" },
  },
});

const otherOps = defineGraphOps({
  "chlo.top_k": {
    summary: "The k largest elements of the last axis, in order, and their indices.",
    operands: { operand: "one" },
    attributes: { k: integer },
    regions: {},
    effect: "none",
    text: "top_k",
  },
  "chlo.ragged_dot": {
    summary: "Products over groups of rows.",
    operands: { lhs: "one", rhs: "one", group_sizes: "one" },
    attributes: {
      ragged_dot_dimension_numbers: raggedDotNumbers,
      precision_config: optional(list(words("precision", ["DEFAULT", "HIGH", "HIGHEST"], "chlo"))),
    },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "chlo.scan": {
    summary: "A loop over slices of an axis that carries values.",
    operands: { inputs: "many", inits: "many" },
    attributes: {
      dimension: integer,
      is_reverse: withDefault(flag, false),
    },
    regions: { body: "one" },
    effect: "regions",
    text: "scan",
  },
});

export const chloOps = { ...chloElementwiseOps, ...otherOps } as const;
