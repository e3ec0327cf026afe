/**
 * Indices while a kernel is recorded: a number where it is the same for all lanes and known now, a scalar where it is
 * the same for all lanes of a block, a tile where lanes differ. Arithmetic keeps the simplest of the three.
 */
import { i32 } from "../../../formats/dtype.ts";
import { full } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";

export type Index = number | Scalar<"i32"> | Tile<"i32">;

/** Scalars and tiles have the same methods, and a scalar that meets a tile gives a tile; one type says so for both. */
function traced(index: Exclude<Index, number>): Tile<"i32"> {
  return index as Tile<"i32">;
}

export function isUniform(index: Index): index is number | Scalar<"i32"> {
  return typeof index === "number" || index.kind === "scalar";
}

export function addIndex(left: Index, right: Index): Index {
  if (typeof left === "number") {
    if (typeof right === "number") return left + right;
    return left === 0 ? right : traced(right).add(left);
  }
  return right === 0 ? left : traced(left).add(right);
}

export function subtractIndex(left: Index, right: Index): Index {
  if (typeof right === "number") return addIndex(left, -right);
  return typeof left === "number" ? traced(right).neg().add(left) : traced(left).sub(right);
}

export function scaleIndex(index: Index, factor: number): Index {
  if (factor === 0) return 0;
  if (typeof index === "number") return index * factor;
  return factor === 1 ? index : traced(index).mul(factor);
}

/** The quotient of an index that is not negative. */
export function divideIndex(index: Index, by: number): Index {
  if (typeof index === "number") return Math.floor(index / by);
  return by === 1 ? index : traced(index).div(by);
}

export function remainderIndex(index: Index, by: number): Index {
  if (typeof index === "number") return index % by;
  return by === 1 ? 0 : traced(index).rem(by);
}

/** The index moved into 0 … last. */
export function clampIndex(index: Index, last: number): Index {
  if (typeof index === "number") return Math.min(Math.max(index, 0), last);
  return traced(index).maximum(0).minimum(last);
}

/** Whether `low <= index < high`: true, false or a bool for each lane. */
export function isWithin(index: Index, low: number, high: number): boolean | Tile<"bool"> {
  if (typeof index === "number") return index >= low && index < high;
  return traced(index).ge(low).and(traced(index).lt(high));
}

/** Beyond every axis, and far enough from the ends of i32 that sums with an axis stay within it. */
const beyond = 2 ** 30;

/** Indices that a program computed, as i32; what i32 cannot hold becomes something beyond every axis. */
export function indexOfTile(tile: Tile): Tile<"i32"> {
  const { name } = tile.dtype;
  if (name === "i32") return tile as Tile<"i32">;
  if (name === "i64") return tile.minimum(BigInt(beyond)).maximum(-BigInt(beyond)).cast(i32);
  if (name === "u64") return tile.minimum(BigInt(beyond)).cast(i32);
  return name === "u32" ? tile.minimum(beyond).cast(i32) : tile.cast(i32);
}

/** An index as a tile, with one element where it is the same for all lanes. */
export function tileOfIndex(index: Index): Tile<"i32"> {
  if (typeof index === "number") return full(i32, [1], index);
  return index.kind === "scalar" ? full(i32, [1], 0).add(index) : index;
}
