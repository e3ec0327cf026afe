/**
 * Windows: how the indices given to `ref.at(…)` become offsets and sizes, one for each axis.
 *
 *   x: [n, 512]    x.at(slice(i.mul(64), 64), 3)
 *
 *   | axis | index            | offset | size | dropped |
 *   |------|------------------|--------|------|---------|
 *   | 0    | slice(64 i, 64)  | 64 i   | 64   | no      |
 *   | 1    | 3                | 3      | 1    | yes     |
 *
 * An axis that a tile of indices picks along is taken whole. What is out of bounds for certain is refused here; the
 * rest the simulator sees.
 */
import { multiplySizes, sizeText } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import type { RefType } from "../ir/types.ts";
import { typeText } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isIndex } from "./indices.ts";
import type { Index } from "./indices.ts";
import { isTile } from "./elementwise.ts";
import type { IndexedAxis } from "./gathered-ref.ts";
import { requireKnownOptions } from "../support/options.ts";
import { Scalar } from "./elementwise.ts";
import { isExtent } from "./sizes.ts";
import { origin, wrongKind } from "./traced.ts";

/** `size` elements of an axis, from `start` on. */
export interface Slice {
  readonly kind: "slice";
  /** The first index. */
  readonly start: Index;
  /** The number of indices. */
  readonly size: Size;
  /** The first position that is out of bounds, where that is before the axis ends. */
  readonly end?: Index;
}

/** Where a slice ends besides at the end of its axis. */
export interface SliceOptions {
  /** The first position that does not belong to it any more: what lies there loads as the fill value and is not stored. */
  readonly end?: Index;
}

/** A whole axis. */
export interface All {
  readonly kind: "all";
}

/** What `at` takes for one axis; an index drops the axis. */
export type WindowIndex = Index | Slice | All;

/** A whole axis of a window. */
export const all: All = Object.freeze({ kind: "all" });

/**
 * `size` elements of an axis of global memory or shared memory, from `start` on. With `end`, which may be traced, those
 * from that position on are out of bounds, so that a block of rows ends where its group does.
 */
export function slice(start: Index, size: Size, options: SliceOptions = {}): Slice {
  const location = captureLocation();
  requireKnownOptions("slice", options, ["end"], "TW1033", location);
  const { end } = options;
  if (!isIndex(start) || (typeof start === "number" && !Number.isInteger(start)))
    wrongKind("the start of a slice", "a number, an i32 scalar or a size", start, location);
  if (!isExtent(size)) wrongKind("the size of a slice", "a positive whole number", size, location);
  if (end === undefined) return Object.freeze({ kind: "slice", start, size });
  if (!isIndex(end) || (typeof end === "number" && !Number.isInteger(end)))
    wrongKind("the end of a slice", "a number, an i32 scalar or a size", end, location);
  return Object.freeze({ kind: "slice", start, size, end });
}

/** Elements `index · size` to `(index + 1) · size` of an axis: the index counts blocks of `size`, a number or a size known at launch. */
export function block(index: Index, size: Size): Slice {
  const location = captureLocation();
  if (!isExtent(size))
    wrongKind("the size of a block", "a positive whole number or a size", size, location);
  if (index instanceof Scalar) return atLocation(location, () => slice(index.mul(size), size));
  if (!isIndex(index) || (typeof index === "number" && !Number.isInteger(index)))
    return wrongKind("the index of a block", "a number, an i32 scalar or a size", index, location);
  return slice(multiplySizes(index, size), size);
}

export interface Window {
  /** Ends of slices, for axes that have one. */
  readonly ends: readonly (Index | undefined)[];
  readonly offsets: readonly Index[];
  readonly sizes: readonly Size[];
  readonly dropped: readonly number[];
  /** Axes of the window, which are whole, that tiles of indices pick along. */
  readonly indexed: readonly IndexedAxis[];
}

function isForm<K extends "slice" | "all">(
  item: unknown,
  kind: K,
): item is Extract<Slice | All, { readonly kind: K }> {
  return typeof item === "object" && item !== null && "kind" in item && item.kind === kind;
}

export function resolveWindow(
  type: RefType,
  indices: readonly unknown[],
  location: Location,
): Window {
  if (indices.length > type.shape.length) {
    throw new TilewrightError({
      code: "TW1017",
      message: `${indices.length} indices for ${typeText(type)}`,
      location,
      expected: `at most ${type.shape.length}`,
      found: `${indices.length}`,
    });
  }
  const dropped: number[] = [];
  const indexed: IndexedAxis[] = [];
  const parts = type.shape.map((extent, axis): Slice => {
    const given = axis < indices.length ? indices[axis] : all;
    // A tile without axes is an index like a scalar.
    const item = isTile(given) && given.shape.length === 0 ? new Scalar(given[origin]) : given;
    if (isTile(item)) indexed.push({ axis: axis - dropped.length, tile: item });
    if (isTile(item) || isForm(item, "all")) return { kind: "slice", start: 0, size: extent };
    if (isForm(item, "slice")) {
      if (item.end !== undefined && type.space !== "gmem")
        throw new TilewrightError({
          code: "TW1036",
          message: `a slice of ${typeText(type)} has an end of its own`,
          location,
          expected: "global memory",
          found: type.space,
        });
      // A window on global memory may overhang; it loads fill values and stores are clipped.
      requireInside(type, axis, item, type.space === "gmem", location);
      return item;
    }
    if (!isIndex(item))
      return wrongKind(
        "an index",
        "a number, an i32 scalar, a slice, a tile of indices or `all`",
        item,
        location,
      );
    const element: Slice = { kind: "slice", start: item, size: 1 };
    requireInside(type, axis, element, false, location);
    dropped.push(axis);
    return element;
  });
  return {
    ends: parts.map(({ end }) => end),
    offsets: parts.map(({ start }) => start),
    sizes: parts.map(({ size }) => size),
    dropped,
    indexed,
  };
}

function requireInside(
  type: RefType,
  axis: number,
  { start, size }: Slice,
  mayOverhang: boolean,
  location: Location,
): void {
  const extent = type.shape[axis] ?? 0;
  const first = typeof start === "number" ? start : 0;
  const isPosition = Number.isInteger(first) && (mayOverhang || first >= 0);
  const isKnown = typeof extent === "number" && typeof size === "number";
  if (isPosition && (mayOverhang || !isKnown || first + size <= extent)) return;
  const place = size === 1 ? `element ${first}` : `${sizeText(size)} elements from ${first}`;
  throw new TilewrightError({
    code: "TW1016",
    message: `axis ${axis} of ${typeText(type)} has no ${place}`,
    location,
    expected: expectedPlace(extent, size, mayOverhang),
    found: place,
  });
}

function expectedPlace(extent: Size, size: Size, mayOverhang: boolean): string {
  if (mayOverhang) return "a whole number";
  if (typeof extent !== "number") return "a whole number from 0";
  return size === 1 ? `0 to ${extent - 1}` : `start and size within ${extent} elements`;
}
