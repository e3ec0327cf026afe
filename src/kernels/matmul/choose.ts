/**
 * Which of the kernels for all formats to use where none was given or measured: the one that a model of the GPU thinks
 * fastest. The
 * model is of the whole launch, since what matters most is how tiles fill processors:
 *
 *   by tiles   rounds of tiles × (steps × the longer of multiplying and fetching a step + what a tile costs besides)
 *   split      whole rounds, a part of one, and the handing over of sums
 *
 * or the time that memory needs for all of it, if that is longer; the shorter of the two is hidden but for a part.
 *
 * The rates are those of one processor at work, found by measuring single configurations, not shapes.
 */
import { ratesOf } from "../../ir/cost/index.ts";
import type { Target } from "../../targets/target.ts";
import { dtypes, packedBytes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type {
  TiledConfiguration,
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
} from "./configuration.ts";
import { depthOf } from "./tile-shapes.ts";
import { preparationsOf } from "./prepare.ts";
import type { Preparation } from "./prepare.ts";
import { multipliedFormat, prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import { copiedInputs, suitsDepth } from "./prologue.ts";
import { recipeOf } from "./recipe.ts";
import type { Recipe } from "./recipe.ts";
import { block, metadataBytes } from "./sparse-weights.ts";

/** The part of a processor's rate that tiles reach: wide ones read shared memory less for what they multiply. */
const tileEfficiency: {
  readonly [M in 1 | 2 | 4]: { readonly [C in PersistentConfiguration["columns"]]: number };
} = {
  1: { 8: 0.1, 16: 0.2, 32: 0.35, 64: 0.45, 128: 0.5, 192: 0.6, 256: 0.66 },
  2: { 8: 0.12, 16: 0.25, 32: 0.4, 64: 0.6, 128: 0.72, 192: 0.79, 256: 0.82 },
  4: { 8: 0.14, 16: 0.28, 32: 0.45, 64: 0.65, 128: 0.72, 192: 0.79, 256: 0.82 },
};
/**
 * How much faster tensor cores are with half of the elements: an instruction of 256 columns then reads 18 KB of shared memory in
 * 128 cycles, which gives 16.
 */
const sparseGain = 1.75;
/** Elements of a prologue a second that a processor computes and hands to its tensor cores from registers. */
const computedElements = 24e9;
/** Bytes a second that the shared cache gives one processor. */
const cacheBytes = 75e9;
/** The part of the memory's rate that copies reach. */
const memoryEfficiency = 0.9;
/** The part of it that the copies of operands reach which are prepared. */
const preparedEfficiency = 0.5;
/** Seconds of a step of the plain kernel: of a block that has a processor to itself, and of one among many. */
const plainStepSeconds = { alone: 1e-6, among: 0.45e-6 };
/** The part of the shorter of computing and moving that the other does not hide. */
const notHidden = 0.1;
/** Seconds that a tile takes besides its steps, and a launch besides its tiles. */
const tileSeconds = 0.8e-6;
const launchSeconds = 3e-6;
/** Bytes a second at which a block hands sums to another through the shared cache. */
const handedBytes = 90e9;
const greatestStages = 20;
/** A split, and pairs of blocks, must promise more than the model may be wrong by. */
const [splitMargin, pairMargin] = [1.05, 1.1];
/** Steps that a part of a tile has at least; for fewer, handing over would take longer. */
const leastSteps = 4;
/** Seconds until a block hears of what another has written, with the clearing of counters before the launch. */
const handedSeconds = 3e-6;

/** Why the persistent kernel cannot be used, in words for a note; undefined where it can. */
export function persistentProblem(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): string | undefined {
  if (!target.features.includes("wgmma") || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  const recipe = recipeOf(problem);
  if (recipe === undefined) return `wgmma does not multiply ${problem.a.dtype.name} as it is`;
  if (sizes.k === 0) return "there is nothing to multiply";
  return prologueProblem(problem, recipe, sizes);
}

/** Why what prologues read cannot be brought by the copy engine, likewise. */
function prologueProblem(
  problem: MatmulProblem,
  recipe: Recipe,
  { m, n, k }: ProductSizes,
): string | undefined {
  const { a, b } = problem.prologues;
  if (a !== undefined && b !== undefined) return "wgmma takes one operand from registers";
  const prologue = prologueOf(problem);
  if (prologue === undefined) return undefined;
  const { operand, unit } = prologue;
  if (recipe.terms.length > 1) return `${operand} is computed, and cannot be split into parts`;
  if (!suitsDepth(prologue, depthOf(problem, recipe)))
    return `groups of ${operand} are smaller than what is multiplied at once`;
  const extent = operand === "a" ? m : n;
  const along = problem.major[operand] === "k" ? Math.ceil(k / unit) * unit : extent;
  const isWhole = (elements: number, { bits }: DType): boolean => (elements * bits) % 128 === 0;
  if (!isWhole(along, problem[operand].dtype))
    return `rows of ${along} ${problem[operand].dtype.name} of ${operand} are no multiples of 16 bytes`;
  const odd = copiedInputs(prologue).find(({ dtype }) => !isWhole(extent, dtype));
  return odd && `rows of ${extent} ${odd.dtype.name} of ${odd.name} are no multiples of 16 bytes`;
}

/** The most columns of a tile: sums that are promoted are there twice, and fill the registers sooner. */
export function widestTile(problem: MatmulProblem): number {
  return recipeOf(problem)?.promoted === true ? 128 : 256;
}

/** Bytes that a row and a column of tiles take in a stage. */
interface StageBytes {
  readonly row: number;
  readonly column: number;
}

function stageBytes(problem: MatmulProblem): StageBytes {
  const recipe = recipeOf(problem);
  const prologue = prologueOf(problem);
  if (recipe !== undefined && problem.sparse) {
    const blocks = depthOf(problem, recipe) / block;
    return { row: rowBytes / 2 + blocks * metadataBytes, column: rowBytes };
  }
  if (recipe === undefined || prologue === undefined) return { row: rowBytes, column: rowBytes };
  const depth = depthOf(problem, recipe);
  const inputs = copiedInputs(prologue).reduce((sum, { dtype }) => sum + dtype.bits / 8, 0);
  return {
    row: packedBytes(problem[prologue.operand].dtype, depth) + inputs,
    column: packedBytes(recipe[prologue.operand === "a" ? "b" : "a"], depth),
  };
}

/** Bytes of shared memory that a configuration takes. */
export function sharedBytes(
  problem: MatmulProblem,
  {
    multipliers,
    columns,
    stages,
    turned,
  }: Omit<PersistentConfiguration, "kernel" | "schedule" | "cluster">,
): number {
  const rows = multipliers * threadRows;
  const { row, column } = stageBytes(problem);
  const results = turned && !problem.sparse ? 0 : multipliers * 2 * threadRows * rowBytes;
  return stages * (rows * row + columns * column) + results + 1024;
}

export function chooseTiled(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): TiledConfiguration {
  const plain = plainConfiguration(problem, sizes, target);
  const recipe = recipeOf(problem);
  if (recipe === undefined || persistentProblem(problem, sizes, target) !== undefined) return plain;
  let [best, least]: [TiledConfiguration, number] = [
    plain,
    problem.sparse ? Infinity : plainSeconds(recipe, plain, sizes, target),
  ];
  for (const each of persistentCandidates(problem, target)) {
    const margin =
      (each.schedule === "split" ? splitMargin : 1) * (each.cluster > 1 ? pairMargin : 1);
    const seconds = margin * estimatedSeconds(problem, recipe, sizes, each, target);
    if (seconds < least) [best, least] = [each, seconds];
  }
  return best;
}

/** What others are held against: the plain kernel, where it can be used. */
export function trustedConfiguration(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): TiledConfiguration {
  return problem.sparse
    ? chooseTiled(problem, sizes, target)
    : plainConfiguration(problem, sizes, target);
}

/** What is worth measuring, the model's choice among them. */
export function tiledCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): readonly TiledConfiguration[] {
  const plain = plainConfiguration(problem, sizes, target);
  if (recipeOf(problem) !== undefined && persistentProblem(problem, sizes, target) === undefined)
    return [...persistentCandidates(problem, target), ...(problem.sparse ? [] : [plain])];
  const splits = [...new Set([plain.split, 1, 2, 4, 8])];
  return splits.map((split) => ({ ...plain, split }));
}

/** What the model thinks of a configuration; undefined where it has no rates for the problem. */
export function tiledSeconds(
  problem: MatmulProblem,
  sizes: ProductSizes,
  configuration: TiledConfiguration,
  target: Target,
): number | undefined {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return undefined;
  return configuration.kernel === "plain"
    ? plainSeconds(recipe, configuration, sizes, target)
    : estimatedSeconds(problem, recipe, sizes, configuration, target);
}

const multiplierCounts = [2, 1, 4] as const;
/** Columns for which registers suffice. */
export const widestOf: { readonly [M in 1 | 2 | 4]: number } = { 1: 256, 2: 256, 4: 64 };

function persistentCandidates(
  problem: MatmulProblem,
  target: Target,
): readonly PersistentConfiguration[] {
  const widest = widestTile(problem);
  return multiplierCounts.flatMap((multipliers) =>
    (["tiles", "split"] as const).flatMap((schedule) =>
      tileFormsOf(problem)
        .filter(({ columns }) => columns <= Math.min(widest, widestOf[multipliers]))
        .filter(() => multipliers < 4 || prologueOf(problem) !== undefined)
        .map((form) => {
          const stages = mostStages(problem, { multipliers, ...form }, target);
          return { kernel: "persistent", multipliers, stages, schedule, ...form } as const;
        }),
    ),
  );
}

type TileForm = Pick<PersistentConfiguration, "columns" | "turned" | "cluster">;

/** Clusters are for wide tiles, which products take that read the cache more than memory. */
const tileForms: readonly TileForm[] = [
  ...([256, 192, 128, 64] as const).map(
    (columns) => ({ columns, turned: false, cluster: 1 }) as const,
  ),
  ...([256, 192, 128] as const).map((columns) => ({ columns, turned: false, cluster: 2 }) as const),
  ...([64, 32, 16, 8] as const).map((columns) => ({ columns, turned: true, cluster: 1 }) as const),
];

/** Sparse weights lie along rows; those who share columns of a fetch half as much. */
const sparseForms: readonly TileForm[] = [
  ...([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, turned: true, cluster: 1 }) as const,
  ),
  ...([256, 192, 128] as const).map((columns) => ({ columns, turned: true, cluster: 2 }) as const),
];

/** What is computed lies along rows of tiles, whichever operand it is. */
function tileFormsOf(problem: MatmulProblem): readonly TileForm[] {
  if (problem.sparse) return sparseForms;
  const prologue = prologueOf(problem);
  if (prologue === undefined) return tileForms;
  const turned = prologue.operand === "b";
  return ([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, turned, cluster: 1 }) as const,
  );
}

/** As many stages as fit, up to what memory needs in flight: more hide no more. */
function mostStages(
  problem: MatmulProblem,
  form: Pick<PersistentConfiguration, "multipliers" | "columns" | "turned">,
  target: Target,
): number {
  let stages = greatestStages;
  const fits = (): boolean =>
    sharedBytes(problem, { ...form, stages }) <= target.sharedMemoryPerBlock;
  while (stages > 2 && !fits()) stages -= 1;
  return stages;
}

/** What the model thinks a launch takes. */
function estimatedSeconds(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  configuration: PersistentConfiguration,
  target: Target,
): number {
  const { multipliers, columns, schedule, cluster } = configuration;
  const rates = ratesOf(target);
  const rows = multipliers * threadRows;
  const { m, n, k, batch } = sizes;
  const depth = depthOf(problem, recipe);
  const tiles = tileCount(configuration, sizes);
  const workers = workerCount(configuration, sizes, depth, target);
  const rounds = Math.ceil(tiles / workers);
  const steps = Math.ceil(k / depth);
  const gain = problem.sparse ? sparseGain : 1;
  const rate = (gain * rates.products[productRate(recipe)]) / target.processors;
  const multiplying = (2 * rows * columns * depth) / (rate * tileEfficiency[multipliers][columns]);
  // Rows and columns beyond the edges are filled in, which takes the copy engine as long.
  const bytes = stageBytes(problem);
  const fetching = (rows * bytes.row + (columns / cluster) * bytes.column) / cacheBytes;
  const computing = prologueOf(problem) === undefined ? 0 : (rows * depth) / computedElements;
  const step = recipe.terms.length * Math.max(multiplying, fetching, computing);
  const parts = schedule === "tiles" ? 1 : lastParts(tiles, workers, steps);
  const lastRound = Math.ceil(steps / parts) * step + tileSeconds;
  const busy = (rounds - 1) * (steps * step + tileSeconds) + lastRound;
  const handing = parts === 1 ? 0 : handedSeconds + (parts * rows * columns * 4) / handedBytes;
  const formatOf = (name: "a" | "b"): DType =>
    problem.prologues[name] === undefined ? recipe[name] : problem[name].dtype;
  const read =
    packedBytes(formatOf("a"), batch * m * k) +
    (problem.sparse ? 0.625 : 1) * packedBytes(formatOf("b"), batch * k * n);
  const moved = recipe.parts * read + packedBytes(problem.out.dtype, batch * m * n);
  const memory = moved / (rates.gmemBytes * memoryEfficiency);
  const { a, b } = preparationsOf(problem, recipe, sizes);
  const preparing = [a, b].reduce(
    (sum, each) => sum + (each === undefined ? 0 : preparationSeconds(each, rates.gmemBytes)),
    0,
  );
  const product = Math.max(busy, memory) + notHidden * Math.min(busy, memory);
  return preparing + product + handing + launchSeconds;
}

/** Parts that each tile of the last round is cut into. */
function lastParts(tiles: number, workers: number, steps: number): number {
  const left = tiles % workers;
  return left === 0 ? 1 : Math.min(steps, Math.floor(workers / left));
}

function productRate({ a }: Recipe): "byte" | "half" | "tf32" {
  if (a.bits === 8) return "byte";
  return a.bits === 16 ? "half" : "tf32";
}

/** Reading an operand and writing its parts; rows that are not aligned are read element by element. */
function preparationSeconds(
  { dtype, parts, batch, rows, columns }: Preparation,
  gmemBytes: number,
): number {
  const bytes = packedBytes(dtype, batch * rows * columns) * (parts + 1);
  return launchSeconds + bytes / (gmemBytes * preparedEfficiency);
}

/** What the model thinks the plain kernel takes where the persistent one could be used: steps wait for memory. */
function plainSeconds(
  recipe: Recipe,
  configuration: PlainConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const { depth, split } = configuration;
  const tiles = tileCount(configuration, sizes);
  const steps = Math.ceil(Math.ceil(sizes.k / depth) / split) * recipe.terms.length;
  const step = Math.max(
    plainStepSeconds.alone,
    (tiles / target.processors) * plainStepSeconds.among,
  );
  return launchSeconds * (split === 1 ? 1 : 2) + steps * step;
}

/** Tiles of the result, those of all parts of k and of all batches; a cluster's count as one. */
export function tileCount(
  configuration: TiledConfiguration,
  { m, n, batch }: ProductSizes,
): number {
  const { columns } = configuration;
  if (configuration.kernel === "plain")
    return batch * configuration.split * Math.ceil(m / configuration.rows) * Math.ceil(n / columns);
  const rows = configuration.multipliers * configuration.cluster * threadRows;
  const [height, width] = configuration.turned ? [n, m] : [m, n];
  return batch * Math.ceil(height / rows) * Math.ceil(width / columns);
}

/** Blocks of the persistent kernel, or clusters of them: one a processor, if there is work for all of them. */
export function workerCount(
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  depth: number,
  { processors }: Target,
): number {
  const tiles = tileCount(configuration, sizes);
  const parts = Math.max(1, Math.floor(Math.ceil(sizes.k / depth) / leastSteps));
  const places = Math.floor(processors / configuration.cluster);
  return Math.min(places, tiles * (configuration.schedule === "tiles" ? 1 : parts));
}

/** Elements of k in a step of the plain kernel. */
export const plainDepths: readonly PlainConfiguration["depth"][] = [16, 32, 64, 128];

/** Those of them in which no prologue sees numbers of two groups, nor a part of what is stored together. */
export function plainDepthsOf({
  prologues: { a, b },
}: MatmulProblem): readonly PlainConfiguration["depth"][] {
  const prologues = [a, b].filter((each) => each !== undefined);
  return plainDepths.filter((depth) => prologues.every((each) => suitsDepth(each, depth)));
}

/** Tiles that fit in registers for every format, split where they are too few for the processors. */
export function plainConfiguration(
  problem: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  target: Target,
): PlainConfiguration {
  const wide = problem.accumulator === dtypes.f64;
  const { bits } = multipliedFormat(problem, "a");
  const [rows, columns, usual] = wide
    ? ([64, 32, 16] as const)
    : ([64, 64, bits >= 32 ? 16 : bits === 16 ? 32 : 64] as const);
  const suiting = plainDepthsOf(problem);
  const depth = ([usual, 32, 16, 64, 128] as const).find((each) => suiting.includes(each)) ?? usual;
  const tiles = batch * Math.ceil(m / rows) * Math.ceil(n / columns);
  const steps = Math.ceil(k / depth);
  const wanted = Math.min(
    Math.floor(target.processors / Math.max(1, tiles)),
    Math.floor(steps / 8),
    16,
  );
  return { kernel: "plain", rows, columns, depth, split: Math.max(1, wanted) };
}
