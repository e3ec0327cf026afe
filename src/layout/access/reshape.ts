/**
 * Windows on global memory under another shape. Axes of both shapes fall into groups of equal products;
 * a group of one axis each is left as it is, with its bounds. Others must be contiguous and inside for
 * certain: their axes become those of a new array, which is the old one where it was whole, and elsewhere
 * the window itself, whose start is then a base of its own.
 *
 *   | window                      | reshaped       | groups               | array              |
 *   |-----------------------------|----------------|----------------------|--------------------|
 *   | x: [n, 512]                 | [n, 8, 64]     | n : n, 512 : 8 · 64  | [n, 8, 64]         |
 *   | x: [n, 512]                 | [512 · n]      | n · 512 : 512 · n    | [512 · n]          |
 *   | x rows 64 i to 64 i + 63    | [64, 8, 64]    | 64 : 64, 512 : 8 · 64 | [n, 8, 64]        |
 *   | x rows 64 i to 64 i + 63    | [32768]        | 64 · 512 : 32768     | [32768], moved     |
 */
import { divisorNumber } from "../../ir/range-analysis/index.ts";
import { divideSizeExactly, knownDivisor, multiplySizes, sameSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { reshapeView } from "../algebra/shared-view.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import { isZero } from "./window.ts";
import type { GlobalBox, Index, IndexSums, RootAxis, SharedBox, WindowAxis } from "./window.ts";

/** Undefined where its axes do not follow on. */
export function reshapeShared(
  { dtype, ...source }: SharedBox,
  shape: readonly Size[],
): Pick<SharedBox, "shape" | "strides"> | undefined {
  const view = reshapeView({ ...source, bits: dtype.bits }, shape.map(Number));
  return view && { shape: view.shape, strides: view.strides };
}

interface Group<P extends Index> {
  /** Axes of the window, outermost first. */
  readonly from: readonly WindowAxis<P>[];
  /** Sizes of the new axes, outermost first. */
  readonly to: readonly Size[];
}

/** Groups of equal products, outermost first; undefined where an axis that disappears has bounds. */
function groupsOf<P extends Index>(
  axes: readonly WindowAxis<P>[],
  shape: readonly Size[],
): readonly Group<P>[] | undefined {
  const left = axes.filter(({ size, bounds }) => size !== 1 || bounds.length > 0);
  const right = [...shape];
  const groups: Group<P>[] = [];
  while (left.length > 0 || right.length > 0) {
    const from: WindowAxis<P>[] = left.splice(-1);
    const to: Size[] = right.splice(-1);
    if (from.length === 0 || to[0] === 1) {
      // Ones may stand anywhere; they hold nothing apart.
      left.push(...from);
      if (to.some((size) => size !== 1)) return undefined;
      groups.unshift({ from: [], to });
      continue;
    }
    if (!evenOut(from, to, left, right)) return undefined;
    groups.unshift({ from, to });
  }
  return groups;
}

/** Takes more axes on the smaller side until both products agree. */
function evenOut(from: WindowAxis[], to: Size[], left: WindowAxis[], right: Size[]): boolean {
  for (;;) {
    const covered = multiplySizes(...from.map(({ size }) => size));
    const placed = multiplySizes(...to);
    if (sameSize(covered, placed)) return true;
    const smaller =
      divideSizeExactly(covered, placed) !== undefined ||
      (typeof covered === "number" && typeof placed === "number" && placed < covered);
    const next = smaller ? right.splice(-1) : left.splice(-1);
    if (next.length === 0) return false;
    if (smaller) to.unshift(...(next as Size[]));
    else from.unshift(...(next as WindowAxis[]));
  }
}

/** What a window is under another shape. */
export interface ReshapedBox<P extends Index> {
  readonly array: readonly RootAxis[];
  readonly origin: readonly P[];
  readonly axes: readonly WindowAxis<P>[];
  /** Axes of the old array whose origins the new one begins at. */
  readonly from: readonly number[];
  readonly moved: number | undefined;
}

/** Undefined where strides cannot express it. */
export function reshapeGlobal<P extends Index>(
  source: GlobalBox<P>,
  shape: readonly Size[],
  { zero }: IndexSums<P>,
): ReshapedBox<P> | undefined {
  const groups = groupsOf(source.axes, shape);
  if (groups === undefined) return undefined;
  const used = new Set(groups.flatMap(({ from }) => from.map(({ root }) => root)));
  const array: RootAxis[] = [];
  const origin: P[] = [];
  const axes: WindowAxis<P>[] = [];
  const from: number[] = [];
  const push = (axis: RootAxis, start: P): number => {
    array.push(axis);
    return origin.push(start) - 1;
  };
  source.array.forEach((axis, root) => {
    if (!used.has(root)) push(axis, source.origin[root] ?? zero);
  });
  for (const group of groups) {
    const [only, ...others] = group.from;
    const old = only && source.array[only.root];
    if (only !== undefined && old !== undefined && others.length + group.to.length === 1) {
      const root = push(old, source.origin[only.root] ?? zero);
      axes.push({ ...only, root });
      continue;
    }
    const stride = only === undefined ? 0 : mergedStride(source, group.from);
    if (stride === undefined) return undefined;
    const whole = group.from.every((axis) => isWhole(source, axis));
    if (!whole) from.push(...group.from.map(({ root }) => root));
    group.to.forEach((size, index) => {
      const step = multiplySizes(stride, ...group.to.slice(index + 1));
      axes.push({ root: push({ extent: size, stride: step }, zero), size, bounds: [] });
    });
  }
  const moved = from.length === 0 ? source.moved : movedDivisor(source, from);
  // A base is a byte: no window of 4-bit elements may begin in the middle of one.
  if (source.dtype.bits === 4 && movedDivisor(source, from) % 2 !== 0) return undefined;
  return { array, origin, axes, from, moved };
}

/** Divides the number of elements before the new base. */
function movedDivisor({ array, origin, moved = 0 }: GlobalBox, axes: readonly number[]): number {
  return axes.reduce((divisor, axis) => {
    const start = origin[axis];
    if (start === undefined) return divisor;
    const steps = divisorNumber(start.fact) * knownDivisor(array[axis]?.stride ?? 1);
    return greatestCommonDivisor(divisor, steps);
  }, moved);
}

function isWhole({ array, origin }: GlobalBox, { root, size }: WindowAxis): boolean {
  const start = origin[root];
  return start !== undefined && isZero(start) && sameSize(array[root]?.extent ?? 0, size);
}

/** Elements from one to the next of contiguous axes seen as one; undefined where they are not that. */
function mergedStride({ array }: GlobalBox, axes: readonly WindowAxis[]): Size | undefined {
  let expected: Size | undefined;
  let innermost: Size | undefined;
  for (const { root, size, bounds } of axes.toReversed()) {
    const stride = array[root]?.stride ?? 1;
    if (bounds.length > 0 || (expected !== undefined && !sameSize(stride, expected)))
      return undefined;
    innermost ??= stride;
    expected = multiplySizes(stride, size);
  }
  return innermost;
}
