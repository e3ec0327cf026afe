/** How deep a step of the persistent kernel is, what it takes in shared memory, in which pieces tiles are finished, and how many there are. */
import { dtypes, packedBytes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import type { ProductMemory } from "../../targets/product-instructions.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes, TiledConfiguration } from "./configuration.ts";
import { isHeld } from "./mainloop/register-operand.ts";
import type { PieceShape } from "./epilogue/types.ts";
import type { PersistentForm } from "./kernel-context.ts";
import { prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import { scaleSlotBytes } from "./block-scales.ts";
import { copiedInputs } from "./prologue/prologue.ts";
import { recipeOf } from "./f32-emulation.ts";
import type { Recipe } from "./f32-emulation.ts";
import { block, metadataBytes } from "./weights/sparse-weights.ts";

/**
 * Steps of a tile from which on the first is one of their loop's. On an H200 that takes 40 to 85 ns a tile: 0.7 to 0.8 % of tiles of 8 and 16
 * steps, at most 0.1 % of those of 32 and more (2048³, 4096³ and 8192³ of bf16). It spares the assembler four wgmma of eight.
 */
export const manySteps = 32;

/** Steps of a tile from which on it is worth it that a thread ends it one step behind the other. */
const someSteps = 8;

/** Steps that a part of a tile has at least; for fewer, handing over would take longer. */
export const leastSteps = 4;

/** Stages that a ring has at least: those of a step, which hold a part of each operand, are read together. */
export function leastStages({ parts }: Recipe): number {
  return Math.max(2, parts);
}

/** Elements of k in a step: rows of 128 bytes, and as many elements of operands that are stored in fewer bits. */
export function depthOf(problem: MatmulProblem, { a }: Recipe): number {
  const prologue = prologueOf(problem);
  const isSmall = prologue !== undefined && problem[prologue.operand].dtype.bits < 16;
  return isSmall ? rowBytes : (rowBytes * 8) / a.bits;
}

/** Whether TMA takes rows of so many elements, which then begin at multiples of 16 bytes. */
export function isCopied({ bits }: DType, elements: number): boolean {
  return (elements * bits) % 128 === 0;
}

/**
 * Columns of a piece of the result: a row of 128 bytes, or the greatest part of one that tiles are made of. Pieces of f64 are
 * twice as wide, since warps that lie side by side have every other 16 columns.
 */
export function pieceColumns({ bits }: DType, columns: number): number {
  let piece = Math.min(columns, bits === 64 ? 32 : (rowBytes * 8) / bits);
  while (columns % piece !== 0) piece /= 2;
  return piece;
}

/** Buffers that the pieces of a thread's rows of a tile go through in turn. */
export function resultBuffers(pieces: number): number {
  return Math.min(2, pieces);
}

/** Rows of a tile that a thread stores: in registers those that it multiplies, and all where they are in tensor memory. */
export function storedRows(
  { consumers }: Pick<PersistentConfiguration, "consumers">,
  sums: ProductMemory,
): number {
  return sums === "tensor" ? consumers * threadRows : threadRows;
}

/** The same where columns come from tensor memory, of which powers of two are loaded. */
function loadedColumns(format: DType, columns: number, sums: ProductMemory): number {
  const piece = pieceColumns(format, columns);
  return sums === "tensor" ? piece & -piece : piece;
}

/** Rows and columns of the pieces of the result that a thread finishes. */
export function pieceOf(
  { out, sparse }: MatmulProblem,
  { consumers, columns, swapAB }: PersistentConfiguration,
  sums: ProductMemory,
): PieceShape {
  const rows = storedRows({ consumers }, sums);
  if (!swapAB) return { rows, columns: loadedColumns(out.dtype, columns, sums) };
  // Lanes store results of swapped operands, whatever its format: a whole tile's further inputs would take more registers than there are.
  const format = sparse ? out.dtype : dtypes.bf16;
  return { rows: loadedColumns(format, columns, sums), columns: rows };
}

/**
 * Whether multiplying threads take registers from the copying one. Those of tiles of few columns have enough, and blocks that do not
 * fill a processor may be started beside those of the kernel before.
 */
export function tradesRegisters(
  problem: MatmulProblem,
  { consumers, columns }: Pick<PersistentConfiguration, "consumers" | "columns">,
): boolean {
  return consumers === 2 && (columns > 64 || prologueOf(problem) !== undefined);
}

/**
 * Registers that lanes of either kind of thread then have, of 168 at the start. Tiles of f64 are copied in up to sixteen boxes,
 * whose places take more.
 */
export function tradedRegisters({ issuer }: Recipe): {
  readonly copy: number;
  readonly multiply: number;
} {
  return issuer === "warp" ? { copy: 56, multiply: 216 } : { copy: 40, multiply: 232 };
}

/** Registers of a lane that two tiles may take together: sums of one, and what is stored of the other. */
const registersOfTiles = 192;

/** Whether a tile of so many columns may be stored while the next one is multiplied, if TMA writes it and no lanes hold rows. */
export function mayDeferStores(problem: MatmulProblem, recipe: Recipe, columns: number): boolean {
  const lanes = 128;
  const elements = (threadRows * columns) / lanes;
  const registers = elements + (elements * problem.out.dtype.bits) / 32;
  return isSummedOnce(problem, recipe) && registers <= registersOfTiles;
}

/** Whether tensor cores add up all products of a tile, and read both factors from shared memory unless lanes hold rows. */
export function isSummedOnce(problem: MatmulProblem, { issuer, promoted }: Recipe): boolean {
  const isRead = !problem.sparse && prologueOf(problem) === undefined;
  return isRead && issuer === "warpgroup" && !promoted;
}

/** What says whether two threads that share tiles end them one after the other. */
export type EndingForm = Pick<
  PersistentForm,
  "problem" | "recipe" | "configuration" | "sizes" | "processors" | "parts" | "dealt" | "sums"
>;

/**
 * Whether two threads that share tiles end them one after the other (`ping-pong.ts`): where tiles have many steps, and there is an epilogue to be done
 * meanwhile, or tiles are the widest, or blocks have one of them. Beside threads that end together, rested:
 *
 *   4096³, 128 × 256, with products in a row        1.005
 *   5120 × 13824 × 5120, 128 × 192 and in pairs     0.998, 0.995
 *   1000 × 3000 × 2000, 128 × 192 in pairs          1.011
 *
 * Where the widest tiles have fewer steps, and blocks several of them, the second thread is one step behind:
 *
 *   8192 × 8192 × 512, in pairs                     1.014, 1.013 (three steps behind 0.96)
 *   16384 × 16384 × 1024, in pairs                  1.006, 0.998
 */
export function endsInOrder({
  problem,
  recipe,
  configuration,
  sizes,
  processors,
  parts,
  dealt,
  sums,
}: EndingForm): boolean {
  const { consumers, schedule, swapAB, columns } = configuration;
  const isOnce = tileCount(configuration, sizes) <= placesOf(configuration, processors);
  const isWorthIt = dealt === undefined && (columns === widest || isOnce);
  const steps = Math.ceil(sizes.k / depthOf(problem, recipe));
  const isShort = isWorthIt && !isOnce && problem.epilogue === undefined && steps >= someSteps;
  return (
    sums === "registers" &&
    consumers === 2 &&
    schedule === "tiles" &&
    parts === 1 &&
    (problem.epilogue !== undefined || isWorthIt) &&
    isSummedOnce(problem, recipe) &&
    !isHeld(problem, recipe, swapAB ? "b" : "a", configuration) &&
    (steps >= manySteps || isShort)
  );
}

/** Steps that the second thread is behind the first at the end of a tile: of many, all that the ring has room for. */
export function leadOf({ problem, recipe, configuration, sizes }: EndingForm): number {
  const steps = Math.ceil(sizes.k / depthOf(problem, recipe));
  return steps >= manySteps ? configuration.stages - 1 : 1;
}

/** What says whether every block has one tile, and how it is stored. */
export type OneTileForm = EndingForm & Pick<PersistentForm, "copiesOut">;

/**
 * Whether every block has one tile, which it then finds by its place in the grid, and stores as soon as it is summed: nothing of a next one
 * comes meanwhile. Beside blocks that take tile after tile, 1024³ was 1.06 times as fast on an H200, 2048³ and 1000 × 3000 × 2000 1.025.
 */
export function hasOneTile(form: OneTileForm): boolean {
  const { problem, recipe, configuration, sizes, processors, parts, dealt, copiesOut, sums } = form;
  const { schedule, swapAB } = configuration;
  return (
    sums === "registers" &&
    schedule === "tiles" &&
    parts === 1 &&
    dealt === undefined &&
    problem.sizes.batch === undefined &&
    problem.outputs.length === 0 &&
    copiesOut &&
    isSummedOnce(problem, recipe) &&
    !isHeld(problem, recipe, swapAB ? "b" : "a", configuration) &&
    tileCount(configuration, sizes) <= placesOf(configuration, processors)
  );
}

/**
 * Whether the pieces of such a tile leave through the slots that rows came by: all steps have been multiplied then, each thread's rows are read by it
 * alone, and a slot has as many bytes of them as a piece.
 */
export function storesInSlots(form: OneTileForm): boolean {
  const { problem, recipe, configuration } = form;
  const { columns, stages, swapAB } = configuration;
  const piece = pieceColumns(problem.out.dtype, columns);
  return (
    hasOneTile(form) &&
    !swapAB &&
    problem.major.a === "k" &&
    problem.out.dtype === recipe.a &&
    piece === depthOf(problem, recipe) &&
    columns / piece <= stages
  );
}

/**
 * Whether tiles of the last round may be cut into halves of their columns, which are handed on apart or not at all. Halves of the widest tiles are tiles that
 * tensor cores take, and are made of whole pieces.
 */
export function halvesColumns({
  schedule,
  swapAB,
  columns,
  cluster,
}: PersistentConfiguration): boolean {
  return schedule === "stream-k" && !swapAB && cluster === 1 && columns === widest;
}

/** Columns of the widest tiles. */
export const widest = 256;

/** Bytes that a row and a column of tiles take in a stage. */
interface StageBytes {
  readonly row: number;
  readonly column: number;
}

export function stageBytes(problem: MatmulProblem): StageBytes {
  const recipe = recipeOf(problem);
  const prologue = prologueOf(problem);
  if (recipe !== undefined && problem.sparse) {
    const blocks = depthOf(problem, recipe) / block;
    return { row: rowBytes / 2 + blocks * metadataBytes, column: rowBytes };
  }
  const scales = problem.blockScales === undefined ? 0 : scaleSlotBytes;
  if (recipe === undefined || prologue === undefined)
    return { row: rowBytes + scales, column: rowBytes + scales };
  const depth = depthOf(problem, recipe);
  const inputs = copiedInputs(prologue).reduce(
    (sum, { dtype, perUnit }) => sum + (perUnit * dtype.bits) / 8,
    0,
  );
  return {
    row: packedBytes(problem[prologue.operand].dtype, depth) + inputs,
    column: packedBytes(recipe[prologue.operand === "a" ? "b" : "a"], depth),
  };
}

/**
 * Whether TMA is to write the result. Few rows of it are what lanes write as soon, and save room; but for a pair of
 * blocks, whose lanes would have to flush caches in every step once they write memory (`tilings.ts`).
 */
export function copiesResult(
  { sparse }: MatmulProblem,
  { swapAB, cluster }: Pick<PersistentConfiguration, "swapAB" | "cluster">,
): boolean {
  return !swapAB || sparse || cluster > 1;
}

/**
 * Whether lanes, which write results that TMA cannot, do so through its buffers (`store-tile.ts`). Elements of 32 bits fill sectors as tensor cores
 * leave them, and layouts are of bits of an index, of which each of the 96 columns of a piece would need a part. On an H200, µs of products alone, in tiles of
 * 128 × 256, 128 × 192 and 128 × 256:
 *
 *   m × n × k              from registers   through buffers
 *   14976 × 4067 × 16      302              79
 *   1001 × 3003 × 2001     31.7             20.4
 *   1058 × 14277 × 88      85.8             21.1
 */
export function storesAlongRows({
  problem,
  configuration,
  copiesOut,
  sums,
}: Pick<PersistentForm, "problem" | "configuration" | "copiesOut" | "sums">): boolean {
  const { bits } = problem.out.dtype;
  const { rows, columns } = pieceOf(problem, configuration, sums);
  const isWhole = [rows, columns].every((size) => Number.isInteger(Math.log2(size)));
  const isSmall = bits === 16 || (bits === 8 && !problem.sparse);
  return (
    !copiesOut &&
    copiesResult(problem, configuration) &&
    isSmall &&
    isWhole &&
    !hasFurtherMatrices(problem)
  );
}

/** Whether an epilogue reads or writes matrices besides the result: these and a piece on its way through a buffer would take more registers than there are. */
function hasFurtherMatrices({ inputs, outputs }: MatmulProblem): boolean {
  return outputs.length > 0 || Object.values(inputs).some(({ shape }) => shape.length > 1);
}

/** Bytes of shared memory that a configuration takes. Parts of k leave sums. */
export function sharedBytes(
  problem: MatmulProblem,
  configuration: Omit<PersistentConfiguration, "kernel">,
): number {
  const { consumers, columns, stages, schedule } = configuration;
  const out = schedule === "split-k" ? problem.accumulator : problem.out.dtype;
  const rows = consumers * threadRows;
  const { row, column } = stageBytes(problem);
  const pieces = columns / pieceColumns(out, columns);
  const piece = pieceColumns(out, columns) * (out.bits / 8);
  const result = resultBuffers(pieces) * threadRows * Math.max(rowBytes, piece);
  const results = copiesResult(problem, configuration) ? consumers * result : 0;
  return stages * (rows * row + columns * column) + results + 1024;
}

/** Bytes of shared memory that a block may take where so many are on a processor at once, each with 1 KB of its own. */
export function roomOfBlock({ sharedMemoryPerProcessor }: Target, blocks: number): number {
  return Math.floor(sharedMemoryPerProcessor / blocks) - 1024;
}

/** Tiles of the result, those of all parts of k and of all batches; a cluster's count as one. */
export function tileCount(
  configuration: TiledConfiguration,
  { m, n, batch }: ProductSizes,
): number {
  const { columns } = configuration;
  if (configuration.kernel === "plain")
    return (
      batch * configuration.splitK * Math.ceil(m / configuration.rows) * Math.ceil(n / columns)
    );
  const rows = configuration.consumers * configuration.cluster * threadRows;
  const [height, width] = configuration.swapAB ? [n, m] : [m, n];
  return batch * Math.ceil(height / rows) * Math.ceil(width / columns);
}

/** Blocks that run at once, or clusters of them. One runs anywhere, or is refused: without any, nothing would be written. */
function placesOf({ cluster }: PersistentConfiguration, processors: number): number {
  return Math.max(1, Math.floor(processors / cluster));
}

/** Blocks of the persistent kernel, or clusters of them: one a processor, if there is work for all of them. */
export function workerCount(
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  depth: number,
  { processors }: Target,
): number {
  const tiles = tileCount(configuration, sizes);
  const parts = Math.max(1, Math.floor(Math.ceil(sizes.k / depth) / leastSteps));
  const places = placesOf(configuration, processors);
  return Math.min(places, tiles * (configuration.schedule === "stream-k" ? parts : 1));
}
