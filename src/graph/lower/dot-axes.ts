/** The axes of an operand of dot_general by what they are to the product, and whether its algorithm rounds what it multiplies. */
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
