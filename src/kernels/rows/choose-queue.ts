/**
 * Which rows come through a queue (`queued-rows.ts`), and how they are cut:
 *
 *   bf16 layer norm, rows of     8,192     one piece, in the registers of 8 warps
 *   bf16 softmax, rows of       65,536     4 pieces of 16,384, a queue of 6
 *                              131,072     4 pieces by each of 2 blocks
 *                              262,144     4 pieces of 8,192 by each of 8 blocks, two of them a processor
 */
import type { Target } from "../../targets/target.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowArray, RowOp } from "./row-op.ts";

export interface QueuedRowsConfiguration {
  readonly rows: 1;
  /** Columns of a piece. */
  readonly columns: number;
  /** Blocks of a cluster that share a row. */
  readonly blocks: number;
  /** Pieces of a block's part of a row. */
  readonly pieces: number;
  /** Pieces that the queue has room for. */
  readonly slots: number;
  readonly warps: number;
  /** Whether registers hold a block's part of a row, whose places in the queue are filled again at once. */
  readonly held: boolean;
  /** Blocks that a processor has at once. */
  readonly resident: number;
  /** Clusters, or blocks where a block has whole rows. */
  readonly workers: number;
}

/** Columns of a box of the copy engine at most, and at least, so that it moves whole sectors. */
const [widestBox, narrowestBox] = [256, 64];

/** The greatest power of two that divides rows and is a box, or undefined. */
export function boxOf(columns: number): number | undefined {
  let box = widestBox;
  while (box >= narrowestBox && columns % box !== 0) box /= 2;
  return box >= narrowestBox ? box : undefined;
}

/** Shared memory of a processor that the queue may take. */
const queueBytes = 216 * 1024;
/** Bytes of a piece, of all inputs together, and warps of a block: 32 elements a lane of bf16. */
const [pieceBytes, pieceWarps] = [32 * 1024, 16] as const;
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
  readonly resident: number;
}

/** Bytes of a row that a lane holds at most, beside what it computes with. */
const heldBytes = 256;

function configured(
  { arrays }: RowOp,
  [lead, column]: readonly StridedAxis[],
  { processors }: Target,
  { columns, blocks, warps: count, resident }: Shape,
): QueuedRowsConfiguration | undefined {
  const bits = arrays.filter(isElement).reduce((sum, { dtype }) => sum + dtype.bits, 0);
  const slots = Math.floor((queueBytes * 8) / resident / (columns * bits));
  const pieces = Math.ceil((column?.extent ?? 1) / (columns * blocks));
  // Without a place for a piece of the next row nothing would be in flight while a row is measured.
  if (slots < pieces + 1) return undefined;
  const most = clustersAtOnce(processors, Math.ceil(blocks / resident));
  const workers = Math.min(most, lead?.extent ?? 1);
  const held = pieces === 1;
  return { rows: 1, columns, blocks, pieces, slots, warps: count, held, resident, workers };
}

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
  const shape = { columns: heldColumns, blocks: 1, warps: heldWarps, resident: 1 };
  return configured(op, axes, target, shape);
}

/** Rows that go through the queue piece by piece, by as few blocks as have room for them, or where rows are few by as many. */
export function chooseQueuedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): QueuedRowsConfiguration | undefined {
  if (!isBrought(op, axes, target)) return undefined;
  const bits = op.arrays.filter(isElement).reduce((sum, { dtype }) => sum + dtype.bits, 0);
  const columns = powerOfTwoFrom((pieceBytes * 8) / bits + 1) / 2;
  const [rows, extent] = axes.map((axis) => axis.extent);
  const of = (processors: number, resident: number): QueuedRowsConfiguration | undefined =>
    configured(op, axes, target, {
      columns: columns / resident,
      blocks: processors * resident,
      ...{ warps: pieceWarps / resident, resident },
    });
  for (let blocks = 1; blocks <= fastBlocks; blocks *= 2) {
    // Of two blocks of a processor one computes while the other waits for its cluster, which takes longer the larger that is.
    const found = of(blocks, blocks === fastBlocks ? 2 : 1);
    // Rows go on from one to the next where there are several for each worker.
    if (found !== undefined && (rows ?? 1) >= 2 * found.workers) return found;
  }
  const isFew =
    (rows ?? 1) * mostBlocks <= target.processors && (extent ?? 1) > columns * mostBlocks;
  const few = isFew ? of(mostBlocks, 1) : undefined;
  // A row that nothing follows is held by few lanes, which have less to put together.
  const warps = pieceWarps / 2;
  const isHeld = few !== undefined && few.pieces * pieceBytes <= heldBytes * 32 * warps;
  return isHeld ? { ...few, warps, held: true } : few;
}

/** Blocks of a cluster that every GPU places; up to which they are faster than going through memory twice. */
const [mostBlocks, fastBlocks] = [8, 4] as const;
