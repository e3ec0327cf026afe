/** Rules of products, transforms, factorisations and random bits. */
import type { GraphOp, GraphRules } from "../../ops/index.ts";
import * as batchNorm from "../batch-norm.ts";
import { convolve } from "../convolution.ts";
import type { ConvolutionSettings } from "../convolution.ts";
import { countOf, emptyTensor } from "../value.ts";
import type { Tensor } from "../value.ts";
import { einsum } from "../einsum.ts";
import { pause, pieceWork, unsupported } from "../frame.ts";
import type { Frame, RuleResult, Steps } from "../frame.ts";
import * as algebra from "../linear-algebra.ts";
import { dotGeneral, plainDotNumbers, roundedOperand } from "../products.ts";
import { randomBits } from "../random.ts";
import { domainOf, numbersOf, writer } from "../scalars.ts";
import { numbers, one } from "./shared.ts";

function convolutionSettings(
  { attributes }: GraphOp<"stablehlo.convolution"> | GraphOp<"stablehlo.dynamic_conv">,
  low: readonly number[],
): ConvolutionSettings {
  return {
    numbers: attributes.dimension_numbers,
    windows: attributes.dimension_numbers.input_spatial_dimensions.map((_, i) => ({
      stride: attributes.window_strides?.[i] ?? 1,
      low: low[i] ?? 0,
      inputDilation: attributes.lhs_dilation?.[i] ?? 1,
      kernelDilation: attributes.rhs_dilation?.[i] ?? 1,
      reversed: attributes.window_reversal?.[i] ?? false,
    })),
    featureGroups: attributes.feature_group_count,
    batchGroups: attributes.batch_group_count,
  };
}

function* uniform(op: GraphOp<"stablehlo.rng">, frame: Frame): Steps<Tensor> {
  const result = emptyTensor(frame.result(op));
  const [low, high] = [op.operands.a, op.operands.b].map(
    (value) => numbersOf(frame.tensor(value))[0] ?? 0,
  );
  const { random } = frame.session;
  const write = writer(result.element, result.data);
  const domain = domainOf(result.element);
  const draw =
    op.attributes.rng_distribution === "UNIFORM"
      ? () => (low as number) + ((high as number) - (low as number)) * random()
      : () =>
          (low as number) +
          (high as number) *
            Math.sqrt(-2 * Math.log(1 - random())) *
            Math.cos(2 * Math.PI * random());
  for (let i = 0; i < countOf(result); i++) {
    const value = draw();
    write(
      i,
      domain === "wide" ? BigInt(Math.floor(value)) : domain === "real" ? value : Math.floor(value),
    );
    if (i % pieceWork === pieceWork - 1) yield pause;
  }
  return result;
}

/** An operand of a product, rounded to the format that its algorithm names. */
function multiplied(
  { operands, attributes }: GraphOp<"stablehlo.dot_general"> | GraphOp<"stablehlo.convolution">,
  side: "lhs" | "rhs",
  frame: Frame,
): Tensor {
  const operand = frame.tensor(operands[side]);
  const { isModular } = frame.session.arithmetic;
  return isModular ? operand : roundedOperand(operand, side, attributes.algorithm);
}

export const productRules = {
  "stablehlo.dot_general": (op, frame) =>
    one(
      dotGeneral(
        multiplied(op, "lhs", frame),
        multiplied(op, "rhs", frame),
        op.attributes.dot_dimension_numbers,
        frame.result(op),
        frame.session.arithmetic.isModular,
      ),
    ),
  "stablehlo.dot": (op, frame) => {
    const left = frame.tensor(op.operands.lhs);
    return one(
      dotGeneral(
        left,
        frame.tensor(op.operands.rhs),
        plainDotNumbers(left),
        frame.result(op),
        frame.session.arithmetic.isModular,
      ),
    );
  },
  "stablehlo.einsum": function* (op, frame) {
    const operands = frame.tensors([op.operands.lhs, op.operands.rhs]);
    const result = yield* einsum(operands, op.attributes.einsum_config, frame.result(op));
    if (result === undefined)
      throw unsupported(op, `its formula is ${op.attributes.einsum_config}`);
    return [result];
  },
  "stablehlo.unary_einsum": function* (op, frame) {
    const operands = [frame.tensor(op.operands.operand)];
    const result = yield* einsum(operands, op.attributes.einsum_config, frame.result(op));
    if (result === undefined)
      throw unsupported(op, `its formula is ${op.attributes.einsum_config}`);
    return [result];
  },
  "stablehlo.convolution": (op, frame) =>
    one(
      convolve(
        multiplied(op, "lhs", frame),
        multiplied(op, "rhs", frame),
        frame.result(op),
        convolutionSettings(op, op.attributes.padding?.map(([low = 0]) => low) ?? []),
        frame.session.arithmetic.isModular,
      ),
    ),
  "stablehlo.dynamic_conv": (op, frame) => {
    const padding = numbers(frame.tensor(op.operands.d_padding));
    const low = padding.filter((_, i) => i % 2 === 0);
    return one(
      convolve(
        frame.tensor(op.operands.lhs),
        frame.tensor(op.operands.rhs),
        frame.result(op),
        convolutionSettings(op, low),
      ),
    );
  },
  "stablehlo.fft": (op, frame) =>
    one(
      algebra.fourier(
        frame.tensor(op.operands.operand),
        op.attributes.fft_type,
        op.attributes.fft_length,
        frame.result(op),
      ),
    ),
  "stablehlo.cholesky": (op, frame) =>
    one(algebra.cholesky(frame.tensor(op.operands.a), op.attributes.lower)),
  "stablehlo.triangular_solve": ({ operands, attributes }, frame) =>
    one(
      algebra.triangularSolve(frame.tensor(operands.a), frame.tensor(operands.b), {
        leftSide: attributes.left_side,
        lower: attributes.lower,
        unitDiagonal: attributes.unit_diagonal,
        transpose: attributes.transpose_a,
      }),
    ),
  "stablehlo.batch_norm_inference": ({ operands, attributes }, frame) => [
    batchNorm.batchNormInference(
      {
        operand: frame.tensor(operands.operand),
        scale: frame.tensor(operands.scale),
        offset: frame.tensor(operands.offset),
        mean: frame.tensor(operands.mean),
        variance: frame.tensor(operands.variance),
      },
      attributes.epsilon,
      attributes.feature_index,
    ),
  ],
  "stablehlo.batch_norm_training": ({ operands, attributes }, frame) =>
    batchNorm.batchNormTraining(
      {
        operand: frame.tensor(operands.operand),
        scale: frame.tensor(operands.scale),
        offset: frame.tensor(operands.offset),
      },
      attributes.epsilon,
      attributes.feature_index,
    ),
  "stablehlo.batch_norm_grad": ({ operands, attributes }, frame) =>
    batchNorm.batchNormGradient(
      {
        operand: frame.tensor(operands.operand),
        scale: frame.tensor(operands.scale),
        mean: frame.tensor(operands.mean),
        variance: frame.tensor(operands.variance),
        gradient: frame.tensor(operands.grad_output),
      },
      attributes.epsilon,
      attributes.feature_index,
    ),
  "stablehlo.rng": (op, frame) => one(uniform(op, frame)),
  "stablehlo.rng_bit_generator": (op, frame) =>
    randomBits(
      frame.tensor(op.operands.initial_state),
      op.attributes.rng_algorithm,
      frame.result(op, 1),
    ),
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
