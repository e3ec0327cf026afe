/** Functions that make tiles and scalars from nothing, or one tile from several. */
import { dtypes, isInteger } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue, IntegerName } from "../formats/dtype.ts";
import {
  accumulations,
  isSummedShort,
  partPrecisions,
  productPrecisions,
} from "../ir/precisions.ts";
import type { DotAccumulation } from "../ir/precisions.ts";
import type { Value } from "../ir/node.ts";
import { sameShape, shapeText } from "../ir/size.ts";
import type { SymbolicSize } from "../ir/size.ts";
import { requireDType } from "../formats/argument-checks.ts";
import { locatedAt, TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText, requireKnownOptions } from "../support/options.ts";
import { axisFromEnd, axisOption } from "./axes.ts";
import { broadcastValue } from "./broadcast.ts";
import { constantValue, isPlain } from "./constants.ts";
import { Scalar } from "./elementwise.ts";
import { isSize, sizeValue } from "./sizes.ts";
import { finiteCorrections, splitTerms, splitTile, summedDepth } from "./split-precision.ts";
import type { SplitPrecision } from "./split-precision.ts";
import { Tile } from "./tile.ts";
import type { AxisOption } from "./tile.ts";
import { activeTrace, emitOrigin, emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { numberList, origin, useValue, wrongKind } from "./traced.ts";

function constantOrigin(
  dtype: DType,
  shape: readonly number[],
  value: unknown,
  location: Location,
): Origin {
  if (isPlain(value)) return originOf(constantValue(dtype, shape, value, location), location);
  if (!isSize(value))
    return wrongKind("a constant", "a plain JavaScript value or a size", value, location);
  const count = sizeValue(value, location);
  const converted =
    dtype === dtypes.i32 ? count : emitValue("cast", { source: count }, { dtype }, location);
  return originOf(broadcastValue(converted, shape, location), location);
}

/** Refuses a format's name, or nothing, in the place of the format. */
function requireFormat(dtype: unknown, location: Location): void {
  locatedAt(location, () => requireDType(dtype));
}

/** A scalar with a value that is known now, or a size that is known at launch. */
export function constant<D extends DTypeName>(
  dtype: DType<D>,
  value: number | HostValue<D> | SymbolicSize,
): Scalar<D> {
  const location = captureLocation();
  requireFormat(dtype, location);
  return new Scalar(constantOrigin(dtype, [], value, location));
}

/** A tile with the same value everywhere: one that is known now, a size that is known at launch, a scalar, or a tile of one element. */
export function full<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  value: number | HostValue<D> | SymbolicSize | Scalar<NoInfer<D>> | Tile<NoInfer<D>>,
): Tile<D> {
  const location = captureLocation();
  requireFormat(dtype, location);
  activeTrace("full", location);
  const extents = numberList("the shape of full", shape, location);
  if (value instanceof Scalar || value instanceof Tile)
    return new Tile(originOf(repeated(dtype, extents, value, location), location));
  return new Tile(constantOrigin(dtype, extents, value, location));
}

/** A traced value repeated over a shape. */
function repeated(
  dtype: DType,
  shape: readonly number[],
  value: Scalar | Tile,
  location: Location,
): Value {
  const source = useValue(value, location);
  if (value.dtype !== dtype)
    throw new TilewrightError({
      code: "TW2003",
      message: `full makes a tile of ${dtype.name} of a value of ${value.dtype.name}`,
      location,
      expected: dtype.name,
      found: value.dtype.name,
      remedy: `convert the value with .cast(${dtype.name})`,
    });
  if (value instanceof Scalar) return broadcastValue(source, shape, location);
  if (value.shape.some((extent) => extent !== 1))
    return wrongKind("the value of full", "a scalar, or a tile of one element", value, location);
  if (shape.length === 0) return value.item()[origin].value;
  const one = emitValue("reshape", { source }, { shape: shape.map(() => 1) }, location);
  return broadcastValue(one, shape, location);
}

/** A tile of zeros; of bools, false. */
export function zeros<D extends DTypeName>(dtype: DType<D>, shape: readonly number[]): Tile<D> {
  const location = captureLocation();
  requireFormat(dtype, location);
  const zero = dtype.kind === "bool" ? false : 0;
  activeTrace("zeros", location);
  const extents = numberList("the shape of zeros", shape, location);
  return new Tile(constantOrigin(dtype, extents, zero, location));
}

/** A tile whose elements count 0, 1, 2 … along one axis; a negative one counts from the end. */
export function iota<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  options: AxisOption,
): Tile<D> {
  const location = captureLocation();
  const axis = axisOption("iota", options, location);
  const extents = tileShape("iota", shape, location);
  const attributes = { dtype, shape: extents, axis: axisFromEnd(axis, extents.length) };
  return new Tile(emitOrigin("iota", {}, attributes, location));
}

/** The shape of a tile, which has at least one axis. */
function tileShape(label: string, shape: unknown, location: Location): readonly number[] {
  activeTrace(label, location);
  const extents = numberList(`the shape of ${label}`, shape, location);
  if (extents.length > 0) return extents;
  const remedy = "write constant(dtype, value) for a scalar";
  return wrongKind(`the shape of ${label}`, "at least one extent", shape, location, remedy);
}

/** The tiles one after the other along an axis; a negative one counts from the end. */
export function concatenate<D extends DTypeName>(
  tiles: readonly Tile<D>[],
  options: AxisOption,
): Tile<D> {
  const location = captureLocation();
  const axis = axisOption("concatenate", options, location);
  const list: unknown = tiles;
  if (!Array.isArray(list)) wrongKind("what concatenate takes", "a list of tiles", list, location);
  const parts = tiles.map((tile: unknown) =>
    tile instanceof Tile
      ? useValue(tile, location)
      : wrongKind("what concatenate takes", "tiles", tile, location),
  );
  const attributes = { axis: axisFromEnd(axis, tiles[0]?.shape.length ?? 0) };
  return new Tile(emitOrigin("concatenate", { parts }, attributes, location));
}

/** The format in which products of `D` are summed when nothing else is said. */
export type DotDType<D extends DTypeName> = D extends "f64"
  ? "f64"
  : D extends IntegerName
    ? "i32"
    : "f32";

const dotOptions: readonly (keyof DotOptions<never>)[] = [
  ...(["accumulator", "precision", "accumulation", "dtype"] as const),
];

/** Options of `dot`. */
export interface DotOptions<R extends DTypeName> {
  /** A tile that the product is added to. */
  readonly accumulator?: Tile<R>;
  /**
   * How f32 is multiplied, for f32 alone and always said: exactly as f32, rounded to tf32 first, or as several products of
   * parts of the operands (`split-precision.ts`).
   */
  readonly precision?: "ieee" | SplitPrecision;
  /**
   * How FP8 is summed in f32, where `wgmma` by itself keeps 13 bits behind the leading one: "promoted", with its sums added in f32 after at most
   * 128 of k, or "fast", as the instruction sums. All other products are the same by both.
   */
  readonly accumulation?: DotAccumulation;
  /** The format of the sums: f32, of integers i32, of f64 f64 by default. */
  readonly dtype?: DType<R>;
}

/** The matrix product of tiles [m, k] and [k, n]; with leading axes, which both have, a product for each of their items. */
export function dot<A extends DTypeName>(
  left: Tile<A>,
  right: Tile,
  options?: DotOptions<never>,
): Tile<DotDType<A>>;
export function dot<A extends DTypeName, R extends DTypeName = DotDType<A>>(
  left: Tile<A>,
  right: Tile,
  options?: DotOptions<R>,
): Tile<R>;
export function dot<R extends DTypeName>(
  left: Tile,
  right: Tile,
  options: DotOptions<R> = {},
): Tile<R> {
  const location = captureLocation();
  requireKnownOptions("dot", options, dotOptions, "TW1033", location);
  const { accumulator, precision = "native", accumulation = "promoted" } = options;
  requirePrecision(precision, location);
  requireAccumulation("dot", accumulation, location);
  for (const item of [left, right, ...(accumulator === undefined ? [] : [accumulator])])
    if (!(item instanceof Tile)) wrongKind("an operand of dot", "a tile", item, location);
  const { dtype = dotDType(left.dtype) } = options;
  if (left.shape.length > 2) return dotOfItems(left, right, options, location);
  if (isSeveralProducts(precision)) {
    requireSingle(left, right, dtype, precision, location);
    return splitDot(left as Tile<"f32">, right as Tile<"f32">, precision, accumulator);
  }
  const operands = {
    left: useValue(left, location),
    right: useValue(right, location),
    ...(accumulator !== undefined && { accumulator: useValue(accumulator, location) }),
  };
  const isFast = accumulation === "fast" && isSummedShort(left.dtype, dtype);
  const fast = isFast ? { accumulation } : {};
  return new Tile(emitOrigin("dot", operands, { dtype, precision, ...fast }, location));
}

/** Products of matrices that lie side by side along leading axes, one after the other. */
function dotOfItems<A extends DTypeName, R extends DTypeName>(
  left: Tile<A>,
  right: Tile,
  options: DotOptions<R>,
  location: Location,
): Tile<R> {
  const items = left.shape.slice(0, -2);
  const [rows = 1, columns = 1] = [left.shape.at(-2), right.shape.at(-1)];
  const { accumulator, ...others } = options;
  const shape = [...items, rows, columns];
  requireItems("left and right operands", items, right.shape.slice(0, -2), location);
  if (accumulator !== undefined) requireItems("accumulators", shape, accumulator.shape, location);
  const count = items.reduce((all, extent) => all * extent, 1);
  const item = <D extends DTypeName>(tile: Tile<D>, at: number): Tile<D> => {
    const [height = 1, width = 1] = tile.shape.slice(-2);
    const flat = tile.reshape([count, height, width]);
    return flat.slice([at, 0, 0], [1, height, width]).reshape([height, width]);
  };
  const products = Array.from({ length: count }, (_, at) => {
    const own = accumulator === undefined ? {} : { accumulator: item(accumulator, at) };
    return dot(item(left, at), item(right, at), { ...others, ...own }).reshape([1, rows, columns]);
  });
  return concatenate(products, { axis: 0 }).reshape(shape);
}

function requireItems(
  what: string,
  expected: readonly number[],
  found: readonly number[],
  location: Location,
): void {
  if (sameShape(expected, found)) return;
  throw new TilewrightError({
    code: "TW1010",
    message: `${what} of dot have different leading axes`,
    location,
    expected: shapeText(expected),
    found: shapeText(found),
  });
}

/** Refuses what is no way to sum. */
export function requireAccumulation(what: string, given: unknown, location: Location): void {
  if (accumulations.some((each) => each === given)) return;
  throw new TilewrightError({
    code: "TW2001",
    message: `accumulation of ${what} is not one of ${accumulations.join(", ")}`,
    location,
    expected: `one of ${accumulations.join(", ")}`,
    found: optionText(given),
  });
}

function requirePrecision(precision: string, location: Location): void {
  const taken: readonly string[] = [...productPrecisions, ...partPrecisions];
  if (taken.includes(precision)) return;
  throw new TilewrightError({
    code: "TW2001",
    message: `precision of dot is not one of ${taken.join(", ")}`,
    location,
    expected: `one of ${taken.join(", ")}`,
    found: optionText(precision),
  });
}

function isSeveralProducts(precision: string): precision is Exclude<SplitPrecision, "tf32"> {
  return (partPrecisions as readonly string[]).includes(precision);
}

function requireSingle(
  left: Tile,
  right: Tile,
  dtype: DType,
  precision: SplitPrecision,
  location: Location,
): void {
  if ([left.dtype, right.dtype, dtype].every(({ name }) => name === "f32")) return;
  const formats = `${left.dtype.name} and ${right.dtype.name}, summed in ${dtype.name}`;
  throw new TilewrightError({
    code: "TW2033",
    message: `precision "${precision}" is for f32, and this is a product of ${formats}`,
    location,
    expected: "operands and sums of f32",
    found: formats,
  });
}

/**
 * The sum of products of parts. The smaller ones correct the greatest, and are summed by the tensor cores; the greatest is summed a stretch of k at a time,
 * and the stretches are added up in f32, rounded to nearest:
 *
 *   a0·b0 of k 0 to 63   +   a0·b0 of k 64 to 127   +   (a1·b0 + a0·b1 of all k)   +   the accumulator
 */
function splitDot<R extends DTypeName>(
  left: Tile<"f32">,
  right: Tile<"f32">,
  precision: SplitPrecision,
  accumulator: Tile<R> | undefined,
): Tile<R> {
  const split = splitTerms(precision);
  const lefts = splitTile(left, precision);
  const rights = splitTile(right, precision);
  const partsOf = ([ofLeft, ofRight]: (typeof split.terms)[number]) => {
    const [one, other] = [lefts[ofLeft], rights[ofRight]];
    if (one === undefined || other === undefined) throw new Error("a product has both its parts");
    return [one, other] as const;
  };
  const greatest = stretchedDot(...partsOf([0, 0]), summedDepth(split));
  const corrections = split.terms
    .filter(([ofLeft, ofRight]) => ofLeft + ofRight > 0)
    .reduce<Tile<"f32"> | undefined>(
      (sum, term) => dot(...partsOf(term), { dtype: dtypes.f32, ...(sum && { accumulator: sum }) }),
      undefined,
    );
  const sum = corrections ? greatest.add(finiteCorrections(corrections)) : greatest;
  const total = sum as unknown as Tile<R>;
  return accumulator === undefined ? total : accumulator.add(total);
}

/** A product whose stretches along k are added up in f32. */
function stretchedDot(
  left: Tile<"bf16" | "tf32">,
  right: Tile<"bf16" | "tf32">,
  stretch: number,
): Tile<"f32"> {
  const [rows = 1, depth = 1] = left.shape;
  const [, columns = 1] = right.shape;
  const dtype = dtypes.f32;
  if (depth <= stretch) return dot(left, right, { dtype });
  return Array.from({ length: Math.ceil(depth / stretch) }, (_, at) => {
    const [start, length] = [at * stretch, Math.min(stretch, depth - at * stretch)];
    const [one, other] = [
      left.slice([0, start], [rows, length]),
      right.slice([start, 0], [length, columns]),
    ];
    return dot(one, other, { dtype });
  }).reduce((sum, product) => sum.add(product));
}

function dotDType(dtype: DType): DType {
  if (dtype.name === "f64") return dtype;
  return isInteger(dtype) ? dtypes.i32 : dtypes.f32;
}
