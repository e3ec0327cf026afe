/** Shapes of arrays, as programs give them: lists of extents, and where elements lie in row-major order. */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

/** The number of elements of a shape. */
export function elementCount(shape: readonly number[]): number {
  if (!isList(shape))
    throw new TilewrightError({
      code: "TW0003",
      message: "the shape is not a list of extents",
      expected: "a list such as [64, 128], or [] for a single element",
      found: optionText(shape),
      remedy: "write the extents in brackets",
    });
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) {
    throw new TilewrightError({
      code: "TW0003",
      message: "an extent of the shape is not a whole number from zero up",
      expected: "whole numbers from 0",
      found: `[${shape.map(optionText).join(", ")}]`,
    });
  }
  return shape.reduce((count, extent) => count * extent, 1);
}

/** The position of an element in row-major order, as an index along each axis. */
export function coordinatesOf(index: number, extents: readonly number[]): number[] {
  const coordinates = extents.map(() => 0);
  let rest = index;
  for (let axis = extents.length - 1; axis >= 0; axis--) {
    const extent = extents[axis] ?? 1;
    coordinates[axis] = rest % extent;
    rest = Math.floor(rest / extent);
  }
  return coordinates;
}

/** Strides of a contiguous array, last axis fastest. */
export function rowMajorStrides(sizes: readonly number[]): number[] {
  const strides = new Array<number>(sizes.length);
  let stride = 1;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= sizes[axis] as number;
  }
  return strides;
}
