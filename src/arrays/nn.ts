/** What neural networks are made of, as plain functions of arrays. */
import type { DTypeName } from "../formats/dtype.ts";
import type { NDArray } from "./array.ts";
import {
  abs,
  add,
  astype,
  clip,
  div,
  equal,
  erf,
  exp,
  lessEqual,
  log1p,
  maximum,
  mul,
  neg,
  rsqrt,
  sigmoid,
  sqrt,
  sub,
  where,
} from "./functions.ts";
import { logsumexp, mean, sum, variance } from "./reductions.ts";
import { oneHot } from "./shapes.ts";
import type { AxisOption } from "./shapes.ts";
import { flatten, mapTree, rebuild } from "./tree.ts";

/** The larger of x and 0. Its derivative at 0 is 0, as in other libraries, where that of `maximum` is a half. */
export function relu<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return where(lessEqual(x, 0), 0, x);
}

/** x · Φ(x), by the error function. */
export function gelu<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return mul(mul(x, 0.5), add(erf(mul(x, Math.SQRT1_2)), 1));
}

/** x · sigmoid(x). */
export function silu<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return mul(x, sigmoid(x));
}

/** log(1 + exp(x)), without overflow. */
export function softplus<D extends DTypeName>(x: NDArray<D>): NDArray<D> {
  return add(maximum(x, 0), log1p(exp(neg(abs(x)))));
}

/** The logarithm of softmax, without overflow. */
export function logSoftmax<D extends DTypeName>(
  x: NDArray<D>,
  { axis = -1 }: AxisOption = {},
): NDArray<D> {
  return sub(x, logsumexp(x, { axis, keepDims: true }));
}

/** Options of `nn.batchNorm` and `nn.layerNorm`. */
export interface NormOptions {
  /** Added to the variance, so that nothing is divided by 0. */
  readonly epsilon?: number;
}

/** The last axis, over all others, with mean 0 and variance 1, then scaled and moved; and the mean and the variance that it had. */
export function batchNorm<D extends DTypeName>(
  x: NDArray<D>,
  scale: NDArray<D>,
  offset: NDArray<D>,
  { epsilon = 1e-5 }: NormOptions = {},
): readonly [normal: NDArray<D>, mean: NDArray<D>, variance: NDArray<D>] {
  const axis = x.shape.slice(0, -1).map((_, each) => each);
  const [middle, spread] = [mean(x, { axis }), variance(x, { axis })];
  const normal = mul(sub(x, middle), rsqrt(add(spread, epsilon)));
  return [add(mul(normal, scale), offset), middle, spread];
}

/** The last axis with mean 0 and variance 1, then scaled and moved. */
export function layerNorm<D extends DTypeName>(
  x: NDArray<D>,
  scale: NDArray<D>,
  offset: NDArray<D>,
  { epsilon = 1e-5 }: NormOptions = {},
): NDArray<D> {
  const centred = sub(x, mean(x, { axis: -1, keepDims: true }));
  const spread = rsqrt(add(variance(x, { axis: -1, keepDims: true }), epsilon));
  return add(mul(mul(centred, spread), scale), offset);
}

/** The mean over examples of -log of the probability that logits give to each label; NaN where one is no class. */
export function crossEntropy<D extends DTypeName>(
  logits: NDArray<D>,
  labels: NDArray<"i32">,
): NDArray<D> {
  // Chosen, not multiplied by 0 and 1: what is not the label's may be infinite.
  const classes = logits.shape.at(-1) ?? 0;
  const isLabel = oneHot(labels, classes, "bool");
  const picked = sum(where(isLabel, logits, 0), { axis: -1 });
  const isClass = equal(clip(labels, 0, classes - 1), labels);
  const known = where(isClass, picked, NaN);
  return neg(mean(sub(known, logsumexp(logits, { axis: -1 }))));
}

/** Options of `nn.sgd`. */
export interface SgdOptions {
  /** How far a step goes along the gradient. */
  readonly learningRate: number;
}

/** Parameters one step down the gradient. */
export function sgd<P>(parameters: P, gradients: P, { learningRate }: SgdOptions): P {
  const { leaves } = flatten(gradients);
  return mapTree(parameters, (leaf, i) => sub(leaf, mul(leaves[i] ?? leaf, learningRate)));
}

/** What `nn.adamw` keeps from step to step: the number of steps and both moments. */
export interface AdamState<P> {
  /** How many steps were made; 0 at first. */
  readonly step: NDArray<"f32">;
  /** The running mean of the gradients; zeros at first. */
  readonly first: P;
  /** The running mean of the squares of the gradients; zeros at first. */
  readonly second: P;
}

/** Hyperparameters of `nn.adamw`. */
export interface AdamOptions {
  /** The learning rate. */
  readonly learningRate?: number;
  /** β₁, the decay of the mean of the gradients. */
  readonly beta1?: number;
  /** β₂, the decay of the mean of their squares. */
  readonly beta2?: number;
  /** Added to the root of the second moment, so that nothing is divided by 0. */
  readonly epsilon?: number;
  /** How much of the parameters each step takes off, apart from the gradient. */
  readonly weightDecay?: number;
}

/** Parameters and state after one step of AdamW. The step counts from 0 in a new state. */
export function adamw<P>(
  parameters: P,
  gradients: P,
  state: AdamState<P>,
  options: AdamOptions = {},
): readonly [P, AdamState<P>] {
  const { learningRate = 1e-3, beta1 = 0.9, beta2 = 0.999 } = options;
  const { epsilon = 1e-8, weightDecay = 0 } = options;
  const step = add(state.step, 1);
  const grads = flatten(gradients).leaves;
  const moment = (before: P, decay: number, of: (gradient: NDArray) => NDArray): P =>
    mapTree(before, (leaf, i) => add(mul(leaf, decay), mul(of(grads[i] ?? leaf), 1 - decay)));
  const first = moment(state.first, beta1, (gradient) => gradient);
  const second = moment(state.second, beta2, (gradient) => mul(gradient, gradient));
  const bias = (decay: number): NDArray => sub(1, powerOf(decay, step));
  const firsts = flatten(first).leaves;
  const seconds = flatten(second).leaves;
  const leaves = flatten(parameters).leaves.map((leaf, i) => {
    const corrected = (of: NDArray | undefined, decay: number): NDArray =>
      div(of ?? leaf, astype(bias(decay), leaf.dtype));
    const root = add(sqrt(corrected(seconds[i], beta2)), epsilon);
    const change = div(corrected(firsts[i], beta1), root);
    return sub(leaf, mul(add(change, mul(leaf, weightDecay)), learningRate));
  });
  return [rebuild(parameters, leaves), { step, first, second }];
}

/** number ^ exponent, for a positive number. */
function powerOf(base: number, exponent: NDArray): NDArray {
  return exp(mul(exponent, Math.log(base)));
}
