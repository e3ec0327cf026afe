/**
 * What quantising by blocks consists of, wherever numbers come from: the settings that are asked for, and tiles of elements and scales. `quantizeBlocks` has them of arrays,
 * norms of the rows that they hold.
 *
 *   numbers [rows / down, down, columns / along, along]  ──▶  codes of scales [rows / down, 1, columns / along, 1]
 *                                                        ──▶  elements, of the same shape as the numbers
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { scaledFormats } from "../../formats/scaled/formats.ts";
import type { ScaledFormat } from "../../formats/scaled/formats.ts";
import { scaleRoundings } from "../../formats/scaled/scale-rounding.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import type { Ref, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { refused } from "../support/arguments.ts";
import { globalQuotients, largestOf, scaleTiles } from "./block-scale-tiles.ts";
import type { Quotients } from "./block-scale-tiles.ts";

/** How numbers are quantised by blocks. */
export interface BlockQuantization {
  readonly record: ScaledFormat;
  readonly rounding: ScaleRounding;
  /** The format of the elements' memory. */
  readonly stored: DType;
}

export function requiredFormat(of: string, format: unknown, location: Location): ScaledFormat {
  const record = Object.values<ScaledFormat>(scaledFormats).find((each) => each === format);
  if (record === undefined)
    throw refused(
      "TW9901",
      `${of} has no such format`,
      Object.keys(scaledFormats).join(", "),
      optionText(format),
      location,
    );
  return record;
}

export function requiredRounding(
  of: string,
  given: ScaleRounding | undefined,
  location: Location,
): ScaleRounding {
  const rounding = given ?? "roundUp";
  if (!scaleRoundings.includes(rounding))
    throw refused(
      "TW9904",
      `${of} knows no such scaleRounding`,
      scaleRoundings.join(", "),
      optionText(rounding),
      location,
    );
  return rounding;
}

/** The format of the elements' memory. */
export function requiredStorage(
  of: string,
  out: DType | undefined,
  record: ScaledFormat,
  location: Location,
): DType {
  const stored: DType = out ?? record.element;
  if (stored !== record.element && stored !== dtypes.u8)
    throw refused(
      "TW9901",
      `${of} stores no codes like that`,
      `u8, or ${record.element.name}`,
      stored.name,
      location,
    );
  return stored;
}

/** Scales, and elements, which are computed where they are asked for. */
export interface BlocksOfTile {
  readonly codes: Tile;
  readonly elements: () => Tile;
}

/** Numbers of blocks, [blocks, down, blocks, along], quantised; whether they have 11 bits at most, `isShort` says. */
export function blocksOf(
  blocks: Tile,
  { record, rounding, stored }: BlockQuantization,
  isShort: boolean,
  globalScale: Ref | undefined,
): BlocksOfTile {
  // Of numbers of 16 bits two at a time.
  const unscaled: Quotients = {
    largest: largestOf(blocks).cast(dtypes.f32),
    numbers: blocks.cast(dtypes.f32),
  };
  const scaled =
    globalScale === undefined
      ? unscaled
      : globalQuotients(unscaled, globalScale.at(0).loadScalar().cast(dtypes.f32), isShort);
  const { codes, divided } = scaleTiles(scaled.largest, record, rounding, isShort);
  const elements = (): Tile =>
    asStored(divided(scaled.numbers).cast<DTypeName>(record.element), record.element, stored);
  return { codes, elements };
}

/** Elements, or their codes in u32, as they are stored: as elements or as bytes. */
function asStored(made: Tile, element: DType, stored: DType): Tile {
  if (made.dtype === stored) return made;
  const bits = element.bits === 4 ? dtypes.u4 : dtypes.u8;
  const own = made.dtype === element ? made.bitcast(bits) : made.cast(bits);
  return stored === element ? own.bitcast(element) : own.cast(dtypes.u8);
}
