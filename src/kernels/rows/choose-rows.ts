/**
 * The configuration of the basic row kernel. Rows that fit in registers are read once, longer ones are shared by a cluster, and rows too
 * long even for that are read twice:
 *
 *   bf16 softmax, rows of     256     8 rows a block
 *                           1,280     4 rows a block, a warp each
 *                           8,192     a row a block
 *                          65,536     a row a cluster of 8
 *                         300,000     a row a cluster of 8, in pieces of 4,096
 *   8 rows of             300,000     a row 16 blocks of 20,480, which exchange statistics through a mailbox in global memory
 */
import type { ScaledFormat } from "../../formats/scaled/formats.ts";
import type { Target } from "../../targets/target.ts";
import { threadsPerBlock, powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { RowKernelConfiguration } from "./row-kernel.ts";
import type { RowOp } from "./row-op.ts";

/**
 * Elements of a thread: of all arrays per element together; of blocks of a cluster, which wait for each other, so that more of them
 * have to fit on a processor; of each array where rows are looped over or not contiguous; and of short rows, whose many small blocks keep
 * memory busiest.
 */
const heldElements = 128;
const sharedElements = 64;
const loopedElements = 32;
const shortElements = 16;
/**
 * Rows that a block of more than four warps holds, of exactly so many columns; the blocks that a processor has registers for; and the fewest per-column
 * inputs. Rows of 8,192 without such inputs leave registers for more blocks of four warps.
 */
const wideForms = [
  { columns: 16_384, wide: { warps: 16, minBlocksPerMultiprocessor: 2 }, fewestColumnInputs: 0 },
  { columns: 8192, wide: { warps: 8, minBlocksPerMultiprocessor: 4 }, fewestColumnInputs: 1 },
] as const;
/** Rows of a block where rows are contiguous across, not along. */
const crossingRows = 64;

/** Warps of a block that is alone on its processor, and registers of a thread for its elements. */
const [cooperativeWarps, cooperativeRegisters] = [16, 80] as const;
/** Columns of a block of a cluster beyond which more blocks are faster, although their mailbox has to be cleared first. */
const cooperativeColumns = 8192;

/** For rows so few and so long that a cluster each leaves processors idle; undefined for others. */
export function chooseGridCooperativeRowKernel(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): RowKernelConfiguration | undefined {
  const columns = axes.at(-1)?.extent ?? 1;
  const count = axes.slice(0, -1).reduce((product, { extent }) => product * extent, 1);
  const most = target.features.includes("cluster") ? target.clusterSize : 1;
  if (count === 0 || columns <= most * cooperativeColumns || crossingAxis(op, axes))
    return undefined;
  const inputs = op.arrays.filter(({ per, role }) => per !== "row" && role === "input");
  const bits = inputs.map(({ dtype }) => dtype.bits);
  const unit = (32 * cooperativeWarps * 8 * widestAccess) / Math.min(...bits);
  // All blocks of a row have to be resident at once: one on each processor is. None is empty.
  const atOnce = powerOfTwoFrom(Math.floor(target.processors / count) + 1) / 2;
  const blocks = Math.min(atOnce, powerOfTwoFrom(Math.ceil(columns / unit)));
  if (blocks <= most) return undefined;
  const share = Math.ceil(columns / blocks / unit) * unit;
  const each = inputs.reduce(
    (sum, { per, dtype }) => sum + (dtype.bits + (per === "element" ? op.compute.bits : 0)) / 32,
    0,
  );
  if ((share / (32 * cooperativeWarps)) * each > cooperativeRegisters) return undefined;
  return {
    rows: 1,
    columns: share,
    blocks,
    pieces: 1,
    gridCooperative: { warps: cooperativeWarps },
  };
}

export function chooseRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): RowKernelConfiguration {
  const columns = axes.at(-1)?.extent ?? 1;
  const leads = axes.slice(0, -1);
  const count = leads.reduce((product, { extent }) => product * extent, 1);
  const inputs = op.arrays.filter(({ per, role }) => per === "element" && role === "input");
  const elements = op.arrays.filter(({ per }) => per === "element");
  const bits = elements.map(({ dtype }) => dtype.bits);
  const words = op.compute.bits / 32;
  const heldOf = (all: number): number =>
    Math.max(8, powerOfTwoFrom(all / Math.max(1, inputs.length) / words));
  const held = heldOf(heldElements);
  const looped = Math.max(4, Math.min(held, loopedElements / words));
  // Rows that leave threads idle, or have several per-column inputs, gain from more elements a thread.
  const isLean = columns === powerOfTwoFrom(columns) && columnArrays(op) < 2;
  const short = isLean ? Math.max(4, Math.min(held, shortElements / words)) : looped;
  const crossing = crossingAxis(op, axes);
  if (crossing) return crossingForm(columns, leads.at(-1)?.extent ?? 1, looped);
  const unit = threadsPerBlock * Math.max(1, (8 * widestAccess) / Math.min(...bits));
  const even = evenForm(op, columns, leads, unit, target);
  if (even !== undefined) return even;
  if (columns <= unit) return shortForm(columns, leads.at(-1)?.extent ?? 1, count, short, target);
  const most = target.features.includes("cluster") ? target.clusterSize : 1;
  const fits = (blocks: number): boolean =>
    columns <= blocks * threadsPerBlock * (blocks === 1 ? held : heldOf(sharedElements));
  let blocks = 1;
  // Long rows need several blocks to fit in registers; few rows need them to keep all processors busy.
  while (
    blocks < most &&
    (!fits(blocks) || (count * blocks * 2 <= target.processors && columns > blocks * 2 * unit))
  )
    blocks *= 2;
  const wide = blocks === 1 ? wideForm(op, columns) : undefined;
  if (wide !== undefined) return wide;
  if (fits(blocks)) {
    const share = Math.ceil(columns / blocks);
    return { rows: 1, columns: Math.ceil(share / unit) * unit, blocks, pieces: 1 };
  }
  const piece = Math.max(unit, looped * threadsPerBlock);
  return {
    rows: 1,
    columns: piece,
    blocks,
    pieces: Math.ceil(columns / (blocks * piece)),
  };
}

/** The configuration where results are quantised by blocks along rows, of which every piece holds whole ones. */
export function chooseQuantizedRows(
  op: RowOp,
  { block: [, along] }: ScaledFormat,
  axes: readonly StridedAxis[],
  target: Target,
): RowKernelConfiguration {
  const chosen = chooseRows(op, axes, target);
  if (chosen.columns % along === 0) return chosen;
  const extent = axes.at(-1)?.extent ?? 1;
  // Rows that a block holds exactly become as long as the next power of two.
  const columns = Math.max(along, powerOfTwoFrom(chosen.columns));
  const rows = Math.max(1, Math.min(chosen.rows, (heldElements * threadsPerBlock) / columns / 2));
  const pieces = Math.max(1, Math.ceil(extent / (columns * chosen.blocks)));
  return { ...chosen, columns, rows: 2 ** Math.floor(Math.log2(rows)), pieces };
}

/** A row for a block of more warps: with four, loading and computing would not overlap. */
function wideForm(op: RowOp, columns: number): RowKernelConfiguration | undefined {
  const { arrays, isRegisterBound = false } = op;
  const isNarrow = arrays.every(({ per, dtype }) => per !== "element" || dtype.bits <= 16);
  const form = wideForms.find(
    (each) => each.columns === columns && each.fewestColumnInputs <= columnArrays(op),
  );
  if (!isRegisterBound || !isNarrow || form === undefined) return undefined;
  return { rows: 1, columns, blocks: 1, pieces: 1, wide: form.wide };
}

/** Registers of a processor, the unit in which threads are given them, and the fewest that a thread computes with. */
const [processorRegisters, registerUnit, fewestRegisters] = [65_536, 8, 56] as const;
/** The fewest blocks of a processor that hide latency from each other. */
const fewestBlocks = 3;

/**
 * Rows with several per-column inputs, which are loaded together with the row: loaded after it, they would wait a second time, behind the rows of
 * other blocks. Undefined where registers hold too few blocks for that.
 */
export function earlyRows(
  { arrays, compute }: RowOp,
  { rows, columns, blocks, pieces }: RowKernelConfiguration,
): RowKernelConfiguration | undefined {
  const inputs = arrays.filter(({ per, role }) => per === "element" && role === "input");
  const late = arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
  if (rows * blocks * pieces > 1 || inputs.length > 1 || late.length < 2) return undefined;
  // A row as loaded and as computed with, and the per-column inputs.
  const bits = [compute, ...[...inputs, ...late].map(({ dtype }) => dtype)];
  const words = bits.reduce((sum, each) => sum + each.bits, 0) / 32;
  const wanted = Math.max(fewestRegisters, (columns / threadsPerBlock) * words);
  const registers = registerUnit * Math.ceil(wanted / registerUnit);
  const minBlocksPerMultiprocessor = Math.floor(processorRegisters / (threadsPerBlock * registers));
  if (minBlocksPerMultiprocessor < fewestBlocks) return undefined;
  return { rows, columns, blocks, pieces, early: { minBlocksPerMultiprocessor } };
}

function columnArrays({ arrays }: RowOp): number {
  return arrays.filter(({ per, role }) => per === "column" && role === "input").length;
}

/**
 * The share of busy threads up to which rows are divided evenly, by the number of per-column inputs: what idle threads load is little
 * beside the rows themselves, but much beside per-column inputs, which every row loads again.
 */
const evenShares = [0.65, 0.8, 0.9] as const;
/** Rows of such a block at most, and registers of a thread for elements, as loaded and as computed with, and for per-column inputs. */
const [mostEvenRows, evenRegisters] = [16, 140] as const;

/**
 * Several short rows for a block, each for as many threads as it fills. A row of 1,280 elements of bf16 has 5 loads for each thread of a warp, and
 * would leave three of eight threads of a block idle. Undefined where few would be idle, where rows do not divide evenly, and
 * where elements are wide enough to keep threads busy anyhow.
 */
function evenForm(
  op: RowOp,
  columns: number,
  leads: readonly StridedAxis[],
  unit: number,
  { processors }: Target,
): RowKernelConfiguration | undefined {
  const inputs = op.arrays.filter(({ per, role }) => per === "element" && role === "input");
  const arrays = columnArrays(op);
  const isNarrow = inputs.reduce((sum, { dtype }) => sum + dtype.bits, 0) <= 16;
  if (!isNarrow || (arrays === 0 && columns <= unit)) return undefined;
  const padded = columns <= unit ? powerOfTwoFrom(columns) : Math.ceil(columns / unit) * unit;
  if (columns > padded * (evenShares[arrays] ?? evenShares[2])) return undefined;
  const count = leads.reduce((product, { extent }) => product * extent, 1);
  for (let rows = 2; rows <= mostEvenRows; rows *= 2) {
    const isBusy = rows <= (leads.at(-1)?.extent ?? 1) && count / rows >= 4 * processors;
    const isHeld = ((columns * rows) / threadsPerBlock) * heldWords(op) <= evenRegisters;
    if (isBusy && isHeld && (columns * rows) % unit === 0)
      return { rows, columns, blocks: 1, pieces: 1 };
  }
  return undefined;
}

/** Registers for each element of a row: as loaded, its per-column inputs, and as computed with. */
function heldWords({ arrays, compute }: RowOp): number {
  return arrays.reduce((sum, { per, role, dtype }) => {
    if (per === "row" || role === "output") return sum;
    return sum + (dtype.bits + (per === "element" ? compute.bits : 0)) / 32;
  }, 0);
}

/** Several rows a block, but enough blocks to keep the processors busy. */
function shortForm(
  columns: number,
  extent: number,
  count: number,
  short: number,
  { processors }: Target,
): RowKernelConfiguration {
  const width = powerOfTwoFrom(columns);
  let rows = Math.min(Math.max(1, (short * threadsPerBlock) / width), powerOfTwoFrom(extent));
  while (rows > 1 && count / rows < 4 * processors && rows * width > 4 * threadsPerBlock) rows /= 2;
  return { rows, columns: width, blocks: 1, pieces: 1 };
}

/** Whether rows are contiguous across instead of along. */
function crossingAxis(op: RowOp, axes: readonly StridedAxis[]): boolean {
  const [column, lead] = [axes.at(-1), axes.at(-2)];
  return op.arrays.some(
    ({ per }, position) =>
      per === "element" && column?.strides[position] !== 1 && lead?.strides[position] === 1,
  );
}

function crossingForm(columns: number, extent: number, short: number): RowKernelConfiguration {
  const rows = Math.min(crossingRows, powerOfTwoFrom(extent));
  const most = Math.max(1, (2 * short * threadsPerBlock) / rows);
  const width = Math.min(most, powerOfTwoFrom(columns));
  return {
    rows,
    columns: width,
    blocks: 1,
    pieces: Math.ceil(columns / width),
  };
}
