/**
 * Promises: what a program knows of integers that the compiler cannot know, of numbers read from memory above all.
 *
 *   const start = assumeMultipleOf(starts.at(group).loadScalar(), 64);
 *   x.at(slice(start, 64)).load()                                         16 bytes at a time
 */
import type { IntegerName } from "../formats/dtype.ts";
import type { Promised } from "../ir/promises.ts";
import type { Size } from "../ir/size.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isDataObject } from "./elementwise.ts";
import type { Scalar } from "./elementwise.ts";
import { make } from "./making.ts";
import { isSize } from "./sizes.ts";
import type { Tile } from "./tile.ts";
import { emitOrigin } from "./trace.ts";
import { useValue, wrongKind } from "./traced.ts";

/**
 * The same integers, which the program promises to be multiples of `divisor`: what they are the start of can then be moved more widely.
 * Simulator and emulator report a promise that does not hold (TW3026); a GPU relies on it.
 */
export function assumeMultipleOf<D extends IntegerName>(
  value: Scalar<D>,
  divisor: number,
): Scalar<D>;
export function assumeMultipleOf<D extends IntegerName>(value: Tile<D>, divisor: number): Tile<D>;
export function assumeMultipleOf(value: Scalar | Tile, divisor: number): Scalar | Tile {
  const location = captureLocation();
  if (!Number.isSafeInteger(divisor) || divisor <= 0)
    wrongKind("the divisor of assumeMultipleOf", "a positive whole number", divisor, location);
  return promised("assumeMultipleOf", value, { multipleOf: divisor }, location);
}

/**
 * The same integers, which the program promises to lie between `least` and `greatest`, both included: bounds that follow from it are
 * not tested. Simulator and emulator report a promise that does not hold (TW3026); a GPU relies on it.
 */
export function assumeBetween<D extends IntegerName>(
  value: Scalar<D>,
  least: number | bigint,
  greatest: number | bigint,
): Scalar<D>;
export function assumeBetween<D extends IntegerName>(
  value: Tile<D>,
  least: number | bigint,
  greatest: number | bigint,
): Tile<D>;
export function assumeBetween(
  value: Scalar | Tile,
  least: number | bigint,
  greatest: number | bigint,
): Scalar | Tile {
  const location = captureLocation();
  const bound = (name: string, number: unknown): bigint => {
    if (typeof number === "bigint") return number;
    if (Number.isSafeInteger(number)) return BigInt(Number(number));
    return wrongKind(`the ${name} number of assumeBetween`, "a whole number", number, location);
  };
  const [low, high] = [bound("least", least), bound("greatest", greatest)];
  return promised("assumeBetween", value, { least: low, greatest: high }, location);
}

/**
 * The same integers, which the program promises to be below a size, as an index of an axis of that extent is. Simulator and emulator
 * report a promise that does not hold (TW3026); a GPU relies on it.
 */
export function assumeBelow<D extends IntegerName>(value: Scalar<D>, size: Size): Scalar<D>;
export function assumeBelow<D extends IntegerName>(value: Tile<D>, size: Size): Tile<D>;
export function assumeBelow(value: Scalar | Tile, size: Size): Scalar | Tile {
  const location = captureLocation();
  if (!isSize(size) || (typeof size === "number" && !Number.isSafeInteger(size)))
    wrongKind("the size of assumeBelow", "a whole number or a size", size, location);
  return promised("assumeBelow", value, { below: size }, location);
}

function promised(
  name: string,
  value: unknown,
  promise: Promised,
  location: Location,
): Scalar | Tile {
  if (!isDataObject(value))
    return wrongKind(`what ${name} takes`, "a scalar or a tile of integers", value, location);
  const source = useValue(value, location);
  return value[make](emitOrigin("assume", { source }, promise, location));
}
