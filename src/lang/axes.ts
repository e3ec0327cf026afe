/**
 * Axes as the user numbers them: from 0, or from the end as in NumPy.
 *
 *   a tile of shape [8, 64, 4]    axis 0 1 2, or -3 -2 -1
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { optionText, requireKnownOptions } from "../support/options.ts";
import { wrongKind } from "./traced.ts";

/** The axis counted from 0; one that does not exist stays as it is, for inference to refuse. */
export function axisFromEnd(axis: number, rank: number): number {
  return Number.isInteger(axis) && axis < 0 && axis >= -rank ? axis + rank : axis;
}

/** Options of which `axis` is one, as `{ axis: 1 }`; an axis that stands by itself is refused with the option. */
export function requireAxisOptions(
  method: string,
  options: unknown,
  known: readonly string[],
  location: Location,
): void {
  if (typeof options !== "number" && !Array.isArray(options)) {
    requireKnownOptions(method, options, known, "TW1033", location);
    return;
  }
  throw new TilewrightError({
    code: "TW1033",
    message: `the axis of ${method} is an option`,
    location,
    expected: `{ ${known.join(", ")} }`,
    found: optionText(options),
    remedy: `write { axis: ${Array.isArray(options) ? `[${options.join(", ")}]` : options} }`,
  });
}

/** The axis of an operation that has no other options. */
export function axisOption(method: string, options: unknown, location: Location): number {
  requireAxisOptions(method, options, ["axis"], location);
  return (options as { readonly axis: number }).axis;
}

/** Axes of a reduction, each named once. */
export function requireDifferentAxes(
  method: string,
  shape: readonly number[],
  axes: readonly number[],
  location: Location,
): void {
  for (const axis of axes)
    if (typeof axis !== "number") wrongKind(`the axis of ${method}`, "a number", axis, location);
  const own = axes.map((axis) => axisFromEnd(axis, shape.length));
  if (new Set(own).size < own.length)
    wrongKind(`the axes of ${method}`, "one or more different axes", axes, location);
}
