/**
 * How products of f32 are multiplied, said on each: a product or convolution that leaves it open gets an `algorithm`.
 *
 * | the program asks for        | matmulPrecision f32           | matmulPrecision tf32   |
 * |-----------------------------|-------------------------------|------------------------|
 * | nothing, DEFAULT            | three products of tf32 parts  | one product of tf32    |
 * | HIGH                        | three products of bf16 parts  | the same               |
 * | HIGHEST                     | six products of bf16 parts    | the same               |
 * | an algorithm                | that                          | that                   |
 *
 * On a target without tensor cores, such as a CPU, all but the last are one product of f32, which is no less exact and the cheapest.
 *
 * A few products are summed step by step in f32, whatever is asked for (`ops/products.ts`).
 */
import type { ElementType } from "../ops/elements.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import { shortSum } from "../ops/products.ts";
import type { DotAlgorithm } from "../ops/structures.ts";
import { sizeOf } from "../ops/types.ts";
import { typeOfValue } from "../transform/arithmetic.ts";

type Product = GraphOp<"stablehlo.dot_general"> | GraphOp<"stablehlo.convolution">;

function isProduct(op: AnyGraphOp): op is Product {
  return op.kind === "stablehlo.dot_general" || op.kind === "stablehlo.convolution";
}

function productsOf(format: "tf32" | "bf16" | "f32", count: number): DotAlgorithm {
  return {
    lhs_precision_type: format,
    rhs_precision_type: format,
    accumulation_type: "f32",
    lhs_component_count: 1,
    rhs_component_count: 1,
    num_primitive_operations: count,
    allow_imprecise_accumulation: false,
  };
}

/** How many products each result is the sum of. */
function depthOf(op: Product): number {
  if (op.kind === "stablehlo.convolution") {
    const { shape } = typeOfValue(op.operands.rhs);
    const outputs = shape[op.attributes.dimension_numbers.kernel_output_feature_dimension] ?? 1;
    return sizeOf(shape) / Math.max(1, outputs);
  }
  const { shape } = typeOfValue(op.operands.lhs);
  const { lhs_contracting_dimensions: axes } = op.attributes.dot_dimension_numbers;
  return sizeOf(axes.map((axis) => shape[axis] ?? 1));
}

const summedInSingle: ReadonlySet<ElementType> = new Set(["f32", "bf16", "f16"]);

/** The op with the algorithm that it is made by; undefined where it has one, or none of these is for it. */
export function withAlgorithm(
  op: AnyGraphOp,
  precision: MatmulPrecision,
  hasTensorCores = true,
): Product | undefined {
  if (!isProduct(op) || op.attributes.algorithm !== undefined) return undefined;
  const element = (value: GraphValue): ElementType => typeOfValue(value).element;
  const isSingle =
    element(op.operands.lhs) === "f32" &&
    element(op.operands.rhs) === "f32" &&
    op.results.every((value) => summedInSingle.has(element(value)));
  if (!isSingle || depthOf(op) <= shortSum) return undefined;
  const { precision_config: config = [] } = op.attributes;
  // What XLA calls high and highest is what both operands ask for at least.
  const onTensorCores = (): DotAlgorithm =>
    config.includes("HIGHEST")
      ? productsOf("bf16", 6)
      : config.includes("HIGH")
        ? productsOf("bf16", 3)
        : productsOf("tf32", precision === "tf32" ? 1 : 3);
  const algorithm = hasTensorCores ? onTensorCores() : productsOf("f32", 1);
  return op.kind === "stablehlo.dot_general"
    ? { ...op, attributes: { ...op.attributes, algorithm } }
    : { ...op, attributes: { ...op.attributes, algorithm } };
}
