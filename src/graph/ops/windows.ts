/**
 * How windows lie on the axes of an operand, with what an op's attributes leave out filled in: evaluator and lowering read
 * the same windows.
 */

/** How windows lie on an axis. */
export interface Window {
  readonly size: number;
  readonly stride: number;
  readonly baseDilation: number;
  readonly windowDilation: number;
  /** Padding before the first element. */
  readonly low: number;
}

/** Attributes as `reduce_window` has them, and `select_and_scatter` some. */
interface WindowAttributes {
  readonly window_strides?: readonly number[] | undefined;
  readonly base_dilations?: readonly number[] | undefined;
  readonly window_dilations?: readonly number[] | undefined;
  readonly padding?: readonly (readonly number[])[] | undefined;
}

/** A window of each size, one an axis. */
export function windowsOf(
  sizes: readonly number[],
  attributes: WindowAttributes,
): readonly Window[] {
  return sizes.map((size, axis) => ({
    size,
    stride: attributes.window_strides?.[axis] ?? 1,
    baseDilation: attributes.base_dilations?.[axis] ?? 1,
    windowDilation: attributes.window_dilations?.[axis] ?? 1,
    low: attributes.padding?.[axis]?.[0] ?? 0,
  }));
}
