/**
 * Which instructions can compute a `dot`; the first of these that can is selected.
 *
 *   | instruction | operands                                              | tiles                         |
 *   |-------------|-------------------------------------------------------|-------------------------------|
 *   | wgmma       | right: a window of shared memory that is loaded for   | m % 64, n % 8 up to 256,      |
 *   |             | this alone; left: the same, or registers              | k % (256 / bits)              |
 *   | mma.sync    | registers, 8 and 16 bits, tf32 or f64; FP8 and FP4    | m % 16, n % 8, k % (256/bits) |
 *   |             | converted to f16, and i4 and u4 to i8 and u8          |                               |
 *   | fma         | registers, anything                                   | any                           |
 */
import { f16, i8, u8 } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { wgmmaAccumulators } from "../../ir/infer/matrix.ts";
import { tcgen05Accumulators } from "../../ir/infer/tensor-memory.ts";
import type { Op, Value } from "../../ir/node.ts";
import { kindOfScaledDot } from "../../ir/infer/scaled-dot.ts";
import { isSummedShort } from "../../ir/precisions.ts";
import type { TileType } from "../../ir/types.ts";
import { onceForEach } from "../../support/memo.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import type { WarpGrid } from "../algebra/named-layouts.ts";
import { wgmmaProblem } from "../algebra/shared-legality.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { bytesAlong, tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import type { SharedWindow } from "./windows.ts";
import {
  columnGrain,
  hasInstruction,
  multipliesOn,
  productInstructions,
} from "../../targets/product-instructions.ts";
import type { ProductInstruction } from "../../targets/product-instructions.ts";
import { scaledFragmentProblem } from "../../targets/scaled-products.ts";

const { wgmma } = productInstructions;

/** `reads` are the factors that the instruction reads from their windows of shared memory, for which no load is made. */
export type Product = {
  readonly reason: string;
  readonly reads: readonly (keyof typeof operandAxes)[];
} & (
  | { readonly instruction: typeof wgmma.name }
  | {
      readonly instruction: (typeof productInstructions)["mma.sync"]["name"];
      readonly warps: WarpGrid;
    }
  | { readonly instruction: "fma" }
);

/** The side of a product, as the view's axes of rows or columns, and the sum. */
export const operandAxes = Object.freeze({
  left: { mn: 0, k: 1 },
  right: { mn: 1, k: 0 },
});

/** By what a window looks like; its shape is that of its views. */
const problemsOf = onceForEach((_: SharedWindow["views"]) => new Map<string, string | undefined>());

/** Why wgmma cannot read the window where its allocation is stored so, or tcgen05, whose instructions have so many `rows`. */
export function operandProblem(
  window: SharedWindow,
  layout: SharedLayout,
  side: keyof typeof operandAxes,
  warps: number,
  rows?: number,
): string | undefined {
  const known = problemsOf(window.views);
  const key = `${side} ${layout.text} ${warps} ${rows ?? ""}`;
  if (!known.has(key)) known.set(key, findOperandProblem(window, layout, side, warps, rows));
  return known.get(key);
}

function findOperandProblem(
  window: SharedWindow,
  layout: SharedLayout,
  side: keyof typeof operandAxes,
  warps: number,
  rows: number | undefined,
): string | undefined {
  const views = window.views(layout);
  if (views === undefined) return "the window is reshaped across what is stored apart";
  const axes = operandAxes[side];
  const count = side === "left" ? (rows ?? slabRows) : (window.shape[axes.mn] ?? 1);
  const own = views
    .map((view) => wgmmaProblem(view, { ...axes, count, turnsBytes: rows !== undefined }))
    .find((each) => each);
  if (own !== undefined || side === "right" || rows !== undefined) return own;
  return views.every((view) => groupOffsets(view, warps) !== undefined)
    ? undefined
    : "the rows of its warpgroups do not lie equally far apart";
}

/** Rows of one wgmma instruction. */
export const slabRows = wgmma.shape.rows[0];

/**
 * Bytes by which each bit of the warpgroup's number moves the rows of the left operand that it reads; undefined where they do
 * not add up. Slabs of 64 rows go to the warpgroups in turn.
 */
export function groupOffsets(view: SharedView, warps: number): readonly number[] | undefined {
  const { mn } = operandAxes.left;
  const axis = tiledAxes(view)?.axes[mn];
  if (axis === undefined) return undefined;
  const groups = warps / warpsPerGroup;
  const slabs = (view.shape[mn] ?? 0) / slabRows;
  const start = (slab: number): number => bytesAlong(axis, slab * slabRows);
  const parts = Array.from({ length: Math.log2(groups) }, (_, bit) => start(2 ** bit));
  for (let slab = 0; slab < slabs; slab += 1) {
    const group = slab % groups;
    const moved = parts.reduce((sum, part, bit) => sum + ((group >> bit) & 1) * part, 0);
    if (start(slab) !== start(slab - group) + moved) return undefined;
  }
  return parts;
}

/** Why wgmma cannot make a product of these shapes and formats. */
export function wgmmaShapeProblem(
  op: Op<"dot">,
  target: Target,
  warps: number,
): string | undefined {
  if (!hasInstruction(target, wgmma)) return `${target.name} does not have it`;
  if (warps < warpsPerGroup) return warpgroupProblem(warps);
  const [left, right] = [matrixOf(op.operands.left), matrixOf(op.operands.right)];
  const { dtype, precision } = op.attributes;
  if (precision !== "native") return `it does not round f32 (precision ${precision})`;
  if (!wgmmaAccumulators(left.dtype, right.dtype).includes(dtype.name))
    return `it does not multiply ${left.dtype.name} by ${right.dtype.name} into ${dtype.name}`;
  const [m = 0, k = 0] = left.shape;
  const n = right.shape[1] ?? 0;
  const { mostColumns, depthBits } = wgmma.shape;
  const grain = columnGrain(wgmma, dtype, n);
  const rows = wgmmaRows(warps);
  if (m % rows !== 0) return `${m} rows are no multiple of ${rows}`;
  if (n % grain !== 0 || n > mostColumns)
    return `${n} columns are no multiple of ${grain} up to ${mostColumns}`;
  const depth = depthBits / left.dtype.bits;
  return k % depth === 0 ? undefined : `a depth of ${k} is no multiple of ${depth}`;
}

/** Rows that the warpgroups of a program thread make together, one below the other. */
export function wgmmaRows(warps: number): number {
  return (slabRows * warps) / warpsPerGroup;
}

/** What is said of fewer warps than wgmma takes together. */
export function warpgroupProblem(warps: number): string {
  return warps === 1 ? "a warp works alone" : `${warps} warps are no warpgroup`;
}

/** The type of a factor: a tile's, or that of the window it is read from. */
export function matrixOf({ type, id }: Value): Pick<TileType, "dtype" | "shape"> {
  if (type.kind === "tile") return type;
  if (type.kind !== "ref") throw new Error(`%${id} is no matrix`);
  return { dtype: type.dtype, shape: type.shape.map(Number) };
}

export function tileOf({ type, id }: Value): TileType {
  if (type.kind !== "tile") throw new Error(`%${id} is no tile`);
  return type;
}

const fragments: ProductInstruction = productInstructions["mma.sync"];
const scaledFragments: ProductInstruction = productInstructions["mma.sync.block_scale"];

/** Formats that mma.sync takes as another, which has all their numbers. */
const mmaConversions: { readonly [N in DTypeName]?: DType } = {
  f8e4m3fn: f16,
  f8e5m2: f16,
  f4e2m1fn: f16,
  i4: i8,
  u4: u8,
};

/** The format in which mma.sync takes a factor: its own, or the one it is converted to. */
export function mmaFormat(factor: Value): DType {
  const { dtype } = tileOf(factor);
  return mmaConversions[dtype.name] ?? dtype;
}

/** Whether sums that wgmma makes are added in f32 after each 128 of k. */
export function isPromoted(op: Op<"dot">): boolean {
  const { dtype, accumulation } = op.attributes;
  return accumulation !== "fast" && isSummedShort(matrixOf(op.operands.left).dtype, dtype);
}

/** Bits of the operands as mma.sync sees them. */
export function mmaBits(op: Op<"dot">): number {
  return mmaFormat(op.operands.left).bits;
}

/** Why mma.sync cannot make a product of these formats, converted where they must be, whatever its shape. */
export function mmaFormatProblem(op: Op<"dot">): string | undefined {
  const [left, right] = [mmaFormat(op.operands.left), mmaFormat(op.operands.right)];
  const { dtype, precision } = op.attributes;
  const known = (name: DTypeName): boolean =>
    fragments.factors.includes(name) || (name === "f32" && precision === "tf32");
  if (known(left.name) && known(right.name) && fragments.accumulators.includes(dtype.name))
    return undefined;
  return `it does not multiply ${left.name} by ${right.name}${precision === "ieee" ? " exactly" : ""}`;
}

/** Why mma.sync cannot make a product of these shapes and formats, converted where they must be. */
export function mmaProblem(op: Op<"dot">): string | undefined {
  const ofFormats = mmaFormatProblem(op);
  if (ofFormats !== undefined) return ofFormats;
  const [left, right] = [tileOf(op.operands.left), tileOf(op.operands.right)];
  const [m = 0, k = 0] = left.shape;
  const n = right.shape[1] ?? 0;
  const depth = 256 / mmaBits(op);
  if (m % 16 !== 0 || n % 8 !== 0 || k % depth !== 0)
    return `[${m}, ${k}] by [${k}, ${n}] does not consist of fragments 16 × 8 × ${depth}`;
  return undefined;
}

/**
 * Up to four warps one below the other as far as there are rows, the others side by side. Fragments of f64 are wide for what
 * they multiply, and lanes load them: there the grid is the one whose warps read least.
 */
export function warpGrid(op: Op<"dot"> | Op<"scaled_dot">, warps: number): WarpGrid {
  const m = tileOf(op.operands.left).shape[0] ?? 0;
  const n = tileOf(op.operands.right).shape[1] ?? 0;
  if (tileOf(op.operands.left).dtype.bits === 64) return leastReading(m, n, warps);
  // Four rows of warps read the right operand often enough; more of them only where columns do not use all.
  const first = Math.min(warps, warpsPerGroup, exactShares(m / 16));
  const columns = Math.min(warps / first, exactShares(n / 8));
  const rows = Math.min(warps / columns, exactShares(m / 16));
  return { rows, columns };
}

/** Of the grids that use most warps, the one whose parts of the product have the fewest rows and columns together; of two, the higher. */
function leastReading(m: number, n: number, warps: number): WarpGrid {
  const [mostRows, mostColumns] = [exactShares(m / 16), exactShares(n / 8)];
  const used = Math.min(warps, mostRows * mostColumns);
  const grids = Array.from({ length: Math.log2(used) + 1 }, (_, bit) => 2 ** bit)
    .map((rows) => ({ rows, columns: used / rows }))
    .filter(({ rows, columns }) => rows <= mostRows && columns <= mostColumns);
  const reads = ({ rows, columns }: WarpGrid): number => m / rows + n / columns;
  return grids.reduce((best, each) => (reads(each) <= reads(best) ? each : best));
}

/** The greatest power of two that divides a number. */
function exactShares(units: number): number {
  return units & -units;
}

/** Why fragments with scales cannot make a product of these shapes on a target. */
export function scaledShapeProblem(op: Op<"scaled_dot">, target: Target): string | undefined {
  if (!hasInstruction(target, scaledFragments)) return `${target.name} does not have it`;
  const [m = 0, k = 0] = tileOf(op.operands.left).shape;
  const n = tileOf(op.operands.right).shape[1] ?? 0;
  return scaledFragmentProblem(kindOfScaledDot(op), [m, n, k]);
}

/** Why tcgen05 cannot make a product of these shapes and formats whose sum stays in tensor memory. */
export function tensorShapeProblem(
  op: Op<"dot">,
  target: Target,
  warps: number,
): string | undefined {
  const instruction: ProductInstruction = productInstructions.tcgen05;
  if (!hasInstruction(target, instruction)) return `${target.name} does not have it`;
  if (warpsPerGroup > warps) return warpgroupProblem(warps);
  const [left, right] = [matrixOf(op.operands.left), matrixOf(op.operands.right)];
  const { dtype, precision } = op.attributes;
  if (precision !== "native") return `it does not round f32 (precision ${precision})`;
  // Of FP8 it sums more than a dot is said to, promoted or not.
  const isKnown = [left, right].every((each) => multipliesOn(target, instruction, each.dtype.name));
  if (!isKnown || !tcgen05Accumulators(left.dtype, right.dtype).includes(dtype.name))
    return `it does not multiply ${left.dtype.name} by ${right.dtype.name} into ${dtype.name}`;
  const [m = 0, k = 0] = left.shape;
  const n = right.shape[1] ?? 0;
  const { rows, integerColumns: grain, depthBits } = instruction.shape;
  if (!rows.includes(m)) return `it has ${rows.join(" or ")} rows, not ${m}`;
  if (n % grain !== 0 || n > target.tensorMemoryColumns)
    return `${n} columns are no multiple of ${grain} up to ${target.tensorMemoryColumns}`;
  if ((n & (n - 1)) !== 0 && warps > warpsPerGroup)
    return `${warps} warps do not divide ${n} columns`;
  const depth = depthBits / left.dtype.bits;
  return k % depth === 0 ? undefined : `a depth of ${k} is no multiple of ${depth}`;
}
