/** Whole numbers. */

/** 0 is divided by everything, so that it leaves the other number as it is. */
export function greatestCommonDivisor(left: number, right: number): number {
  let [a, b] = [Math.abs(left), Math.abs(right)];
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
