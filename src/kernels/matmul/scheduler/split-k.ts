/**
 * Products whose tiles are cut along k, where there are too few of them for the processors: 4 × 4 of 128 × 128 of 512 × 512. Each is
 * multiplied in parts, which are the matrices of a batch that share both operands, and a launch of its own adds these up (`split-k-reduce.ts`).
 *
 *   steps of k        0 … s − 1      s … 2s − 1      2s … 3s − 1     …
 *   a tile of         part 0         part 1          part 2               the last part may end beyond k, where there are zeros
 *
 * Blocks that hand sums to each other instead (`lang/pipeline/stream-k.ts`) wait for what others have written: 512 × 512 × 32768 of bf16 took 33.4 µs in
 * parts, and 46.4 so; 7 × 608 × 5568 4.8 and 7.5; 704 × 832 × 5440 16.8 and 18.0.
 */
import { tensor, dim } from "../../../lang/index.ts";
import type { Target } from "../../../targets/target.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import { leastSteps, tileCount } from "../tile-shapes.ts";

/**
 * Whether tiles of a product may be cut into parts: those of one matrix, whose operands are multiplied as they lie or are weights in few bits
 * whose scales travel with them.
 */
export function mayHaveParts(problem: MatmulProblem, recipe: Recipe): boolean {
  return (
    problem.sizes.batch === undefined &&
    !problem.sparse &&
    (prologueOf(problem) === undefined || problem.weights?.span === 1) &&
    recipe.issuer === "warpgroup" &&
    recipe.parts === 1 &&
    recipe.terms.length === 1 &&
    !recipe.promoted
  );
}

/** Parts of a tile, of which adding up takes some 0.07 µs each: more would save steps that take less. */
const mostParts = 32;

/** How many parts every tile has: as many as there are processors for, and of weights in few bits equal ones, since nobody has scales beyond k. */
export function partCount(
  { weights }: Pick<MatmulProblem, "weights">,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  depth: number,
  { processors }: Target,
): number {
  if (configuration.schedule !== "split-k") return 1;
  const tiles = tileCount(configuration, sizes);
  const steps = Math.ceil(sizes.k / depth);
  const most = Math.max(1, Math.min(mostParts, Math.floor(steps / leastSteps)));
  let parts = Math.min(most, Math.max(1, Math.floor(processors / Math.max(1, tiles))));
  while (weights !== undefined && steps % parts !== 0) parts -= 1;
  return parts;
}

/** The product that gives the sums of the parts, [parts, m, n], as they are. */
export function productOfParts(problem: MatmulProblem): MatmulProblem {
  const { m, n } = problem.sizes;
  const batch = dim("parts");
  return {
    ...problem,
    ...{ inputs: {}, epilogue: undefined, outputs: [] },
    out: tensor(problem.accumulator, [batch, m, n]),
    views: problem.views && { ...problem.views, out: undefined },
    sizes: { ...problem.sizes, batch },
  };
}
