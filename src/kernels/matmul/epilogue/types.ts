/** What epilogues are, the places in which they are computed, and the outputs that they give besides the result. */
import type { Scalar, TensorSpec } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/tile.ts";

/** Gives the result of the sums and the further inputs by name, or with further outputs a record of all of them. */
export type Epilogue = (tiles: {
  readonly [name: string]: Tile;
}) => Tile | { readonly [name: string]: Tile };

/** A place in the product. */
export interface Piece {
  readonly batch: Scalar<"i32"> | undefined;
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
  readonly rows: number;
  readonly columns: number;
}

/** Rows and columns of the pieces in which a kernel finishes the result. */
export type PieceShape = Pick<Piece, "rows" | "columns">;

/** How elements of a row or a column become one. */
export type Combine = "sum" | "max" | "min";

/** An output, checked. */
export interface FurtherOutput {
  readonly name: string;
  readonly spec: TensorSpec;
  /** Undefined where pieces are stored as they are. */
  readonly combined: { readonly along: "rows" | "columns"; readonly how: Combine } | undefined;
}
