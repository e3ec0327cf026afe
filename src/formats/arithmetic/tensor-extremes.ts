/**
 * Operands of tensor cores in which some numbers are infinite, NaN, or too large or too small for the fast way. The rows, columns
 * and sums that have one are set aside, for the rule itself; the rest goes the fast way with zeros in their place:
 *
 *            1    2                 1    2
 *     NaN │  ∙    ∙           0  │  x    x      x  by the rule, one by one
 *      3  │  3    6           3  │  3    6
 */
import { largestExponent, largestSum, smallestSum, zeroExponent } from "./tensor-core-kernel.ts";

/** Elements as numbers. */
export interface DecodedElements {
  readonly values: Float32Array;
  /** Of each element; `zeroExponent` for a zero. */
  readonly exponents: Int32Array;
  /** Whether an element is too large, too small or too special for the fast way. */
  readonly extreme: boolean;
}

function isExtremeNumber(value: number, exponent: number): boolean {
  if (exponent > largestExponent || value - value !== 0) return true;
  return exponent < -largestExponent && exponent !== zeroExponent;
}

/** Whether one of the numbers is. */
export function hasExtreme(values: Float32Array, exponents: Int32Array): boolean {
  for (let index = 0; index < values.length; index++)
    if (isExtremeNumber(values[index] as number, exponents[index] as number)) return true;
  return false;
}

/** Whether a code of f32 is of a sum that the fast way does not take. */
export function isExtremeSum(code: number): boolean {
  if ((code & 0x7fff_ffff) === 0) return false;
  const exponent = ((code >>> 23) & 0xff) - 127;
  return exponent < smallestSum || exponent > largestSum;
}

/** Elements without what is extreme, and which lines of them it was in. */
export interface CalmElements<T extends DecodedElements> {
  readonly elements: T;
  /** 1 for a line that had something extreme. */
  readonly apart: Uint8Array;
}

/** Puts zeros in place of what is extreme. Element `index` is of line `lineOf(index)`. */
export function calmed<T extends DecodedElements>(
  elements: T,
  lines: number,
  lineOf: (index: number) => number,
): CalmElements<T> {
  const apart = new Uint8Array(lines);
  if (!elements.extreme) return { elements, apart };
  const [values, exponents] = [elements.values.slice(), elements.exponents.slice()];
  for (let index = 0; index < values.length; index++) {
    if (!isExtremeNumber(values[index] as number, exponents[index] as number)) continue;
    values[index] = 0;
    exponents[index] = zeroExponent;
    apart[lineOf(index)] = 1;
  }
  return { elements: { ...elements, values, exponents, extreme: false }, apart };
}
