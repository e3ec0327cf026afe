/**
 * Numbers of f32 as sums of numbers that tensor cores multiply. Each part is what the parts before it leave, rounded:
 *
 *   x  = 1.2345678          parts of bf16   1.234375  +  0.000192642…  +  1.6e-7
 *
 * | precision | parts        | products, the smallest first              | bits of x |
 * |-----------|--------------|-------------------------------------------|-----------|
 * | tf32      | 1 of tf32    | 0·0                                       | 11        |
 * | tf32x3    | 2 of tf32    | 1·0, 0·1, 0·0                             | 22        |
 * | bf16x3    | 2 of bf16    | 1·0, 0·1, 0·0                             | 16        |
 * | bf16x6    | 3 of bf16    | 2·0, 1·1, 0·2, 1·0, 0·1, 0·0              | 24        |
 * | bf16x9    | 3 of bf16    | 2·2, 2·1, 1·2, and those of bf16x6        | 24        |
 *
 * A number that is not finite is its own first part, and its others are 0. Parts are multiples of 2^-136 (tf32) or 2^-133
 * (bf16): numbers below 2^-113 or 2^-109 lose bits by them. The parts of any number add up to one of f32; sums of several products that end within 2^-8 of the greatest number of
 * f32, 2^-11 by parts of tf32, may be infinite, as first parts may be further from 0 than what they are parts of.
 */
import { bf16, f32, tf32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { partPrecisions } from "../ir/precisions.ts";
import type { Tile } from "./tile.ts";

export const splitPrecisions = ["tf32", ...partPrecisions] as const;
export type SplitPrecision = (typeof splitPrecisions)[number];

export interface SplitTerms {
  readonly dtype: DType<"bf16" | "tf32">;
  readonly parts: number;
  /** Which parts of the two factors are multiplied. */
  readonly terms: readonly (readonly [left: number, right: number])[];
}

const three = [
  [1, 0],
  [0, 1],
  [0, 0],
] as const;
const six = [[2, 0], [1, 1], [0, 2], ...three] as const;
const nine = [[2, 2], [2, 1], [1, 2], ...six] as const;

const allTerms: { readonly [P in SplitPrecision]: SplitTerms } = {
  tf32: { dtype: tf32, parts: 1, terms: [[0, 0]] },
  tf32x3: { dtype: tf32, parts: 2, terms: three },
  bf16x3: { dtype: bf16, parts: 2, terms: three },
  bf16x6: { dtype: bf16, parts: 3, terms: six },
  bf16x9: { dtype: bf16, parts: 3, terms: nine },
};

export function splitTerms(precision: SplitPrecision): SplitTerms {
  return allTerms[precision];
}

/**
 * How much of k tensor cores sum of the greatest products, 64 bytes of it, before these are added up in f32: two instructions. They cut off what does not
 * fit, which of longer sums would be the greatest error of all; each addition rounds to nearest.
 */
export function summedDepth({ dtype }: Pick<SplitTerms, "dtype">): number {
  return 512 / dtype.bits;
}

/**
 * The sum of all products but the greatest, which are corrections of it. Infinity times a part that is 0 is no number, and times one of
 * the other sign it is the other infinity: both would hide that the product is infinite. So would what overflows, whose greatest
 * product has done so before.
 */
export function finiteCorrections(sum: Tile<"f32">): Tile<"f32"> {
  return sum.isFinite().select(sum, 0);
}

/** The parts of a tile of f32. */
export function splitTile(
  tile: Tile<"f32">,
  precision: SplitPrecision,
): readonly Tile<"bf16" | "tf32">[] {
  const { dtype, parts } = allTerms[precision];
  const bits = dtype === bf16 ? 8 : 11;
  const finite = tile.isFinite();
  const made: Tile<"bf16" | "tf32">[] = [];
  let rest = tile;
  for (let part = 0; part < parts; part += 1) {
    // A finite number beyond the greatest of the format stays finite; what is short of it is left to the next part, which stays below the
    // last place of this one: rounded up, the two would be 2^128.
    const greatest = (1 - 2 ** -bits) * 2 ** (128 - bits * part);
    const rounded = rest.minimum(greatest).maximum(-greatest).cast(dtype);
    made.push(part === 0 ? finite.select(rounded, rest.cast(dtype)) : rounded);
    if (part + 1 < parts) rest = finite.select(rest.sub(rounded.cast(f32)), 0);
  }
  return made;
}
