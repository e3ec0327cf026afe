/**
 * `raggedDot`: rows in groups, each group multiplied by a matrix of its own, as in a mixture of experts. How many rows a group has
 * is known on the device alone:
 *
 *   groupSizes 2 0 3      rows 0 and 1 · b[0]      rows 2, 3 and 4 · b[2]      rows from 5 on: 0
 *
 * A first launch deals rows to tiles (`dealing.ts`); the second one is the dense product, whose tiles find in tables which rows
 * and which matrix are theirs. Derivatives are products of the same kind: by a it is a `raggedDot` with b the other way round, by
 * strides, and by b it is a `raggedOuter`.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { evaluateSize, sameSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { dim } from "../../lang/index.ts";
import type { ArraySpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { persistentProblem, tiledCandidates } from "../matmul/choose.ts";
import { threadRows } from "../matmul/configuration.ts";
import type { TiledConfiguration, ProductSizes } from "../matmul/configuration.ts";
import { inputShape } from "../matmul/epilogue.ts";
import { problemOf } from "../matmul/matmul.ts";
import type { EpilogueInputs, MatmulSpec } from "../matmul/matmul.ts";
import { inputArguments, launched, operandArgument } from "../matmul/launch-arguments.ts";
import { tiledModel } from "../matmul/model.ts";
import { persistentLaunches, requirePossible } from "../matmul/plan.ts";
import { outputSpec } from "../matmul/problem.ts";
import type { Accumulation, MatmulPrecision, MatmulProblem } from "../matmul/problem.ts";
import { givenArray, refused, requireFields, requireRows, requireShape } from "../support/given.ts";
import type { Fields, GivenArray } from "../support/given.ts";
import { dealingLaunch, dealingOf, mostTiles } from "./dealing.ts";
import type { RaggedSizes } from "./dealing.ts";
import { plainDotKernel } from "./plain.ts";

type InputTiles<I extends EpilogueInputs> = {
  readonly [N in keyof I]: I[N] extends ArraySpec<infer D> ? Tile<D> : never;
};

export interface RaggedDotSpec<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
> {
  /** [m, k]: rows of all groups, one group after the other. */
  readonly a: GivenArray<A>;
  /** [g, k, n]: a matrix for each group; strides [k · n, 1, k] say that they lie by columns. */
  readonly b: GivenArray<B>;
  /** [g]: rows of each group. i32 unless told. */
  readonly groupSizes?: GivenArray<"i32">;
  /** The format of the result; that of the operands unless told, bf16 of FP8, i32 of integers. */
  readonly out?: DType<Out>;
  /** Further arrays that the epilogue sees: [m], [n] or [m, n]. */
  readonly inputs?: Inputs;
  /** What is done with the sums of a piece of the result before it is stored. */
  readonly epilogue?: (tiles: { readonly sums: Tile<"f32"> } & InputTiles<Inputs>) => Tile<Out>;
  /** How f32 is multiplied; for f32 alone, and always said. */
  readonly precision?: MatmulPrecision;
  /** How FP8 is summed; for FP8 alone, and always said. */
  readonly accumulation?: Accumulation;
  /** Instead of what the model would choose. */
  readonly configuration?: TiledConfiguration;
}

const fields: Fields = {
  a: "array",
  b: "array",
  groupSizes: "array",
  out: "format",
  inputs: "named",
  epilogue: "function",
  precision: "choice",
  accumulation: "choice",
  configuration: "settings",
};

export type RaggedDot<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
> = Operation<
  {
    readonly a: ArraySpec<A>;
    readonly b: ArraySpec<B>;
    readonly groupSizes: ArraySpec<"i32">;
  } & Inputs,
  { readonly out: ArraySpec<Out> },
  Empty,
  TiledConfiguration
>;

/** Rows of groups times the matrices of their groups. */
export function raggedDot<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
>(spec: RaggedDotSpec<A, B, Out, Inputs>): RaggedDot<A, B, Out, Inputs> {
  const location = captureLocation();
  requireFields("raggedDot", spec, fields, location);
  const problem = dotProblem(
    spec as unknown as RaggedDotSpec<DTypeName, DTypeName, DTypeName, EpilogueInputs>,
    location,
  );
  const groups = problem.b.shape[0] ?? 0;
  const groupSizes = groupSizesOf("raggedDot", spec.groupSizes, groups, location);
  const { configuration } = spec;
  return libraryOperation(
    {
      name: "ragged_dot",
      inputs: { a: problem.a, b: problem.b, groupSizes, ...problem.inputs },
      outputs: { out: problem.out },
      plan: (dimensions, target) => planOf(problem, configuration, dimensions, target, location),
    },
    spec,
  ) as unknown as RaggedDot<A, B, Out, Inputs>;
}

/** The product of matrices that it is for every group, with a result that has no batch. */
function dotProblem(
  spec: RaggedDotSpec<DTypeName, DTypeName, DTypeName, EpilogueInputs>,
  location: Location,
): MatmulProblem {
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const a = givenArray("a", "raggedDot", spec.a, [m, k], location);
  const b = givenArray("b", "raggedDot", spec.b, [g, k, n], location);
  const axes: readonly (readonly [string, ArraySpec, number])[] = [
    ["a", a, 2],
    ["b", b, 3],
  ];
  for (const [name, { shape }, rank] of axes)
    if (shape.length !== rank)
      throw refused(
        "TW9902",
        `${name} of raggedDot has ${shape.length} axes`,
        "a of [m, k], b of [g, k, n]",
        `${shape.length} axes`,
        location,
      );
  const { groupSizes: _, ...others } = spec;
  const problem = problemOf(
    { ...others, a, b } as MatmulSpec<DTypeName, DTypeName, DTypeName, EpilogueInputs>,
    location,
  );
  const sizes = { ...problem.sizes, batch: undefined };
  for (const [name, input] of Object.entries(problem.inputs))
    inputShape(name, input, sizes, location);
  return { ...problem, sizes, out: outputSpec(problem.out.dtype, undefined, sizes.m, sizes.n) };
}

/** The sizes of the groups, one for each. */
export function groupSizesOf(
  of: string,
  given: GivenArray<"i32"> | undefined,
  groups: Size,
  location: Location,
): ArraySpec<"i32"> {
  const spec = givenArray("groupSizes", of, given ?? dtypes.i32, [groups], location);
  requireRows("groupSizes", of, spec, location);
  requireShape("groupSizes", of, spec, [groups], location);
  if (spec.dtype === dtypes.i32 && sameSize(spec.shape[0] ?? 0, groups))
    return spec as ArraySpec<"i32">;
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
  given: TiledConfiguration | undefined,
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
  const slow = persistentProblem(problem, sizes, target);
  if (given !== undefined) requirePossible(given, problem, slow, target, location);
  if (given?.kernel === "persistent" && (given.schedule === "split" || given.cluster > 1))
    throw refused(
      "TW9904",
      "raggedDot does not split tiles along k, and has none that two blocks share",
      'schedule "tiles", cluster 1',
      JSON.stringify(given),
      location,
    );
  const configuration = given ?? chooseRagged(problem, sizes, slow, target);
  return {
    configuration,
    source: given === undefined ? "heuristic" : "given",
    ...launchesOf(problem, configuration, sizes, target, location),
    notes: slow === undefined ? [] : [`the plain kernel is used: ${slow}`],
  };
}

/** As for a batch of dense products whose rows are those of a group of middling size. */
function chooseRagged(
  problem: MatmulProblem,
  sizes: ProductSizes,
  slow: string | undefined,
  target: Target,
): TiledConfiguration {
  const { m, batch } = sizes;
  const alike = { ...sizes, m: Math.max(1, Math.ceil(m / Math.max(1, batch))) };
  const candidates = tiledCandidates(problem, alike, target).filter((each) =>
    each.kernel === "plain"
      ? slow !== undefined && each.split === 1
      : each.schedule === "tiles" && each.cluster === 1,
  );
  const seconds = tiledModel(problem, alike, target) ?? (() => 0);
  return candidates.reduce((best, each) => (seconds(each) < seconds(best) ? each : best));
}

function launchesOf(
  problem: MatmulProblem,
  configuration: TiledConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): Pick<Planned, "launches" | "scratch" | "notes"> {
  const { m, n, batch } = sizes;
  const ragged: RaggedSizes = { m, n, g: batch, unit: tileRows(configuration) };
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
          ...Object.fromEntries(Object.keys(scratch).map((name) => [name, { argument: name }])),
          out: { argument: "out" },
        },
        { ...sizes, most: mostTiles(ragged) },
      ),
    ],
  };
}

/** Rows of the result that a tile has. */
function tileRows(configuration: TiledConfiguration): number {
  if (configuration.kernel === "plain") return configuration.rows;
  return configuration.turned ? configuration.columns : configuration.multipliers * threadRows;
}
