/** Ops that multiply matrices or solve with them, convolutions, transforms and random bits. */
import {
  convolutionNumbers,
  dotAlgorithm,
  dotNumbers,
  flag,
  flags,
  integer,
  integers,
  optional,
  precisions,
  real,
  rows,
  text,
  withDefault,
  words,
} from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

const convolutionAttributes = {
  window_strides: optional(integers),
  padding: optional(rows),
  lhs_dilation: optional(integers),
  rhs_dilation: optional(integers),
  window_reversal: optional(flags),
  dimension_numbers: convolutionNumbers,
  feature_group_count: integer,
  batch_group_count: integer,
  precision_config: optional(precisions),
  /** As of dot_general: how f32 is multiplied. StableHLO has no such attribute; passes say it. */
  algorithm: optional(dotAlgorithm),
} as const;

/**
 * Sums of up to this many products of floats below f64 are made step by step in f32, as CPUs make them and the expected values of tests
 * were; longer ones in f64, rounded once. A convolution has as many products as its kernel has taps and channels.
 */
export const shortSum = 8;

const fftTypes = ["FFT", "IFFT", "RFFT", "IRFFT"] as const;
export const transposes = ["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"] as const;
const rngAlgorithms = ["DEFAULT", "THREE_FRY", "PHILOX"] as const;

export const productOps = defineGraphOps({
  "stablehlo.dot_general": {
    summary: "Sums of products; result axes are batch, free left, free right.",
    operands: { lhs: "one", rhs: "one" },
    attributes: {
      dot_dimension_numbers: dotNumbers,
      precision_config: optional(precisions),
      algorithm: optional(dotAlgorithm),
    },
    regions: {},
    effect: "none",
    text: "dot_general",
  },
  "stablehlo.dot": {
    summary: "Product of vectors and matrices; dot_general replaces it.",
    operands: { lhs: "one", rhs: "one" },
    attributes: { precision_config: optional(precisions) },
    regions: {},
    effect: "none",
    text: "function",
    labels: { precision: "precision_config" },
  },
  "stablehlo.einsum": {
    summary: "Sums of products by a formula; dot_general replaces it.",
    operands: { lhs: "one", rhs: "one" },
    attributes: { einsum_config: text },
    regions: {},
    effect: "none",
    text: "function",
    labels: { config: "einsum_config" },
  },
  "stablehlo.unary_einsum": {
    summary: "einsum of one operand.",
    operands: { operand: "one" },
    attributes: { einsum_config: text },
    regions: {},
    effect: "none",
    text: "function",
    labels: { config: "einsum_config" },
  },
  "stablehlo.convolution": {
    summary: "Correlation of a padded, dilated input with a kernel.",
    operands: { lhs: "one", rhs: "one" },
    attributes: convolutionAttributes,
    regions: {},
    effect: "none",
    text: "convolution",
  },
  "stablehlo.dynamic_conv": {
    summary: "convolution with padding known when it runs.",
    operands: { lhs: "one", rhs: "one", d_padding: "one" },
    attributes: convolutionAttributes,
    regions: {},
    effect: "none",
    text: "convolution",
  },
  "stablehlo.fft": {
    summary: "Fourier transform of the last axes.",
    operands: { operand: "one" },
    attributes: { fft_type: words("fft_type", fftTypes), fft_length: integers },
    regions: {},
    effect: "none",
    text: "function",
    labels: { type: "fft_type", length: "fft_length" },
  },
  "stablehlo.cholesky": {
    summary: "Cholesky factors of matrices.",
    operands: { a: "one" },
    attributes: { lower: withDefault(flag, false) },
    regions: {},
    effect: "none",
    text: "short",
    labels: { lower: "lower" },
  },
  "stablehlo.triangular_solve": {
    summary: "Solves with triangular matrices.",
    operands: { a: "one", b: "one" },
    attributes: {
      left_side: flag,
      lower: flag,
      unit_diagonal: flag,
      transpose_a: words("transpose", transposes),
    },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "stablehlo.batch_norm_inference": {
    summary: "Normalises with a given mean and variance.",
    operands: { operand: "one", scale: "one", offset: "one", mean: "one", variance: "one" },
    attributes: { epsilon: real, feature_index: integer },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "stablehlo.batch_norm_training": {
    summary: "Normalises, and gives mean and variance.",
    operands: { operand: "one", scale: "one", offset: "one" },
    attributes: { epsilon: real, feature_index: integer },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "stablehlo.batch_norm_grad": {
    summary: "Gradients of batch_norm_training.",
    operands: { operand: "one", scale: "one", mean: "one", variance: "one", grad_output: "one" },
    attributes: { epsilon: real, feature_index: integer },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "stablehlo.rng": {
    summary: "Random numbers that nobody can predict.",
    operands: { a: "one", b: "one", shape: "one" },
    attributes: { rng_distribution: words("rng_distribution", ["UNIFORM", "NORMAL"]) },
    regions: {},
    effect: "always",
    text: "function",
    labels: { distribution: "rng_distribution" },
  },
  "stablehlo.rng_bit_generator": {
    summary: "Random bits from a state.",
    operands: { initial_state: "one" },
    attributes: { rng_algorithm: words("rng_algorithm", rngAlgorithms) },
    regions: {},
    effect: "none",
    text: "function",
    labels: { algorithm: "rng_algorithm" },
  },
});
