/**
 * Windows as accesses see them: along which axes of an array they run and from where, what of it may lie outside, and
 * where their elements lie in an allocation. The compiler follows them twice, with the same functions. Stages know
 * indices by what holds of them at every launch; the emitter has the registers besides:
 *
 *   x: [n, 512]     x.at(slice(i.mul(64), 64), all)
 *
 *   | followed by | origin                                            | bounds along axis 0          |
 *   |-------------|---------------------------------------------------|------------------------------|
 *   | stages      | from 0, a multiple of 64                          | below n                      |
 *   | emitter     | the same, in register %r4                         | as the kernel's `guard` says |
 */
import type { DType } from "../../formats/dtype.ts";
import { constantOf } from "../../ir/range-analysis/fact.ts";
import { divisorNumber, exactly, sumOfIndices } from "../../ir/range-analysis/index.ts";
import type { Fact } from "../../ir/range-analysis/index.ts";
import { knownDivisor } from "../../ir/size.ts";
import type { AnyOp } from "../../ir/node.ts";
import { isPromisedInside } from "../../ir/promises.ts";
import type { Size } from "../../ir/size.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";

/** An index, by what is known of it whatever the launch. */
export interface Index {
  readonly fact: Fact;
}

/** How indices are put together by whoever follows windows. */
export interface IndexSums<P extends Index> {
  readonly zero: P;
  /** The sum, which wraps around as i32 does; the other one where one of them is 0. */
  add(left: P, right: P): P;
}

export function isZero({ fact }: Index): boolean {
  return constantOf(fact) === 0n;
}

/** Indices by facts alone. */
export const factSums: IndexSums<Index> = {
  zero: { fact: exactly(0n) },
  add: (left, right) => {
    if (isZero(left)) return right;
    return isZero(right) ? left : { fact: sumOfIndices(left.fact, right.fact) };
  },
};

/** An axis of the array that a window lies in. */
export interface RootAxis {
  readonly extent: Size;
  /** In elements. */
  readonly stride: Size;
}

/** The sides on which an element may be outside: before the first, or behind the last. */
export interface Sides {
  readonly low: boolean;
  readonly high: boolean;
}

/** Where a window lies in one that it was cut from, and on which sides it may overhang. */
export interface Bound<P extends Index = Index> extends Sides {
  /** From the first element of that window to the first of this one. */
  readonly start: P;
  /** Elements of that window. */
  readonly size: Size;
  /** Which window that is: 0 for the one that this was cut from, 1 for the one before it. */
  readonly level: number;
}

/** A part of a window that must lie inside it wherever it is accessed, and for all that is known may not. */
export interface RequiredBound<P extends Index = Index> {
  /** From the first element of that window. */
  readonly start: P;
  readonly count: number;
  /** Elements of that window. */
  readonly size: Size;
}

export interface WindowAxis<P extends Index = Index> {
  /** The axis of the array along which it runs. */
  readonly root: number;
  readonly size: Size;
  /** The windows, the array among them, of which an element must be inside as well. */
  readonly bounds: readonly Bound<P>[];
}

/** Axes that run along others from an origin. */
export interface AxisWindow<P extends Index = Index> {
  /** The position along each axis of the array at which the window begins. */
  readonly origin: readonly P[];
  readonly axes: readonly WindowAxis<P>[];
  /** Of indices that drop an axis. */
  readonly required: readonly RequiredBound<P>[];
}

/**
 * A window on global memory whose axes run along those of an array, each along one of its own. Axes of
 * the array along which no axis of the window runs stay at their origin.
 */
export interface GlobalBox<P extends Index = Index> extends AxisWindow<P> {
  readonly kind: "global";
  readonly dtype: DType;
  /** The array, where the window was reshaped under the shape that makes it a box. */
  readonly array: readonly RootAxis[];
  /**
   * Undefined where the array is the parameter itself. Elsewhere it is a window that was reshaped,
   * which no tensor map describes, and this divides the number of elements that lie before it.
   */
  readonly moved: number | undefined;
}

/** What an offset known at run time adds to the number of a window's first element. */
export interface SharedMove {
  /** Elements for each step of the index. */
  readonly stride: number;
  /** The values that the index may have: multiples of `divisor` from 0 on, `count` of them. */
  readonly divisor: number;
  readonly count: number;
}

/**
 * A window on shared memory of this block or of a peer: elements of the allocation by their number in its
 * row-major order, a first one and a stride for each axis.
 */
export interface SharedBox<P extends Index = Index, M extends SharedMove = SharedMove> {
  readonly kind: "shared";
  readonly dtype: DType;
  readonly allocation: readonly number[];
  /** How the allocation is stored. */
  readonly layout: SharedLayout;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly first: number;
  readonly moves: readonly M[];
  /** Of every slice: no window of shared memory may overhang. */
  readonly required: readonly RequiredBound<P>[];
}

/** A window under another shape that strides cannot express: indices are taken apart one by one. */
export interface Reshaped<W, P extends Index = Index> extends AxisWindow<P> {
  readonly kind: "reshaped";
  readonly dtype: DType;
  readonly source: W;
  /** The shape of the whole; the elements of the source in row-major order. */
  readonly shape: readonly Size[];
}

/** Any window, by facts alone; `ofPeer` where it lies in another block. */
export type MemoryWindow =
  | GlobalBox
  | (SharedBox & { readonly ofPeer: boolean })
  | Reshaped<MemoryWindow>;

/** Axes along which nothing is outside. */
export function insideAxes<P extends Index>(
  axes: readonly WindowAxis<P>[],
): readonly WindowAxis<P>[] {
  return axes.map((axis) => (axis.bounds.length === 0 ? axis : { ...axis, bounds: [] }));
}

/** The window as an access sees it that is promised to be inside. */
export function insideWindow(window: MemoryWindow): MemoryWindow {
  if (window.kind === "shared") return { ...window, required: [] };
  const axes = insideAxes(window.axes);
  if (window.kind === "global") return { ...window, axes, required: [] };
  return { ...window, axes, required: [], source: insideWindow(window.source) };
}

/** The window as the access of an op sees it. */
export function windowOfAccess(op: AnyOp, window: MemoryWindow): MemoryWindow {
  return isPromisedInside(op) ? insideWindow(window) : window;
}

interface AnyWindow {
  readonly kind: MemoryWindow["kind"];
  readonly source?: AnyWindow;
}

/** Whether a window, reshaped or not, is one of shared memory, none of which may overhang. */
export function liesInShared({ kind, source }: AnyWindow): boolean {
  return source === undefined ? kind === "shared" : liesInShared(source);
}

export function wholeAxes<P extends Index>(
  shape: readonly Size[],
  { zero }: Pick<IndexSums<P>, "zero">,
): AxisWindow<P> {
  return {
    origin: shape.map(() => zero),
    axes: shape.map((size, axis) => ({ root: axis, size, bounds: [] })),
    required: [],
  };
}

export function windowShape(
  window: { readonly kind: "shared"; readonly shape: readonly Size[] } | AxisWindow,
): readonly Size[] {
  return "axes" in window ? window.axes.map(({ size }) => size) : window.shape;
}

export function transposeAxes<T>(axes: readonly T[], permutation: readonly number[]): readonly T[] {
  return permutation.flatMap((axis) => axes.slice(axis, axis + 1));
}

/** Divides the number of the window's first element, counted from an aligned address. */
export function startDivisor({ array, origin, moved = 0 }: GlobalBox): number {
  return array.reduce((divisor, { stride }, axis) => {
    const start = origin[axis];
    return start === undefined
      ? divisor
      : greatestCommonDivisor(divisor, divisorNumber(start.fact) * knownDivisor(stride));
  }, moved);
}
