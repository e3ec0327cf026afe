/** How matrices of f32 can be multiplied, which no tensor core does: the words that `dot` and what is built of it take. */

/** Of one product, which the op has as its attribute; "native" is for all other formats. */
export const productPrecisions = ["native", "ieee", "tf32"] as const;

/** Of several products of parts, which the language makes of it. */
export const partPrecisions = ["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const;

/** Those that can be said of f32. */
export const singlePrecisions = ["ieee", "tf32", ...partPrecisions] as const;
