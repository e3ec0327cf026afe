/**
 * Convolutions with channels last, as a CPU makes them without copies of windows: a tap of all windows of a row is a matrix in memory,
 * position by channel, and the sum goes over taps. Padding is made first and weights are turned, so that no window has an edge:
 *
 *   forward, gradient of x      [b, 0, 1, f] x [0, 1, i, o] -> [b, 0, 1, f]      out[b, row] = Σ tap   x[b, row + tap] · w[tap]
 *   gradient of w               [f, 0, 1, b] x [i, 0, 1, o] -> [0, 1, b, f]      dw[tap] = Σ b, row   x[b, row + tap]ᵀ · dOut[b, row]
 *
 * What is in this form is marked: the lowering has a kernel for it (`lower/convolution/rows.ts`).
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { elements } from "../ops/elements.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import type { ConvolutionNumbers } from "../ops/structures.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import { splatOf, transpose, typeOfValue } from "../transform/arithmetic.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** The attribute of convolutions in this form. */
const mark = "tilewright.rows";

export function isByRows({ extra }: Convolution): boolean {
  return extra.has(mark);
}

/** Fewer products are as well computed element by element. */
const leastProducts = 1 << 14;

/** Weights of a tap, in elements, that stay in the caches beside what they are multiplied with. */
const mostWeights = 1 << 14;

const isOne = (steps: readonly number[] | undefined): boolean =>
  (steps ?? []).every((step) => step === 1);

const inOrder = (axes: readonly number[]): boolean => axes.every((axis, i) => axis === i);

interface Form {
  readonly isGradientOfWeights: boolean;
  /** The axes of the right operand in the order of the form. */
  readonly right: readonly number[];
  readonly padding: readonly (readonly [number, number])[];
}

function isForward(numbers: ConvolutionNumbers): boolean {
  const { input_batch_dimension: batch, input_feature_dimension: feature } = numbers;
  const result = [
    numbers.output_batch_dimension,
    ...numbers.output_spatial_dimensions,
    numbers.output_feature_dimension,
  ];
  return inOrder([batch, ...numbers.input_spatial_dimensions, feature]) && inOrder(result);
}

function isOfWeights(numbers: ConvolutionNumbers): boolean {
  const { input_batch_dimension: batch, input_feature_dimension: feature } = numbers;
  const result = [
    ...numbers.output_spatial_dimensions,
    numbers.output_batch_dimension,
    numbers.output_feature_dimension,
  ];
  return inOrder([feature, ...numbers.input_spatial_dimensions, batch]) && inOrder(result);
}

function formOf(op: Convolution): Form | undefined {
  const { attributes, operands, results } = op;
  const [result] = results;
  const numbers = attributes.dimension_numbers;
  const [x, w] = [typeOfValue(operands.lhs), typeOfValue(operands.rhs)];
  if (result === undefined || x.shape.length !== 4) return undefined;
  const out = typeOfValue(result);
  const isPlain =
    attributes.batch_group_count === 1 &&
    attributes.feature_group_count === 1 &&
    isOne(attributes.lhs_dilation) &&
    isOne(attributes.window_strides) &&
    !(attributes.window_reversal ?? []).includes(true);
  const { kind, bits } = elements[x.element];
  const isOurs = kind === "float" && (x.element === "f32" || bits === 16);
  if (!isPlain || !isOurs || x.element !== w.element) return undefined;
  if (out.element !== x.element && out.element !== "f32") return undefined;
  const forward = isForward(numbers);
  if (!forward && !(isOfWeights(numbers) && isOne(attributes.rhs_dilation))) return undefined;
  const right = forward
    ? [
        ...numbers.kernel_spatial_dimensions,
        numbers.kernel_input_feature_dimension,
        numbers.kernel_output_feature_dimension,
      ]
    : [
        numbers.kernel_input_feature_dimension,
        ...numbers.kernel_spatial_dimensions,
        numbers.kernel_output_feature_dimension,
      ];
  const padding = attributes.padding ?? [
    [0, 0],
    [0, 0],
  ];
  const isGradientOfWeights = !forward;
  return { isGradientOfWeights, right, padding: padding as Form["padding"] };
}

function isWorthwhile(op: Convolution, { isGradientOfWeights, right }: Form): boolean {
  const [result] = op.results;
  const out = result === undefined ? [] : typeOfValue(result).shape;
  const weights = right.map((axis) => typeOfValue(op.operands.rhs).shape[axis] ?? 1);
  const outputs = out.at(-1) ?? 1;
  const channels = isGradientOfWeights ? (out[2] ?? 1) : (weights[2] ?? 1);
  const summed = sizeOf(weights) / Math.max(1, outputs);
  return sizeOf(out) * summed >= leastProducts && channels * outputs <= mostWeights;
}

/** The convolution in this form; undefined where it has none, or is in it. */
export function rowConvolution(op: Convolution, builder: GraphBuilder): GraphValue | undefined {
  if (isByRows(op)) return undefined;
  const form = formOf(op);
  const [result] = op.results;
  if (form === undefined || result === undefined || !isWorthwhile(op, form)) return undefined;
  const { isGradientOfWeights, right, padding } = form;
  const numbers = op.attributes.dimension_numbers;
  const { lhs, rhs } = op.operands;
  return builder.one(
    "stablehlo.convolution",
    {
      lhs: padded(builder, lhs, padding),
      rhs: inOrder(right) ? rhs : transpose(builder, rhs, right),
    },
    {
      ...op.attributes,
      padding: padding.map(() => [0, 0]),
      dimension_numbers: {
        ...numbers,
        ...(isGradientOfWeights
          ? { kernel_input_feature_dimension: 0, kernel_spatial_dimensions: [1, 2] }
          : { kernel_input_feature_dimension: 2, kernel_spatial_dimensions: [0, 1] }),
        kernel_output_feature_dimension: 3,
      },
    },
    { types: [result.type], extra: new Map([[mark, { kind: "unit" } as const]]) },
  );
}

function padded(builder: GraphBuilder, operand: GraphValue, padding: Form["padding"]): GraphValue {
  if (padding.flat().every((width) => width === 0)) return operand;
  const zero = splatOf(builder, tensorType(typeOfValue(operand).element, []), 0);
  const edges = (side: 0 | 1): readonly number[] => [0, ...padding.map((each) => each[side]), 0];
  return builder.one(
    "stablehlo.pad",
    { operand, padding_value: zero },
    {
      edge_padding_low: edges(0),
      edge_padding_high: edges(1),
      interior_padding: [0, 0, 0, 0],
    },
  );
}
