/** The axes of an operand of dot_general by what they are to the product, and how its algorithm, or that of a convolution, multiplies. */
import type { MatmulPrecision } from "../../kernels/matmul/problem.ts";
import { roundedFormat } from "../ops/dot-algorithms.ts";
import type { GraphOp } from "../ops/node.ts";
import type { DotNumbers } from "../ops/structures.ts";
import { axesBeside } from "./rules/gather.ts";
import { tensorTypeOf } from "./storage.ts";

/** Whether a product's algorithm rounds what it multiplies. */
export function roundsOperands({
  operands,
  attributes,
}: GraphOp<"stablehlo.dot_general">): boolean {
  const { algorithm } = attributes;
  return (["lhs", "rhs"] as const).some(
    (side) => roundedFormat(algorithm, side, tensorTypeOf(operands[side]).element) !== undefined,
  );
}

/** How tensor cores make a product of f32; undefined of other elements, and of algorithms that they have not. */
export function splitPrecisionOf({
  operands,
  attributes,
}: GraphOp<"stablehlo.dot_general"> | GraphOp<"stablehlo.convolution">):
  | MatmulPrecision
  | undefined {
  const isF32 = [operands.lhs, operands.rhs].every(
    (value) => tensorTypeOf(value).element === "f32",
  );
  const { algorithm } = attributes;
  if (!isF32 || algorithm === undefined) return undefined;
  const {
    lhs_precision_type: left,
    rhs_precision_type: right,
    num_primitive_operations: count,
  } = algorithm;
  return left === right ? precisions[`${left} ${count}`] : undefined;
}

const precisions: { readonly [formatAndProducts: string]: MatmulPrecision } = {
  "tf32 1": "tf32",
  "tf32 3": "tf32x3",
  "bf16 3": "bf16x3",
  "bf16 6": "bf16x6",
  "bf16 9": "bf16x9",
  "f32 1": "ieee",
};

/** Axes of a product's operand by their role, and the axes of the result that they become. */
export interface DotAxes {
  readonly batch: readonly number[];
  readonly free: readonly number[];
  readonly contracted: readonly number[];
}

export function dotAxes(numbers: DotNumbers, side: "lhs" | "rhs", rank: number): DotAxes {
  const batch = numbers[`${side}_batching_dimensions`];
  const contracted = numbers[`${side}_contracting_dimensions`];
  return { batch, contracted, free: axesBeside(rank, batch, contracted) };
}
