/**
 * Slices that end before their axis does. The axis is first cut to the window of its own extent that ends there, which
 * begins before the array; the slice is then one of that window:
 *
 *   x: [n], slice(start, 64, { end })       e = end from 0 to n, shift = e − n, which is at most 0
 *
 *   x.at(slice(shift, n))                   positions shift … e − 1, of which those before 0 are out of bounds
 *     .at(slice(start − shift, 64))         positions start … start + 63, of which those from e on are
 */
import type { Value } from "../ir/node.ts";
import type { RefType } from "../ir/types.ts";
import type { Location } from "../support/location.ts";
import { indexValue } from "./indices.ts";
import type { Index } from "./indices.ts";
import { sizeValue } from "./sizes.ts";
import { emitValue } from "./trace.ts";

/** The window that ends where the slices do, and where slices that begin at `starts` begin in it. */
export function endedWindow(
  source: Value,
  starts: readonly Value[],
  ends: readonly (Index | undefined)[],
  location: Location,
): { readonly ref: Value; readonly offsets: readonly Value[] } {
  if (ends.every((end) => end === undefined)) return { ref: source, offsets: starts };
  const { shape } = source.type as RefType;
  const compute = (fn: "add" | "sub" | "min" | "max", left: Value, right: Value): Value =>
    emitValue("binary", { left, right }, { fn }, location);
  const zero = sizeValue(0, location);
  const shifts = shape.map((extent, axis): Value => {
    const end = ends[axis];
    if (end === undefined) return zero;
    const whole = sizeValue(extent, location);
    const given = indexValue("the end of a slice", end, location);
    return compute("sub", compute("max", compute("min", given, whole), zero), whole);
  });
  const attributes = { sizes: shape, dropped: [] };
  const ref = emitValue("slice_ref", { ref: source, offsets: shifts }, attributes, location);
  const offsets = starts.map((start, axis) => {
    const shift = shifts[axis];
    return ends[axis] === undefined || shift === undefined ? start : compute("sub", start, shift);
  });
  return { ref, offsets };
}
