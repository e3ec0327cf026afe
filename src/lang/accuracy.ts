/** Options of elementwise functions: how good a result has to be, how conversions round, and what is known of factors. */
import { acceptsApproximate, directedRoundings } from "../formats/arithmetic/functions.ts";
import type {
  BinaryFunction,
  DirectedRounding,
  RoundingManner,
  UnaryFunction,
} from "../formats/arithmetic/functions.ts";
import type { DType } from "../formats/dtype.ts";
import type { ConversionOptions } from "../formats/floats.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { optionText, requireKnownOptions } from "../support/options.ts";
import { activeTrace } from "./trace.ts";

/** How good a result has to be. */
export interface Accuracy {
  /** By the GPU's own approximation, within the bound that docs/arithmetic.md lists; without it as the kernel says. */
  readonly approximate?: boolean;
}

/** How results of arithmetic are rounded. */
export interface RoundingOptions {
  /** To the nearest number, to even where two are; towards zero, down or up, in f32 and f64. */
  readonly rounding?: "nearest" | DirectedRounding;
  /** Whether subnormal operands and results are zeros of their sign, in f32 and f16. */
  readonly flushToZero?: boolean;
}

/** What is known of the factors of a product. */
export interface Factors {
  /** Of f32: the other factor is one for most rows, so that warps that have nothing else to multiply by go past the product. */
  readonly oftenOne?: boolean;
}

/** All options of arithmetic, of which each function has some. */
export type ArithmeticOptions = Accuracy & Factors & RoundingOptions;

export type ArithmeticOption = keyof Accuracy | keyof Factors | keyof RoundingOptions;

const known: { readonly [fn: string]: readonly ArithmeticOption[] } = {
  add: ["rounding", "flushToZero"],
  sub: ["rounding", "flushToZero"],
  mul: ["rounding", "flushToZero", "oftenOne"],
  div: ["rounding", "flushToZero", "approximate"],
  fma: ["rounding", "flushToZero"],
  reciprocal: ["rounding", "flushToZero", "approximate"],
  sqrt: ["rounding", "flushToZero", "approximate"],
};

const roundings: readonly unknown[] = ["nearest", ...directedRoundings];

/** The attributes that say how a function is computed; what is usual is absent. */
export function mannerOf(
  name: string,
  fn: UnaryFunction | BinaryFunction | "fma",
  dtype: DType,
  options: ArithmeticOptions,
  location: Location,
): RoundingManner & { readonly approximate?: true; readonly oftenOne?: true } {
  requireKnownOptions(name, options, known[name] ?? ["approximate"], "TW1033", location);
  const { oftenOne, rounding, flushToZero } = options;
  if (rounding !== undefined && !roundings.includes(rounding))
    throw new TilewrightError({
      code: "TW1033",
      message: `${name} has no rounding ${optionText(rounding)}`,
      location,
      expected: roundings.map((each) => JSON.stringify(each)).join(", "),
      found: optionText(rounding),
    });
  const approximate = options.approximate ?? isApproximated(name, fn, dtype, options, location);
  return {
    ...(approximate === true && { approximate }),
    ...(rounding !== undefined && rounding !== "nearest" && { rounding }),
    ...(flushToZero === true && { flushToZero }),
    ...(oftenOne === true && { oftenOne }),
  };
}

/** Whether the kernel has approximations, and the function one in this format; rounding and flushing are asked for of accurate results. */
function isApproximated(
  name: string,
  fn: UnaryFunction | BinaryFunction | "fma",
  dtype: DType,
  { rounding, flushToZero }: ArithmeticOptions,
  location: Location,
): boolean {
  if (fn === "fma" || rounding !== undefined || flushToZero === true) return false;
  return activeTrace(name, location).spec.approximate && acceptsApproximate(fn, dtype);
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
