/**
 * `attentionBackward`: the gradients of attention, computed again from q, k, v and the logarithms that the forward pass
 * gave, so that no scores are kept:
 *
 *   launch 1   out, dOut                         ──▶ delta [b, h, s], the sum over e of out · dOut
 *   launch 2   rows of q, over the columns they see  ──▶ dq = scale · Σ ds · k
 *   launch 3   columns of k, over the rows that see them  ──▶ dk = scale · Σ dsᵀ · q,  dv = Σ pᵀ · dOut
 *
 *   p = e^(score − logSumExp)     ds = p · (dOut · vᵀ − delta)
 *
 *   launch 4   tiles of the bias, over what they are the same for, where asked  ──▶ dBias = Σ ds
 *
 * Every element of a gradient is summed by one block in one order, so results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, Empty } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { refused, requireFields } from "../support/arguments.ts";
import type { FormatOf, GivenArray } from "../support/arguments.ts";
import { sizesOf } from "./attention.ts";
import type { KeyInput, OffsetInputs, SegmentInputs } from "./attention.ts";
import { biasGradient } from "./bias-gradient.ts";
import { columnGradients, deltaKernel, rowGradients } from "./backward-kernels.ts";
import { gradientTiles, warpSpecializedGradients } from "./backward-warp-specialized.ts";
import {
  chooseGradients,
  plainGradientTiles,
  requireGradients,
  warpSpecializedGradientProblem,
} from "./choose-gradients.ts";
import type { GradientConfiguration, PlainGradients } from "./configuration.ts";
import type { AttentionForm } from "./dimensions.ts";
import { gradientDivision } from "./gradient-partition.ts";
import { finishGradients, gradientHead, gradientRows, prepareGradients } from "./gradient-sums.ts";
import { attentionFields, problemOf } from "./problem.ts";
import { sinkGradientsOfRows, sinkGradientsOfTiles } from "./sink-gradients.ts";
import type { AttentionProblem, AttentionSpec } from "./problem.ts";
import { visitLists, visitRanks } from "./block-mask.ts";
import type { VisitLists } from "./block-mask.ts";
import { tileCounts } from "./block-mask-rules.ts";

/** What the forward pass was told. */
export interface AttentionBackwardSpec extends Pick<
  AttentionSpec,
  | "score"
  | "sinks"
  | "q"
  | "k"
  | "v"
  | "causal"
  | "window"
  | "bias"
  | "mask"
  | "softCap"
  | "dropout"
  | "scale"
  | "offsets"
  | "segmentIds"
> {
  /** By how much the result of `score` changes with the score that it is given. */
  readonly slope?: AttentionSpec["score"];
  /** Whether the gradient of the bias is a result, too. */
  readonly dBias?: boolean;
  /** Whether results repeat bit for bit. */
  readonly deterministic?: boolean;
  /** Instead of what would be chosen. */
  readonly configuration?: GradientConfiguration;
}

type Inputs<S extends AttentionBackwardSpec> = {
  readonly q: TensorSpec<FormatOf<S["q"]>>;
  readonly k: TensorSpec<FormatOf<S["k"]>>;
  readonly v: TensorSpec<FormatOf<S["v"]>>;
  readonly out: TensorSpec<FormatOf<S["q"]>>;
  readonly dOut: TensorSpec<FormatOf<S["q"]>>;
  readonly logSumExp: TensorSpec<"f32">;
} & (S extends { readonly bias: TensorSpec } ? { readonly bias: S["bias"] } : Empty) &
  (S extends { readonly sinks: GivenArray } ? { readonly sinks: TensorSpec<"f32"> } : Empty) &
  KeyInput<S> &
  SegmentInputs<S> &
  OffsetInputs<S>;

/** The operation that `attentionBackward` makes. */
export type AttentionBackward<S extends AttentionBackwardSpec = AttentionBackwardSpec> = Operation<
  Inputs<S>,
  {
    readonly dq: TensorSpec<FormatOf<S["q"]>>;
    readonly dk: TensorSpec<FormatOf<S["k"]>>;
    readonly dv: TensorSpec<FormatOf<S["v"]>>;
  } & (S extends { readonly sinks: GivenArray } ? { readonly dSinks: TensorSpec<"f32"> } : Empty) &
    (S extends { readonly bias: TensorSpec; readonly dBias: true }
      ? { readonly dBias: S["bias"] }
      : Empty),
  Empty,
  GradientConfiguration
>;

const { q, k, v, causal, window, bias, mask, softCap, scale, dropout } = attentionFields;
const { score, sinks, offsets, segmentIds, configuration } = attentionFields;
const fields = {
  ...{ q, k, v, causal, window, bias, mask, softCap, scale, dropout },
  ...{ score, sinks, offsets, segmentIds, configuration },
  slope: "function",
  dBias: "flag",
  deterministic: "flag",
} as const;

/** The gradients of q, k and v, from the gradient of the result and what the forward pass gave. */
export function attentionBackward<const S extends AttentionBackwardSpec>(
  spec: S,
): AttentionBackward<S> {
  const location = captureLocation();
  requireFields("attentionBackward", spec, fields, location);
  requireSlope(spec, location);
  requireBias(spec, location);
  const { slope } = spec;
  const problem = { ...problemOf({ ...spec, logSumExp: true }, location), slope };
  const { out, logSumExp, qOffsets, kOffsets, querySegmentIds, keyValueSegmentIds } = problem;
  const gradientOf = (name: "q" | "k" | "v") => tensor(problem[name].dtype, problem[name].shape);
  return libraryOperation(
    {
      name: "attention_backward",
      inputs: {
        ...{ q: problem.q, k: problem.k, v: problem.v, out, dOut: tensor(out.dtype, out.shape) },
        ...(logSumExp && { logSumExp }),
        ...(problem.bias && { bias: problem.bias }),
        ...(problem.sinks && { sinks: problem.sinks }),
        ...(problem.key && { key: problem.key }),
        ...(qOffsets && kOffsets && { qOffsets, kOffsets }),
        ...(querySegmentIds && keyValueSegmentIds && { querySegmentIds, keyValueSegmentIds }),
      },
      outputs: {
        ...{ dq: gradientOf("q"), dk: gradientOf("k"), dv: gradientOf("v") },
        ...(problem.sinks && { dSinks: problem.sinks }),
        ...(spec.dBias === true && problem.bias && { dBias: problem.bias }),
      },
      plan: (dimensions, target) => planOf(problem, spec, dimensions, target, location),
    },
    spec,
  ) as unknown as AttentionBackward<S>;
}

/** A score function and its slope come together. */
function requireSlope({ score: own, slope }: AttentionBackwardSpec, location: Location): void {
  if ((own === undefined) === (slope === undefined)) return;
  throw refused(
    "TW9905",
    "the gradients of attention need a score function and its slope",
    "score and slope, or neither",
    own === undefined ? "slope alone" : "score alone",
    location,
  );
}

/** The gradient of a bias is that of one there is. */
function requireBias({ dBias, bias: own }: AttentionBackwardSpec, location: Location): void {
  if (dBias !== true || own !== undefined) return;
  throw refused(
    "TW9902",
    "the gradients of attention have none of a bias that is not there",
    "bias and dBias, or no dBias",
    "dBias alone",
    location,
  );
}

function planOf(
  problem: AttentionProblem,
  { configuration: given, deterministic = false, dBias = false }: AttentionBackwardSpec,
  dimensions: { readonly [name: string]: number },
  target: Target,
  location: Location,
): Planned<GradientConfiguration> {
  const sizes = sizesOf(problem, dimensions, location);
  const form: AttentionForm = { problem, sizes, location };
  const slow = warpSpecializedGradientProblem(problem, sizes, target);
  if (given !== undefined) requireGradients(given, slow, location);
  const configuration = given ?? chooseGradients(problem, sizes, slow === undefined);
  const ofBias = dBias ? biasLaunches(form, configuration) : undefined;
  const { scratch, launches } =
    configuration.kernel === "warp-specialized"
      ? warpSpecializedLaunches(form, deterministic)
      : plainLaunches(form, configuration);
  const isSlow = slow !== undefined && configuration.kernel === "plain";
  const shape = configuration.kernel === "plain" ? configuration : gradientTiles(sizes);
  return {
    configuration,
    source: given === undefined ? "heuristic" : "given",
    notes: isSlow ? [`the plain kernels are used: ${slow}`] : [],
    ...(sizes.ends === 0 && { tiles: () => tileCounts(form, shape, "columns") }),
    scratch: { ...scratch, ...ofBias?.scratch },
    launches: () => [...launches(), ...(ofBias?.launches() ?? [])],
  };
}

interface Launches {
  readonly scratch: NonNullable<Planned["scratch"]>;
  readonly launches: () => readonly PlannedLaunch[];
}

function given(...names: readonly string[]): { readonly [name: string]: PlannedArgument } {
  return Object.fromEntries(names.map((name) => [name, { argument: name }]));
}

function launchSizes({ b, s, t, h, kv, ends }: AttentionForm["sizes"]) {
  return { b, s, t, h, kv, ...(ends > 0 && { ends }) };
}

/** The inputs of the kernels of gradients that some have. */
function optionalArrays(problem: AttentionProblem): readonly string[] {
  const names = [
    ...(["bias", "key", "qOffsets", "kOffsets"] as const),
    ...(["querySegmentIds", "keyValueSegmentIds"] as const),
  ];
  return names.filter((name) => problem[name] !== undefined);
}

/** One kernel for all three gradients, which adds up dq in memory; one before and one after it. */
function warpSpecializedLaunches(form: AttentionForm, deterministic: boolean): Launches {
  const rows = gradientRows;
  const { problem, sizes } = form;
  const { b, s, h, d, ends } = sizes;
  const tiles = ends > 0 ? Math.floor(s / rows) + ends : Math.ceil(s / rows);
  const visits = visitLists(form, gradientTiles(sizes), "columns");
  const ranks = deterministic ? visitRanks(form, gradientTiles(sizes)) : undefined;
  const filled = Object.entries({ visits, ranks }).flatMap(([name, each]) =>
    each === undefined ? [] : [{ ...each, name }],
  );
  const operands = [
    ...["q", "k", "v", "dOut", "rowValues", "sums", ...optionalArrays(problem)],
    ...filled.map(({ name }) => name),
  ];
  const rowOffsets = problem.qOffsets === undefined ? [] : ["qOffsets"];
  const values = launchSizes(sizes);
  const ofRows = { b, s, h, ...(ends > 0 && { ends }) };
  return {
    scratch: {
      rowValues: { dtype: dtypes.f32, shape: [b, h, tiles, 2, rows] },
      sums: { dtype: dtypes.f32, shape: [b, h, tiles, (rows * gradientHead(d)) / 256, 256] },
      ...Object.fromEntries(filled.map(({ name, scratch }) => [name, scratch])),
    },
    launches: () => [
      ...filled.map(({ name, launch }) => launch(name)),
      {
        kernel: prepareGradients(form),
        arguments: given("out", "dOut", "logSumExp", "rowValues", "sums", ...rowOffsets),
        dimensions: ofRows,
      },
      {
        kernel: warpSpecializedGradients(form, deterministic, { visits, ranks }),
        arguments: given(...operands, "dk", "dv"),
        dimensions: values,
      },
      {
        kernel: finishGradients(form, gradientDivision(sizes).pieces > 1),
        arguments: given("sums", "dq", ...rowOffsets),
        dimensions: ofRows,
      },
      ...(problem.sinks === undefined
        ? []
        : [
            {
              kernel: sinkGradientsOfTiles(form),
              arguments: given("sinks", "rowValues", "dSinks"),
              dimensions: ofRows,
            },
          ]),
    ],
  };
}

/** The gradient of the bias, by a launch of its own; the deltas are made for it where no other launch needs them. */
function biasLaunches(form: AttentionForm, configuration: GradientConfiguration): Launches {
  const { problem, sizes } = form;
  const { b, s, t, h } = sizes;
  const tiles = plainGradientTiles(problem, sizes);
  const shared = ["q", "k", "v", "dOut", "logSumExp", "delta", ...optionalArrays(problem)];
  const ofDeltas = {
    kernel: deltaKernel(form, tiles),
    arguments: given("out", "dOut", "delta"),
    dimensions: { b, s, h },
  };
  const isEmpty = b * s * h === 0;
  // One that is shared along an axis without extent has elements, which nothing adds to.
  const hasElements = problem.bias?.shape.every(
    (size, axis) => size === 1 || [b, h, s, t][axis] !== 0,
  );
  return {
    scratch: { delta: { dtype: dtypes.f32, shape: [b, h, s] } },
    launches: () => [
      ...(configuration.kernel === "plain" || isEmpty ? [] : [ofDeltas]),
      ...(!hasElements
        ? []
        : [
            {
              kernel: biasGradient(form, tiles),
              arguments: given(...shared, "dBias"),
              dimensions: launchSizes(sizes),
            },
          ]),
    ],
  };
}

/** Three launches without anything that is added up between blocks. */
function plainLaunches(form: AttentionForm, configuration: PlainGradients): Launches {
  const { problem, sizes } = form;
  const { b, s, t, h, kv, ends } = sizes;
  const values = launchSizes(sizes);
  const rowOffsets = problem.qOffsets === undefined ? [] : ["qOffsets"];
  const shared = ["q", "k", "v", "dOut", "logSumExp", "delta", ...optionalArrays(problem)];
  const rowVisits = visitLists(form, configuration, "rows");
  const columnVisits = visitLists(form, configuration, "columns");
  const listed = (lists: VisitLists | undefined, name: string) => ({
    launches: lists === undefined ? [] : [lists.launch(name)],
    scratch: lists && { [name]: lists.scratch },
    arguments: lists && { visits: { argument: name } },
  });
  const [byRows, byColumns] = [
    listed(rowVisits, "rowVisits"),
    listed(columnVisits, "columnVisits"),
  ];
  const ofRows = () => [
    ...byRows.launches,
    {
      kernel: deltaKernel(form, configuration),
      arguments: given("out", "dOut", "delta"),
      dimensions: { b, s, h },
    },
    {
      kernel: rowGradients(form, configuration, rowVisits),
      arguments: { ...given(...shared, "dq"), ...byRows.arguments },
      dimensions: values,
    },
  ];
  const ofColumns = () => [
    ...byColumns.launches,
    {
      kernel: columnGradients(form, configuration, columnVisits),
      arguments: { ...given(...shared, "dk", "dv"), ...byColumns.arguments },
      dimensions: values,
    },
  ];
  const ofSinks = () => [
    {
      kernel: sinkGradientsOfRows(form),
      arguments: given("sinks", "logSumExp", "delta", "dSinks", ...rowOffsets),
      dimensions: { b, s, h, ...(ends > 0 && { ends }) },
    },
  ];
  return {
    scratch: {
      delta: { dtype: dtypes.f32, shape: [b, h, s] },
      ...{ ...byRows.scratch, ...byColumns.scratch },
    },
    launches: () => [
      ...(b * s * h === 0 ? [] : ofRows()),
      ...(b * t * kv === 0 ? [] : ofColumns()),
      ...(problem.sinks === undefined || h === 0 ? [] : ofSinks()),
    ],
  };
}
