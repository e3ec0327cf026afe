/**
 * What becomes of a register layout when its tile is reduced, broadcast, transposed, sliced or joined
 * with others. Every operation answers the same question: where does the result lie if no element
 * leaves its lane? It gives undefined where the notation cannot say. Registers keep their order where it
 * can be written, and are numbered anew elsewhere, which costs nothing.
 *
 *   a = (L2 L3 L4 R1 W0 W1 | R0 L0 L1), the wgmma accumulator, on [64, 128]
 *
 *   | operation                   | result                             |                               |
 *   |-----------------------------|------------------------------------|-------------------------------|
 *   | reduce axis 1               | (L2 L3 L4 R0 W0 W1)                | L0, L1 hold copies of the sum |
 *   | reduce axis 0               | (R0 L0 L1)                         |                               |
 *   | broadcast [64] to [64, 128] | (L2 L3 L4 R0 W0 W1 |)              | whole rows in each lane       |
 *   | transpose                   | (R0 L0 L1 | L2 L3 L4 R1 W0 W1)     | on [128, 64]                  |
 *   | slice columns 32 to 63      | a                                  | on [64, 32]                   |
 *   | slice rows 16 to 31         | undefined                          | only warp 1 holds them        |
 *
 * A splat stays one under all of them, but for joining.
 */
import { product } from "./index-bits.ts";
import {
  binaryDigits,
  collapse,
  expand,
  expandFlat,
  registerDigit,
  renumber,
} from "./expansion.ts";
import type { Digit, Expansion } from "./expansion.ts";
import { axesLayout, flatLayout, splat } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";
import { splitFlat } from "./reshape.ts";

/**
 * The tile without the given axes, combined over them; all lanes that held a part hold the result.
 * Padding counts as the neutral element of the combination.
 */
export function reduceLayout(
  layout: RegisterLayout,
  shape: readonly number[],
  axes: readonly number[],
): RegisterLayout | undefined {
  if (layout.kind === "splat") return splat;
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const own = layout.kind === "axes" ? layout : splitFlat(layout, shape);
  if (own === undefined) return reduceFlat(layout, shape, axes);
  const bits = alignedAxes(own, shape.length);
  return axesLayout(kept.map((axis) => bits[axis] ?? []));
}

/** Axes that are all before, or all behind, those that stay can leave a flat layout as they are. */
function reduceFlat(
  layout: DistributedLayout,
  shape: readonly number[],
  axes: readonly number[],
): RegisterLayout | undefined {
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const firstKept = shape.findIndex((_, axis) => !axes.includes(axis));
  const lastKept = shape.findLastIndex((_, axis) => !axes.includes(axis));
  if (lastKept - firstKept + 1 !== kept.length) return undefined;
  const outer = product(shape.slice(0, Math.max(firstKept, 0)));
  const inner = product(shape.slice(lastKept + 1));
  const grouped = splitFlat(layout, [outer, product(kept), inner]);
  if (grouped === undefined) return undefined;
  return flatLayout(alignedAxes(grouped, 3)[1] ?? []);
}

/** The layout's bits with the leading axes it does not write. */
function alignedAxes(layout: DistributedLayout, rank: number): readonly (readonly number[])[] {
  const missing = Array<readonly number[]>(rank - layout.axes.length).fill([]);
  return [...missing, ...layout.axes];
}

/** How a tile is repeated: axis i of `from` becomes axis `axes[i]` of `to`, of equal extent or 1. */
export interface Broadcast {
  /** The shape of the tile. */
  readonly from: readonly number[];
  /** The shape of the result. */
  readonly to: readonly number[];
  /** The axis of the result that each axis of the tile becomes. */
  readonly axes: readonly number[];
}

/**
 * The repeated tile: each lane repeats what it holds, in registers. Other layouts of the result are
 * as good: all those from which `reduceLayout` over the repeated axes leads to lanes that hold the
 * source's elements.
 */
export function broadcastLayout(
  layout: RegisterLayout,
  { from, to, axes }: Broadcast,
): RegisterLayout | undefined {
  if (layout.kind === "splat") return splat;
  const own = layout.kind === "axes" ? layout : splitFlat(layout, from);
  if (own === undefined) {
    // Repeating the whole tile in front of itself continues the atoms of a flat layout.
    const behind = axes.every((axis, index) => axis === to.length - from.length + index);
    const whole = product(from) % (1 << (layout.axes[0]?.length ?? 0)) === 0;
    const equal = from.every((extent, index) => to[axes[index] ?? 0] === extent);
    return behind && whole && equal ? layout : undefined;
  }
  const bits = alignedAxes(own, from.length);
  const result: (readonly number[])[] = to.map(() => []);
  for (const [index, axis] of axes.entries()) {
    const owners = bits[index] ?? [];
    const stretched = from[index] === 1 && to[axis] !== 1;
    // Lanes that own a bit of an axis of extent 1 hold padding, and so have nothing to repeat.
    if (stretched && owners.some((bit) => bit < 0)) return undefined;
    result[axis] = stretched ? [] : owners;
  }
  return axesLayout(result);
}

/** The tile with axis i of the result being axis `permutation[i]` of the source. */
export function transposeLayout(
  layout: RegisterLayout,
  shape: readonly number[],
  permutation: readonly number[],
): RegisterLayout | undefined {
  if (layout.kind === "splat") return splat;
  const expansion = expand(layout, shape);
  if (expansion === undefined) return undefined;
  return collapse({
    shape: permutation.map((axis) => shape[axis] ?? 1),
    axes: permutation.map((axis) => expansion.axes[axis] ?? []),
  });
}

/**
 * The tile with each eight registers of a lane, which share a word of elements of 4 bits, in another order: 0 4 1 5 2 6 3 7, where
 * elements that are half a word apart lie side by side. Layouts whose lanes have no eight such registers stay as they are.
 */
export function halvesTogether(
  layout: RegisterLayout,
  shape: readonly number[],
): RegisterLayout | undefined {
  return withStrides(
    layout,
    shape,
    new Map([1, 2, 4].map((stride) => [stride, stride === 4 ? 1 : 2 * stride])),
  );
}

/** The reverse. */
export function halvesApart(
  layout: RegisterLayout,
  shape: readonly number[],
): RegisterLayout | undefined {
  return withStrides(
    layout,
    shape,
    new Map([1, 2, 4].map((stride) => [stride, stride === 1 ? 4 : stride / 2])),
  );
}

/** The layout whose register digits of some strides have others, where there are digits of all of them. */
function withStrides(
  layout: RegisterLayout,
  shape: readonly number[],
  strides: ReadonlyMap<number, number>,
): RegisterLayout | undefined {
  if (layout.kind === "splat") return splat;
  const expansion = expand(layout, shape);
  if (expansion === undefined) return layout;
  const axes = expansion.axes.map(binaryDigits);
  const isMoved = ({ thread, radix, stride }: Digit): boolean =>
    thread === undefined && radix === 2 && strides.has(stride);
  if (axes.flat().filter(isMoved).length !== strides.size) return layout;
  const moved = axes.map((digits) =>
    digits.map((digit) =>
      isMoved(digit) ? { ...digit, stride: strides.get(digit.stride) ?? digit.stride } : digit,
    ),
  );
  return collapse({ shape: expansion.shape, axes: moved });
}

/** A window of the tile. It must not start in the middle of what lanes share out. */
export function sliceLayout(
  layout: RegisterLayout,
  shape: readonly number[],
  starts: readonly number[],
  sizes: readonly number[],
): RegisterLayout | undefined {
  if (layout.kind === "splat") return splat;
  const expansion = expand(layout, shape);
  if (expansion !== undefined) return sliceExpansion(expansion, starts, sizes);
  const inner = product(shape.slice(1));
  const wholeRows = product(sizes.slice(1)) === inner;
  const flat = wholeRows ? expandFlat(layout, shape) : undefined;
  if (flat === undefined) return undefined;
  const rows = sliceExpansion(flat, [(starts[0] ?? 0) * inner], [(sizes[0] ?? 1) * inner]);
  return rows === undefined ? undefined : flatLayout(rows.axes[0] ?? []);
}

function sliceExpansion(
  { shape, axes }: Expansion,
  starts: readonly number[],
  sizes: readonly number[],
): DistributedLayout | undefined {
  const sliced = axes.map((digits, axis) => {
    const start = starts[axis] ?? 0;
    const size = sizes[axis] ?? 1;
    const whole = start === 0 && size === shape[axis];
    return whole ? digits : sliceDigits(binaryDigits(digits), start, size);
  });
  if (!sliced.every((digits) => digits !== undefined)) return undefined;
  return collapse(renumber({ shape: sizes, axes: sliced }));
}

/**
 * The digits of c where those of start + c are given. Start is a multiple of its lowest set bit, the
 * alignment: digits below it are untouched. If the window ends within the alignment, the digits above
 * are fixed, and lanes may own only those fixed to zero. Else they change with carries, which registers
 * can follow and lanes cannot.
 */
function sliceDigits(
  digits: readonly Digit[],
  start: number,
  size: number,
): readonly Digit[] | undefined {
  const places: number[] = [];
  let total = 1;
  let boundary = start === 0 ? Infinity : start & -start;
  for (const { radix } of digits) {
    places.push(total);
    if (radix !== 2) boundary = Math.min(boundary, total);
    total *= radix;
  }
  const at = (index: number): number => places[index] ?? 1;
  if (size <= boundary) {
    const movesLanes = digits.some(
      ({ thread }, index) => thread !== undefined && at(index) >= size && start & at(index),
    );
    if (movesLanes) return undefined;
    return digits.filter(({ thread }, index) => thread !== undefined || at(index) < size);
  }
  const above = digits.filter((_, index) => at(index) >= boundary);
  const [lowest] = above;
  if (lowest === undefined || above.some(({ thread }) => thread !== undefined)) return undefined;
  const below = digits.filter((_, index) => at(index) < boundary);
  return [...below, registerDigit(Math.ceil(size / boundary), lowest.stride)];
}
