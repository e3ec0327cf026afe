/**
 * Operations on rows: a row is read, statistics of it are found, and results are made of elements and statistics.
 *
 *   softmax      statistics of a piece   high = max(x), sum = Σ exp(x − high)
 *                of two pieces           high = max of both, each sum scaled to it
 *                results                 out = exp(x − high) / sum
 *
 * Said this way, an operation does not know how long rows are or who reads them: one block holds several rows, or one, or
 * goes through a long one piece by piece, or is one of a cluster that shares a row (row-kernel.ts).
 */
import type { DType } from "../../formats/dtype.ts";
import type { Scalar, Tile } from "../../lang/index.ts";

/** Tiles by name. Elements are [rows, columns], what belongs to rows [rows, 1], to columns [1, columns]. */
export interface RowTiles {
  readonly [name: string]: Tile;
}

/** Numbers of rows, each of [rows, 1] and of the format that is computed in. */
export interface Statistics {
  readonly [name: string]: Tile;
}

/** Which part of the rows a piece is. */
export interface Piece {
  /** The tile, with `value` beyond the end of the rows. */
  readonly within: (tile: Tile, value: number) => Tile;
  /** Elements of each row within the piece, [rows, 1] or [1, 1], in the format that is computed in. */
  readonly count: Tile;
  /** Elements of a whole row. */
  readonly total: Scalar;
  /** The column of every element, [1, columns] or [rows, columns]. */
  readonly columns: () => Tile<"i32">;
  /** Where a tile has a part of one row: its first column, and how many there are. */
  readonly part?: { readonly from: Scalar<"i32">; readonly width: number };
}

/** A piece, and which part of the rows it is. */
export interface RowPart {
  readonly tiles: RowTiles;
  readonly piece: Piece;
}

export interface RowArray {
  readonly name: string;
  readonly dtype: DType;
  readonly role: "input" | "output";
  /** Whether it has an element for every element, for every row or for every column. */
  readonly per: "element" | "row" | "column";
  /** Of an input that only results need: it is loaded once statistics are known, and takes no registers before. */
  readonly isLate?: boolean;
}

export interface RowOp {
  readonly name: string;
  readonly arrays: readonly RowArray[];
  /** The format of statistics. */
  readonly compute: DType;
  readonly statistics: readonly string[];
  /** Bytes of a row that 512 lanes of a processor can hold each, beside what they compute with, without spilling any. */
  readonly heldBytes: number;
  /** Whether four warps have no registers for a second block beside a row of 16,384 elements of 16 bits, of which 16 warps hold two; half of it is held by 8 warps where it meets columns. */
  readonly isHeavy?: boolean;
  /**
   * Pieces of a row, of 16 KiB, from which on blocks all over the GPU share each of many rows: more where so much is computed of an element
   * that 8 warps of a processor hardly keep up with memory, since they do it twice. Undefined where that is slower than other forms.
   */
  readonly sharedPieces?: number;
  /** Statistics of a piece; undefined tiles are not there. */
  readonly measure: (tiles: RowTiles, piece: Piece) => Statistics;
  /** Statistics of pieces that are all there, where that takes less than to measure each as it comes and merge them. */
  readonly together?: (parts: readonly RowPart[]) => Statistics;
  /** Statistics of two pieces together. */
  readonly merge: (left: Statistics, right: Statistics) => Statistics;
  /** Statistics of many pieces together, from [pieces, 1] to [1, 1]. */
  readonly join: (pieces: Statistics) => Statistics;
  /** Results per element, from a piece and the statistics of whole rows. */
  readonly results: (tiles: RowTiles, statistics: Statistics, piece: Piece) => RowTiles;
  /** Results per row. */
  readonly rowResults?: (tiles: RowTiles, statistics: Statistics, total: Scalar) => RowTiles;
}
