/**
 * Room for what functions of users need. Rings of stages fill shared memory, but an epilogue that combines columns, or one of
 * tiles that are transposed, and a prologue exchange numbers between warps through scratch, as do sums of f64 that blocks
 * hand to each other, and how much of it only the placed kernel tells:
 *
 *   4096 × 4096 × 4096, bf16, sums of columns    4 stages 192 KB   result 32 KB   scratch 24 KB     more than there is
 *                                                3 stages 144 KB   result 32 KB   scratch 24 KB     fits
 *
 * So the kernel is placed once before it is chosen. So are some of those whose results have fewer bits than 16, in which no instruction stores what tensor cores
 * leave: lanes exchange pieces of 8 bits that are transposed or halves of tiles, and most of 4 bits. Other products have no scratch, and are not placed here.
 */
import { place } from "../../../lower/stages.ts";
import { TilewrightError } from "../../../support/diagnostics.ts";
import type { Target } from "../../../targets/target.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { aligned } from "../dimensions.ts";
import { persistentKernel } from "../persistent.ts";
import type { PersistentForm } from "../kernel-context.ts";
import { prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import { halvesColumns, hasOneTile, leastStages } from "../tile-shapes.ts";

/** Stages of the forms of each problem that were placed. */
const known = new WeakMap<MatmulProblem, Map<string, number>>();

/** The configuration, with fewer stages where all of them leave no room. */
export function withRoom(form: PersistentForm, target: Target): PersistentConfiguration {
  const { problem, configuration, prepared, copiesOut, sizes } = form;
  if (!mayExchange(form)) return configuration;
  const kept = known.get(problem) ?? new Map<string, number>();
  known.set(problem, kept);
  const transposes = [prepared.a?.transposes, prepared.b?.transposes];
  const multipleOf = copiesOut ? undefined : aligned("n", sizes.n).multipleOf;
  const key = JSON.stringify([
    ...[target, configuration, copiesOut, hasOneTile(form), transposes, multipleOf],
  ]);
  const stages = kept.get(key) ?? fittingStages(form, target);
  kept.set(key, stages);
  return { ...configuration, stages };
}

/**
 * Whether there is anything that exchanges numbers. Weights in few bits are stored as products take them; other operands that are
 * computed may be transposed on their way, or in 8 bits.
 */
function mayExchange({ problem, recipe, configuration, copiesOut }: PersistentForm): boolean {
  const { bits } = problem.out.dtype;
  const isRearranged = copiesOut && (configuration.swapAB || halvesColumns(configuration));
  return (
    (recipe.issuer === "warp" && configuration.schedule === "stream-k") ||
    problem.epilogue !== undefined ||
    (configuration.schedule !== "split-k" && (bits < 8 || (bits === 8 && isRearranged))) ||
    (prologueOf(problem) !== undefined && problem.weights === undefined)
  );
}

function fittingStages(form: PersistentForm, target: Target): number {
  const { configuration, recipe } = form;
  for (let { stages } = configuration; ; stages -= 1)
    try {
      place(
        persistentKernel({ ...form, configuration: { ...configuration, stages } }).kernel,
        target,
      );
      return stages;
    } catch (error) {
      const isFull = error instanceof TilewrightError && error.code === "TW6103";
      if (!isFull || stages <= leastStages(recipe)) throw error;
    }
}
