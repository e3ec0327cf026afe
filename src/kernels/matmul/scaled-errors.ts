/**
 * What products of operands with scales lose, by how they are made: a bound on the root mean square of the error, in parts of √(Σ (a · b)²). Terms have signs as
 * by chance, and every rounding is as large as it may be.
 *
 *   bf16             an operand that bf16 does not hold is rounded by 2^-9 of itself; of 16 products along k and what they are added to, each is cut off below 25 bits of
 *                    the largest, and the sum below 23
 *   FP8, promoted    of 32 products each is cut off below 13 bits of the largest, and the sum, which begins anew after 128 of k and is added in f32
 *
 *   k = 4096         f32 scales of both, in bf16    2^-8.5        FP8    2^-9.8
 *                    MX formats in bf16             2^-19.0       FP8    2^-9.8, as its scales are no numbers of 128 of k
 *
 * Where all terms have one sign the errors of FP8 add up: four instructions that cut 33 numbers off, 2^-6 of the sum, are the worst.
 */
import { floatFormats } from "../../formats/floats.ts";
import type { ScaledFormat } from "../../formats/scaled/formats.ts";

const bf16Bits = floatFormats.bf16.mantissaBits + 1;

/** Whether bf16 holds every element times every scale, but for those below its smallest number. */
export function isExactInBf16({
  element,
  scale,
}: Pick<ScaledFormat, "element" | "scale">): boolean {
  const own = floatFormats[element.name].mantissaBits + 1;
  const of = floatFormats[scale.name].mantissaBits + 1;
  return (own === 1 || of === 1 ? Math.max(own, of) : own + of) <= bf16Bits;
}

/** Of products of operands in bf16, so many of which are rounded to it, with sums in f32. */
export function bf16ProductError(rounded: number, k: number): number {
  const step = 17 * 2 ** -50 + 2 ** -46;
  return Math.sqrt(rounded * 2 ** -18 + (step * (Math.ceil(k / 16) + 1)) / 2);
}

/** Of products of FP8 whose sums of 128 along k are promoted. */
export function promotedProductError(k: number): number {
  const steps = Math.min(4, Math.ceil(k / 32));
  const sums = Math.ceil(k / 128);
  return Math.sqrt((34 * 2 ** -26 * (steps + 1)) / 2 + (2 ** -48 * (sums + 1)) / 2);
}

/** An error as people read it. */
export function errorText(error: number): string {
  return `2^${Math.log2(error).toFixed(1)}`;
}
