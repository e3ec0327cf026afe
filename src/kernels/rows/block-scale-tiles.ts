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

/** What is known of the numbers of blocks. */
export interface BlockNumbers {
  /** Whether they have 11 bits at most: numbers of f16 and bf16. */
  readonly isShort: boolean;
  /** Whether none is infinite. */
  readonly isFinite: boolean;
}

/** The scales of blocks with these largest magnitudes. */
export function scaleTiles(
  largest: Tile<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding,
  { isShort, isFinite }: BlockNumbers,
): ScaleTiles {
  const { scale } = record;
  if (scale.name === "f8e8m0fnu") return powers(largest, record, rounding, isShort);
  const found = largest.div(record.largest);
  if (scale.name === "f32") return { codes: found, divided: dividedBy(found, isShort) };
  const codes = found.minimum(floatFormats[scale.name].maxFinite).cast(scale);
  const factors = codes.cast(f32);
  const isZero = factors.eq(0);
  const divisors = isZero.select(1, factors) as Tile<"f32">;
  const quotient = isFinite
    ? exactQuotient(divisors, divisors.reciprocal(), "once")
    : (numbers: Tile<"f32">) => numbers.div(divisors);
  return { codes, divided: (numbers) => isZero.select(0, quotient(numbers)) as Tile<"f32"> };
}

/**
 * Quotients by a number that many are divided by, for a multiplication and two or four fma each, and rounded as division rounds them: what is left of the dividend
 * is exact, and corrects the quotient. Once is enough for dividends of up to 11 bits, and for divisors of up to 4: all significands of these were tried.
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

/** What numbers beside a global scale are bounded by: beyond it elements are the largest there is beside the largest scale, whatever they are. */
const farBeyond = 2 ** 60;
/** Global scales whose quotients are made of reciprocals; with others numbers are divided. */
const usualScales = { least: 2 ** -40, most: 2 ** 40 } as const;

/** Numbers within bounds, in f32 or in bf16, where two take one instruction. */
export function boundedNumbers(numbers: Tile): Tile {
  const wide = numbers.dtype === dtypes.bf16 ? numbers : numbers.cast(f32);
  return (wide as Tile<"f32">).minimum(farBeyond).maximum(-farBeyond);
}

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
 * Such numbers divided by a global scale, and within bounds again. The largest quotient is that of the largest number, but beside a scale that makes zeros or infinities
 * no numbers.
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
      const quotient = exactQuotient(scale, scale.reciprocal(), isShort ? "once" : "twice");
      return { largest: quotient(largest).abs(), numbers: quotient(numbers) };
    },
    (): Quotients => {
      const quotients = boundedNumbers(numbers.div(scale)) as Tile<"f32">;
      return { largest: largestOf(quotients), numbers: quotients };
    },
  );
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
  const factor = isOrdinary.select(power, rest) as Tile<"f32">;
  const divisor = isOrdinary.select(scales.mul(power), 1) as Tile<"f32">;
  const added = scales.eq(0).select(0, constant(f32, -0)) as Tile<"f32">;
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
  const exponents = isNumber.select(found, nanCode) as Tile<"u32">;
  const inverse = exponents.minimum(254).neg().add(254).shl(23).maximum(0x400000).bitcast(f32);
  const reciprocal = isNumber.select(inverse, NaN) as Tile<"f32">;
  return {
    codes: exponents.cast(u8).bitcast(dtypes.f8e8m0fnu),
    divided: (numbers) => numbers.mul(reciprocal),
  };
}

function roundedUp(words: Tile<"u32">): Tile<"u32"> {
  const above = words.and(0x7fffff).gt(0).cast(u32);
  const next = words.shr(23).add(above).minimum(254);
  return words.gt(0x400000).select(next, 0) as Tile<"u32">;
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
