/**
 * Windows on shared memory: slices, transposed and reshaped views of an allocation, and how they look
 * to instructions that know only rows, strides and tiles.
 *
 * A view numbers elements of the allocation in its own row-major order: a first element, and for each
 * axis of the view a stride. Slicing moves the first element, transposing permutes the strides,
 * reshaping splits or joins axes whose strides follow on. The allocation's layout then says where the
 * bytes are, so that views and layouts compose without knowing each other.
 *
 *   allocation [4, 64, 128], view of stage 2, transposed: first 2·64·128, shape [128, 64], strides [1, 128]
 *
 * `tiledAxes` describes a view as hardware sees it: along each axis, `inner` elements `step` bytes apart,
 * then a jump of `jump` bytes to the next of `outer` such runs; before the swizzle, which acts on the sum.
 *
 *   bf16 [64, 128] in shared(tile 8 64, swizzle 128)
 *
 *   | axis | inner | step | outer | jump |
 *   |------|-------|------|-------|------|
 *   | 0    | 8     | 128  | 8     | 2048 |
 *   | 1    | 64    | 2    | 2     | 1024 |
 */
import { rowMajorStrides } from "../../formats/shape.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Memo, onceForEach } from "../../support/memo.ts";
import { product } from "./index-bits.ts";
import { axisOffsets, requireStorable, swizzleByte } from "./shared-layout.ts";
import type { SharedLayout } from "./shared-layout.ts";

/** A window of an allocation in shared memory. */
export interface SharedView {
  /** The layout of the allocation. */
  readonly layout: SharedLayout;
  /** Shape of the whole allocation. */
  readonly allocation: readonly number[];
  /** Bits of an element. */
  readonly bits: number;
  /** Number of the first element in the allocation's row-major order. */
  readonly first: number;
  /** The extents of the window. */
  readonly shape: readonly number[];
  /** What a step along each axis adds to the number of the element. */
  readonly strides: readonly number[];
}

/** The allocation itself. */
export function wholeView(
  layout: SharedLayout,
  allocation: readonly number[],
  bits: number,
): SharedView {
  requireStorable(layout, allocation);
  const strides = rowMajorStrides(allocation);
  return { layout, allocation, bits, first: 0, shape: allocation, strides };
}

/** A window; axes in `dropped` have size 1 and disappear. */
export function sliceView(
  view: SharedView,
  starts: readonly number[],
  sizes: readonly number[],
  dropped: readonly number[] = [],
): SharedView {
  const inside = view.shape.every((extent, axis) => {
    const start = starts[axis] ?? -1;
    return start >= 0 && start + (sizes[axis] ?? 0) <= extent;
  });
  if (!inside) {
    throw new TilewrightError({
      code: "TW6009",
      message: `a window of [${sizes.join(", ")}] from [${starts.join(", ")}] leaves its source`,
      expected: `a window within [${view.shape.join(", ")}]`,
      found: `[${sizes.join(", ")}] from [${starts.join(", ")}]`,
    });
  }
  const kept = view.shape.map((_, axis) => axis).filter((axis) => !dropped.includes(axis));
  return {
    ...view,
    first: starts.reduce((sum, start, axis) => sum + start * (view.strides[axis] ?? 0), view.first),
    shape: kept.map((axis) => sizes[axis] ?? 1),
    strides: kept.map((axis) => view.strides[axis] ?? 0),
  };
}

export function transposeView(view: SharedView, permutation: readonly number[]): SharedView {
  return {
    ...view,
    shape: permutation.map((axis) => view.shape[axis] ?? 1),
    strides: permutation.map((axis) => view.strides[axis] ?? 0),
  };
}

/** The view under another shape; undefined where its axes do not follow on. */
export function reshapeView(view: SharedView, shape: readonly number[]): SharedView | undefined {
  const source = view.shape
    .map((extent, axis) => ({ extent, stride: view.strides[axis] ?? 0 }))
    .filter(({ extent }) => extent > 1);
  const strides = shape.map(() => 0);
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    let missing = shape[axis] ?? 1;
    if (missing === 1) continue;
    strides[axis] = source.at(-1)?.stride ?? 0;
    let expected = strides[axis];
    while (missing > 1) {
      const last = source.pop();
      if (last === undefined || last.stride !== expected) return undefined;
      const taken = Math.min(missing, last.extent);
      if (last.extent % taken !== 0 || missing % taken !== 0) return undefined;
      if (last.extent > taken)
        source.push({ extent: last.extent / taken, stride: last.stride * taken });
      missing /= taken;
      expected = last.stride * taken;
    }
  }
  return { ...view, shape, strides };
}

/** The bit at which every element of the view begins, in row-major order. */
export function viewBits(view: SharedView): Int32Array {
  const read = bitReader(view);
  return new Int32Array(product(view.shape)).map((_, element) => read(element));
}

/** Gives the bit at which an element of the view begins. */
export function bitReader(view: SharedView): (element: number) => number {
  const { layout, bits } = view;
  const stored = numberReader(view);
  return (element) => {
    const bit = stored(element) * bits;
    return swizzleByte(bit >> 3, layout.swizzle) * 8 + (bit & 7);
  };
}

/** Gives the stored number, before the swizzle, of an element of the view. */
function numberReader(view: SharedView): (element: number) => number {
  const { allocation, shape, strides, first } = view;
  const offsets = axisOffsets(view.layout, allocation);
  return (element) => {
    let remaining = element;
    let number = first;
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      const extent = shape[axis] as number;
      number += (remaining % extent) * (strides[axis] as number);
      remaining = Math.floor(remaining / extent);
    }
    return storedNumber(number, allocation, offsets);
  };
}

function storedNumber(
  number: number,
  allocation: readonly number[],
  offsets: readonly Int32Array[],
): number {
  let remaining = number;
  let stored = 0;
  for (let axis = allocation.length - 1; axis >= 0; axis -= 1) {
    const extent = allocation[axis] as number;
    stored += (offsets[axis] as Int32Array)[remaining % extent] as number;
    remaining = Math.floor(remaining / extent);
  }
  return stored;
}

/** One axis of a view in bytes, before the swizzle. */
export interface TiledAxis {
  /** Elements of a run, `step` bytes apart. */
  readonly inner: number;
  readonly step: number;
  /** Runs, `jump` bytes apart; 0 where there is one. */
  readonly outer: number;
  readonly jump: number;
}

/** Bytes from the view's first element to element `index` of an axis, before the swizzle. */
export function bytesAlong({ inner, step, jump }: TiledAxis, index: number): number {
  return Math.floor(index / inner) * jump + (index % inner) * step;
}

export interface TiledAxes {
  /** The byte where the view begins, before the swizzle. */
  readonly start: number;
  readonly axes: readonly TiledAxis[];
}

const known = new Memo<TiledAxes | undefined>(1024);

/** The view in runs and jumps; undefined where it cuts tiles, so that the steps are not regular. */
export const tiledAxes = onceForEach((view: SharedView): TiledAxes | undefined => {
  const { layout, allocation, bits, first, shape, strides } = view;
  const key = `${layout.text} ${allocation.join()} ${bits} ${first} ${shape.join()} ${strides.join()}`;
  return known.get(key, () => findTiledAxes(view));
});

function findTiledAxes(view: SharedView): TiledAxes | undefined {
  const { allocation, shape, strides, bits } = view;
  const offsets = axisOffsets(view.layout, allocation);
  const at = (number: number): number => (storedNumber(number, allocation, offsets) * bits) / 8;
  const start = at(view.first);
  const axes = shape.map((extent, axis) => {
    const stride = strides[axis] ?? 0;
    const alone = alongOneAxis(view, extent, stride);
    const along = alone === undefined ? undefined : offsets[alone.axis];
    const bytes = new Float64Array(extent);
    for (let step = 0; step < extent; step += 1)
      bytes[step] =
        alone === undefined || along === undefined
          ? at(view.first + step * stride) - start
          : (((along[alone.first + step * alone.step] ?? 0) - (along[alone.first] ?? 0)) * bits) /
            8;
    return runsOf(bytes);
  });
  if (!axes.every((axis) => axis !== undefined)) return undefined;
  return axesAddUp(view, at) ? { start, axes } : undefined;
}

/** The axis of the allocation along which alone so many steps move, from which index, and how far each; undefined where they carry. */
function alongOneAxis(
  { allocation, first }: SharedView,
  steps: number,
  stride: number,
): { readonly axis: number; readonly first: number; readonly step: number } | undefined {
  let outer = 1;
  for (let axis = allocation.length - 1; axis >= 0; axis -= 1) {
    const extent = allocation[axis] ?? 1;
    if (stride % (outer * extent) !== 0) {
      const index = Math.floor(first / outer) % extent;
      const step = stride / outer;
      const stays = step > 0 && index + (steps - 1) * step < extent;
      return stays ? { axis, first: index, step } : undefined;
    }
    outer *= extent;
  }
  return undefined;
}

function runsOf(bytes: Float64Array): TiledAxis | undefined {
  const step = bytes[1] ?? 0;
  let inner = 1;
  while (inner < bytes.length && bytes[inner] === inner * step) inner += 1;
  if (inner === bytes.length) return { inner, step, outer: 1, jump: 0 };
  const jump = bytes[inner] ?? 0;
  const outer = bytes.length / inner;
  if (!Number.isInteger(outer)) return undefined;
  const found = { inner, step, outer, jump };
  for (let index = inner; index < bytes.length; index += 1)
    if (bytes[index] !== bytesAlong(found, index)) return undefined;
  return found;
}

/** Whether the offset of an element is the sum of the offsets along the axes. */
function axesAddUp(view: SharedView, at: (number: number) => number): boolean {
  const { shape, strides, first, bits } = view;
  const touched = shape.map((_, axis) => touchedAxes(view, axis));
  // Axes of the view that move along different axes of the allocation cannot carry into each other.
  if (new Set(touched.flat()).size === touched.flat().length) return true;
  const stored = numberReader(view);
  return Array.from({ length: product(shape) }, (_, element) => element).every((element) => {
    let remaining = element;
    let sum = at(first);
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      const extent = shape[axis] ?? 1;
      sum += at(first + (remaining % extent) * (strides[axis] ?? 0)) - at(first);
      remaining = Math.floor(remaining / extent);
    }
    return sum === (stored(element) * bits) / 8;
  });
}

/** The allocation's axes along which an axis of the view moves. */
function touchedAxes({ allocation, first, shape, strides }: SharedView, axis: number): number[] {
  const outer = rowMajorStrides(allocation);
  const steps = shape[axis] ?? 1;
  const stride = strides[axis] ?? 0;
  return allocation.flatMap((extent, index) =>
    moves(first, steps, stride, outer[index] ?? 1, extent) ? [index] : [],
  );
}

/** Whether floor((first + step · stride) / outer) % extent changes within so many steps. */
function moves(
  first: number,
  steps: number,
  stride: number,
  outer: number,
  extent: number,
): boolean {
  const start = Math.floor(first / outer);
  if (Math.floor((first + (steps - 1) * stride) / outer) === start) return false;
  if (stride % (outer * extent) === 0) return false;
  for (let step = 1; step < steps; step += 1)
    if (Math.floor((first + step * stride) / outer) % extent !== start % extent) return true;
  return false;
}
