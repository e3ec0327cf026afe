/**
 * Operations on rows (softmax, norms): a row is read, reduced to statistics, and results are computed from elements and statistics.
 *
 *   softmax      statistics of a piece   high = max(x), sum = Σ exp(x − high)
 *                of two pieces           high = max of both, each sum scaled to it
 *                results                 out = exp(x − high) / sum
 *
 * An operation does not depend on the length of rows or on the schedule: a block may hold several rows, or one, or loop over a long one piece
 * by piece, or be one of several blocks that share a row (row-kernel.ts).
 */
import type { DType } from "../../formats/dtype.ts";
import type { Scalar, Tile } from "../../lang/index.ts";
import type { BlockQuantization } from "./block-quantization.ts";

/** Tiles by name: per element [rows, columns], per row [rows, 1], per column [1, columns]. */
export interface RowTiles {
  readonly [name: string]: Tile;
}

/** Statistics of rows by name, each [rows, 1], in the compute format. */
export interface Statistics {
  readonly [name: string]: Tile;
}

/** A piece of rows: some of their columns. */
export interface Piece {
  /** The tile, masked with `value` beyond the end of the rows. */
  readonly within: (tile: Tile, value: number) => Tile;
  /** Elements of each row within the piece, [rows, 1] or [1, 1], in the compute format. */
  readonly count: Tile;
  /** Elements of a whole row. */
  readonly total: Scalar;
  /** The column of every element, [1, columns] or [rows, columns]. */
  readonly columns: () => Tile<"i32">;
  /** For a tile with some columns of one row: the first, and how many. */
  readonly range?: { readonly from: Scalar<"i32">; readonly width: number };
}

/** A piece of rows with its tiles. */
export interface LoadedPiece {
  readonly tiles: RowTiles;
  readonly piece: Piece;
}

export interface RowArray {
  readonly name: string;
  readonly dtype: DType;
  readonly role: "input" | "output";
  /** Whether it has an element for every element, for every row or for every column. */
  readonly per: "element" | "row" | "column";
  /** Of an input that only results need: it is loaded after the statistics are known, and takes no registers before. */
  readonly isLate?: boolean;
}

export interface RowOp {
  readonly name: string;
  readonly arrays: readonly RowArray[];
  /**
   * Of an operation whose result `out` is stored in a format with scales along rows: those are a further result, `outScale`. What `results` gives is quantised, in the format that it
   * has there. The basic kernel alone does this.
   */
  readonly quantization?: BlockQuantization;
  /** The format of statistics. */
  readonly compute: DType;
  readonly statistics: readonly string[];
  /** Bytes of a row that each of 512 threads of a processor can hold in registers without spills. */
  readonly registerBytes: number;
  /** Whether a row of 16,384 elements of 16 bits leaves four warps no registers for a second block. 16 warps then hold two such rows; and 8 warps a row of half that length with per-column inputs. */
  readonly isRegisterBound?: boolean;
  /**
   * Pieces of a row, of 16 KiB, from which on the grid-cooperative schedule is used for many rows: more for operations with so much arithmetic
   * that 8 warps of a processor barely keep up with memory, since they do it twice. Undefined where other schedules are faster.
   */
  readonly cooperativePieces?: number;
  /** Statistics of a piece; optional inputs that were not given are undefined. */
  readonly measure: (tiles: RowTiles, piece: Piece) => Statistics;
  /** Statistics of several loaded pieces at once, where that is cheaper than measuring and merging each. */
  readonly measureAll?: (pieces: readonly LoadedPiece[]) => Statistics;
  /** Merges the statistics of two pieces. */
  readonly merge: (left: Statistics, right: Statistics) => Statistics;
  /** Merges the statistics of many pieces, from [pieces, 1] to [1, 1]. */
  readonly mergeAll: (pieces: Statistics) => Statistics;
  /** Results per element, from a piece and the statistics of whole rows. */
  readonly results: (tiles: RowTiles, statistics: Statistics, piece: Piece) => RowTiles;
  /** Results per row. */
  readonly rowResults?: (tiles: RowTiles, statistics: Statistics, total: Scalar) => RowTiles;
}
