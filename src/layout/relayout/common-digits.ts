/**
 * Two layouts of a tile in the same digits. Each layout splits a coordinate into digits with owners (see
 * `expansion.ts`); cutting both at the same places pairs the owners, which says what must move.
 *
 *   source (L0 R0 | L1), target (R0 | L1 L0) on [12, 4]
 *
 *   | axis | weight | radix | source owner      | target owner      |                        |
 *   |------|--------|-------|-------------------|-------------------|------------------------|
 *   | 0    | 1      | 2     | L0                | register stride 1 | lane to register       |
 *   | 0    | 2      | 2     | register stride 1 | register stride 2 | stays in its lane      |
 *   | 0    | 4      | 3     | register stride 4 | register stride 4 | stays in its lane      |
 *   | 1    | 1      | 2     | L1                | L1                | stays in its lane      |
 *   | 1    | 2      | 2     | register stride 2 | L0                | register to lane       |
 *
 * A digit of weight at or above the extent is always zero and is not listed; a thread bit that owns such
 * a digit is *idle* where it is set. A flat layout and one of axes have no common digits where rows are
 * not a whole number of its digits: then the answer is undefined.
 */
import { product } from "../algebra/index-bits.ts";
import { expand, expandFlat } from "../algebra/expansion.ts";
import type { Digit, Expansion } from "../algebra/expansion.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { nothing } from "./steps.ts";

export interface SharedDigit {
  readonly axis: number;
  /** What a step of the digit adds to the coordinate. */
  readonly weight: number;
  readonly radix: number;
  readonly source: Digit;
  readonly target: Digit;
}

export type Side = "source" | "target";

/** What each thread bit does in one layout; masks of the thread index. */
export interface ThreadUse {
  /** Owners of digits that are always zero: threads where one is set hold padding only. */
  readonly idle: number;
  /** Owners of nothing. */
  readonly replicated: number;
}

export interface Correspondence {
  /** The extents that the digits run over. */
  readonly shape: readonly number[];
  readonly digits: readonly SharedDigit[];
  readonly source: ThreadUse;
  readonly target: ThreadUse;
}

export function correspond(
  source: DistributedLayout,
  target: DistributedLayout,
  shape: readonly number[],
): Correspondence | undefined {
  return (
    pair(source, target, expand(source, shape), expand(target, shape)) ??
    pair(source, target, flatDigits(source, shape), flatDigits(target, shape))
  );
}

/** The digits of the element's number, register digits that continue each other being one. */
function flatDigits(layout: DistributedLayout, shape: readonly number[]): Expansion | undefined {
  const flat = expandFlat(layout, shape);
  if (flat === undefined) return undefined;
  const merged: Digit[] = [];
  for (const digit of flat.axes[0] ?? []) {
    const below = merged.at(-1);
    const continues =
      below !== undefined &&
      below.thread === undefined &&
      digit.thread === undefined &&
      digit.stride === below.stride * below.radix;
    if (continues) merged[merged.length - 1] = { ...below, radix: below.radix * digit.radix };
    else merged.push(digit);
  }
  return { shape: flat.shape, axes: [merged] };
}

function pair(
  source: DistributedLayout,
  target: DistributedLayout,
  ours: Expansion | undefined,
  theirs: Expansion | undefined,
): Correspondence | undefined {
  if (ours === undefined || theirs === undefined) return undefined;
  const digits: SharedDigit[] = [];
  for (const [axis, extent] of ours.shape.entries()) {
    const common = commonDigits(ours.axes[axis] ?? [], theirs.axes[axis] ?? [], { axis, extent });
    if (common === undefined) return undefined;
    digits.push(...common);
  }
  return {
    shape: ours.shape,
    digits,
    source: { idle: idleBits(ours), replicated: source.replicated },
    target: { idle: idleBits(theirs), replicated: target.replicated },
  };
}

function idleBits({ shape, axes }: Expansion): number {
  let idle = 0;
  axes.forEach((digits, axis) => {
    let weight = 1;
    for (const { thread, radix } of digits) {
      if (thread !== undefined && weight >= (shape[axis] ?? 1)) idle |= 1 << thread;
      weight *= radix;
    }
  });
  return idle;
}

interface Axis {
  readonly axis: number;
  readonly extent: number;
}

/** The digits of one axis, cut wherever either layout does. */
function commonDigits(
  ours: readonly Digit[],
  theirs: readonly Digit[],
  { axis, extent }: Axis,
): readonly SharedDigit[] | undefined {
  const left = [...ours];
  const right = [...theirs];
  const common: SharedDigit[] = [];
  let weight = 1;
  while (weight < extent) {
    const source = left.shift();
    const target = right.shift();
    if (source === undefined || target === undefined)
      throw new Error("digits do not cover the axis");
    const last = left.length === 0 && right.length === 0;
    const radix = last ? Math.ceil(extent / weight) : Math.min(source.radix, target.radix);
    if (!cut(source, radix, left) || !cut(target, radix, right)) return undefined;
    common.push(...intoBits({ axis, weight, radix, source, target }));
    weight *= radix;
  }
  return common;
}

/** A digit as bits and at most one odd digit on top: only register digits have more than one bit. */
function intoBits({ axis, weight, radix, source, target }: SharedDigit): readonly SharedDigit[] {
  const times = ({ thread, stride }: Digit, factor: number, of: number): Digit => {
    return { radix: of, thread, stride: stride * factor };
  };
  const parts: SharedDigit[] = [];
  let factor = 1;
  for (let rest = radix; rest > 1;) {
    const of = rest % 2 === 0 ? 2 : rest;
    const ours = times(source, factor, of);
    const theirs = times(target, factor, of);
    parts.push({ axis, weight: weight * factor, radix: of, source: ours, target: theirs });
    factor *= of;
    rest /= of;
  }
  return parts;
}

/** Puts back what a digit has above `radix`; false where it cannot be cut there. */
function cut({ radix: whole, thread, stride }: Digit, radix: number, rest: Digit[]): boolean {
  if (whole <= radix) return whole === radix || rest.length === 0;
  // On top of an axis a digit may be cut anywhere: what is too much lies beyond the tile.
  if (whole % radix !== 0 && rest.length > 0) return false;
  rest.unshift({ radix: Math.ceil(whole / radix), thread, stride: stride * radix });
  return true;
}

export function inRegisters({ source, target }: SharedDigit): boolean {
  return source.thread === undefined && target.thread === undefined;
}

/**
 * The registers of one side that hold the combinations of the digits' values, the first digit fastest,
 * all other digits being zero; `nothing` where that is outside the tile.
 */
export function registersOf(
  digits: readonly SharedDigit[],
  side: Side,
  shape: readonly number[],
): Int32Array {
  const count = product(digits.map(({ radix }) => radix));
  const registers = new Int32Array(count);
  const coordinates = shape.map(() => new Int32Array(count));
  let period = 1;
  for (const digit of digits) {
    const { stride } = digit[side];
    const along = coordinates[digit.axis] as Int32Array;
    for (let index = period; index < count; index += 1) {
      const value = Math.floor(index / period) % digit.radix;
      registers[index] = (registers[index] as number) + value * stride;
      along[index] = (along[index] as number) + value * digit.weight;
    }
    period *= digit.radix;
  }
  coordinates.forEach((along, axis) => {
    const extent = shape[axis] ?? 1;
    for (let index = 0; index < count; index += 1)
      if ((along[index] as number) >= extent) registers[index] = nothing;
  });
  return registers;
}
