/** Which configurations of the persistent kernel a product has: tiles that its problem may have (`tilings.ts`), and what its sizes say of them. */
import { packedBytes } from "../../../formats/dtype.ts";
import type { Target } from "../../../targets/target.ts";
import { threadRows } from "../configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { partCount } from "../scheduler/split-k.ts";
import type { MatmulProblem } from "../problem.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { Recipe } from "../f32-emulation.ts";
import { depthOf, isCopied, tileCount, workerCount } from "../tile-shapes.ts";
import { tilingsOf } from "./tilings.ts";
import type { Tiling } from "./tilings.ts";
import { rowAlignment } from "../views.ts";

/** What candidates are for: to be chosen among by the model, or to be timed, which may show what it does not know. */
type Purpose = "chosen" | "timed";

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

/** Those that the model may choose among, or that are timed. */
export function persistentCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
  purpose: Purpose = "chosen",
): readonly PersistentConfiguration[] {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return [];
  const depth = depthOf(problem, recipe);
  const pairs = isCopied(problem.out.dtype, rowAlignment(problem.views?.out, sizes.n));
  const apart = mayPartWeights(problem, sizes, target);
  const candidates: PersistentConfiguration[] = [];
  for (const tiling of tilingsOf(problem, recipe, target)) {
    const { cluster, schedule } = tiling.configuration;
    const isLeftOut =
      (purpose === "chosen" && tiling.isSeldomBest) ||
      (cluster > 1 && !pairs) ||
      (schedule === "split-k" && !apart);
    if (isLeftOut || !isCut(problem, tiling.configuration, sizes, depth, target)) continue;
    for (const stages of stagesOf(problem, recipe, tiling, sizes, target))
      candidates.push(withStages(tiling.configuration, stages));
  }
  return candidates;
}

function withStages(
  configuration: PersistentConfiguration,
  stages: number,
): PersistentConfiguration {
  if (configuration.stages === stages) return configuration;
  const { kernel, consumers, columns, schedule, swapAB, cluster } = configuration;
  return { kernel, consumers, stages, schedule, columns, swapAB, cluster };
}

/** Whether weights in few bits, where they are such, are multiplied in parts. */
function mayPartWeights(
  { weights, b }: MatmulProblem,
  { m, n, k }: ProductSizes,
  { processors }: Target,
): boolean {
  if (weights === undefined) return true;
  const bits = weights.dtype.bits === 4 ? 4 : 8;
  return (
    2 * Math.ceil(n / (4 * threadRows)) <= processors &&
    (bits === 4 || m >= leastWideRows) &&
    packedBytes(b.dtype, n * k) >= leastPartedBytes[bits]
  );
}

/** Whether tiles that may be cut along k are: where all would be whole, what is done for those that are not takes time, too. */
function isCut(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  depth: number,
  target: Target,
): boolean {
  const { schedule } = configuration;
  if (schedule === "tiles") return true;
  if (schedule === "split-k") return partCount(problem, configuration, sizes, depth, target) > 1;
  const workers = workerCount(configuration, sizes, depth, target);
  const left = tileCount(configuration, sizes) % workers;
  return left > 0 && 2 * left <= workers && sizes.k > depth;
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
  recipe: Recipe,
  { configuration, beside }: Tiling,
  sizes: ProductSizes,
  target: Target,
): readonly number[] {
  const most = configuration.stages;
  if (beside === undefined) return [most];
  const used = Math.max(fewStages, stepsOfBlock(problem, recipe, configuration, sizes, target));
  const others = [most, beside].map((stages) => Math.min(stages, used));
  return [...new Set([fewStages, ...others])].filter((stages) => stages <= most);
}

/** Stages that suffice for streams of weights, and that all have who have as many steps. */
const fewStages = 8;

/** Steps of the block with the most tiles: what it has more stages for is never filled, and would be made ready all the same. */
function stepsOfBlock(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const depth = depthOf(problem, recipe);
  const workers = workerCount(configuration, sizes, depth, target);
  const rounds = Math.ceil(tileCount(configuration, sizes) / workers);
  const parts = partCount(problem, configuration, sizes, depth, target);
  return rounds * Math.ceil(sizes.k / depth / parts) * recipe.parts;
}
