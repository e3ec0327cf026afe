/**
 * Which of the kernels for all formats to use where none was given or measured: the one that the model (`../cost/model.ts`), corrected
 * by what was learned (`../cost/learned/correction.ts`), thinks fastest of those that there are.
 */
import type { Target } from "../../../targets/target.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { persistentCandidates } from "./persistent-candidates.ts";
import { chooseTensorTile, tensorCandidates, tensorProblem } from "./tensor-memory-tiles.ts";
import type { TiledConfiguration, PlainConfiguration, ProductSizes } from "../configuration.ts";
import { fastestOf } from "./prune-candidates.ts";
import { correctionOf } from "../cost/learned/correction.ts";
import { tiledEstimates } from "../cost/model.ts";
import { depthOf, isCopied } from "../tile-shapes.ts";
import { multipliedFormat, prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import { copiedInputs, suitsDepth } from "../prologue/prologue.ts";
import { cacheTiles } from "./cache-tiles.ts";
import { plainDepthsOf } from "./plain-depths.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { Recipe } from "../f32-emulation.ts";
import { rowAlignment } from "../views.ts";
import { hasSumsInFlight, sumsMemory } from "../../../targets/product-instructions.ts";

/** Why the persistent kernel cannot be used, wherever it adds up, in words for a note; undefined where it can. */
export function persistentProblem(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): string | undefined {
  return sumsMemory(target) === "tensor"
    ? tensorProblem(problem, sizes, target)
    : registerProblem(problem, sizes, target);
}

/** The same of the one whose sums are in registers. */
export function registerProblem(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): string | undefined {
  if (!hasSumsInFlight(target) || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  const recipe = recipeOf(problem);
  if (recipe === undefined) return `wgmma does not multiply ${problem.a.dtype.name} as it is`;
  if (sizes.k === 0) return "there is nothing to multiply";
  if (recipe.issuer === "warp" && (problem.prologues.a ?? problem.prologues.b) !== undefined)
    return "an operand of f64 is computed";
  return prologueProblem(problem, recipe, sizes);
}

/** Why what prologues read cannot be brought by TMA, likewise. */
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
  if (recipe.terms.length > 1) return `${operand} is computed, and cannot be splitK into parts`;
  if (!suitsDepth(prologue, depthOf(problem, recipe)))
    return `groups of ${operand} are smaller than what is multiplied at once`;
  const extent = operand === "a" ? m : n;
  const along = problem.major[operand] === "k" ? Math.ceil(k / unit) * unit : extent;
  if (!isCopied(problem[operand].dtype, along))
    return `rows of ${along} ${problem[operand].dtype.name} of ${operand} are no multiples of 16 bytes`;
  const odd = copiedInputs(prologue).find(
    ({ dtype, perUnit }) => !isCopied(dtype, extent * perUnit),
  );
  return odd && `rows of ${extent} ${odd.dtype.name} of ${odd.name} are no multiples of 16 bytes`;
}

/** How many that the model thinks fastest are corrected: of 2,400 random products 15 had a lesser estimate behind those, the worst by 3 %; of 1,000 others 14, the worst by 12 %. */
const mostCorrected = 16;

export function chooseTiled(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): TiledConfiguration {
  const plain = plainConfiguration(problem, sizes, target);
  if (persistentProblem(problem, sizes, target) !== undefined) return plain;
  if (sumsMemory(target) === "tensor") return chooseTensorTile(problem, sizes, target) ?? plain;
  const estimate = tiledEstimates(problem, sizes, target);
  if (estimate === undefined) return plain;
  const candidates = persistentCandidates(problem, sizes, target);
  const all = problem.sparse ? candidates : [...candidates, plain];
  const corrected = correctionOf(problem, sizes, target);
  let best: TiledConfiguration = plain;
  let least = Infinity;
  for (const { configuration, seconds } of fastestOf(all, estimate, mostCorrected)) {
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
      ...(sumsMemory(target) === "tensor"
        ? tensorCandidates(problem, sizes, target)
        : persistentCandidates(problem, sizes, target, "timed")),
      ...(problem.sparse ? [] : [plain]),
    ];
  const splits = [...new Set([plain.splitK, 1, 2, 4, 8])];
  return splits.map((splitK) => ({ ...plain, splitK }));
}

/** Tiles that fit in registers for every format, split where they are too few for the processors. */
export function plainConfiguration(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): PlainConfiguration {
  if (target.caches !== undefined) return cacheTiles(problem, sizes, target.caches);
  const { m, n, k, batch } = sizes;
  const wide = problem.accumulator === dtypes.f64;
  const { bits } = multipliedFormat(problem, "a");
  // Columns of a that lanes fetch number by number take registers: steps of 16 would spill some.
  const isScattered =
    problem.major.a === "m" && !isCopied(problem.a.dtype, rowAlignment(problem.views?.a, m));
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
  return { kernel: "plain", rows, columns, depth, splitK: Math.max(1, wanted) };
}
