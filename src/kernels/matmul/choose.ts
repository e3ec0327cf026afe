/**
 * Which of the kernels for all formats to use where none was given or measured: the one that the model (`model.ts`), corrected
 * by what was learned (`learned/corrected.ts`), thinks fastest of those that there are.
 */
import type { Target } from "../../targets/target.ts";
import { dtypes, packedBytes } from "../../formats/dtype.ts";
import type {
  TiledConfiguration,
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
} from "./configuration.ts";
import { threadRows } from "./configuration.ts";
import { correctionOf } from "./learned/corrected.ts";
import { tiledModel } from "./model.ts";
import { exchanged } from "./double-sums.ts";
import { isHeld } from "./held-rows.ts";
import { mayHaveParts, partCount } from "./parts.ts";
import {
  depthOf,
  isCopied,
  leastStages,
  roomOfBlock,
  sharedBytes,
  tileCount,
  workerCount,
} from "./tile-shapes.ts";
import { multipliedFormat, prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import { copiedInputs, suitsDepth } from "./prologue.ts";
import { recipeOf } from "./recipe.ts";
import type { Recipe } from "./recipe.ts";

const greatestStages = 20;

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
  if (recipe.instruction === "mma" && (problem.prologues.a ?? problem.prologues.b) !== undefined)
    return "an operand of f64 is computed";
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
  if (!isCopied(problem[operand].dtype, along))
    return `rows of ${along} ${problem[operand].dtype.name} of ${operand} are no multiples of 16 bytes`;
  const odd = copiedInputs(prologue).find(({ dtype }) => !isCopied(dtype, extent));
  return odd && `rows of ${extent} ${odd.dtype.name} of ${odd.name} are no multiples of 16 bytes`;
}

/**
 * The most columns of a tile: sums that are promoted are there twice, those of several terms three times, and those of f64 twice as wide, and fill
 * the registers sooner.
 */
export function widestTile(problem: MatmulProblem): number {
  const recipe = recipeOf(problem);
  if (recipe?.instruction === "mma") return 128;
  if (recipe?.promoted !== true) return 256;
  return recipe.terms.length > 1 ? 128 : 192;
}

/** How many that the model thinks fastest are corrected: of 583 products, most of them fitted to, none was chosen from further behind, and one from behind the first 12. */
const mostCorrected = 16;

export function chooseTiled(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): TiledConfiguration {
  const plain = plainConfiguration(problem, sizes, target);
  const secondsOf = tiledModel(problem, sizes, target);
  if (secondsOf === undefined || persistentProblem(problem, sizes, target) !== undefined)
    return plain;
  const candidates = persistentCandidates(problem, sizes, target);
  const thought = [...candidates, ...(problem.sparse ? [] : [plain])].map((configuration) => ({
    configuration,
    seconds: secondsOf(configuration),
  }));
  const corrected = correctionOf(problem, sizes, target);
  let best: TiledConfiguration = plain;
  let least = Infinity;
  const fastest = thought.sort((left, right) => left.seconds - right.seconds);
  for (const { configuration, seconds } of fastest.slice(0, mostCorrected)) {
    const found = corrected(configuration, seconds);
    if (found < least) [best, least] = [configuration, found];
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
    return [
      ...persistentCandidates(problem, sizes, target, "timed"),
      ...(problem.sparse ? [] : [plain]),
    ];
  const splits = [...new Set([plain.split, 1, 2, 4, 8])];
  return splits.map((split) => ({ ...plain, split }));
}

/**
 * Bytes of weights in few bits from which on tiles were timed in parts of k, beside what was chosen otherwise:
 *
 *   n × k           rows   i4, µs          i8, µs
 *   14336 × 4096    32     18.3 and 20.0   23.3 and 21.5
 *   4096 × 14336    32     16.4 and 19.0
 *   8192 × 8192     32     18.6 and 20.5   26.4 and 24.9
 *   4096 × 14336    64     19.9 and 27.9   25.6 and 32.1
 *   8192 × 8192     64     22.0 and 26.4   27.5 and 31.2
 */
const leastPartedBytes = { 8: 5e7, 4: 2.5e7 } as const;
/** Rows from which on those of 8 bits are. */
const leastWideRows = 33;
const multiplierCounts = [2, 1, 4] as const;
/** Columns for which registers suffice. */
export const widestOf: { readonly [M in 1 | 2 | 4]: number } = { 1: 256, 2: 256, 4: 64 };

/** Those that the model may choose among, or that are timed. */
export function persistentCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
  purpose: Purpose = "chosen",
): readonly PersistentConfiguration[] {
  const widest = widestTile(problem);
  const pairs = sharesBarriers(problem, sizes);
  const recipe = recipeOf(problem);
  const apart =
    recipe !== undefined && mayHaveParts(problem, recipe) && mayPartWeights(problem, sizes);
  const mayHave = (multipliers: number, { turned, cluster }: TileForm): boolean =>
    cluster === 1 &&
    (problem.weights === undefined
      ? multipliers < 4
      : turned &&
        multipliers === 4 &&
        2 * Math.ceil(sizes.n / (4 * threadRows)) <= target.processors);
  return multiplierCounts.flatMap((multipliers) =>
    (["tiles", "split", "parts"] as const).flatMap((schedule) =>
      tileFormsOf(problem)
        .filter(({ columns }) => columns <= Math.min(widest, widestOf[multipliers]))
        .filter((form) => purpose === "timed" || !isSeldomBest(problem, multipliers, form))
        .filter((form) =>
          schedule === "parts"
            ? apart && mayHave(multipliers, form)
            : multipliers < 4 || prologueOf(problem) !== undefined,
        )
        .filter(({ cluster }) => cluster === 1 || (pairs && schedule === "tiles"))
        .filter((form) => isCut(problem, { multipliers, schedule, ...form }, sizes, target))
        .flatMap((form) =>
          stagesOf(problem, { multipliers, schedule, ...form }, sizes, target).map(
            (stages) => ({ kernel: "persistent", multipliers, stages, schedule, ...form }) as const,
          ),
        ),
    ),
  );
}

/** Whether weights in few bits, where they are such, are multiplied in parts. */
function mayPartWeights({ weights, b }: MatmulProblem, { m, n, k }: ProductSizes): boolean {
  if (weights === undefined) return true;
  const bits = weights.dtype.bits === 4 ? 4 : 8;
  return (
    (bits === 4 || m >= leastWideRows) && packedBytes(b.dtype, n * k) >= leastPartedBytes[bits]
  );
}

/** Whether tiles that may be cut along k are: where all would be whole, what is done for those that are not takes time, too. */
function isCut(
  problem: MatmulProblem,
  form: Omit<PersistentConfiguration, "kernel" | "stages">,
  sizes: ProductSizes,
  target: Target,
): boolean {
  const recipe = recipeOf(problem);
  if (form.schedule === "tiles" || recipe === undefined) return true;
  const configuration = { kernel: "persistent", stages: fewStages, ...form } as const;
  const depth = depthOf(problem, recipe);
  if (form.schedule === "parts") return partCount(problem, configuration, sizes, depth, target) > 1;
  const workers = workerCount(configuration, sizes, depth, target);
  const left = tileCount(configuration, sizes) % workers;
  return left > 0 && 2 * left <= workers && sizes.k > depth;
}

/**
 * Whether pairs of blocks are worth it. Where lanes write memory, results as well as sums that are handed on, what they tell
 * the other block in every step takes a flush of caches: such pairs took twice as long as single blocks.
 */
function sharesBarriers({ out, outputs }: MatmulProblem, { n }: ProductSizes): boolean {
  return outputs.length === 0 && isCopied(out.dtype, n);
}

/**
 * Tiles that were the fastest of none of 180 random products, so that the model need not know when they might be. 96 columns along k, which come in
 * rows of 128 bytes as others do, are: 320 × 1856 × 1792 took 6.7 µs with 64 × 96, 7.3 with 64 × 128.
 */
function isSeldomBest(
  problem: MatmulProblem,
  multipliers: number,
  { columns, turned }: TileForm,
): boolean {
  if (problem.sparse || prologueOf(problem) !== undefined) return false;
  const isAlong =
    problem.major.b === "k" && problem.b.dtype.bits === 16 && problem.sizes.batch === undefined;
  return (columns === 96 && !isAlong) || (turned && columns <= 64 && multipliers > 1);
}

type TileForm = Pick<PersistentConfiguration, "columns" | "turned" | "cluster">;

/** What candidates are for: to be chosen among by the model, or to be timed, which may show what it does not know. */
type Purpose = "chosen" | "timed";

/** Clusters are for wide tiles, which products take that read the cache more than memory. */
const tileForms: readonly TileForm[] = [
  ...([256, 224, 192, 160, 128, 96, 64] as const).map(
    (columns) => ({ columns, turned: false, cluster: 1 }) as const,
  ),
  ...([256, 224, 192, 160, 128] as const).map(
    (columns) => ({ columns, turned: false, cluster: 2 }) as const,
  ),
  ...([64, 32, 16, 8] as const).map((columns) => ({ columns, turned: true, cluster: 1 }) as const),
];

/**
 * Of columns that lie along k, which are copied in rows of 128 bytes however many there are; others would come in boxes of 32 bytes.
 * 1664 × 2816 are 260 of such tiles, or two rounds of 132 processors. Their results leave in pieces of 16 columns, of which
 * epilogues would have many.
 */
const alongForms: readonly TileForm[] = ([1, 2] as const).map(
  (cluster) => ({ columns: 144, turned: false, cluster }) as const,
);

/** Sparse weights lie along rows; those who share columns of a fetch half as much. */
const sparseForms: readonly TileForm[] = [
  ...([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, turned: true, cluster: 1 }) as const,
  ),
  ...([256, 192, 128] as const).map((columns) => ({ columns, turned: true, cluster: 2 }) as const),
];

/** Where b need not be prepared if it lies along rows. */
const wideTurned: readonly TileForm[] = ([256, 192, 128] as const).map(
  (columns) => ({ columns, turned: true, cluster: 1 }) as const,
);

function hasEpilogue({ epilogue, outputs }: MatmulProblem): boolean {
  return epilogue !== undefined || outputs.length > 0;
}

/** What is computed lies along rows of tiles, whichever operand it is. */
function tileFormsOf(problem: MatmulProblem): readonly TileForm[] {
  if (problem.sparse) return sparseForms;
  const recipe = recipeOf(problem);
  const isPlain = recipe?.a.bits === 16 && recipe.terms.length === 1 && !hasEpilogue(problem);
  // Lanes that read tiles would tell the other block of a pair so in every step, which takes a flush of caches.
  if (recipe?.instruction === "mma")
    return tileForms.filter(({ columns, cluster }) => columns % exchanged === 0 && cluster === 1);
  const prologue = prologueOf(problem);
  if (prologue === undefined && recipe !== undefined) {
    const held = isHeld(problem, recipe, "b", { turned: true, cluster: 1 });
    const along = isPlain && problem.major.b === "k";
    return [...tileForms, ...(held ? wideTurned : []), ...(along ? alongForms : [])];
  }
  if (prologue === undefined) return tileForms;
  const turned = prologue.operand === "b";
  return ([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, turned, cluster: 1 }) as const,
  );
}

/**
 * Stages that are worth trying, the best guess first. Few rows wait for weights alone. Blocks of the next launch begin meanwhile where two have
 * room on a processor, and nobody needs more stages than steps. Of 8192 × 28672 weights of bf16, where 12 stages of 8 rows leave such room, 11 of 16
 * and 7 of 64:
 *
 *   rows   stages and µs
 *   1      8 107.8   10 107.0   12 107.7   20 106.8
 *   16     8 108.2   10 107.8   12 109.2   20 107.5
 *   64     6 114.8    7 108.8    8 112.2   14 111.7
 */
function stagesOf(
  problem: MatmulProblem,
  form: Omit<PersistentConfiguration, "kernel" | "stages">,
  sizes: ProductSizes,
  target: Target,
): readonly number[] {
  const most = mostStages(problem, form, target);
  const isStream = form.turned && form.multipliers === 1 && form.columns <= streamRows;
  const isPlain = !problem.sparse && prologueOf(problem) === undefined;
  if (!isStream || !isPlain) return [most];
  const used = Math.max(fewStages, stepsOfBlock(problem, form, sizes, target));
  const beside = mostStages(problem, form, target, 2);
  const others = [most, beside].map((stages) => Math.min(stages, used));
  return [...new Set([fewStages, ...others])].filter((stages) => stages <= most);
}

/** Stages that suffice for streams of weights, and that all have who have as many steps. */
const fewStages = 8;

/** Steps of the block with the most tiles: what it has more stages for is never filled, and would be made ready all the same. */
function stepsOfBlock(
  problem: MatmulProblem,
  form: Omit<PersistentConfiguration, "kernel" | "stages">,
  sizes: ProductSizes,
  target: Target,
): number {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return 0;
  const configuration = { kernel: "persistent", stages: fewStages, ...form } as const;
  const depth = depthOf(problem, recipe);
  const workers = workerCount(configuration, sizes, depth, target);
  const rounds = Math.ceil(tileCount(configuration, sizes) / workers);
  const parts = partCount(problem, configuration, sizes, depth, target);
  return rounds * Math.ceil(sizes.k / depth / parts) * recipe.parts;
}

/** Rows up to which there are several counts of stages. */
const streamRows = 64;

/** As many stages as fit, with so many blocks on a processor, up to what memory needs in flight: more hide no more. */
function mostStages(
  problem: MatmulProblem,
  form: Omit<PersistentConfiguration, "kernel" | "stages">,
  target: Target,
  blocks = 1,
): number {
  const fixed = sharedBytes(problem, { ...form, stages: 0 });
  const each = sharedBytes(problem, { ...form, stages: 1 }) - fixed;
  const fitting = Math.floor((roomOfBlock(target, blocks) - fixed) / each);
  const recipe = recipeOf(problem);
  const least = recipe === undefined ? 2 : leastStages(recipe);
  return Math.min(greatestStages, Math.max(least, fitting));
}

/** Elements of k in a step of the plain kernel. */
export const plainDepths: readonly PlainConfiguration["depth"][] = [8, 16, 32, 64, 128];

/** Those of them in which no prologue sees numbers of two groups, nor a part of what is stored together. */
export function plainDepthsOf({
  prologues: { a, b },
  accumulator,
}: MatmulProblem): readonly PlainConfiguration["depth"][] {
  const prologues = [a, b].filter((each) => each !== undefined);
  const least = accumulator === dtypes.f64 ? 8 : 16;
  return plainDepths.filter(
    (depth) => depth >= least && prologues.every((each) => suitsDepth(each, depth)),
  );
}

/** Tiles that fit in registers for every format, split where they are too few for the processors. */
export function plainConfiguration(
  problem: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  target: Target,
): PlainConfiguration {
  const wide = problem.accumulator === dtypes.f64;
  const { bits } = multipliedFormat(problem, "a");
  // Columns of a that lanes fetch number by number take registers: steps of 16 would spill some.
  const isScattered = problem.major.a === "m" && !isCopied(problem.a.dtype, m);
  const [rows, columns, usual] = wide
    ? ([64, 32, isScattered ? 8 : 16] as const)
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
