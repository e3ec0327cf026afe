/**
 * Element maps of register layouts, one element at a time and as tables. A place is written
 * thread · registers + register, where the thread index is 32 · warp + lane.
 *
 *   (L0 L1 | R0) on a tile [4, 2]: 2 registers a lane
 *
 *   | element | row, column | place of lane 0…3 of warp 0 |
 *   |---------|-------------|-----------------------------|
 *   | 0       | 0, 0        | lane 0, register 0          |
 *   | 1       | 0, 1        | lane 0, register 1          |
 *   | 2       | 1, 0        | lane 1, register 0          |
 *   | 7       | 3, 1        | lane 3, register 1          |
 *
 * L2, L3, L4, W0 and W1 are free there, so each element has 32 holders.
 */
import { isRegister, laneBits, laneMask, lanesPerWarp, product, threadBit } from "./index-bits.ts";
import {
  atomExtents,
  copyCounts,
  registersPerLane,
  shownWarps,
  viewedShape,
} from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";

/** One of the places that hold an element. */
export interface Holder {
  /** The number of the warp. */
  readonly warp: number;
  /** The number of the thread in its warp. */
  readonly lane: number;
  /** The number of the register in its thread. */
  readonly register: number;
}

/** What a place of padding holds in the tables. */
export const padding = -1;

/**
 * Element of every place, row-major number at `thread * registers + register`; `padding` where there
 * is none. Of a splat, the places show element 0, which stands for all. The table has a warpgroup's threads, or those of as
 * many warps as the layout names, unless the number is given.
 */
export function elementTable(
  layout: RegisterLayout,
  shape: readonly number[],
  warps = shownWarps(layout),
): Int32Array {
  const threads = warps * lanesPerWarp;
  if (layout.kind === "splat") return new Int32Array(threads);
  const registers = registersPerLane(layout, shape);
  const table = new Int32Array(threads * registers);
  const viewed = viewedShape(layout, shape);
  const parts = coordinateParts(layout, shape, warps);
  let stride = product(viewed);
  viewed.forEach((extent, axis) => {
    stride /= extent;
    const { ofThread, ofRegister } = parts[axis] as CoordinateParts;
    for (let thread = 0, place = 0; thread < threads; thread += 1) {
      const start = ofThread[thread] as number;
      for (let register = 0; register < registers; register += 1, place += 1) {
        const coordinate = start + (ofRegister[register] as number);
        const before = table[place] as number;
        table[place] =
          before === padding || coordinate >= extent ? padding : before + coordinate * stride;
      }
    }
  });
  return table;
}

/** What thread and register each contribute to the coordinate of one axis. */
export interface CoordinateParts {
  readonly ofThread: Int32Array;
  readonly ofRegister: Int32Array;
}

/** The coordinate of a place is the sum of what its thread and its register contribute. */
export function coordinateParts(
  layout: DistributedLayout,
  shape: readonly number[],
  warps = shownWarps(layout),
): readonly CoordinateParts[] {
  const extents = atomExtents(layout, shape);
  const copies = copyCounts(layout, shape);
  const registers = registersPerLane(layout, shape);
  const leading = extents.length - layout.axes.length;
  let later = layout.atomRegisters * product(copies);
  return extents.map((extent, axis) => {
    const count = copies[axis] ?? 1;
    later /= count;
    const bits = axis < leading ? [] : (layout.axes[axis - leading] ?? []);
    const ofThread = new Int32Array(warps * lanesPerWarp);
    const ofRegister = new Int32Array(registers);
    for (let register = 0; register < registers; register += 1)
      ofRegister[register] = (Math.floor(register / later) % count) * extent;
    bits.forEach((bit, position) => {
      const target = isRegister(bit) ? ofRegister : ofThread;
      const shift = isRegister(bit) ? bit : threadBit(bit);
      for (let index = 0; index < target.length; index += 1)
        target[index] = (target[index] as number) + (((index >> shift) & 1) << position);
    });
    return { ofThread, ofRegister };
  });
}

/** The row of the first thread in `elementTable`: its coordinates are the least, and registers lie alike
 * in all others. */
export function firstThreadElements(layout: RegisterLayout, shape: readonly number[]): Int32Array {
  if (layout.kind === "splat") return new Int32Array(1);
  const elements = new Int32Array(registersPerLane(layout, shape));
  const viewed = viewedShape(layout, shape);
  const parts = coordinateParts(layout, shape);
  let stride = product(viewed);
  viewed.forEach((extent, axis) => {
    stride /= extent;
    const { ofRegister } = parts[axis] as CoordinateParts;
    ofRegister.forEach((coordinate, register) => {
      const before = elements[register] as number;
      elements[register] =
        before === padding || coordinate >= extent ? padding : before + coordinate * stride;
    });
  });
  return elements;
}

/** The first place, with all replicated thread bits zero, of every element. */
export function placeTable(layout: RegisterLayout, shape: readonly number[]): Int32Array {
  const places = new Int32Array(product(shape));
  if (layout.kind === "splat") return places;
  const elements = elementTable(layout, shape);
  for (let place = elements.length - 1; place >= 0; place -= 1) {
    const element = elements[place] as number;
    if (element !== padding) places[element] = place;
  }
  return places;
}

/** Every place that holds the element, by ascending thread. */
export function holders(
  layout: RegisterLayout,
  shape: readonly number[],
  element: number,
): readonly Holder[] {
  const place = layout.kind === "splat" ? 0 : firstPlace(layout, shape, element);
  const registers = registersPerLane(layout, shape);
  const register = place % registers;
  const thread = Math.floor(place / registers);
  const free = layout.kind === "splat" ? laneMask(shownWarps(layout)) : layout.replicated;
  const found: Holder[] = [];
  for (let other = 0; other <= laneMask(shownWarps(layout)); other += 1) {
    if ((other & ~free) !== thread) continue;
    found.push({ warp: other >> laneBits, lane: other % lanesPerWarp, register });
  }
  return found;
}

function firstPlace(layout: DistributedLayout, shape: readonly number[], element: number): number {
  const viewed = viewedShape(layout, shape);
  const extents = atomExtents(layout, shape);
  const copies = copyCounts(layout, shape);
  const leading = extents.length - layout.axes.length;
  let remaining = element;
  let copyStride = layout.atomRegisters;
  let thread = 0;
  let register = 0;
  for (let axis = viewed.length - 1; axis >= 0; axis -= 1) {
    const extent = viewed[axis] ?? 1;
    const coordinate = remaining % extent;
    remaining = Math.floor(remaining / extent);
    register += copyStride * Math.floor(coordinate / (extents[axis] ?? 1));
    copyStride *= copies[axis] ?? 1;
    (axis < leading ? [] : (layout.axes[axis - leading] ?? [])).forEach((bit, position) => {
      const value = (coordinate >> position) & 1;
      if (isRegister(bit)) register += value << bit;
      else thread += value << threadBit(bit);
    });
  }
  return thread * registersPerLane(layout, shape) + register;
}

/** The element at a place; undefined where it is padding or the lane has no such register. */
export function elementAt(
  layout: RegisterLayout,
  shape: readonly number[],
  { warp, lane, register }: Holder,
): number | undefined {
  if (register >= registersPerLane(layout, shape)) return undefined;
  if (layout.kind === "splat") return 0;
  const viewed = viewedShape(layout, shape);
  const extents = atomExtents(layout, shape);
  const copies = copyCounts(layout, shape);
  const leading = extents.length - layout.axes.length;
  const thread = warp * lanesPerWarp + lane;
  let copy = Math.floor(register / layout.atomRegisters);
  let element = 0;
  let stride = 1;
  for (let axis = viewed.length - 1; axis >= 0; axis -= 1) {
    const count = copies[axis] ?? 1;
    let coordinate = (copy % count) * (extents[axis] ?? 1);
    copy = Math.floor(copy / count);
    (axis < leading ? [] : (layout.axes[axis - leading] ?? [])).forEach((bit, position) => {
      const value = isRegister(bit) ? register >> bit : thread >> threadBit(bit);
      coordinate += (value & 1) << position;
    });
    const extent = viewed[axis] ?? 1;
    if (coordinate >= extent) return undefined;
    element += coordinate * stride;
    stride *= extent;
  }
  return element;
}

/** Whether both layouts hold the same in every place of a tile of this shape. */
export function samePlaces(
  left: RegisterLayout,
  right: RegisterLayout,
  shape: readonly number[],
): boolean {
  if (left.kind === "splat" || right.kind === "splat") return left.kind === right.kind;
  const warps = Math.max(shownWarps(left), shownWarps(right));
  const ours = elementTable(left, shape, warps);
  const theirs = elementTable(right, shape, warps);
  return ours.length === theirs.length && ours.every((element, place) => element === theirs[place]);
}
