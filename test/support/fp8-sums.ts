/**
 * What products of FP8 that are summed in f32 may be off by, in parts of the sum of the magnitudes (docs/tensor-cores.md). Each of the 33 numbers
 * of a step of wgmma is cut off below 13 bits of the greatest, and so is their sum.
 */

export type Accumulation = "promoted" | "fast";

/** Of wgmma; promoted, so many steps sum to 128 of k, and f32 rounds once for each of these. */
export function wgmmaBound(k: number, accumulation: Accumulation): number {
  const step = 34 * 2 ** -13;
  if (accumulation === "fast") return Math.ceil(k / 32) * step;
  return Math.min(4, Math.ceil(k / 32)) * step + Math.ceil(k / 128) * 2 ** -24;
}

/** Of mma.sync on operands as f16, and of threads, which round once for each of k. */
export function mmaBound(k: number): number {
  return Math.ceil(k / 16) * (17 * 2 ** -25 + 2 ** -23) + k * 2 ** -24;
}

/** Of whichever instruction makes the product. */
export function anyBound(k: number, accumulation: Accumulation): number {
  return Math.max(mmaBound(k), wgmmaBound(k, accumulation));
}
