/**
 * The scales of blocks in kernels: what `src/arrays/block-scales.ts` says of arrays, of tiles. Bits of f32 are worked on as u32, since the exponent of a power of
 * two is its code.
 */
import { dtypes, f32, u32, u8 } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import type { ScaledFormat } from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import type { Tile } from "../../lang/index.ts";

/** The scales of blocks, and what elements are multiplied by instead of divided where that gives the same. */
export interface ScaleTiles {
  readonly codes: Tile;
  readonly reciprocal: Tile<"f32"> | undefined;
}

/** The scales of blocks with these largest magnitudes. */
export function scaleTiles(
  largest: Tile<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding,
): ScaleTiles {
  const { scale } = record;
  if (scale.name === "f8e8m0fnu") return powers(largest, record, rounding);
  const found = largest.div(record.largest);
  const codes =
    scale.name === "f32" ? found : found.minimum(floatFormats[scale.name].maxFinite).cast(scale);
  return { codes, reciprocal: undefined };
}

const infinity = 0x7f800000;
const nanCode = 255;

function powers(largest: Tile<"f32">, record: ScaledFormat, rounding: ScaleRounding): ScaleTiles {
  const words = largest.bitcast(u32);
  const found =
    rounding === "roundUp"
      ? roundedUp(largest.div(record.largest).bitcast(u32))
      : below(words, record, rounding);
  const isNumber = words.lt(infinity);
  const exponents = isNumber.select(found, nanCode) as Tile<"u32">;
  const inverse = exponents.minimum(254).neg().add(254).shl(23).maximum(0x400000).bitcast(f32);
  const reciprocal = isNumber.select(inverse, NaN) as Tile<"f32">;
  return { codes: exponents.cast(u8).bitcast(dtypes.f8e8m0fnu), reciprocal };
}

function roundedUp(words: Tile<"u32">): Tile<"u32"> {
  const above = words.and(0x7fffff).gt(0).cast(u32);
  const raised = words.shr(23).add(above).minimum(254);
  return words.gt(0x400000).select(raised, 0) as Tile<"u32">;
}

function below(
  words: Tile<"u32">,
  { element, largest }: ScaledFormat,
  rounding: Exclude<ScaleRounding, "roundUp">,
): Tile<"u32"> {
  const added = {
    floor: 0,
    ceil: 0x7fffff,
    even: 2 ** (22 - floatFormats[element.name].mantissaBits),
  }[rounding];
  const greatest = Math.floor(Math.log2(largest));
  return words.add(added).shr(23).maximum(greatest).sub(greatest);
}

/** Numbers divided by their scales; zeros where a scale is 0. */
export function timesReciprocal(
  numbers: Tile<"f32">,
  codes: Tile,
  reciprocal: Tile<"f32"> | undefined,
): Tile<"f32"> {
  if (reciprocal !== undefined) return numbers.mul(reciprocal);
  const factors = codes.cast(f32);
  const isZero = factors.eq(0);
  return isZero.select(0, numbers.div(isZero.select(1, factors) as Tile<"f32">)) as Tile<"f32">;
}

/**
 * Codes of numbers of 16 bits times powers of two, in formats of 4 and 6 bits: with another power of two as factor, the exponent of an f32 is that of the format, and
 * its subnormal numbers are the format's. Adding half of the last place then rounds all of them alike.
 *
 *   f4e2m1fn of 2.5     2.5 · 2^-126 has the bits 01 01 0…     + half of a place, to even     ──▶     10 0: 4
 *
 * 11 bits of a significand are all there wherever a place of the format is: what f32 loses lies below 2^-23.
 */
export function placedCodes(
  numbers: Tile<"f32">,
  reciprocal: Tile<"f32">,
  element: DType<FloatName>,
): Tile<"u32"> {
  const { exponentBits, mantissaBits, bias } = floatFormats[element.name];
  const [shift, signPlace] = [23 - mantissaBits, exponentBits + mantissaBits];
  const words = numbers
    .mul(reciprocal)
    .mul(2 ** (bias - 127))
    .bitcast(u32);
  const magnitude = words.and(0x7fffffff);
  const last = magnitude.shr(shift).and(1);
  const places = magnitude
    .add(last)
    .add(2 ** (shift - 1) - 1)
    .shr(shift);
  const sign = words.shr(31 - signPlace).and(2 ** signPlace);
  const codes = places.minimum(2 ** signPlace - 1).or(sign);
  // Beside a scale that is NaN, elements are what NaN becomes: -0.
  return reciprocal.isNan().select(2 ** signPlace, codes) as Tile<"u32">;
}
