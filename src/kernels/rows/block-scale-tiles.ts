/**
 * The scales of blocks in kernels: what `src/arrays/block-scales.ts` says of arrays, of tiles. Bits of f32 are worked on as u32, since the exponent of a power of
 * two is its code.
 */
import { dtypes, f32, u32, u8 } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import type { ScaledFormat } from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import { constant, when } from "../../lang/index.ts";
import type { Scalar, Tile } from "../../lang/index.ts";

/** The scales of blocks, and what makes elements of numbers. */
export interface ScaleTiles {
  readonly codes: Tile;
  /** Numbers divided by their scales, rounded as division rounds; zeros where a scale is 0. */
  readonly divided: (numbers: Tile<"f32">) => Tile<"f32">;
}

/** The scales of blocks with these largest magnitudes; whether numbers have 11 bits at most, as those of f16 and bf16 have, `isShort` says. */
export function scaleTiles(
  largest: Tile<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding,
  isShort: boolean,
): ScaleTiles {
  const { scale } = record;
  if (scale.name === "f8e8m0fnu") return powers(largest, record, rounding, isShort);
  const found = largest.div(record.largest);
  if (scale.name === "f32") return { codes: found, divided: dividedBy(found, isShort) };
  const codes = found.minimum(floatFormats[scale.name].maxFinite).cast(scale);
  return { codes, divided: dividedByFew(codes.cast(f32)) };
}

/** Numbers divided by scales of four bits, or +0 where these are 0. */
function dividedByFew(scales: Tile<"f32">): ScaleTiles["divided"] {
  const isZero = scales.eq(0);
  const { most, rest } = twoReciprocals(isZero.select(1, scales) as Tile<"f32">);
  const orZero = (value: typeof most) => isZero.select(0, value as Tile<"f32">) as Tile<"f32">;
  const added = isZero.select(0, constant(f32, -0)) as Tile<"f32">;
  return (numbers) => numbers.fma(orZero(most), numbers.fma(orZero(rest), added));
}

/**
 * A number just below the reciprocal of another, and what it lacks: `x.fma(most, x.mul(rest))` is the quotient, infinities and zeros with their signs too. It is rounded as division rounds where the divisor has
 * four bits. Where the dividend has 11 bits it is but for few significands, of all of which both quotients, that are neighbours, have 13 bits at least: so none of them is a
 * number of 7 bits, and elements of four bits and scales of four are the same.
 */
function twoReciprocals(divisor: Tile<"f32"> | Scalar<"f32">) {
  const nearest = divisor.reciprocal();
  const most = nearest.bitcast(u32).sub(1).bitcast(f32);
  return { most, rest: most.fma(divisor.neg(), 1).mul(nearest) };
}

/**
 * Quotients by a number that many are divided by, for a multiplication and two or four fma each, and rounded as division rounds them: what is left of the dividend
 * is exact, and corrects the quotient. Once is enough for dividends of up to 11 bits: all significands of these were tried.
 * Neither may be infinite, and nothing be lost below 2^-149. The signs are such that zeros keep theirs.
 */
export function exactQuotient(
  divisor: Tile<"f32"> | Scalar<"f32">,
  reciprocal: Tile<"f32"> | Scalar<"f32">,
  corrected: "once" | "twice",
): (numbers: Tile<"f32">) => Tile<"f32"> {
  return (numbers) => {
    const negative = numbers.neg();
    const correct = (quotient: Tile<"f32">): Tile<"f32"> =>
      quotient.fma(divisor, negative).neg().fma(reciprocal, quotient);
    const first = correct(numbers.mul(reciprocal));
    return corrected === "once" ? first : correct(first);
  };
}

/** Global scales whose quotients are made of reciprocals; with others numbers are divided. */
const usualScales = { least: 2 ** -40, most: 2 ** 40 } as const;

/** What numbers are bounded by, for infinities to have quotients: elements are the largest there is from there on, beside the largest scale. */
const farBeyond = 2 ** 60;

/** Numbers of blocks, and the largest magnitudes of these. */
export type Quotients = {
  readonly largest: Tile<"f32">;
  readonly numbers: Tile<"f32">;
};

/** The largest magnitudes of blocks, [blocks, down, blocks, across], in their format. */
export function largestOf(blocks: Tile): Tile<"f32"> {
  return (blocks as Tile<"f32">).abs().max({ axis: [1, 3], keepDims: true }) as Tile<"f32">;
}

/**
 * Numbers divided by a global scale. The largest quotient is that of the largest number, but beside a scale that makes zeros or infinities no numbers.
 */
export function globalQuotients(
  { largest, numbers }: Quotients,
  scale: Scalar<"f32">,
  isShort: boolean,
): Quotients {
  const size = scale.abs();
  return when(
    size.ge(usualScales.least).and(size.le(usualScales.most)),
    (): Quotients => {
      const quotient = globalQuotient(scale, isShort);
      return { largest: quotient(largest).abs(), numbers: quotient(numbers) };
    },
    (): Quotients => {
      const quotients = numbers.div(scale);
      return { largest: largestOf(quotients), numbers: quotients };
    },
  );
}

function globalQuotient(scale: Scalar<"f32">, isShort: boolean): ScaleTiles["divided"] {
  if (isShort) {
    const { most, rest } = twoReciprocals(scale);
    return (numbers) => numbers.fma(most, numbers.mul(rest));
  }
  const quotient = exactQuotient(scale, scale.reciprocal(), "twice");
  return (numbers) => quotient(numbers.minimum(farBeyond).maximum(-farBeyond));
}

/**
 * Numbers divided by scales that are the largest of them over a constant. Both are moved by the power of two in a scale first, for nothing to be lost. Beside infinite scales numbers are
 * zeros, and infinities no numbers; beside a scale of 0 all are +0.
 */
function dividedBy(scales: Tile<"f32">, isShort: boolean): ScaleTiles["divided"] {
  const words = scales.bitcast(u32);
  const isOrdinary = words.sub(1).lt(infinity - 1);
  const power = words
    .and(infinity)
    .neg()
    .add(254 * 2 ** 23)
    .bitcast(f32);
  const rest = scales.isNan().select(scales, 0);
  const factor = isOrdinary.select(power, rest);
  const divisor = isOrdinary.select(scales.mul(power), 1);
  const added = scales.eq(0).select(0, constant(f32, -0));
  const quotient = exactQuotient(divisor, divisor.reciprocal(), isShort ? "once" : "twice");
  return (numbers) => quotient(numbers.fma(factor, added));
}

const infinity = 0x7f800000;
const nanCode = 255;

function powers(
  largest: Tile<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding,
  isShort: boolean,
): ScaleTiles {
  const words = largest.bitcast(u32);
  const found =
    rounding === "roundUp" && !isShort
      ? roundedUp(largest.div(record.largest).bitcast(u32))
      : raised(words, record, rounding);
  const isNumber = words.lt(infinity);
  const exponents = isNumber.select(found, nanCode);
  const inverse = exponents.minimum(254).neg().add(254).shl(23).maximum(0x400000).bitcast(f32);
  const reciprocal = isNumber.select(inverse, NaN);
  return {
    codes: exponents.cast(u8).bitcast(dtypes.f8e8m0fnu),
    divided: (numbers) => numbers.mul(reciprocal),
  };
}

function roundedUp(words: Tile<"u32">): Tile<"u32"> {
  const above = words.and(0x7fffff).gt(0).cast(u32);
  const next = words.shr(23).add(above).minimum(254);
  return words.gt(0x400000).select(next, 0);
}

/**
 * The exponent of a number that something was added to, less that of the largest element. Of the least power of two that is no smaller than the quotient, too, where
 * nothing is lost in that: numbers of 11 bits have none just above 2^-127 times the largest element.
 */
function raised(
  words: Tile<"u32">,
  { element, largest }: ScaledFormat,
  rounding: ScaleRounding,
): Tile<"u32"> {
  const greatest = Math.floor(Math.log2(largest));
  const added = {
    floor: 0,
    ceil: 0x7fffff,
    even: 2 ** (22 - floatFormats[element.name].mantissaBits),
    roundUp: 0x7fffff - (largest / 2 ** greatest - 1) * 2 ** 23,
  }[rounding];
  return words.add(added).shr(23).maximum(greatest).sub(greatest);
}
