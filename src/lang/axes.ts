/**
 * Axes as the user numbers them: from 0, or from the end as in NumPy.
 *
 *   a tile of shape [8, 64, 4]    axis 0 1 2, or -3 -2 -1
 */

/** The axis counted from 0; one that does not exist stays as it is, for inference to refuse. */
export function axisFromEnd(axis: number, rank: number): number {
  return Number.isInteger(axis) && axis < 0 && axis >= -rank ? axis + rank : axis;
}
