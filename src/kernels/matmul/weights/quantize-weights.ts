/**
 * Weights into few bits and back, in the order that products read (`quantized.ts`):
 *
 *   quantizeWeights     x [k, n]  ──▶  b, bScale, bZero
 *   dequantizeWeights   b, bScale, bZero ──▶  x [k, n]        (b − zero) · scale
 *
 *   without zero points   scale = max |x| of a group / greatest number of the format
 *   with them             scale = (max x − min x) / numbers of the format less one, where 0 counts as one of the x
 *                         zero  = what x = 0 becomes, so that the least x becomes the least number
 *
 * Of a batch every matrix is taken by itself. A block has 64 columns of one group, or all columns of a block of scales. It goes through them twice: for the scale, and
 * for what is divided by it. Groups of 16, 32 and 64 are parts of what a block has in registers: it reads them once. Scales that are powers of two are rounded up, so that
 * nothing is cut. A group of zeros has scale 0, or the least power of two, and stays zeros.
 */
import type { DType, DTypeName, FloatName } from "../../../formats/dtype.ts";
import { dtypes, isInteger } from "../../../formats/dtype.ts";
import { operation } from "../../../device/operation.ts";
import type { Operation, PlannedLaunch } from "../../../device/operation.ts";
import { evaluateSize } from "../../../ir/size.ts";
import type { Dimension } from "../../../ir/size.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  full,
  kernel,
  loop,
  slice,
  zeros,
} from "../../../lang/index.ts";
import type {
  TensorSpec,
  Empty,
  KernelDefinition,
  Ref,
  Scalar,
  Slice,
  Tile,
} from "../../../lang/index.ts";
import { captureLocation } from "../../../support/location.ts";
import type { Location } from "../../../support/location.ts";
import { optionText } from "../../../support/options.ts";
import { requireFields, requireFloat } from "../../support/arguments.ts";
import { storedOperand } from "../prologue/given-prologues.ts";
import { refused } from "../argument-errors.ts";
import type { WeightScales } from "../matmul.ts";
import {
  dequantized,
  greatestWeight,
  isQuantized,
  packed,
  packedUnit,
  scalesOfUnit,
  weightScaleShape,
  scaleTile,
} from "./quantized.ts";
import type { QuantizedSpec, WeightFormat } from "./quantized.ts";

/** What `quantizeWeights` is made for. */
export interface QuantizeWeightsSpec<
  X extends FloatName,
  D extends WeightFormat,
  S extends DTypeName,
  Z extends boolean = boolean,
> {
  /** The format of the weights, which are [k, n] or [batch, k, n] by rows. */
  readonly x: DType<X>;
  /** How they are stored. */
  readonly b: QuantizedSpec<D, S, Z>;
}

type Stored<D extends DTypeName, S extends DTypeName, Z extends boolean> = {
  readonly b: TensorSpec<D>;
} & WeightScales<D, S, Z>;
type Weights<X extends DTypeName> = { readonly x: TensorSpec<X> };

/** Columns of a block. */
const columns = 64;

/** Weights in few bits, and their scales: what `matmul` takes for b and bScale. */
export function quantizeWeights<
  X extends FloatName,
  D extends WeightFormat,
  S extends DTypeName,
  Z extends boolean = false,
>(spec: QuantizeWeightsSpec<X, D, S, Z>): Operation<Weights<X>, Stored<D, S, Z>, Empty> {
  const location = captureLocation();
  const { x, stored, weights } = given("quantizeWeights", spec, location);
  const made = scalesOfUnit(weights) > 1 ? quantizeUnitsKernel : quantizeKernel;
  return operation({
    name: "quantizeWeights",
    inputs: { x },
    outputs: stored,
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => [launch(made(x.dtype, weights), weights, dimensions)],
    }),
  }) as unknown as Operation<Weights<X>, Stored<D, S, Z>, Empty>;
}

/**
 * The weights that stored ones stand for, rounded as products round them. Columns are stored in multiples of 128, so k is
 * given with the launch: `{ dimensions: { k } }`.
 */
export function dequantizeWeights<
  X extends FloatName,
  D extends WeightFormat,
  S extends DTypeName,
  Z extends boolean = false,
>(spec: QuantizeWeightsSpec<X, D, S, Z>): Operation<Stored<D, S, Z>, Weights<X>, Empty> {
  const { x, stored, weights } = given("dequantizeWeights", spec, captureLocation());
  return operation({
    name: "dequantizeWeights",
    inputs: stored,
    outputs: { x },
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => [launch(dequantizeKernel(x.dtype, weights), weights, dimensions)],
    }),
  }) as unknown as Operation<Stored<D, S, Z>, Weights<X>, Empty>;
}

function given(
  of: string,
  spec: QuantizeWeightsSpec<FloatName, WeightFormat, DTypeName>,
  location: Location,
): {
  readonly x: TensorSpec;
  readonly stored: { readonly [name: string]: TensorSpec };
  readonly weights: QuantizedSpec;
} {
  requireFields(of, spec, { x: "format", b: "operand" }, location);
  const weights: unknown = spec.b;
  if (!isQuantized(weights))
    throw refused(
      "TW9902",
      `${of} has no description of the weights`,
      "b: quantized(i4, [k, n], { groupSize: 128, scale: bf16 })",
      optionText(weights),
      location,
    );
  const x = weightArray(spec.x, weights);
  requireFloat("x", of, x, location);
  return { x, weights, stored: storedArrays(weights) };
}

function weightArray(dtype: DType, { shape, batch }: QuantizedSpec): TensorSpec {
  return tensor(dtype, [...(batch === undefined ? [] : [batch]), ...shape]);
}

function storedArrays(weights: QuantizedSpec): { readonly [name: string]: TensorSpec } {
  const shape = weightScaleShape(weights, ...weights.shape, weights.batch);
  return {
    b: storedOperand(weights).spec,
    bScale: tensor(weights.scale, shape),
    ...(weights.zero && { bZero: tensor(weights.dtype, shape) }),
  };
}

function launch(
  definition: KernelDefinition,
  { shape: [k, n], batch, zero }: QuantizedSpec,
  dimensions: { readonly [name: string]: number },
): PlannedLaunch {
  const values = new Map(Object.entries(dimensions));
  const named = (name: string): { readonly argument: string } => ({ argument: name });
  return {
    kernel: definition,
    arguments: {
      ...{ x: named("x"), b: named("b"), bScale: named("bScale") },
      ...(zero && { bZero: named("bZero") }),
    },
    dimensions: {
      ...{ k: evaluateSize(k, values), n: evaluateSize(n, values) },
      ...(batch !== undefined && { batch: evaluateSize(batch, values) }),
    },
  };
}

/** The same weights in dimensions of a kernel, which does one matrix of them in a layer of blocks. */
function ofKernel(weights: QuantizedSpec): {
  readonly own: QuantizedSpec;
  readonly k: Dimension;
  readonly n: Dimension;
  readonly layers: Dimension | 1;
} {
  const [k, n, batch] = [
    dim("k"),
    dim("n"),
    weights.batch === undefined ? undefined : dim("batch"),
  ];
  return { own: { ...weights, shape: [k, n], batch }, k, n, layers: batch ?? 1 };
}

/** Where a block's parts of the weights are, one for each 128 of its group. */
interface Parts {
  readonly count: Scalar<"i32">;
  readonly along: (part: Scalar<"i32">) => Scalar<"i32">;
}

function partsOf(
  { group }: QuantizedSpec,
  k: Parameters<typeof cdiv>[0],
  index: Scalar<"i32">,
): Parts {
  const all = constant(dtypes.i32, 0).add(cdiv(k, packedUnit));
  if (group === undefined) return { count: all, along: (part) => part.mul(packedUnit) };
  const each = group / packedUnit;
  return {
    count: all.sub(index.mul(each)).minimum(each),
    along: (part) => index.mul(each).add(part).mul(packedUnit),
  };
}

/** The weights and what is stored of them: a layer of the arguments of a kernel. */
function layerRefs(
  argument: object,
  { batch, zero }: QuantizedSpec,
): { readonly [N in "x" | "b" | "bScale"]: Ref } & { readonly bZero: Ref | undefined } {
  const given = argument as { readonly [N in "x" | "b" | "bScale" | "bZero"]: Ref };
  const { layer } = argument as { readonly layer: Scalar<"i32"> };
  const own = (all: Ref): Ref => (batch === undefined ? all : all.at(layer));
  return {
    ...{ x: own(given.x), b: own(given.b), bScale: own(given.bScale) },
    bZero: zero ? own(given.bZero) : undefined,
  };
}

/** Stored numbers of a format: the least and the greatest. */
function rangeOf({ dtype, zero }: QuantizedSpec): {
  readonly least: number;
  readonly most: number;
} {
  const most = greatestWeight[dtype.name as WeightFormat];
  return { least: zero ? -most - 1 : -most, most };
}

/** The least and the greatest of some weights and 0: of each column, or in an only element of all of them. */
interface Extremes {
  readonly low: Tile<"f32">;
  readonly high: Tile<"f32">;
}

function extremesOf(part: Tile<"f32">, before: Extremes, isBlock: boolean): Extremes {
  const [lows, highs] = [part.min({ axis: 0 }), part.max({ axis: 0 })];
  return {
    low: before.low.minimum(isBlock ? lows.min({ axis: 0, keepDims: true }) : lows),
    high: before.high.maximum(isBlock ? highs.max({ axis: 0, keepDims: true }) : highs),
  };
}

/** Scales, and zero points as f32, of the extremes of weights. */
function arrivalCountsOf(weights: QuantizedSpec, { low, high }: Extremes) {
  const { least, most } = rangeOf(weights);
  const reach = weights.zero ? high.sub(low).div(most - least) : high.maximum(low.neg()).div(most);
  const scales = reach.cast(weights.scale);
  const divisor = scales.cast(dtypes.f32);
  const { shape } = divisor;
  const none = divisor.eq(full(dtypes.f32, shape, 0));
  const safe = none.select(full(dtypes.f32, shape, 1), divisor);
  const zero = low.div(safe).neg().add(least).round().minimum(most).maximum(least);
  return { scales, safe, zero };
}

function quantizeKernel(dtype: DType, weights: QuantizedSpec): KernelDefinition {
  const { own, k, n, layers } = ofKernel(weights);
  const { group, span } = weights;
  const isBlock = span > 1;
  const [width, shared] = isBlock ? [span, 1] : [columns, columns];
  const chunks = width / columns;
  const { least, most } = rangeOf(weights);
  return kernel(
    {
      name: "quantize_weights",
      grid: { layer: layers, i: group === undefined ? 1 : cdiv(k, group), j: cdiv(n, width) },
      inputs: { x: weightArray(dtype, own) },
      outputs: storedArrays(own),
    },
    (argument) => {
      const { i, j } = argument;
      const { x, b, bScale, bZero } = layerRefs(argument, weights);
      const { count, along } = partsOf(weights, k, i);
      const windowOf = (index: Scalar<"i32">): readonly [along: Slice, across: Slice] => {
        const part = chunks === 1 ? index : index.div(chunks);
        const chunk = chunks === 1 ? j : j.mul(chunks).add(index.sub(part.mul(chunks)));
        return [slice(along(part), packedUnit), slice(chunk.mul(columns), columns)];
      };
      const read = ([down, across]: ReturnType<typeof windowOf>): Tile<"f32"> =>
        x.at(down, across).load().cast(dtypes.f32);
      const start = zeros(dtypes.f32, [shared]);
      const range = loop(
        { to: count.mul(chunks), carry: { low: start, high: start } },
        (index, before) => extremesOf(read(windowOf(index)), before, isBlock),
      );
      const { scales, safe, zero } = arrivalCountsOf(weights, range);
      const place = (scale: Ref): Ref =>
        (group === undefined ? scale : scale.at(i)).at(slice(j.mul(shared), shared));
      place(bScale).store(scales);
      if (bZero !== undefined) place(bZero).store(zero.cast(weights.dtype));
      const row = (tile: Tile<"f32">): Tile<"f32"> => tile.reshape([1, shared]);
      loop({ to: count.mul(chunks) }, (index) => {
        const [down, across] = windowOf(index);
        const numbers = read([down, across]).div(row(safe));
        const whole = isInteger(weights.dtype) ? numbers.round() : numbers;
        const moved = weights.zero ? whole.add(row(zero)) : whole;
        const stored = moved.minimum(most).maximum(least).cast(weights.dtype);
        b.at(across, down).store(packed(stored).transpose());
      });
    },
  ) as unknown as KernelDefinition;
}

/** Groups that are parts of 128 elements along k: a block has 64 columns of these. */
function quantizeUnitsKernel(dtype: DType, weights: QuantizedSpec): KernelDefinition {
  const { own, k, n, layers } = ofKernel(weights);
  const { least, most } = rangeOf(weights);
  const each = scalesOfUnit(weights);
  const size = packedUnit / each;
  return kernel(
    {
      name: "quantize_weights",
      grid: { layer: layers, i: cdiv(k, packedUnit), j: cdiv(n, columns) },
      inputs: { x: weightArray(dtype, own) },
      outputs: storedArrays(own),
    },
    (argument) => {
      const { i, j } = argument;
      const { x, b, bScale, bZero } = layerRefs(argument, weights);
      const [along, across] = [
        slice(i.mul(packedUnit), packedUnit),
        slice(j.mul(columns), columns),
      ];
      const numbers = x.at(along, across).load().cast(dtypes.f32);
      const groups = numbers.reshape([each, size, columns]);
      const [low, high] = [groups.min({ axis: 1 }).minimum(0), groups.max({ axis: 1 }).maximum(0)];
      const { scales, safe, zero } = unitScales(weights, { low, high });
      const all = (tile: Tile<"f32">): Tile<"f32"> =>
        tile
          .reshape([each, 1, columns])
          .broadcastTo([each, size, columns])
          .reshape([packedUnit, columns]);
      const store = (to: Ref, tile: Tile): void => {
        const side = tile.transpose().reshape([columns * each]);
        to.at(i, slice(j.mul(columns * each), columns * each)).store(side);
      };
      store(bScale, scales);
      if (bZero !== undefined) store(bZero, zero.cast(weights.dtype));
      const divided = numbers.div(all(safe));
      const whole = isInteger(weights.dtype) ? divided.round() : divided;
      const moved = weights.zero ? whole.add(all(zero)) : whole;
      const stored = moved.minimum(most).maximum(least).cast(weights.dtype);
      b.at(across, along).store(packed(stored).transpose());
    },
  ) as unknown as KernelDefinition;
}

/** Scales of groups, those that are powers of two rounded up. */
function unitScales(weights: QuantizedSpec, extremes: Extremes) {
  if (weights.scale !== dtypes.f8e8m0fnu) return arrivalCountsOf(weights, extremes);
  const { most } = rangeOf(weights);
  const largest = extremes.high.maximum(extremes.low.neg()).div(most);
  const words = largest.bitcast(dtypes.u32);
  const above = words.and(0x7fffff).gt(0).cast(dtypes.u32);
  // 2^-127 is no normal number: the only one of its bits with a fraction.
  const next = words.gt(0x400000).select(words.shr(23).add(above).minimum(254), 0);
  const codes = largest.isNan().select(255, next);
  const scales = codes.cast(dtypes.u8).bitcast(dtypes.f8e8m0fnu);
  const safe = scales.cast(dtypes.f32);
  return { scales: scales, safe, zero: safe };
}

function dequantizeKernel(dtype: DType, weights: QuantizedSpec): KernelDefinition {
  const { own, k, n, layers } = ofKernel(weights);
  return kernel(
    {
      name: "dequantize_weights",
      grid: { layer: layers, i: cdiv(k, packedUnit), j: cdiv(n, columns) },
      inputs: storedArrays(own),
      outputs: { x: weightArray(dtype, own) },
    },
    (argument) => {
      const { i, j } = argument;
      const { x, b, bScale, bZero } = layerRefs(argument, weights);
      const [down, left] = [i.mul(packedUnit), j.mul(columns)];
      const [along, across] = [slice(down, packedUnit), slice(left, columns)];
      const stored = b.at(across, along).load().transpose();
      const tileOf = (scales: Ref): Tile => scaleTile(weights, scales, down, left, columns);
      const zero = bZero === undefined ? undefined : tileOf(bZero);
      const numbers = dequantized(stored, tileOf(bScale), zero, weights);
      x.at(along, across).store(numbers.cast(dtype));
    },
  ) as unknown as KernelDefinition;
}
