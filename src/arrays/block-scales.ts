/**
 * The scales of blocks, from the largest magnitude of each, in f32.
 *
 *   f8e8m0fnu   2^(⌊log2 largest⌋ − emax) and its kin, on the bits of the f32: its exponent plus what is added to its mantissa before that is cut
 *   f8e4m3fn    largest / 6, cut to 448, to nearest even
 *   f32         largest / 448
 *
 * A block with NaN has scale NaN, and so is all of it NaN. One with an infinity likewise, but with scales of f8e4m3fn beside a given global scale, which are cut
 * to 448. A block of zeros has the least scale there is (2^-127, or 0) and elements 0.
 */
import { floatFormats } from "../formats/floats.ts";
import type { ScaledFormat } from "../formats/scaled/formats.ts";
import type { ScaleRounding } from "../formats/scaled/scale-rounding.ts";
import type { NDArray } from "./array.ts";
import {
  add,
  astype,
  bitcast,
  bitwiseAnd,
  div,
  equal,
  full,
  greater,
  greaterEqual,
  maximum,
  minimum,
  mul,
  shiftLeft,
  shiftRight,
  sub,
  where,
} from "./functions.ts";

/** The scale of the whole array: what the largest number becomes is the largest element times the largest scale. 1 for zeros. */
export function globalScaleOf(
  largest: NDArray<"f32">,
  { largest: most, scale }: Pick<ScaledFormat, "largest" | "scale">,
): NDArray<"f32"> {
  const found = div(largest, most * floatFormats[scale.name].maxFinite);
  return where(equal(found, 0), 1, found);
}

/** The scales of blocks with these largest magnitudes. */
export function scalesOf(
  largest: NDArray<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding = "roundUp",
): NDArray {
  const { scale } = record;
  if (scale.name === "f8e8m0fnu") return powersOf(largest, record, rounding);
  const found = div(largest, record.largest);
  if (scale.name === "f32") return found;
  return astype(minimum(found, floatFormats[scale.name].maxFinite), scale.name);
}

const infinity = 0x7f800000;
const nanCode = 255;

function powersOf(
  largest: NDArray<"f32">,
  record: ScaledFormat,
  rounding: ScaleRounding,
): NDArray<"f8e8m0fnu"> {
  const codes =
    rounding === "roundUp"
      ? roundedUp(bitcast(div(largest, record.largest), "u32"))
      : below(bitcast(largest, "u32"), record, rounding);
  const isNumber = greater(infinity, bitcast(largest, "u32"));
  return bitcast(astype(where(isNumber, codes, nanCode), "u8"), "f8e8m0fnu");
}

/** The exponent of the least power of two that is no smaller; 2^-127, the least one, lies below the normal numbers of f32. */
function roundedUp(words: NDArray<"u32">): NDArray<"u32"> {
  const exponents = shiftRight(words, 23);
  const above = astype(greater(bitwiseAnd(words, 0x7fffff), 0), "u32");
  const raised = minimum(add(exponents, above), 254);
  return where(greater(words, 0x400000), raised, 0);
}

/** The exponent of a number that something was added to, less that of the largest element. */
function below(
  words: NDArray<"u32">,
  { element, largest }: ScaledFormat,
  rounding: Exclude<ScaleRounding, "roundUp">,
): NDArray<"u32"> {
  const added = {
    floor: 0,
    ceil: 0x7fffff,
    even: 2 ** (22 - floatFormats[element.name].mantissaBits),
  }[rounding];
  const greatest = Math.floor(Math.log2(largest));
  const exponents = shiftRight(add(words, added), 23);
  return sub(maximum(exponents, greatest), greatest);
}

/** Numbers divided by the scales of their blocks. Dividing by a power of two is multiplying by another, exactly as rounded. */
export function timesReciprocal(
  numbers: NDArray<"f32">,
  scales: NDArray,
  { scale }: ScaledFormat,
): NDArray<"f32"> {
  if (scale.name !== "f8e8m0fnu") {
    const factors = astype(scales, "f32");
    const isZero = equal(factors, 0);
    return where(isZero, 0, div(numbers, where(isZero, 1, factors)));
  }
  const codes = astype(bitcast(scales, "u8"), "u32");
  // 2^-127 is no normal number: the only one of its bits with a fraction.
  const words = maximum(shiftLeft(sub(full([], 254, "u32"), minimum(codes, 254)), 23), 0x400000);
  const factors = where(greaterEqual(codes, nanCode), NaN, bitcast(words, "f32"));
  return mul(numbers, factors);
}
