/**
 * Gradients of the norms, from what the forward operation was given and the statistics that it gave:
 *
 *   g = dOut · scale, h = (x − mean) · inverseDeviation         of RMS norm without the mean
 *   dx = inverseDeviation · (g − mean of g − h · mean of (g · h))
 *   dScale = Σ over rows of dOut · h,   dBias = Σ over rows of dOut
 *
 * One launch computes dx and the partial sums of each block, and a second one adds these up (persistent-rows.ts). Rows too long for registers
 * to hold them beside partial sums are read twice: for dx, and for the sums. Either way the order of all sums is fixed.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, FloatName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Scalar, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { planOver } from "../reduce/reduction-axes.ts";
import type { ReduceConfiguration } from "../reduce/reduce-kernel.ts";
import type { Reducer } from "../reduce/reducer.ts";
import { givenArray, requireFields, requireFloat, requireShape } from "../support/arguments.ts";
import type { FormatOf, GivenArray } from "../support/arguments.ts";
import { computeFormat, computed, joinedSums, statistic } from "../support/numbers.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { RowArray, RowOp, RowTiles } from "./row-op.ts";
import { planRows, rowAxes } from "./row-plan.ts";
import { choosePersistentRows, planPersistentRows } from "./persistent-rows.ts";
import type { PersistentRowsConfiguration } from "./persistent-rows.ts";

/** What `rmsNormBackward` is made for. */
export interface NormBackwardSpec {
  /** What was normalised: x, or its sum with the residual. A format is an array of [m, n]. */
  readonly x: GivenArray<FloatName>;
  /** The gradient to the result; of x's format by default. */
  readonly dOut?: GivenArray<FloatName>;
  /** The scale that results were multiplied by; its gradient is a result where it is given. */
  readonly scale?: GivenArray<FloatName>;
}

/** What `layerNormBackward` is made for. */
export interface LayerNormBackwardSpec extends NormBackwardSpec {
  /** Whether the gradient to the bias is a result. */
  readonly bias?: boolean;
}

type ScaleOf<S> = S extends { readonly scale: infer G extends GivenArray }
  ? { readonly scale: TensorSpec<FormatOf<G>> }
  : Empty;
type ScaleGradient<S> = S extends { readonly scale: GivenArray }
  ? { readonly dScale: TensorSpec<"f32" | "f64"> }
  : Empty;
type BiasGradient<S> = S extends { readonly bias: true }
  ? { readonly dBias: TensorSpec<"f32" | "f64"> }
  : Empty;
type GradientFormat<S> = S extends { readonly dOut: infer G extends GivenArray }
  ? FormatOf<G>
  : S extends { readonly x: infer G }
    ? FormatOf<G>
    : never;

/** The operation that `layerNormBackward` and `rmsNormBackward` make. */
export type NormBackwardOperation<S extends NormBackwardSpec, Rows extends string> = Operation<
  {
    readonly x: TensorSpec<FormatOf<S["x"]>>;
    readonly dOut: TensorSpec<GradientFormat<S>>;
  } & ScaleOf<S> & { readonly [R in Rows]: TensorSpec<"f32" | "f64"> },
  { readonly dx: TensorSpec<FormatOf<S["x"]>> } & ScaleGradient<S> & BiasGradient<S>,
  Empty,
  NormBackwardConfiguration
>;

/** Rows with their sums in one pass; or rows, then sums over their columns. */
export type NormBackwardConfiguration =
  | PersistentRowsConfiguration
  | { readonly rows: RowConfiguration; readonly columns: ReduceConfiguration | undefined };

/** The gradients of `layerNorm`; inputs `x`, `dOut`, `scale`, and `mean` and `inverseDeviation` of the forward operation. */
export function layerNormBackward<const S extends LayerNormBackwardSpec>(
  spec: S,
): NormBackwardOperation<S, "mean" | "inverseDeviation"> {
  const location = captureLocation();
  const fields = { x: "array", dOut: "array", scale: "array", bias: "flag" } as const;
  requireFields("layerNormBackward", spec, fields, location);
  return backward("layerNormBackward", spec, true, location) as never;
}

/** The gradients of `rmsNorm`; inputs `x`, `dOut`, `scale`, and `inverseDeviation` of the forward operation. */
export function rmsNormBackward<const S extends NormBackwardSpec>(
  spec: S,
): NormBackwardOperation<S, "inverseDeviation"> {
  const location = captureLocation();
  requireFields("rmsNormBackward", spec, { x: "array", dOut: "array", scale: "array" }, location);
  return backward("rmsNormBackward", spec, false, location) as never;
}

interface Gradients {
  readonly x: TensorSpec;
  readonly inputs: { readonly [name: string]: TensorSpec };
  readonly outputs: { readonly [name: string]: TensorSpec };
  readonly compute: DType<"f32">;
}

function backward(
  name: string,
  spec: LayerNormBackwardSpec,
  withMean: boolean,
  location: Location,
): Operation {
  const x = givenArray("x", name, spec.x, [dim("m"), dim("n")], location);
  const dOut = givenArray("dOut", name, spec.dOut ?? x.dtype, x.shape, location);
  const columns = x.shape.slice(-1);
  const scale = spec.scale && givenArray("scale", name, spec.scale, columns, location);
  for (const [own, each] of Object.entries({ x, dOut, ...(scale && { scale }) }))
    requireFloat(own, name, each, location);
  requireShape("dOut", name, dOut, x.shape, location);
  if (scale !== undefined) requireShape("scale", name, scale, columns, location);
  const compute = computeFormat(x.dtype);
  const rows = tensor(compute, x.shape.slice(0, -1));
  const inputs = {
    x,
    dOut,
    ...(scale && { scale }),
    ...(withMean && { mean: rows }),
    inverseDeviation: rows,
  };
  const outputs = {
    dx: tensor(x.dtype, x.shape),
    ...(scale && { dScale: tensor(compute, columns) }),
    ...(spec.bias === true && { dBias: tensor(compute, columns) }),
  };
  return gradientOperation({ x, inputs, outputs, compute });
}

const roles: { readonly [name: string]: Pick<RowArray, "role" | "per"> } = {
  x: { role: "input", per: "element" },
  dOut: { role: "input", per: "element" },
  scale: { role: "input", per: "column" },
  mean: { role: "input", per: "row" },
  inverseDeviation: { role: "input", per: "row" },
  dx: { role: "output", per: "element" },
};

function gradientOperation({ x, inputs, outputs, compute }: Gradients): Operation {
  const name = "mean" in inputs ? "layer_norm_backward" : "rms_norm_backward";
  const { dx, ...sums } = outputs;
  if (dx === undefined) throw new Error("there is a gradient to x");
  const specs: { readonly [name: string]: TensorSpec } = { ...inputs, dx };
  const op = gradientOp(name, specs, compute);
  const problem = { op, specs, of: x, axis: x.shape.length - 1 };
  const kernels = new Map<string, KernelDefinition>();
  const wanted = Object.keys(sums);
  const summing = columnSums(`${name}_sums`, inputs, sums, x, compute);
  return operation({
    name,
    inputs: { ...inputs },
    outputs: { ...outputs },
    plan: (dimensions, target): Planned<NormBackwardConfiguration> => {
      const axes = rowAxes(problem, dimensions);
      const columnTerms = { names: wanted, terms: sumTerms(wanted, compute) };
      const once =
        wanted.length > 0 ? choosePersistentRows(op, columnTerms, axes, target) : undefined;
      if (once !== undefined) return planPersistentRows(op, columnTerms, axes, once, kernels);
      const rows = planRows(problem, kernels, dimensions, target);
      const columns = summing?.(dimensions, target, kernels);
      const all = [rows, ...(columns === undefined ? [] : [columns])];
      return {
        configuration: { rows: rows.configuration, columns: columns?.configuration },
        source: "heuristic",
        scratch: { ...rows.scratch, ...columns?.scratch },
        launches: () =>
          all.flatMap(({ launches }) => (typeof launches === "function" ? launches() : launches)),
      };
    },
  });
}

/** x less its mean, over its deviation. */
function normalized(tiles: RowTiles, compute: DType<"f32">): Tile<"f32"> {
  const x = computed(tiles["x"], compute);
  const off = tiles["mean"] === undefined ? x : x.sub(computed(tiles["mean"], compute));
  return off.mul(computed(tiles["inverseDeviation"], compute));
}

function gradientOp(
  name: string,
  specs: { readonly [name: string]: TensorSpec },
  compute: DType<"f32">,
): RowOp {
  const arrays = Object.entries(specs).map(([own, { dtype }]): RowArray => {
    const role = roles[own];
    if (role === undefined) throw new Error(`the gradient of a norm has no ${own}`);
    return { name: own, dtype, ...role };
  });
  const scaled = (tiles: RowTiles): Tile<"f32"> => {
    const dOut = computed(tiles["dOut"], compute);
    return tiles["scale"] === undefined ? dOut : dOut.mul(computed(tiles["scale"], compute));
  };
  const hasMean = "mean" in specs;
  const names = hasMean ? ["first", "second"] : ["second"];
  return {
    name,
    arrays,
    compute,
    registerBytes: 128,
    statistics: names,
    // dOut is 0 beyond the end of rows, which adds nothing.
    measure: (tiles) => {
      const g = scaled(tiles);
      const second = g.mul(normalized(tiles, compute)).sum({ axis: 1, keepDims: true });
      return hasMean ? { first: g.sum({ axis: 1, keepDims: true }), second } : { second };
    },
    merge: (left, right) =>
      Object.fromEntries(
        names.map((own) => [own, statistic(left, own).add(statistic(right, own))]),
      ),
    mergeAll: joinedSums,
    results: (tiles, statistics, piece) => {
      const total = piece.total as Scalar<"f32">;
      const h = normalized(tiles, compute);
      const along = h.mul(statistic(statistics, "second").div(total));
      const g = scaled(tiles);
      const even = hasMean ? g.sub(statistic(statistics, "first").div(total)) : g;
      const dx = even.sub(along).mul(computed(tiles["inverseDeviation"], compute));
      return { dx: dx.cast(specs["dx"]?.dtype ?? dtypes.f32) };
    },
  };
}

/** The terms of the sums over rows. */
function sumTerms(wanted: readonly string[], compute: DType<"f32">): (tiles: RowTiles) => RowTiles {
  return (tiles) => {
    const dOut = computed(tiles["dOut"], compute);
    return {
      ...(wanted.includes("dBias") && { dBias: dOut }),
      ...(wanted.includes("dScale") && { dScale: dOut.mul(normalized(tiles, compute)) }),
    };
  };
}

/** The requested sums over rows; undefined if there are none. */
function columnSums(
  name: string,
  inputs: { readonly [name: string]: TensorSpec },
  sums: { readonly [name: string]: TensorSpec },
  x: TensorSpec,
  compute: DType<"f32">,
) {
  const wanted = Object.keys(sums);
  if (wanted.length === 0) return undefined;
  const withScale = wanted.includes("dScale");
  const used = withScale ? ["x", "dOut", "mean", "inverseDeviation"] : ["dOut"];
  const present = used.filter((own) => own in inputs);
  // Per-row inputs broadcast along columns.
  const specs = Object.fromEntries(
    present.flatMap((own) => {
      const spec = inputs[own];
      if (spec === undefined) return [];
      const perRow = roles[own]?.per === "row";
      return [[own, perRow ? { ...spec, shape: [...spec.shape, 1] } : spec]];
    }),
  );
  const reducer: Reducer = {
    state: Object.fromEntries(wanted.map((own) => [own, { dtype: compute, identity: 0 }])),
    lift: sumTerms(wanted, compute),
    merge: (left, right) =>
      Object.fromEntries(
        wanted.map((own) => [own, statistic(left, own).add(statistic(right, own))]),
      ),
    collapse: (state, axes) =>
      Object.fromEntries(
        wanted.map((own) => [own, statistic(state, own).sum({ axis: axes, keepDims: true })]),
      ),
    finish: (state) => state,
  };
  const arrays = [
    ...present.map((own) => ({
      name: own,
      dtype: specs[own]?.dtype ?? compute,
      role: "input" as const,
    })),
    ...wanted.map((own) => ({ name: own, dtype: compute, role: "output" as const })),
  ];
  const axes = x.shape.slice(0, -1).map((_, axis) => axis);
  return (
    dimensions: { readonly [name: string]: number },
    target: Parameters<typeof planOver>[4],
    kernels: Map<string, KernelDefinition>,
  ) =>
    planOver(
      { name, arrays, reducer },
      { specs, shape: x.shape, axes },
      kernels,
      dimensions,
      target,
    );
}
