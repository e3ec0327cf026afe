/**
 * Layer norm and RMS norm along the last axis, of x or of the sum of x and a residual:
 *
 *   layer norm    (h − mean) / sqrt(variance + epsilon) · scale + bias
 *   RMS norm       h         / sqrt(mean of h² + epsilon) · scale
 *
 * Deviations are taken from the mean of a block's elements and merged by Chan's formula, so nothing cancels.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import type { ElementNameOf, ScaledFormat, ScaleNameOf } from "../../formats/scaled/formats.ts";
import type { ScaleRounding } from "../../formats/scaled/scale-rounding.ts";
import { tensor, constant, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, Scalar, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import {
  givenArray,
  refused,
  requireFields,
  requireFloat,
  requireShape,
} from "../support/arguments.ts";
import type { Fields, FormatOf, GivenArray } from "../support/arguments.ts";
import { computeFormat, computed, joinedSums, statistic } from "../support/numbers.ts";
import { requiredFormat, requiredRounding, requiredStorage } from "./block-quantization.ts";
import type { BlockQuantization } from "./block-quantization.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { Piece, RowArray, RowOp, RowTiles, Statistics } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";

/** How results of a norm are quantised: what `quantizeBlocks` would make of `out`, bit for bit. */
export interface NormQuantization {
  /** The format, such as `mxfp8e4m3`: any whose blocks lie in one row. nvfp4 has an input globalScale, of [1]. */
  readonly format: ScaledFormat;
  /** How scales that are powers of two are rounded; "roundUp" by default. */
  readonly scaleRounding?: ScaleRounding;
  /** A code a byte, as programs keep them, instead of elements of the format. */
  readonly out?: DType<"u8">;
}

/** What `rmsNorm` is made for. */
export interface NormSpec {
  /** A format is an array of [m, n]; rows lie along the last axis. */
  readonly x: GivenArray<FloatName>;
  /** Is added to x first, and the sum, rounded to its format, is a result too. */
  readonly residual?: GivenArray<FloatName>;
  /** Multiplies results, one number a column. */
  readonly scale?: GivenArray<FloatName>;
  /** Is added under the root; 1e-5 by default. */
  readonly epsilon?: number;
  /** The format of the result, or that to which results are rounded before they are quantised; x's own by default. */
  readonly out?: DType<FloatName>;
  /** Stores `out` in a format with scales along rows, in the same launch; the scales are the result outScale. */
  readonly quantize?: NormQuantization;
  /** Whether what the gradient needs is a result too: `mean` of layer norm, and `inverseDeviation`. */
  readonly statistics?: boolean;
}

/** What `layerNorm` is made for. */
export interface LayerNormSpec extends NormSpec {
  /** Is added to results, one number a column. */
  readonly bias?: GivenArray<FloatName>;
}

type Optional<S, N extends string> = S extends {
  readonly [K in N]: infer G extends GivenArray;
}
  ? { readonly [K in N]: TensorSpec<FormatOf<G>> }
  : Empty;
type FormatNameOf<S> = S extends {
  readonly quantize: { readonly format: ScaledFormat<infer N> };
}
  ? N
  : never;
type ResultOf<S> = [FormatNameOf<S>] extends [never]
  ? { readonly out: TensorSpec<OutFormat<S>> }
  : {
      readonly out: TensorSpec<ElementNameOf<FormatNameOf<S>>>;
      readonly outScale: TensorSpec<ScaleNameOf<FormatNameOf<S>>>;
    };
type GlobalScaleOf<S> = [FormatNameOf<S>] extends ["nvfp4"]
  ? [FormatNameOf<S>] extends [never]
    ? Empty
    : { readonly globalScale: TensorSpec<"f32"> }
  : Empty;
type OutFormat<S> = S extends { readonly out: DType<infer D> }
  ? D
  : S extends { readonly x: infer G }
    ? FormatOf<G>
    : never;
type SumOf<S> = S extends { readonly residual: infer G extends GivenArray }
  ? { readonly sum: TensorSpec<FormatOf<G>> }
  : Empty;
type StatisticsOf<S, Names extends string> = S extends {
  readonly statistics: true;
}
  ? { readonly [N in Names]: TensorSpec<"f32" | "f64"> }
  : Empty;

/** The operation that `layerNorm` and `rmsNorm` make. */
export type NormOperation<S extends LayerNormSpec, Names extends string> = Operation<
  { readonly x: TensorSpec<FormatOf<S["x"]>> } & Optional<S, "residual"> &
    Optional<S, "scale"> &
    Optional<S, "bias"> &
    GlobalScaleOf<S>,
  ResultOf<S> & SumOf<S> & StatisticsOf<S, Names>,
  Empty,
  RowConfiguration
>;

/** Rows less their mean, over their deviation. */
export function layerNorm<const S extends LayerNormSpec>(
  spec: S,
): NormOperation<S, "mean" | "inverseDeviation"> {
  const location = captureLocation();
  requireFields("layerNorm", spec, { ...normFields, bias: "array" }, location);
  return normOf("layerNorm", spec, deviations, location) as unknown as NormOperation<
    S,
    "mean" | "inverseDeviation"
  >;
}

/** Rows over the root of the mean of their squares. */
export function rmsNorm<const S extends NormSpec>(spec: S): NormOperation<S, "inverseDeviation"> {
  const location = captureLocation();
  requireFields("rmsNorm", spec, normFields, location);
  return normOf("rmsNorm", spec, squares, location) as unknown as NormOperation<
    S,
    "inverseDeviation"
  >;
}

const normFields: Fields = {
  x: "array",
  residual: "array",
  scale: "array",
  epsilon: "number",
  out: "format",
  quantize: "settings",
  statistics: "flag",
};

/** What differs between the two norms. */
interface Norm {
  readonly names: readonly string[];
  readonly measure: (h: Tile<"f32">, piece: Piece) => Statistics;
  readonly merge: RowOp["merge"];
  readonly mergeAll: RowOp["mergeAll"];
  readonly mean: (statistics: Statistics) => Tile<"f32"> | undefined;
  /** The mean of squared deviations. */
  readonly variance: (statistics: Statistics, total: Scalar<"f32">) => Tile<"f32">;
}

const deviations: Norm = {
  names: ["count", "mean", "squares"],
  measure: (h, piece) => {
    const own = piece.count as Tile<"f32">;
    const mean = h.sum({ axis: 1, keepDims: true }).div(own.maximum(1));
    const off = piece.within(h.sub(mean), 0) as Tile<"f32">;
    const count = own.broadcastTo(mean.shape);
    return { count, mean, squares: off.mul(off).sum({ axis: 1, keepDims: true }) };
  },
  merge: (left, right) => {
    const [n, more] = [statistic(left, "count"), statistic(right, "count")];
    const count = n.add(more);
    const apart = statistic(right, "mean").sub(statistic(left, "mean"));
    const share = more.div(count.maximum(1));
    const between = apart.mul(apart).mul(n).mul(share);
    return {
      count,
      mean: statistic(left, "mean").add(apart.mul(share)),
      squares: statistic(left, "squares").add(statistic(right, "squares")).add(between),
    };
  },
  mergeAll: (pieces) => {
    const [counts, means] = [statistic(pieces, "count"), statistic(pieces, "mean")];
    const count = counts.sum({ axis: 0, keepDims: true });
    const mean = counts.mul(means).sum({ axis: 0, keepDims: true }).div(count.maximum(1));
    const off = means.sub(mean);
    const squares = statistic(pieces, "squares").add(off.mul(off).mul(counts));
    return { count, mean, squares: squares.sum({ axis: 0, keepDims: true }) };
  },
  mean: (statistics) => statistic(statistics, "mean"),
  variance: (statistics, total) => statistic(statistics, "squares").div(total),
};

const squares: Norm = {
  names: ["squares"],
  measure: (h) => ({ squares: h.mul(h).sum({ axis: 1, keepDims: true }) }),
  merge: (left, right) => ({
    squares: statistic(left, "squares").add(statistic(right, "squares")),
  }),
  mergeAll: joinedSums,
  mean: () => undefined,
  variance: (statistics, total) => statistic(statistics, "squares").div(total),
};

function normOf(name: string, spec: LayerNormSpec, norm: Norm, location: Location): Operation {
  const x = givenArray("x", name, spec.x, [dim("m"), dim("n")], location);
  const columns = x.shape.slice(-1);
  const optional = (own: "residual" | "scale" | "bias", shape: TensorSpec["shape"]) => {
    const given = spec[own];
    if (given === undefined) return undefined;
    const found = givenArray(own, name, given, shape, location);
    requireFloat(own, name, found, location);
    requireShape(own, name, found, shape, location);
    return found;
  };
  requireFloat("x", name, x, location);
  const { epsilon = 1e-5 } = spec;
  if (typeof epsilon !== "number" || !(epsilon >= 0))
    throw refused(
      "TW9904",
      `${name} cannot take this epsilon`,
      "a number from 0 on",
      optionText(epsilon),
      location,
    );
  const inputs = {
    residual: optional("residual", x.shape),
    scale: optional("scale", columns),
    bias: optional("bias", columns),
  };
  // A sum of f64 is one of f64.
  const isDouble = inputs.residual?.dtype === dtypes.f64;
  const compute = computeFormat(isDouble ? dtypes.f64 : x.dtype);
  const rounded = tensor(spec.out ?? x.dtype, x.shape);
  requireFloat("out", name, rounded, location);
  const quantization = quantizationOf(name, spec.quantize, location);
  const out = tensor(quantization?.stored ?? rounded.dtype, x.shape);
  const rows = tensor(compute, x.shape.slice(0, -1));
  const withMean = spec.statistics === true && norm === deviations;
  const specs = defined({
    x,
    ...inputs,
    out,
    sum: inputs.residual && tensor(inputs.residual.dtype, x.shape),
    mean: withMean ? rows : undefined,
    inverseDeviation: spec.statistics === true ? rows : undefined,
  });
  const made = { rounded: rounded.dtype, quantization };
  const op = normOp(name, norm, specs, made, compute, epsilon);
  return rowOperation({ op, specs, of: x, axis: x.shape.length - 1 }, spec);
}

/** What is made of results. */
interface Made {
  /** The format that they are rounded to. */
  readonly rounded: DType;
  readonly quantization: BlockQuantization | undefined;
}

function quantizationOf(
  name: string,
  given: NormQuantization | undefined,
  location: Location,
): BlockQuantization | undefined {
  if (given === undefined) return undefined;
  requireFields(
    `quantize of ${name}`,
    given,
    { format: "settings", scaleRounding: "choice", out: "format" },
    location,
  );
  const record = requiredFormat(name, given.format, location);
  if (record.block[0] > 1)
    throw refused(
      "TW9901",
      `rows of ${name} lie in no blocks of several`,
      "a format whose blocks lie in one row, such as fp8Block1x128",
      record.name,
      location,
    );
  return {
    record,
    rounding: requiredRounding(name, given.scaleRounding, location),
    stored: requiredStorage(name, given.out, record, location),
  };
}

function defined(specs: { readonly [name: string]: TensorSpec | undefined }): {
  readonly [name: string]: TensorSpec;
} {
  const entries = Object.entries(specs).flatMap(([name, spec]) =>
    spec === undefined ? [] : [[name, spec] as const],
  );
  return Object.fromEntries(entries);
}

const roles: { readonly [name: string]: Pick<RowArray, "role" | "per" | "isLate"> } = {
  x: { role: "input", per: "element" },
  residual: { role: "input", per: "element" },
  scale: { role: "input", per: "column", isLate: true },
  bias: { role: "input", per: "column", isLate: true },
  out: { role: "output", per: "element" },
  sum: { role: "output", per: "element" },
  mean: { role: "output", per: "row" },
  inverseDeviation: { role: "output", per: "row" },
};

/** Whether there is one input of rows and one per-column input that is no wider: 16 warps then have registers for two rows of 16,384 elements. */
function isLone(arrays: readonly RowArray[]): boolean {
  const inputs = arrays.filter(({ role }) => role === "input");
  const columns = inputs.filter(({ per }) => per === "column");
  return (
    inputs.length === 2 && columns.length === 1 && inputs.every(({ dtype }) => dtype.bits <= 16)
  );
}

function normOp(
  name: string,
  norm: Norm,
  specs: { readonly [name: string]: TensorSpec },
  { rounded, quantization }: Made,
  compute: DType<"f32">,
  epsilon: number,
): RowOp {
  const arrays = Object.entries(specs).map(([own, { dtype }]): RowArray => {
    const role = roles[own];
    if (role === undefined) throw new Error(`a norm has no ${own}`);
    return { name: own, dtype, ...role };
  });
  /** x, or its sum with the residual in the residual's format. */
  const input = ({ x, residual }: RowTiles): Tile | undefined =>
    residual === undefined
      ? x
      : computed(x, compute).add(computed(residual, compute)).cast(residual.dtype);
  const inverse = (statistics: Statistics, total: Scalar): Tile<"f32"> =>
    norm
      .variance(statistics, total as Scalar<"f32">)
      .add(constant(compute, epsilon))
      .rsqrt();
  return {
    name: name === "layerNorm" ? "layer_norm" : "rms_norm",
    arrays,
    ...(quantization !== undefined && { quantization }),
    compute,
    registerBytes: 128,
    isRegisterBound: isLone(arrays),
    cooperativePieces: 1,
    statistics: norm.names,
    measure: (tiles, piece) => norm.measure(computed(input(tiles), compute), piece),
    merge: norm.merge,
    mergeAll: norm.mergeAll,
    results: (tiles, statistics, piece) => {
      const h = input(tiles);
      const mean = norm.mean(statistics);
      const value = computed(h, compute);
      const off = mean === undefined ? value : value.sub(mean);
      const normal = off.mul(inverse(statistics, piece.total));
      const scaled =
        tiles["scale"] === undefined ? normal : normal.mul(computed(tiles["scale"], compute));
      const moved =
        tiles["bias"] === undefined ? scaled : scaled.add(computed(tiles["bias"], compute));
      return { out: moved.cast(rounded), ...(h !== undefined && { sum: h }) };
    },
    rowResults: (_, statistics, total) => {
      const mean = norm.mean(statistics);
      return {
        inverseDeviation: inverse(statistics, total),
        ...(mean !== undefined && { mean }),
      };
    },
  };
}
