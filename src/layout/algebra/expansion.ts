/**
 * A layout on one shape, written out in full. The notation leaves copies of the atom implicit; to
 * reshape, transpose or slice, they must be seen. An expansion lists the *digits* of each coordinate,
 * least significant first: bits with their owners, and on top the number of the copy, which need not be
 * a power of two. A register digit knows its stride, what one step of it adds to the register number.
 *
 *   (L0 R0 | L1) on [12, 6]: atom 4 × 2, copies 3 × 3
 *
 *   | axis | digits: radix and owner                     |
 *   |------|---------------------------------------------|
 *   | 0    | 2 L0, 2 register stride 1, 3 register stride 6 |
 *   | 1    | 2 L1, 3 register stride 2                   |
 *
 * The product of an axis' radices is its *capacity*, at least the extent. Going back, `collapse` finds
 * the shortest layout: register digits leave the top of the atom as long as copies would number them
 * alike. Where the order of the registers cannot be written (copies run the last axis fastest), they are
 * renumbered; elements never change their lane.
 */
import { isRegister, product, registerBit, threadBit } from "./index-bits.ts";
import type { Bit } from "./index-bits.ts";
import {
  atomExtents,
  axesLayout,
  copyCounts,
  registersPerLane,
  viewedShape,
} from "./register-layout.ts";
import type { DistributedLayout } from "./register-layout.ts";

export interface Digit {
  readonly radix: number;
  /** The thread bit that owns it; undefined for a digit of the register number. */
  readonly thread: number | undefined;
  /** What a step adds to the register number; 0 for thread bits. */
  readonly stride: number;
}

export interface Expansion {
  readonly shape: readonly number[];
  /** Digits of each axis, least significant first. */
  readonly axes: readonly (readonly Digit[])[];
}

export function registerDigit(radix: number, stride: number): Digit {
  return { radix, thread: undefined, stride };
}

/** The digits over the axes that the layout itself speaks of: the tile's, or one for a flat layout. */
function expandOwn(layout: DistributedLayout, shape: readonly number[]): Expansion {
  const extents = atomExtents(layout, shape);
  const copies = copyCounts(layout, shape);
  const leading = extents.length - layout.axes.length;
  let stride = layout.atomRegisters * product(copies);
  const axes = extents.map((_, axis) => {
    const count = copies[axis] ?? 1;
    stride /= count;
    const bits = axis < leading ? [] : (layout.axes[axis - leading] ?? []);
    const digits = bits.map((bit): Digit =>
      isRegister(bit)
        ? registerDigit(2, 2 ** bit)
        : { radix: 2, thread: threadBit(bit), stride: 0 },
    );
    return count === 1 ? digits : [...digits, registerDigit(count, stride)];
  });
  return { shape: viewedShape(layout, shape), axes };
}

/** The digits over the tile's axes; undefined for a flat layout whose bits straddle axes. */
export function expand(layout: DistributedLayout, shape: readonly number[]): Expansion | undefined {
  const own = expandOwn(layout, shape);
  return layout.kind === "axes" ? own : splitAxes(own.axes[0] ?? [], shape);
}

/** The digits of the element's row-major number; undefined where an axis overhangs under another. */
export function expandFlat(
  layout: DistributedLayout,
  shape: readonly number[],
): Expansion | undefined {
  const own = expandOwn(layout, shape);
  const digits = layout.kind === "flat" ? own.axes[0] : mergeAxes(own);
  return digits === undefined ? undefined : { shape: [product(shape)], axes: [digits] };
}

/** The axes as one; undefined where an axis below the first has padding. */
export function mergeAxes({ shape, axes }: Expansion): readonly Digit[] | undefined {
  const receiver = firstWideAxis(shape);
  const exact = axes.every((digits, axis) => axis <= receiver || capacity(digits) === shape[axis]);
  return exact ? axes.toReversed().flat() : undefined;
}

/** One axis split into several; undefined where a digit straddles two. */
export function splitAxes(
  digits: readonly Digit[],
  shape: readonly number[],
): Expansion | undefined {
  const remaining = [...digits];
  const receiver = firstWideAxis(shape);
  const axes: (readonly Digit[])[] = [];
  for (let axis = shape.length - 1; axis > receiver; axis -= 1) {
    const taken = takeDigits(remaining, shape[axis] ?? 1);
    if (taken === undefined) return undefined;
    axes.unshift(taken);
  }
  if (receiver >= 0) axes.unshift(remaining);
  else if (remaining.length > 0) return undefined;
  while (axes.length < shape.length) axes.unshift([]);
  return { shape, axes };
}

/** The axis that may overhang: the first of more than one element; where there is none, the last. */
function firstWideAxis(shape: readonly number[]): number {
  const first = shape.findIndex((extent) => extent > 1);
  return first < 0 ? shape.length - 1 : first;
}

/** Removes digits whose radices multiply to `extent` from the front, cutting the last where need be. */
function takeDigits(digits: Digit[], extent: number): readonly Digit[] | undefined {
  const taken: Digit[] = [];
  let missing = extent;
  while (missing > 1) {
    const digit = digits.shift();
    if (digit === undefined) return undefined;
    if (missing % digit.radix === 0) {
      taken.push(digit);
      missing /= digit.radix;
    } else if (digit.thread === undefined && digit.radix % missing === 0) {
      taken.push(registerDigit(missing, digit.stride));
      digits.unshift(registerDigit(digit.radix / missing, digit.stride * missing));
      missing = 1;
    } else return undefined;
  }
  return taken;
}

function capacity(digits: readonly Digit[]): number {
  let found = 1;
  for (const { radix } of digits) found *= radix;
  return found;
}

/** Register digits as bits and at most one odd digit on top of each. */
export function binaryDigits(digits: readonly Digit[]): readonly Digit[] {
  const parts: Digit[] = [];
  for (const digit of digits) {
    const { thread } = digit;
    let { radix, stride } = digit;
    for (; radix % 2 === 0; radix /= 2, stride *= 2) parts.push({ radix: 2, thread, stride });
    if (radix > 1) parts.push({ radix, thread, stride });
  }
  return parts;
}

/** The same digits with register strides that leave no gaps, in the same order. */
export function renumber({ shape, axes }: Expansion): Expansion {
  const registers = axes.flat().filter(({ thread }) => thread === undefined);
  registers.sort((left, right) => left.stride - right.stride);
  const strides = new Map<number, number>();
  let next = 1;
  for (const { stride, radix } of registers) {
    strides.set(stride, next);
    next *= radix;
  }
  const dense = (digit: Digit): Digit =>
    digit.thread === undefined ? { ...digit, stride: strides.get(digit.stride) ?? 0 } : digit;
  return { shape, axes: axes.map((digits) => digits.map(dense)) };
}

/** The shortest layout with these digits; undefined where none has them. */
export function collapse(expansion: Expansion): DistributedLayout | undefined {
  const { shape } = expansion;
  const axes = expansion.axes.map(binaryDigits);
  stripCopies(axes, shape);
  if (axes.flat().every(({ radix }) => radix === 2)) return fromBits(axes);
  const cut = expansion.axes.map((digits) => belowOdd(binaryDigits(digits)));
  if (!cut.every((digits) => digits !== undefined)) return undefined;
  const renumbered = expand(fromBits(cut), shape);
  return renumbered === undefined ? undefined : collapse(renumbered);
}

/** Takes register digits off the tops of the axes while copies of a smaller atom number them alike. */
function stripCopies(axes: (readonly Digit[])[], shape: readonly number[]): void {
  const capacities = axes.map(capacity);
  const registers = axes.flatMap((digits, axis) =>
    digits.filter(({ thread }) => thread === undefined).map((digit) => ({ digit, axis })),
  );
  registers.sort((left, right) => right.digit.stride - left.digit.stride);
  // Copies count the last axis fastest: once an axis has copies, no axis before it can get them.
  let firstAllowed = 0;
  let before: readonly Digit[] | undefined;
  for (const { digit, axis } of registers) {
    const digits = axes[axis] ?? [];
    const smaller = digits.slice(0, -1);
    const extent = capacity(smaller);
    const counted = extent * Math.ceil((shape[axis] ?? 1) / extent) === capacities[axis];
    if (axis < firstAllowed || digits.at(-1) !== digit || !counted) {
      // Padding on top of the last axis would be taken for copies if it became the highest register.
      if (axes.at(-1)?.at(-1) === digit && before !== undefined) axes[firstAllowed] = before;
      return;
    }
    before = digits;
    axes[axis] = smaller;
    firstAllowed = axis;
  }
}

/** The digits below the first odd one; undefined if a thread bit lies above it. */
function belowOdd(digits: readonly Digit[]): readonly Digit[] | undefined {
  const odd = digits.findIndex(({ radix }) => radix !== 2);
  if (odd < 0) return digits;
  return digits.slice(odd).some(({ thread }) => thread !== undefined)
    ? undefined
    : digits.slice(0, odd);
}

function fromBits(axes: readonly (readonly Digit[])[]): DistributedLayout {
  const registers = axes.flat().filter(({ thread }) => thread === undefined);
  registers.sort((left, right) => left.stride - right.stride);
  const numbers = new Map(registers.map((digit, index) => [digit, registerBit(index)]));
  const bit = (digit: Digit): Bit => numbers.get(digit) ?? threadBit(digit.thread ?? 0);
  return axesLayout(axes.map((digits) => digits.map(bit)));
}

/**
 * The one layout among those with the same places on this shape that stands for them all: equal texts
 * of specialized layouts mean equal places, and the reverse. A flat layout becomes one of axes where
 * it can; owners of coordinate bits that are always zero here, whose order nobody sees, are sorted onto
 * the first axis that can take them.
 */
export function specializeLayout(
  layout: DistributedLayout,
  shape: readonly number[],
): DistributedLayout {
  const expansion = expand(layout, shape);
  if (expansion === undefined) return layout;
  const registers = registersPerLane(layout, shape);
  for (const candidate of sortUnused(expansion)) {
    const result = collapse(candidate);
    // Padding that ends up on top of the last axis is taken for copies and lost: not the same places.
    if (result !== undefined && registersPerLane(result, shape) === registers) return result;
  }
  return layout;
}

/** The expansion with its unused digits sorted, on each axis in turn. */
function sortUnused({ shape, axes }: Expansion): readonly Expansion[] {
  const unused: Digit[] = [];
  const used = axes.map((digits, axis) => {
    let place = 1;
    return binaryDigits(digits).filter((digit) => {
      const needed = place < (shape[axis] ?? 1);
      place *= digit.radix;
      if (!needed) unused.push(digit);
      return needed;
    });
  });
  if (unused.length === 0) return [{ shape, axes }];
  unused.sort((left, right) => order(left) - order(right));
  return used.flatMap((digits, receiver) =>
    digits.every(({ radix }) => radix === 2)
      ? [{ shape, axes: used.with(receiver, [...digits, ...unused]) }]
      : [],
  );
}

/** Registers first, the highest in front: on top of the last axis it would be taken for copies. */
function order({ thread, stride }: Digit): number {
  return thread === undefined ? -stride : thread;
}
