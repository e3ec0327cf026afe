/** What the row kernels share: pieces of rows, and how blocks exchange statistics, within a cluster or across the grid. */
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { clusterSync, constant, full, iota, warps, when } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import { receiveAll, nothingReceived, publish, mailboxShape } from "../support/mailbox.ts";
import type { MailboxState } from "../support/mailbox.ts";
import type { StridedForm } from "../support/strided.ts";
import type { Piece, RowOp, Statistics } from "./row-op.ts";

/** The piece that begins at a column; the last axis of the form is that of columns. */
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
  const positions = (): Tile<"i32"> => iota(dtypes.i32, [1, columns], { axis: 1 }).add(start);
  return {
    within: (tile, value) =>
      isWhole
        ? tile
        : positions()
            .lt(extent)
            .select(tile, full(tile.dtype, [1, 1], value)),
    count: full(compute, [1, 1], 0).add(
      isWhole
        ? constant(compute, columns)
        : constant(dtypes.i32, extent).sub(start).minimum(columns).maximum(0).cast(compute),
    ),
    total: constant(compute, extent),
    columns: positions,
    ...(rows === 1 && blocks * pieces > 1 && { range: { from: start, width: columns } }),
  };
}

/** Statistics of whole rows, from those of the blocks of a cluster, exchanged through `shared`. */
export function exchangeInCluster(
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

/** The state that blocks exchange through a mailbox. */
export function statisticsState({
  statistics,
  compute,
}: Pick<RowOp, "statistics" | "compute">): MailboxState {
  return Object.fromEntries(statistics.map((name) => [name, { dtype: compute }]));
}

/** The shape of the mailbox of all rows. */
export function statisticsMailboxShape(
  op: Pick<RowOp, "statistics" | "compute">,
  leads: readonly Size[],
  blocks: number,
): readonly Size[] {
  return [...leads, ...mailboxShape(statisticsState(op), blocks)];
}

/**
 * Statistics of whole rows, from those of co-resident blocks, exchanged through a mailbox. One warp publishes and polls; the others wait
 * for it at a barrier instead of for memory.
 */
export function exchangeThroughMailbox(
  op: RowOp,
  own: Statistics,
  {
    shared,
    merged,
    mailbox,
    rank,
    blocks,
  }: {
    /** Shared memory for the block's own statistics, and for those of the row. */
    readonly shared: Ref;
    readonly merged: Ref;
    readonly mailbox: Ref<"u64">;
    readonly rank: Scalar<"i32">;
    readonly blocks: number;
  },
): Statistics {
  const { statistics: names, compute } = op;
  const state = statisticsState(op);
  const put = (place: Ref, values: Statistics): void => {
    for (const [position, name] of names.entries())
      place.at(position).store((values[name] ?? full(compute, [1, 1], 0)).broadcastTo([1, 1]));
  };
  const get = (place: Ref): Statistics =>
    Object.fromEntries(names.map((name, position) => [name, place.at(position).load()]));
  put(shared, own);
  warps((warp) => {
    when(warp.eq(0), () => {
      publish(state, mailbox, rank, get(shared));
      const all = Object.entries(receiveAll(state, mailbox, nothingReceived(state, blocks)));
      put(
        merged,
        op.mergeAll(
          Object.fromEntries(all.map(([name, tile]) => [name, tile.reshape([blocks, 1])])),
        ),
      );
    });
  });
  return get(merged);
}
