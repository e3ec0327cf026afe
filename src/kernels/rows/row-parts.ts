/** What the kernels on rows share: the piece of rows that a tile is, and statistics of a cluster. */
import { dtypes } from "../../formats/dtype.ts";
import { clusterSync, constant, full, iota } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import type { StridedForm } from "../support/strided.ts";
import type { Piece, RowOp, Statistics } from "./row-op.ts";

/** The piece from a column on; the last axis of the form is that of columns. */
export function rowPiece(
  { compute }: Pick<RowOp, "compute">,
  form: StridedForm,
  {
    rows,
    columns,
    blocks,
    pieces,
  }: {
    readonly rows: number;
    readonly columns: number;
    readonly blocks: number;
    readonly pieces: number;
  },
  start: Scalar<"i32">,
): Piece {
  const extent = form.extents.at(-1) ?? 1;
  const isWhole = extent === columns * blocks * pieces;
  const positions = (): Tile<"i32"> => iota(dtypes.i32, [1, columns], 1).add(start);
  return {
    within: (tile, value) =>
      isWhole
        ? tile
        : positions()
            .lt(extent as never)
            .select(tile, full(tile.dtype, [1, 1], value)),
    count: full(compute, [1, 1], 0).add(
      (isWhole
        ? constant(compute, columns)
        : constant(dtypes.i32, extent as never)
            .sub(start)
            .minimum(columns)
            .maximum(0)
            .cast(compute)) as never,
    ),
    total: constant(compute, extent as never),
    columns: positions,
    ...(rows === 1 && blocks * pieces > 1 && { part: { from: start, width: columns } }),
  };
}

/** Statistics of whole rows, from those of the blocks of a cluster, which meet in `shared`. */
export function exchanged(
  { statistics: names, merge }: Pick<RowOp, "statistics" | "merge">,
  own: Statistics,
  shared: Ref,
  blocks: number,
): Statistics {
  for (const [position, name] of names.entries()) {
    const value = own[name];
    if (value !== undefined) shared.at(position).store(value);
  }
  clusterSync();
  const of = (rank: number): Statistics =>
    Object.fromEntries(
      names.map((name, position) => [name, shared.peer(rank).at(position).load()]),
    );
  let merged = of(0);
  for (let rank = 1; rank < blocks; rank += 1) merged = merge(merged, of(rank));
  return merged;
}
