/**
 * Loads and stores of a block of TMA-pipelined rows (`tma-pipelined-rows.ts`, `grid-cooperative-rows.ts`): TMA loads into the stages of the
 * pipeline, pieces of rows and of per-column inputs as tiles, stores of results. Tiles are [threads, elements of a thread], so that each
 * thread reduces its own elements first.
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
import type { PipelinedRowsConfiguration } from "./choose-pipelined-rows.ts";
import type { Piece, RowArray, RowOp, RowTiles, Statistics } from "./row-op.ts";

export interface PipelinedForm {
  readonly op: RowOp;
  readonly configuration: PipelinedRowsConfiguration;
  readonly box: number;
  /** Whether the pieces divide the rows. */
  readonly isWhole: boolean;
  /** Elements from row to row, of each array. */
  readonly strides: readonly number[];
}

/** A piece that has been read, and its stage, which may be refilled. */
export interface ReadPiece {
  readonly piece: Scalar<"i32">;
  readonly stage: Scalar<"i32">;
}

export const strideName = (position: number): string => `stride${position}`;
export const queueName = (name: string): string => `queue_${name}`;
export const keptName = (name: string): string => `kept_${name}`;
export const ownName = (name: string): string => `own_${name}`;
export const statisticName = (name: string): string => `statistic_${name}`;

/** The number of rows, and of TMA boxes in a row. */
export function extentsOf({ configuration, box, isWhole }: PipelinedForm): {
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
  form: PipelinedForm,
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

export class RowPipeline {
  readonly #form: PipelinedForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #rank: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;
  readonly #warp: Scalar<"i32"> | undefined;

  /** With `warp`, of one warp, which has a share of every piece and works on its own. */
  constructor(
    form: PipelinedForm,
    argument: { readonly [name: string]: unknown },
    warp?: Scalar<"i32">,
  ) {
    this.#warp = warp;
    this.#form = form;
    this.#argument = argument;
    this.#rank = argument["rank"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
  }

  /** The index in the row of one of the block's pieces. */
  #ofRow(index: Scalar<"i32">): Scalar<"i32"> {
    return this.#rank.mul(this.#form.configuration.pieces).add(index);
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

  /** Waits until a stage is loaded. */
  waitLoaded({ slot, phase }: RingPosition): void {
    (this.#argument["loaded"] as Barrier).at(slot).wait({ parity: phase });
  }

  /** Refills the stages of pieces of this row that have been read, as long as there are rows left. */
  refill(iteration: Scalar<"i32">, iterations: Scalar<"i32">, read: readonly ReadPiece[]): void {
    const { stages, pieces } = this.#form.configuration;
    commitShared();
    // One barrier for all of them: each copy would wait for the threads on its own.
    if (read.length > 1) blockSync();
    for (const { piece, stage } of read) {
      // The next piece of the stage is as many pieces ahead as there are stages.
      const ahead = piece.add(stages % pieces);
      const wraps = ahead.ge(pieces);
      const next = iteration.add(Math.floor(stages / pieces)).add(wraps.cast(dtypes.i32));
      when(next.lt(iterations), () => {
        this.load(next, wraps.select(ahead.sub(pieces), ahead), stage);
      });
    }
  }

  /** Starts the TMA loads of a piece into a stage. */
  load(iteration: Scalar<"i32">, piece: Scalar<"i32">, stage: Scalar<"i32">): void {
    const { op, box } = this.#form;
    const [first, groups] = [this.#first(piece), this.#groups];
    for (const { name } of op.arrays.filter(isElement))
      copyAsync(
        (this.#argument[name] as Ref).at(this.row(iteration), slice(first, groups), slice(0, box)),
        (this.#argument[queueName(name)] as Ref).at(stage),
        // Measured: up to 4 % more bandwidth with evict_last, less with evict_first.
        { barrier: (this.#argument["loaded"] as Barrier).at(stage), evict: "last" },
      );
  }

  row(iteration: Scalar<"i32">): Scalar<"i32"> {
    return iteration.mul(this.#form.configuration.workers).add(this.#worker);
  }

  /** [groups, box] as [threads, elements of a thread]: neighbouring threads hold neighbouring vectors. */
  #byThreads(tile: Tile): Tile {
    const { widest, threads, each } = this.#shares();
    return this.held(
      tile
        .reshape([each, threads, widest])
        .transpose([1, 0, 2])
        .reshape([threads, each * widest]),
    );
  }

  /** A tile [threads, elements of a thread] in registers. It keeps the compiler from reusing values computed from the tile before. */
  held(tile: Tile): Tile {
    const { widest, threads, each } = this.#shares();
    const layout = `(${bitNames("L", 5)} ${bitNames("W", Math.log2(threads / 32))} | ${bitNames("R", Math.log2(each * widest))})`;
    return tile.layoutCast(layout);
  }

  #byGroups(tile: Tile): Tile {
    const { widest, threads, each } = this.#shares();
    return tile
      .broadcastTo([threads, each * widest])
      .reshape([threads, each, widest])
      .transpose([1, 0, 2])
      .reshape([this.#groups, this.#form.box]);
  }

  #shares(): { readonly widest: number; readonly threads: number; readonly each: number } {
    const { op, configuration } = this.#form;
    const bits = op.arrays.filter(({ per }) => per === "element").map(({ dtype }) => dtype.bits);
    const threads = 32 * (this.#warp === undefined ? configuration.warps : 1);
    const share = this.#columns / threads;
    const widest = Math.min(share, (8 * widestAccess) / Math.min(...bits));
    return { widest, threads, each: share / widest };
  }

  /** A stage of an input, or the warp's share of it. */
  #stage(name: string, stage: Scalar<"i32">): Ref {
    const queue = this.#argument[queueName(name)] as Ref;
    if (this.#warp === undefined) return queue.at(stage);
    const first = this.#warp.mul(this.#groups);
    return queue.at(stage, slice(first, this.#groups), slice(0, this.#form.box));
  }

  stageTiles(stage: Scalar<"i32">): RowTiles {
    return Object.fromEntries(
      this.#form.op.arrays
        .filter(isElement)
        .map(({ name }) => [name, this.#byThreads(this.#stage(name, stage).load())]),
    );
  }

  /** Per-column inputs of one of the block's pieces; those that only results need, only if `late`. */
  columnTiles(index: Scalar<"i32">, late = true): RowTiles {
    const { op, configuration } = this.#form;
    const wanted = op.arrays.filter((each) => isOfColumns(each) && (late || each.isLate !== true));
    const window = (name: string): Ref =>
      configuration.keepsColumns === true
        ? (this.#argument[keptName(name)] as Ref).at(index)
        : this.#columnWindow(name, index);
    return Object.fromEntries(
      wanted.map(({ name }) => [name, this.#byThreads(window(name).load())]),
    );
  }

  #columnWindow(name: string, index: Scalar<"i32">): Ref {
    const first = this.#first(index);
    return (this.#argument[name] as Ref).at(slice(first, this.#groups), slice(0, this.#form.box));
  }

  /** Copies the per-column inputs of the block into shared memory, where they stay for all rows. */
  keepColumns(): void {
    const { op, configuration } = this.#form;
    for (const { name } of op.arrays.filter(isOfColumns))
      for (let piece = 0; piece < configuration.pieces; piece += 1) {
        const index = constant(dtypes.i32, piece);
        const tile = this.#byThreads(this.#columnWindow(name, index).load());
        (this.#argument[keptName(name)] as Ref).at(index).store(this.#byGroups(tile));
      }
  }

  /** Prefetches the per-column inputs that only results need, while the first row is loaded. */
  prefetchColumns(): void {
    const { op, configuration } = this.#form;
    const late = op.arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
    for (const { name } of late)
      for (let piece = 0; piece < configuration.pieces; piece += 1)
        prefetch(this.#columnWindow(name, constant(dtypes.i32, piece)));
  }

  /** Per-row inputs, [1, 1]; past the last row, those of the last. */
  rowTiles(iteration: Scalar<"i32">, count: Scalar<"i32">): RowTiles {
    const wanted = this.#form.op.arrays.filter(
      ({ per, role }) => per === "row" && role === "input",
    );
    const row = this.row(iteration).minimum(count.sub(1)).maximum(0);
    return Object.fromEntries(
      wanted.map(({ name }) => [
        name,
        (this.#argument[name] as Ref).at(slice(row, 1)).load().reshape([1, 1]),
      ]),
    );
  }

  storePiece(iteration: Scalar<"i32">, index: Scalar<"i32">, results: RowTiles): void {
    const { op, box } = this.#form;
    const [first, groups] = [this.#first(index), this.#groups];
    for (const { name, per, role } of op.arrays) {
      const result = results[name];
      if (per !== "element" || role !== "output" || result === undefined) continue;
      (this.#argument[name] as Ref)
        .at(this.row(iteration), slice(first, groups), slice(0, box))
        .store(this.#byGroups(result));
    }
  }

  /** Stores per-row results: the first block of the row does, and its first warp where warps work on their own. */
  storeRow(iteration: Scalar<"i32">, ofRow: RowTiles, statistics: Statistics): void {
    const { op, configuration } = this.#form;
    const { rowResults } = op;
    if (rowResults === undefined) return;
    const store = (): void => {
      const results = rowResults(ofRow, statistics, this.#total());
      for (const { name, per, role } of op.arrays) {
        const result = results[name];
        if (per !== "row" || role !== "output" || result === undefined) continue;
        (this.#argument[name] as Ref)
          .at(slice(this.row(iteration), 1))
          .store(result.broadcastTo([1, 1]).reshape([1]));
      }
    };
    const isFirst = configuration.blocks === 1 ? undefined : this.#rank.eq(0);
    const isFirstWarp = this.#warp?.eq(0);
    const both = isFirst && isFirstWarp ? isFirst.and(isFirstWarp) : (isFirst ?? isFirstWarp);
    if (both === undefined) store();
    else when(both, store);
  }

  #total(): Scalar {
    const { groups } = extentsOf(this.#form);
    const columns = constant(dtypes.i32, 0).add(groups).mul(this.#form.box);
    return columns.cast(this.#form.op.compute);
  }

  /** One of the block's pieces. */
  piece(index: Scalar<"i32">): Piece {
    const { op, isWhole, configuration, box } = this.#form;
    const start = this.#first(index).mul(box);
    const { threads, each, widest } = this.#shares();
    const { groups } = extentsOf(this.#form);
    const extent = constant(dtypes.i32, 0).add(groups).mul(box);
    const positions = (): Tile<"i32"> =>
      this.#byThreads(
        iota(dtypes.i32, [this.#groups, box], { axis: 0 })
          .mul(box)
          .add(iota(dtypes.i32, [this.#groups, box], { axis: 1 })),
      ).add(start) as Tile<"i32">;
    const isWithin = (): Tile<"bool"> => positions().lt(extent);
    return {
      within: (tile, value) =>
        isWhole ? tile : isWithin().select(tile, full(tile.dtype, [1, 1], value)),
      count: isWhole
        ? full(op.compute, [1, 1], each * widest)
        : isWithin()
            .broadcastTo([threads, each * widest])
            .cast(dtypes.i32)
            .sum({ axis: 1, keepDims: true })
            .cast(op.compute),
      total: this.#total(),
      columns: positions,
      ...(configuration.blocks * configuration.pieces > 1 && {
        range: { from: start, width: this.#columns },
      }),
    };
  }
}

function bitNames(name: string, count: number): string {
  return Array.from({ length: count }, (_, bit) => `${name}${bit}`).join(" ");
}
