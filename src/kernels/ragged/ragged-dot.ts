/**
 * `raggedDot`: rows in groups, each group multiplied by a matrix of its own, as in a mixture of experts. How many rows a group has
 * is known on the device alone:
 *
 *   groupSizes 2 0 3      rows 0 and 1 · b[0]      rows 2, 3 and 4 · b[2]      rows from 5 on: 0
 *
 * A first launch deals rows to tiles (`tile-scheduler.ts`); the second one is the dense product, whose tiles find in tables which rows,
 * columns and which matrix are theirs. Matrices may be weights in few bits, a batch of which `quantized` describes: they become bf16 or f16
 * as those of a dense product do. Derivatives are products of the same kind: by a it is a `raggedDot` with b the other way round, by
 * strides, and by b it is a `raggedOuter`.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { evaluateSize, sameSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { hasHalves } from "../../lang/pipeline/stream-k.ts";
import type { Target } from "../../targets/target.ts";
import { persistentCandidates } from "../matmul/heuristics/persistent-candidates.ts";
import { registerProblem, plainConfiguration } from "../matmul/heuristics/select-configuration.ts";
import { threadRows } from "../matmul/configuration.ts";
import type {
  PersistentConfiguration,
  ProductSizes,
  TiledConfiguration,
} from "../matmul/configuration.ts";
import { inputShape } from "../matmul/epilogue/epilogue.ts";
import { problemOf } from "../matmul/matmul.ts";
import type { EpilogueInputs, ScaleArrays, ScaledBlocks, WeightScales } from "../matmul/matmul.ts";
import {
  inputArguments,
  launched,
  operandArgument,
  prologueArguments,
} from "../matmul/launch-arguments.ts";
import { tiledModel } from "../matmul/cost/model.ts";
import { fittingRoom, multiplying, persistentLaunches, requirePossible } from "../matmul/plan.ts";
import { recipeOf } from "../matmul/f32-emulation.ts";
import { depthOf, halvesColumns, tileCount, workerCount } from "../matmul/tile-shapes.ts";
import { outputSpec } from "../matmul/problem.ts";
import { nameTaken } from "../matmul/argument-errors.ts";
import type { Accumulation, MatmulPrecision, MatmulProblem } from "../matmul/problem.ts";
import { isQuantized } from "../matmul/weights/quantized.ts";
import type { QuantizedSpec, WeightFormat } from "../matmul/weights/quantized.ts";
import {
  givenArray,
  refused,
  requireFields,
  requireRows,
  requireShape,
} from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";
import { dealingLaunch, dealingOf, mostSpread, mostTiles } from "./tile-scheduler.ts";
import type { RaggedSizes } from "./tile-scheduler.ts";
import { plainDotKernel } from "./plain.ts";

type InputTiles<I extends EpilogueInputs> = {
  readonly [N in keyof I]: I[N] extends TensorSpec<infer D> ? Tile<D> : never;
};

/** What `raggedDot` is made for. */
export interface RaggedDotSpec<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  Blocks extends ScaledBlocks | undefined = ScaledBlocks | undefined,
> {
  /** [m, k]: rows of all groups, one group after the other. */
  readonly a: GivenArray<A>;
  /** [g, k, n]: a matrix for each group; strides [k · n, 1, k] say that they lie by columns. */
  readonly b: GivenArray<B>;
  /** [g]: rows of each group. i32 by default. */
  readonly groupSizes?: GivenArray<"i32">;
  /** The format of the result; that of the operands by default, bf16 of FP8, i32 of integers. */
  readonly out?: DType<Out>;
  /** Further arrays that the epilogue sees: [m], [n] or [m, n]. */
  readonly inputs?: Inputs;
  /** What is done with the sums of a piece of the result before it is stored. */
  readonly epilogue?: (tiles: { readonly sums: Tile<"f32"> } & InputTiles<Inputs>) => Tile<Out>;
  /** How f32 is multiplied; for f32 alone, and always said. */
  readonly precision?: MatmulPrecision;
  /** How FP8 is summed; for FP8 alone, and always said. */
  readonly accumulation?: Accumulation;
  /** The blocks of FP8 that share a scale, as of `matmul`: of a [1, 128], since groups begin at any row. bScale is [g, cdiv(n, columns), cdiv(k, 128)]. */
  readonly blockScales?: Blocks;
  /** Instead of what the model would choose. */
  readonly configuration?: TiledConfiguration;
}

const fields: Fields = {
  a: "array",
  b: "operand",
  groupSizes: "array",
  out: "format",
  inputs: "named",
  epilogue: "function",
  precision: "choice",
  accumulation: "choice",
  blockScales: "settings",
  configuration: "settings",
};

/** The operation that `raggedDot` makes. */
export type RaggedDot<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
> = Operation<
  {
    readonly a: TensorSpec<A>;
    readonly b: TensorSpec<B>;
    readonly groupSizes: TensorSpec<"i32">;
  } & Inputs,
  { readonly out: TensorSpec<Out> },
  Empty,
  TiledConfiguration
>;

/** A specification whose matrices are weights in few bits: `quantized(i4, [g, k, n], …)`. */
export type QuantizedRaggedDotSpec<
  A extends DTypeName,
  D extends WeightFormat,
  S extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  Z extends boolean = boolean,
> = Omit<RaggedDotSpec<A, D, Out, Inputs>, "b"> & { readonly b: QuantizedSpec<D, S, Z> };

/** Rows of groups times the matrices of their groups. */
export function raggedDot<
  A extends DTypeName,
  D extends WeightFormat,
  S extends DTypeName,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
  Z extends boolean = false,
>(
  spec: QuantizedRaggedDotSpec<A, D, S, Out, Inputs, Z>,
): RaggedDot<A, D, Out, Inputs & WeightScales<D, S, Z>>;
export function raggedDot<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
  const Blocks extends ScaledBlocks | undefined = undefined,
>(
  spec: RaggedDotSpec<A, B, Out, Inputs, Blocks>,
): RaggedDot<A, B, Out, Inputs & ScaleArrays<Blocks>>;
export function raggedDot(spec: GivenSpec): unknown {
  const location = captureLocation();
  requireFields("raggedDot", spec, fields, location);
  return libraryOperation(raggedProduct(spec, location), spec);
}

/** What the operation consists of; of use to others that compute operands for it. */
export function raggedProduct(spec: GivenSpec, location: Location) {
  const problem = dotProblem(spec, location);
  const groups = problem.b.shape[0] ?? 0;
  const groupSizes = groupSizesOf("raggedDot", spec.groupSizes, groups, location);
  const { configuration } = spec;
  return {
    name: "ragged_dot",
    inputs: {
      ...{ a: problem.a, b: problem.b, groupSizes },
      ...{ ...problem.inputs, ...problem.prologueInputs },
    },
    outputs: { out: problem.out },
    plan: (dimensions: { readonly [name: string]: number }, target: Target) =>
      planOf(problem, configuration, dimensions, target, location),
  };
}

/** What either form of specification gives. */
type GivenSpec = Omit<
  RaggedDotSpec<DTypeName, DTypeName, DTypeName, EpilogueInputs>,
  "a" | "b" | "epilogue"
> & { readonly a: unknown; readonly b: unknown; readonly epilogue?: unknown };

/** The product of matrices that it is for every group, with a result that has no batch. */
function dotProblem(spec: GivenSpec, location: Location): MatmulProblem {
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const a = givenArray("a", "raggedDot", spec.a, [m, k], location);
  const b = isQuantized(spec.b)
    ? spec.b
    : givenArray("b", "raggedDot", spec.b, [g, k, n], location);
  const axesOfB = b.shape.length + (b.kind === "quantized" && b.batch !== undefined ? 1 : 0);
  const axes: readonly (readonly [name: string, found: number, rank: number])[] = [
    ["a", a.shape.length, 2],
    ["b", axesOfB, 3],
  ];
  for (const [name, found, rank] of axes)
    if (found !== rank)
      throw refused(
        "TW9902",
        `${name} of raggedDot has ${found} axes`,
        "a of [m, k], b of [g, k, n]",
        `${found} axes`,
        location,
      );
  const { groupSizes: _, ...others } = spec;
  if (Object.hasOwn(spec.inputs ?? {}, "groupSizes"))
    throw nameTaken("groupSizes", "the sizes of groups", location);
  const problem = problemOf("raggedDot", { ...others, a, b }, location);
  if ((problem.blockScales?.a ?? 1) !== 1)
    throw refused(
      "TW9902",
      "rows of a group may begin within a block of a",
      "blockScales: { a: [1, 128], … }",
      `blocks of ${problem.blockScales?.a ?? 1} rows`,
      location,
    );
  const sizes = { ...problem.sizes, batch: undefined };
  for (const [name, input] of Object.entries(problem.inputs))
    inputShape(name, input, { of: problem.of, sizes }, location);
  return { ...problem, sizes, out: outputSpec(problem.out.dtype, undefined, sizes.m, sizes.n) };
}

/** The sizes of the groups, one for each. */
export function groupSizesOf(
  of: string,
  given: GivenArray<"i32"> | undefined,
  groups: Size,
  location: Location,
): TensorSpec<"i32"> {
  const spec = givenArray("groupSizes", of, given ?? dtypes.i32, [groups], location);
  requireRows("groupSizes", of, spec, location);
  requireShape("groupSizes", of, spec, [groups], location);
  if (spec.dtype === dtypes.i32 && sameSize(spec.shape[0] ?? 0, groups))
    return spec as TensorSpec<"i32">;
  throw refused(
    "TW9901",
    `the groupSizes of ${of} have another format`,
    "i32",
    spec.dtype.name,
    location,
  );
}

function planOf(
  problem: MatmulProblem,
  asked: TiledConfiguration | undefined,
  dimensions: { readonly [name: string]: number },
  target: Target,
  location: Location,
): Planned<TiledConfiguration> {
  const values = new Map(Object.entries(dimensions));
  const { m, n, k } = problem.sizes;
  const sizes: ProductSizes = {
    ...{ m: evaluateSize(m, values), n: evaluateSize(n, values), k: evaluateSize(k, values) },
    batch: evaluateSize(problem.b.shape[0] ?? 0, values),
  };
  const given = multiplying(asked, problem, sizes, location);
  const slow = registerProblem(problem, sizes, target);
  if (given !== undefined) requirePossible(given, problem, slow, target, location);
  const isShared = given?.kernel === "persistent" && given.cluster > 1;
  if (given !== undefined && (isShared || isInParts(given)))
    throw refused(
      "TW9904",
      "raggedDot has no launch that sums parts of k, and no tiles that two blocks share",
      'schedule "tiles" or "stream-k", cluster 1, or splitK 1 of the plain kernel',
      JSON.stringify(given),
      location,
    );
  const configuration = given ?? fitting(problem, sizes, slow, target, location);
  return {
    configuration,
    source: given === undefined ? "heuristic" : "given",
    ...launchesOf(problem, configuration, sizes, target, location),
    notes: slow === undefined ? [] : [`the plain kernel is used: ${slow}`],
  };
}

/** Whether a launch of its own would have to sum parts of k. */
function isInParts(given: TiledConfiguration): boolean {
  return given.kernel === "plain" ? given.splitK > 1 : given.schedule === "split-k";
}

/** What is chosen, with as many stages as leave room for what the epilogue needs. */
function fitting(
  problem: MatmulProblem,
  sizes: ProductSizes,
  slow: string | undefined,
  target: Target,
  location: Location,
): TiledConfiguration {
  const chosen = chooseRagged(problem, sizes, slow, target);
  const { m, n, batch } = sizes;
  if (chosen.kernel === "plain" || m * n * batch === 0) return chosen;
  const { rows } = dealingOf(raggedSizes(problem, chosen, sizes, target), problem.out.dtype);
  return fittingRoom(problem, chosen, sizes, target, location, rows);
}

/**
 * As for batches of dense products: how rows are dealt is not known before the launch, so it is what takes least time in all where they are
 * dealt to all groups alike, to half of them and to a quarter, and where one group has half of all rows. Tiles of few rows read a large group's
 * matrix over and over:
 *
 *   1024 rows in 64 groups, 2048 × 2048   equal     halving   by 1/g, as measured
 *   tiles of 64 × 256                     133 µs    38 µs     140 µs
 *   tiles of 64 × 64                      140 µs    48 µs     151 µs
 *   tiles of 16 × 64                      138 µs    104 µs    177 µs
 *
 * Weights in few bits are chosen for equal groups alone: no others were timed.
 */
function chooseRagged(
  problem: MatmulProblem,
  sizes: ProductSizes,
  slow: string | undefined,
  target: Target,
): TiledConfiguration {
  const { m, batch } = sizes;
  const amongPart = (part: number): ProductSizes => {
    const groups = Math.min(batch, Math.max(1, Math.ceil(batch / part)));
    return { ...sizes, m: Math.max(1, Math.ceil(m / Math.max(1, groups))), batch: groups };
  };
  const alike = amongPart(1);
  if (slow !== undefined) return { ...plainConfiguration(problem, alike, target), splitK: 1 };
  const half = { ...sizes, m: Math.max(1, Math.ceil(m / 2)), batch: Math.min(1, batch) };
  const dealt = problem.weights === undefined ? [alike, amongPart(2), amongPart(4), half] : [alike];
  const models = dealt.map((each) => tiledModel(problem, each, target));
  const seconds = (each: TiledConfiguration): number =>
    models.reduce((sum, model) => sum + (model?.(each) ?? 0), 0);
  const candidates = persistentCandidates(problem, alike, target)
    .filter(({ schedule, cluster }) => schedule === "tiles" && cluster === 1)
    .map((configuration) => ({ configuration, takes: seconds(configuration) }));
  const best =
    problem.weights === undefined ? preferred(candidates) : fastest(candidates).configuration;
  return isSplit(problem, best, alike, target) ? { ...best, schedule: "stream-k" } : best;
}

interface Estimate {
  readonly configuration: PersistentConfiguration;
  readonly takes: number;
}

/**
 * How many times as long tiles of twice the size may take by the model and still be chosen. The model is fitted to dense products, and groups of
 * different sizes read matrices more often in small tiles. Tiles of few rows, whose operands are swapped, stay as they are:
 *
 *   1024 rows in 8 equal groups, 4096 × 4096     128 × 256   75.5 µs    128 × 128   82.4 µs
 *   4096 rows in 64 halving groups, 2048 × 2048  128 × 256   72.1 µs     64 × 256   80.2 µs
 */
const largerMayTake = 1.04;

function fastest(among: readonly Estimate[]): Estimate {
  return among.reduce((least, each) => (each.takes < least.takes ? each : least));
}

/** The fastest, or the fastest of those with tiles twice as large that take hardly longer. */
function preferred(candidates: readonly Estimate[]): PersistentConfiguration {
  const best = fastest(candidates);
  if (best.configuration.swapAB) return best.configuration;
  const size = ({ configuration: { consumers, columns } }: Estimate) => consumers * columns;
  const larger = candidates.filter(
    (each) =>
      !each.configuration.swapAB &&
      size(each) >= 2 * size(best) &&
      each.takes <= largerMayTake * best.takes,
  );
  return (larger.length > 0 ? fastest(larger) : best).configuration;
}

/** Rounds of tiles, were groups alike, up to which those of the last one are split. */
const mostSplitRounds = 4;

/**
 * Whether tiles of the last round are split: few tiles more than a round of them take as long as a whole one, and how many there are is not known before
 * the launch. Beside whole tiles:
 *
 *   8 groups, 4096 × 4096    equal    halving    halving, the smallest first
 *   512 rows                 1.00     1.08
 *   2048 rows                1.00     1.07       1.11
 *   4096 rows                0.99     1.02       1.08
 *   16384 rows               0.98     0.99
 */
function isSplit(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  alike: ProductSizes,
  { processors }: Target,
): boolean {
  const isPlain = problem.weights === undefined && problem.epilogue === undefined;
  const tiles = tileCount(configuration, alike);
  return isPlain && !configuration.swapAB && tiles <= mostSplitRounds * processors;
}

function launchesOf(
  problem: MatmulProblem,
  configuration: TiledConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): Pick<Planned, "launches" | "scratch" | "notes"> {
  const { m, n, batch } = sizes;
  const ragged = raggedSizes(problem, configuration, sizes, target);
  const out = problem.out.dtype;
  if (m * n === 0) return { launches: [] };
  const dealing = dealingOf(ragged, out);
  const { scratch } = dealing;
  if (batch === 0) return { scratch, launches: () => [dealingLaunch(ragged, out)] };
  if (configuration.kernel === "persistent")
    return persistentLaunches(problem, configuration, sizes, target, location, dealing);
  return {
    scratch,
    launches: () => [
      dealingLaunch(ragged, out),
      launched(
        plainDotKernel(problem, configuration, sizes, location),
        {
          ...{ a: operandArgument(problem, "a", sizes), b: operandArgument(problem, "b", sizes) },
          ...inputArguments(problem),
          ...prologueArguments(problem, sizes),
          ...dealing.tables,
          out: { argument: "out" },
        },
        { ...sizes, most: mostTiles(ragged) },
      ),
    ],
  };
}

/**
 * What dealing goes by. Tiles of one thread, and those of swapped operands, are of few rows a group: they come by rows of tiles, whosever these are. Group by
 * group, 64 rows of 8 groups with matrices of 4096 × 4096 took 2.6% longer, 512 of 64 with 2048 × 2048 0.8% less, 1024 of 64 by 1/g 1.5% longer.
 */
function raggedSizes(
  problem: MatmulProblem,
  configuration: TiledConfiguration,
  sizes: ProductSizes,
  target: Target,
): RaggedSizes {
  const { m, n, batch } = sizes;
  const whole = { m, n, g: batch, unit: tileRows(configuration), across: 1, byGroup: false };
  // Blocks of the plain kernel have the columns of a tile by their number.
  if (configuration.kernel === "plain") return whole;
  const { swapAB, consumers, columns, schedule } = configuration;
  const tiled = {
    ...whole,
    across: Math.ceil(n / (swapAB ? consumers * threadRows : columns)),
    byGroup: !swapAB && consumers > 1,
  };
  const recipe = recipeOf(problem);
  if (!tiled.byGroup || recipe === undefined) return tiled;
  const workers = workerCount(configuration, sizes, depthOf(problem, recipe), target);
  if (schedule !== "stream-k") return { ...tiled, takers: workers };
  if (mostTiles(tiled) > mostSpread) return tiled;
  const steps = Math.ceil(sizes.k / depthOf(problem, recipe));
  const halves = halvesColumns(configuration) && hasHalves(2, steps);
  return { ...tiled, spread: { workers, small: threadRows, halves } };
}

/** Rows of the result that a tile has. */
function tileRows(configuration: TiledConfiguration): number {
  if (configuration.kernel === "plain") return configuration.rows;
  return configuration.swapAB ? configuration.columns : configuration.consumers * threadRows;
}
