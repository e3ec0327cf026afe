/**
 * Arrays in formats with scales: quantised by blocks and back, in ops of which devices make one kernel with what comes before.
 *
 *   const w = nn.quantizeBlocks(weights, "mxfp4");       elements [m, k], scales [m, ⌈k / 32⌉]
 *   nn.dequantizeBlocks(w)                               elements · scales, in f32
 *
 * A block's scale follows from its largest magnitude (`block-scales.ts`). Elements are x / scale in f32, cut to the largest of the format and rounded
 * to even, or up or down by chance where a key is given. All devices give the same bits.
 */
import type { Operation } from "../device/operation.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DType, DTypeName, FloatName } from "../formats/dtype.ts";
import { floatFormats } from "../formats/floats.ts";
import { blockExtents, scaledFormats } from "../formats/scaled/formats.ts";
import type {
  ElementNameOf,
  ScaledFormat,
  ScaledFormatName,
  ScaleNameOf,
} from "../formats/scaled/formats.ts";
import { scaledHostArray } from "../formats/scaled/host-array.ts";
import type { ScaledHostArray } from "../formats/scaled/host-array.ts";
import { blockCounts, scaleShape, takesLayout } from "../formats/scaled/layout.ts";
import type { ScaleLayout } from "../formats/scaled/layout.ts";
import { sizeOf } from "../graph/ops/types.ts";
import {
  isFoldable,
  quantizeBlocks as quantizeBlocksOperation,
} from "../kernels/rows/quantize-blocks.ts";
import { dim, tensor } from "../lang/index.ts";
import type { TensorSpec } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { NDArray } from "./array.ts";
import { globalScaleOf, scalesOf, timesReciprocal } from "./block-scales.ts";
import type { ScaleRounding } from "../formats/scaled/scale-rounding.ts";
import { customVjp, stopGradient } from "./derivatives.ts";
import { requireKind } from "./dtype-checks.ts";
import {
  abs,
  add,
  astype,
  bitcast,
  bitwiseAnd,
  bitwiseOr,
  broadcastTo,
  clip,
  div,
  floor,
  full,
  less,
  maximum,
  mul,
  shiftRight,
  sub,
} from "./functions.ts";
import { pad } from "./indexing.ts";
import { fromKernel } from "./kernels.ts";
import { bits } from "./random-bits.ts";
import type { Key } from "./random-bits.ts";
import { max } from "./reductions.ts";
import { array, axisOf, reshape, slice, transpose } from "./shapes.ts";

/** An array in a format with scales: elements, and the scales of their blocks. A tree, which functions take and return. */
export interface ScaledArray<N extends ScaledFormatName = ScaledFormatName> {
  /** The name of the format. */
  readonly format: N;
  /** An element for each number, of the format's own dtype. */
  readonly elements: NDArray<ElementNameOf<N>>;
  /** A scale for each block, as `layout` says. */
  readonly scales: NDArray<ScaleNameOf<N>>;
  /** The axis along which blocks share a scale. */
  readonly axis: number;
  /** How the scales lie. */
  readonly layout: ScaleLayout;
  /** What all numbers are multiplied by besides; null where the format has none. */
  readonly globalScale: NDArray<"f32"> | null;
}

/** How `nn.quantizeBlocks` quantises. */
export interface QuantizeBlocksOptions {
  /** The axis along which blocks share a scale, the last one by default: that which products sum. */
  readonly axis?: number | undefined;
  /**
   * How scales that are powers of two follow from the largest number of a block: "roundUp" (the default, as cuBLAS and JAX do) is the least one with
   * which nothing is cut; "floor" is that of the OCP specification, "ceil" its upper neighbour, "even" floor of the number rounded as elements are.
   */
  readonly scaleRounding?: ScaleRounding | undefined;
  /** The global scale of nvfp4, which otherwise follows from the largest number of the array. */
  readonly globalScale?: NDArray<"f32"> | number | undefined;
  /** Scales that were found before, in the plain layout: nothing is measured. */
  readonly scales?: NDArray | undefined;
  /** How the scales shall lie; plain by default. */
  readonly layout?: ScaleLayout | undefined;
  /** Rounds elements up or down by chance, with the probability of how near they are. */
  readonly key?: Key | undefined;
}

/** The array in blocks: each axis along which blocks extend becomes two, of blocks and of what is in them. */
function inBlocks<D extends DTypeName>(
  x: NDArray<D>,
  extents: readonly number[],
): { readonly blocks: NDArray<D>; readonly inner: readonly number[] } {
  const counts = x.shape.map((extent, axis) => Math.ceil(extent / (extents[axis] ?? 1)));
  const widths = x.shape.map(
    (extent, axis) => [0, (counts[axis] ?? 0) * (extents[axis] ?? 1) - extent] as const,
  );
  const whole = widths.some(([, behind]) => behind > 0) ? pad(x, widths) : x;
  const inner: number[] = [];
  const shape: number[] = [];
  for (const [axis, count] of counts.entries()) {
    const extent = extents[axis] ?? 1;
    shape.push(count);
    if (extent > 1) inner.push(shape.push(extent) - 1);
  }
  return { blocks: reshape(whole, shape), inner };
}

/** What `inBlocks` took apart, at its own shape again. */
function outOfBlocks<D extends DTypeName>(
  blocks: NDArray<D>,
  extents: readonly number[],
  shape: readonly number[],
): NDArray<D> {
  const padded = shape.map((extent, axis) => {
    const block = extents[axis] ?? 1;
    return Math.ceil(extent / block) * block;
  });
  const whole = reshape(blocks, padded);
  return padded.join() === shape.join()
    ? whole
    : slice(
        whole,
        shape.map((extent) => [0, extent] as const),
      );
}

/** The scale of each block beside it, for broadcasting. */
function besideBlocks<D extends DTypeName>(
  scales: NDArray<D>,
  extents: readonly number[],
): NDArray<D> {
  const shape = scales.shape.flatMap((count, axis) =>
    (extents[axis] ?? 1) > 1 ? [count, 1] : [count],
  );
  return reshape(scales, shape);
}

/** The array in a format with scales. Derivatives take it for a constant: `nn.fakeQuantize` has one. */
export function quantizeBlocks<N extends ScaledFormatName>(
  x: NDArray,
  format: N,
  options: QuantizeBlocksOptions = {},
): ScaledArray<N> {
  requireKind("nn.quantizeBlocks", x, ["float"], 'convert it first: astype(x, "f32")');
  const record: ScaledFormat = scaledFormats[format];
  const axis = axisOf(options.axis ?? -1, x.rank);
  // What is rounded to f32 first is quantised by the same kernel.
  const constant = stopGradient(x.dtype === "f64" ? astype(x, "f32") : x);
  const globalScale = record.hasGlobalScale
    ? wholeScale(astype(constant, "f32"), record, options)
    : null;
  const [elements, scales] = isForKernel(constant, record, axis, options)
    ? byKernel(constant, record, axis, options.scaleRounding)(constant, ...onlyGiven(globalScale))
    : quantised(constant, globalScale, record, axis, options);
  const plain = {
    format,
    elements: new NDArray<ElementNameOf<N>>(elements.value),
    scales: new NDArray<ScaleNameOf<N>>(scales.value),
    axis,
    layout: "plain",
    globalScale,
  } as const;
  return withScaleLayout(plain, options.layout ?? "plain");
}

/** Elements and plain scales. */
type Quantised = readonly [elements: NDArray, scales: NDArray];

/** What quantisation means, op by op. */
function quantised(
  x: NDArray,
  globalScale: NDArray<"f32"> | null,
  record: ScaledFormat,
  axis: number,
  { scales, scaleRounding, key }: QuantizeBlocksOptions,
): Quantised {
  const extents = blockExtents(record, x.rank, axis);
  const numbers = astype(x, "f32");
  const own = globalScale === null ? numbers : div(numbers, globalScale);
  const { blocks, inner } = inBlocks(own, extents);
  const beside =
    scales === undefined
      ? scalesOf(max(abs(blocks), { axis: inner, keepDims: true }), record, scaleRounding)
      : besideBlocks(givenScales(scales, record, x.shape, axis), extents);
  const elements = rounded(timesReciprocal(blocks, beside, record), record, key);
  return [
    outOfBlocks(elements, extents, x.shape),
    reshape(beside, blockCounts(record, x.shape, axis)),
  ];
}

const kernelFormats: readonly DTypeName[] = ["f32", "bf16", "f16"];

/** Whether the library's kernel computes it, which reads x once. */
function isForKernel(
  { dtype, rank, shape }: NDArray,
  record: ScaledFormat,
  axis: number,
  { scales, key }: QuantizeBlocksOptions,
): boolean {
  const isMeasured = scales === undefined && key === undefined;
  return (
    isMeasured &&
    kernelFormats.includes(dtype) &&
    isFoldable(record, rank, axis) &&
    sizeOf(shape) > 0
  );
}

function onlyGiven(globalScale: NDArray<"f32"> | null): readonly NDArray[] {
  return globalScale === null ? [] : [reshape(globalScale, [1])];
}

/** Of x, and the global scale where the format has one. */
type Quantise = (...given: readonly NDArray[]) => Quantised;

/** One operation for each format and axis, so that layers share their kernels. */
const made = new Map<string, Quantise>();

function byKernel(
  { dtype, rank }: NDArray,
  format: ScaledFormat,
  axis: number,
  scaleRounding: ScaleRounding = "roundUp",
): Quantise {
  const key = [dtype, format.name, rank, axis, scaleRounding].join();
  const known = made.get(key);
  if (known !== undefined) return known;
  const sizes = Array.from({ length: rank }, (_, each) => dim(`d${each}`));
  const of: DType = dtypes[dtype];
  const call: Quantise = fromKernel(
    quantizeBlocksOperation({
      x: tensor(of, sizes) as TensorSpec<"f32">,
      ...{ format, axis, scaleRounding },
    }) as unknown as Operation,
    (...[x, globalScale]: readonly NDArray[]): Quantised => {
      if (x === undefined) throw new Error("there is nothing to quantise");
      const whole = globalScale === undefined ? null : astype(globalScale, "f32");
      return quantised(x, whole, format, axis, { scaleRounding });
    },
    (args) => args.map((each) => full(each.shape, 0, each.dtype)),
  );
  made.set(key, call);
  return call;
}

function wholeScale(
  numbers: NDArray<"f32">,
  record: ScaledFormat,
  { globalScale }: QuantizeBlocksOptions,
): NDArray<"f32"> {
  if (typeof globalScale === "number") return full([], globalScale, "f32");
  return globalScale ?? globalScaleOf(max(abs(numbers)), record);
}

function givenScales(
  scales: NDArray,
  { name, scale, block }: ScaledFormat,
  shape: readonly number[],
  axis: number,
): NDArray {
  const counts = scaleShape({ block }, shape, axis);
  if (scales.dtype === scale.name && scales.shape.join() === counts.join()) return scales;
  throw new TilewrightError({
    code: "TW9325",
    message: `these are no scales of an array of [${shape.join(", ")}] in ${name}`,
    expected: `${scale.name}[${counts.join(", ")}]`,
    found: scales.toString(),
  });
}

/** Elements of the format: cut to the largest one, then rounded. */
function rounded(
  scaled: NDArray<"f32">,
  { element, largest }: ScaledFormat,
  key: Key | undefined,
): NDArray {
  const within = clip(scaled, -largest, largest);
  return astype(key === undefined ? within : byChance(within, element.name, key), element.name);
}

const signBit = 2 ** 31;
const exponentBits = 0x7f800000;

/**
 * One of the two numbers of a format around each, by 24 random bits: with s the distance between them, |x| / s is rounded up where its fraction is larger than
 * what was drawn. The steps are exact: powers of two, and sums below 2^24.
 */
function byChance(x: NDArray<"f32">, name: FloatName, key: Key): NDArray<"f32"> {
  const { bias, mantissaBits } = floatFormats[name];
  const words = bitcast(x, "u32");
  const least = (128 - bias) * 2 ** 23;
  const power = maximum(bitwiseAnd(words, exponentBits), least);
  const step = mul(bitcast(power, "f32"), 2 ** -mantissaBits);
  const steps = mul(
    abs(x),
    mul(bitcast(sub(full([], 254 * 2 ** 23, "u32"), power), "f32"), 2 ** mantissaBits),
  );
  const below = floor(steps);
  const drawn = mul(astype(shiftRight(bits(key, x.shape), 8), "f32"), 2 ** -24);
  const up = astype(less(drawn, sub(steps, below)), "f32");
  const magnitude = mul(add(below, up), step);
  const sign = bitwiseAnd(words, signBit);
  return bitcast(bitwiseOr(bitcast(magnitude, "u32"), sign), "f32");
}

/** The numbers of an array in a format with scales, in f32 or another format. f64 is exact; others are rounded from f32. */
export function dequantizeBlocks(scaled: ScaledArray): NDArray<"f32">;
export function dequantizeBlocks<D extends FloatName>(scaled: ScaledArray, dtype: D): NDArray<D>;
export function dequantizeBlocks(scaled: ScaledArray, dtype: FloatName = "f32"): NDArray {
  const { format, elements, scales, axis, globalScale } = withScaleLayout(scaled, "plain");
  const compute = dtype === "f64" ? "f64" : "f32";
  const extents = blockExtents(scaledFormats[format], elements.rank, axis);
  const { blocks } = inBlocks(astype(elements, compute), extents);
  const factors = besideBlocks(astype(scales, compute), extents);
  const own = mul(blocks, broadcastTo(factors, blocks.shape));
  const all = globalScale === null ? own : mul(own, astype(globalScale, compute));
  return astype(outOfBlocks(all, extents, elements.shape), dtype);
}

/** An array of the host in a format with scales. */
export function scaledArray(host: ScaledHostArray): ScaledArray {
  const { format, elements, scales, axis, layout, globalScale } = host;
  // Refuses what was put together without `scaledHostArray`.
  scaledHostArray(format, elements, scales, {
    axis,
    layout,
    globalScale: globalScale ?? undefined,
  });
  return {
    ...{ format: format.name, axis, layout },
    elements: new NDArray<ElementNameOf<ScaledFormatName>>(array(elements).value),
    scales: new NDArray<ScaleNameOf<ScaledFormatName>>(array(scales).value),
    globalScale: globalScale === null ? null : full([], globalScale, "f32"),
  };
}

/** The array with its scales in another layout. */
export function withScaleLayout<N extends ScaledFormatName>(
  scaled: ScaledArray<N>,
  layout: ScaleLayout,
): ScaledArray<N> {
  if (scaled.layout === layout) return scaled;
  const record = scaledFormats[scaled.format];
  const { shape, rank } = scaled.elements;
  if (!takesLayout(record, rank, scaled.axis, layout))
    throw new TilewrightError({
      code: "TW9325",
      message: `scales of ${scaled.format} along axis ${scaled.axis} are not laid out ${layout}`,
      expected:
        "an array of rows that is scaled along its last axis, with a scale of each row alone",
      found: `[${shape.join(", ")}], blocks of ${blockExtents(record, rank, scaled.axis).join(" × ")}`,
      remedy: 'keep layout: "plain"',
    });
  const plain = plainScales(scaled);
  return {
    ...scaled,
    layout,
    scales: layout === "plain" ? plain : laidOut(plain, shape, scaled.axis, record, layout),
  };
}

/** Scales by rows without what they were padded with. */
function plainScales<N extends ScaledFormatName>({
  format,
  elements,
  scales,
  axis,
  layout,
}: ScaledArray<N>): NDArray<ScaleNameOf<N>> {
  if (layout === "plain") return scales;
  const record = scaledFormats[format];
  const padded = scaleShape(record, elements.shape, axis, "padded");
  const rows =
    layout === "padded" ? scales : reshape(transpose(scales, turned(scales.rank)), padded);
  return slice(
    rows,
    blockCounts(record, elements.shape, axis).map((count) => [0, count] as const),
  );
}

/** Rows and blocks within a tile change places, in both directions. */
function turned(rank: number): readonly number[] {
  const first = Array.from({ length: rank - 5 }, (_, axis) => axis);
  return [...first, ...[0, 3, 2, 1, 4].map((axis) => rank - 5 + axis)];
}

function laidOut<D extends DTypeName>(
  plain: NDArray<D>,
  shape: readonly number[],
  axis: number,
  record: ScaledFormat,
  layout: "padded" | "tiled",
): NDArray<D> {
  const padded = scaleShape(record, shape, axis, "padded");
  // Zero is no number of every format of scales, but bits that each of them has.
  const codes = record.scale.bits === 8 ? bitcast(plain, "u8") : bitcast(plain, "u32");
  const widths = padded.map((extent, each) => [0, extent - (plain.shape[each] ?? 0)] as const);
  const rows = bitcast(pad(codes, widths), plain.dtype);
  if (layout === "padded") return rows;
  const [high = 0, wide = 0] = padded.slice(-2);
  const tiles = [...padded.slice(0, -2), high / 128, 4, 32, wide / 4, 4];
  return transpose(reshape(rows, tiles), turned(tiles.length));
}

/**
 * What is left of an array that went through a format with scales, in its own dtype. Its derivative is that of the identity (straight-through): cotangents
 * pass as they are.
 */
export function fakeQuantize<D extends FloatName>(
  x: NDArray<D>,
  format: ScaledFormatName,
  options: QuantizeBlocksOptions = {},
): NDArray<D> {
  const through = (array: NDArray<D>): NDArray<D> =>
    dequantizeBlocks(quantizeBlocks(array, format, options), x.dtype);
  return customVjp(
    through,
    (array: NDArray<D>) => [through(array), null] as const,
    (_: null, cotangent: NDArray<D>) => [cotangent],
  )(x);
}
