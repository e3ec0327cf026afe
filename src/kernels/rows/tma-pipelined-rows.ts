/**
 * TMA-pipelined rows: persistent blocks load rows by TMA through a pipeline of stages in shared memory, so loads in flight take no
 * registers and block no thread:
 *
 *   6 stages, rows of 7 pieces,      a b c d e f            a b c are read into registers, and their stages are refilled
 *   of which registers hold 3        g A B d e f            statistics of row 0 are complete; row 1 is in flight: A B
 *                                    F A B C D E            row 0 is stored: first the pieces in stages, then those in registers
 *
 * Pieces in registers are read from shared memory once, the others twice, for statistics and for results. Threads reduce their own
 * elements first and combine once a row. Longer rows are shared by the blocks of a cluster, which write their statistics into each
 * other's shared memory and arrive on each other's barriers: nobody waits for stores.
 *
 * All merges have a fixed order, so results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Planned, PlannedLaunch } from "../../device/operation.ts";
import {
  barrier,
  clusterSync,
  constant,
  full,
  kernel,
  loop,
  ring,
  slice,
  smem,
  warps,
  when,
} from "../../lang/index.ts";
import type {
  Barrier,
  KernelDefinition,
  Ref,
  RingPosition,
  Scalar,
  ScratchSpec,
  Tile,
} from "../../lang/index.ts";
import { strideForm } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { boxOf, isElement, isOfColumns } from "./choose-pipelined-rows.ts";
import type { PipelinedRowsConfiguration } from "./choose-pipelined-rows.ts";
import {
  RowPipeline,
  arraySpec,
  extentsOf,
  keptName,
  ownName,
  queueName,
  statisticName,
  strideName,
} from "./row-pipeline.ts";
import type { PipelinedForm, ReadPiece } from "./row-pipeline.ts";
import type { RowOp, LoadedPiece, RowTiles, Statistics } from "./row-op.ts";

/** Everything that the kernel depends on. */
export function pipelinedForm(
  op: RowOp,
  [lead, column]: readonly StridedAxis[],
  configuration: PipelinedRowsConfiguration,
): PipelinedForm {
  if (lead === undefined || column === undefined) throw new Error("rows lie along two axes");
  const { columns, blocks, pieces } = configuration;
  const isWhole = column.extent === columns * blocks * pieces;
  const strides = op.arrays.map((_, position) => lead.strides[position] ?? 0);
  return { op, configuration, box: boxOf(column.extent) ?? 1, isWhole, strides };
}

/** The launch of the kernel, which is traced unless it is cached. */
export function pipelinedLaunch(
  { op, configuration, box, isWhole, strides }: PipelinedForm,
  [lead, column]: readonly StridedAxis[],
  kernels: Map<string, KernelDefinition>,
  make: () => KernelDefinition,
): PlannedLaunch {
  const text = JSON.stringify([configuration, box, isWhole, strides.map(strideForm)]);
  const known = kernels.get(text) ?? make();
  kernels.set(text, known);
  const declared = new Set(known.kernel.dimensions.map(({ name }) => name));
  const dimensions = {
    height: lead?.extent ?? 1,
    groups: (column?.extent ?? 1) / box,
    ...Object.fromEntries(strides.map((stride, position) => [strideName(position), stride])),
  };
  return {
    kernel: known,
    arguments: Object.fromEntries(
      op.arrays.map(({ name }) => [name, { argument: name, flat: true }] as const),
    ),
    dimensions: Object.fromEntries(
      Object.entries(dimensions).filter(([name]) => declared.has(name)),
    ),
  };
}

export function planPipelinedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: PipelinedRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<PipelinedRowsConfiguration> {
  const form = pipelinedForm(op, axes, configuration);
  const launches = () => [pipelinedLaunch(form, axes, kernels, () => pipelinedRowsKernel(form))];
  return { configuration, source: "heuristic", launches };
}

/** A piece in registers, and its index among those of the block. */
interface HeldPiece {
  readonly index: Scalar<"i32">;
  readonly tiles: RowTiles;
}

/** The pieces of a row that registers hold, what was measured of them, and the place of the one behind them. */
interface Holding {
  readonly held: readonly HeldPiece[];
  readonly own: Statistics | undefined;
  readonly at: RingPosition;
}

/** Pieces that are read before their stages are refilled together: each refill takes a barrier, and most stages are to stay in flight. */
function mostTogether({ stages }: PipelinedRowsConfiguration): number {
  return Math.min(4, Math.ceil(stages / 4));
}

/** The unroll factor of a loop over so many pieces: at most `mostTogether`, one less where registers also hold several per-column inputs. */
function togetherOf({ op, configuration }: PipelinedForm, pieces: number): number {
  const late = op.arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
  let together = Math.max(1, mostTogether(configuration) - (late.length > 1 ? 1 : 0));
  while (pieces % together !== 0) together -= 1;
  return together;
}

function pipelinedRowsKernel(form: PipelinedForm): KernelDefinition {
  const { op, configuration, box } = form;
  const { blocks, workers, stages, columns, pieces } = configuration;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(form, each, position)]] : [],
      ),
    );
  const elements = op.arrays.filter(isElement);
  const queues = elements.map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [stages, columns / box, box]),
  ]);
  const keptColumns = op.arrays
    .filter(isOfColumns)
    .map(({ name, dtype }): readonly [string, ScratchSpec] => [
      keptName(name),
      smem(dtype, [pieces, columns / box, box]),
    ]);
  // Double-buffered: the statistics of the last row may still be read.
  const shared = op.statistics.flatMap((name): (readonly [string, ScratchSpec])[] => [
    [ownName(name), smem(op.compute, [2])],
    [statisticName(name), smem(op.compute, [2, blocks])],
  ]);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, rank: blocks },
      ...(blocks > 1 && { cluster: { rank: blocks } }),
      warps: configuration.warps,
      inputs: named("input"),
      outputs: named("output"),
      scratch: {
        ...Object.fromEntries(queues),
        ...(configuration.keepsColumns === true && Object.fromEntries(keptColumns)),
        loaded: barrier({ count: stages, arrivals: elements.length }),
        ...(blocks > 1 && {
          ...Object.fromEntries(shared),
          exchanged: barrier({ count: 2, arrivals: blocks }),
        }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      new PipelinedRows(form, argument).run();
    },
  ) as unknown as KernelDefinition;
}

/** The body of the kernel, for one block. */
class PipelinedRows {
  readonly #form: PipelinedForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #pipeline: RowPipeline;
  readonly #rank: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;

  constructor(form: PipelinedForm, argument: { readonly [name: string]: unknown }) {
    this.#form = form;
    this.#argument = argument;
    this.#pipeline = new RowPipeline(form, argument);
    this.#rank = argument["rank"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
  }

  run(): void {
    const { configuration } = this.#form;
    const { workers, pieces, stages, blocks } = configuration;
    const { height } = extentsOf(this.#form);
    const count = constant(dtypes.i32, 0).add(height as never);
    const iterations = count
      .sub(this.#worker)
      .add(workers - 1)
      .div(workers);
    // Columns in shared memory are read for every row, and are not there yet.
    const inRegisters = pieces === 1 && configuration.keepsColumns !== true;
    const kept = inRegisters ? this.#pipeline.columnTiles(constant(dtypes.i32, 0)) : undefined;
    loop({ to: iterations.mul(pieces).minimum(stages) }, (index) => {
      this.#pipeline.load(index.div(pieces), index.rem(pieces), index);
    });
    if (configuration.keepsColumns === true) this.#pipeline.keepColumns();
    else if (kept === undefined) this.#pipeline.prefetchColumns();
    const carry = {
      position: ring(stages).start(),
      ofRow: this.#pipeline.rowTiles(constant(dtypes.i32, 0), count),
    };
    loop({ to: iterations, carry }, (iteration, { position, ofRow }) => {
      const following = this.#pipeline.rowTiles(iteration.add(1), count);
      const after = this.#work(iteration, iterations, position, ofRow, kept);
      return { position: after, ofRow: following };
    });
    // A block must not exit while others write into its shared memory.
    if (blocks > 1) clusterSync();
  }

  /**
   * One row. Its first pieces are read into registers and their stages refilled at once. The others stay in their stages until
   * their results are made, which happens first, so that these stages are refilled as well.
   */
  #work(
    iteration: Scalar<"i32">,
    iterations: Scalar<"i32">,
    position: RingPosition,
    ofRow: RowTiles,
    kept: RowTiles | undefined,
  ): RingPosition {
    const { op, configuration } = this.#form;
    const { pieces, held } = configuration;
    const pieceAt = (index: Scalar<"i32">, tiles: RowTiles): LoadedPiece => ({
      tiles: { ...ofRow, ...(kept ?? this.#pipeline.columnTiles(index, false)), ...tiles },
      piece: this.#pipeline.piece(index),
    });
    const results = (index: Scalar<"i32">, tiles: RowTiles, statistics: Statistics): RowTiles => {
      const all = { ...ofRow, ...(kept ?? this.#pipeline.columnTiles(index)), ...tiles };
      return op.results(all, statistics, this.#pipeline.piece(index));
    };
    const holding = this.#takeHeld(iteration, iterations, position, pieceAt);
    const { own, at: after } = this.#measureStaged(holding, pieceAt);
    const statistics = this.#exchanged(iteration, op.mergeAll(own));
    this.#pipeline.storeRow(iteration, ofRow, statistics);
    const step = togetherOf(this.#form, pieces - held);
    if (held < pieces)
      loop({ from: held, to: pieces, step, carry: holding.at }, (first, from) => {
        const read: ReadPiece[] = [];
        let at = from;
        for (let each = 0; each < step; each += 1) {
          const index = first.add(each);
          // Before a stage is refilled, all threads must be done with it: stores of the last piece are, by now.
          const made = results(index, this.#pipeline.stageTiles(at.slot), statistics);
          read.push({ piece: index, stage: at.slot });
          if (read.length === step) this.#pipeline.refill(iteration, iterations, read);
          this.#pipeline.storePiece(iteration, index, made);
          at = ring(configuration.stages).next(at);
        }
        return at;
      });
    for (const { index, tiles } of holding.held) {
      // Starts from the loaded elements again, so that registers hold those and not their wider conversions.
      const elements = Object.entries(tiles).map(([name, tile]) => [
        name,
        this.#pipeline.held(tile),
      ]);
      const again = Object.fromEntries(elements) as RowTiles;
      this.#pipeline.storePiece(iteration, index, results(index, again, statistics));
    }
    return after;
  }

  /** Reads pieces into registers; their statistics, and the stage of the next piece. */
  #takeHeld(
    iteration: Scalar<"i32">,
    iterations: Scalar<"i32">,
    position: RingPosition,
    pieceAt: (index: Scalar<"i32">, tiles: RowTiles) => LoadedPiece,
  ): Holding {
    const { op, configuration } = this.#form;
    const { stages } = configuration;
    const held: HeldPiece[] = [];
    const read: ReadPiece[] = [];
    let at = position;
    let own: Statistics | undefined;
    for (let count = 1; count <= configuration.held; count += 1) {
      const index = constant(dtypes.i32, count - 1);
      this.#pipeline.waitLoaded(at);
      const tiles = this.#pipeline.stageTiles(at.slot);
      read.push({ piece: index, stage: at.slot });
      if (read.length === mostTogether(configuration) || count === configuration.held)
        this.#pipeline.refill(iteration, iterations, read.splice(0));
      if (op.measureAll === undefined) {
        const part = pieceAt(index, tiles);
        const more = op.measure(part.tiles, part.piece);
        own = own === undefined ? more : op.merge(own, more);
      }
      held.push({ index, tiles });
      at = ring(stages).next(at);
    }
    if (held.length > 0)
      own ??= op.measureAll?.(held.map(({ index, tiles }) => pieceAt(index, tiles)));
    return { held, own, at };
  }

  /** The statistics of the block's share of the row, and the stage of the next row. */
  #measureStaged(
    { own: before, at: position }: Holding,
    pieceAt: (index: Scalar<"i32">, tiles: RowTiles) => LoadedPiece,
  ): { readonly own: Statistics; readonly at: RingPosition } {
    const { op, configuration } = this.#form;
    const { pieces, stages, held } = configuration;
    const measuredAt = (index: Scalar<"i32">, at: RingPosition): Statistics => {
      this.#pipeline.waitLoaded(at);
      const { tiles, piece } = pieceAt(index, this.#pipeline.stageTiles(at.slot));
      return op.measure(tiles, piece);
    };
    const own = before ?? measuredAt(constant(dtypes.i32, 0), position);
    if (held === pieces) return { own, at: position };
    const from = Math.max(1, held);
    const at = before === undefined ? ring(stages).next(position) : position;
    return loop({ from, to: pieces, carry: { own: { ...own }, at } }, (index, sofar) => ({
      own: { ...op.merge(sofar.own, measuredAt(index, sofar.at)) },
      at: ring(stages).next(sofar.at),
    }));
  }

  /**
   * Statistics of the whole row: each block writes its own into the shared memory of all others and merges them in rank order. A remote
   * arrival waits for the writes before it, so each peer is served by a warp of its own.
   */
  #exchanged(iteration: Scalar<"i32">, own: Statistics): Statistics {
    const { op, configuration } = this.#form;
    const { blocks } = configuration;
    if (blocks === 1) return own;
    const side = iteration.rem(2);
    const exchanged = (this.#argument["exchanged"] as Barrier).at(side);
    const shared = (name: string): Ref => this.#argument[statisticName(name)] as Ref;
    const local = (name: string): Ref => (this.#argument[ownName(name)] as Ref).at(slice(side, 1));
    for (const name of op.statistics)
      local(name).store((own[name] ?? full(op.compute, [1, 1], 0)).reshape([1]));
    warps((warp) => {
      for (let first = 0; first < blocks; first += configuration.warps) {
        const peer = warp.add(first);
        when(peer.lt(blocks), () => {
          for (const name of op.statistics)
            shared(name).peer(peer).at(side, slice(this.#rank, 1)).store(local(name).load());
          exchanged.arrive({ peer });
        });
      }
    });
    exchanged.wait({ parity: iteration.div(2).rem(2) });
    const all = op.statistics.map((name): readonly [string, Tile] => [
      name,
      shared(name).at(side).load().reshape([blocks, 1]),
    ]);
    return op.mergeAll(Object.fromEntries(all));
  }
}
