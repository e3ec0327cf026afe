/**
 * Which rows come through a queue (`tma-pipelined-rows.ts`, and from `told` on `grid-cooperative-rows.ts`), and how they are cut:
 *
 *   bf16 layer norm, rows of     8,192     one piece, in the registers of 8 warps, where scale and bias are f32
 *   few of a bf16 softmax       65,536     8 pieces of 8,192, all in the registers of 16 warps
 *                              131,072     16 pieces, half of them in registers and half in the queue of 13
 *                              262,144     as much by each of 2 blocks
 *   few of a bf16 layer norm   131,072     4 blocks of 4 pieces in registers; scale and bias of each stay beside its queue of 5
 *   told, many of either       131,072     16 blocks of a piece, 8 rows at a time; scale and bias stay in registers
 */
import type { Target } from "../../targets/target.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowArray, RowOp } from "./row-op.ts";

export interface QueuedRowsConfiguration {
  /** Rows of a block. */
  readonly rows: 1;
  /** Columns of a piece. */
  readonly columns: number;
  /** Blocks of a cluster that share a row. */
  readonly blocks: number;
  /** Pieces of a block's part of a row. */
  readonly pieces: number;
  /** Pieces that the queue has room for. */
  readonly slots: number;
  /** Warps of a block. */
  readonly warps: number;
  /** How many of these, the first ones, registers hold: their places in the queue are filled again at once. */
  readonly held: number;
  /** Where what belongs to columns stays in shared memory beside the queue: of a block that has the same columns of every row. */
  readonly keepsColumns?: true;
  /** Clusters, or blocks where a block has whole rows. */
  readonly workers: number;
}

/** Blocks that share rows and are no cluster (`grid-cooperative-rows.ts`), with one piece of each row. */
export interface ToldQueueConfiguration extends QueuedRowsConfiguration {
  /** Rows by which results follow measurements. */
  readonly slack: number;
}

/** Columns of a box of the copy engine at most, and at least, so that it moves whole sectors. */
const [widestBox, narrowestBox] = [256, 64];

/** The greatest power of two that divides rows and is a box, or undefined. */
export function boxOf(columns: number): number | undefined {
  let box = widestBox;
  while (box >= narrowestBox && columns % box !== 0) box /= 2;
  return box >= narrowestBox ? box : undefined;
}

/** Places of a queue that long rows need which registers hold: with more on their way results wait longer, 2 % of 65,536 columns. */
const mostAhead = 9;
/** Shared memory of a processor that the queue may take. */
const queueBytes = 216 * 1024;
/** Bytes of a piece, of all inputs together, and warps of a block: 16 elements a lane of bf16. */
const [pieceBytes, pieceWarps] = [16 * 1024, 16] as const;
/** Columns of rows that stay in registers, at most, and the warps that hold them. */
const [heldColumns, heldWarps] = [8192, 8] as const;
/** Groups of processors on a GPU at most, and processors that lie together in one: clusters lie within a group. */
const [processorGroups, neighbours] = [8, 2] as const;

/**
 * Clusters that are sure to run at once, however processors are spread over the groups, each of which may leave some over. One
 * cluster more would begin when others have ended, and take as long again.
 */
function clustersAtOnce(processors: number, blocks: number): number {
  const left = processorGroups * Math.max(0, blocks - neighbours);
  return Math.max(1, Math.floor((processors - left) / blocks));
}

export const isElement = ({ per, role }: RowArray): boolean =>
  per === "element" && role === "input";

export const isOfColumns = ({ per, role }: RowArray): boolean =>
  per === "column" && role === "input";

/** Whether the copy engine can bring the rows, and lanes store them. */
function isBrought({ arrays }: RowOp, axes: readonly StridedAxis[], target: Target): boolean {
  const [lead, column] = axes;
  if (axes.length !== 2 || lead === undefined || column === undefined) return false;
  if (!target.features.includes("tma") || boxOf(column.extent) === undefined) return false;
  if (lead.extent === 0 || column.extent === 0) return false;
  const isAligned = (elements: number, bits: number): boolean =>
    (elements * bits) % (8 * widestAccess) === 0;
  return arrays.every(({ per, dtype }, position) => {
    if (per === "row") return true;
    const isByRows = column.strides[position] === 1 && dtype.bits >= 8;
    return isByRows && (per === "column" || isAligned(lead.strides[position] ?? 1, dtype.bits));
  });
}

interface Shape {
  readonly columns: number;
  readonly blocks: number;
  readonly warps: number;
  readonly keepsColumns?: true;
}

/** The bits of an element of all arrays together. */
function bitsOf(arrays: readonly RowArray[]): number {
  return arrays.reduce((sum, { dtype }) => sum + dtype.bits, 0);
}

function configured(
  { arrays, heldBytes }: RowOp,
  [lead, column]: readonly StridedAxis[],
  { processors }: Target,
  { columns, blocks, warps, keepsColumns }: Shape,
): QueuedRowsConfiguration | undefined {
  const bits = bitsOf(arrays.filter(isElement));
  const pieces = Math.ceil((column?.extent ?? 1) / (columns * blocks));
  const kept = keepsColumns === true ? pieces * columns * bitsOf(arrays.filter(isOfColumns)) : 0;
  const held = Math.min(pieces, Math.floor((heldBytes * 8 * 32 * warps) / (columns * bits)));
  const room = Math.floor((queueBytes * 8 - kept) / (columns * bits));
  const isAllHeld = held === pieces && pieces > mostAhead / 2 && keepsColumns !== true;
  const slots = isAllHeld ? Math.min(room, Math.max(mostAhead, pieces + 1)) : room;
  // Without a place for a piece of the next row nothing would be in flight while a row is measured.
  if (slots < pieces - held + 1) return undefined;
  if (keepsColumns === true && (held < pieces || slots < fewestSlots)) return undefined;
  const count = lead?.extent ?? 1;
  // As few workers as take no more turns: where all have as many rows, none works on alone in the end.
  const turns = Math.ceil(count / clustersAtOnce(processors, blocks));
  const workers = Math.ceil(count / Math.max(1, turns));
  const fixed = { rows: 1, columns, blocks, pieces, slots, warps, held, workers } as const;
  return { ...fixed, ...(keepsColumns === true && { keepsColumns }) };
}

/** Places of a queue that is filled while registers hold a row, at least. */
const fewestSlots = 4;

/** A row that a block holds in registers, with the next ones in its queue; undefined where rows are longer, or much shorter. */
export function chooseHeldQueue(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): QueuedRowsConfiguration | undefined {
  const extent = axes.at(-1)?.extent ?? 1;
  const isHeld = extent <= heldColumns && extent > (heldColumns * 2) / 3;
  const inputs = op.arrays.filter(isElement).length;
  if (!isHeld || inputs > 1 || op.compute.bits > 32 || !isBrought(op, axes, target))
    return undefined;
  const shape = { columns: heldColumns, blocks: 1, warps: heldWarps };
  return configured(op, axes, target, shape);
}

/**
 * Blocks that share a row, at most, where what belongs to columns stays in shared memory instead of coming from the cache again with
 * every row. Arrays of columns that are no wider than the row are not worth a second block, and those that are far wider leave
 * it too few columns; several inputs were not measured.
 */
function mostKeptBlocks({ arrays }: RowOp): number {
  const elements = arrays.filter(isElement);
  const share = bitsOf(arrays.filter(isOfColumns)) / bitsOf(elements);
  if (elements.length > 1 || share === 0 || share > 2) return 0;
  return share > 1 ? fastBlocks : 1;
}

/** Rows that go through the queue piece by piece, by as few blocks as have room for them, or where rows are few by as many. */
export function chooseQueuedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): QueuedRowsConfiguration | undefined {
  if (!isBrought(op, axes, target)) return undefined;
  const columns = powerOfTwoFrom((pieceBytes * 8) / bitsOf(op.arrays.filter(isElement)) + 1) / 2;
  const [rows, extent] = axes.map((axis) => axis.extent);
  const of = (
    blocks: number,
    warps: number,
    more: Pick<Shape, "keepsColumns"> = {},
  ): QueuedRowsConfiguration | undefined =>
    configured(op, axes, target, { columns, blocks, warps, ...more });
  // Rows go on from one to the next where there are several for each worker.
  const isMany = ({ workers }: QueuedRowsConfiguration): boolean => (rows ?? 1) >= 2 * workers;
  for (let blocks = 1; blocks <= mostKeptBlocks(op); blocks *= 2) {
    const found = of(blocks, pieceWarps, { keepsColumns: true });
    if (found !== undefined && isMany(found)) return found;
  }
  for (let blocks = 1; blocks <= fastBlocks; blocks *= 2) {
    const found = of(blocks, pieceWarps);
    if (found !== undefined && isMany(found)) return found;
  }
  // A row that nothing follows is held by few lanes, which have less to put together.
  const isFew =
    (rows ?? 1) * mostBlocks <= target.processors && (extent ?? 1) > 2 * columns * mostBlocks;
  return isFew ? of(mostBlocks, pieceWarps / 2) : undefined;
}

/** Blocks of a cluster that every GPU places; up to which they are faster than going through memory twice. */
const [mostBlocks, fastBlocks] = [8, 4] as const;

/** Warps that work, and registers of each of their lanes for a piece as it came and as it is computed with, and for its columns. */
const [toldWarps, toldRegisters] = [8, 84] as const;
/** Bytes of rows by which results follow measurements, while statistics travel; less where few blocks share a row, so that none is far behind. */
const [slackBytes, nearSlackBytes] = [4 * pieceBytes, 3 * pieceBytes];
/** Blocks up to which that is so. A block that hears itself alone tells through memory, too: lanes that had statistics from their own warps took 1.14 times as long. */
const nearBlocks = 4;
/** Bytes on their way besides: with 7 pieces rows take 1 to 2 % longer, with 3 up to 7 %. */
const aheadBytes = 5 * pieceBytes;
/** The share of a piece's lanes with elements, at least. */
const fewestLanes = 0.9;
/**
 * Rows of a worker, at least, so that the first and last ones are few of all: of rows that the registers of a block can hold, which are not
 * much slower in other forms; of those that meet columns, by few blocks and by more; of longer ones; and of rows that clusters would share.
 */
const fewestTurns = { held: 64, nearColumns: 32, farColumns: 16, queued: 8, clusters: 4 } as const;
/** Pieces of a row that the registers of a block hold, and those that its queue and registers hold, for all operations. */
const [heldPieces, queuedPieces] = [8, 16] as const;

function fewestTurnsOf(blocks: number, columnArrays: number): number {
  if (blocks > queuedPieces) return fewestTurns.clusters;
  if (blocks > heldPieces) return fewestTurns.queued;
  if (blocks === 1 || columnArrays === 0) return fewestTurns.held;
  return blocks <= nearBlocks ? fewestTurns.nearColumns : fewestTurns.farColumns;
}

/**
 * Many rows that blocks all over the GPU share, a piece of every row each; and rows of one piece that meet several arrays of columns,
 * which a block has loaded once.
 */
export function chooseToldQueue(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): ToldQueueConfiguration | undefined {
  if (op.sharedPieces === undefined || !isBrought(op, axes, target)) return undefined;
  const inputs = op.arrays.filter(isElement);
  const ofColumns = op.arrays.filter(isOfColumns);
  const [bits, columnBits] = [bitsOf(inputs), bitsOf(ofColumns)];
  const [rows = 1, extent = 1] = axes.map((axis) => axis.extent);
  // Smaller pieces would be through sooner than their statistics are heard, one row after the other.
  const columns = powerOfTwoFrom((pieceBytes * 8) / bits + 1) / 2;
  const blocks = Math.ceil(extent / columns);
  if (blocks < op.sharedPieces || extent < fewestLanes * columns * blocks) return undefined;
  if (blocks === 1 && (extent < columns || ofColumns.length < 2)) return undefined;
  // 16 warps that hold such a row load the one array of columns beside it sooner than blocks tell each other.
  if (blocks === 2 && ofColumns.length === 1 && op.isHeavy === true) return undefined;
  const lanes = 32 * toldWarps;
  const words = (inputs.length * op.compute.bits + bits + columnBits) / 32;
  // All blocks of a row have to run at once: one on each processor does.
  const most = Math.floor(target.processors / blocks);
  if (most === 0 || (columns / lanes) * words > toldRegisters) return undefined;
  const turns = Math.ceil(rows / most);
  if (turns < fewestTurnsOf(blocks, ofColumns.length)) return undefined;
  const piece = (columns * bits) / 8;
  const slack = Math.floor((blocks <= nearBlocks ? nearSlackBytes : slackBytes) / piece);
  const slots = slack + Math.floor(aheadBytes / piece);
  const workers = Math.ceil(rows / turns);
  const fixed = { rows: 1, columns, blocks, pieces: 1, held: 0, slots, workers } as const;
  return { ...fixed, warps: toldWarps, slack };
}
