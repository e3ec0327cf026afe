/**
 * Operations on rows by blocks that stay, to which rows come through a queue in shared memory. The copy engine fills it, so
 * that what is in flight takes no registers and waits for nobody:
 *
 *   queue of 6 pieces, rows of 7 pieces      a b c d e f            registers take a b c, and their places are filled again
 *   of which registers hold 3                g A B d e f            row 0 measured; row 1 is on its way: A B
 *                                            F A B C D E            row 0 stored: what the queue had of it, then what registers had
 *
 * What registers hold is read from shared memory once, the rest twice, for statistics and for results. Lanes
 * measure what they hold themselves and put it together once a row. Longer rows are shared by the blocks of a cluster, which
 * write their statistics into each other's memory and arrive on each other's barriers: nobody waits for stores.
 *
 * Every merge has a fixed order, so results repeat bit for bit.
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
import type { QueuedRowsConfiguration } from "./choose-pipelined-rows.ts";
import {
  QueueBlock,
  arraySpec,
  extentsOf,
  keptName,
  ownName,
  queueName,
  statisticName,
  strideName,
} from "./row-pipeline.ts";
import type { QueuedForm, ReadPiece } from "./row-pipeline.ts";
import type { RowOp, RowPart, RowTiles, Statistics } from "./row-op.ts";

/** What a kernel for these rows depends on. */
export function queuedForm(
  op: RowOp,
  [lead, column]: readonly StridedAxis[],
  configuration: QueuedRowsConfiguration,
): QueuedForm {
  if (lead === undefined || column === undefined) throw new Error("rows lie along two axes");
  const { columns, blocks, pieces } = configuration;
  const isWhole = column.extent === columns * blocks * pieces;
  const strides = op.arrays.map((_, position) => lead.strides[position] ?? 0);
  return { op, configuration, box: boxOf(column.extent) ?? 1, isWhole, strides };
}

/** The launch of such a kernel, which is made unless it is known. */
export function queuedLaunch(
  { op, configuration, box, isWhole, strides }: QueuedForm,
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

export function planQueuedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: QueuedRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<QueuedRowsConfiguration> {
  const form = queuedForm(op, axes, configuration);
  const launches = () => [queuedLaunch(form, axes, kernels, () => queuedRowsKernel(form))];
  return { configuration, source: "heuristic", launches };
}

/** A piece that registers hold, and which one of the block's it is. */
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

/** How many pieces are read before their places are filled again together: lanes meet each time, and most places are on their way. */
function mostTogether({ slots }: QueuedRowsConfiguration): number {
  return Math.min(4, Math.ceil(slots / 4));
}

/** The greatest number up to that by which a loop over so many pieces goes on; one less where registers have several columns of each. */
function togetherOf({ op, configuration }: QueuedForm, pieces: number): number {
  const late = op.arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
  let together = Math.max(1, mostTogether(configuration) - (late.length > 1 ? 1 : 0));
  while (pieces % together !== 0) together -= 1;
  return together;
}

function queuedRowsKernel(form: QueuedForm): KernelDefinition {
  const { op, configuration, box } = form;
  const { blocks, workers, slots, columns, pieces } = configuration;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(form, each, position)]] : [],
      ),
    );
  const elements = op.arrays.filter(isElement);
  const queues = elements.map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [slots, columns / box, box]),
  ]);
  const keptColumns = op.arrays
    .filter(isOfColumns)
    .map(({ name, dtype }): readonly [string, ScratchSpec] => [
      keptName(name),
      smem(dtype, [pieces, columns / box, box]),
    ]);
  // Statistics of this row and of the last: those of the last may still be read.
  const shared = op.statistics.flatMap((name): (readonly [string, ScratchSpec])[] => [
    [ownName(name), smem(op.compute, [2])],
    [statisticName(name), smem(op.compute, [2, blocks])],
  ]);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, part: blocks },
      ...(blocks > 1 && { cluster: { part: blocks } }),
      warps: configuration.warps,
      inputs: named("input"),
      outputs: named("output"),
      scratch: {
        ...Object.fromEntries(queues),
        ...(configuration.keepsColumns === true && Object.fromEntries(keptColumns)),
        brought: barrier({ count: slots, arrivals: elements.length }),
        ...(blocks > 1 && {
          ...Object.fromEntries(shared),
          told: barrier({ count: 2, arrivals: blocks }),
        }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      new QueuedRows(form, argument).run();
    },
  ) as unknown as KernelDefinition;
}

/** The body of the kernel, for one block. */
class QueuedRows {
  readonly #form: QueuedForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #block: QueueBlock;
  readonly #part: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;

  constructor(form: QueuedForm, argument: { readonly [name: string]: unknown }) {
    this.#form = form;
    this.#argument = argument;
    this.#block = new QueueBlock(form, argument);
    this.#part = argument["part"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
  }

  run(): void {
    const { configuration } = this.#form;
    const { workers, pieces, slots, blocks } = configuration;
    const { height } = extentsOf(this.#form);
    const count = constant(dtypes.i32, 0).add(height as never);
    const turns = count
      .sub(this.#worker)
      .add(workers - 1)
      .div(workers);
    // Columns in shared memory are read for every row: nothing is there yet.
    const inRegisters = pieces === 1 && configuration.keepsColumns !== true;
    const kept = inRegisters ? this.#block.columnTiles(constant(dtypes.i32, 0)) : undefined;
    loop({ to: turns.mul(pieces).minimum(slots) }, (index) => {
      this.#block.bring(index.div(pieces), index.rem(pieces), index);
    });
    if (configuration.keepsColumns === true) this.#block.keepColumns();
    else if (kept === undefined) this.#block.askForColumns();
    const carry = {
      position: ring(slots).start(),
      ofRow: this.#block.rowTiles(constant(dtypes.i32, 0), count),
    };
    loop({ to: turns, carry }, (turn, { position, ofRow }) => {
      const following = this.#block.rowTiles(turn.add(1), count);
      const after = this.#work(turn, turns, position, ofRow, kept);
      return { position: after, ofRow: following };
    });
    // A block stays while others write into its memory.
    if (blocks > 1) clusterSync();
  }

  /**
   * A row. Its first pieces are taken into registers, and their places filled again at once; the others stay in the queue until
   * results are made of them, which is done first, so that their places are filled again, too.
   */
  #work(
    turn: Scalar<"i32">,
    turns: Scalar<"i32">,
    position: RingPosition,
    ofRow: RowTiles,
    kept: RowTiles | undefined,
  ): RingPosition {
    const { op, configuration } = this.#form;
    const { pieces, held } = configuration;
    const partOf = (index: Scalar<"i32">, tiles: RowTiles): RowPart => ({
      tiles: { ...ofRow, ...(kept ?? this.#block.columnTiles(index, false)), ...tiles },
      piece: this.#block.piece(index),
    });
    const results = (index: Scalar<"i32">, tiles: RowTiles, statistics: Statistics): RowTiles => {
      const all = { ...ofRow, ...(kept ?? this.#block.columnTiles(index)), ...tiles };
      return op.results(all, statistics, this.#block.piece(index));
    };
    const holding = this.#takeHeld(turn, turns, position, partOf);
    const { own, at: after } = this.#measureQueued(holding, partOf);
    const statistics = this.#exchanged(turn, op.join(own));
    this.#block.storeRow(turn, ofRow, statistics);
    const step = togetherOf(this.#form, pieces - held);
    if (held < pieces)
      loop({ from: held, to: pieces, step, carry: holding.at }, (first, from) => {
        const read: ReadPiece[] = [];
        let at = from;
        for (let each = 0; each < step; each += 1) {
          const index = first.add(each);
          // Before a place is handed over the lanes' accesses have to be through: stores of the last piece are, by now.
          const made = results(index, this.#block.queuedTiles(at.slot), statistics);
          read.push({ piece: index, slot: at.slot });
          if (read.length === step) this.#block.refill(turn, turns, read);
          this.#block.storePiece(turn, index, made);
          at = ring(configuration.slots).next(at);
        }
        return at;
      });
    for (const { index, tiles } of holding.held) {
      // The elements again, so that registers hold them and not the wider numbers that they were measured as.
      const elements = Object.entries(tiles).map(([name, tile]) => [name, this.#block.held(tile)]);
      const again = Object.fromEntries(elements) as RowTiles;
      this.#block.storePiece(turn, index, results(index, again, statistics));
    }
    return after;
  }

  /** The pieces that registers hold, what was measured of them, and where the others begin. */
  #takeHeld(
    turn: Scalar<"i32">,
    turns: Scalar<"i32">,
    position: RingPosition,
    partOf: (index: Scalar<"i32">, tiles: RowTiles) => RowPart,
  ): Holding {
    const { op, configuration } = this.#form;
    const { slots } = configuration;
    const held: HeldPiece[] = [];
    const read: ReadPiece[] = [];
    let at = position;
    let own: Statistics | undefined;
    for (let count = 1; count <= configuration.held; count += 1) {
      const index = constant(dtypes.i32, count - 1);
      this.#block.brought(at);
      const tiles = this.#block.queuedTiles(at.slot);
      read.push({ piece: index, slot: at.slot });
      if (read.length === mostTogether(configuration) || count === configuration.held)
        this.#block.refill(turn, turns, read.splice(0));
      if (op.together === undefined) {
        const part = partOf(index, tiles);
        const more = op.measure(part.tiles, part.piece);
        own = own === undefined ? more : op.merge(own, more);
      }
      held.push({ index, tiles });
      at = ring(slots).next(at);
    }
    if (held.length > 0)
      own ??= op.together?.(held.map(({ index, tiles }) => partOf(index, tiles)));
    return { held, own, at };
  }

  /** What was measured of the whole row, and where the next one begins. */
  #measureQueued(
    { own: before, at: position }: Holding,
    partOf: (index: Scalar<"i32">, tiles: RowTiles) => RowPart,
  ): { readonly own: Statistics; readonly at: RingPosition } {
    const { op, configuration } = this.#form;
    const { pieces, slots, held } = configuration;
    const measuredAt = (index: Scalar<"i32">, at: RingPosition): Statistics => {
      this.#block.brought(at);
      const { tiles, piece } = partOf(index, this.#block.queuedTiles(at.slot));
      return op.measure(tiles, piece);
    };
    const own = before ?? measuredAt(constant(dtypes.i32, 0), position);
    if (held === pieces) return { own, at: position };
    const from = Math.max(1, held);
    const at = before === undefined ? ring(slots).next(position) : position;
    return loop({ from, to: pieces, carry: { own: { ...own }, at } }, (index, sofar) => ({
      own: { ...op.merge(sofar.own, measuredAt(index, sofar.at)) },
      at: ring(slots).next(sofar.at),
    }));
  }

  /**
   * Statistics of the whole row: each block tells its own to all, and joins what all have told in their order. Telling a block
   * takes as long as what was written before takes to be seen, so that a warp for each does it.
   */
  #exchanged(turn: Scalar<"i32">, own: Statistics): Statistics {
    const { op, configuration } = this.#form;
    const { blocks } = configuration;
    if (blocks === 1) return own;
    const side = turn.rem(2);
    const told = (this.#argument["told"] as Barrier).at(side);
    const shared = (name: string): Ref => this.#argument[statisticName(name)] as Ref;
    const local = (name: string): Ref => (this.#argument[ownName(name)] as Ref).at(slice(side, 1));
    for (const name of op.statistics)
      local(name).store((own[name] ?? full(op.compute, [1, 1], 0)).reshape([1]));
    warps((warp) => {
      for (let first = 0; first < blocks; first += configuration.warps) {
        const peer = warp.add(first);
        when(peer.lt(blocks), () => {
          for (const name of op.statistics)
            shared(name).peer(peer).at(side, slice(this.#part, 1)).store(local(name).load());
          told.arrive({ peer });
        });
      }
    });
    told.wait({ parity: turn.div(2).rem(2) });
    const all = op.statistics.map((name): readonly [string, Tile] => [
      name,
      shared(name).at(side).load().reshape([blocks, 1]),
    ]);
    return op.join(Object.fromEntries(all));
  }
}
