/**
 * One axis of a tensor, as reductions, scans, searches and sorts see it: what lies before the axis and
 * behind it is flattened, so that every axis of every shape is the middle one of three.
 *
 *   shape [2, 3, 4, 5], axis 2    outer 6   length 4   inner 5
 *   element (o, k, i)                at (o · length + k) · inner + i
 */
export interface Axis {
  readonly outer: number;
  /** Elements along the axis, at least one. */
  readonly length: number;
  readonly inner: number;
}
