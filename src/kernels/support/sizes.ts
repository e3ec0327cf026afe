/**
 * Sizes that kernels are specialized for. The power of two that divides a size is known when an operation is planned, and kernels are
 * specialized for it, so that memory accesses are as wide as the sizes allow:
 *
 *   columns = 4096   dim("columns", { multipleOf: 16 })        columns = 1001   dim("columns")
 */
import type { Dimension, Size } from "../../ir/size.ts";
import { evaluateSize } from "../../ir/size.ts";
import { rowMajorStrides } from "../../formats/shape.ts";
import { dim } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";

/** More says nothing that an access could use. */
const greatest = 16;

/** The power of two, up to 16, that divides a size. */
export function alignment(size: number): number {
  let multipleOf = greatest;
  while (size % multipleOf !== 0) multipleOf /= 2;
  return multipleOf;
}

/** A dimension that promises what its value keeps. */
export function alignedDimension(name: string, size: number): Dimension {
  return dim(name, { multipleOf: alignment(size) });
}

/** The shape and the strides of an array of an operation, for the sizes of one launch. */
export function laidOut(
  { shape, strides }: Pick<TensorSpec, "shape" | "strides">,
  dimensions: { readonly [name: string]: number },
): { readonly shape: readonly number[]; readonly strides: readonly number[] } {
  const values = new Map(Object.entries(dimensions));
  const evaluated = (sizes: readonly Size[]): readonly number[] =>
    sizes.map((size) => evaluateSize(size, values));
  const extents = evaluated(shape);
  return {
    shape: extents,
    strides: strides === undefined ? rowMajorStrides(extents) : evaluated(strides),
  };
}

/** The strides of an array along the axes of a shape that it broadcasts to; 0 where it repeats. */
export function broadcastStrides(
  spec: TensorSpec | undefined,
  extents: readonly number[],
  dimensions: { readonly [name: string]: number },
): readonly number[] {
  if (spec === undefined) throw new Error("every array has a specification");
  const { shape, strides } = laidOut(spec, dimensions);
  const missing = extents.length - shape.length;
  return extents.map((extent, axis) =>
    extent !== 1 && shape[axis - missing] === extent ? (strides[axis - missing] ?? 0) : 0,
  );
}

/** The least power of two from `size` on. */
export function powerOfTwoFrom(size: number): number {
  let power = 1;
  while (power < size) power *= 2;
  return power;
}

/** CUDA threads of a program thread, each of which accesses up to 16 bytes at once. */
export const threadsPerBlock = 128;
/** Registers of a thread at most. */
export const registersPerThread = 255;
export const widestAccess = 16;
