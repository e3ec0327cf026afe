/**
 * The operands as the persistent kernel reads them: one lies along the rows of its tiles, one along the columns. As a
 * rule that is a and b. For few rows of a they are swapped (`swapAB`) and the result is computed transposed: tiles have at least 64 rows,
 * and what of them overhangs would be filled in by TMA, which takes as long as copying.
 *
 *   m = 4096, n = 4096    rows: a      columns: b           m = 1, n = 8192    rows: bᵀ     columns: aᵀ
 */
import type { DType } from "../../../formats/dtype.ts";
import { multiplySizes } from "../../../ir/size.ts";
import type { Dimension } from "../../../ir/size.ts";
import { all, tensor, dim, slice } from "../../../lang/index.ts";
import type { TensorSpec, Ref, Scalar, Slice } from "../../../lang/index.ts";
import type { ProductDimensions } from "../dimensions.ts";
import { isHeld } from "./register-operand.ts";
import type { TileSides } from "./register-operand.ts";
import type { Prepared } from "../prologue/prepare.ts";
import type { MatmulProblem } from "../problem.ts";
import { storedDepth } from "../prologue/prologue.ts";
import type { Prologue } from "../prologue/prologue.ts";
import { copiedMatrix, viewCount, viewMatrix, viewSpec } from "../views.ts";
import type { MatrixView } from "../views.ts";
import type { Recipe } from "../f32-emulation.ts";
import { storedHalf } from "../weights/sparse-weights.ts";

export interface Side {
  readonly name: "a" | "b";
  /** Of its tiles. */
  readonly dtype: DType;
  /** In memory: f32 that is multiplied as tf32 is rounded on its way. */
  readonly stored: DType;
  /** Whether elements along k lie together; those along the tile do where not. */
  readonly alongK: boolean;
  readonly batched: boolean;
  /** How it lies where it is part of a larger array, or was copied from one. */
  readonly view: MatrixView | undefined;
  /** The size of the product that this side of tiles goes along. */
  readonly extent: Dimension;
  /** Matrices that the operand is the sum of. */
  readonly parts: number;
  /** Elements from row to row, where the operand was prepared. */
  readonly pitch: Dimension | undefined;
  /** What is computed of it before it is multiplied. */
  readonly prologue: Prologue | undefined;
  /** Whether lanes take it from shared memory as it lies (`register-operand.ts`). */
  readonly held: boolean;
  /** Whether it holds half of its elements along k. */
  readonly sparse: boolean;
}

export interface Sides {
  readonly rows: Side;
  readonly columns: Side;
}

export function sidesOf(
  problem: MatmulProblem,
  recipe: Recipe,
  prepared: Prepared,
  { m, n }: ProductDimensions,
  tiles: TileSides,
): Sides {
  const pitchOf = (name: "a" | "b"): Dimension | undefined =>
    prepared[name] && dim(`pitch_${name}`, { multipleOf: 1024 / recipe[name].bits });
  const sideOf = (name: "a" | "b", extent: Dimension): Side => {
    const prologue = problem.prologues[name];
    const held = isHeld(problem, recipe, name, tiles);
    const isStored = prologue !== undefined || (recipe.parts === 1 && prepared[name] === undefined);
    return {
      ...{ name, extent, prologue, held, sparse: problem.sparse && name === "b" },
      stored: isStored ? problem[name].dtype : recipe[name],
      dtype: prologue === undefined ? recipe[name] : problem[name].dtype,
      alongK: (recipe.alongK && prologue === undefined && !held) || problem.major[name] === "k",
      batched: problem.batched[name],
      view: problem.views?.[name],
      parts: recipe.parts,
      pitch: pitchOf(name),
    };
  };
  const [ofA, ofB] = [sideOf("a", m), sideOf("b", n)];
  return tiles.swapAB ? { rows: ofB, columns: ofA } : { rows: ofA, columns: ofB };
}

/** The operand as the kernel is given it: as it lies in memory. */
export function sideSpec(side: Side, batch: Dimension, k: Dimension): TensorSpec {
  const { name, stored, alongK, batched, extent, parts, pitch, prologue, sparse, view } = side;
  const depth = sparse ? storedHalf(k) : storedDepth(prologue, k);
  const [rows, columns] = alongK ? [extent, depth] : [depth, extent];
  const copies = view === undefined ? batch : viewCount(view);
  if (view !== undefined && pitch === undefined) return viewSpec(stored, name, view, rows, columns);
  const shape = [...(parts > 1 ? [parts] : []), ...(batched ? [copies] : []), rows, columns];
  if (pitch === undefined) return tensor(stored, shape);
  const matrix = multiplySizes(rows, pitch);
  const strides = [
    ...(parts > 1 ? [batched ? multiplySizes(copies, matrix) : matrix] : []),
    ...(batched ? [matrix] : []),
    ...[pitch, 1],
  ];
  return tensor(stored, shape, { strides });
}

/** Elements that a tile holds along k. */
export function heldDepth({ sparse }: Side, depth: number): number {
  return sparse ? depth / 2 : depth;
}

/** The shape of a tile in shared memory, likewise. */
export function tileShape(side: Side, along: number, depth: number): readonly number[] {
  const elements = heldDepth(side, depth);
  return side.alongK ? [along, elements] : [elements, along];
}

/** The window of a part of an operand that a tile is copied from. */
export function sideWindow(
  { alongK, batched, parts, pitch, view }: Side,
  operand: Ref,
  part: number,
  batch: Scalar<"i32">,
  along: Slice,
  depth: Slice,
): Ref {
  const whole = parts > 1 ? operand.at(part) : operand;
  const matrix =
    view !== undefined && pitch === undefined
      ? viewMatrix(whole, view, batch)
      : batched
        ? copiedMatrix(whole, view, batch)
        : whole;
  return alongK ? matrix.at(along, depth) : matrix.at(depth, along);
}

/** Some rows of a tile, [rows, depth]. */
export function rowsOfTile({ alongK }: Side, tile: Ref, slot: Scalar<"i32">, rows: Slice): Ref {
  return alongK ? tile.at(slot, rows) : tile.at(slot, all, rows).transpose();
}

/** All rows of a tile, likewise. */
export function wholeRowsOfTile({ alongK }: Side, tile: Ref, slot: Scalar<"i32">): Ref {
  return alongK ? tile.at(slot) : tile.at(slot).transpose();
}

/** The columns of a tile, [depth, columns], or the first so many of them. */
export function columnsOfTile(
  { alongK }: Side,
  tile: Ref,
  slot: Scalar<"i32">,
  count?: number,
): Ref {
  if (count === undefined) return alongK ? tile.at(slot).transpose() : tile.at(slot);
  const first = slice(0, count);
  return alongK ? tile.at(slot, first).transpose() : tile.at(slot, all, first);
}
