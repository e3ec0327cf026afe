/** What convolutions of the library have in common: types, the order of axes, and when they are worth it. */
import type { MatmulPrecision } from "../../../kernels/matmul/problem.ts";
import type { GraphOp } from "../../ops/node.ts";
import type { ConvolutionNumbers } from "../../ops/structures.ts";
import { sizeOf } from "../../ops/types.ts";
import type { TensorType } from "../../ops/types.ts";
import { typeOfValue } from "../../transform/arithmetic.ts";
import { splitPrecisionOf } from "../dot-axes.ts";
import { halves, leastProducts } from "../library.ts";

export type Convolution = GraphOp<"stablehlo.convolution">;
export type Channels = "last" | "first";

export interface Types {
  readonly lhs: TensorType;
  readonly rhs: TensorType;
  readonly out: TensorType;
}

export function typesOf(op: Convolution): Types | undefined {
  const [result] = op.results;
  if (result === undefined) return undefined;
  const { lhs, rhs } = op.operands;
  return { lhs: typeOfValue(lhs), rhs: typeOfValue(rhs), out: typeOfValue(result) };
}

/** The axes of an array in the order of the library's, for channels that stand so. */
export function axesInOrder(
  outer: number,
  channels: number,
  spatial: readonly number[],
  order: Channels,
): readonly number[] {
  return order === "last" ? [outer, ...spatial, channels] : [outer, channels, ...spatial];
}

export function isInOrder(axes: readonly number[]): boolean {
  return axes.every((axis, i) => axis === i);
}

/** Where channels stand in both the input and the result. */
export function channelsOf(numbers: ConvolutionNumbers): Channels | undefined {
  return (["last", "first"] as const).find(
    (order) =>
      isInOrder(
        axesInOrder(
          numbers.input_batch_dimension,
          numbers.input_feature_dimension,
          numbers.input_spatial_dimensions,
          order,
        ),
      ) &&
      isInOrder(
        axesInOrder(
          numbers.output_batch_dimension,
          numbers.output_feature_dimension,
          numbers.output_spatial_dimensions,
          order,
        ),
      ),
  );
}

/** How f32 is multiplied, which the library is always told. */
export function precisionOf(op: Convolution): { readonly precision?: MatmulPrecision } {
  if (typeOfValue(op.operands.lhs).element !== "f32") return {};
  return { precision: splitPrecisionOf(op) ?? "ieee" };
}

export function productsOf({ attributes }: Convolution, { rhs, out }: Types): number {
  const outputs = rhs.shape[attributes.dimension_numbers.kernel_output_feature_dimension] ?? 1;
  return sizeOf(out.shape) * (sizeOf(rhs.shape) / Math.max(1, outputs));
}

/** Whether the formats are the library's, and the products so many that its kernels take less time than ours. */
export function isWorthwhile(op: Convolution, types: Types): boolean {
  const { lhs, rhs, out } = types;
  const spatial = lhs.shape.length - 2;
  return (
    (halves.includes(lhs.element) || (lhs.element === "f32" && out.element === "f32")) &&
    lhs.element === rhs.element &&
    spatial >= 1 &&
    spatial <= 3 &&
    productsOf(op, types) >= leastProducts
  );
}
