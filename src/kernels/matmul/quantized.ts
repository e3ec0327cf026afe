/**
 * Weights in few bits: b is stored with a scale for each column, or for each group along k of a column, and becomes bf16 or
 * f16 on its way to the tensor cores,
 *
 *   b[i, j] = stored[i, j] · scale[i / group, j]
 *
 * Columns of b lie one after the other, rounded up to multiples of 128 elements, in an order in which a lane finds what it
 * needs side by side: a tensor core's lane has the elements 2q, 2q + 1, 2q + 8, 2q + 9 of each 16, for q from 0 to 3. Of
 * 128 elements along k
 *
 *   stored at   q · 32 + s · 4 + h · 2 + p      is element   s · 16 + h · 8 + q · 2 + p
 *
 * Two elements of 4 bits share a byte, the first one in its lower half.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { array } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { atLocation, captureLocation } from "../../support/location.ts";
import { optionText, requireKnownOptions } from "../../support/options.ts";
import { refused } from "./problem.ts";

/** The greatest number of each format of weights. */
export const greatestWeight = { i4: 7, i8: 127, f8e4m3fn: 448, f8e5m2: 57344 } as const;
export type WeightFormat = keyof typeof greatestWeight;
/** Elements along k that are stored in an order of their own. */
export const packedUnit = 128;

export interface QuantizedOptions<S extends DTypeName = DTypeName> {
  /** Elements along k that share a scale, a multiple of 128; the whole column unless told. */
  readonly group?: number;
  /** The format of the scales, in which weights are also multiplied: bf16 or f16. */
  readonly scale: DType<S>;
}

/** Stands for b in a product. */
export interface QuantizedSpec<
  D extends WeightFormat = WeightFormat,
  S extends DTypeName = DTypeName,
> {
  readonly kind: "quantized";
  readonly dtype: DType<D>;
  /** [k, n]. */
  readonly shape: readonly [k: Size, n: Size];
  readonly group: number | undefined;
  readonly scale: DType<S>;
}

/** Weights of [k, n] in a format of 4 or 8 bits. */
export function quantized<D extends WeightFormat, S extends "bf16" | "f16">(
  dtype: DType<D>,
  shape: readonly [k: Size, n: Size],
  options: QuantizedOptions<S>,
): QuantizedSpec<D, S> {
  const location = captureLocation();
  requireKnownOptions("quantized", options, ["group", "scale"], "TW1033", location);
  const { group, scale } = options;
  const problem = quantizedProblem(dtype, shape, group, scale);
  if (problem !== undefined) throw refused("TW9902", ...problem, location);
  // An array of this shape is refused where its sizes are none.
  atLocation(location, () => array(dtype, shape));
  return { kind: "quantized", dtype, shape, group, scale };
}

/** What is wrong, what was expected, and what was found. */
function quantizedProblem(
  dtype: unknown,
  shape: unknown,
  group: unknown,
  scale: unknown,
): readonly [message: string, expected: string, found: string] | undefined {
  const formats = Object.keys(greatestWeight) as readonly WeightFormat[];
  const nameOf = (given: unknown): string =>
    Object.values<unknown>(dtypes).includes(given) ? (given as DType).name : optionText(given);
  if (!formats.some((name) => dtypes[name] === dtype))
    return ["weights have no such format", formats.join(", "), nameOf(dtype)];
  if (!Array.isArray(shape) || shape.length !== 2)
    return ["weights have another shape", "[k, n]", optionText(shape)];
  const isWhole = Number.isSafeInteger(group) && (group as number) > 0;
  if (group !== undefined && !(isWhole && (group as number) % packedUnit === 0))
    return [
      "weights have no such groups",
      `a multiple of ${packedUnit}, or none for whole columns`,
      optionText(group),
    ];
  if (scale !== dtypes.bf16 && scale !== dtypes.f16)
    return ["weights have no such scales", "bf16 or f16", nameOf(scale)];
  return undefined;
}

export function isQuantized(given: unknown): given is QuantizedSpec {
  return (
    typeof given === "object" && given !== null && "kind" in given && given.kind === "quantized"
  );
}

/** [k, columns] as stored, in the order of its numbers. */
export function unpacked(stored: Tile): Tile {
  const [depth = 0, columns = 0] = stored.shape;
  const blocks = depth / packedUnit;
  return stored
    .transpose()
    .reshape([columns, blocks, 4, 8, 2, 2])
    .transpose([0, 1, 3, 4, 2, 5])
    .reshape([columns, depth])
    .transpose();
}

/** The reverse. */
export function packed(weights: Tile): Tile {
  const [depth = 0, columns = 0] = weights.shape;
  const blocks = depth / packedUnit;
  return weights
    .transpose()
    .reshape([columns, blocks, 8, 2, 4, 2])
    .transpose([0, 1, 4, 2, 3, 5])
    .reshape([columns, depth])
    .transpose();
}

/** The weights that tiles of stored numbers and scales stand for. */
export function dequantized(stored: Tile, scale: Tile, as: DType): Tile {
  return unpacked(stored).cast(as).mul(scale) as Tile;
}
