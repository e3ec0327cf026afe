/**
 * The layouts that are worth trying. Registers: runs of 16 bytes down to one element along the axis that
 * is contiguous in memory, dealt out so that a warp covers neighbouring rows. Shared memory: what wgmma
 * and the copy engine can read and write, in both orders of the last two axes, and plain order.
 *
 *   f32 [64, 128]   coalesced with 4, 2 and 1 neighbours a lane
 *   bf16 [2, 64, 128] in shared memory
 *
 *   | layout                               | wgmma | bank conflicts of column reads |
 *   |--------------------------------------|-------|--------------------------------|
 *   | shared(tile 64 64, swizzle 128)      | yes   | none                           |
 *   | shared(tile 64 32, swizzle 64)       | yes   | twofold                        |
 *   | shared()                             | no    | many                           |
 */
import { blockedLayout, coalescedLayout, stridedLayout } from "../algebra/named.ts";
import { transposeLayout } from "../algebra/operations.ts";
import { axesLayout, replicatedLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { bitRun, exponentOf, laneBit, laneBits, warpRun } from "../algebra/bits.ts";
import { sharedLayout, sharedProblem } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";

type Shape = readonly number[];

/** Where a register layout is wanted: over the warps of a program thread, or over one that works alone. */
export interface Extent {
  readonly shape: Shape;
  readonly bits: number;
  readonly warps: number;
}

const widestBytes = 16;

/** Layouts for access to memory whose neighbours lie along `axis`. */
export function memoryLayouts({ shape, bits, warps }: Extent, axis: number): RegisterLayout[] {
  const last = shape.length - 1;
  const permutation = shape.map((_, position) => position);
  permutation[axis] = last;
  permutation[last] = axis;
  const seen = permutation.map((position) => shape[position] ?? 1);
  const layouts: RegisterLayout[] = [];
  for (let vector = widestVector(seen, bits); vector >= 1; vector /= 2) {
    const own = warps === 1 ? withoutWarps(seen, vector) : coalescedLayout(seen, vector, warps);
    const layout = axis === last ? own : transposeLayout(own, seen, permutation);
    if (layout !== undefined) layouts.push(layout);
    const wide = vector === 1 || vector === widestVector(seen, bits);
    if (axis === last && shape.length > 1 && wide && warps > 1)
      layouts.push(stridedLayout(vector, warps));
  }
  return layouts;
}

function widestVector(shape: Shape, bits: number): number {
  const extent = shape.at(-1) ?? 1;
  let vector = Math.max(1, (widestBytes * 8) / bits);
  while (extent % vector !== 0) vector /= 2;
  return vector;
}

/** Blocks of one warp: lanes along the last axis as far as they go, then along those before. */
function withoutWarps(shape: Shape, vector: number): RegisterLayout {
  const lanes = shape.map(() => 1);
  let free = 1 << laneBits;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const units = (shape[axis] ?? 1) / (axis === shape.length - 1 ? vector : 1);
    const count = Math.min(free, 2 ** Math.ceil(Math.log2(units)));
    lanes[axis] = count;
    free /= count;
  }
  return blockedLayout({ vector, lanes, warps: shape.map(() => 1) });
}

/** Layouts that spread one axis alone, or nothing: what is left when nothing else will do. */
export function simpleLayouts({ shape, warps }: Extent): RegisterLayout[] {
  const layouts: RegisterLayout[] = shape.toReversed().map((extent, index) => {
    const axis = shape.length - 1 - index;
    const bits = Math.min(laneBits, exponentOf(extent & -extent) ?? 0);
    const rest = (extent & -extent) >> bits;
    const owners = [...bitRun(laneBit, 0, bits), ...warpRun(Math.min(warps, rest))];
    return axesLayout(shape.map((_, other) => (other === axis ? owners : [])));
  });
  return [...layouts, replicatedLayout];
}

/** Whether so many warps have all the bits that the layout names. */
export function fitsWarps(layout: RegisterLayout, warps: number): boolean {
  return layout.kind === "splat" || layout.warps <= warps;
}

const swizzleWidths = [128, 64, 32] as const;

/** Layouts of an allocation in shared memory, the most welcome first. */
export function sharedLayouts(shape: Shape, bits: number): readonly SharedLayout[] {
  const plain = sharedLayout({});
  if (shape.length < 2) return [plain];
  const [rows = 1, columns = 1] = shape.slice(-2);
  const candidates = [
    ...wholeRows(shape, bits),
    ...tilesOf(rows, columns, bits, []),
    plain,
    ...tilesOf(columns, rows, bits, [1, 0]),
    sharedLayout({ order: [1, 0] }),
  ];
  return candidates.filter((layout) => sharedProblem(layout, shape) === undefined);
}

/** Rows as wide as a swizzle follow on through all axes, so that blocks of eight may span several of them. */
function wholeRows(shape: Shape, bits: number): readonly SharedLayout[] {
  const rows = shape.slice(0, -1).reduce((product, extent) => product * extent, 1);
  const width = swizzleWidths.find((bytes) => bytes * 8 === (shape.at(-1) ?? 1) * bits);
  const isInBlocks = (shape.at(-2) ?? 1) % 8 === 0;
  return width === undefined || isInBlocks || rows % 8 !== 0
    ? []
    : [sharedLayout({ swizzle: width })];
}

function tilesOf(
  rows: number,
  columns: number,
  bits: number,
  order: readonly number[],
): readonly SharedLayout[] {
  const layouts: SharedLayout[] = [];
  for (const width of [...swizzleWidths, 0]) {
    const elements = ((width === 0 ? widestBytes : width) * 8) / bits;
    if (rows % 8 !== 0 || columns % elements !== 0) continue;
    const whole = columns === elements;
    if (whole && width === 0) continue;
    layouts.push(
      sharedLayout({ order, ...(!whole && { tile: [rows, elements] }), swizzle: width }),
    );
  }
  return layouts;
}
