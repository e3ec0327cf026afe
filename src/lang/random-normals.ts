/**
 * From random words to numbers of the normal distribution, in two ways.
 *
 *   | way                     | takes                          | gives                          | reaches |
 *   |-------------------------|--------------------------------|--------------------------------|---------|
 *   | inverse error function  | a uniform number of 23 bits    | one, as JAX does               | 5.42    |
 *   | Box and Muller's        | two words of 32 bits           | two: r · cos φ and r · sin φ   | 6.77    |
 *
 * The second takes a quarter of the instructions. The radius is r = √(-2 · ln u) of u = (a + ½) / 2³², which is never 0; where a word is
 * rounded up to 2³² it is 1, and r is 0. The angle φ = π · b / 2³¹ of the signed word lies from -π to π.
 */
import { f32, i32 } from "../formats/dtype.ts";
import { inverseErrorCoefficients } from "../support/inverse-error.ts";
import { full } from "./create.ts";
import type { FourWords, Words } from "./random-hashes.ts";
import type { Tile } from "./tile.ts";

/** The f32 just above -1, above which numbers are drawn for the inverse of the error function. */
export const aboveMinusOne = -(1 - 2 ** -24);

/**
 * Normal numbers of uniform ones between -1 and 1, by the inverse of the error function (`support/inverse-error.ts`). Approximations of
 * the GPU are enough for it: w is added to 2.5 or more, so that 2^-22 of it is no unit in the last place of the result.
 */
export function normalOfUniform(x: Tile<"f32">): Tile<"f32"> {
  const rest = x.mul(x).neg().add(1);
  const w = rest.log2({ approximate: true }).mul(-Math.LN2);
  const everywhere = (value: number): Tile<"f32"> => full(f32, [1], value).broadcastTo(x.shape);
  const polynomial = (which: 0 | 1, at: Tile<"f32">): Tile<"f32"> =>
    inverseErrorCoefficients
      .map((coefficients) => everywhere(coefficients[which]))
      .reduce((higher, coefficient) => higher.fma(at, coefficient));
  // Both of them everywhere, and one choice: the hash of the bits keeps the pipe busy that would choose each coefficient.
  const central = polynomial(0, w.sub(2.5));
  const outer = polynomial(1, w.sqrt({ approximate: true }).sub(3));
  return w.lt(5).select(central, outer).mul(x).mul(Math.fround(Math.SQRT2));
}

const approximate = { approximate: true } as const;

/** Two normal numbers of two words. */
function boxMuller(radial: Words, angular: Words): readonly [Tile<"f32">, Tile<"f32">] {
  const u = radial.cast(f32).fma(2 ** -32, 2 ** -33);
  // The approximate logarithm is too near to 0 next to 1, where 1 - u is all of it, and below it everywhere.
  const square = u
    .log2(approximate)
    .mul(-2 * Math.LN2)
    .maximum(u.fma(-2, 2));
  const radius = square.sqrt(approximate);
  const angle = angular
    .bitcast(i32)
    .cast(f32)
    .mul(Math.PI * 2 ** -31);
  return [radius.mul(angle.cos(approximate)), radius.mul(angle.sin(approximate))];
}

/** Four normal numbers of the four words of a hash. */
export function normalsOfWords([a, b, c, d]: FourWords): readonly Tile<"f32">[] {
  return [...boxMuller(a, b), ...boxMuller(c, d)];
}
