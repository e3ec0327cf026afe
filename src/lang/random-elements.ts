/**
 * Which elements of an array random numbers are drawn for: any, by their row-major numbers, or a run of them, of which a hash can give several.
 *
 *   iota(u32, [64], { axis: 0 }).add(start)      the numbers as a tile, which may be any
 *   elementRun(i, [64])                those from 64 · i on
 */
import { i32, u32 } from "../formats/dtype.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { full, iota } from "./create.ts";
import type { Words } from "./random-hashes.ts";
import { Scalar } from "./elementwise.ts";
import { isPositiveInteger } from "./sizes.ts";
import { Tile } from "./tile.ts";
import { numberList, wrongKind } from "./traced.ts";

/** Elements that follow each other, of which a hash may give several at once. */
export class ElementRun {
  /** Which run of such a shape it is. */
  readonly index: Scalar<"i32"> | number;
  /** The extents of the axes. */
  readonly shape: readonly number[];

  /** @internal */
  constructor(index: Scalar<"i32"> | number, shape: readonly number[]) {
    this.index = index;
    this.shape = shape;
  }
}

/**
 * The elements of run `index`, where an array is taken row by row in runs of a shape: run 3 of 2,048 begins with element 6,144.
 * Numbers that are drawn for it are those of the elements, which keys of `rbg` draw four at a time.
 */
export function elementRun(index: Scalar<"i32"> | number, shape: readonly number[]): ElementRun {
  const location = captureLocation();
  const isCount = typeof index === "number" && Number.isSafeInteger(index) && index >= 0;
  if (!isCount && !(index instanceof Scalar && index.dtype === i32))
    wrongKind(
      "the index of elementRun",
      "a whole number from 0 or a scalar of i32",
      index,
      location,
    );
  const extents = numberList("the shape of elementRun", shape, location);
  if (!extents.every(isPositiveInteger))
    wrongKind("the shape of elementRun", "positive whole numbers", shape, location);
  return new ElementRun(index, extents);
}

/** Row-major numbers of elements in the whole array that is drawn. */
export type ElementNumbers = Tile<"u32"> | Tile<"i32"> | ElementRun;

/** Numbers that have been looked at. */
export type CheckedNumbers = Words | ElementRun;

export function requireNumbers(
  label: string,
  numbers: unknown,
  location: Location,
): CheckedNumbers {
  if (numbers instanceof ElementRun) return numbers;
  if (numbers instanceof Tile) {
    if (numbers.dtype === u32) return numbers;
    if (numbers.dtype === i32) return numbers.bitcast(u32);
  }
  const expected = "a tile of u32 or i32, or an elementRun";
  return wrongKind(`the numbers of ${label}`, expected, numbers, location);
}

/** Numbers as a tile. */
export function eachNumber(numbers: CheckedNumbers): Words {
  if (numbers instanceof Tile) return numbers;
  const size = sizeOf(numbers);
  return firstOf(numbers, size)
    .add(iota(u32, [size], { axis: 0 }))
    .reshape(numbers.shape);
}

export function sizeOf({ shape }: ElementRun): number {
  return shape.reduce((all, extent) => all * extent, 1);
}

/** The index times a size, for all. */
export function firstOf({ index }: ElementRun, size: number): Words {
  if (typeof index === "number") return lone(index).mul(size);
  return lone(0).add(index.cast(u32)).mul(size);
}

export function lone(value: number): Words {
  return full(u32, [1], value >>> 0);
}
