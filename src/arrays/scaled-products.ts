/**
 * Products of arrays in formats with scales.
 *
 *   nn.scaledMatmul(a, b)          a [batch, m, k], b [batch, n, k], each with scales along k or plain   ──▶ [batch, m, n]
 *   nn.scaledDotGeneral(x, y, …)   quantises both along what is summed, and cotangents on the way back
 *
 * Elements times scales of blocks are numbers of bf16 in MX formats and nvfp4: both operands are multiplied as such, and summed in f32. Those with scales of
 * f32 are multiplied in f32, but FP8 by blocks of 128 on both sides, which the library's product takes as it is. Global scales are applied to sums.
 */
import { f32 } from "../formats/dtype.ts";
import type { DTypeName, FloatName } from "../formats/dtype.ts";
import { scaledFormats } from "../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../formats/scaled/formats.ts";
import { tensorType } from "../graph/ops/types.ts";
import { isExactInBf16 } from "../kernels/matmul/scaled-errors.ts";
import { cdiv, dim, tensor } from "../lang/index.ts";
import type { Dimension } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { NDArray, recordWith } from "./array.ts";
import { customVjp } from "./derivatives.ts";
import { requireKind } from "./dtype-checks.ts";
import { astype, full, mul } from "./functions.ts";
import { fromLibrary } from "./kernels.ts";
import { dequantizeBlocks, quantizeBlocks } from "./scaled.ts";
import type { ScaledArray } from "./scaled.ts";
import { reshape, transpose } from "./shapes.ts";

/** Options of `nn.scaledMatmul`. */
export interface ScaledMatmulOptions<D extends FloatName = FloatName> {
  /** The dtype of the result; f32 by default. */
  readonly dtype?: D | undefined;
}

type Factor = NDArray | ScaledArray;

function isScaled(factor: Factor): factor is ScaledArray {
  return !(factor instanceof NDArray);
}

function shapeOf(factor: Factor): readonly number[] {
  return isScaled(factor) ? factor.elements.shape : factor.shape;
}

/** Whether an operand is multiplied in bf16. */
function fitsBf16(factor: Factor): boolean {
  return isScaled(factor) ? isExactInBf16(scaledFormats[factor.format]) : factor.dtype === "bf16";
}

/** An operand in the format that it is multiplied in, without its global scale. */
function multiplied(factor: Factor, dtype: "bf16" | "f32"): NDArray {
  return isScaled(factor)
    ? dequantizeBlocks({ ...factor, globalScale: null }, dtype)
    : astype(factor, dtype);
}

/** a · bᵀ over the last axis of both, with scales of blocks of a, b or both. */
export function scaledMatmul<D extends FloatName = "f32">(
  a: Factor,
  b: Factor,
  { dtype }: ScaledMatmulOptions<D> = {},
): NDArray<D> {
  requireFactors(a, b);
  const sums = byBlocks(a, b) ?? dequantisedProduct(a, b);
  const scaled = [a, b].reduce<NDArray<"f32">>((product, factor) => {
    const scale = isScaled(factor) ? factor.globalScale : null;
    return scale === null ? product : mul(product, scale);
  }, sums);
  return astype(scaled, dtype ?? ("f32" as D));
}

/** Σ a[…, i, k] · b[…, j, k], summed in f32 and not rounded to the operands' format. */
function dotOf(a: NDArray, b: NDArray): NDArray<"f32"> {
  const rank = a.rank;
  const batch = Array.from({ length: rank - 2 }, (_, axis) => axis);
  const shape = [...a.shape.slice(0, -1), b.shape.at(-2) ?? 0];
  const value = recordWith("scaledMatmul", (builder) =>
    builder.one(
      "stablehlo.dot_general",
      { lhs: a.value, rhs: b.value },
      {
        dot_dimension_numbers: {
          lhs_batching_dimensions: batch,
          rhs_batching_dimensions: batch,
          lhs_contracting_dimensions: [rank - 1],
          rhs_contracting_dimensions: [rank - 1],
        },
      },
      { types: [tensorType("f32", shape)] },
    ),
  );
  return new NDArray<"f32">(value);
}

function dequantisedProduct(a: Factor, b: Factor): NDArray<"f32"> {
  const format = fitsBf16(a) && fitsBf16(b) ? "bf16" : "f32";
  return dotOf(multiplied(a, format), multiplied(b, format));
}

/** Fewer products than these take no longer in f32. */
const leastProducts = 1 << 20;

type Sums = (...given: readonly NDArray[]) => NDArray<"f32">;
/** One operation for each pair of formats, with a batch and without. */
const made = new Map<string, Sums>();

/** The product of FP8 by blocks of 128 along what is summed, with promoted sums; undefined of other factors. */
function byBlocks(a: Factor, b: Factor): NDArray<"f32"> | undefined {
  if (!isScaled(a) || !isScaled(b)) return undefined;
  const isOwn = ({ format, layout }: ScaledArray): boolean =>
    scaledFormats[format].scale.name === "f32" && layout === "plain";
  const { rank, shape } = a.elements;
  const count = shape.reduce((all, extent) => all * extent, b.elements.shape.at(-2) ?? 1);
  if (!isOwn(a) || !isOwn(b) || rank > 3 || count < leastProducts) return undefined;
  const key = [a.format, b.format, rank].join();
  const call = made.get(key) ?? blocksCall(a, b, rank === 3);
  made.set(key, call);
  return call(a.elements, b.elements, a.scales, b.scales);
}

function blocksCall(a: ScaledArray, b: ScaledArray, batched: boolean): Sums {
  const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];
  const lead = batched ? [batch] : [];
  const [left, right] = [scaledFormats[a.format], scaledFormats[b.format]];
  const scales = ({ scale, block: [across, along] }: ScaledFormat, rows: Dimension) =>
    tensor(scale, [...lead, cdiv(rows, across), cdiv(k, along)]);
  const declaration = {
    inputs: {
      a: tensor(left.element, [...lead, m, k]),
      b: tensor(right.element, [...lead, n, k]),
      ...{ aScale: scales(left, m), bScale: scales(right, n) },
    },
    outputs: { out: tensor(f32, [...lead, m, n]) },
  };
  const [ofA, ofB] = [a, b].map(({ format, axis, layout }) => ({ format, axis, layout }));
  const factor = (own: typeof ofA, elements?: NDArray, scales?: NDArray): ScaledArray =>
    ({ ...own, elements, scales, globalScale: null }) as ScaledArray;
  return fromLibrary(
    { library: "scaled_matmul", spec: { a: a.format, b: b.format, batched } },
    declaration,
    (...[elementsOfA, elementsOfB, scalesOfA, scalesOfB]: readonly NDArray[]) =>
      dequantisedProduct(factor(ofA, elementsOfA, scalesOfA), factor(ofB, elementsOfB, scalesOfB)),
    (args) => args.map((each) => full(each.shape, 0, each.dtype)),
  );
}

function requireFactors(a: Factor, b: Factor): void {
  const [left, right] = [shapeOf(a), shapeOf(b)];
  const isProduct =
    left.length >= 2 &&
    left.length === right.length &&
    left.at(-1) === right.at(-1) &&
    left.slice(0, -2).join() === right.slice(0, -2).join();
  if (!isProduct)
    throw new TilewrightError({
      code: "TW9326",
      message: "these arrays have no product with scales",
      expected: "[…, m, k] and […, n, k]",
      found: `[${left.join(", ")}] and [${right.join(", ")}]`,
    });
  const across = [a, b].find((each) => isScaled(each) && each.axis !== each.elements.rank - 1);
  if (across !== undefined && isScaled(across))
    throw new TilewrightError({
      code: "TW9326",
      message: "an operand has its scales along another axis than the one that is summed",
      expected: `axis ${across.elements.rank - 1}, the last one`,
      found: `axis ${across.axis}`,
      remedy: "quantise it along its last axis",
    });
}

/** What an operand, or the cotangent of the result, is quantised to; null leaves it as it is. */
export type ProductFormat = ScaledFormatName | null;

/** Options of `nn.scaledDotGeneral`. */
export interface ScaledDotGeneralOptions<D extends FloatName = FloatName> {
  /** The axes that are summed, of both; the last of both by default. */
  readonly contracting?: readonly [lhs: readonly number[], rhs: readonly number[]] | undefined;
  /** The axes that are equal in both and stay; none by default. */
  readonly batch?: readonly [lhs: readonly number[], rhs: readonly number[]] | undefined;
  /** The formats of both operands and of cotangents, or one for all; "mxfp8e4m3" by default. */
  readonly formats?:
    | ScaledFormatName
    | readonly [lhs: ProductFormat, rhs: ProductFormat, cotangent: ProductFormat]
    | undefined;
  /** The dtype of the result; that of the operands by default. */
  readonly dtype?: D | undefined;
}

type Formats = readonly [lhs: ProductFormat, rhs: ProductFormat, cotangent: ProductFormat];

/** Quantised along its last axis. */
function quantised(x: NDArray, format: ProductFormat): Factor {
  return format === null ? x : quantizeBlocks(x, format);
}

function product(a: NDArray, b: NDArray, [left, right]: readonly ProductFormat[]): NDArray<"f32"> {
  return scaledMatmul(quantised(a, left ?? null), quantised(b, right ?? null));
}

const turned = (x: NDArray): NDArray => transpose(x, [0, 2, 1]);

/** The product of [batch, m, k] and [batch, n, k], whose cotangents are products of quantised arrays, too, in blocks along what these sum. */
function core<D extends FloatName>(formats: Formats, dtype: D) {
  const [left, right, cotangent] = formats;
  const forward = (a: NDArray, b: NDArray): NDArray<D> => astype(product(a, b, formats), dtype);
  return customVjp(
    forward,
    (a: NDArray, b: NDArray) => [forward(a, b), [a, b] as const] as const,
    ([a, b]: readonly [NDArray, NDArray], g: NDArray<D>) => [
      astype(product(g as unknown as NDArray, turned(b), [cotangent, right]), a.dtype),
      astype(product(turned(g as unknown as NDArray), turned(a), [cotangent, left]), b.dtype),
    ],
  );
}

/** The product of two arrays that are quantised along what is summed; gradients are products of the same kind. */
export function scaledDotGeneral<D extends DTypeName>(
  lhs: NDArray<D>,
  rhs: NDArray<D>,
  options: ScaledDotGeneralOptions = {},
): NDArray<D> {
  const { contracting = [[lhs.rank - 1], [rhs.rank - 1]], batch = [[], []] } = options;
  requireAxes(lhs, rhs, contracting, batch);
  const given = options.formats ?? "mxfp8e4m3";
  const formats: Formats = typeof given === "string" ? [given, given, given] : given;
  const [left, right] = [
    canonical(lhs as unknown as NDArray, contracting[0], batch[0]),
    canonical(rhs as unknown as NDArray, contracting[1], batch[1]),
  ];
  const dtype = (options.dtype ?? lhs.dtype) as FloatName;
  const found = core(formats, dtype)(left.array, right.array);
  const shape = [...batch[0].map((axis) => lhs.shape[axis] ?? 1), ...left.free, ...right.free];
  return reshape(found, shape) as unknown as NDArray<D>;
}

/** An operand as [batch, free, contracted]. */
function canonical(x: NDArray, contracting: readonly number[], batch: readonly number[]) {
  const free = x.shape.flatMap((_, axis) =>
    contracting.includes(axis) || batch.includes(axis) ? [] : [axis],
  );
  const extents = (axes: readonly number[]) => axes.map((axis) => x.shape[axis] ?? 1);
  const count = (axes: readonly number[]) => extents(axes).reduce((all, each) => all * each, 1);
  const moved = transpose(x, [...batch, ...free, ...contracting]);
  return {
    array: reshape(moved, [count(batch), count(free), count(contracting)]),
    free: extents(free),
  };
}

function requireAxes(
  lhs: NDArray<DTypeName>,
  rhs: NDArray<DTypeName>,
  ...pairs: readonly (readonly [readonly number[], readonly number[]])[]
): void {
  requireKind("nn.scaledDotGeneral", lhs, ["float"], 'convert it first: astype(x, "f32")');
  requireKind("nn.scaledDotGeneral", rhs, ["float"], 'convert it first: astype(x, "f32")');
  const areDistinct = ([own, side]: readonly [NDArray<DTypeName>, 0 | 1]): boolean => {
    const axes = pairs.flatMap((pair) => pair[side]);
    return (
      new Set(axes).size === axes.length &&
      axes.every((axis) => Number.isInteger(axis) && axis >= 0 && axis < own.rank)
    );
  };
  const fit = pairs.every(
    ([left, right]) =>
      left.length === right.length &&
      left.every((axis, i) => lhs.shape[axis] === rhs.shape[right[i] ?? -1]),
  );
  if (fit && areDistinct([lhs, 0]) && areDistinct([rhs, 1])) return;
  throw new TilewrightError({
    code: "TW9326",
    message: "the axes of nn.scaledDotGeneral do not fit its arrays",
    expected: "as many axes of each kind in both, of the same extents",
    found: `${lhs.toString()} and ${rhs.toString()}, ${JSON.stringify(pairs)}`,
  });
}
