/** Numbers of distributions from random bits, in f32 and by the steps that JAX takes. */
import { dtypes } from "../../formats/dtype.ts";
import type { Tile } from "../../lang/index.ts";

/** From `low` up to and without `high`: 23 bits are the fraction of a number from 1 to 2. */
export function uniformNumbers(bits: Tile<"u32">, low: number, high: number): Tile<"f32"> {
  const unit = bits.shr(9).or(0x3f800000).bitcast(dtypes.f32).sub(1);
  const [least, span] = [Math.fround(low), Math.fround(Math.fround(high) - Math.fround(low))];
  return unit.mul(span).add(least).maximum(least);
}

/** The f32 just above −1. */
const aboveMinusOne = -(1 - 2 ** -24);

/** Of the standard normal distribution: √2 · erf⁻¹ of a uniform number from −1 to 1. */
export function normalNumbers(bits: Tile<"u32">): Tile<"f32"> {
  return inverseErf(uniformNumbers(bits, aboveMinusOne, 1)).mul(Math.fround(Math.SQRT2));
}

/** Coefficients of Giles' approximation of erf⁻¹ in w = −log(1 − x²), near 0 and in the tails, highest power first. */
const central = [
  2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 2.1858087e-4, -1.25372503e-3,
  -4.17768164e-3, 0.246640727, 1.50140941,
];
const tails = [
  -2.00214257e-4, 1.00950558e-4, 1.34934322e-3, -3.67342844e-3, 5.73950773e-3, -7.6224613e-3,
  9.43887047e-3, 1.00167406, 2.83297682,
];

function inverseErf(x: Tile<"f32">): Tile<"f32"> {
  const w = x.mul(x).neg().log1p().neg();
  const isCentral = w.lt(5);
  const of = isCentral.select(w.sub(2.5), w.sqrt().sub(3));
  const [first = 0, ...others] = central;
  const [firstTail = 0, ...otherTails] = tails;
  let sum = isCentral.select(w.mul(0).add(first), w.mul(0).add(firstTail));
  for (const [power, coefficient] of others.entries()) {
    const chosen = isCentral.select(
      w.mul(0).add(coefficient),
      w.mul(0).add(otherTails[power] ?? 0),
    );
    sum = sum.mul(of).add(chosen);
  }
  return sum.mul(x);
}
