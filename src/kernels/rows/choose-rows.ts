/**
 * Which form an operation on rows takes. What fits in registers is read once; a row that does not is shared by a cluster,
 * and one that is too long even for that is gone through twice:
 *
 *   bf16 softmax, rows of     256     8 rows a block
 *                           1,280     4 rows a block, a warp each
 *                           8,192     a row a block
 *                          65,536     a row a cluster of 8
 *                         300,000     a row a cluster of 8, in pieces of 4,096
 *   8 rows of             300,000     a row 16 blocks of 20,480, which tell each other statistics through memory
 */
import type { Target } from "../../targets/target.ts";
import { lanes, powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { HeldRowsConfiguration } from "./row-kernel.ts";
import type { RowOp } from "./row-op.ts";

/**
 * Elements that a lane holds of all arrays per element together; of blocks of a cluster, which wait for each other, so that
 * more of them have to fit on a processor; of each array where rows are looped, or where neighbours belong to different rows; and
 * where rows are short: blocks that are soon through keep memory the busiest.
 */
const heldElements = 128;
const sharedElements = 64;
const loopedElements = 32;
const shortElements = 16;
/**
 * Rows that more than four warps hold, of exactly so many columns, since fewer fill fewer lanes: with how many of them a processor has registers for, and
 * how many arrays of columns they meet at least. Rows of 8,192 that meet none leave registers for more blocks of four warps.
 */
const wideForms = [
  { columns: 16_384, wide: { warps: 16, resident: 2 }, met: 0 },
  { columns: 8192, wide: { warps: 8, resident: 4 }, met: 1 },
] as const;
/** Rows of a block where neighbours in memory belong to different rows. */
const crossingRows = 64;

/** Warps of a block that is alone on its processor, and registers of a lane for what it holds. */
const [toldWarps, toldRegisters] = [16, 80] as const;
/** Columns of a block of a cluster from which on more blocks are faster, though what they tell has to be cleared first. */
const toldColumns = 8192;

/** Rows so few and so long that a cluster each leaves processors without work; undefined for others. */
export function chooseToldRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): HeldRowsConfiguration | undefined {
  const columns = axes.at(-1)?.extent ?? 1;
  const count = axes.slice(0, -1).reduce((product, { extent }) => product * extent, 1);
  const most = target.features.includes("cluster") ? target.clusterSize : 1;
  if (count === 0 || columns <= most * toldColumns || crossingAxis(op, axes)) return undefined;
  const inputs = op.arrays.filter(({ per, role }) => per !== "row" && role === "input");
  const bits = inputs.map(({ dtype }) => dtype.bits);
  const unit = (32 * toldWarps * 8 * widestAccess) / Math.min(...bits);
  // All blocks of a row have to run at once: one on each processor does. None is without elements.
  const atOnce = powerOfTwoFrom(Math.floor(target.processors / count) + 1) / 2;
  const blocks = Math.min(atOnce, powerOfTwoFrom(Math.ceil(columns / unit)));
  if (blocks <= most) return undefined;
  const share = Math.ceil(columns / blocks / unit) * unit;
  const each = inputs.reduce(
    (sum, { per, dtype }) => sum + (dtype.bits + (per === "element" ? op.compute.bits : 0)) / 32,
    0,
  );
  if ((share / (32 * toldWarps)) * each > toldRegisters) return undefined;
  return { rows: 1, columns: share, blocks, pieces: 1, told: { warps: toldWarps } };
}

export function chooseRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
): HeldRowsConfiguration {
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
  // Rows that leave lanes without elements, or load several arrays of columns, have more to gain from more of them at a time.
  const isLean = columns === powerOfTwoFrom(columns) && columnArrays(op) < 2;
  const short = isLean ? Math.max(4, Math.min(held, shortElements / words)) : looped;
  const crossing = crossingAxis(op, axes);
  if (crossing) return crossingForm(columns, leads.at(-1)?.extent ?? 1, looped);
  const unit = lanes * Math.max(1, (8 * widestAccess) / Math.min(...bits));
  const even = evenForm(op, columns, leads, unit, target);
  if (even !== undefined) return even;
  if (columns <= unit) return shortForm(columns, leads.at(-1)?.extent ?? 1, count, short, target);
  const most = target.features.includes("cluster") ? target.clusterSize : 1;
  const fits = (blocks: number): boolean =>
    columns <= blocks * lanes * (blocks === 1 ? held : heldOf(sharedElements));
  let blocks = 1;
  // Long rows need several blocks to be held; few rows need them to keep all processors busy.
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
  const piece = Math.max(unit, looped * lanes);
  return {
    rows: 1,
    columns: piece,
    blocks,
    pieces: Math.ceil(columns / (blocks * piece)),
  };
}

/** A row by more warps: by four, lanes would wait for it and compute with it in turns. */
function wideForm(op: RowOp, columns: number): HeldRowsConfiguration | undefined {
  const { arrays, isHeavy = false } = op;
  const isNarrow = arrays.every(({ per, dtype }) => per !== "element" || dtype.bits <= 16);
  const form = wideForms.find((each) => each.columns === columns && each.met <= columnArrays(op));
  if (!isHeavy || !isNarrow || form === undefined) return undefined;
  return { rows: 1, columns, blocks: 1, pieces: 1, wide: form.wide };
}

/** Registers of a processor, how many a lane is given at a time, and how many it has at least to compute with. */
const [processorRegisters, registerUnit, fewestRegisters] = [65_536, 8, 56] as const;
/** The fewest blocks of a processor that hide from each other what each of them waits for. */
const fewestBlocks = 3;

/**
 * Rows that meet several arrays of columns: these are asked for together with the row, since behind it they would wait for memory a
 * second time, even in the cache, behind the rows of other blocks. Undefined where registers hold too few blocks for that.
 */
export function earlyRows(
  { arrays, compute }: RowOp,
  { rows, columns, blocks, pieces }: HeldRowsConfiguration,
): HeldRowsConfiguration | undefined {
  const inputs = arrays.filter(({ per, role }) => per === "element" && role === "input");
  const late = arrays.filter(({ per, isLate = false }) => per === "column" && isLate);
  if (rows * blocks * pieces > 1 || inputs.length > 1 || late.length < 2) return undefined;
  // A row as it came and as it is computed with, and the columns.
  const bits = [compute, ...[...inputs, ...late].map(({ dtype }) => dtype)];
  const words = bits.reduce((sum, each) => sum + each.bits, 0) / 32;
  const wanted = Math.max(fewestRegisters, (columns / lanes) * words);
  const registers = registerUnit * Math.ceil(wanted / registerUnit);
  const resident = Math.floor(processorRegisters / (lanes * registers));
  if (resident < fewestBlocks) return undefined;
  return { rows, columns, blocks, pieces, early: { resident } };
}

function columnArrays({ arrays }: RowOp): number {
  return arrays.filter(({ per, role }) => per === "column" && role === "input").length;
}

/**
 * The share of lanes with elements up to which rows are divided evenly, by how many arrays of columns they meet: what is loaded for
 * lanes without elements is little beside the rows themselves, but much beside arrays of columns, which every row loads again.
 */
const evenShares = [0.65, 0.8, 0.9] as const;
/** Rows of such a block at most, and registers of a lane for elements, as they came and as they are computed with, and for columns. */
const [mostEvenRows, evenRegisters] = [16, 140] as const;

/**
 * Rows far under what a block is made for: several of them, each by as many lanes as it fills. A row of 1,280 elements of bf16 has 5
 * loads for each lane of a warp, and would leave three of eight lanes of a block without any. Undefined where few are, where rows do
 * not come out even, and where elements are so wide that lanes have enough in flight anyhow.
 */
function evenForm(
  op: RowOp,
  columns: number,
  leads: readonly StridedAxis[],
  unit: number,
  { processors }: Target,
): HeldRowsConfiguration | undefined {
  const inputs = op.arrays.filter(({ per, role }) => per === "element" && role === "input");
  const arrays = columnArrays(op);
  const isNarrow = inputs.reduce((sum, { dtype }) => sum + dtype.bits, 0) <= 16;
  if (!isNarrow || (arrays === 0 && columns <= unit)) return undefined;
  const padded = columns <= unit ? powerOfTwoFrom(columns) : Math.ceil(columns / unit) * unit;
  if (columns > padded * (evenShares[arrays] ?? evenShares[2])) return undefined;
  const count = leads.reduce((product, { extent }) => product * extent, 1);
  for (let rows = 2; rows <= mostEvenRows; rows *= 2) {
    const isBusy = rows <= (leads.at(-1)?.extent ?? 1) && count / rows >= 4 * processors;
    const isHeld = ((columns * rows) / lanes) * heldWords(op) <= evenRegisters;
    if (isBusy && isHeld && (columns * rows) % unit === 0)
      return { rows, columns, blocks: 1, pieces: 1 };
  }
  return undefined;
}

/** Registers for each element of a row: what was loaded of it and of its column, and what inputs are computed as. */
function heldWords({ arrays, compute }: RowOp): number {
  return arrays.reduce((sum, { per, role, dtype }) => {
    if (per === "row" || role === "output") return sum;
    return sum + (dtype.bits + (per === "element" ? compute.bits : 0)) / 32;
  }, 0);
}

/** Several rows a block, but no fewer blocks than keep the processors busy. */
function shortForm(
  columns: number,
  extent: number,
  count: number,
  short: number,
  { processors }: Target,
): HeldRowsConfiguration {
  const width = powerOfTwoFrom(columns);
  let rows = Math.min(Math.max(1, (short * lanes) / width), powerOfTwoFrom(extent));
  while (rows > 1 && count / rows < 4 * processors && rows * width > 4 * lanes) rows /= 2;
  return { rows, columns: width, blocks: 1, pieces: 1 };
}

/** Whether elements that lie side by side belong to different rows. */
function crossingAxis(op: RowOp, axes: readonly StridedAxis[]): boolean {
  const [column, lead] = [axes.at(-1), axes.at(-2)];
  return op.arrays.some(
    ({ per }, position) =>
      per === "element" && column?.strides[position] !== 1 && lead?.strides[position] === 1,
  );
}

function crossingForm(columns: number, extent: number, short: number): HeldRowsConfiguration {
  const rows = Math.min(crossingRows, powerOfTwoFrom(extent));
  const most = Math.max(1, (2 * short * lanes) / rows);
  const width = Math.min(most, powerOfTwoFrom(columns));
  return {
    rows,
    columns: width,
    blocks: 1,
    pieces: Math.ceil(columns / width),
  };
}
