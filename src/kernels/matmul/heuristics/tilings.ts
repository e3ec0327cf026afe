/**
 * Tiles of the persistent kernel that a problem may have on a target, and how many stages they have room for. These are the same for all sizes, and found
 * once; which of them are worth it for some sizes is told in `persistent-candidates.ts`.
 */
import type { Target } from "../../../targets/target.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { exchanged } from "../mainloop/f64.ts";
import { isHeld } from "../mainloop/register-operand.ts";
import { mayHaveParts } from "../scheduler/split-k.ts";
import { suitsBlocks } from "../block-scales.ts";
import { prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { Recipe } from "../f32-emulation.ts";
import { leastStages, roomOfBlock, sharedBytes } from "../tile-shapes.ts";

const greatestStages = 20;

const consumerCounts = [2, 1, 4] as const;
type Consumers = PersistentConfiguration["consumers"];

/** Columns for which registers suffice. */
export const widestOf: { readonly [M in Consumers]: number } = { 1: 256, 2: 256, 4: 64 };

/**
 * The most columns of a tile: sums that are promoted are there twice, those of several terms three times, and those of f64 twice as wide, and fill
 * the registers sooner.
 */
export function widestTile(problem: MatmulProblem): number {
  const recipe = recipeOf(problem);
  if (recipe?.issuer === "warp") return 128;
  if (recipe?.promoted !== true) return 256;
  return recipe.terms.length > 1 ? 128 : 192;
}

type TileForm = Pick<PersistentConfiguration, "columns" | "swapAB" | "cluster">;

/** Clusters are for wide tiles, which products take that read the cache more than memory. */
const tileForms: readonly TileForm[] = [
  ...([256, 224, 192, 160, 128, 96, 64] as const).map(
    (columns) => ({ columns, swapAB: false, cluster: 1 }) as const,
  ),
  ...([256, 224, 192, 160, 128] as const).map(
    (columns) => ({ columns, swapAB: false, cluster: 2 }) as const,
  ),
  ...([64, 32, 16, 8] as const).map((columns) => ({ columns, swapAB: true, cluster: 1 }) as const),
];

/**
 * Of columns that lie along k, which are copied in rows of 128 bytes however many there are; others would come in boxes of 32 bytes.
 * 1664 × 2816 are 260 of such tiles, or two rounds of 132 processors. Their results leave in pieces of 16 columns, of which
 * epilogues would have many.
 */
const alongForms: readonly TileForm[] = ([1, 2] as const).map(
  (cluster) => ({ columns: 144, swapAB: false, cluster }) as const,
);

/** Sparse weights lie along rows; those who share columns of a fetch half as much. */
const sparseForms: readonly TileForm[] = [
  ...([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, swapAB: true, cluster: 1 }) as const,
  ),
  ...([256, 192, 128] as const).map((columns) => ({ columns, swapAB: true, cluster: 2 }) as const),
];

/** Where b need not be prepared if it lies along rows. */
const wideTurned: readonly TileForm[] = ([256, 192, 128] as const).map(
  (columns) => ({ columns, swapAB: true, cluster: 1 }) as const,
);

function hasEpilogue({ epilogue, outputs }: MatmulProblem): boolean {
  return epilogue !== undefined || outputs.length > 0;
}

/** What is computed lies along rows of tiles, whichever operand it is. */
function tileFormsOf(problem: MatmulProblem, recipe: Recipe): readonly TileForm[] {
  if (problem.sparse) return sparseForms;
  // Lanes that read tiles would tell the other block of a pair so in every step, which takes a flush of caches.
  if (recipe.issuer === "warp")
    return tileForms.filter(({ columns, cluster }) => columns % exchanged === 0 && cluster === 1);
  const prologue = prologueOf(problem);
  if (prologue === undefined) {
    const held = isHeld(problem, recipe, "b", { swapAB: true, cluster: 1 });
    const isPlain = recipe.a.bits === 16 && recipe.terms.length === 1 && !hasEpilogue(problem);
    const along = isPlain && problem.major.b === "k";
    return [...tileForms, ...(held ? wideTurned : []), ...(along ? alongForms : [])];
  }
  const swapAB = prologue.operand === "b";
  return ([256, 192, 128, 64, 32, 16, 8] as const).map(
    (columns) => ({ columns, swapAB, cluster: 1 }) as const,
  );
}

/** Tiles that a problem may have on a target, whatever its sizes. */
export interface Tiling {
  /** With as many stages as fit. */
  readonly configuration: PersistentConfiguration;
  /** As many as leave room for a second block, of tiles that there are several counts of stages for. */
  readonly beside: number | undefined;
  readonly isSeldomBest: boolean;
}

/** Those that were found: problems are asked for many sizes. */
const known = new WeakMap<MatmulProblem, WeakMap<Target, readonly Tiling[]>>();

export function tilingsOf(
  problem: MatmulProblem,
  recipe: Recipe,
  target: Target,
): readonly Tiling[] {
  const ofTargets = known.get(problem) ?? new WeakMap<Target, readonly Tiling[]>();
  known.set(problem, ofTargets);
  const found =
    ofTargets.get(target) ??
    consumerCounts.flatMap((consumers) => tilingsOfRows(problem, recipe, consumers, target));
  ofTargets.set(target, found);
  return found;
}

/** Those with so many consumers: whole ones, those that may be split, and parts. */
function tilingsOfRows(
  problem: MatmulProblem,
  recipe: Recipe,
  consumers: Consumers,
  target: Target,
): readonly Tiling[] {
  const widest = Math.min(widestTile(problem), widestOf[consumers]);
  const fitting = tileFormsOf(problem, recipe).filter(
    (form) => form.columns <= widest && suitsScales(problem, form),
  );
  return (["tiles", "stream-k", "split-k"] as const).flatMap((schedule) =>
    fitting
      .filter((form) => mayHave(problem, recipe, consumers, schedule, form))
      .map((form) => {
        const tiles = { consumers, schedule, ...form };
        const { most, beside } = stagesOf(problem, recipe, tiles, target);
        return {
          configuration: { kernel: "persistent", consumers, stages: most, schedule, ...form },
          beside,
          isSeldomBest: isSeldomBest(problem, consumers, form),
        };
      }),
  );
}

/**
 * Whether scales of blocks suit a form: a lane reads the scales of the columns of its tile for every step, two of each eight where columns have their own, and those of rows are
 * two. So rows of a lie along columns of narrow tiles alone.
 */
function suitsScales(problem: MatmulProblem, { columns, swapAB }: TileForm): boolean {
  const { blockScales } = problem;
  const isByRow = blockScales?.a === 1 && blockScales.b > 1;
  const isNarrow = !swapAB || columns <= mostOwnScales;
  return suitsBlocks(problem, columns, swapAB ? "a" : "b") && (!isByRow || isNarrow);
}

/** Columns with scales of their own that are read in less time than they are multiplied in. */
const mostOwnScales = 32;

/** Whether tiles of a form may be scheduled so. */
function mayHave(
  problem: MatmulProblem,
  recipe: Recipe,
  consumers: Consumers,
  schedule: PersistentConfiguration["schedule"],
  { swapAB, cluster }: TileForm,
): boolean {
  if (schedule !== "split-k") {
    const isPaired = cluster > 1;
    if (isPaired && (schedule === "stream-k" || !mayPair(problem))) return false;
    return consumers < 4 || prologueOf(problem) !== undefined;
  }
  if (cluster > 1 || !mayHaveParts(problem, recipe)) return false;
  return problem.weights === undefined ? consumers < 4 : swapAB && consumers === 4;
}

/**
 * Whether pairs of blocks are worth it. Where lanes write memory, results as well as sums that are handed on, what they tell
 * the other block in every step takes a flush of caches: such pairs took twice as long as single blocks.
 */
function mayPair({ outputs }: MatmulProblem): boolean {
  return outputs.length === 0;
}

/**
 * Tiles that were the fastest of none of 180 random products, so that the model need not know when they might be. 96 columns along k, which come in
 * rows of 128 bytes as others do, are: 320 × 1856 × 1792 took 6.7 µs with 64 × 96, 7.3 with 64 × 128.
 */
function isSeldomBest(
  problem: MatmulProblem,
  consumers: number,
  { columns, swapAB }: TileForm,
): boolean {
  if (problem.sparse || prologueOf(problem) !== undefined) return false;
  const isAlong =
    problem.major.b === "k" && problem.b.dtype.bits === 16 && problem.sizes.batch === undefined;
  return (columns === 96 && !isAlong) || (swapAB && columns <= 64 && consumers > 1);
}

/** What decides how much room stages have. */
type TilesOfRows = TileForm & Pick<PersistentConfiguration, "consumers" | "schedule">;

/** Rows up to which there are several counts of stages. */
const streamRows = 64;

/** As many stages as fit, and as leave room for a second block, where tiles have so few columns that there is a choice. */
function stagesOf(
  problem: MatmulProblem,
  recipe: Recipe,
  form: TilesOfRows,
  target: Target,
): { readonly most: number; readonly beside: number | undefined } {
  const isStream = form.swapAB && form.consumers === 1 && form.columns <= streamRows;
  const hasChoice = isStream && !problem.sparse && prologueOf(problem) === undefined;
  return {
    most: mostStages(problem, recipe, form, target),
    beside: hasChoice ? mostStages(problem, recipe, form, target, 2) : undefined,
  };
}

/** As many stages as fit, with so many blocks on a processor, up to what memory needs in flight: more hide no more. */
function mostStages(
  problem: MatmulProblem,
  recipe: Recipe,
  form: TilesOfRows,
  target: Target,
  blocks = 1,
): number {
  const fixed = sharedBytes(problem, { ...form, stages: 0 });
  const each = sharedBytes(problem, { ...form, stages: 1 }) - fixed;
  const fitting = Math.floor((roomOfBlock(target, blocks) - fixed) / each);
  return Math.min(greatestStages, Math.max(leastStages(recipe), fitting));
}
