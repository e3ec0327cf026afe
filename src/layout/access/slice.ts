/**
 * Slices of windows, and the names of their bounds. A window may overhang what it was cut from, and then carries the
 * bounds that a run-time test must ask for. Bounds that hold for every launch are dropped when it is cut:
 *
 *   x: [n, 512], grid i of ceildiv(n, 64)
 *
 *   | window                             | axis | origin       | bounds                                 | guard               |
 *   |------------------------------------|------|--------------|----------------------------------------|---------------------|
 *   | x.at(slice(i.mul(64), 64), all)    | 0    | 64 i         | below n; none if n is a multiple of 64 | "0 below"           |
 *   |                                    | 1    | 0            | none                                   |                     |
 *   | x.at(slice(i.mul(64).sub(1), 66))  | 0    | 64 i − 1     | from 0, below n                        | "0 from below"      |
 *   |   .at(slice(j, 8))                 | 0    | 64 i − 1 + j | as before, and j from 0, below 66      | "0 from below of 1", "0 from below" |
 *
 * Positions are sums of i32 and wrap around as those do. An element that is inside every window it was cut
 * from, asked from the innermost outwards, has a position from 0 below 2³¹ in each, so that none of its own
 * sums has wrapped; of any other element some bound says so, since bounds are tested without wrapping.
 * An index that drops an axis must be inside, and so must every window of shared memory: there the kernel stops.
 */
import { divisorNumber } from "../../ir/range-analysis/index.ts";
import type { Size } from "../../ir/size.ts";
import type { AxisWindow, Bound, Index, IndexSums, RequiredBound, Sides } from "./window.ts";
import type { SharedBox, SharedMove, WindowAxis } from "./window.ts";

/** A slice of one axis: where it begins, and how many elements it has. */
export interface AxisSlice<P extends Index> {
  readonly offset: P;
  readonly size: Size;
  readonly dropped: boolean;
}

/** A bound that a slice has, whether it must be tested or not. */
export interface StatedBound<P extends Index> extends Pick<Bound<P>, "start" | "size" | "level"> {
  /** The axis of the window that is cut. */
  readonly axis: number;
  /** Elements that must be inside. */
  readonly count: Size;
}

/** Which sides of a bound are tested at run time. */
export type Testing<P extends Index> = (bound: StatedBound<P>) => Sides;

/** Slices axes that run along others from an origin; of shared memory where a window of it was reshaped. */
export function sliceAxes<P extends Index>(
  { origin, axes, required }: AxisWindow<P>,
  isShared: boolean,
  slices: readonly AxisSlice<P>[],
  sums: IndexSums<P>,
  testing: Testing<P>,
): AxisWindow<P> {
  const moved = [...origin];
  const kept: WindowAxis<P>[] = [];
  const needed = [...required];
  axes.forEach((along, axis) => {
    const slice = slices[axis];
    const start = origin[along.root];
    if (slice === undefined || start === undefined) throw new Error("a slice for each axis");
    const position = sums.add(start, slice.offset);
    moved[along.root] = position;
    const before = along.bounds.map((bound) => ({
      // Of the array itself the start is the window's own position.
      start: bound.start === start ? position : sums.add(bound.start, slice.offset),
      size: bound.size,
      level: bound.level + 1,
    }));
    const own = { start: slice.offset, size: along.size, level: 0 };
    const bounds: Bound<P>[] = [];
    for (const { start: from, size, level } of [...before, own]) {
      const { low, high } = testing({ start: from, size, level, axis, count: slice.size });
      if (low || high) bounds.push({ start: from, size, level, low, high });
    }
    const mustBeInside = slice.dropped || isShared;
    if (mustBeInside) {
      const count = slice.dropped ? 1 : Number(slice.size);
      needed.push(...bounds.map(({ start: at, size }) => ({ start: at, count, size })));
    }
    if (!slice.dropped)
      kept.push({ root: along.root, size: slice.size, bounds: mustBeInside ? [] : bounds });
  });
  return { origin: moved, axes: kept, required: needed };
}

type Sliced<P extends Index, M extends SharedMove> = Pick<
  SharedBox<P, M>,
  "first" | "moves" | "required" | "shape" | "strides"
>;

/** Slices a window of shared memory; `moveOf` says what an offset that is not known now adds. */
export function sliceShared<P extends Index, M extends SharedMove>(
  source: Sliced<P, M>,
  slices: readonly AxisSlice<P>[],
  offsets: {
    readonly constant: (offset: P) => number | undefined;
    readonly moveOf: (offset: P, move: SharedMove) => M;
  },
  testing: Testing<P>,
): Sliced<P, M> {
  let { first } = source;
  const moves = [...source.moves];
  const required: RequiredBound<P>[] = [...source.required];
  const kept: number[] = [];
  slices.forEach(({ offset, size, dropped }, axis) => {
    const stride = source.strides[axis] ?? 0;
    const whole = source.shape[axis] ?? 1;
    const count = Number(size);
    const { low, high } = testing({ axis, start: offset, size: whole, level: 0, count });
    if (low || high) required.push({ start: offset, count, size: whole });
    const constant = offsets.constant(offset);
    if (constant === undefined)
      moves.push(offsets.moveOf(offset, moveWithin(offset, stride, whole - count)));
    else first += constant * stride;
    if (!dropped) kept.push(axis);
  });
  return {
    first,
    moves,
    required,
    shape: kept.map((axis) => Number(slices[axis]?.size ?? 1)),
    strides: kept.map((axis) => source.strides[axis] ?? 0),
  };
}

/** Accesses stay inside, so an offset is at most what its size leaves. */
function moveWithin({ fact }: Index, stride: number, room: number): SharedMove {
  const divisor = Math.max(1, divisorNumber(fact));
  return { stride, divisor, count: Math.floor(Math.max(0, room) / divisor) + 1 };
}

/** A bound as the kernel's text names it: the axis, the sides that are tested, and how many windows out it is. */
export function boundText(
  { axis, level }: Pick<StatedBound<Index>, "axis" | "level">,
  { low, high }: Sides,
): string {
  const sides = [...(low ? ["from"] : []), ...(high ? ["below"] : [])].join(" ");
  return `${axis} ${sides}${level === 0 ? "" : ` of ${level}`}`;
}

const boundPattern = /^(\d+)( from)?( below)?(?: of (\d+))?$/;

/** The sides of each bound that the texts name; undefined where a text names none. */
export function namedBounds(texts: readonly string[]): ReadonlyMap<string, Sides> | undefined {
  const named = new Map<string, Sides>();
  for (const text of texts) {
    const [, axis, low, high, level = "0"] = boundPattern.exec(text) ?? [];
    if (axis === undefined || (low === undefined && high === undefined)) return undefined;
    named.set(`${axis} ${level}`, { low: low !== undefined, high: high !== undefined });
  }
  return named;
}

const untested: Sides = Object.freeze({ low: false, high: false });

/** Tests what the texts name and nothing else. */
export function testingNamed(texts: readonly string[]): Testing<Index> {
  const named = namedBounds(texts);
  if (named === undefined) throw new Error(`a guard names no bound: ${texts.join(", ")}`);
  return ({ axis, level }) => named.get(`${axis} ${level}`) ?? untested;
}
