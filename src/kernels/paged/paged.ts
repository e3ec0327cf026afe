/**
 * `pagedAttention`: attention to keys and values in pages of a cache, for sequences of any lengths, which only the device knows.
 *
 *   specification ──▶ problem (formats, sizes, window)
 *   sizes, target ──▶ configuration ──▶ two launches: splits of the cache, and the putting together of their parts
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import { evaluateSize } from "../../ir/size.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { refused, requireFields, requireSettings } from "../support/arguments.ts";
import type { FormatOf } from "../support/arguments.ts";
import { registersPerThread } from "../support/sizes.ts";
import { paddedHead } from "./arrays.ts";
import type { PagedForm } from "./arrays.ts";
import { attendKernel, costOf, pagedBytes } from "./attend.ts";
import { choosePaged, mostTiles } from "./choose.ts";
import { combineKernel } from "./combine.ts";
import type { PagedConfiguration } from "./configuration.ts";
import { pagedFields, problemOf } from "./problem.ts";
import type { PagedAttentionSpec, PagedProblem, PagedSizes } from "./problem.ts";

/** What a call of `pagedAttention` says, with the configuration where it is given. */
export interface PagedAttentionOptions extends PagedAttentionSpec {
  /** Instead of what would be chosen. */
  readonly configuration?: PagedConfiguration;
}

type PagedInputs<S extends PagedAttentionSpec> = {
  readonly q: TensorSpec<FormatOf<S["q"]>>;
  readonly k: TensorSpec<FormatOf<S["pages"]["k"]>>;
  readonly v: TensorSpec<FormatOf<S["pages"]["v"]>>;
  readonly table: TensorSpec<"i32">;
  readonly lengths: TensorSpec<"i32">;
} & (S extends { readonly scales: true }
  ? { readonly kScale: TensorSpec<"f32">; readonly vScale: TensorSpec<"f32"> }
  : Empty);

type PagedOutputs<S extends PagedAttentionSpec> = {
  readonly out: TensorSpec<S extends { readonly out: DType<infer D> } ? D : FormatOf<S["q"]>>;
} & (S extends { readonly logSumExp: true } ? { readonly logSumExp: TensorSpec<"f32"> } : Empty);

/** The operation that `pagedAttention` makes. */
export type PagedAttention<S extends PagedAttentionSpec = PagedAttentionSpec> = Operation<
  PagedInputs<S>,
  PagedOutputs<S>,
  Empty,
  PagedConfiguration
>;

/** Attention of the last tokens of sequences to all of their tokens, in pages of a cache. */
export function pagedAttention<const S extends PagedAttentionOptions>(spec: S): PagedAttention<S> {
  const location = captureLocation();
  requireFields("pagedAttention", spec, pagedFields, location);
  const problem = problemOf(spec, location);
  const { q, k, v, table, lengths, kScale, vScale, out, logSumExp } = problem;
  const { configuration } = spec;
  return libraryOperation(
    {
      name: "paged_attention",
      inputs: { q, k, v, table, lengths, ...(kScale && { kScale }), ...(vScale && { vScale }) },
      outputs: { out, ...(logSumExp && { logSumExp }) },
      plan: (dimensions, target) => planOf(problem, configuration, dimensions, target, location),
    },
    spec,
  ) as unknown as PagedAttention<S>;
}

function planOf(
  problem: PagedProblem,
  given: PagedConfiguration | undefined,
  dimensions: { readonly [name: string]: number },
  target: Target,
  location: Location,
): Planned<PagedConfiguration> {
  const named = sizesOf(problem, dimensions, location);
  const isEmpty = named.b * named.s * named.h * named.e === 0;
  // Where nothing is launched there may be no heads, which divide no rows.
  const sizes = isEmpty ? { ...named, h: 1, kv: 1 } : named;
  const configuration = given ?? choosePaged(problem, sizes, target);
  if (configuration === undefined)
    throw refused(
      "TW9902",
      "pagedAttention has no tiles for pages of this size",
      "a power of two, or a multiple of 16",
      `pages of ${sizes.size} tokens`,
      location,
    );
  const form: PagedForm = { problem, sizes, configuration };
  if (given !== undefined) requirePossible(form, target, location);
  requireCountable(form, location);
  const source = given === undefined ? "heuristic" : "given";
  if (isEmpty) return { configuration, source, launches: [] };
  const { kv, e } = sizes;
  const { rows, splits } = configuration;
  return {
    ...{ configuration, source },
    scratch: {
      parts: { dtype: dtypes.f32, shape: [splits, kv, 2, rows, e] },
      weights: { dtype: dtypes.f32, shape: [splits, kv, 2, rows] },
    },
    launches: () => [
      launched(form, attendKernel(form, target)),
      launched(form, combineKernel(form)),
    ],
  };
}

/** A launch of a kernel whose parameters are named as arguments and scratch of the operation are. */
function launched({ sizes, configuration }: PagedForm, kernel: KernelDefinition): PlannedLaunch {
  const { parameters, dimensions } = kernel.kernel;
  const values: { readonly [name: string]: number } = { ...sizes, splits: configuration.splits };
  return {
    kernel,
    arguments: Object.fromEntries(parameters.map(({ name }) => [name, { argument: name }])),
    dimensions: Object.fromEntries(dimensions.map(({ name }) => [name, values[name] ?? 0])),
  };
}

/** Tiles are counted in i32 on the device, by what they cost. */
function requireCountable(form: PagedForm, location: Location): void {
  const { tile, beginning } = costOf(form);
  // A sequence that is longer than its pages has one more.
  const tiles = mostTiles({ ...form.sizes, most: form.sizes.most + 1 }, form.configuration);
  if (tiles * (tile + beginning) < 2 ** 31) return;
  throw refused(
    "TW9902",
    "pagedAttention has too many tiles to count them",
    `less than ${Math.floor(2 ** 31 / (tile + beginning))} tiles: fewer tokens of q, or fewer pages in a row of the table`,
    `up to ${tiles} tiles`,
    location,
  );
}

const lanesOfWarp = 32;

/** The largest head: what the registers of a block hold of it. */
const largestHead = 256;

function sizesOf(
  { sizes, logSumExp }: PagedProblem,
  dimensions: { readonly [name: string]: number },
  location: Location,
): PagedSizes {
  const values = new Map(Object.entries(dimensions));
  const named = Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [name, evaluateSize(size, values)]),
  ) as unknown as PagedSizes;
  const { h, kv, d, e, pages, size } = named;
  const wrong = (message: string, expected: string, found: string) =>
    refused("TW9902", message, expected, found, location);
  if (kv === 0 ? h !== 0 : h % kv !== 0)
    throw wrong(
      "the heads of pagedAttention do not share those of the pages evenly",
      `a multiple of the ${kv} heads of the pages`,
      `${h} heads of q`,
    );
  // Without values there is nothing to compute but logarithms, which no kernel makes alone.
  const least = { d: 1, e: logSumExp === undefined ? 0 : 1 };
  for (const [name, extent] of Object.entries({ d, e }) as ["d" | "e", number][])
    if (extent > largestHead || extent < least[name])
      throw wrong(
        "pagedAttention has no heads of this size",
        `${name} from ${least[name]} to ${largestHead}`,
        `${name} = ${extent}`,
      );
  if (pages * size === 0)
    throw wrong(
      "pagedAttention has no pages",
      "one page of one token at least, also where all lengths are 0",
      `${pages} pages of ${size} tokens`,
    );
  return named;
}

function requirePossible(form: PagedForm, target: Target, location: Location): void {
  const { problem, sizes, configuration } = form;
  const text = isRecord(configuration) ? JSON.stringify(configuration) : optionText(configuration);
  const wrong = (message: string, expected: string) =>
    refused("TW9904", message, expected, text, location);
  const settings = ["rows", "warps", "columns", "stages", "splits"] as const;
  requireSettings("pagedAttention", configuration, settings, location);
  const { rows, warps, columns, stages, splits } = configuration;
  const isKnown =
    [8, 16, 64].includes(rows) &&
    [1, 2, 4].includes(warps) &&
    [16, 32, 64, 128].includes(columns) &&
    [2, 4, 8].includes(stages) &&
    Number.isSafeInteger(splits) &&
    splits >= 1 &&
    splits <= 2 ** 16;
  if (!isKnown)
    throw wrong(
      "pagedAttention has no such configuration",
      "rows 8, 16 or 64, warps 1, 2 or 4, columns 16 to 128, stages 2, 4 or 8, and splits from 1",
    );
  if (rows === 8 && (warps !== 1 || problem.k.dtype.bits !== 8))
    throw wrong(
      "tiles of pagedAttention have 8 rows where one warp has all of them, of FP8",
      "warps 1 and pages of FP8, or 16 rows and more",
    );
  if (sizes.size % columns !== 0 && columns % sizes.size !== 0)
    throw wrong(
      "tiles of pagedAttention have whole pages or whole parts of one",
      `columns that divide ${sizes.size}, or that it divides`,
    );
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  // Sums, scores, a tile of the cache in 16 bits, and q, which becomes f16 by way of f32 for pages of 8 bits.
  const ofQ = problem.k.dtype.bits === 8 ? rows * d : (rows * d) / 2;
  const held = [rows * e, rows * columns, (columns * Math.max(d, e)) / 2, ofQ];
  if (Math.max(...held) >= registersPerThread * lanesOfWarp * warps)
    throw wrong(
      "the warps of pagedAttention have no registers for such tiles",
      `fewer than ${registersPerThread} words a lane: more warps, fewer rows or fewer columns`,
    );
  const bytes = pagedBytes(form);
  if (bytes > target.sharedMemoryPerBlock)
    throw wrong(
      `the configuration of pagedAttention takes ${bytes} bytes of shared memory`,
      `at most ${target.sharedMemoryPerBlock} bytes on ${target.name}`,
    );
}
