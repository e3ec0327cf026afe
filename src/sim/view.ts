/**
 * Views: what a ref is at run time. A view maps an index to an element of a memory, axis by axis, and
 * knows which indices lie inside the array it was cut from:
 *
 *   x: [100, 64] row-major, window x[96 .. 112, 0 .. 64]
 *
 *   axis   size   stride   valid
 *   0      16     64       0 .. 4      rows 96 to 99 exist, the other twelve are out of bounds
 *   1      64     1        0 .. 64
 *   offset 96 * 64
 *
 * Slicing, transposing and indexing keep this form. Reshaping keeps it where axes merge and split
 * evenly; elsewhere the view lists its elements one by one (`elements`, −1 for out of bounds).
 */
import type { DType } from "../formats/dtype.ts";
import { rowMajorStrides } from "../formats/shape.ts";
import type { Op } from "../ir/node.ts";
import type { Memory } from "./memory.ts";

/** Every view has all of these, in this order: the engine then knows where each one lies without looking. */
export interface View {
  readonly memory: Memory;
  readonly dtype: DType;
  /** The element of index zero, counted in elements of `dtype` from the start of the memory. */
  readonly offset: number;
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  /** The first index of each axis that is in bounds, and the first after those. */
  readonly lower: readonly number[];
  readonly upper: readonly number[];
  /** Which member of a union the view reads and writes; 0 where there is no union. */
  readonly member: number;
  /** Elements in row-major order where offset and strides cannot say it. */
  readonly elements: Int32Array | undefined;
  /** Why the view must not be accessed: an index that is not there, a window that leaves smem. */
  readonly fault: ViewFault | undefined;
}

/**
 * A window of a block that is not there has a fault of kind "peer": its start is the rank, its end how many blocks there are. One of
 * an array that a list does not have is of kind "array": its start is the index, its end how many arrays there are.
 */
export interface ViewFault {
  readonly kind: "index" | "window" | "peer" | "array";
  readonly op: Op<"slice_ref"> | Op<"peer_ref"> | Op<"select_ref">;
  readonly axis: number;
  readonly start: number;
  readonly size: number;
  /** The first index that is there, and the first after those. */
  readonly first: number;
  readonly end: number;
}

/** Called with runs of in-bounds elements: the first one, its flat index in the window, how many, and their distance. */
export type RunVisitor = (element: number, flat: number, length: number, stride: number) => void;

export function product(sizes: readonly number[]): number {
  let total = 1;
  for (const size of sizes) total *= size;
  return total;
}

/** Whether what a slot holds is a view. */
export function isView(value: unknown): value is View {
  return typeof value === "object" && value !== null && "memory" in value;
}

/** A view on a whole array. */
export function wholeView(
  memory: Memory,
  dtype: DType,
  sizes: readonly number[],
  placement: {
    readonly offset?: number;
    readonly member?: number;
    readonly strides?: readonly number[];
  } = {},
): View {
  return {
    memory,
    dtype,
    offset: placement.offset ?? 0,
    sizes,
    strides: placement.strides ?? rowMajorStrides(sizes),
    lower: sizes.map(() => 0),
    upper: sizes,
    member: placement.member ?? 0,
    elements: undefined,
    fault: undefined,
  };
}

export function isFullyValid(view: View): boolean {
  const { sizes, lower, upper } = view;
  if (view.elements !== undefined) return !view.elements.includes(-1);
  for (let axis = 0; axis < sizes.length; axis++) {
    if ((lower[axis] as number) > 0 || (upper[axis] as number) < (sizes[axis] as number))
      return false;
  }
  return true;
}

/** The window of `sizes` elements from `starts` on; axes that are `dropped` disappear. */
export function sliceView(
  view: View,
  starts: readonly number[],
  sizes: readonly number[],
  dropped: readonly boolean[],
): View {
  if (view.elements !== undefined)
    return sliceElements(view, view.elements, starts, sizes, dropped);
  let offset = view.offset;
  const kept: number[] = [];
  const strides: number[] = [];
  const lower: number[] = [];
  const upper: number[] = [];
  for (let axis = 0; axis < sizes.length; axis++) {
    const start = starts[axis] as number;
    const size = sizes[axis] as number;
    offset += start * (view.strides[axis] as number);
    if (dropped[axis] === true) continue;
    kept.push(size);
    strides.push(view.strides[axis] as number);
    lower.push(clamp((view.lower[axis] as number) - start, size));
    upper.push(clamp((view.upper[axis] as number) - start, size));
  }
  const { memory, dtype, member, elements, fault } = view;
  return { memory, dtype, offset, sizes: kept, strides, lower, upper, member, elements, fault };
}

function clamp(index: number, size: number): number {
  return index < 0 ? 0 : index > size ? size : index;
}

function sliceElements(
  view: View,
  elements: Int32Array,
  starts: readonly number[],
  sizes: readonly number[],
  dropped: readonly boolean[],
): View {
  const strides = rowMajorStrides(view.sizes);
  const picked = new Int32Array(product(sizes));
  const rank = sizes.length;
  for (let flat = 0; flat < picked.length; flat++) {
    let rest = flat;
    let source = 0;
    for (let axis = rank - 1; axis >= 0; axis--) {
      const size = sizes[axis] as number;
      const index = (rest % size) + (starts[axis] as number);
      rest = Math.floor(rest / size);
      if (index < 0 || index >= (view.sizes[axis] as number)) source = -Infinity;
      source += index * (strides[axis] as number);
    }
    picked[flat] = source < 0 ? -1 : (elements[source] as number);
  }
  return listedView(
    view,
    sizes.filter((_, axis) => dropped[axis] !== true),
    picked,
  );
}

/** A view of elements one by one, of the same memory. */
export function listedView(view: View, sizes: readonly number[], elements: Int32Array): View {
  const { memory, dtype, member, fault } = view;
  const lower = sizes.map(() => 0);
  const strides = rowMajorStrides(sizes);
  return { memory, dtype, offset: 0, sizes, strides, lower, upper: sizes, member, elements, fault };
}

export function transposeView(view: View, permutation: readonly number[]): View {
  const permuted = (items: readonly number[]): number[] =>
    permutation.map((axis) => items[axis] as number);
  const sizes = permuted(view.sizes);
  if (view.elements !== undefined) {
    const strides = permuted(rowMajorStrides(view.sizes));
    const elements = new Int32Array(view.elements.length);
    const source = view.elements;
    const regular = { ...wholeView(view.memory, view.dtype, sizes), strides };
    visitRuns(regular, (element, flat, length, stride) => {
      for (let i = 0; i < length; i++) elements[flat + i] = source[element + i * stride] as number;
    });
    return listedView(view, sizes, elements);
  }
  return {
    ...view,
    sizes,
    strides: permuted(view.strides),
    lower: permuted(view.lower),
    upper: permuted(view.upper),
  };
}

/** The same elements in row-major order under another shape. */
export function reshapeView(view: View, sizes: readonly number[]): View {
  if (view.elements !== undefined) return listedView(view, sizes, view.elements);
  const strides = isFullyValid(view) ? reshapedStrides(view, sizes) : undefined;
  if (strides !== undefined)
    return { ...view, sizes, strides, lower: sizes.map(() => 0), upper: sizes };
  const elements = new Int32Array(product(sizes)).fill(-1);
  visitRuns(view, (element, flat, length, stride) => {
    for (let i = 0; i < length; i++) elements[flat + i] = element + i * stride;
  });
  return listedView(view, sizes, elements);
}

/** Strides under the new shape; undefined where a group of axes that must merge has gaps. */
function reshapedStrides(view: View, sizes: readonly number[]): number[] | undefined {
  const from = view.sizes.flatMap((size, axis) =>
    size === 1 ? [] : [{ size, stride: view.strides[axis] as number }],
  );
  const strides = sizes.map(() => 1);
  let next = from.length - 1;
  let axis = sizes.length - 1;
  while (axis >= 0) {
    const inner = from[next];
    if (inner === undefined) return strides;
    // One group: as few axes of either shape as have the same product, from the innermost on.
    let covered = 1;
    let placed = 1;
    while (covered === 1 || covered !== placed) {
      if (covered > placed) {
        strides[axis] = inner.stride * placed;
        placed *= sizes[axis--] as number;
        continue;
      }
      const outer = from[next--];
      if (outer === undefined || outer.stride !== inner.stride * covered) return undefined;
      covered *= outer.size;
    }
  }
  return strides;
}

/** Visits the elements in bounds, in row-major order, in the longest runs of equal distance. */
export function visitRuns(view: View, visit: RunVisitor): void {
  if (view.elements !== undefined) {
    visitListed(view.elements, visit);
    return;
  }
  const { sizes, strides, lower, upper } = view;
  let outer = sizes.length - 1;
  let size = 1;
  let stride = 1;
  let first = 0;
  let end = 1;
  for (; outer >= 0; outer--) {
    const axisSize = sizes[outer] as number;
    const axisStride = strides[outer] as number;
    if (size === 1 && first === 0 && end === 1) stride = axisStride;
    else if (axisSize === 1 && lower[outer] === 0 && upper[outer] === 1) continue;
    else if (first !== 0 || end !== size || axisStride !== stride * size) break;
    first = (lower[outer] as number) * size;
    end = (upper[outer] as number) * size;
    size *= axisSize;
  }
  if (end <= first) return;
  const length = end - first;
  const offset = view.offset + first * stride;
  if (outer < 0) visit(offset, first, length, stride);
  else walkRows(view, outer, offset, first, size, length, stride, visit);
}

/** Visits one run for each index of the axes from 0 to `axis`. */
function walkRows(
  view: View,
  axis: number,
  element: number,
  flat: number,
  elementStride: number,
  length: number,
  stride: number,
  visit: RunVisitor,
): void {
  const counts: number[] = [];
  const elementStrides: number[] = [];
  let rows = 1;
  for (let outer = axis, distance = elementStride; outer >= 0; outer--) {
    const from = view.lower[outer] as number;
    const count = Math.max(0, (view.upper[outer] as number) - from);
    counts[outer] = count;
    elementStrides[outer] = distance;
    element += from * (view.strides[outer] as number);
    flat += from * distance;
    distance *= view.sizes[outer] as number;
    rows *= count;
  }
  const position = counts.map(() => 0);
  for (let row = 0; row < rows; row++) {
    visit(element, flat, length, stride);
    for (let outer = axis; outer >= 0; outer--) {
      const axisStride = view.strides[outer] as number;
      const distance = elementStrides[outer] as number;
      element += axisStride;
      flat += distance;
      const index = (position[outer] as number) + 1;
      if (index < (counts[outer] as number)) {
        position[outer] = index;
        break;
      }
      position[outer] = 0;
      element -= index * axisStride;
      flat -= index * distance;
    }
  }
}

function visitListed(elements: Int32Array, visit: RunVisitor): void {
  let flat = 0;
  while (flat < elements.length) {
    const element = elements[flat] as number;
    let length = 1;
    while (element >= 0 && elements[flat + length] === element + length) length++;
    if (element >= 0) visit(element, flat, length, 1);
    flat += length;
  }
}

/** The same elements with axes in the order of memory, so that runs are as long as can be. */
export function inMemoryOrder(view: View): View {
  const { strides } = view;
  let sorted = view.elements === undefined;
  for (let axis = 1; sorted && axis < strides.length; axis++)
    sorted = (strides[axis - 1] as number) >= (strides[axis] as number);
  if (sorted || view.elements !== undefined) return view;
  const order = strides.map((_, axis) => axis);
  order.sort((a, b) => (strides[b] as number) - (strides[a] as number) || a - b);
  return transposeView(view, order);
}
