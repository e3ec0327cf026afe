/** How deep a step of the persistent kernel is, and in which pieces it finishes its tiles. */
import type { DType } from "../../formats/dtype.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type { PersistentConfiguration } from "./configuration.ts";
import type { PieceShape } from "./outputs.ts";
import { prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import type { Recipe } from "./recipe.ts";

/** Elements of k in a step: rows of 128 bytes, and as many elements of operands that are stored in fewer bits. */
export function depthOf(problem: MatmulProblem, { a }: Recipe): number {
  const prologue = prologueOf(problem);
  const isSmall = prologue !== undefined && problem[prologue.operand].dtype.bits < 16;
  return isSmall ? rowBytes : (rowBytes * 8) / a.bits;
}

/** Columns of a piece of the result: a row of 128 bytes. */
export function pieceColumns({ bits }: DType, columns: number): number {
  return Math.min(columns, (rowBytes * 8) / bits);
}

/** Rows and columns of the pieces of the result that a thread finishes. */
export function pieceOf(
  { out, sparse }: MatmulProblem,
  { columns, turned }: PersistentConfiguration,
): PieceShape {
  if (!turned) return { rows: threadRows, columns: pieceColumns(out.dtype, columns) };
  return { rows: sparse ? pieceColumns(out.dtype, columns) : columns, columns: threadRows };
}
