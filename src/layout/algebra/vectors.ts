/**
 * Runs of neighbouring elements in one lane: what decides how wide a lane may load and store, and
 * which elements of a narrow format share a 32-bit word.
 *
 *   | layout                          | shape     | vectorWidth | contiguity, axis 0 | axis 1 |
 *   |---------------------------------|-----------|-------------|--------------------|--------|
 *   | (L2 L3 L4 R1 W0 W1 | R0 L0 L1)  | [64, 128] | 2               | 1                  | 2      |
 *   | (R0 L3 L4 R1 W0 W1 | L2 L0 L1)  | [64, 128] | 1               | 2                  | 1      |
 *   | (L0 L1 L2 L3 L4 W0 W1 |)        | [128, 48] | 16              | 1                  | 48     |
 *
 * Registers are counted one an element. In memory narrower formats are packed in the order of the
 * registers, so a cast between widths keeps the layout, and two elements share a word when their
 * registers do: `vectorWidth` says how many neighbours of the last axis lie in consecutive registers.
 */
import { binaryDigits, expand, expandFlat } from "./expansion.ts";
import type { Digit } from "./expansion.ts";
import { registersPerLane } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";

/** The largest power of two that divides `value`; of what 2³⁰ divides, that. */
export function powerOfTwoIn(value: number): number {
  return value !== 0 && value % 2 ** 30 === 0 ? 2 ** 30 : value & -value;
}

/**
 * The greatest power of two v such that every aligned run of v elements of the last axis lies in v
 * consecutive registers of one lane, in order.
 */
export function vectorWidth(layout: RegisterLayout, shape: readonly number[]): number {
  const limit = powerOfTwoIn(shape.at(-1) ?? 1);
  if (layout.kind === "splat") return limit;
  const digits = (expand(layout, shape) ?? expandFlat(layout, shape))?.axes.at(-1) ?? [];
  let width = 1;
  for (const { thread, stride, radix } of binaryDigits(digits)) {
    if (thread !== undefined || stride !== width || radix !== 2) break;
    width *= 2;
  }
  return Math.min(width, limit);
}

/** How many neighbours along the axis one lane holds, in whatever registers, in aligned runs. */
export function contiguity(layout: RegisterLayout, shape: readonly number[], axis: number): number {
  const extent = shape[axis] ?? 1;
  if (layout.kind === "splat") return extent;
  const expansion = expand(layout, shape);
  if (expansion === undefined) {
    const flat = expandFlat(layout, shape)?.axes[0] ?? [];
    return axis === shape.length - 1 ? Math.min(powerOfTwoIn(extent), run(flat)) : 1;
  }
  const found = run(expansion.axes[axis] ?? []);
  return found >= extent ? extent : found;
}

function run(digits: readonly Digit[]): number {
  let length = 1;
  for (const { thread, radix } of digits) {
    if (thread !== undefined) break;
    length *= radix;
  }
  return length;
}

/** 32-bit registers that a lane needs for elements of `bits` bits, packed where narrow. */
export function wordsPerLane(
  layout: RegisterLayout,
  shape: readonly number[],
  bits: number,
): number {
  return Math.ceil((registersPerLane(layout, shape) * bits) / 32);
}

/**
 * How many neighbours of the last axis share each 32-bit word: at most as many as a word holds. An
 * instruction that takes packed operands needs all of them; see the fragments in `named-layouts.ts`.
 */
export function packing(layout: RegisterLayout, shape: readonly number[], bits: number): number {
  return Math.min(vectorWidth(layout, shape), Math.max(1, 32 / bits));
}
