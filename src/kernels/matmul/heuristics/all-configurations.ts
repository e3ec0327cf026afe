/** The configurations of a product, those of every kernel that it has, and the one that the model thinks fastest. */
import type { Target } from "../../../targets/target.ts";
import { chooseTiled, tiledCandidates } from "./select-configuration.ts";
import type { MatmulConfiguration, ProductSizes } from "../configuration.ts";
import { gemvCandidates, gemvSeconds } from "../skinny/gemv-candidates.ts";
import { correctionOf } from "../cost/learned/correction.ts";
import { tiledModel } from "../cost/model.ts";
import { skinnyCandidates, skinnySeconds } from "../skinny/candidates.ts";
import type { MatmulProblem } from "../problem.ts";

export function chooseConfiguration(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): MatmulConfiguration {
  let best: MatmulConfiguration = chooseTiled(problem, sizes, target);
  const others = [...skinnyCandidates(problem, sizes, target), ...gemvCandidates(problem, sizes)];
  if (others.length === 0) return best;
  let least = modelSeconds(problem, sizes, best, target) ?? Infinity;
  for (const each of others) {
    const seconds = modelSeconds(problem, sizes, each, target) ?? Infinity;
    if (seconds < least) [best, least] = [each, seconds];
  }
  return best;
}

/** What is worth measuring, the model's choice among them. */
export function candidateConfigurations(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): readonly MatmulConfiguration[] {
  return [
    ...tiledCandidates(problem, sizes, target),
    ...skinnyCandidates(problem, sizes, target),
    ...gemvCandidates(problem, sizes),
  ];
}

/** What the model, corrected by what was learned, thinks of a configuration; undefined where it has no rates for the problem. */
export function modelSeconds(
  problem: MatmulProblem,
  sizes: ProductSizes,
  configuration: MatmulConfiguration,
  target: Target,
): number | undefined {
  if (configuration.kernel === "skinny")
    return skinnySeconds(problem, sizes, configuration, target);
  const seconds =
    configuration.kernel === "gemv"
      ? gemvSeconds(problem, sizes, configuration)
      : tiledModel(problem, sizes, target)?.(configuration);
  return seconds && correctionOf(problem, sizes, target)(configuration, seconds);
}
