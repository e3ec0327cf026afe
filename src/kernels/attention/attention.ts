/**
 * `attention`: softmax(q · kᵀ · scale) · v as an operation, for any sizes.
 *
 *   specification ──▶ problem (formats, sizes, window, mask, score)
 *   sizes, target ──▶ configuration ──▶ one launch
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, TileCounts } from "../../device/operation.ts";
import { evaluateSize } from "../../ir/size.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { refused, refuseOldKernel, requireFields, requireSettings } from "../support/arguments.ts";
import type { FormatOf, GivenArray } from "../support/arguments.ts";
import { threadsPerBlock, registersPerThread } from "../support/sizes.ts";
import { chooseAttention, warpSpecializedProblem } from "./choose.ts";
import {
  consumerRows,
  plainSettings,
  warpSpecializedSettings,
  attentionSchedules,
} from "./configuration.ts";
import type { AttentionConfiguration } from "./configuration.ts";
import { paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { columnsAtEnds } from "./tail-columns.ts";
import { plainAttention } from "./plain.ts";
import { attentionFields, isNarrow, problemOf } from "./problem.ts";
import type { AttentionProblem, AttentionSpec } from "./problem.ts";
import type { AttentionSizes } from "./scores.ts";
import { attentionBytes } from "./shared-memory.ts";
import { warpSpecializedAttention } from "./warp-specialized.ts";
import { hasShortTiles, shortDeal } from "./tail-tiles.ts";
import { workersOf } from "./tile-scheduler.ts";
import { turnedScratch, turnValues } from "./transposed-values.ts";
import { visitLists } from "./block-mask.ts";
import type { VisitLists } from "./block-mask.ts";
import { tileCounts } from "./block-mask-rules.ts";
import type { TileShape } from "./block-mask-rules.ts";

/** What a call of `attention` says, with the configuration where it is given. */
export interface AttentionOptions<
  In extends DTypeName = DTypeName,
  Out extends DTypeName = In,
> extends AttentionSpec {
  /** The queries. */
  readonly q: GivenArray<In>;
  readonly out?: DType<Out>;
  /** Instead of what would be chosen. */
  readonly configuration?: AttentionConfiguration;
}

type AttentionInputs<S extends AttentionSpec> = {
  readonly q: TensorSpec<FormatOf<S["q"]>>;
  readonly k: TensorSpec<FormatOf<S["k"]>>;
  readonly v: TensorSpec<FormatOf<S["v"]>>;
} & (S extends { readonly bias: TensorSpec } ? { readonly bias: S["bias"] } : Empty) &
  (S extends { readonly sinks: GivenArray } ? { readonly sinks: TensorSpec<"f32"> } : Empty) &
  ScaleInputs<S> &
  KeyInput<S> &
  SegmentInputs<S> &
  OffsetInputs<S>;

/** What the numbers of FP8 operands are multiplied by, of what was told that there are scales. */
type ScaleInputs<S extends Pick<AttentionSpec, "scales">> = S extends { readonly scales: true }
  ? { readonly [N in "qScale" | "kScale" | "vScale"]: TensorSpec<"f32"> }
  : Empty;

/** What dropout draws from, of what was told of some. */
export type KeyInput<S extends Pick<AttentionSpec, "dropout">> = S extends {
  readonly dropout: number;
}
  ? { readonly key: TensorSpec<"u32"> }
  : Empty;

/** The segments of queries and keys, of what was told of some. */
export type SegmentInputs<S extends Pick<AttentionSpec, "segmentIds">> = S extends {
  readonly segmentIds: object;
}
  ? {
      readonly querySegmentIds: TensorSpec<"i32">;
      readonly keyValueSegmentIds: TensorSpec<"i32">;
    }
  : Empty;

/** The offsets of sequences, of what was told of some. */
export type OffsetInputs<S extends Pick<AttentionSpec, "offsets">> = S extends {
  readonly offsets: object;
}
  ? { readonly qOffsets: TensorSpec<"i32">; readonly kOffsets: TensorSpec<"i32"> }
  : Empty;

type AttentionOutputs<S extends AttentionSpec> = {
  readonly out: TensorSpec<S extends { readonly out: DType<infer D> } ? D : FormatOf<S["q"]>>;
} & (S extends { readonly logSumExp: true } ? { readonly logSumExp: TensorSpec<"f32"> } : Empty);

/** The operation that `attention` makes. */
export type Attention<S extends AttentionSpec = AttentionSpec> = Operation<
  AttentionInputs<S>,
  AttentionOutputs<S>,
  Empty,
  AttentionConfiguration
>;

/** Attention of rows of q to rows of k and v, for any sizes. */
export function attention<const S extends AttentionOptions>(spec: S): Attention<S> {
  const location = captureLocation();
  requireFields("attention", spec, attentionFields, location);
  const problem = problemOf(spec, location, "forward");
  const { q, k, v, out, bias, sinks, key, qOffsets, kOffsets, logSumExp } = problem;
  const { qScale, kScale, vScale, querySegmentIds, keyValueSegmentIds } = problem;
  const { configuration } = spec;
  return libraryOperation(
    {
      name: "attention",
      inputs: {
        ...{ q, k, v, ...(bias && { bias }), ...(sinks && { sinks }) },
        ...(qScale && kScale && vScale && { qScale, kScale, vScale }),
        ...{ ...(key && { key }), ...(qOffsets && kOffsets && { qOffsets, kOffsets }) },
        ...(querySegmentIds && keyValueSegmentIds && { querySegmentIds, keyValueSegmentIds }),
      },
      outputs: { out, ...(logSumExp && { logSumExp }) },
      plan: (dimensions, target) => planOf(problem, configuration, dimensions, target, location),
    },
    spec,
  ) as unknown as Attention<S>;
}

function planOf(
  problem: AttentionProblem,
  given: AttentionConfiguration | undefined,
  dimensions: { readonly [name: string]: number },
  target: Target,
  location: Location,
): Planned<AttentionConfiguration> {
  const sizes = sizesOf(problem, dimensions, location);
  const slow = warpSpecializedProblem(problem, sizes, target);
  if (given !== undefined) requirePossible(given, problem, sizes, slow, target, location);
  const configuration = given ?? chooseAttention(problem, sizes, target);
  const notes =
    slow === undefined || configuration.kernel === "warp-specialized"
      ? []
      : [`the plain kernel is used: ${slow}`];
  const source = given === undefined ? "heuristic" : "given";
  const { b, s, t, h, kv, e, ends } = sizes;
  if (b * s * h * e === 0) return { configuration, source, notes, launches: [] };
  const form: AttentionForm = { problem, sizes, location };
  const parameters = [
    ...(["q", "k", "v", "out", "bias", "sinks", "logSumExp"] as const),
    ...(["qScale", "kScale", "vScale", "key", "qOffsets", "kOffsets"] as const),
    ...(["querySegmentIds", "keyValueSegmentIds"] as const),
  ];
  const shape = tileShape(configuration);
  const lists = visitLists(form, shape, "rows");
  const named = [
    ...parameters.filter((name) => problem[name] !== undefined),
    ...(lists === undefined ? [] : ["visits"]),
  ];
  const isTurned = configuration.kernel === "warp-specialized" && isNarrow(problem);
  const workers =
    configuration.kernel === "warp-specialized"
      ? workersOf(configuration, form, target)
      : undefined;
  const dealt =
    configuration.kernel === "warp-specialized" && hasShortTiles(form, configuration)
      ? shortDeal(sizes, configuration.workers ?? target.processors)
      : undefined;
  return {
    ...{ configuration, source, notes },
    scratch: {
      ...(lists && { visits: lists.scratch }),
      ...(isTurned && { turned: turnedScratch(form) }),
    },
    ...(ends === 0 && { tiles: () => countsOf(form, configuration, dealt?.tiles) }),
    launches: () => [
      ...(lists === undefined ? [] : [lists.launch("visits")]),
      ...(isTurned ? [turnValues(form, "turned")] : []),
      {
        kernel: attentionKernel(form, configuration, lists),
        arguments: {
          ...Object.fromEntries(named.map((name) => [name, { argument: name }])),
          ...(isTurned && { v: { argument: "turned" } }),
          ...(dealt !== undefined && { whole: { scalar: dealt.whole } }),
        },
        dimensions: {
          ...{ b, s, t, h, kv, ...(ends > 0 && { ends }) },
          ...(workers !== undefined && { workers }),
        },
      },
    ],
  };
}

/** Tiles of scores that kernels look at, of which a last one that is multiplied as far as it goes may be whole; of tiles of rows that are not all alike, as many as there are. */
function countsOf(
  form: AttentionForm,
  configuration: AttentionConfiguration,
  dealt: number | undefined,
): TileCounts {
  const shape = tileShape(configuration);
  const { b, s, h } = form.sizes;
  const counts = tileCounts(form, shape, "rows");
  const ending =
    configuration.kernel === "plain" ? undefined : columnsAtEnds(form, configuration).ending;
  const seen =
    ending?.isClear === true
      ? { ...counts, whole: counts.whole + counts.masked, masked: 0 }
      : counts;
  if (dealt === undefined) return seen;
  // All rows see all columns, so tiles of rows have equally many.
  const alike = b * h * Math.ceil(s / shape.rows);
  const { whole, masked } = seen;
  return { skipped: 0, whole: (whole / alike) * dealt, masked: (masked / alike) * dealt };
}

/** Rows and columns of scores that a block looks at together. */
function tileShape(configuration: AttentionConfiguration): TileShape {
  const { columns } = configuration;
  return configuration.kernel === "plain"
    ? { rows: configuration.rows, columns }
    : { rows: configuration.consumers * consumerRows, columns };
}

function attentionKernel(
  form: AttentionForm,
  configuration: AttentionConfiguration,
  lists: VisitLists | undefined,
): KernelDefinition {
  return configuration.kernel === "plain"
    ? plainAttention(form, configuration, lists)
    : warpSpecializedAttention(form, configuration, lists);
}

/** The largest head: what a thread's registers hold of it. */
const largestHead = 256;

/** The sizes of a launch, which every problem of attention has. */
export function sizesOf(
  { sizes, qOffsets, logSumExp }: AttentionProblem,
  dimensions: { readonly [name: string]: number },
  location: Location,
): AttentionSizes {
  const values = new Map(Object.entries(dimensions));
  const named = Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [name, evaluateSize(size, values)]),
  ) as unknown as AttentionSizes;
  const { h, kv, d, e, ends } = named;
  const wrong = (message: string, expected: string, found: string) =>
    refused("TW9902", message, expected, found, location);
  if (kv === 0 ? h !== 0 : h % kv !== 0)
    throw wrong(
      "the heads of attention do not share those of k and v evenly",
      `a multiple of the ${kv} heads of k and v`,
      `${h} heads of q`,
    );
  if (ends === 0 && qOffsets !== undefined)
    throw wrong(
      "the offsets of attention have an end for each sequence",
      "[sequences + 1], which is [1] for none",
      "no offsets",
    );
  // Without values there is nothing to compute but logarithms, and gradients that are 0: no kernel makes these alone.
  const least = { d: 1, e: logSumExp === undefined ? 0 : 1 };
  for (const [name, size] of Object.entries({ d, e }) as ["d" | "e", number][])
    if (size > largestHead || size < least[name])
      throw wrong(
        "attention has no heads of this size",
        `${name} from ${least[name]} to ${largestHead}`,
        `${name} = ${size}`,
      );
  return named;
}

/** Columns of scores that wgmma makes together, and sums over as powers: 16 at a time, 32 of FP8. */
function isColumns(columns: number, problem: AttentionProblem): boolean {
  const step = isNarrow(problem) ? 32 : 16;
  return Number.isSafeInteger(columns / step) && columns >= 32 && columns <= 256;
}

function requirePossible(
  configuration: AttentionConfiguration,
  problem: AttentionProblem,
  sizes: AttentionSizes,
  slow: string | undefined,
  target: Target,
  location: Location,
): void {
  refuseOldKernel("attention", configuration, location);
  const text = isRecord(configuration) ? JSON.stringify(configuration) : optionText(configuration);
  const wrong = (message: string, expected: string) =>
    refused("TW9904", message, expected, text, location);
  if (
    !isRecord(configuration) ||
    (configuration.kernel !== "warp-specialized" && configuration.kernel !== "plain")
  )
    throw wrong(
      "attention has no such configuration",
      '{ kernel: "warp-specialized", … } or { kernel: "plain", … }',
    );
  const within = (value: unknown, allowed: readonly number[]): boolean =>
    allowed.includes(value as number);
  if (configuration.kernel === "plain") {
    requireSettings("attention", configuration, plainSettings, location);
    const extents = [16, 32, 64, 128];
    if (!within(configuration.rows, extents) || !within(configuration.columns, extents))
      throw wrong("attention has no such tiles", "rows and columns of 16, 32, 64 or 128");
    const { rows, columns } = configuration;
    const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
    const words = Math.max(16, problem.q.dtype.bits) / 32;
    // Sums and scores in f32, and operands as they are multiplied.
    const held = [rows * e, rows * columns, rows * d * words, columns * Math.max(d, e) * words];
    if (Math.max(...held) < registersPerThread * threadsPerBlock) return;
    throw wrong(
      "the plain kernel of attention has no registers for such tiles",
      `fewer than ${registersPerThread} words a lane: fewer rows or columns`,
    );
  }
  requireSettings("attention", configuration, warpSpecializedSettings, location);
  if (slow !== undefined)
    throw wrong(
      `attention cannot use the warp-specialized kernel here: ${slow}`,
      '{ kernel: "plain", … }',
    );
  const { consumers, columns, stages, workers = 1, schedule = "linear" } = configuration;
  if (
    !within(consumers, [1, 2, 3]) ||
    !isColumns(columns, problem) ||
    !within(stages, [1, 2, 4]) ||
    !(Number.isSafeInteger(workers) && workers >= 1)
  )
    throw wrong(
      "attention has no such configuration",
      "1 to 3 consumers, columns from 32 to 256 in steps of 16 (of 32 for FP8), 1, 2 or 4 stages, and workers from 1",
    );
  const schedules = sizes.ends > 0 ? ["linear"] : attentionSchedules;
  if (!schedules.includes(schedule))
    throw wrong(
      "attention does not deal its tiles so",
      `schedule: ${schedules.map((each) => JSON.stringify(each)).join(" or ")}`,
    );
  const bytes = attentionBytes(problem, configuration, sizes);
  if (bytes > target.sharedMemoryPerBlock)
    throw wrong(
      `the configuration of attention takes ${bytes} bytes of shared memory`,
      `at most ${target.sharedMemoryPerBlock} bytes on ${target.name}`,
    );
}
