/**
 * Indices while a kernel is recorded: a number where it is the same for all lanes and known now, a scalar where it is
 * the same for all lanes of a block, a tile where lanes differ. Arithmetic keeps the simplest of the three.
 */
import { i32 } from "../../../formats/dtype.ts";
import { full, iota } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";

export type Index = number | Scalar<"i32"> | Tile<"i32">;

/** Scalars and tiles have the same methods, and a scalar that meets a tile gives a tile; one type says so for both. */
function traced(index: Exclude<Index, number>): Tile<"i32"> {
  return index as Tile<"i32">;
}

export function isUniform(index: Index): index is number | Scalar<"i32"> {
  return typeof index === "number" || index.kind === "scalar";
}

/** Neighbours along an axis, as the index that tells them: `rows · unit + start`, and the next `width` numbers. */
export interface ColumnRun {
  readonly start: number | Scalar<"i32">;
  readonly width: number;
  /** Where the axis is cut into rows of so many: which of them each lane is in. All neighbours are in one. */
  readonly cut?: { readonly rows: Tile<"i32">; readonly unit: number } | undefined;
}

/** Indices along columns of rectangles, and those moved by as much for all lanes: whoever loads by them loads a window. */
const columnRuns = new WeakMap<object, ColumnRun>();

export function columnRunOf(index: Index | undefined): ColumnRun | undefined {
  return typeof index === "object" ? columnRuns.get(index) : undefined;
}

/** The columns of a rectangle, in its first row. */
export function columnIndex(start: number | Scalar<"i32">, width: number): Index {
  const across = addIndex(iota(i32, [1, width], { axis: 1 }), start);
  if (typeof across === "object") columnRuns.set(across, { start, width });
  return across;
}

/** The same columns in other rows of so many. */
function columnsInRows(rows: Index, unit: number, { start, width }: ColumnRun): Index {
  if (isUniform(rows)) {
    const first = addIndex(scaleIndex(rows, unit), start);
    return columnIndex(isUniform(first) ? first : 0, width);
  }
  const index = traced(rows.mul(unit)).add(traced(columnIndex(start, width) as Tile<"i32">));
  columnRuns.set(index, { start, width, cut: { rows, unit } });
  return index;
}

/** An axis of a rectangle whose columns are a part of it: the others follow in the next rows. */
export function cutIndex(rows: Index, unit: number, column: Index): Index {
  const run = columnRunOf(column);
  return run === undefined
    ? addIndex(scaleIndex(rows, unit), column)
    : columnsInRows(rows, unit, run);
}

export function addIndex(left: Index, right: Index): Index {
  if (typeof left === "number") {
    if (typeof right === "number") return left + right;
    return left === 0 ? right : moved(right, left);
  }
  if (right === 0) return left;
  return isUniform(left) && !isUniform(right) ? moved(right, left) : moved(left, right);
}

function moved(index: Exclude<Index, number>, by: Index): Index {
  const run = columnRunOf(index);
  if (run?.cut !== undefined && typeof by === "number" && by % run.cut.unit === 0)
    return columnsInRows(addIndex(run.cut.rows, by / run.cut.unit), run.cut.unit, run);
  const sum = traced(index).add(by);
  if (run !== undefined && run.cut === undefined && isUniform(by)) {
    const start = addIndex(run.start, by);
    if (isUniform(start)) columnRuns.set(sum, { ...run, start });
  }
  return sum;
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
  const cut = columnRunOf(index)?.cut;
  if (cut !== undefined && by % cut.unit === 0) return divideIndex(cut.rows, by / cut.unit);
  return by === 1 ? index : traced(index).div(by);
}

export function remainderIndex(index: Index, by: number): Index {
  if (typeof index === "number") return index % by;
  const run = columnRunOf(index);
  if (run?.cut !== undefined && by % run.cut.unit === 0)
    return columnsInRows(remainderIndex(run.cut.rows, by / run.cut.unit), run.cut.unit, run);
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
  const cut = columnRunOf(index)?.cut;
  if (cut !== undefined && low % cut.unit === 0 && high % cut.unit === 0)
    return isWithin(cut.rows, low / cut.unit, high / cut.unit);
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
