/**
 * The basic row kernel, one block for each group of rows or share of a row:
 *
 *   | rows | blocks | pieces | what a block does                                                                      |
 *   |------|--------|--------|----------------------------------------------------------------------------------------|
 *   | 16   | 1      | 1      | holds 16 rows in registers                                                             |
 *   | 1    | 1      | 1      | holds a row                                                                            |
 *   | 1    | 8      | 1      | holds an eighth of a row; the blocks of a cluster exchange statistics                  |
 *   | 1    | 1, 8   | many   | loops over its share twice, for statistics and for results                             |
 *   | 1    | 32     | 1      | holds its share of a row; blocks anywhere on the GPU exchange statistics via a mailbox |
 *
 * Statistics are merged in the order of pieces and blocks, so results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import {
  tensor,
  cdiv,
  clusterSync,
  constant,
  kernel,
  loop,
  slice,
  smem,
  when,
} from "../../lang/index.ts";
import { ceilDivSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import type { Index, KernelDefinition, Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import { threadsPerBlock } from "../support/sizes.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { mailboxName } from "../support/mailbox.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";
import { blocksOf } from "./block-quantization.ts";
import type { Piece, RowOp, RowTiles, Statistics } from "./row-op.ts";
import {
  exchangeInCluster,
  rowPiece,
  statisticsMailboxShape,
  exchangeThroughMailbox,
} from "./row-statistics.ts";
import type {
  PipelinedRowsConfiguration,
  GridCooperativeRowsConfiguration,
} from "./choose-pipelined-rows.ts";
import type { PersistentRowsConfiguration } from "./persistent-rows.ts";

/** The schedule of an operation on rows: the basic kernel, persistent, TMA-pipelined or grid-cooperative. */
export type RowConfiguration =
  | RowKernelConfiguration
  | PersistentRowsConfiguration
  | PipelinedRowsConfiguration
  | GridCooperativeRowsConfiguration;

export interface RowKernelConfiguration {
  /** Rows of a block. */
  readonly rows: number;
  /** Columns of a piece. */
  readonly columns: number;
  /** Blocks that share a row: a cluster, or blocks anywhere on the GPU where it is grid-cooperative. */
  readonly blocks: number;
  /** Pieces that a block goes through. */
  readonly pieces: number;
  /** Blocks exchange statistics through a mailbox in global memory; the warps of each. */
  readonly gridCooperative?: { readonly warps: number };
  /** A block has more than four warps: how many, and the blocks of a processor. */
  readonly wide?: { readonly warps: number; readonly minBlocksPerMultiprocessor: number };
  /** Inputs that only results need are loaded together with the row; the blocks of a processor. */
  readonly early?: { readonly minBlocksPerMultiprocessor: number };
}

export function rowKernel(
  op: RowOp,
  form: StridedForm,
  configuration: RowKernelConfiguration,
): KernelDefinition {
  const { rows, columns, blocks, gridCooperative, early, wide } = configuration;
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const step = (axis: number): number => (axis === last ? columns : axis === last - 1 ? rows : 1);
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap(({ name, dtype, role: own }, position) =>
        own === role ? [[name, form.spec(position, dtype)]] : [],
      ),
    );
  const grid = Object.fromEntries(
    leads.map((axis) => [`block${axis}`, cdiv(form.extents[axis] ?? 1, step(axis))]),
  );
  const isCluster = blocks > 1 && gridCooperative === undefined;
  const numbers = smem(op.compute, [op.statistics.length, 1, 1]);
  return kernel(
    {
      name: op.name,
      grid: { ...grid, rank: blocks },
      ...(isCluster && { cluster: { rank: blocks } }),
      ...(isManyHeld(op, configuration) && { minBlocksPerMultiprocessor: manyBlocks }),
      ...early,
      ...wide,
      ...(gridCooperative !== undefined && {
        warps: gridCooperative.warps,
        inouts: {
          [mailboxName]: tensor(
            dtypes.u64,
            statisticsMailboxShape(op, form.extents.slice(0, -1), blocks),
          ),
        },
      }),
      inputs: {
        ...named("input"),
        ...(op.quantization?.record.hasGlobalScale === true && {
          globalScale: tensor(dtypes.f32, [1]),
        }),
      },
      outputs: { ...named("output"), ...scaleOutput(op, form.extents) },
      scratch: {
        ...(blocks > 1 && { shared: numbers }),
        ...(gridCooperative !== undefined && { heard: numbers }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      followPrevious();
      const starts = leads.map((axis) =>
        (argument[`block${axis}`] as Scalar<"i32">).mul(step(axis)),
      );
      const rank = argument["rank"] as Scalar<"i32">;
      const exchange = (own: Statistics): Statistics => {
        if (blocks === 1) return own;
        const shared = argument["shared"] as Ref;
        if (isCluster) return exchangeInCluster(op, own, shared, blocks);
        const mailbox = (argument[mailboxName] as Ref<"u64">).at(...starts);
        const merged = argument["heard"] as Ref;
        return exchangeThroughMailbox(op, own, { shared, merged, mailbox, rank, blocks });
      };
      new RowBody(op, form, configuration, argument, starts).run(rank, exchange);
      if (isCluster) clusterSync();
    },
  ) as unknown as KernelDefinition;
}

/** The scales of a result in a format with such, for rows of these extents. */
export function scaleOutput(
  { quantization }: RowOp,
  extents: readonly Size[],
): { readonly [name: string]: TensorSpec } {
  if (quantization === undefined) return {};
  const { scale, block } = quantization.record;
  const counts = extents.with(-1, ceilDivSize(extents.at(-1) ?? 1, block[1]));
  return { outScale: tensor(scale, counts) };
}

/** Blocks of a processor whose threads hold many elements: while some compute, others load and store. */
const manyBlocks = 4;

/** Whether threads hold many elements of one array, narrow enough for that many blocks. */
function isManyHeld(
  { arrays }: RowOp,
  { rows, columns, blocks, pieces }: RowKernelConfiguration,
): boolean {
  const inputs = arrays.filter(({ per, role }) => per === "element" && role === "input");
  const isNarrow = inputs.length === 1 && arrays.every(({ dtype }) => dtype.bits <= 16);
  const each = (rows * columns) / threadsPerBlock;
  return isNarrow && blocks === 1 && pieces === 1 && each > 32 && each <= 64;
}

/** The body of the kernel, for one block. */
class RowBody {
  readonly #op: RowOp;
  readonly #form: StridedForm;
  readonly #configuration: RowKernelConfiguration;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #starts: readonly Index[];
  readonly #last: number;

  constructor(
    op: RowOp,
    form: StridedForm,
    configuration: RowKernelConfiguration,
    argument: { readonly [name: string]: unknown },
    starts: readonly Index[],
  ) {
    this.#op = op;
    this.#form = form;
    this.#configuration = configuration;
    this.#argument = argument;
    this.#starts = starts;
    this.#last = form.axes.length - 1;
  }

  run(rank: Scalar<"i32">, exchange: (own: Statistics) => Statistics): void {
    const { columns, pieces, gridCooperative, early: asked } = this.#configuration;
    const own = this.#rowTiles();
    if (pieces > 1) {
      this.#runLooped(rank, own, exchange);
      return;
    }
    const start = rank.mul(columns);
    const tiles = { ...own, ...this.#pieceTiles(start) };
    // A block alone on its processor has registers to load these during the exchange.
    const early =
      gridCooperative === undefined && asked === undefined ? undefined : this.#lateTiles(start);
    const piece = this.#piece(start);
    const statistics = exchange(this.#op.measure(tiles, piece));
    if (this.#hasResults()) {
      const all = { ...tiles, ...(early ?? this.#lateTiles(start)) };
      this.#storePiece(start, this.#op.results(all, statistics, piece), piece);
    }
    this.#storeRows(rank, own, statistics);
  }

  #hasResults(): boolean {
    return this.#op.arrays.some(({ role, per }) => role === "output" && per === "element");
  }

  /** Loops over the share twice: its pieces may not fit in registers, and the second time they come from the cache. */
  #runLooped(rank: Scalar<"i32">, own: RowTiles, exchange: (own: Statistics) => Statistics): void {
    const { columns, blocks } = this.#configuration;
    const pieces = cdiv(this.#form.extents[this.#last] ?? 1, columns * blocks);
    const first = rank.mul(columns).mul(pieces);
    const measured = (start: Scalar<"i32">): Statistics =>
      this.#op.measure({ ...own, ...this.#pieceTiles(start) }, this.#piece(start));
    const carry = { ...measured(first) };
    const all = loop({ from: 1, to: pieces, carry }, (index, sofar) =>
      this.#op.merge(sofar, measured(first.add(index.mul(columns)))),
    );
    const statistics = exchange(all);
    this.#storeRows(rank, own, statistics);
    if (!this.#hasResults()) return;
    loop(pieces, (index) => {
      const start = first.add(index.mul(columns));
      const tiles = { ...own, ...this.#pieceTiles(start), ...this.#lateTiles(start) };
      const piece = this.#piece(start);
      this.#storePiece(start, this.#op.results(tiles, statistics, piece), piece);
    });
  }

  #rowTiles(): RowTiles {
    return this.#load("row", [...this.#starts, 0]);
  }

  #pieceTiles(start: Scalar<"i32">): RowTiles {
    const starts = [...this.#starts, start];
    return {
      ...this.#load("column", starts),
      ...this.#load("element", starts),
    };
  }

  /** Inputs that only results need. */
  #lateTiles(start: Scalar<"i32">): RowTiles {
    return this.#load("column", [...this.#starts, start], true);
  }

  #load(per: "element" | "row" | "column", starts: readonly Index[], isLate = false): RowTiles {
    const tiles: { [name: string]: Tile } = {};
    for (const [position, array] of this.#op.arrays.entries()) {
      const isWanted = array.per === per && (array.isLate ?? false) === isLate;
      if (!isWanted || array.role === "output") continue;
      const window = this.#window(array.name, position, starts);
      const shape = this.#form.tileShape(position, this.#sizes(), [this.#last - 1, this.#last]);
      // Rows are read once, yet evict_last is faster: softmax and RMS norms of 8192 columns take 3 % less time.
      const read = per === "element" ? window.load({ evict: "last" }) : window.load();
      tiles[array.name] = read.reshape(shape);
    }
    return tiles;
  }

  #ref(name: string): Ref {
    return this.#argument[name] as Ref;
  }

  #window(name: string, position: number, starts: readonly Index[]): Ref {
    return this.#form.window(this.#ref(name), position, starts, this.#sizes());
  }

  #sizes(): readonly number[] {
    const { rows, columns } = this.#configuration;
    return this.#form.axes.map((_, axis) =>
      axis === this.#last ? columns : axis === this.#last - 1 ? rows : 1,
    );
  }

  #storePiece(start: Scalar<"i32">, results: RowTiles, piece: Piece): void {
    this.#store("element", this.#quantised(start, results, piece), [...this.#starts, start]);
  }

  /** Results with `out` in its format with scales, which are stored. */
  #quantised(start: Scalar<"i32">, results: RowTiles, piece: Piece): RowTiles {
    const { quantization } = this.#op;
    const { out } = results;
    if (quantization === undefined || out === undefined) return results;
    const { record } = quantization;
    const { rows, columns } = this.#configuration;
    const along = record.block[1];
    // What lies beyond the end of a row is in no block.
    const blocks = piece.within(out, 0).reshape([rows, 1, columns / along, along]);
    const global = record.hasGlobalScale ? this.#ref("globalScale") : undefined;
    const { codes, elements } = blocksOf(blocks, quantization, out.dtype.bits === 16, global);
    const sizes = this.#sizes().with(-1, columns / along);
    const starts = [...this.#starts, start.shr(Math.log2(along))];
    const window = starts.map((each, axis) => slice(each, sizes[axis] ?? 1));
    const scales = this.#ref("outScale").at(...window);
    scales.store(codes.reshape(scales.shape.map(Number)));
    return { ...results, out: elements().reshape([rows, columns]) };
  }

  /** Stores per-row results: the first block of a cluster does. */
  #storeRows(rank: Scalar<"i32">, own: RowTiles, statistics: Statistics): void {
    const { rowResults } = this.#op;
    if (rowResults === undefined) return;
    const store = (): void => {
      this.#store("row", rowResults(own, statistics, this.#total()), [...this.#starts, 0]);
    };
    if (this.#configuration.blocks === 1) store();
    else when(rank.eq(0), store);
  }

  #store(per: "element" | "row", results: RowTiles, starts: readonly Index[]): void {
    for (const [position, array] of this.#op.arrays.entries()) {
      const result = results[array.name];
      if (array.role !== "output" || array.per !== per || result === undefined) continue;
      const target = this.#window(array.name, position, starts);
      const shape = this.#form.tileShape(position, this.#sizes(), [this.#last - 1, this.#last]);
      storeWhole(target, result, shape);
    }
  }

  #total(): Scalar {
    return constant(this.#op.compute, this.#form.extents[this.#last] ?? 1);
  }

  #piece(start: Scalar<"i32">): Piece {
    return rowPiece(this.#op, this.#form, this.#configuration, start);
  }
}
