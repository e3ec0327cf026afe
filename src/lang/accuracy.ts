/** Options of elementwise functions: how good a result has to be, how conversions round, and what is known of factors. */
import type { ConversionOptions } from "../formats/floats.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";

/** How good a result has to be. */
export interface Accuracy {
  /** By the GPU's own approximation, within the bound that docs/arithmetic.md lists. */
  readonly approximate?: boolean;
}

/** What is known of the factors of a product. */
export interface Factors {
  /** Of f32: the other factor is one for most rows, so that warps that have nothing else to multiply by go past the product. */
  readonly oftenOne?: boolean;
}

/** The attribute that asks for an approximation, absent where none is asked for. */
export function accuracyOf(
  name: string,
  options: Accuracy,
  location: Location,
): { readonly approximate?: true } {
  requireKnownOptions(name, options, ["approximate"], "TW1033", location);
  return options.approximate === true ? { approximate: true } : {};
}

/** The attribute that says of a factor that it is often one, absent where nobody says so. */
export function factorsOf(options: Factors, location: Location): { readonly oftenOne?: true } {
  requireKnownOptions("mul", options, ["oftenOne"], "TW1033", location);
  return options.oftenOne === true ? { oftenOne: true } : {};
}

/** How a conversion rounds and what becomes of numbers that are beyond the dtype, as far as it is said. */
export function conversionOf(options: ConversionOptions, location: Location): ConversionOptions {
  requireKnownOptions("cast", options, ["overflow", "rounding"], "TW1033", location);
  const { overflow, rounding } = options;
  return {
    ...(overflow !== undefined && { overflow }),
    ...(rounding !== undefined && { rounding }),
  };
}
