/**
 * How a product is carried out for some sizes: the configuration that was given or that the model chooses, and its
 * launches.
 *
 *   persistent      prepare a and b (where they cannot be read as they are)  ──▶  product  ──▶  sum of parts (`split-k.ts`)
 *   plain, skinny   product  ──▶  sum of parts (where k is split)
 *   gemv            product
 */
import type { Planned, PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import { dtypes, packedBytes } from "../../formats/dtype.ts";
import { ratesOf } from "../../ir/cost/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { chooseConfiguration } from "./heuristics/all-configurations.ts";
import { persistentProblem } from "./heuristics/select-configuration.ts";
import { plainDepths, plainDepthsOf } from "./heuristics/plain-depths.ts";
import { requireGemv } from "./skinny/gemv-candidates.ts";
import { gemvKernel, gemvPiece } from "./skinny/gemv.ts";
import { partsOfK } from "./user-array-names.ts";
import { exchanged } from "./mainloop/f64.ts";
import { edgesOf } from "./scheduler/edges.ts";
import { outputArguments, withCombined } from "./epilogue/combined-outputs.ts";
import { refuseOldKernel, requireSettings } from "../support/arguments.ts";
import { matmulSettings, persistentColumns } from "./configuration.ts";
import type {
  MatmulConfiguration,
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
  TiledConfiguration,
} from "./configuration.ts";
import {
  inputArguments,
  launched,
  operandArgument,
  prologueArguments,
} from "./launch-arguments.ts";
import { requireSkinny } from "./skinny/candidates.ts";
import { skinnyKernel, skinnyPiece } from "./skinny/skinny.ts";
import type { PieceShape } from "./epilogue/types.ts";
import { persistentKernel } from "./persistent.ts";
import type { PersistentForm } from "./kernel-context.ts";
import {
  copiesResult,
  depthOf,
  isCopied,
  leastStages,
  pieceOf,
  sharedBytes,
  workerCount,
} from "./tile-shapes.ts";
import { requireTensorTile } from "./heuristics/tensor-memory-tiles.ts";
import { widestOf, widestTile } from "./heuristics/tilings.ts";
import type { DealtRows } from "./scheduler/tile-scheduler.ts";
import { mayHaveParts, partCount, productOfParts } from "./scheduler/split-k.ts";
import { plainKernel } from "./plain.ts";
import { preparationsOf, prepareKernel } from "./prologue/prepare.ts";
import { outputArgument, rowAlignment, viewValues } from "./views.ts";
import type { Preparation } from "./prologue/prepare.ts";
import { prologueOf, requireRoom } from "./problem.ts";
import { refused } from "./argument-errors.ts";
import type { MatmulProblem } from "./problem.ts";
import { suitsBlocks } from "./block-scales.ts";
import { recipeIn, recipeOf } from "./f32-emulation.ts";
import { sumsMemory } from "../../targets/product-instructions.ts";
import { withRoom } from "./heuristics/shared-memory-fit.ts";
import { missingProduct } from "./weights/sparse-weights.ts";
import { summedPiece, sumPartsKernel } from "./epilogue/split-k-reduce.ts";
import { productSizes } from "./tuning.ts";

export function planOf(
  problem: MatmulProblem,
  asked: MatmulConfiguration | undefined,
  dimensions: { readonly [name: string]: number },
  target: Target,
  location: Location,
): Planned<MatmulConfiguration> {
  const sizes = productSizes(problem, dimensions);
  const given = multiplying(asked, problem, sizes, location);
  const slow = persistentProblem(problem, sizes, target);
  if (problem.sparse && slow !== undefined) {
    if (sizes.k > 0) throw missingProduct(target, location);
    // Nothing is read of the weights.
    const dense = { ...problem, sparse: false, prologueInputs: {} };
    return planOf(dense, undefined, dimensions, target, location);
  }
  if (given?.kernel === "skinny") requireSkinny(given, problem, sizes, target, location);
  else if (given?.kernel === "gemv") requireGemv(given, problem, sizes, location);
  else if (given !== undefined) requirePossible(given, problem, slow, target, location);
  const configuration = given ?? chosenConfiguration(problem, sizes, target, location);
  return {
    configuration,
    source: given === undefined ? "heuristic" : "given",
    ...withCombined(
      launchesOf(problem, configuration, sizes, target, location),
      problem,
      finishedPiece(problem, configuration, sizes, target),
      sizes,
    ),
    ...(configuration.kernel === "plain" &&
      slow !== undefined && { notes: [`the plain kernel is used: ${slow}`] }),
  };
}

/**
 * The configuration that was asked for, unless k is 0: kernels that copy operands ahead have no step to begin with then, and the plain one, which is chosen
 * instead, writes what the epilogue makes of zeros.
 */
export function multiplying<C extends MatmulConfiguration>(
  asked: C | undefined,
  { of }: MatmulProblem,
  { k }: ProductSizes,
  location: Location,
): C | undefined {
  if (asked === undefined || k > 0) return asked;
  if (asked.kernel !== "persistent" && asked.kernel !== "skinny") return asked;
  const known: readonly string[] = matmulSettings[asked.kernel];
  requireSettings(of, asked, known as readonly (keyof C & string)[], location);
  return undefined;
}

/** What the model chooses, with as many stages as leave room for what functions of users need. */
function chosenConfiguration(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): MatmulConfiguration {
  const chosen = chooseConfiguration(problem, sizes, target);
  if (chosen.kernel !== "persistent" || sizes.m * sizes.n * sizes.batch === 0) return chosen;
  return fittingRoom(problem, chosen, sizes, target, location);
}

/** The configuration, with as many stages as leave room, likewise. */
export function fittingRoom(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
  dealt?: DealtRows,
): PersistentConfiguration {
  const form = formOf(problem, configuration, sizes, target, location);
  return withRoom(dealt === undefined ? form : { ...form, dealt }, target);
}

/** The pieces in which the last of the product's launches finishes the result. */
function finishedPiece(
  problem: MatmulProblem,
  configuration: MatmulConfiguration,
  sizes: ProductSizes,
  target: Target,
): PieceShape {
  if (configuration.kernel === "persistent")
    return partsOf(problem, configuration, sizes, target) > 1
      ? summedPiece
      : pieceOf(problem, configuration, sumsMemory(target));
  if (configuration.kernel === "gemv") return gemvPiece(configuration);
  if (configuration.splitK > 1) return summedPiece;
  if (configuration.kernel === "skinny") return skinnyPiece(problem, configuration);
  const { rows, columns } = configuration;
  return { rows, columns };
}

function launchesOf(
  problem: MatmulProblem,
  configuration: MatmulConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): Launches {
  if (configuration.kernel === "persistent")
    return configuration.schedule === "split-k"
      ? partLaunches(problem, configuration, sizes, target, location)
      : persistentLaunches(problem, configuration, sizes, target, location);
  const product = (): KernelDefinition => {
    if (configuration.kernel === "plain")
      return plainKernel(problem, configuration, sizes, location);
    if (configuration.kernel === "skinny")
      return skinnyKernel(problem, configuration, sizes, location);
    const weights = packedBytes(problem.b.dtype, sizes.n * sizes.k);
    return gemvKernel(problem, configuration, sizes, weights > ratesOf(target).l2, location);
  };
  const splitK = configuration.kernel === "gemv" ? 1 : configuration.splitK;
  return splitLaunches(problem, splitK, product, sizes, location);
}

export function requirePossible(
  configuration: TiledConfiguration,
  problem: MatmulProblem,
  slow: string | undefined,
  target: Target,
  location: Location,
): void {
  refuseOldKernel(problem.of, configuration, location);
  const text = isRecord(configuration) ? JSON.stringify(configuration) : optionText(configuration);
  if (
    !isRecord(configuration) ||
    (configuration.kernel !== "persistent" && configuration.kernel !== "plain")
  )
    throw refused(
      "TW9904",
      `${problem.of} has no such configuration`,
      `{ kernel: ${problem.of === "matmul" ? '"persistent", "skinny", "gemv"' : '"persistent"'} or "plain", … }`,
      text,
      location,
    );
  if (configuration.kernel === "plain") {
    requireSettings(problem.of, configuration, matmulSettings.plain, location);
    requirePlain(configuration, problem, text, location);
    return;
  }
  requireSettings(problem.of, configuration, matmulSettings.persistent, location);
  if (slow !== undefined)
    throw refused(
      "TW9904",
      `${problem.of} cannot use the persistent kernel here: ${slow}`,
      '{ kernel: "plain", … }',
      text,
      location,
    );
  requirePersistent(configuration, problem, target, text, location);
}

/** Numbers of f64 that the lanes of a thread have no registers for. */
const mostDoubles = 128 * 128;

/** Refuses what no kernel of this form can be, and steps in which a prologue would see numbers of two groups. */
function requirePlain(
  configuration: PlainConfiguration,
  problem: MatmulProblem,
  text: string,
  location: Location,
): void {
  const { rows, columns, depth, splitK } = configuration;
  const wrong = (message: string, expected: string): Error =>
    refused("TW9904", message, expected, text, location);
  if (problem.sparse)
    throw wrong("the plain kernel does not multiply sparse weights", '{ kernel: "persistent", … }');
  if (!Number.isSafeInteger(splitK) || splitK < 1 || splitK > 64)
    throw wrong(`${problem.of} cannot splitK k like this`, "a whole number from 1 to 64");
  if (![64, 128].includes(rows) || ![32, 64, 128].includes(columns) || !plainDepths.includes(depth))
    throw wrong(
      `${problem.of} has no such plain kernel`,
      `rows 64 or 128, columns 32, 64 or 128, depth ${plainDepths.join(", ")}`,
    );
  // Numbers of f64 take two registers, of which a lane has 255.
  const most = Math.max(rows * columns, rows * depth, columns * depth);
  if (problem.accumulator === dtypes.f64 && most >= mostDoubles)
    throw wrong(
      "tiles of f64 take more registers than there are",
      "at most one of rows, columns and depth of 128",
    );
  if (!suitsBlocks(problem, rows, "a") || !suitsBlocks(problem, columns, "b"))
    throw wrong(
      "tiles lie in two blocks that have scales of their own",
      "rows and columns that divide those of blocks",
    );
  const suiting = plainDepthsOf(problem);
  const hasPrologue = (problem.prologues.a ?? problem.prologues.b) !== undefined;
  if (!suiting.includes(depth))
    throw wrong(
      hasPrologue
        ? "groups of an operand are smaller than what is multiplied at once"
        : "steps of 8 are of f64 alone",
      `depth ${suiting.join(", ")}`,
    );
}

/** Refuses what no kernel of this form can be. */
function requirePersistent(
  configuration: PersistentConfiguration,
  problem: MatmulProblem,
  target: Target,
  text: string,
  location: Location,
): void {
  const { columns, consumers, schedule, swapAB, cluster } = configuration;
  // Configurations also come from files of earlier versions.
  const isKnown =
    [1, 2, 4].includes(consumers) &&
    persistentColumns.includes(columns) &&
    ["tiles", "stream-k", "split-k"].includes(schedule) &&
    typeof swapAB === "boolean" &&
    [1, 2].includes(cluster);
  const computed = prologueOf(problem)?.operand;
  if (isKnown && problem.sparse && !swapAB)
    throw refused(
      "TW9904",
      "sparse weights lie along rows of tiles",
      "swapAB true",
      text,
      location,
    );
  if (!isKnown)
    throw refused(
      "TW9904",
      `${problem.of} has no such persistent kernel`,
      `consumers 1, 2 or 4, columns ${persistentColumns.join(", ")}, schedule "tiles", "stream-k" or "splitK-k", swapAB true or false, cluster 1 or 2`,
      text,
      location,
    );
  if (computed !== undefined && (swapAB !== (computed === "b") || cluster > 1))
    throw refused(
      "TW9904",
      `${computed} is computed, and lies along rows of tiles`,
      `swapAB ${String(computed === "b")}, cluster 1`,
      text,
      location,
    );
  const recipe = recipeOf(problem);
  if (schedule === "split-k" && (recipe === undefined || !mayHaveParts(problem, recipe)))
    throw refused(
      "TW9904",
      "tiles are multiplied in parts where operands are one matrix each, as they lie or weights whose scales travel with them",
      'schedule "tiles" or "stream-k"',
      text,
      location,
    );
  // Halves of the columns that blocks share are copied to multiples of 1024 bytes.
  if (cluster > 1 && columns < 16)
    throw refused(
      "TW9904",
      "columns of pairs of blocks are copied by halves",
      "at least 16 columns, or cluster 1",
      text,
      location,
    );
  if (sumsMemory(target) === "tensor") requireTensorTile(configuration, problem, text, location);
  else requireColumns(configuration, problem, text, location);
  const least = recipe && leastStages(recipe);
  requireRoom(
    problem.of,
    configuration,
    sharedBytes(problem, configuration),
    target,
    location,
    least,
  );
}

/** Refuses tiles of columns that registers do not suffice for, or that warps cannot share. */
function requireColumns(
  { columns, consumers, swapAB }: PersistentConfiguration,
  problem: MatmulProblem,
  text: string,
  location: Location,
): void {
  if (recipeOf(problem)?.issuer === "warp" && columns % exchanged !== 0)
    throw refused(
      "TW9904",
      "tiles of f64 are multiplied by 32 columns",
      `a multiple of ${exchanged} columns`,
      text,
      location,
    );
  if (!suitsBlocks(problem, columns, swapAB ? "a" : "b"))
    throw refused(
      "TW9904",
      "tiles lie in two blocks that have scales of their own",
      `columns that divide the block's`,
      text,
      location,
    );
  const most = Math.min(widestTile(problem), widestOf[consumers]);
  if (columns > most)
    throw refused(
      "TW9904",
      "sums of so many columns take more registers than there are",
      `at most ${most} columns`,
      text,
      location,
    );
}

/** Parts of k that a launch of its own sums. */
function partsOf(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const recipe = recipeOf(problem);
  if (recipe === undefined) throw new Error("no tensor core multiplies these formats");
  return partCount(problem, configuration, sizes, depthOf(problem, recipe), target);
}

/** Products of parts of k, and their sum. */
function partLaunches(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): Launches {
  const parts = partsOf(problem, configuration, sizes, target);
  const whole = { ...configuration, schedule: "tiles" } as const;
  if (parts === 1) return persistentLaunches(problem, whole, sizes, target, location);
  const { m, n } = sizes;
  if (m * n === 0) return { launches: [] };
  const given = persistentLaunches(
    ...([productOfParts(problem), whole, { ...sizes, batch: parts }, target, location] as const),
    ...([undefined, parts] as const),
  );
  const summed = (): PlannedLaunch =>
    launched(
      sumPartsKernel(problem, parts, sizes, location),
      {
        ...inputArguments(problem),
        ...outputArguments(problem),
        parts: { argument: partsOfK },
        out: outputArgument(problem.views),
      },
      { ...sizes, ...viewValues(problem.views), layers: parts },
    );
  return {
    ...given,
    scratch: { ...given.scratch, [partsOfK]: { dtype: problem.accumulator, shape: [parts, m, n] } },
    launches: () => [
      ...(typeof given.launches === "function" ? given.launches() : given.launches),
      summed(),
    ],
  };
}

type Launches = Pick<Planned, "launches" | "scratch" | "notes">;

/** Rows that are dealt to tiles on the device: by which launch, and into which tables. */
export interface Dealing {
  readonly rows: DealtRows;
  readonly launch: () => PlannedLaunch;
  readonly scratch: NonNullable<Planned["scratch"]>;
  /** The tables as kernels call them. */
  readonly tables: PlannedLaunch["arguments"];
  readonly dimensions: { readonly [name: string]: number };
}

/** The product, and before it the preparation of operands that it cannot read as they are. */
export function persistentLaunches(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
  dealing?: Dealing,
  parts = 1,
): Launches {
  const { m, n, batch } = sizes;
  if (m * n * batch === 0) return { launches: [] };
  const form = { ...formOf(problem, configuration, sizes, target, location), parts };
  const { recipe, prepared } = form;
  const preparations = [prepared.a, prepared.b].filter((each) => each !== undefined);
  const operand = (name: "a" | "b"): PlannedArgument => {
    const done = prepared[name];
    return done === undefined
      ? operandArgument(problem, name, sizes)
      : { argument: scratchName(done), shape: [preparedElements(done)] };
  };
  const values = {
    ...{ ...sizes, ...viewValues(problem.views) },
    workers: workerCount(configuration, sizes, depthOf(problem, recipe), target),
    ...Object.fromEntries(preparations.map(({ name, pitch }) => [`pitch_${name}`, pitch])),
    ...dealing?.dimensions,
  };
  const product = (): KernelDefinition =>
    persistentKernel(dealing === undefined ? form : { ...form, dealt: dealing.rows, edges: {} });
  return {
    notes: preparations.map(({ reason }) => reason),
    scratch: {
      ...dealing?.scratch,
      ...Object.fromEntries(
        preparations.map((each) => [
          scratchName(each),
          { dtype: each.dtype, shape: [preparedElements(each)] },
        ]),
      ),
    },
    launches: () => [
      ...(dealing === undefined ? [] : [dealing.launch()]),
      ...preparationLaunches(problem, preparations),
      launched(
        product(),
        {
          ...{
            a: operand("a"),
            b: operand("b"),
            out: parts === 1 ? outputArgument(problem.views) : { argument: partsOfK },
          },
          ...inputArguments(problem),
          ...outputArguments(problem),
          ...prologueArguments(problem, sizes),
          ...dealing?.tables,
        },
        values,
      ),
    ],
  };
}

function formOf(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
  location: Location,
): PersistentForm {
  const sums = sumsMemory(target);
  const recipe = recipeIn(problem, sums);
  if (recipe === undefined) throw new Error("no tensor core multiplies these formats");
  const prepared = preparationsOf(problem, recipe, sizes, { ...configuration, sums });
  const aligned = rowAlignment(problem.views?.out, sizes.n);
  const copiesOut = copiesResult(problem, configuration) && isCopied(problem.out.dtype, aligned);
  const edges = edgesOf(problem, recipe, configuration, sizes, target);
  const { processors } = target;
  return {
    problem,
    recipe,
    prepared,
    configuration,
    sums,
    sizes,
    processors,
    cache: ratesOf(target).l2,
    copiesOut,
    edges,
    location,
    parts: 1,
  };
}

function scratchName({ name }: Preparation): string {
  return `prepared ${name}`;
}

function preparedElements({ parts, batch, transposes, rows, columns, pitch }: Preparation): number {
  return parts * batch * (transposes ? columns : rows) * pitch;
}

/** One launch for all operands that are prepared. */
function preparationLaunches(
  problem: MatmulProblem,
  preparations: readonly Preparation[],
): readonly PlannedLaunch[] {
  if (preparations.length === 0) return [];
  const operands = preparations.map((preparation) => ({
    source: problem[preparation.name].dtype,
    preparation,
  }));
  const given: { [parameter: string]: PlannedArgument } = {};
  const values: { [name: string]: number } = { ...viewValues(problem.views) };
  for (const each of preparations) {
    const { name, batch, rows, columns, pitch } = each;
    given[`x_${name}`] =
      each.view === undefined
        ? { argument: name, shape: [batch, rows, columns] }
        : { argument: name, flat: true };
    given[`y_${name}`] = { argument: scratchName(each), shape: [preparedElements(each)] };
    for (const [size, value] of Object.entries({ batch, rows, columns, pitch }))
      values[`${size}_${name}`] = value;
  }
  return [launched(prepareKernel(operands), given, values)];
}

/** The product, and the sum of its parts where k is split. */
function splitLaunches(
  problem: MatmulProblem,
  splitK: number,
  product: () => KernelDefinition,
  sizes: ProductSizes,
  location: Location,
): Launches {
  const { m, n, batch } = sizes;
  if (m * n * batch === 0) return { launches: [] };
  const operands = {
    a: operandArgument(problem, "a", sizes),
    b: operandArgument(problem, "b", sizes),
    ...prologueArguments(problem, sizes),
  };
  const inputs = { ...inputArguments(problem), ...outputArguments(problem) };
  const out = outputArgument(problem.views);
  const values = { ...sizes, ...viewValues(problem.views), layers: splitK * batch };
  if (splitK === 1)
    return { launches: () => [launched(product(), { ...operands, ...inputs, out }, values)] };
  const parts = { argument: partsOfK };
  return {
    scratch: { [partsOfK]: { dtype: problem.accumulator, shape: [values.layers, m, n] } },
    launches: () => [
      launched(product(), { ...operands, out: parts }, values),
      launched(sumPartsKernel(problem, splitK, sizes, location), { parts, ...inputs, out }, values),
    ],
  };
}
