/**
 * Literals: the values of constants. One element stands for all of them where they are equal.
 *
 *   dense<1.0> : tensor<4096x4096xf32>      { splat: true,  lanes: Float32Array [1] }
 *   dense<[1, 2]> : tensor<2xi64>           { splat: false, lanes: BigInt64Array [1n, 2n] }
 *   dense<(1.0, 2.0)> : tensor<complex<f32>> { splat: true, lanes: Float32Array [1, 2] }
 */
import { allocateElementLanes, laneConstructor, slotsOf } from "./elements.ts";
import type { ElementLanes } from "./elements.ts";
import { sizeOf } from "./types.ts";
import type { TensorType } from "./types.ts";

export interface Literal {
  readonly type: TensorType;
  /** Whether the lanes hold one element, which all of the tensor's are equal to. */
  readonly splat: boolean;
  /** Elements in row-major order; not to be written to. */
  readonly lanes: ElementLanes;
}

/** A literal over `lanes`, which are kept: one element of them, or all that the type has. */
export function literal(type: TensorType, lanes: ElementLanes): Literal {
  const slots = slotsOf(type.element);
  const count = sizeOf(type.shape);
  const constructor = laneConstructor(type.element);
  if (!(lanes instanceof constructor)) throw new Error(`${type.element} has lanes of another kind`);
  if (lanes.length !== slots && lanes.length !== count * slots)
    throw new Error(`${lanes.length} lanes do not fill ${count} elements`);
  // What has no elements may be written with one, which is none of them.
  if (count === 0) return Object.freeze({ type, splat: false, lanes: new constructor(0) });
  return Object.freeze({ type, splat: lanes.length === slots, lanes });
}

/** All elements' lanes: those of the literal itself, or copies of its one element. */
export function expandLanes({ type, splat, lanes }: Literal): ElementLanes {
  const slots = slotsOf(type.element);
  const count = sizeOf(type.shape);
  // The one element that a literal without elements may be written with is none of them.
  if (count === 0) return allocateElementLanes(type.element, 0);
  if (!splat || count === 1) return lanes;
  const all = allocateElementLanes(type.element, count);
  if (slots === 1) all.fill(lanes[0] as never);
  else for (let i = 0; i < all.length; i++) all[i] = lanes[i % slots] as never;
  return all;
}
