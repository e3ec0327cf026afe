/** Batch normalisation as sums and elementwise ops, computed in f32 or wider and rounded at the end. */
import type { GraphBuilder } from "../../infer/builder.ts";
import { elements } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf } from "../../ops/types.ts";
import { binary, broadcastInDim, convert, like, sum, typeOfValue } from "../arithmetic.ts";

/** Arithmetic of one normalisation: over all axes but the feature's. */
class Features {
  readonly builder: GraphBuilder;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly element: ElementType;

  constructor(builder: GraphBuilder, operand: GraphValue, axis: number) {
    this.builder = builder;
    const { shape, element } = typeOfValue(operand);
    this.shape = shape;
    this.axis = axis;
    this.element = elements[element].bits < 32 ? "f32" : element;
  }

  /** A value in the type that is computed in. */
  wide(value: GraphValue): GraphValue {
    return convert(this.builder, value, this.element);
  }

  narrow(value: GraphValue, wanted: GraphValue): GraphValue {
    return convert(this.builder, value, typeOfValue(wanted).element);
  }

  /** One value a feature, repeated to the operand's shape. */
  spread(operand: GraphValue): GraphValue {
    return broadcastInDim(this.builder, operand, this.shape, [this.axis]);
  }

  sum(value: GraphValue): GraphValue {
    const axes = this.shape.map((_, axis) => axis).filter((axis) => axis !== this.axis);
    return sum(this.builder, value, axes);
  }

  mean(value: GraphValue): GraphValue {
    const total = this.sum(value);
    const count = sizeOf(this.shape) / (this.shape[this.axis] ?? 1);
    return binary(this.builder, "stablehlo.divide", total, like(this.builder, total, count));
  }

  subtract(lhs: GraphValue, rhs: GraphValue): GraphValue {
    return binary(this.builder, "stablehlo.subtract", lhs, rhs);
  }

  multiply(lhs: GraphValue, rhs: GraphValue): GraphValue {
    return binary(this.builder, "stablehlo.multiply", lhs, rhs);
  }

  /** √(variance + ε). */
  deviation(variance: GraphValue, epsilon: number): GraphValue {
    const moved = binary(
      this.builder,
      "stablehlo.add",
      variance,
      like(this.builder, variance, epsilon),
    );
    return this.builder.one("stablehlo.sqrt", { operand: moved }, {});
  }

  normalised(
    operand: GraphValue,
    parts: { readonly [N in "scale" | "offset" | "mean" | "variance"]: GraphValue },
    epsilon: number,
  ): GraphValue {
    const centred = this.subtract(operand, this.spread(parts.mean));
    const deviation = this.spread(this.deviation(parts.variance, epsilon));
    const unit = binary(this.builder, "stablehlo.divide", centred, deviation);
    const scaled = this.multiply(unit, this.spread(parts.scale));
    return binary(this.builder, "stablehlo.add", scaled, this.spread(parts.offset));
  }
}

export function expandInference(
  { operands, attributes }: GraphOp<"stablehlo.batch_norm_inference">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const features = new Features(builder, operands.operand, attributes.feature_index);
  const parts = {
    scale: features.wide(operands.scale),
    offset: features.wide(operands.offset),
    mean: features.wide(operands.mean),
    variance: features.wide(operands.variance),
  };
  const result = features.normalised(features.wide(operands.operand), parts, attributes.epsilon);
  return [features.narrow(result, operands.operand)];
}

export function expandTraining(
  { operands, attributes }: GraphOp<"stablehlo.batch_norm_training">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const features = new Features(builder, operands.operand, attributes.feature_index);
  const operand = features.wide(operands.operand);
  const mean = features.mean(operand);
  const centred = features.subtract(operand, features.spread(mean));
  const variance = features.mean(features.multiply(centred, centred));
  const scale = features.wide(operands.scale);
  const offset = features.wide(operands.offset);
  const parts = { scale, offset, mean, variance };
  const result = features.normalised(operand, parts, attributes.epsilon);
  return [
    features.narrow(result, operands.operand),
    features.narrow(mean, operands.scale),
    features.narrow(variance, operands.scale),
  ];
}

export function expandGradient(
  { operands, attributes }: GraphOp<"stablehlo.batch_norm_grad">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const features = new Features(builder, operands.operand, attributes.feature_index);
  const gradient = features.wide(operands.grad_output);
  const centred = features.subtract(
    features.wide(operands.operand),
    features.spread(features.wide(operands.mean)),
  );
  const deviation = features.deviation(features.wide(operands.variance), attributes.epsilon);
  const one = like(builder, deviation, 1);
  const inverse = binary(builder, "stablehlo.divide", one, deviation);
  const gradientMean = features.mean(gradient);
  const products = features.multiply(gradient, centred);
  const productMean = features.mean(products);
  const factor = features.multiply(productMean, features.multiply(inverse, inverse));
  const correction = features.multiply(centred, features.spread(factor));
  const slope = features.subtract(
    features.subtract(gradient, features.spread(gradientMean)),
    correction,
  );
  const scale = features.multiply(features.wide(operands.scale), inverse);
  return [
    features.narrow(features.multiply(slope, features.spread(scale)), operands.operand),
    features.narrow(features.multiply(features.sum(products), inverse), operands.scale),
    features.narrow(features.sum(gradient), operands.scale),
  ];
}
