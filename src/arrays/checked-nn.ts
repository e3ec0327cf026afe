/** The functions of `nn` as programs call them, with what their arguments are. */
import type { FloatName } from "../formats/dtype.ts";
import { floatFormats } from "../formats/floats.ts";
import { isHostArray } from "../formats/hostarray.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { fieldsOf, isListOf, isWhole } from "../support/checked-call.ts";
import * as attending from "./attention.ts";
import {
  array,
  axisOption,
  checked,
  isArray,
  isFlag,
  isNumber,
  isPairOf,
  isPairs,
} from "./argument-checks.ts";
import { options, shape, tree } from "./argument-checks.ts";
import type { AlongAxisOf, UnaryOf } from "./dtypes-of-functions.ts";
import * as nn from "./nn.ts";
import { scaleLayouts } from "../formats/scaled/layout.ts";
import { scaledFormats } from "../formats/scaled/formats.ts";
import { scaleRoundings } from "../formats/scaled/scale-rounding.ts";
import * as scaling from "./scaled.ts";
import * as products from "./scaled-products.ts";
import { flatten } from "./tree.ts";
import * as windows from "./windows.ts";

export type { AttentionOptions } from "./attention.ts";
export type * from "./nn.ts";
export type { QuantizeBlocksOptions, ScaledArray } from "./scaled.ts";
export type {
  ProductFormat,
  ScaledDotGeneralOptions,
  ScaledMatmulOptions,
} from "./scaled-products.ts";
export type { ScaleRounding } from "../formats/scaled/scale-rounding.ts";
export type { ConvOptions, Padding, PerAxis, PoolOptions } from "./windows.ts";

const optionNames = ["learningRate", "beta1", "beta2", "epsilon", "weightDecay"];

const adamOptions = options(
  `{ ${optionNames.join(", ")} }, numbers all`,
  Object.fromEntries(optionNames.map((name) => [name, isNumber])),
);

/** The structure, and the shapes and dtypes in it. */
function formOf(value: unknown): string {
  const { leaves, structure } = flatten(value);
  return `${structure} ${leaves.map(String).join()}`;
}

/** Arrays like those of the first argument. */
const likewise: ArgumentKind = {
  expected: "arrays of the shapes and dtypes of the parameters, in records and lists like theirs",
  holds: (value, [parameters]) => tree.holds(value, []) && formOf(value) === formOf(parameters),
};

const adamState: ArgumentKind = {
  expected: "{ step, first, second }, a number of f32 and two of arrays like the parameters",
  holds: (value, all) => {
    const { step, first, second } = fieldsOf(value, ["step", "first", "second"]);
    const isCount = isArray(step) && step.dtype === "f32" && step.rank === 0;
    return isCount && likewise.holds(first, all) && likewise.holds(second, all);
  },
};

const labels: ArgumentKind = {
  expected: "an array of i32, one for each row of the logits",
  holds: (value) => isArray(value) && value.dtype === "i32",
};

const parameters: ArgumentKind = {
  expected: "an array, or records and lists with arrays in them",
  holds: (value) => tree.holds(value, []) && flatten(value).leaves.length > 0,
};

const attentionOptions = options("{ causal, scale }, a boolean and a number", {
  causal: isFlag,
  scale: isNumber,
});

const isPerAxis = (value: unknown): boolean => isWhole(1)(value) || isListOf(isWhole(1))(value);
const isPadding = (value: unknown): boolean =>
  value === "same" || value === "valid" || isPairs(value);

/** Settings of windows: whole numbers from 1 or lists of them, and padding. */
const windowOptions = (...names: readonly string[]): ArgumentKind =>
  options(
    `{ ${names.join(", ")}, padding }: whole numbers from 1, one or a list, and "valid", "same" or pairs`,
    { ...Object.fromEntries(names.map((name) => [name, isPerAxis])), padding: isPadding },
  );

const sgdOptions: ArgumentKind = {
  expected: "{ learningRate }, a number",
  holds: (value) =>
    fieldsOf(value, ["learningRate"])["learningRate"] !== undefined &&
    options("", { learningRate: isNumber }).holds(value, []),
};

const epsilonOption = options("{ epsilon }, a number", { epsilon: isNumber });

const isScaledFormat = (value: unknown): boolean =>
  typeof value === "string" && Object.hasOwn(scaledFormats, value);
const isLayout = (value: unknown): boolean => scaleLayouts.some((layout) => layout === value);

const scaledFormat: ArgumentKind = {
  expected: `the name of a format with scales: ${Object.keys(scaledFormats).join(", ")}`,
  holds: isScaledFormat,
};
const scaleLayout: ArgumentKind = { expected: scaleLayouts.join(", "), holds: isLayout };
const scaledTree: ArgumentKind = {
  expected: "an array in a format with scales, as nn.quantizeBlocks gives it",
  holds: (value) => {
    const fields = ["format", "elements", "scales", "axis", "layout", "globalScale"];
    const { format, elements, scales, axis, layout, globalScale } = fieldsOf(value, fields);
    return (
      isScaledFormat(format) &&
      isArray(elements) &&
      isArray(scales) &&
      isWhole(0)(axis) &&
      isLayout(layout) &&
      (globalScale === null || isArray(globalScale))
    );
  },
};
const scaledFactor: ArgumentKind = {
  expected: "an array, or one in a format with scales",
  holds: (value, all) => isArray(value) || scaledTree.holds(value, all),
};
const isFloatFormat = (value: unknown): boolean =>
  typeof value === "string" && Object.hasOwn(floatFormats, value);
const isPairOfAxes = isPairOf(isListOf(isWhole(0)));
const scaledMatmulOptions = options("{ dtype }, the name of a float format", {
  dtype: isFloatFormat,
});
const scaledDotOptions = options(
  "{ contracting, batch, formats, dtype }: pairs of lists of axes, the name of a format with scales or three of them, and that of a float format",
  {
    contracting: isPairOfAxes,
    batch: isPairOfAxes,
    formats: (value) =>
      isScaledFormat(value) ||
      (Array.isArray(value) &&
        value.length === 3 &&
        value.every((each) => each === null || isScaledFormat(each))),
    dtype: isFloatFormat,
  },
);
const scaledHost: ArgumentKind = {
  expected: "an array of the host in a format with scales, as scaledHostArray gives it",
  holds: (value) => {
    const { format, elements, scales } = fieldsOf(value, ["format", "elements", "scales"]);
    return format !== undefined && isHostArray(elements) && isHostArray(scales);
  },
};
const quantizeOptions = options(
  `{ axis, scaleRounding, globalScale, scales, layout, key }: an axis, ${scaleRoundings.join(", ")}, a number or an array of f32, arrays, ${scaleLayouts.join(", ")}`,
  {
    axis: Number.isSafeInteger,
    scaleRounding: (value) => scaleRoundings.some((rounding) => rounding === value),
    globalScale: (value) => isNumber(value) || (isArray(value) && value.dtype === "f32"),
    scales: isArray,
    layout: isLayout,
    key: (value) => isArray(value) && value.dtype === "u32",
  },
);
const floatFormat: ArgumentKind = {
  expected: 'the name of a float format, such as "bf16", or nothing',
  holds: (value) =>
    value === undefined || (typeof value === "string" && Object.hasOwn(floatFormats, value)),
};

/** The convolution of an array [batch, ...space, channels] with a kernel, over any number of axes of space. */
export const conv = checked(
  "nn.conv",
  [array, array, windowOptions("strides", "dilation", "inputDilation", "groups")],
  windows.conv,
);
/** The largest element of each window. */
export const maxPool = checked(
  "nn.maxPool",
  [array, shape, windowOptions("strides")],
  windows.maxPool,
);
/** The mean of the elements of each window; padding does not count. */
export const avgPool = checked(
  "nn.avgPool",
  [array, shape, windowOptions("strides")],
  windows.avgPool,
);
/** Scaled dot-product attention, softmax(q · kᵀ · scale) · v over heads. Heads of `q` may be a multiple of those of `k` and `v`. */
export const attention = checked(
  "nn.attention",
  [array, array, array, attentionOptions],
  attending.attention,
);
/** max(x, 0), with the derivative 0 at 0. */
export const relu = checked("nn.relu", [array], nn.relu);
/** The Gaussian error linear unit, x · Φ(x), by the error function and not by its approximation with tanh. */
export const gelu: UnaryOf<FloatName> = checked("nn.gelu", [array], nn.gelu);
/** The sigmoid linear unit (swish), x · sigmoid(x). */
export const silu: UnaryOf<FloatName> = checked("nn.silu", [array], nn.silu);
/** log(1 + exp(x)), without overflow. */
export const softplus: UnaryOf<FloatName> = checked("nn.softplus", [array], nn.softplus);
/** The logarithm of softmax along an axis, the last by default, without overflow. */
export const logSoftmax: AlongAxisOf<FloatName> = checked(
  "nn.logSoftmax",
  [array, axisOption],
  nn.logSoftmax,
);
/**
 * Batch normalization: the last axis with mean 0 and variance 1 over all others, then scaled and shifted; and the mean
 * and variance of this batch.
 */
export const batchNorm = checked(
  "nn.batchNorm",
  [array, array, array, epsilonOption],
  nn.batchNorm,
);
/** Layer normalization: each row of the last axis with mean 0 and variance 1, then scaled and shifted. */
export const layerNorm = checked(
  "nn.layerNorm",
  [array, array, array, epsilonOption],
  nn.layerNorm,
);
/** The mean cross-entropy of logits with integer labels; NaN where a label is no class. */
export const crossEntropy = checked("nn.crossEntropy", [array, labels], nn.crossEntropy);
/** The parameters after one step of stochastic gradient descent. */
export const sgd = checked("nn.sgd", [parameters, likewise, sgdOptions], nn.sgd);
/**
 * The parameters and the state after one step of AdamW (Adam with decoupled weight decay). The step of a new state is
 * 0.
 *
 * @example
 * ```ts
 * import { array, grad, mul, nn, sum, zeros } from "tilewright/arrays";
 * import type { NDArray } from "tilewright/arrays";
 *
 * const loss = (w: NDArray<"f32">) => sum(mul(w, w));
 * let w = array([1, 2]);
 * let state = { step: array(0), first: zeros([2]), second: zeros([2]) };
 * [w, state] = nn.adamw(w, grad(loss)(w), state, { learningRate: 0.01 });
 * ```
 */
export const adamw = checked("nn.adamw", [parameters, likewise, adamState, adamOptions], nn.adamw);
/**
 * An array in a format with scales: elements, and a scale for each block. Derivatives take it for a constant.
 *
 * @example
 * ```ts
 * import { nn, random } from "tilewright/arrays";
 *
 * const weights = random.normal(random.key(0), [64, 128]);
 * const packed = nn.quantizeBlocks(weights, "mxfp4"); // elements [64, 128], scales [64, 4]
 * const near = nn.dequantizeBlocks(packed, "bf16");
 * ```
 */
export const quantizeBlocks = checked(
  "nn.quantizeBlocks",
  [array, scaledFormat, quantizeOptions],
  scaling.quantizeBlocks,
);
/** The numbers of an array in a format with scales: elements times scales, in f32 or another float format. */
export const dequantizeBlocks = checked(
  "nn.dequantizeBlocks",
  [scaledTree, floatFormat],
  scaling.dequantizeBlocks,
);
/** The array with its scales plain, padded, or in the tiles that tensor cores of Blackwell take. */
export const withScaleLayout = checked(
  "nn.withScaleLayout",
  [scaledTree, scaleLayout],
  scaling.withScaleLayout,
);
/** What a format with scales leaves of an array, with the derivative of the identity (straight-through). */
export const fakeQuantize = checked(
  "nn.fakeQuantize",
  [array, scaledFormat, quantizeOptions],
  scaling.fakeQuantize,
);
/**
 * The product of [..., m, k] and [..., n, k], of which either or both are in formats with scales along k, as `jax.nn.scaled_matmul`.
 *
 * @example
 * ```ts
 * import { nn, random } from "tilewright/arrays";
 *
 * const x = random.normal(random.key(0), [4, 64]);
 * const weights = nn.quantizeBlocks(random.normal(random.key(1), [8, 64]), "nvfp4");
 * const y = nn.scaledMatmul(nn.quantizeBlocks(x, "nvfp4"), weights); // [4, 8]
 * ```
 */
export const scaledMatmul = checked(
  "nn.scaledMatmul",
  [scaledFactor, scaledFactor, scaledMatmulOptions],
  products.scaledMatmul,
);
/**
 * A product whose operands are quantised along what it sums, as `jax.nn.scaled_dot_general`; on the way back cotangents are, too.
 *
 * @example
 * ```ts
 * import { grad, mul, nn, random, sum } from "tilewright/arrays";
 * import type { NDArray } from "tilewright/arrays";
 *
 * const x = random.normal(random.key(0), [4, 64]);
 * const loss = (w: NDArray<"f32">) => {
 *   const y = nn.scaledDotGeneral(x, w, { contracting: [[1], [0]], formats: ["mxfp8e4m3", "mxfp8e4m3", "mxfp8e5m2"] });
 *   return sum(mul(y, y));
 * };
 * const gradient = grad(loss)(random.normal(random.key(1), [64, 8]));
 * ```
 */
export const scaledDotGeneral = checked(
  "nn.scaledDotGeneral",
  [array, array, scaledDotOptions],
  products.scaledDotGeneral,
);
/** An array of the host in a format with scales, such as a checkpoint's weights, as arrays. */
export const scaledArray = checked("nn.scaledArray", [scaledHost], scaling.scaledArray);
