/**
 * Sizes as the user writes them. A size is a number, a named dimension or a quotient of
 * one; used as an index in a kernel's body it becomes a scalar, which the host computes, so that nothing
 * of it can wrap around:
 *
 *   cdiv(n, 128)  ->  %0 = size {of = ceildiv(n, 128)}
 */
import { i32 } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import { ceilDivSize, dimension } from "../ir/size.ts";
import type { Dimension, Size } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { constantValue } from "./constants.ts";
import { requireName } from "./names.ts";
import { emitValue } from "./trace.ts";
import { describe } from "./traced.ts";

/** A dimension whose extent is an argument of the launch, the same wherever the name stands. */
export function dim(name: string, options: { readonly multipleOf?: number } = {}): Dimension {
  const location = captureLocation();
  requireKnownOptions("dim", options, ["multipleOf"], "TW1033", location);
  const { multipleOf = 1 } = options;
  requireName("a dimension", name, location);
  if (!isPositiveInteger(multipleOf))
    refuseSize(
      `dimension ${name} cannot be a multiple of ${describe(multipleOf)}`,
      multipleOf,
      location,
    );
  return dimension(name, multipleOf);
}

/** How many blocks of `by` cover `size`. */
export function cdiv(size: number, by: number): number;
export function cdiv(size: Size, by: number): Size;
export function cdiv(size: Size, by: number): Size {
  const location = captureLocation();
  const isCount = typeof size !== "number" || (Number.isSafeInteger(size) && size >= 0);
  if (!isSize(size) || !isCount || !isPositiveInteger(by))
    refuseSize(
      "cdiv takes a size and a positive whole number",
      isSize(size) && isCount ? by : size,
      location,
    );
  return ceilDivSize(size, by);
}

function refuseSize(message: string, found: unknown, location: Location): never {
  throw new TilewrightError({
    code: "TW1027",
    message,
    location,
    expected: "a positive whole number",
    found: describe(found),
  });
}

export function isPositiveInteger(item: unknown): item is number {
  return Number.isSafeInteger(item) && (item as number) > 0;
}

/** Whether `item` is a number or a size known at launch; a number is not yet checked. */
export function isSize(item: unknown): item is Size {
  if (typeof item === "number") return true;
  if (typeof item !== "object" || item === null || !("kind" in item)) return false;
  return item.kind === "dimension" || item.kind === "ceildiv" || item.kind === "product";
}

/** Whether `item` is a size that an array can have. */
export function isExtent(item: unknown): item is Size {
  return isSize(item) && (typeof item !== "number" || isPositiveInteger(item));
}

/** A size as a scalar value of the kernel. */
export function sizeValue(size: Size, location: Location): Value {
  if (typeof size === "number") return constantValue(i32, [], size, location);
  return emitValue("size", {}, { of: size }, location);
}
