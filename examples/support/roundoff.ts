/** Unit roundoffs, from which the examples derive how far a correct result may lie from float64. */

/** Half an ulp of 1: the most one rounding can change a result, relatively. */
export const roundoff = { f32: 2 ** -24, bf16: 2 ** -8 } as const;
