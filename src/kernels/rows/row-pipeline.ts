/**
 * What a block of rows that come through a queue (`tma-pipelined-rows.ts`) reads and writes: places of the queue and what fills them, pieces of
 * rows and of columns as tiles, results. A tile is [lanes, elements of each], so that lanes measure what they hold themselves.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import {
  tensor,
  blockSync,
  commitShared,
  constant,
  copyAsync,
  dim,
  full,
  iota,
  prefetch,
  slice,
  when,
} from "../../lang/index.ts";
import type { TensorSpec, Barrier, Ref, RingPosition, Scalar, Tile } from "../../lang/index.ts";
import { alignedDimension, widestAccess } from "../support/sizes.ts";
import { isElement, isOfColumns } from "./choose-pipelined-rows.ts";
import type { QueuedRowsConfiguration } from "./choose-pipelined-rows.ts";
import type { Piece, RowArray, RowOp, RowTiles, Statistics } from "./row-op.ts";

export interface QueuedForm {
  readonly op: RowOp;
  readonly configuration: QueuedRowsConfiguration;
  readonly box: number;
  /** Whether pieces are whole. */
  readonly isWhole: boolean;
  /** Elements from row to row, of each array. */
  readonly strides: readonly number[];
}

/** A piece that has been read, and its place, which may be filled again. */
export interface ReadPiece {
  readonly piece: Scalar<"i32">;
  readonly slot: Scalar<"i32">;
}

export const strideName = (position: number): string => `stride${position}`;
export const queueName = (name: string): string => `queue_${name}`;
export const keptName = (name: string): string => `kept_${name}`;
export const ownName = (name: string): string => `own_${name}`;
export const statisticName = (name: string): string => `statistic_${name}`;

/** Rows, boxes of a row. */
export function extentsOf({ configuration, box, isWhole }: QueuedForm): {
  height: Size;
  groups: Size;
} {
  const { columns, blocks, pieces } = configuration;
  return {
    height: dim("height"),
    groups: isWhole ? (columns * blocks * pieces) / box : dim("groups"),
  };
}

export function arraySpec(
  form: QueuedForm,
  { per, dtype }: RowArray,
  position: number,
): TensorSpec {
  const { box, strides } = form;
  const { height, groups } = extentsOf(form);
  if (per === "column") return tensor(dtype, [groups, box], { strides: [box, 1] });
  const own = strides[position] ?? 1;
  const stride: Size = own <= 1 ? own : alignedDimension(strideName(position), own);
  return per === "row"
    ? tensor(dtype, [height], { strides: [stride] })
    : tensor(dtype, [height, groups, box], { strides: [stride, box, 1] });
}

export class QueueBlock {
  readonly #form: QueuedForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #part: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;
  readonly #warp: Scalar<"i32"> | undefined;

  /** Of a warp, where each has a share of every piece and works on its own. */
  constructor(
    form: QueuedForm,
    argument: { readonly [name: string]: unknown },
    warp?: Scalar<"i32">,
  ) {
    this.#warp = warp;
    this.#form = form;
    this.#argument = argument;
    this.#part = argument["part"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
  }

  /** Which piece of the row one of the block's own is. */
  #ofRow(index: Scalar<"i32">): Scalar<"i32"> {
    return this.#part.mul(this.#form.configuration.pieces).add(index);
  }

  /** Columns of a piece, or of the warp's share of it. */
  get #columns(): number {
    const { columns, warps } = this.#form.configuration;
    return this.#warp === undefined ? columns : columns / warps;
  }

  get #groups(): number {
    return this.#columns / this.#form.box;
  }

  /** The first group of one of the block's pieces in its row. */
  #first(index: Scalar<"i32">): Scalar<"i32"> {
    const { warps } = this.#form.configuration;
    const piece = this.#ofRow(index);
    const share = this.#warp === undefined ? piece : piece.mul(warps).add(this.#warp);
    return share.mul(this.#groups);
  }

  brought({ slot, phase }: RingPosition): void {
    (this.#argument["brought"] as Barrier).at(slot).wait({ parity: phase });
  }

  /** Copies what comes next into the places of pieces of this row that have been read, unless there is nothing. */
  refill(turn: Scalar<"i32">, turns: Scalar<"i32">, read: readonly ReadPiece[]): void {
    const { slots, pieces } = this.#form.configuration;
    commitShared();
    // Once for all of them: each copy would wait for the lanes on its own.
    if (read.length > 1) blockSync();
    for (const { piece, slot } of read) {
      // It lies as many pieces further on as there are places.
      const ahead = piece.add(slots % pieces);
      const wraps = ahead.ge(pieces);
      const next = turn.add(Math.floor(slots / pieces)).add(wraps.cast(dtypes.i32));
      when(next.lt(turns), () => {
        this.bring(next, wraps.select(ahead.sub(pieces), ahead), slot);
      });
    }
  }

  bring(turn: Scalar<"i32">, piece: Scalar<"i32">, slot: Scalar<"i32">): void {
    const { op, box } = this.#form;
    const [first, groups] = [this.#first(piece), this.#groups];
    for (const { name } of op.arrays.filter(isElement))
      copyAsync(
        (this.#argument[name] as Ref).at(this.row(turn), slice(first, groups), slice(0, box)),
        (this.#argument[queueName(name)] as Ref).at(slot),
        // Measured: memory moves up to 4 % more where what was read is the last that the cache drops, and less where it is the first.
        { barrier: (this.#argument["brought"] as Barrier).at(slot), evict: "last" },
      );
  }

  row(turn: Scalar<"i32">): Scalar<"i32"> {
    return turn.mul(this.#form.configuration.workers).add(this.#worker);
  }

  /** [groups, box] as [lanes, elements of each]: lanes have neighbouring stretches as wide as memory is accessed. */
  #byLanes(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    return this.held(
      tile
        .reshape([each, lanes, widest])
        .transpose([1, 0, 2])
        .reshape([lanes, each * widest]),
    );
  }

  /** A tile by lanes, in registers. What was computed from the tile before this is not taken for what is computed from it after. */
  held(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    const layout = `(${bitNames("L", 5)} ${bitNames("W", Math.log2(lanes / 32))} | ${bitNames("R", Math.log2(each * widest))})`;
    return tile.layoutCast(layout);
  }

  #byGroups(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    return tile
      .broadcastTo([lanes, each * widest])
      .reshape([lanes, each, widest])
      .transpose([1, 0, 2])
      .reshape([this.#groups, this.#form.box]);
  }

  #shares(): { readonly widest: number; readonly lanes: number; readonly each: number } {
    const { op, configuration } = this.#form;
    const bits = op.arrays.filter(({ per }) => per === "element").map(({ dtype }) => dtype.bits);
    const lanes = 32 * (this.#warp === undefined ? configuration.warps : 1);
    const share = this.#columns / lanes;
    const widest = Math.min(share, (8 * widestAccess) / Math.min(...bits));
    return { widest, lanes, each: share / widest };
  }

  /** A place of the queue, or the warp's share of it. */
  #queued(name: string, slot: Scalar<"i32">): Ref {
    const queue = this.#argument[queueName(name)] as Ref;
    if (this.#warp === undefined) return queue.at(slot);
    const first = this.#warp.mul(this.#groups);
    return queue.at(slot, slice(first, this.#groups), slice(0, this.#form.box));
  }

  queuedTiles(slot: Scalar<"i32">): RowTiles {
    return Object.fromEntries(
      this.#form.op.arrays
        .filter(isElement)
        .map(({ name }) => [name, this.#byLanes(this.#queued(name, slot).load())]),
    );
  }

  /** What belongs to the columns of one of the block's pieces; of what only results need, nothing unless `late`. */
  columnTiles(index: Scalar<"i32">, late = true): RowTiles {
    const { op, configuration } = this.#form;
    const wanted = op.arrays.filter((each) => isOfColumns(each) && (late || each.isLate !== true));
    const window = (name: string): Ref =>
      configuration.keepsColumns === true
        ? (this.#argument[keptName(name)] as Ref).at(index)
        : this.#columnWindow(name, index);
    return Object.fromEntries(wanted.map(({ name }) => [name, this.#byLanes(window(name).load())]));
  }

  #columnWindow(name: string, index: Scalar<"i32">): Ref {
    const first = this.#first(index);
    return (this.#argument[name] as Ref).at(slice(first, this.#groups), slice(0, this.#form.box));
  }

  /** Puts what belongs to the block's columns into shared memory, where it stays for all rows. */
  keepColumns(): void {
    const { op, configuration } = this.#form;
    for (const { name } of op.arrays.filter(isOfColumns))
      for (let piece = 0; piece < configuration.pieces; piece += 1) {
        const index = constant(dtypes.i32, piece);
        const tile = this.#byLanes(this.#columnWindow(name, index).load());
        (this.#argument[keptName(name)] as Ref).at(index).store(this.#byGroups(tile));
      }
  }

  /** Asks for what results need of the columns while the first row is on its way: it is in the cache once that has been measured. */
  askForColumns(): void {
    const { op, configuration } = this.#form;
    const late = op.arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
    for (const { name } of late)
      for (let piece = 0; piece < configuration.pieces; piece += 1)
        prefetch(this.#columnWindow(name, constant(dtypes.i32, piece)));
  }

  /** What belongs to a row, [1, 1]; past the last one, that of the last. */
  rowTiles(turn: Scalar<"i32">, count: Scalar<"i32">): RowTiles {
    const wanted = this.#form.op.arrays.filter(
      ({ per, role }) => per === "row" && role === "input",
    );
    const row = this.row(turn).minimum(count.sub(1)).maximum(0);
    return Object.fromEntries(
      wanted.map(({ name }) => [
        name,
        (this.#argument[name] as Ref).at(slice(row, 1)).load().reshape([1, 1]),
      ]),
    );
  }

  storePiece(turn: Scalar<"i32">, index: Scalar<"i32">, results: RowTiles): void {
    const { op, box } = this.#form;
    const [first, groups] = [this.#first(index), this.#groups];
    for (const { name, per, role } of op.arrays) {
      const result = results[name];
      if (per !== "element" || role !== "output" || result === undefined) continue;
      (this.#argument[name] as Ref)
        .at(this.row(turn), slice(first, groups), slice(0, box))
        .store(this.#byGroups(result));
    }
  }

  /** What belongs to the row; the first block that shares it stores it, and its first warp where warps work on their own. */
  storeRow(turn: Scalar<"i32">, ofRow: RowTiles, statistics: Statistics): void {
    const { op, configuration } = this.#form;
    const { rowResults } = op;
    if (rowResults === undefined) return;
    const store = (): void => {
      const results = rowResults(ofRow, statistics, this.#total());
      for (const { name, per, role } of op.arrays) {
        const result = results[name];
        if (per !== "row" || role !== "output" || result === undefined) continue;
        (this.#argument[name] as Ref)
          .at(slice(this.row(turn), 1))
          .store(result.broadcastTo([1, 1]).reshape([1]));
      }
    };
    const isFirst = configuration.blocks === 1 ? undefined : this.#part.eq(0);
    const isFirstWarp = this.#warp?.eq(0);
    const both = isFirst && isFirstWarp ? isFirst.and(isFirstWarp) : (isFirst ?? isFirstWarp);
    if (both === undefined) store();
    else when(both, store);
  }

  #total(): Scalar {
    const { groups } = extentsOf(this.#form);
    const columns = constant(dtypes.i32, 0)
      .add(groups as never)
      .mul(this.#form.box);
    return columns.cast(this.#form.op.compute);
  }

  /** Which part of the row one of the block's pieces is. */
  piece(index: Scalar<"i32">): Piece {
    const { op, isWhole, configuration, box } = this.#form;
    const start = this.#first(index).mul(box);
    const { lanes, each, widest } = this.#shares();
    const { groups } = extentsOf(this.#form);
    const extent = constant(dtypes.i32, 0)
      .add(groups as never)
      .mul(box);
    const positions = (): Tile<"i32"> =>
      this.#byLanes(
        iota(dtypes.i32, [this.#groups, box], { axis: 0 })
          .mul(box)
          .add(iota(dtypes.i32, [this.#groups, box], { axis: 1 })),
      ).add(start as never) as Tile<"i32">;
    const isWithin = (): Tile<"bool"> => positions().lt(extent);
    return {
      within: (tile, value) =>
        isWhole ? tile : isWithin().select(tile, full(tile.dtype, [1, 1], value)),
      count: isWhole
        ? full(op.compute, [1, 1], each * widest)
        : isWithin()
            .broadcastTo([lanes, each * widest])
            .cast(dtypes.i32)
            .sum({ axis: 1, keepDims: true })
            .cast(op.compute),
      total: this.#total(),
      columns: positions,
      ...(configuration.blocks * configuration.pieces > 1 && {
        part: { from: start, width: this.#columns },
      }),
    };
  }
}

function bitNames(name: string, count: number): string {
  return Array.from({ length: count }, (_, bit) => `${name}${bit}`).join(" ");
}
