/**
 * Layouts of shared memory: the byte at which each element of an allocation lies. Three steps lead from
 * an element to its byte, each of them optional:
 *
 * 1. *Order*: the axes are stored in another order, major first. `order 1 0` stores the last two axes
 *    transposed; axes before them stay in front.
 * 2. *Tile*: the last stored axes are cut into tiles, each contiguous; tiles follow one another row by
 *    row.
 * 3. *Swizzle*: chunks of 16 bytes change places within each row of 128, so that columns of a tile
 *    spread over the banks. The hardware knows three patterns, all on bits of the byte offset:
 *
 *    | swizzle | bits 4 and up become    | repeats every | chunks of 8 rows of the swizzle's width  |
 *    |---------|-------------------------|---------------|------------------------------------------|
 *    | 128     | 4–6 ^= 7–9              | 1024 bytes    | row r holds chunk c at c ^ r             |
 *    | 64      | 4–5 ^= 7–8              | 512 bytes     | row r holds chunk c at c ^ (r >> 1)      |
 *    | 32      | 4 ^= 7                  | 256 bytes     | row r holds chunk c at c ^ (r >> 2)      |
 *
 * For bf16 on [64, 128], `shared(tile 8 64, swizzle 128)`:
 *
 *   | element  | tile  | inside | offset in bytes        | after the swizzle      |
 *   |----------|-------|--------|------------------------|------------------------|
 *   | 0, 0     | 0, 0  | 0, 0   | 0                      | 0                      |
 *   | 1, 0     | 0, 0  | 1, 0   | 128                    | 128 ^ 16 = 144         |
 *   | 1, 8     | 0, 0  | 1, 8   | 144                    | 144 ^ 16 = 128         |
 *   | 0, 64    | 0, 1  | 0, 0   | 1024                   | 1024                   |
 *   | 8, 0     | 1, 0  | 0, 0   | 2048                   | 2048                   |
 *
 * Elements of 4 bits pack two to a byte. The text leaves out what is not there: `shared()` is plain
 * row-major order.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { Memo } from "../../support/memo.ts";
import { optionText } from "../../support/options.ts";
import { product } from "./index-bits.ts";

export const swizzles = [0, 32, 64, 128] as const;
/** The bytes over which shared memory is swizzled, as TMA and wgmma know them; 0 for none. */
export type Swizzle = (typeof swizzles)[number];

/** How an array lies in shared memory: the order of its axes, its tiling and its swizzle. */
export interface SharedLayout {
  /** The last axes as stored, major first; empty where they are in their own order. */
  readonly order: readonly number[];
  /** Extents of a tile over the last stored axes; empty where there are none. */
  readonly tile: readonly number[];
  /** Width of the swizzle in bytes. */
  readonly swizzle: Swizzle;
  /** The canonical text; equal texts mean equal layouts. */
  readonly text: string;
}

export interface SharedSteps {
  readonly order?: readonly number[];
  readonly tile?: readonly number[];
  readonly swizzle?: number;
}

export function sharedLayout({ order = [], tile = [], swizzle = 0 }: SharedSteps): SharedLayout {
  const sorted = [...order].sort((left, right) => left - right);
  if (sorted.some((axis, index) => axis !== index))
    throw sharedError(
      `order ${order.join(" ")} is no permutation`,
      "each axis once, counted from 0",
      order.join(" "),
    );
  if (tile.some((extent) => !Number.isInteger(extent) || extent < 1))
    throw sharedError(
      `tile ${tile.join(" ")} has extents that are no counts`,
      "whole numbers from 1",
      tile.join(" "),
    );
  const known = swizzles.find((width) => width === swizzle);
  if (known === undefined)
    throw sharedError(
      `there is no swizzle of ${swizzle} bytes`,
      swizzles.join(", "),
      String(swizzle),
    );
  const shortOrder = trimOrder(order);
  const shortTile = trimTile(tile);
  return Object.freeze({
    order: Object.freeze(shortOrder),
    tile: Object.freeze(shortTile),
    swizzle: known,
    text: textOf(shortOrder, shortTile, known),
  });
}

/** Leading axes that stay in front need not be written. */
function trimOrder(order: readonly number[]): readonly number[] {
  const first = order.findIndex((axis, index) => axis !== index);
  return first < 0 ? [] : order.slice(first).map((axis) => axis - first);
}

/** A tile of rows of one axis, contiguous anyway, is none. */
function trimTile(tile: readonly number[]): readonly number[] {
  const first = tile.findIndex((extent) => extent > 1);
  return first < 0 || first === tile.length - 1 ? [] : tile.slice(first);
}

function textOf(order: readonly number[], tile: readonly number[], swizzle: Swizzle): string {
  const parts: string[] = [];
  if (order.length > 0) parts.push(`order ${order.join(" ")}`);
  if (tile.length > 0) parts.push(`tile ${tile.join(" ")}`);
  if (swizzle > 0) parts.push(`swizzle ${swizzle}`);
  return `shared(${parts.join(", ")})`;
}

function sharedError(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({ code: "TW6006", message, expected, found });
}

const form = /^shared\((?:order ([\d ]+))?(?:, )?(?:tile ([\d ]+))?(?:, )?(?:swizzle (\d+))?\)$/;

const parsed = new Memo<SharedLayout>(1024);

/** Reads what `text` of a shared layout says. */
export function parseSharedLayout(text: string): SharedLayout {
  return parsed.get(text, () => readSharedLayout(text));
}

function readSharedLayout(text: string): SharedLayout {
  const match = typeof text === "string" ? form.exec(text.trim().replace(/\s+/g, " ")) : null;
  if (match === null) {
    throw new TilewrightError({
      code: "TW6001",
      message: `${optionText(text)} is not the text of a layout in shared memory`,
      expected: "shared(order 1 0, tile 8 64, swizzle 128), each part optional",
      found: optionText(text),
    });
  }
  const numbers = (part: string | undefined): readonly number[] =>
    (part ?? "")
      .split(" ")
      .filter((word) => word !== "")
      .map(Number);
  return sharedLayout({
    order: numbers(match[1]),
    tile: numbers(match[2]),
    swizzle: Number(match[3] ?? 0),
  });
}

/** Plain row-major order. */
export const rowMajor: SharedLayout = sharedLayout({});

/** Bytes after which a swizzle repeats; allocations and windows are aligned to it. */
export function swizzlePattern(swizzle: Swizzle): number {
  return swizzle === 0 ? 16 : swizzle * 8;
}

/** Where the swizzle moves a byte. It is its own inverse. */
export function swizzleByte(offset: number, swizzle: Swizzle): number {
  const chunks = swizzle === 0 ? 0 : swizzle / 16 - 1;
  return offset ^ (((offset >> 7) & chunks) << 4);
}

/** Bytes of shared memory that the allocation takes. */
export function sharedBytes(shape: readonly number[], bits: number): number {
  return Math.ceil((product(shape) * bits) / 8);
}

/** The allocation's axes as stored, major first. */
export function storedAxes(layout: SharedLayout, rank: number): readonly number[] {
  const leading = rank - layout.order.length;
  return Array.from({ length: rank }, (_, axis) =>
    axis < leading ? axis : leading + (layout.order[axis - leading] ?? 0),
  );
}

/** One line of a stored axis: its extent, and what a step adds to the stored number. */
export interface Level {
  readonly axis: number;
  /** Divides the coordinate along the axis. */
  readonly per: number;
  readonly count: number;
  readonly stride: number;
}

/** Why the layout cannot store this shape; undefined where it can. */
export function sharedProblem(layout: SharedLayout, shape: readonly number[]): string | undefined {
  const { order, tile, text } = layout;
  if (order.length > shape.length) return `${text} orders more axes than [${shape.join(", ")}] has`;
  if (tile.length > shape.length) return `${text} tiles more axes than [${shape.join(", ")}] has`;
  const stored = storedAxes(layout, shape.length);
  const leading = shape.length - tile.length;
  const whole = tile.every((extent, index) => {
    const axis = stored[leading + index] ?? 0;
    return (shape[axis] ?? 1) % extent === 0;
  });
  return whole ? undefined : `the tile of ${text} does not divide [${shape.join(", ")}]`;
}

/** Refuses to store a shape that the layout cannot. */
export function requireStorable(
  layout: SharedLayout,
  shape: readonly number[],
  location?: Location,
): void {
  const problem = sharedProblem(layout, shape);
  if (problem === undefined) return;
  throw new TilewrightError({
    code: "TW6007",
    message: problem,
    location,
    expected: "a layout of as many axes, whose tile divides the shape",
    found: `${layout.text} for [${shape.join(", ")}]`,
  });
}

/** The digits of the coordinates in the order of storage, fastest first. */
export function levelsOf(layout: SharedLayout, shape: readonly number[]): readonly Level[] {
  requireStorable(layout, shape);
  const stored = storedAxes(layout, shape.length);
  const leading = shape.length - layout.tile.length;
  const outer = stored.map((axis, index) => {
    const per = index < leading ? 1 : (layout.tile[index - leading] ?? 1);
    return { axis, per, count: (shape[axis] ?? 1) / per };
  });
  const inner = layout.tile.map((count, index) => ({
    axis: stored[leading + index] ?? 0,
    per: 1,
    count,
  }));
  let stride = 1;
  return [...outer, ...inner].toReversed().map((level) => {
    const placed = { ...level, stride };
    stride *= level.count;
    return placed;
  });
}

/**
 * The stored number, before the swizzle, of every element: a table for each axis whose entries add up.
 */
export function axisOffsets(layout: SharedLayout, shape: readonly number[]): readonly Int32Array[] {
  return offsets.get(`${layout.text} ${shape.join()}`, () => makeAxisOffsets(layout, shape));
}

const offsets = new Memo<readonly Int32Array[]>(256);

function makeAxisOffsets(layout: SharedLayout, shape: readonly number[]): readonly Int32Array[] {
  const levels = levelsOf(layout, shape);
  return shape.map((extent, axis) => {
    const table = new Int32Array(extent);
    for (const level of levels) {
      if (level.axis !== axis) continue;
      for (let coordinate = 0; coordinate < extent; coordinate += 1) {
        const digit = Math.floor(coordinate / level.per) % level.count;
        table[coordinate] = (table[coordinate] as number) + digit * level.stride;
      }
    }
    return table;
  });
}

/** The byte at which an element begins; 4-bit elements share one. */
export function byteOffset(
  layout: SharedLayout,
  shape: readonly number[],
  bits: number,
  element: number,
): number {
  const coordinates = shape.map(() => 0);
  let remaining = element;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const extent = shape[axis] ?? 1;
    coordinates[axis] = remaining % extent;
    remaining = Math.floor(remaining / extent);
  }
  let stored = 0;
  for (const { axis, per, count, stride } of levelsOf(layout, shape))
    stored += (Math.floor((coordinates[axis] ?? 0) / per) % count) * stride;
  return swizzleByte(Math.floor((stored * bits) / 8), layout.swizzle);
}

/** The first element that begins at a byte, or half a byte; undefined inside an element and behind the end. */
export function elementAtByte(
  layout: SharedLayout,
  shape: readonly number[],
  bits: number,
  offset: number,
): number | undefined {
  const byte = Math.floor(offset);
  const place = ((swizzleByte(byte, layout.swizzle) + offset - byte) * 8) / bits;
  if (!Number.isInteger(place) || place >= product(shape)) return undefined;
  const coordinates = shape.map(() => 0);
  for (const { axis, per, count, stride } of levelsOf(layout, shape))
    coordinates[axis] = (coordinates[axis] ?? 0) + (Math.floor(place / stride) % count) * per;
  return coordinates.reduce((sum, value, axis) => sum * (shape[axis] ?? 1) + value, 0);
}
