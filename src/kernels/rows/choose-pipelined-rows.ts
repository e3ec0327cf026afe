/**
 * Which rows are TMA-pipelined (`tma-pipelined-rows.ts`), which are also grid-cooperative (`grid-cooperative-rows.ts`), and how they are
 * divided:
 *
 *   bf16 layer norm, rows of     8,192     one piece, in the registers of 8 warps, where scale and bias are f32
 *   few of a bf16 softmax       65,536     8 pieces of 8,192, all in the registers of 16 warps
 *                              131,072     16 pieces, half of them in registers and half in 13 stages
 *                              262,144     as much by each of 2 blocks
 *   few of a bf16 layer norm   131,072     4 blocks of 4 pieces in registers; scale and bias of each stay in shared memory beside 5 stages
 *   many of either             131,072     grid-cooperative: 16 blocks of a piece, 8 rows at a time; scale and bias stay in registers
 */
import type { Target } from "../../targets/target.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowArray, RowOp } from "./row-op.ts";

export interface PipelinedRowsConfiguration {
  /** Rows of a block. */
  readonly rows: 1;
  /** Columns of a piece. */
  readonly columns: number;
  /** Blocks of a cluster that share a row. */
  readonly blocks: number;
  /** Pieces of a block's share of a row. */
  readonly pieces: number;
  /** Stages of the pipeline, a piece each. */
  readonly stages: number;
  /** Warps of a block. */
  readonly warps: number;
  /** Pieces in registers, the first ones of each row: their stages are refilled at once. */
  readonly held: number;
  /** Per-column inputs stay in shared memory beside the pipeline: a block has the same columns of every row. */
  readonly keepsColumns?: true;
  /** Clusters; blocks, where a block has whole rows. */
  readonly workers: number;
}

/** Co-resident blocks that share rows without being a cluster (`grid-cooperative-rows.ts`), with one piece of each row. */
export interface GridCooperativeRowsConfiguration extends PipelinedRowsConfiguration {
  /** Rows by which statistics are ahead of results. */
  readonly lookahead: number;
}

/** Columns of a TMA box, at most and at least: it moves whole sectors. */
const [widestBox, narrowestBox] = [256, 64];

/** The widest box that divides the rows, or undefined. */
export function boxOf(columns: number): number | undefined {
  let box = widestBox;
  while (box >= narrowestBox && columns % box !== 0) box /= 2;
  return box >= narrowestBox ? box : undefined;
}

/** Most stages for long rows that fit in registers: with more, results wait longer, 2 % at 65,536 columns. */
const mostStages = 9;
/** Shared memory beside the pipeline. */
const otherBytes = 11 * 1024;
/** Bytes of a piece, of all inputs together, and warps of a block: 16 elements of bf16 a thread. */
const [pieceBytes, pieceWarps] = [16 * 1024, 16] as const;
/** Columns of rows that stay in registers, at most, and the warps that hold them. */
const [heldColumns, heldWarps] = [8192, 8] as const;
/** GPCs of a GPU at most, and processors of a TPC: a cluster lies within a GPC. */
const [processorClusters, processorsOfPair] = [8, 2] as const;

/**
 * Clusters that are sure to be resident at once, however processors are spread over GPCs, each of which may leave some idle. One cluster
 * more would start when others have ended, and take as long again.
 */
function clustersAtOnce(processors: number, blocks: number): number {
  const left = processorClusters * Math.max(0, blocks - processorsOfPair);
  return Math.max(1, Math.floor((processors - left) / blocks));
}

export const isElement = ({ per, role }: RowArray): boolean =>
  per === "element" && role === "input";

export const isOfColumns = ({ per, role }: RowArray): boolean =>
  per === "column" && role === "input";

/** Whether TMA can load the rows, and threads store them. */
function isLoadable({ arrays }: RowOp, axes: readonly StridedAxis[], target: Target): boolean {
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
  { arrays, registerBytes }: RowOp,
  [lead, column]: readonly StridedAxis[],
  { processors, sharedMemoryPerBlock }: Target,
  { columns, blocks, warps, keepsColumns }: Shape,
): PipelinedRowsConfiguration | undefined {
  const bits = bitsOf(arrays.filter(isElement));
  const pieces = Math.ceil((column?.extent ?? 1) / (columns * blocks));
  const kept = keepsColumns === true ? pieces * columns * bitsOf(arrays.filter(isOfColumns)) : 0;
  const held = Math.min(pieces, Math.floor((registerBytes * 8 * 32 * warps) / (columns * bits)));
  const pipelineBytes = sharedMemoryPerBlock - otherBytes;
  const mostFitting = Math.floor((pipelineBytes * 8 - kept) / (columns * bits));
  const isAllHeld = held === pieces && pieces > mostStages / 2 && keepsColumns !== true;
  const stages = isAllHeld ? Math.min(mostFitting, Math.max(mostStages, pieces + 1)) : mostFitting;
  // Without a stage for the next row nothing would be in flight while a row is measured.
  if (stages < pieces - held + 1) return undefined;
  if (keepsColumns === true && (held < pieces || stages < fewestSlots)) return undefined;
  const count = lead?.extent ?? 1;
  // As few workers as need no more iterations: where all have as many rows, none is alone at the end.
  const iterations = Math.ceil(count / clustersAtOnce(processors, blocks));
  const workers = Math.ceil(count / Math.max(1, iterations));
  const fixed = { rows: 1, columns, blocks, pieces, stages, warps, held, workers } as const;
  return { ...fixed, ...(keepsColumns === true && { keepsColumns }) };
}

/** Fewest stages beside a row in registers. */
const fewestSlots = 4;

/** A block holds a row in registers and the next ones in its pipeline; undefined where rows are longer, or much shorter. */
export function chooseRegisterPipeline(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): PipelinedRowsConfiguration | undefined {
  const extent = axes.at(-1)?.extent ?? 1;
  const isHeld = extent <= heldColumns && extent > (heldColumns * 2) / 3;
  const inputs = op.arrays.filter(isElement).length;
  if (!isHeld || inputs > 1 || op.compute.bits > 32 || !isLoadable(op, axes, target))
    return undefined;
  const shape = { columns: heldColumns, blocks: 1, warps: heldWarps };
  return configured(op, axes, target, shape);
}

/**
 * Blocks that share a row, at most, where per-column inputs stay in shared memory instead of being read from the cache again for every row.
 * Per-column inputs no wider than the row are not worth a second block, and far wider ones leave it too few columns; several inputs were not
 * measured.
 */
function mostKeptBlocks({ arrays }: RowOp): number {
  const elements = arrays.filter(isElement);
  const share = bitsOf(arrays.filter(isOfColumns)) / bitsOf(elements);
  if (elements.length > 1 || share === 0 || share > 2) return 0;
  return share > 1 ? fastBlocks : 1;
}

/** Pipelined rows, piece by piece, by as few blocks as fit, or for few rows by as many as possible. */
export function choosePipelinedRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): PipelinedRowsConfiguration | undefined {
  if (!isLoadable(op, axes, target)) return undefined;
  const columns = powerOfTwoFrom((pieceBytes * 8) / bitsOf(op.arrays.filter(isElement)) + 1) / 2;
  const [rows, extent] = axes.map((axis) => axis.extent);
  const of = (
    blocks: number,
    warps: number,
    more: Pick<Shape, "keepsColumns"> = {},
  ): PipelinedRowsConfiguration | undefined =>
    configured(op, axes, target, { columns, blocks, warps, ...more });
  // Pipelining across rows needs several of them for each worker.
  const isMany = ({ workers }: PipelinedRowsConfiguration): boolean => (rows ?? 1) >= 2 * workers;
  for (let blocks = 1; blocks <= mostKeptBlocks(op); blocks *= 2) {
    const found = of(blocks, pieceWarps, { keepsColumns: true });
    if (found !== undefined && isMany(found)) return found;
  }
  for (let blocks = 1; blocks <= fastBlocks; blocks *= 2) {
    const found = of(blocks, pieceWarps);
    if (found !== undefined && isMany(found)) return found;
  }
  // A lone row is held by few threads, whose statistics merge faster.
  const isFew =
    (rows ?? 1) * mostBlocks <= target.processors && (extent ?? 1) > 2 * columns * mostBlocks;
  return isFew ? of(mostBlocks, pieceWarps / 2) : undefined;
}

/** Blocks of a cluster that every GPU can place; up to which they are faster than reading memory twice. */
const [mostBlocks, fastBlocks] = [8, 4] as const;

/** Working warps, and registers of a thread for a piece, as loaded and as computed with, and for its per-column inputs. */
const [cooperativeWarps, cooperativeRegisters] = [8, 84] as const;
/** Bytes of rows between statistics and results, while the exchange is in flight; fewer where few blocks share a row, so that none is far behind. */
const [lookaheadBytes, nearLookaheadBytes] = [4 * pieceBytes, 3 * pieceBytes];
/** Blocks up to which that is so. A single block exchanges through the mailbox, too: with an exchange between its own warps it took 1.14 times as long. */
const nearBlocks = 4;
/** Bytes in flight besides: with 7 pieces rows take 1 to 2 % longer, with 3 up to 7 %. */
const aheadBytes = 5 * pieceBytes;
/** The fewest busy threads of a piece, as a share. */
const busyShare = 0.9;
/**
 * Fewest rows of a worker, so that filling and draining the pipeline is a small share: for rows that fit in the registers of a block, which other
 * schedules handle almost as fast; for those with per-column inputs, of few blocks and of more; for longer ones; and for rows that clusters would share.
 */
const fewestIterations = {
  held: 64,
  nearColumns: 32,
  farColumns: 16,
  pipelined: 8,
  clusters: 4,
} as const;
/** Pieces of a row that fit in the registers of a block, and in its pipeline and registers, for all operations. */
const [heldPieces, pipelinedPieces] = [8, 16] as const;

function fewestIterationsOf(blocks: number, columnArrays: number): number {
  if (blocks > pipelinedPieces) return fewestIterations.clusters;
  if (blocks > heldPieces) return fewestIterations.pipelined;
  if (blocks === 1 || columnArrays === 0) return fewestIterations.held;
  return blocks <= nearBlocks ? fewestIterations.nearColumns : fewestIterations.farColumns;
}

/** Many rows that blocks all over the GPU share, one piece of every row each; and rows of one piece with several per-column inputs, which a block loads once. */
export function chooseGridCooperativeRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): GridCooperativeRowsConfiguration | undefined {
  if (op.cooperativePieces === undefined || !isLoadable(op, axes, target)) return undefined;
  const inputs = op.arrays.filter(isElement);
  const ofColumns = op.arrays.filter(isOfColumns);
  const [bits, columnBits] = [bitsOf(inputs), bitsOf(ofColumns)];
  const [rows = 1, extent = 1] = axes.map((axis) => axis.extent);
  // Smaller pieces would be done before their statistics are exchanged, row after row.
  const columns = powerOfTwoFrom((pieceBytes * 8) / bits + 1) / 2;
  const blocks = Math.ceil(extent / columns);
  if (blocks < op.cooperativePieces || extent < busyShare * columns * blocks) return undefined;
  if (blocks === 1 && (extent < columns || ofColumns.length < 2)) return undefined;
  // 16 warps that hold such a row reload its single per-column input faster than blocks exchange statistics.
  if (blocks === 2 && ofColumns.length === 1 && op.isRegisterBound === true) return undefined;
  const threads = 32 * cooperativeWarps;
  const words = (inputs.length * op.compute.bits + bits + columnBits) / 32;
  // All blocks of a row have to be resident at once: one on each processor is.
  const most = Math.floor(target.processors / blocks);
  if (most === 0 || (columns / threads) * words > cooperativeRegisters) return undefined;
  const iterations = Math.ceil(rows / most);
  if (iterations < fewestIterationsOf(blocks, ofColumns.length)) return undefined;
  const piece = (columns * bits) / 8;
  const lookahead = Math.floor(
    (blocks <= nearBlocks ? nearLookaheadBytes : lookaheadBytes) / piece,
  );
  const stages = lookahead + Math.floor(aheadBytes / piece);
  if (stages * piece > target.sharedMemoryPerBlock - otherBytes) return undefined;
  const workers = Math.ceil(rows / iterations);
  const fixed = { rows: 1, columns, blocks, pieces: 1, held: 0, stages, workers } as const;
  return { ...fixed, warps: cooperativeWarps, lookahead };
}
