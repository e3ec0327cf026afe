/**
 * How matrices of f32 can be multiplied, which no tensor core does, and how products of FP8 are summed: the words that `dot`, `wgmma` and what
 * is built of them take.
 */
import type { DType } from "../formats/dtype.ts";

/** Of one product, which the op has as its attribute; "native" is for all other formats. */
export const productPrecisions = ["native", "ieee", "tf32"] as const;

/** Of several products of parts, which the language makes of it. */
export const partPrecisions = ["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const;

/** Those that can be said of f32. */
export const singlePrecisions = ["ieee", "tf32", ...partPrecisions] as const;

/** How products are summed where instructions sum short: in f32 again and again, or as an instruction does by itself. */
export const accumulations = ["promoted", "fast"] as const;

/** One of `accumulations`. */
export type DotAccumulation = (typeof accumulations)[number];

/** Elements of k that an instruction sums at most before its sums are added in f32, where they are promoted. */
export const promotedDepth = 128;

/** Whether wgmma sums products of a format to fewer bits than f32 has: those of FP8. Sums in f16 have fewer anyway. */
export function isSummedShort(operand: DType, sum: DType): boolean {
  return operand.kind === "float" && operand.bits === 8 && sum.name === "f32";
}
