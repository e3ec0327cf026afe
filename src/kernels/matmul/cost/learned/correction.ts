/**
 * The model's estimates, corrected by what was learned from times on an H200 (`h200-trees.ts`). The model knows what launches, steps and memory take, but not all that
 * happens where they meet: which processors blocks of two launches share, or whose requests meet in a bank. Of products of 16 bits, which are timed
 * most, the logarithm of what it is wrong by is a sum of trees over some thirty numbers (`features.ts`); `scripts/fit-products` grows them.
 *
 * Of 863 random products that were left out of the fit, though settings of the trees were chosen by them, the choice among what was timed reached 0.95 of the fastest
 * (`npm run fit:products`) for
 *
 *   by the model alone   718, 0.975 in the mean
 *   corrected            820, 0.991
 */
import type { Target } from "../../../../targets/target.ts";
import type { GemvConfiguration, ProductSizes, TiledConfiguration } from "../../configuration.ts";
import { prologueOf } from "../../problem.ts";
import type { MatmulProblem } from "../../problem.ts";
import { recipeOf } from "../../f32-emulation.ts";
import type { Recipe } from "../../f32-emulation.ts";
import { numbersOf } from "./features.ts";
import { text, thresholds } from "./h200-trees.ts";
import { readTrees, sumOf } from "./trees.ts";
import type { ReadTrees } from "./trees.ts";

let known: ReadTrees | undefined;

/** The trees, which are read when a product first asks for them. */
function learned(): ReadTrees {
  known ??= readTrees({
    thresholds: thresholds.map((each) => each.split(" ").map(Number)),
    text,
  });
  return known;
}

/**
 * Whether times were taken of such products: of 16 bits, with a by rows, of which nothing is computed before or besides. Those with an epilogue are taken for
 * alike: 90 of them, whose choice it changed, took 2.6 % less in the mean, and at worst 8 % longer.
 */
function isLearned(problem: MatmulProblem, recipe: Recipe, { batch }: ProductSizes): boolean {
  return (
    recipe.issuer === "warpgroup" &&
    recipe.terms.length === 1 &&
    recipe.a.bits === 16 &&
    problem.major.a === "k" &&
    problem.out.dtype.bits === 16 &&
    batch === 1 &&
    !problem.sparse &&
    problem.outputs.length === 0 &&
    prologueOf(problem) === undefined
  );
}

/**
 * Gives the seconds of a configuration from what the model has for it; those of what was not timed are the model's. They tell configurations of one product apart: what
 * the model is wrong by for all of them is left as it is.
 */
export function correctionOf(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): (configuration: TiledConfiguration | GemvConfiguration, seconds: number) => number {
  const recipe = recipeOf(problem);
  if (recipe === undefined || !isLearned(problem, recipe, sizes)) return (_, seconds) => seconds;
  const numbers = numbersOf(problem, recipe, sizes, target);
  return (configuration, seconds) =>
    seconds * Math.exp(sumOf(learned(), numbers(configuration, seconds)));
}
