/**
 * Walking arrays: strides, and copies of a box of elements from places of one array to places of another.
 * Every op that only moves elements is such a copy.
 *
 *   transpose [2, 3] -> [3, 2]     box [3, 2]   from strides [1, 3]   to strides [2, 1]
 *   reverse of an axis             from the last element, stride -1
 *   slice 1:9:2                    from element 1, stride 2
 *   broadcast                      stride 0
 */
import { slotsOf } from "../ops/index.ts";
import type { ElementLanes } from "../ops/index.ts";
import type { Tensor } from "./datum.ts";

/** Elements between neighbours along each axis of a row-major array. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--)
    strides[axis] = (strides[axis + 1] as number) * (shape[axis + 1] as number);
  return strides;
}

/** The place of an index. */
export function placeOf(index: readonly number[], strides: readonly number[]): number {
  return index.reduce((place, each, axis) => place + each * (strides[axis] as number), 0);
}

/** Calls `visit` with every index of a box in row-major order; the array is the same one each time. */
export function forEachIndex(
  shape: readonly number[],
  visit: (index: readonly number[]) => void,
): void {
  const index = new Array<number>(shape.length).fill(0);
  if (shape.includes(0)) return;
  for (;;) {
    visit(index);
    let axis = shape.length - 1;
    for (; axis >= 0; axis--) {
      const next = (index[axis] as number) + 1;
      index[axis] = next;
      if (next < (shape[axis] as number)) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/** Calls `visit` with two places for every index of a box, in row-major order. */
export function forEachPlace(
  shape: readonly number[],
  first: { readonly start: number; readonly strides: readonly number[] },
  second: { readonly start: number; readonly strides: readonly number[] },
  visit: (first: number, second: number) => void,
): void {
  if (shape.includes(0)) return;
  const rank = shape.length;
  if (rank === 0) {
    visit(first.start, second.start);
    return;
  }
  const inner = shape[rank - 1] as number;
  const innerFirst = first.strides[rank - 1] as number;
  const innerSecond = second.strides[rank - 1] as number;
  forEachIndex(shape.slice(0, -1), (index) => {
    let left = first.start + placeOf(index, first.strides);
    let right = second.start + placeOf(index, second.strides);
    for (let i = 0; i < inner; i++) {
      visit(left, right);
      left += innerFirst;
      right += innerSecond;
    }
  });
}

/** Where a box of elements begins in an array, and how its axes step. */
export interface Walk {
  readonly start: number;
  readonly strides: readonly number[];
}

/** Copies a box from one tensor's lanes to another's. */
export function copyBox(
  shape: readonly number[],
  source: Tensor,
  from: Walk,
  target: ElementLanes,
  to: Walk,
): void {
  const { lanes } = source;
  if (slotsOf(source.element) === 1) {
    forEachPlace(shape, from, to, (left, right) => {
      target[right] = lanes[left] as never;
    });
    return;
  }
  forEachPlace(shape, from, to, (left, right) => {
    target[2 * right] = lanes[2 * left] as never;
    target[2 * right + 1] = lanes[2 * left + 1] as never;
  });
}
