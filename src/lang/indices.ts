/** Positions and counts in a kernel, which may be known while tracing, at launch, or only as it runs. */
import type { Value } from "../ir/node.ts";
import type { Size } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { Scalar } from "./elementwise.ts";
import { isSize, sizeValue } from "./sizes.ts";
import { useValue, wrongKind } from "./traced.ts";

/** A position or a count: a number, a size known at launch, or a scalar. */
export type Index = Size | Scalar<"i32">;

export function isIndex(item: unknown): item is Index {
  return item instanceof Scalar || isSize(item);
}

/** An index as a scalar value of the kernel. */
export function indexValue(role: string, index: unknown, location: Location): Value {
  if (index instanceof Scalar) return useValue(index, location);
  if (isSize(index)) return sizeValue(index, location);
  return wrongKind(role, "a number, an i32 scalar or a size", index, location);
}

/** Refuses a position that is known to lie outside `extent`. */
export function requireWithin(
  what: string,
  index: unknown,
  extent: Size | undefined,
  location: Location,
): void {
  if (typeof index !== "number" || typeof extent !== "number") return;
  if (Number.isInteger(index) && index >= 0 && index < extent) return;
  throw new TilewrightError({
    code: "TW1016",
    message: `${what} has no element ${index}`,
    location,
    expected: `0 to ${extent - 1}`,
    found: String(index),
  });
}
