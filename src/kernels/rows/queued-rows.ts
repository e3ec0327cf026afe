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
import type { Planned } from "../../device/operation.ts";
import {
  array,
  barrier,
  blockSync,
  clusterSync,
  commitShared,
  constant,
  copyAsync,
  dim,
  full,
  iota,
  kernel,
  loop,
  prefetch,
  ring,
  slice,
  smem,
  warps,
  when,
} from "../../lang/index.ts";
import type {
  ArraySpec,
  Barrier,
  KernelDefinition,
  Ref,
  RingPosition,
  Scalar,
  ScratchSpec,
  Tile,
} from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import { alignedDimension, alignment, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import { boxOf, isElement } from "./choose-queue.ts";
import type { QueuedRowsConfiguration } from "./choose-queue.ts";
import type { Piece, RowArray, RowOp, RowPart, RowTiles, Statistics } from "./row-op.ts";

export function planQueuedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: QueuedRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<QueuedRowsConfiguration> {
  const [lead, column] = axes;
  if (lead === undefined || column === undefined) throw new Error("rows lie along two axes");
  const box = boxOf(column.extent) ?? 1;
  const isWhole =
    column.extent === configuration.columns * configuration.blocks * configuration.pieces;
  const strides = op.arrays.map((_, position) => lead.strides[position] ?? 0);
  const form: QueuedForm = { op, configuration, box, isWhole, strides };
  const launches = () => {
    const text = JSON.stringify([configuration, box, isWhole, strides.map(alignment)]);
    const known = kernels.get(text) ?? queuedRowsKernel(form);
    kernels.set(text, known);
    const declared = new Set(known.kernel.dimensions.map(({ name }) => name));
    const dimensions = {
      height: lead.extent,
      groups: column.extent / box,
      ...Object.fromEntries(strides.map((stride, position) => [strideName(position), stride])),
    };
    return [
      {
        kernel: known,
        arguments: Object.fromEntries(
          op.arrays.map(({ name }) => [name, { argument: name, flat: true }] as const),
        ),
        dimensions: Object.fromEntries(
          Object.entries(dimensions).filter(([name]) => declared.has(name)),
        ),
      },
    ];
  };
  return { configuration, source: "heuristic", launches };
}

interface QueuedForm {
  readonly op: RowOp;
  readonly configuration: QueuedRowsConfiguration;
  readonly box: number;
  /** Whether pieces are whole. */
  readonly isWhole: boolean;
  /** Elements from row to row, of each array. */
  readonly strides: readonly number[];
}

/** A piece that registers hold, and which one of the row it is. */
interface HeldPiece {
  readonly piece: Scalar<"i32">;
  readonly tiles: RowTiles;
}

/** The pieces of a row that registers hold, what was measured of them, and the place of the one behind them. */
interface Holding {
  readonly held: readonly HeldPiece[];
  readonly own: Statistics | undefined;
  readonly at: RingPosition;
}

/** A piece that has been read, and its place, which may be filled again. */
interface ReadPiece {
  readonly piece: Scalar<"i32">;
  readonly slot: Scalar<"i32">;
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

const strideName = (position: number): string => `stride${position}`;
const queueName = (name: string): string => `queue_${name}`;
const ownName = (name: string): string => `own_${name}`;
const statisticName = (name: string): string => `statistic_${name}`;

/** Rows, boxes of a row. */
function extentsOf({ configuration, box, isWhole }: QueuedForm): { height: Size; groups: Size } {
  const { columns, blocks, pieces } = configuration;
  return {
    height: dim("height"),
    groups: isWhole ? (columns * blocks * pieces) / box : dim("groups"),
  };
}

function arraySpec(form: QueuedForm, { per, dtype }: RowArray, position: number): ArraySpec {
  const { box, strides } = form;
  const { height, groups } = extentsOf(form);
  if (per === "column") return array(dtype, [groups, box], { strides: [box, 1] });
  const own = strides[position] ?? 1;
  const stride: Size = own <= 1 ? own : alignedDimension(strideName(position), own);
  return per === "row"
    ? array(dtype, [height], { strides: [stride] })
    : array(dtype, [height, groups, box], { strides: [stride, box, 1] });
}

function queuedRowsKernel(form: QueuedForm): KernelDefinition {
  const { op, configuration, box } = form;
  const { blocks, workers, slots, columns } = configuration;
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
  readonly #part: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;

  constructor(form: QueuedForm, argument: { readonly [name: string]: unknown }) {
    this.#form = form;
    this.#argument = argument;
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
    const kept = pieces === 1 ? this.#columnTiles(this.#ofRow(constant(dtypes.i32, 0))) : undefined;
    loop({ to: turns.mul(pieces).minimum(slots) }, (index) => {
      this.#bring(index.div(pieces), index.rem(pieces), index);
    });
    if (kept === undefined) this.#askForColumns();
    const carry = {
      position: ring(slots).start(),
      ofRow: this.#rowTiles(constant(dtypes.i32, 0), count),
    };
    loop({ to: turns, carry }, (turn, { position, ofRow }) => {
      const following = this.#rowTiles(turn.add(1), count);
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
    const partOf = (piece: Scalar<"i32">, tiles: RowTiles): RowPart => ({
      tiles: { ...ofRow, ...(kept ?? this.#columnTiles(piece, false)), ...tiles },
      piece: this.#piece(piece),
    });
    const results = (piece: Scalar<"i32">, tiles: RowTiles, statistics: Statistics): RowTiles => {
      const all = { ...ofRow, ...(kept ?? this.#columnTiles(piece)), ...tiles };
      return op.results(all, statistics, this.#piece(piece));
    };
    const holding = this.#takeHeld(turn, turns, position, partOf);
    const { own, at: after } = this.#measureQueued(holding, partOf);
    const statistics = this.#exchanged(turn, op.join(own));
    this.#storeRow(turn, ofRow, statistics);
    const step = togetherOf(this.#form, pieces - held);
    if (held < pieces)
      loop({ from: held, to: pieces, step, carry: holding.at }, (first, from) => {
        const read: ReadPiece[] = [];
        let at = from;
        for (let each = 0; each < step; each += 1) {
          const index = first.add(each);
          const piece = this.#ofRow(index);
          // Before a place is handed over the lanes' accesses have to be through: stores of the last piece are, by now.
          const made = results(piece, this.#queuedTiles(at.slot), statistics);
          read.push({ piece: index, slot: at.slot });
          if (read.length === step) this.#refill(turn, turns, read);
          this.#storePiece(turn, piece, made);
          at = ring(configuration.slots).next(at);
        }
        return at;
      });
    for (const { piece, tiles } of holding.held) {
      // The elements again, so that registers hold them and not the wider numbers that they were measured as.
      const elements = Object.entries(tiles).map(([name, tile]) => [name, this.#held(tile)]);
      const again = Object.fromEntries(elements) as RowTiles;
      this.#storePiece(turn, piece, results(piece, again, statistics));
    }
    return after;
  }

  /** The pieces that registers hold, what was measured of them, and where the others begin. */
  #takeHeld(
    turn: Scalar<"i32">,
    turns: Scalar<"i32">,
    position: RingPosition,
    partOf: (piece: Scalar<"i32">, tiles: RowTiles) => RowPart,
  ): Holding {
    const { op, configuration } = this.#form;
    const { slots } = configuration;
    const held: HeldPiece[] = [];
    const read: ReadPiece[] = [];
    let at = position;
    let own: Statistics | undefined;
    for (let index = 0; index < configuration.held; index += 1) {
      const piece = this.#ofRow(constant(dtypes.i32, index));
      this.#brought(at);
      const tiles = this.#queuedTiles(at.slot);
      read.push({ piece: constant(dtypes.i32, index), slot: at.slot });
      if (read.length === mostTogether(configuration) || index === configuration.held - 1)
        this.#refill(turn, turns, read.splice(0));
      if (op.together === undefined) {
        const part = partOf(piece, tiles);
        const more = op.measure(part.tiles, part.piece);
        own = own === undefined ? more : op.merge(own, more);
      }
      held.push({ piece, tiles });
      at = ring(slots).next(at);
    }
    if (held.length > 0)
      own ??= op.together?.(held.map(({ piece, tiles }) => partOf(piece, tiles)));
    return { held, own, at };
  }

  /** What was measured of the whole row, and where the next one begins. */
  #measureQueued(
    { own: before, at: position }: Holding,
    partOf: (piece: Scalar<"i32">, tiles: RowTiles) => RowPart,
  ): { readonly own: Statistics; readonly at: RingPosition } {
    const { op, configuration } = this.#form;
    const { pieces, slots, held } = configuration;
    const measuredAt = (index: Scalar<"i32">, at: RingPosition): Statistics => {
      this.#brought(at);
      const { tiles, piece } = partOf(this.#ofRow(index), this.#queuedTiles(at.slot));
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

  /** Which piece of the row one of the block's own is. */
  #ofRow(index: Scalar<"i32">): Scalar<"i32"> {
    return this.#part.mul(this.#form.configuration.pieces).add(index);
  }

  #brought({ slot, phase }: RingPosition): void {
    (this.#argument["brought"] as Barrier).at(slot).wait({ parity: phase });
  }

  /** Copies what comes next into the places of pieces of this row that have been read, unless there is nothing. */
  #refill(turn: Scalar<"i32">, turns: Scalar<"i32">, read: readonly ReadPiece[]): void {
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
        this.#bring(next, wraps.select(ahead.sub(pieces), ahead), slot);
      });
    }
  }

  #bring(turn: Scalar<"i32">, piece: Scalar<"i32">, slot: Scalar<"i32">): void {
    const { op, configuration, box } = this.#form;
    const groups = configuration.columns / box;
    const first = this.#ofRow(piece).mul(groups);
    for (const { name } of op.arrays.filter(isElement))
      copyAsync(
        (this.#argument[name] as Ref).at(this.#row(turn), slice(first, groups), slice(0, box)),
        (this.#argument[queueName(name)] as Ref).at(slot),
        { barrier: (this.#argument["brought"] as Barrier).at(slot) },
      );
  }

  #row(turn: Scalar<"i32">): Scalar<"i32"> {
    return turn.mul(this.#form.configuration.workers).add(this.#worker);
  }

  /** [groups, box] as [lanes, elements of each]: lanes have neighbouring stretches as wide as memory is accessed. */
  #byLanes(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    return this.#held(
      tile
        .reshape([each, lanes, widest])
        .transpose([1, 0, 2])
        .reshape([lanes, each * widest]),
    );
  }

  /** A tile by lanes, in registers. What was computed from the tile before this is not taken for what is computed from it after. */
  #held(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    const layout = `(${bitNames("L", 5)} ${bitNames("W", Math.log2(lanes / 32))} | ${bitNames("R", Math.log2(each * widest))})`;
    return tile.layoutCast(layout);
  }

  #byGroups(tile: Tile): Tile {
    const { widest, lanes, each } = this.#shares();
    const { configuration, box } = this.#form;
    return tile
      .broadcastTo([lanes, each * widest])
      .reshape([lanes, each, widest])
      .transpose([1, 0, 2])
      .reshape([configuration.columns / box, box]);
  }

  #shares(): { readonly widest: number; readonly lanes: number; readonly each: number } {
    const { op, configuration } = this.#form;
    const bits = op.arrays.filter(({ per }) => per === "element").map(({ dtype }) => dtype.bits);
    const lanes = 32 * configuration.warps;
    const share = configuration.columns / lanes;
    const widest = Math.min(share, (8 * widestAccess) / Math.min(...bits));
    return { widest, lanes, each: share / widest };
  }

  #queuedTiles(slot: Scalar<"i32">): RowTiles {
    return Object.fromEntries(
      this.#form.op.arrays
        .filter(isElement)
        .map(({ name }) => [
          name,
          this.#byLanes((this.#argument[queueName(name)] as Ref).at(slot).load()),
        ]),
    );
  }

  /** What belongs to columns; of what only results need, nothing unless `late`. */
  #columnTiles(piece: Scalar<"i32">, late = true): RowTiles {
    const { op, box, configuration } = this.#form;
    const groups = configuration.columns / box;
    const first = piece.mul(groups);
    const wanted = op.arrays.filter(
      ({ per, role, isLate = false }) => per === "column" && role === "input" && (late || !isLate),
    );
    return Object.fromEntries(
      wanted.map(({ name }) => [name, this.#byLanes(this.#columnWindow(name, first).load())]),
    );
  }

  #columnWindow(name: string, first: Scalar<"i32">): Ref {
    const { box, configuration } = this.#form;
    return (this.#argument[name] as Ref).at(
      slice(first, configuration.columns / box),
      slice(0, box),
    );
  }

  /** Asks for what results need of the columns while the first row is on its way: it is in the cache once that has been measured. */
  #askForColumns(): void {
    const { op, box, configuration } = this.#form;
    const { columns, pieces } = configuration;
    const groups = columns / box;
    const late = op.arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
    for (const { name } of late)
      for (let piece = 0; piece < pieces; piece += 1)
        prefetch(this.#columnWindow(name, this.#ofRow(constant(dtypes.i32, piece)).mul(groups)));
  }

  /** What belongs to a row, [1, 1]; past the last one, that of the last. */
  #rowTiles(turn: Scalar<"i32">, count: Scalar<"i32">): RowTiles {
    const wanted = this.#form.op.arrays.filter(
      ({ per, role }) => per === "row" && role === "input",
    );
    const row = this.#row(turn).minimum(count.sub(1)).maximum(0);
    return Object.fromEntries(
      wanted.map(({ name }) => [
        name,
        (this.#argument[name] as Ref).at(slice(row, 1)).load().reshape([1, 1]),
      ]),
    );
  }

  #storePiece(turn: Scalar<"i32">, piece: Scalar<"i32">, results: RowTiles): void {
    const { op, box, configuration } = this.#form;
    const groups = configuration.columns / box;
    for (const { name, per, role } of op.arrays) {
      const result = results[name];
      if (per !== "element" || role !== "output" || result === undefined) continue;
      (this.#argument[name] as Ref)
        .at(this.#row(turn), slice(piece.mul(groups), groups), slice(0, box))
        .store(this.#byGroups(result));
    }
  }

  /** What belongs to the row; the first block of a cluster stores it. */
  #storeRow(turn: Scalar<"i32">, ofRow: RowTiles, statistics: Statistics): void {
    const { op, configuration } = this.#form;
    const { rowResults } = op;
    if (rowResults === undefined) return;
    const store = (): void => {
      const results = rowResults(ofRow, statistics, this.#total());
      for (const { name, per, role } of op.arrays) {
        const result = results[name];
        if (per !== "row" || role !== "output" || result === undefined) continue;
        (this.#argument[name] as Ref)
          .at(slice(this.#row(turn), 1))
          .store(result.broadcastTo([1, 1]).reshape([1]));
      }
    };
    if (configuration.blocks === 1) store();
    else when(this.#part.eq(0), store);
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

  #total(): Scalar {
    const { groups } = extentsOf(this.#form);
    const columns = constant(dtypes.i32, 0)
      .add(groups as never)
      .mul(this.#form.box);
    return columns.cast(this.#form.op.compute);
  }

  #piece(piece: Scalar<"i32">): Piece {
    const { op, isWhole, configuration, box } = this.#form;
    const start = piece.mul(configuration.columns);
    const { lanes, each, widest } = this.#shares();
    const { groups } = extentsOf(this.#form);
    const extent = constant(dtypes.i32, 0)
      .add(groups as never)
      .mul(box);
    const positions = (): Tile<"i32"> =>
      this.#byLanes(
        iota(dtypes.i32, [configuration.columns / box, box], 0)
          .mul(box)
          .add(iota(dtypes.i32, [configuration.columns / box, box], 1)),
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
            .sum(1, { keep: true })
            .cast(op.compute),
      total: this.#total(),
      columns: positions,
      ...(configuration.blocks * configuration.pieces > 1 && {
        part: { from: start, width: configuration.columns },
      }),
    };
  }
}

function bitNames(name: string, count: number): string {
  return Array.from({ length: count }, (_, bit) => `${name}${bit}`).join(" ");
}
