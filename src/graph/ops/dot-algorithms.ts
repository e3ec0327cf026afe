/**
 * The algorithms that a product may ask for, those of XLA. One names the formats that operands are rounded to and how many
 * products of parts make one product: with several, an operand is cut into parts that together hold it, so nothing is rounded.
 *
 * | formats, sum          | products | f32 operands are                             |
 * |-----------------------|----------|----------------------------------------------|
 * | bf16 bf16 f32         | 1        | rounded to bf16                              |
 * | bf16 bf16 f32         | 3, 6, 9  | two or three bf16 parts each: taken as they are |
 * | tf32 tf32 f32         | 1        | rounded to tf32                              |
 * | tf32 tf32 f32         | 3        | taken as they are                            |
 *
 * Sums are never less exact here than the format that an algorithm sums in.
 */
import type { ElementType } from "./elements.ts";
import { elements } from "./elements.ts";
import type { DotAlgorithm } from "./structures.ts";

/** Formats of both operands and of sums, with the numbers of products that there are. */
const known: readonly (readonly [operands: string, sum: string, products: readonly number[]])[] = [
  ["f16", "f16", [1]],
  ["f16", "f32", [1]],
  ["bf16", "bf16", [1]],
  ["bf16", "f32", [1, 3, 6, 9]],
  ["tf32", "f32", [1, 3]],
  ["f32", "f32", [1]],
  ["f64", "f64", [1]],
];

function isSmallFloat(format: string): boolean {
  return /^f8/.test(format);
}

/** Whether there is such an algorithm for operands of these elements. */
export function isKnownAlgorithm(
  algorithm: DotAlgorithm,
  lhs: ElementType,
  rhs: ElementType,
): boolean {
  const left = algorithm.lhs_precision_type;
  const right = algorithm.rhs_precision_type;
  // Products of FP8 are of operands that are FP8 already.
  if (isSmallFloat(left) && isSmallFloat(right))
    return algorithm.num_primitive_operations === 1 && isSmallFloat(lhs) && isSmallFloat(rhs);
  return known.some(
    ([operands, sum, products]) =>
      left === operands &&
      right === operands &&
      algorithm.accumulation_type === sum &&
      products.includes(algorithm.num_primitive_operations),
  );
}

export const knownAlgorithmsText = [
  ...known.map(([format, sum, products]) => `${format} ${format} ${sum} in ${products.join(", ")}`),
  "FP8 of FP8 operands in 1",
].join("; ");

export function algorithmText(algorithm: DotAlgorithm): string {
  const { lhs_precision_type: left, rhs_precision_type: right } = algorithm;
  return `${left} ${right} ${algorithm.accumulation_type} in ${algorithm.num_primitive_operations}`;
}

/** The format that an algorithm rounds an operand to; undefined where the operand is taken as it is. */
export type RoundedFormat = "tf32" | "bf16" | "f16";

export function roundedFormat(
  algorithm: DotAlgorithm | undefined,
  side: "lhs" | "rhs",
  operand: ElementType,
): RoundedFormat | undefined {
  if (algorithm === undefined || algorithm.num_primitive_operations > 1) return undefined;
  const format = algorithm[`${side}_precision_type`];
  if (elements[operand].kind !== "float" || format === operand) return undefined;
  return format === "tf32" || format === "bf16" || format === "f16" ? format : undefined;
}
