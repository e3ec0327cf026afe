/**
 * Literals: the values of constants. One element stands for all of them where they are equal.
 *
 *   dense<1.0> : tensor<4096x4096xf32>      { splat: true,  data: Float32Array [1] }
 *   dense<[1, 2]> : tensor<2xi64>           { splat: false, data: BigInt64Array [1n, 2n] }
 *   dense<(1.0, 2.0)> : tensor<complex<f32>> { splat: true, data: Float32Array [1, 2] }
 */
import { allocateTensorData, elementConstructor, slotsOf } from "./elements.ts";
import type { TensorData } from "./elements.ts";
import { sizeOf } from "./types.ts";
import type { TensorType } from "./types.ts";

export interface Literal {
  readonly type: TensorType;
  /** Whether the elements hold one element, which all of the tensor's are equal to. */
  readonly splat: boolean;
  /** Elements in row-major order; not to be written to. */
  readonly data: TensorData;
}

/** A literal over `elements`, which are kept: one element of them, or all that the type has. */
export function literal(type: TensorType, data: TensorData): Literal {
  const slots = slotsOf(type.element);
  const count = sizeOf(type.shape);
  const constructor = elementConstructor(type.element);
  if (!(data instanceof constructor)) throw new Error(`${type.element} has data of another kind`);
  if (data.length !== slots && data.length !== count * slots)
    throw new Error(`${data.length} data do not fill ${count} elements`);
  // What has no elements may be written with one, which is none of them.
  if (count === 0) return Object.freeze({ type, splat: false, data: new constructor(0) });
  return Object.freeze({ type, splat: data.length === slots, data });
}

/** All elements' elements: those of the literal itself, or copies of its one element. */
export function expandElements({ type, splat, data }: Literal): TensorData {
  const slots = slotsOf(type.element);
  const count = sizeOf(type.shape);
  // The one element that a literal without elements may be written with is none of them.
  if (count === 0) return allocateTensorData(type.element, 0);
  if (!splat || count === 1) return data;
  const all = allocateTensorData(type.element, count);
  if (slots === 1) all.fill(data[0] as never);
  else for (let i = 0; i < all.length; i++) all[i] = data[i % slots] as never;
  return all;
}
