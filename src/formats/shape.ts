/** Shapes of arrays, as programs give them: lists of extents. */
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
      found: `[${shape.map(optionText).join(", ")}]`,
    });
  }
  return shape.reduce((count, extent) => count * extent, 1);
}
