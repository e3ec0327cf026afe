/** What a program leaves open about its products of f32, by the names that callers choose between; apart from all else, for those that only pass it on. */

/** How products of f32 that ask for nothing are multiplied: no less exactly than f32 is summed, or rounded to tf32. */
export const matmulPrecisions = ["f32", "tf32"] as const;
export type MatmulPrecision = (typeof matmulPrecisions)[number];

export function isMatmulPrecision(given: unknown): given is MatmulPrecision {
  return matmulPrecisions.some((each) => each === given);
}
