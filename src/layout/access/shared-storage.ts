/**
 * Where elements of shared memory are stored. An element of the allocation has a number in row-major order; the layout cuts
 * that number into digits, each worth so many stored elements, and the swizzle then moves bytes.
 *
 *   bf16 [2, 64, 128] in shared(tile 8 64, swizzle 128)
 *
 *   | digit of the number | radix | one step of the number | one step stored |
 *   |---------------------|-------|------------------------|-----------------|
 *   | column in a tile    | 64    | 1                      | 1               |
 *   | tile along columns  | 2     | 64                     | 512             |
 *   | row in a tile       | 8     | 128                    | 64              |
 *   | tile along rows, stage | … | 1024                   | 1024            |
 *
 * Digits that follow on in both are one digit. As long as parts of a number do not carry from digit to
 * digit, the stored places of the parts add up, so that a lane, a register and a run-time offset each
 * contribute on their own; the last digit has no end.
 */
import { Memo } from "../../support/memo.ts";
import { product } from "../algebra/index-bits.ts";
import { levelsOf } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import type { SharedMove } from "./window.ts";

export interface StoredDigit {
  readonly radix: number;
  /** What a step adds to the element's number. */
  readonly number: number;
  /** What it adds to the stored number. */
  readonly stored: number;
}

const known = new Memo<readonly StoredDigit[]>(256);

/** The digits of an element's number, least significant first. */
export function storedDigits(
  layout: SharedLayout,
  allocation: readonly number[],
): readonly StoredDigit[] {
  return known.get(`${layout.text} ${allocation.join()}`, () => findDigits(layout, allocation));
}

function findDigits(layout: SharedLayout, allocation: readonly number[]): readonly StoredDigit[] {
  const steps = allocation.map((_, axis) => product(allocation.slice(axis + 1)));
  const digits = levelsOf(layout, allocation)
    .filter(({ count }) => count > 1)
    .map(({ axis, per, count, stride }) => ({
      radix: count,
      number: (steps[axis] ?? 1) * per,
      stored: stride,
    }))
    .sort((left, right) => left.number - right.number);
  const merged: StoredDigit[] = [];
  for (const digit of digits) {
    const last = merged.at(-1);
    const follows = last !== undefined && digit.stored === last.stored * last.radix;
    if (follows) merged[merged.length - 1] = { ...last, radix: last.radix * digit.radix };
    else merged.push(digit);
  }
  const top = merged.pop() ?? { radix: 1, number: 1, stored: 1 };
  return [...merged, { ...top, radix: Infinity }];
}

export function digitOf({ radix, number }: StoredDigit, value: number): number {
  const quotient = Math.floor(value / number);
  return radix === Infinity ? quotient : quotient % radix;
}

/** The stored number of an element, before the swizzle. */
export function storedNumber(digits: readonly StoredDigit[], value: number): number {
  return digits.reduce((sum, digit) => sum + digitOf(digit, value) * digit.stored, 0);
}

/** Stored elements for a step of the index, where every step adds as many. */
export function linearStep(
  digits: readonly StoredDigit[],
  { stride, divisor, count }: SharedMove,
): number | undefined {
  const once = storedNumber(digits, stride * divisor);
  const linear = Array.from({ length: count }, (_, step) => step).every(
    (step) => storedNumber(digits, step * stride * divisor) === step * once,
  );
  return linear && once % divisor === 0 ? once / divisor : undefined;
}

/** Whether parts of a number add up in what is stored: no digit overflows, whatever values are chosen. */
export function partsAddUp(
  digits: readonly StoredDigit[],
  parts: readonly (readonly number[])[],
): boolean {
  return digits.every((digit) => {
    let sum = 0;
    for (const values of parts) sum += greatestDigit(digit, values);
    return sum < digit.radix;
  });
}

/** Of the values of a part, which are as many as a lane has registers. */
function greatestDigit(digit: StoredDigit, values: readonly number[]): number {
  let greatest = 0;
  for (let place = 0; place < values.length; place += 1)
    greatest = Math.max(greatest, digitOf(digit, values[place] as number));
  return greatest;
}

/** All values that an offset may add to the number of the first element. */
export function moveValues({ stride, divisor, count }: SharedMove): readonly number[] {
  return Array.from({ length: count }, (_, step) => step * divisor * stride);
}
