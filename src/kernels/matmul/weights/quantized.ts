/**
 * Weights in few bits: b is stored with a scale for each column, each group along k of a column, or each block of groups
 * and columns, and becomes bf16 or f16 on its way to the tensor cores. Integers may have zero points where scales are:
 *
 *   b[i, j] = (stored[i, j] − zero[i / group, j / span]) · scale[i / group, j / span]
 *
 * Columns of b lie one after the other, rounded up to multiples of 128 elements, in an order in which a lane finds what it
 * needs side by side: a tensor core's lane has the elements 2q, 2q + 1, 2q + 8, 2q + 9 of each 16, for q from 0 to 3. Of
 * 128 elements along k
 *
 *   of 8 bits   stored at   q · 32 + s · 4 + h · 2 + p                         is element   s · 16 + h · 8 + q · 2 + p
 *   of 4 bits   stored at   q · 32 + (s >> 1) · 8 + p · 4 + (s & 1) · 2 + h
 *
 * Groups may be parts of 128, as those of formats with scales are (MXFP8, MXFP6 and MXFP4 of 32, NVFP4 of 16): the scales of a column in 128 elements
 * along k lie side by side, [⌈k / 128⌉, n · 128 / group], and travel with them.
 *
 * Matrices of a batch lie one after the other, each with scales of its own. Two elements of 4 bits share a byte, the first one in its lower half. The two of them that a register of the tensor core has,
 * p of 0 and 1, are half a word apart: one shift and one mask take both out of it.
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { dtypes, isInteger } from "../../../formats/dtype.ts";
import { ceilDivSize, multiplySizes } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { tensor, slice } from "../../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../../lang/index.ts";
import { atLocation, captureLocation } from "../../../support/location.ts";
import { optionText, requireKnownOptions } from "../../../support/options.ts";
import { refused } from "../argument-errors.ts";

/** The greatest number of each format of weights. */
export const greatestWeight = {
  ...{ i4: 7, i8: 127, f8e4m3fn: 448, f8e5m2: 57344 },
  ...{ f6e2m3fn: 7.5, f6e3m2fn: 28, f4e2m1fn: 6 },
} as const;
/** The formats that quantized weights can have. */
export type WeightFormat = keyof typeof greatestWeight;
/** Elements along k that are stored in an order of their own. */
export const packedUnit = 128;

/** Columns that a block of scales has a multiple of: no part of a product then lies in two blocks. */
const blockColumns = 64;

/** Options of `quantized`. */
export interface QuantizedOptions<
  D extends WeightFormat = WeightFormat,
  S extends DTypeName = DTypeName,
  Z extends D = D,
> {
  /** Elements along k that share a scale: 16, 32, 64 or a multiple of 128; the whole column by default. */
  readonly groupSize?: number;
  /** Instead of a group: elements along k and columns that share a scale, multiples of 128 and 64. */
  readonly blockSize?: readonly [k: number, n: number];
  /** The format of the scales. */
  readonly scale: DType<S>;
  /** In which weights are multiplied, bf16 or f16: that of the scales by default, and to be told where that is f32. */
  readonly as?: DType<"bf16" | "f16">;
  /** The format of integers' zero points, that of the weights; there are none by default. */
  readonly zeroPoint?: DType<Z>;
}

/** Sizes of weights: a matrix, or one for each of a batch or of groups of rows. */
export type WeightShape = readonly [k: Size, n: Size] | readonly [batch: Size, k: Size, n: Size];

/** Stands for b in a product. */
export interface QuantizedSpec<
  D extends WeightFormat = WeightFormat,
  S extends DTypeName = DTypeName,
  Z extends boolean = boolean,
> {
  /** Tells quantized weights from arrays. */
  readonly kind: "quantized";
  /** The format of the stored numbers. */
  readonly dtype: DType<D>;
  /** [k, n] of each matrix. */
  readonly shape: readonly [k: Size, n: Size];
  /** Matrices, each with scales of its own; undefined where there is one. */
  readonly batch: Size | undefined;
  /** Elements along k that share a scale; all of a column where undefined. */
  readonly group: number | undefined;
  /** Columns that share a scale. */
  readonly span: number;
  /** The format of the scales. */
  readonly scale: DType<S>;
  /** The format that weights are computed in. */
  readonly as: DType;
  /** Whether each scale has a zero point. */
  readonly zero: Z;
}

/** The formats that scales can have; those of 8 bits are of formats with scales. */
export type ScaleFormat = "bf16" | "f16" | "f32" | "f8e8m0fnu" | "f8e4m3fn";

/** Weights of [k, n] or [batch, k, n] in a format of 4 to 8 bits. */
export function quantized<
  D extends WeightFormat,
  S extends ScaleFormat,
  const O extends QuantizedOptions<D, S>,
>(
  dtype: DType<D>,
  shape: WeightShape,
  options: O & { readonly scale: DType<S> },
): QuantizedSpec<D, S, O extends { readonly zeroPoint: DType } ? true : false> {
  const location = captureLocation();
  const names = ["groupSize", "blockSize", "scale", "as", "zeroPoint"];
  requireKnownOptions("quantized", options, names, "TW1033", location);
  const { groupSize: group, blockSize: block, scale, zeroPoint: zero } = options;
  const as = options.as ?? scale;
  const problem = formatProblem(dtype, scale, as, zero) ?? extentProblem(shape, group, block);
  if (problem !== undefined) throw refused("TW9902", ...problem, location);
  // An array of this shape is refused where its sizes are none.
  atLocation(location, () => tensor(dtype, shape));
  return {
    ...{ kind: "quantized", dtype, scale, as },
    ...(shape.length === 3
      ? { batch: shape[0], shape: [shape[1], shape[2]] }
      : { batch: undefined, shape }),
    ...{ group: block?.[0] ?? group, span: block?.[1] ?? 1 },
    zero: (zero !== undefined) as O extends { readonly zeroPoint: DType } ? true : false,
  };
}

/** What is wrong, what was expected, and what was found. */
type Wrong = readonly [message: string, expected: string, found: string];

function nameOf(given: unknown): string {
  return Object.values<unknown>(dtypes).includes(given) ? (given as DType).name : optionText(given);
}

function formatProblem(
  dtype: unknown,
  scale: unknown,
  as: unknown,
  zero: unknown,
): Wrong | undefined {
  const formats = Object.keys(greatestWeight) as readonly WeightFormat[];
  if (!formats.some((name) => dtypes[name] === dtype))
    return ["weights have no such format", formats.join(", "), nameOf(dtype)];
  const halves: readonly unknown[] = [dtypes.bf16, dtypes.f16];
  const others: readonly unknown[] = [dtypes.f32, dtypes.f8e8m0fnu, dtypes.f8e4m3fn];
  if (!halves.includes(scale) && !others.includes(scale))
    return ["weights have no such scales", "bf16, f16, f32, f8e8m0fnu or f8e4m3fn", nameOf(scale)];
  if (!halves.includes(as))
    return ["weights are multiplied in no such format", "as: bf16, or as: f16", nameOf(as)];
  if (zero === undefined) return undefined;
  if (zero === dtype && isInteger(dtype as DType)) return undefined;
  const expected = isInteger(dtype as DType) ? nameOf(dtype) : "none, since FP8 has none";
  return ["weights have no such zero points", expected, nameOf(zero)];
}

function extentProblem(shape: unknown, group: unknown, block: unknown): Wrong | undefined {
  if (!Array.isArray(shape) || (shape.length !== 2 && shape.length !== 3))
    return ["weights have another shape", "[k, n], or [batch, k, n]", optionText(shape)];
  const isWhole = (count: unknown, unit: number): boolean =>
    Number.isSafeInteger(count) && (count as number) > 0 && (count as number) % unit === 0;
  const isGroup = isWhole(group, packedUnit) || group === 16 || group === 32 || group === 64;
  if (group !== undefined && (block !== undefined || !isGroup))
    return [
      "weights have no such groups",
      `16, 32, 64 or a multiple of ${packedUnit}, or none for whole columns or blocks`,
      block === undefined ? optionText(group) : "a group and a block",
    ];
  if (block === undefined) return undefined;
  const isBlock = Array.isArray(block) && block.length === 2;
  const [along, across] = isBlock ? (block as readonly unknown[]) : [];
  if (isWhole(along, packedUnit) && isWhole(across, blockColumns)) return undefined;
  return [
    "weights have no such blocks",
    `[k, n], multiples of ${packedUnit} and ${blockColumns}`,
    optionText(block),
  ];
}

/** What says where scales of parts of k lie. */
interface ScalePlaces {
  readonly group: number | undefined;
  readonly span: number;
  /** Scales that a column has side by side. */
  readonly perUnit: number;
}

/** The shape of scales and zero points of an operand of [k, n], or of each matrix of a batch. */
export function scaleShape(
  { group, span, perUnit }: ScalePlaces,
  k: Size,
  n: Size,
  batch: Size | undefined,
): readonly Size[] {
  const own = span === 1 ? n : ceilDivSize(n, span);
  const across = perUnit === 1 ? own : multiplySizes(own, perUnit);
  const along = group === undefined ? [] : [ceilDivSize(k, group * perUnit)];
  return [...(batch === undefined ? [] : [batch]), ...along, across];
}

/** Likewise, of weights. */
export function weightScaleShape(
  weights: Pick<QuantizedSpec, "group" | "span">,
  k: Size,
  n: Size,
  batch: Size | undefined,
): readonly Size[] {
  const { group, span } = weights;
  return scaleShape({ group, span, perUnit: scalesOfUnit(weights) }, k, n, batch);
}

/** Scales that a column has in 128 elements along k; 1 where these share it, with others or not. */
export function scalesOfUnit({ group }: Pick<QuantizedSpec, "group">): number {
  return group === undefined || group >= packedUnit ? 1 : packedUnit / group;
}

/** Scales of columns as they lie in memory, of one unit: [groups, columns]. */
export function scalesByGroup(stored: Tile, each: number): Tile {
  const [count = 1] = stored.shape;
  return each === 1 ? stored.reshape([1, count]) : stored.reshape([count / each, each]).transpose();
}

/** The scales, or zero points, of `count` columns from `start` on, at a place along k: [1, count], [1, 1] of a block, or those of each group of 128. */
export function scaleTile(
  { group, span }: Pick<QuantizedSpec, "group" | "span">,
  scales: Ref,
  along: Scalar<"i32">,
  start: Scalar<"i32">,
  count: number,
): Tile {
  const row = group === undefined ? scales : scales.at(along.div(Math.max(group, packedUnit)));
  const each = scalesOfUnit({ group });
  const window = row.at(
    span === 1 ? slice(start.mul(each), count * each) : slice(start.div(span), 1),
  );
  return scalesByGroup(window.load(), each);
}

export function isQuantized(given: unknown): given is QuantizedSpec {
  return (
    typeof given === "object" && given !== null && "kind" in given && given.kind === "quantized"
  );
}

/**
 * How 128 elements along k lie, as digits of their number from the highest to the lowest: s (three bits), h, q (two), p. `stored`
 * has them in the order of memory, and `at` says where each of them is there.
 */
interface StoredOrder {
  readonly stored: readonly number[];
  /** s, or its upper two bits and its lowest one; h; q; p. */
  readonly at: readonly number[];
}

/** Words of 8 bits hold one s, those of 4 bits two of them, with both p half a word apart. */
const storedOrders = {
  8: { stored: [4, 8, 2, 2], at: [1, 2, 0, 3] },
  4: { stored: [4, 4, 2, 2, 2], at: [1, 3, 4, 0, 2] },
} as const satisfies { readonly [bits: number]: StoredOrder };

function storedOrder(bits: number): StoredOrder {
  return storedOrders[bits === 4 ? 4 : 8];
}

/**
 * Stored columns, one below the other, as lanes read them: 32 elements of a column side by side, of which tensor cores want
 * neighbours in other words. Words of 4 bits must not be put together of several columns' before they are taken apart.
 */
export function asStored(columns: Tile, warps: 1 | 4): Tile {
  const shared = warps === 1 ? "" : " W0 W1";
  return columns.dtype.bits === 4
    ? columns.layoutCast(`(L2 L3 L4 R5${shared} | R0 R1 R2 R3 R4 L0 L1)`)
    : columns;
}

/** [k, columns] as stored, in the order of its numbers. */
export function unpacked(stored: Tile): Tile {
  const [depth = 0, columns = 0] = stored.shape;
  const { stored: digits, at } = storedOrder(stored.dtype.bits);
  return stored
    .transpose()
    .reshape([columns, depth / packedUnit, ...digits])
    .transpose([0, 1, ...at.map((axis) => 2 + axis)])
    .reshape([columns, depth])
    .transpose();
}

/** The reverse. */
export function packed(weights: Tile): Tile {
  const [depth = 0, columns = 0] = weights.shape;
  const { stored: digits, at } = storedOrder(weights.dtype.bits);
  return weights
    .transpose()
    .reshape([columns, depth / packedUnit, ...at.map((axis) => digits[axis] ?? 1)])
    .transpose([0, 1, ...digits.map((_, axis) => 2 + at.indexOf(axis))])
    .reshape([columns, depth])
    .transpose();
}

/**
 * What stored numbers are multiplied by as they are converted where sums may be put right in the end: a quarter of 4 bits is a bf16 after
 * fewer instructions than all of it (`x.cast(bf16).mul(1 / 4)`, see `ptx/emit/elementwise/packed-conversions.ts`), and as exact.
 */
export function storedFactor({ dtype, as }: Pick<QuantizedSpec, "dtype" | "as">): number {
  return dtype === dtypes.i4 && as === dtypes.bf16 ? 1 / 4 : 1;
}

/**
 * Weights that take few instructions, of scales that are zero or within a range: products with a factor, which sums are divided by. It lets
 * one fma make a weight of a stored number and its scale (`ptx/emit/elementwise/scaled-casts.ts`), as exact as otherwise.
 */
export const quickWeights = { factor: 2 ** -10, least: 2 ** -64, most: 16 } as const;

/** Whether scales may be such that weights are quick to make. */
export function mayBeQuick({ dtype, scale, as, span, zero, group }: QuantizedSpec): boolean {
  const isWhole = scalesOfUnit({ group }) === 1;
  return (
    isWhole && dtype === dtypes.i4 && scale === dtypes.bf16 && as === scale && span === 1 && !zero
  );
}

/** Whether each of some scales is. */
export function isQuick(scales: Tile<"bf16">): Tile<"bool"> {
  const { least, most } = quickWeights;
  return scales.eq(0).or(scales.ge(least).and(scales.le(most)));
}

/** The weights times the factor, where all scales are. */
export function quicklyDequantized(stored: Tile, scale: Tile<"bf16">): Tile<"bf16"> {
  const { factor, least, most } = quickWeights;
  const known = scale.lt(least).select(0, scale.minimum(most));
  return unpacked(stored).cast(dtypes.bf16).mul(factor).mul(known);
}

/** The weights that tiles of stored numbers, scales and zero points stand for. */
export function dequantized(
  stored: Tile,
  scale: Tile,
  zero: Tile | undefined,
  { as }: Pick<QuantizedSpec, "as">,
): Tile {
  const numbers = unpacked(stored).cast(as);
  // Differences of two integers of 8 bits are exact in bf16, too.
  const moved = zero === undefined ? numbers : numbers.sub(spread(zero.cast(as), numbers));
  // Scales of 8 bits are numbers of bf16, and of f16 but for powers of two that are beyond it.
  const isExact = scale.dtype.bits === 8 && (as === dtypes.bf16 || scale.dtype === dtypes.f8e4m3fn);
  if (scale.dtype === as || isExact) return moved.mul(spread(scale.cast(as), moved));
  const wide = spread(scale.cast(dtypes.f32) as Tile, moved) as Tile<"f32">;
  return moved.cast(dtypes.f32).mul(wide).cast(as) as Tile;
}

/** A row for each group along k as often as the group has elements. */
function spread(rows: Tile, { shape: [depth = 1] }: Tile): Tile {
  return expandGroups(rows, depth);
}

/** Rows of groups as those of all elements: [groups, columns] to [depth, columns]; one row stays one, which is broadcast. */
export function expandGroups(rows: Tile, depth: number): Tile {
  const [groups = 1, columns = 1] = rows.shape;
  if (groups === 1) return rows;
  const size = depth / groups;
  return rows
    .reshape([groups, 1, columns])
    .broadcastTo([groups, size, columns])
    .reshape([depth, columns]);
}
