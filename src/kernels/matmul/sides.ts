/**
 * The operands as the persistent kernel reads them: one lies along the rows of its tiles, one along the columns. As a
 * rule that is a and b. For few rows of a it is b and a, and the result is computed *turned*: tiles have at least 64 rows,
 * and what of them overhangs would be filled in by the copy engine, which takes as long as copying.
 *
 *   m = 4096, n = 4096    rows: a      columns: b           m = 1, n = 8192    rows: b turned      columns: a turned
 */
import type { DType } from "../../formats/dtype.ts";
import type { Dimension, Size } from "../../ir/size.ts";
import { all, array } from "../../lang/index.ts";
import type { ArraySpec, Ref, Scalar, Slice } from "../../lang/index.ts";
import type { ProductDimensions } from "./dimensions.ts";
import type { MatmulProblem } from "./problem.ts";

export interface Side {
  readonly name: "a" | "b";
  readonly dtype: DType;
  /** Whether elements along k lie together; those along the tile do where not. */
  readonly alongK: boolean;
  readonly batched: boolean;
  /** The size of the product that this side of tiles goes along. */
  readonly extent: Dimension;
}

export interface Sides {
  readonly rows: Side;
  readonly columns: Side;
}

export function sidesOf(
  { a, b, major, batched }: MatmulProblem,
  { m, n }: ProductDimensions,
  turned: boolean,
): Sides {
  const ofA: Side = {
    name: "a",
    dtype: a.dtype,
    alongK: major.a === "k",
    batched: batched.a,
    extent: m,
  };
  const ofB: Side = {
    name: "b",
    dtype: b.dtype,
    alongK: major.b === "k",
    batched: batched.b,
    extent: n,
  };
  return turned ? { rows: ofB, columns: ofA } : { rows: ofA, columns: ofB };
}

/** The operand as the kernel is given it: as it lies in memory. */
export function sideSpec(
  { dtype, alongK, batched, extent }: Side,
  batch: Size,
  k: Size,
): ArraySpec {
  return array(dtype, [...(batched ? [batch] : []), ...(alongK ? [extent, k] : [k, extent])]);
}

/** The shape of a tile in shared memory, likewise. */
export function tileShape({ alongK }: Side, along: number, depth: number): readonly number[] {
  return alongK ? [along, depth] : [depth, along];
}

/** The window of an operand that a tile is copied from. */
export function sideWindow(
  { alongK, batched }: Side,
  operand: Ref,
  batch: Scalar<"i32">,
  along: Slice,
  depth: Slice,
): Ref {
  const matrix = batched ? operand.at(batch) : operand;
  return alongK ? matrix.at(along, depth) : matrix.at(depth, along);
}

/** Some rows of a tile, [rows, depth]. */
export function rowsOfTile({ alongK }: Side, tile: Ref, slot: Scalar<"i32">, rows: Slice): Ref {
  return alongK ? tile.at(slot, rows) : tile.at(slot, all, rows).transpose();
}

/** All columns of a tile, [depth, columns]. */
export function columnsOfTile({ alongK }: Side, tile: Ref, slot: Scalar<"i32">): Ref {
  return alongK ? tile.at(slot).transpose() : tile.at(slot);
}
