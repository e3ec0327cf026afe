/**
 * What the hardware can read and write in shared memory. Each function answers with the reason why not,
 * or undefined where the view is legal.
 *
 * `wgmma` reads an operand as rows of the swizzle's width (16 bytes without one), eight rows to a block:
 *
 *   | major | contiguous axis          | other axis                          | formats          |
 *   |-------|--------------------------|-------------------------------------|------------------|
 *   | K     | k, one width an 8-row block | m or n, one width a row          | 8, 16, 32 bits   |
 *   | MN    | m or n, one width a block | k, one width a row                 | 16 bits; tcgen05 8, too, in steps of 16 |
 *
 * TMA writes a box of at most five axes, 256 elements each, densely, the last axis contiguous
 * and as wide as the swizzle. A tiled layout is one box whose axes are tiles and insides of tiles.
 */
import type { Swizzle } from "./shared-layout.ts";
import { swizzlePattern } from "./shared-layout.ts";
import { tiledAxes } from "./shared-view.ts";
import type { SharedView, TiledAxes, TiledAxis } from "./shared-view.ts";

/** Bytes of a row that wgmma reads as one. */
export function swizzleWidth(swizzle: Swizzle): number {
  return swizzle === 0 ? 16 : swizzle;
}

export interface WgmmaOperand {
  /** The view's axis of rows of the left operand, or columns of the right one. */
  readonly mn: number;
  /** The view's axis that is summed over. */
  readonly k: number;
  /** Elements along `mn` that one instruction reads: 64 for the left operand, n for the right. */
  readonly count: number;
  /** Whether elements of 8 bits may be contiguous along `mn`, too, as tcgen05 takes them. */
  readonly turnsBytes?: boolean;
}

/** Which axis of a legal operand is contiguous, and the strides of its descriptor, in bytes. */
export interface WgmmaForm {
  readonly major: "k" | "mn";
  /** From one width along the contiguous axis to the next. */
  readonly widthStride: number;
  /** From one block of eight rows to the next. */
  readonly blockStride: number;
}

const outsideTiles = "the window cuts through tiles";

/** The form in which wgmma reads the operand, or why it cannot. */
export function wgmmaForm(view: SharedView, operand: WgmmaOperand): WgmmaForm | string {
  const { bits, layout } = view;
  if (![4, 8, 16, 32].includes(bits))
    return `wgmma reads no elements of ${bits} bits from shared memory`;
  const tiled = tiledAxes(view);
  if (tiled === undefined) return outsideTiles;
  const bytes = bits / 8;
  const mn = tiled.axes[operand.mn];
  const k = tiled.axes[operand.k];
  if (mn === undefined || k === undefined) return "the operand has fewer than two axes";
  if (tiled.axes.some(({ inner }, axis) => axis !== operand.mn && axis !== operand.k && inner > 1))
    return "the operand has more than two axes";
  const problem = sizeProblem(view, operand) ?? startProblem(tiled, layout.swizzle);
  if (problem !== undefined) return problem;
  if (k.step === bytes) return rowsForm("k", k, mn, view, operand.count);
  if (mn.step !== bytes) return "neither axis is contiguous";
  if (bits !== 16 && !(bits === 8 && operand.turnsBytes === true))
    return `elements of ${bits} bits must be contiguous along k`;
  if (bits === 8 && operand.count % 16 !== 0)
    return `elements of 8 bits that are contiguous across k come in steps of 16, not ${operand.count}`;
  return rowsForm("mn", mn, k, view, Infinity);
}

export function wgmmaProblem(view: SharedView, operand: WgmmaOperand): string | undefined {
  const form = wgmmaForm(view, operand);
  return typeof form === "string" ? form : undefined;
}

function sizeProblem(view: SharedView, { mn, k, count }: WgmmaOperand): string | undefined {
  const depth = 256 / view.bits;
  const rows = view.shape[mn] ?? 1;
  const sums = view.shape[k] ?? 1;
  if (rows % count !== 0) return `an extent of ${rows} is no multiple of ${count}`;
  if (count % 8 !== 0) return `an extent of ${count} is no multiple of 8`;
  return sums % depth === 0 ? undefined : `a depth of ${sums} is no multiple of ${depth}`;
}

function startProblem({ start }: TiledAxes, swizzle: Swizzle): string | undefined {
  const pattern = swizzlePattern(swizzle);
  return start % pattern === 0
    ? undefined
    : `the window starts ${start % pattern} bytes into the pattern of ${pattern}`;
}

/** Checks blocks of eight rows, one width each; `uniform` rows must have one stride of blocks. */
function rowsForm(
  major: "k" | "mn",
  along: TiledAxis,
  rows: TiledAxis,
  view: SharedView,
  uniform: number,
): WgmmaForm | string {
  const width = swizzleWidth(view.layout.swizzle);
  const run = (along.inner * view.bits) / 8;
  if (run !== width) return `rows are contiguous for ${run} bytes where ${width} are read as one`;
  if (rows.step !== width) return `rows lie ${rows.step} bytes apart instead of ${width}`;
  if (rows.inner % 8 !== 0) return `rows come in runs of ${rows.inner}, no multiple of 8`;
  const needed = Math.min(uniform, rows.inner * rows.outer);
  if (rows.inner !== 8 && rows.inner < needed)
    return `runs of ${rows.inner} rows have no one stride for the ${needed} that are read`;
  const blockStride = rows.inner === 8 && rows.outer > 1 ? rows.jump : 8 * width;
  return { major, widthStride: along.jump, blockStride };
}

/** One axis of a box, major first: which axis of the view it runs along, and by how many elements. */
export interface BoxAxis {
  readonly axis: number;
  readonly step: number;
  readonly extent: number;
}

/** Limits of a tensor map. */
const mostAxes = 5;
const mostElements = 256;

/** The box that one tensor copy moves, or why there is none. */
export function tensorBox(view: SharedView): readonly BoxAxis[] | string {
  const tiled = tiledAxes(view);
  if (tiled === undefined) return outsideTiles;
  const parts = tiled.axes.flatMap(({ inner, step, outer, jump }, axis) => [
    { axis, step: inner, extent: outer, bytes: jump },
    { axis, step: 1, extent: inner, bytes: step },
  ]);
  const used = parts.filter(({ extent }) => extent > 1);
  used.sort((left, right) => right.bytes - left.bytes);
  const problem = boxProblem(used, tiled.start, view);
  return problem ?? used.map(({ axis, step, extent }) => ({ axis, step, extent }));
}

export function tensorBoxProblem(view: SharedView): string | undefined {
  const box = tensorBox(view);
  return typeof box === "string" ? box : undefined;
}

interface BoxPart extends BoxAxis {
  readonly bytes: number;
}

function boxProblem(
  parts: readonly BoxPart[],
  start: number,
  { bits, layout }: SharedView,
): string | undefined {
  const size = bits / 8;
  const alignment = Math.max(128, swizzlePattern(layout.swizzle));
  if (start % alignment !== 0)
    return `the window starts ${start % alignment} bytes past a multiple of ${alignment}`;
  if (parts.length > mostAxes) return `the box has ${parts.length} axes, more than ${mostAxes}`;
  const long = parts.find(({ extent }) => extent > mostElements);
  if (long !== undefined)
    return `the box has ${long.extent} elements along an axis, more than ${mostElements}`;
  const last = parts.at(-1);
  const row = (last?.extent ?? 1) * size;
  if (last !== undefined && last.bytes !== size) return "no axis is contiguous";
  if (row % 16 !== 0) return `rows of ${row} bytes are no multiple of 16`;
  if (layout.swizzle > 0 && row !== layout.swizzle)
    return `rows of ${row} bytes are not as wide as the swizzle of ${layout.swizzle}`;
  let dense = size;
  for (const { extent, bytes } of parts.toReversed()) {
    if (bytes !== dense) return `the window leaves gaps: a step of ${bytes} bytes, not ${dense}`;
    dense *= extent;
  }
  return undefined;
}
