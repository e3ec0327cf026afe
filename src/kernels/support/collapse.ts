/**
 * Collapses the axes of an operation. Axes of extent 1 are dropped, axes are ordered by the memory order of the first result, and neighbouring axes are
 * merged where every array is contiguous across them:
 *
 *   out f32[64, 128, 32], x f32[64, 128, 32], bias f32[32]
 *
 *   | axis | extent | out  | x    | bias |          | axis | extent | out | x  | bias |
 *   |------|--------|------|------|------|          |------|--------|-----|----|------|
 *   | 0    | 64     | 4096 | 4096 | 0    |    ──▶   | 0    | 8192   | 32  | 32 | 0    |
 *   | 1    | 128    | 32   | 32   | 0    |          | 1    | 32     | 1   | 1  | 1    |
 *   | 2    | 32     | 1    | 1    | 1    |
 *
 * A stride of 0 repeats an array along the axis.
 */
import type { StridedAxis } from "./strided.ts";

/** An index is an i32. */
const mostElements = 2 ** 31 - 1;

export interface CollapsedAxis extends StridedAxis {
  readonly isApart: boolean;
}

/**
 * The axes of a launch, slowest first; at least one. The first array is the one that decides their order. Axes that are
 * set apart, such as those of a reduction, only become one with each other.
 */
export function collapsedAxes(
  shape: readonly number[],
  arrays: readonly (readonly number[])[],
  apart: readonly number[] = [],
): readonly CollapsedAxis[] {
  const axes = shape
    .map((extent, axis) => ({
      extent,
      strides: arrays.map((strides) => strides[axis] ?? 0),
      isApart: apart.includes(axis),
    }))
    .filter(({ extent }) => extent !== 1)
    .sort((left, right) => (right.strides[0] ?? 0) - (left.strides[0] ?? 0));
  const merged: CollapsedAxis[] = [];
  for (const axis of axes) {
    const outer = merged.at(-1);
    if (outer !== undefined && continues(outer, axis))
      merged[merged.length - 1] = joined(outer, axis);
    else merged.push(axis);
  }
  if (merged.length > 0) return merged;
  return [{ extent: 1, strides: arrays.map(() => 1), isApart: false }];
}

/** Whether a step along the outer axis is, for every array, as far as the whole inner one. */
function continues(outer: CollapsedAxis, inner: CollapsedAxis): boolean {
  return (
    outer.isApart === inner.isApart &&
    outer.extent * inner.extent <= mostElements &&
    outer.strides.every((stride, array) => stride === (inner.strides[array] ?? 0) * inner.extent)
  );
}

function joined(outer: CollapsedAxis, inner: CollapsedAxis): CollapsedAxis {
  return { ...inner, extent: outer.extent * inner.extent };
}
