/**
 * Arrays are declared with any strides, so that two elements of a window may lie in one place:
 *
 *   x: [4, 4] with strides [2, 1]     x[0, 2] is x[1, 0]
 *
 * To read that is no matter. A store of both leaves it open which value stays, and an update counts twice.
 */
import { product, visitRuns } from "./view.ts";
import type { View } from "./view.ts";

/** Combinations of distances that are tried before elements are taken to lie apart. */
const mostTried = 1_000_000;

/** Whether elements of a view that are in bounds lie in one place. */
export function sharesPlaces({ memory, sizes, strides, lower, upper, elements }: View): boolean {
  if (memory.description.space !== "gmem" || elements !== undefined) return false;
  let reach = 0;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    const most = (upper[axis] as number) - (lower[axis] as number) - 1;
    if (most < 0) return false;
    if (most === 0) continue;
    const stride = strides[axis] as number;
    if (stride <= reach) {
      const extents = upper.map((end, each) => end - (lower[each] as number));
      return coincides(extents, strides);
    }
    reach += most * stride;
  }
  return false;
}

/**
 * Whether two elements lie in one place: some distances along the axes, not all of them 0, come to nothing together. Where
 * each axis begins behind what lies inside it, nothing has to be tried.
 */
export function coincides(shape: readonly number[], strides: readonly number[]): boolean {
  if (shape.includes(0)) return false;
  const axes = shape
    .map((extent, axis) => ({ most: extent - 1, stride: strides[axis] ?? 0 }))
    .filter(({ most }) => most > 0)
    .toSorted((a, b) => a.stride - b.stride);
  const within: number[] = [];
  let reach = 0;
  for (const { most, stride } of axes) {
    within.push(reach);
    reach += most * stride;
  }
  if (axes.every(({ stride }, axis) => stride > (within[axis] ?? 0))) return false;
  let tried = 0;
  // From the widest axis to the narrowest: what is left must be within reach of those that follow.
  const closes = (axis: number, sum: number, isMoved: boolean): boolean => {
    const own = axes[axis];
    if (own === undefined) return sum === 0 && isMoved;
    if (own.stride === 0) return sum === 0;
    const inner = within[axis] ?? 0;
    const from = Math.max(-own.most, Math.ceil((-inner - sum) / own.stride));
    const to = Math.min(own.most, Math.floor((inner - sum) / own.stride));
    for (let distance = from; distance <= to; distance += 1) {
      tried += 1;
      if (tried > mostTried) return false;
      if (closes(axis - 1, sum + distance * own.stride, isMoved || distance !== 0)) return true;
    }
    return false;
  };
  return closes(axes.length - 1, 0, false);
}

/** The elements of a view by flat index; −1 for those out of bounds. */
export function listedElements(view: View): Int32Array {
  const elements = new Int32Array(product(view.sizes)).fill(-1);
  visitRuns(view, (element, flat, length, stride) => {
    for (let at = 0; at < length; at++) elements[flat + at] = element + at * stride;
  });
  return elements;
}
