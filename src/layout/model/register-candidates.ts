/**
 * The register layouts that are worth trying: runs of 16 bytes down to one element along the axis that is contiguous in memory, distributed so
 * that a warp covers neighbouring rows. Those of shared memory, with their swizzles, are in `swizzle-candidates.ts`.
 *
 *   f32 [64, 128]   coalesced with 4, 2 and 1 neighbours a thread
 */
import { blockedLayout, coalescedLayout, stridedLayout } from "../algebra/named-layouts.ts";
import { transposeLayout } from "../algebra/operations.ts";
import { axesLayout, replicatedLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { bitRun, exponentOf, laneBit, laneBits, warpRun } from "../algebra/index-bits.ts";

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
