/** Batch normalisation over all axes but one, in f64, rounded at the end. */
import { sizeOf } from "../ops/index.ts";
import { countOf, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { elementsOfNumbers, numbersOf } from "./scalars.ts";

/** Numbers of an operand with the feature that each belongs to. */
interface Features {
  readonly numbers: Float64Array;
  readonly count: number;
  readonly featureOf: (place: number) => number;
}

function featuresOf(operand: Tensor, axis: number): Features {
  const count = operand.shape[axis] as number;
  const inner = sizeOf(operand.shape.slice(axis + 1));
  return {
    numbers: numbersOf(operand),
    count,
    featureOf: (place) => Math.floor(place / inner) % count,
  };
}

function meanOf(
  { numbers, count, featureOf }: Features,
  value: (place: number) => number,
): Float64Array {
  const sums = new Float64Array(count);
  numbers.forEach((_, place) => {
    const feature = featureOf(place);
    sums[feature] = (sums[feature] as number) + value(place);
  });
  return sums.map((sum) => (sum * count) / numbers.length);
}

function made(
  like: { readonly element: Tensor["element"]; readonly shape: readonly number[] },
  numbers: Float64Array,
): Tensor {
  return tensor(like.element, like.shape, elementsOfNumbers(like.element, numbers));
}

function normalised(
  { numbers, featureOf }: Features,
  parts: { readonly [N in "scale" | "offset" | "mean" | "variance"]: Float64Array },
  epsilon: number,
): Float64Array {
  return numbers.map((value, place) => {
    const feature = featureOf(place);
    const at = (name: keyof typeof parts) => parts[name][feature] as number;
    const deviation = Math.sqrt(at("variance") + epsilon);
    return ((value - at("mean")) / deviation) * at("scale") + at("offset");
  });
}

export function batchNormInference(
  operands: { readonly [N in "operand" | "scale" | "offset" | "mean" | "variance"]: Tensor },
  epsilon: number,
  axis: number,
): Tensor {
  const { operand, scale, offset, mean, variance } = operands;
  const parts = {
    scale: numbersOf(scale),
    offset: numbersOf(offset),
    mean: numbersOf(mean),
    variance: numbersOf(variance),
  };
  return made(operand, normalised(featuresOf(operand, axis), parts, epsilon));
}

export function batchNormTraining(
  operands: { readonly [N in "operand" | "scale" | "offset"]: Tensor },
  epsilon: number,
  axis: number,
): readonly Tensor[] {
  const { operand, scale, offset } = operands;
  const features = featuresOf(operand, axis);
  const { numbers, featureOf } = features;
  const mean = meanOf(features, (place) => numbers[place] as number);
  const variance = meanOf(
    features,
    (place) => ((numbers[place] as number) - (mean[featureOf(place)] as number)) ** 2,
  );
  const parts = { scale: numbersOf(scale), offset: numbersOf(offset), mean, variance };
  const output = made(operand, normalised(features, parts, epsilon));
  return [output, made(scale, mean), made(scale, variance)];
}

/** Gradients of the operand, of scale and of offset. */
export function batchNormGradient(
  operands: { readonly [N in "operand" | "scale" | "mean" | "variance" | "gradient"]: Tensor },
  epsilon: number,
  axis: number,
): readonly Tensor[] {
  const { operand, scale, gradient } = operands;
  const features = featuresOf(operand, axis);
  const { numbers, featureOf } = features;
  const [mean, variance, scales, gradients] = [
    operands.mean,
    operands.variance,
    scale,
    gradient,
  ].map(numbersOf) as [Float64Array, Float64Array, Float64Array, Float64Array];
  const centred = (place: number) =>
    (numbers[place] as number) - (mean[featureOf(place)] as number);
  const inverse = variance.map((value) => 1 / Math.sqrt(value + epsilon));
  const perFeature = countOf(operand) / features.count;
  const gradientMean = meanOf(features, (place) => gradients[place] as number);
  const productMean = meanOf(features, (place) => (gradients[place] as number) * centred(place));
  const result = numbers.map((_, place) => {
    const feature = featureOf(place);
    const factor = inverse[feature] as number;
    const correction = centred(place) * (productMean[feature] as number) * factor * factor;
    const slope = (gradients[place] as number) - (gradientMean[feature] as number) - correction;
    return (scales[feature] as number) * factor * slope;
  });
  const scaleGradient = productMean.map((value, i) => value * perFeature * (inverse[i] as number));
  const offsetGradient = gradientMean.map((value) => value * perFeature);
  return [made(operand, result), made(scale, scaleGradient), made(scale, offsetGradient)];
}
