/** What tiles and launches take besides the steps of tiles: storing results, handing sums over, and waiting for the launch before. */
import type { Target } from "../../../targets/target.ts";
import { threadRows } from "../configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { isHeld } from "../mainloop/register-operand.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import {
  copiesResult,
  hasOneTile,
  isCopied,
  mayDeferStores,
  roomOfBlock,
  sharedBytes,
} from "../tile-shapes.ts";
import { rowAlignment } from "../views.ts";

/**
 * Seconds that a tile takes besides its steps: to begin, and for each number of its result; those of a tile that is stored while the
 * next one is multiplied, and of one that is a block's only one: 2048³ took 0.57 µs less as such, 1024³ 0.33.
 */
const besidesSeconds = {
  stored: { tile: 0.54e-6, number: 6.59e-11 },
  swapAB: { tile: 0.065e-6, number: 8.32e-11 },
  deferred: { tile: 0.351e-6, number: 1.44e-11 },
  once: { tile: 0.073e-6, number: 4.66e-11 },
};
/** Seconds until a block hears of what others have written, and of each of them besides. */
const [heardSeconds, handedSeconds] = [1.89e-6, 0.219e-6];
/**
 * Bytes a second at which a block takes sums of another from the shared cache: of whole tiles, as fitted with all else, and of halves of their columns, which
 * come in many parts: 2176 × 2048 × 8192 took 96.6 µs in 16 parts and 100.8 in 33.
 */
const handedBytes = { whole: 25.9e9, half: 120e9 };
/**
 * How much of memory's time blocks without room beside those of the launch before take longer, for as many processors as they leave idle.
 * Blocks that have room ask for their first steps while the launch before ends, and memory is never idle. On an H200, µs with stages for two
 * blocks on a processor, and with as many as fit:
 *
 *   rows × columns × k    blocks   beside   alone
 *   7 × 4416 × 1440       69       4.84     5.92
 *   4 × 5552 × 3712       87       11.1     14.0
 *   21 × 6400 × 3584      100      12.6     14.3
 *   18 × 6912 × 4800      108      17.5     19.0
 *   2 × 2688 × 2048       42       6.07     5.79: there are processors for the blocks of two launches
 */
const aloneShare = 0.427;

/** Whether tiles of a configuration are stored while the next ones are multiplied. */
function storesLater(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
): boolean {
  return (
    copiesResult(problem, configuration) &&
    !isHeld(problem, recipe, configuration.swapAB ? "b" : "a", configuration) &&
    mayDeferStores(problem, recipe, configuration.columns)
  );
}

/** What tiles of a configuration take besides their steps: those that others come after, and the last one. */
export function besidesOf(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  { processors }: Target,
  parts: number,
): (configuration: PersistentConfiguration) => { readonly before: number; readonly last: number } {
  const copies = isCopied(problem.out.dtype, rowAlignment(problem.views?.out, sizes.n));
  return (configuration) => {
    const { consumers, columns, swapAB } = configuration;
    // Lanes that write the result of swapped operands leave out what lies outside.
    const numbers = consumers * threadRows * (swapAB ? Math.min(columns, sizes.m) : columns);
    const copiesOut = copies && copiesResult(problem, configuration);
    const isOnce = (): boolean =>
      hasOneTile({
        ...{ problem, recipe, configuration, sizes, processors, parts, copiesOut },
        sums: "registers",
      });
    const last = tileBesides(numbers, swapAB ? "swapAB" : isOnce() ? "once" : "stored");
    const isLater = copies && storesLater(problem, recipe, configuration);
    return { last, before: isLater ? tileBesides(numbers, "deferred") : last };
  };
}

/** What a tile of so many numbers takes besides its steps. */
export function tileBesides(numbers: number, when: keyof typeof besidesSeconds): number {
  const { tile, number } = besidesSeconds[when];
  return tile + number * numbers;
}

/** Seconds in which so many others hand sums on, of a tile of so many or of half of it. */
export function handingSeconds(others: number, sums: number, isHalved: boolean): number {
  const bytes = 4 * (isHalved ? sums / 2 : sums);
  const each = handedSeconds + bytes / handedBytes[isHalved ? "half" : "whole"];
  return others === 0 ? 0 : heardSeconds + others * each;
}

/** Whether registers suffice for two blocks on a processor. */
function isSkinny({ consumers, columns }: PersistentConfiguration): boolean {
  return consumers === 1 && columns <= 64;
}

/** How many times as long memory takes for a launch of so many blocks, or pairs of them, as if launches followed each other without a gap. */
export function memoryGap(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  workers: number,
  target: Target,
): number {
  const blocks = workers * configuration.cluster;
  const fits =
    isSkinny(configuration) && sharedBytes(problem, configuration) <= roomOfBlock(target, 2);
  if (fits || 2 * blocks <= target.processors) return 1;
  return 1 + aloneShare * (target.processors / blocks - 1);
}
