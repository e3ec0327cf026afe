/**
 * What is told of a configuration and a product to the trees that correct the model (`trees.ts`): the sizes, the tiles, how they fill processors,
 * how their steps fill stages, how rows lie in memory, and the model's own estimate.
 */
import type { Target } from "../../../targets/target.ts";
import { threadRows } from "../configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { edgesAmong, fetchedSides, planeOf, windowsOf } from "../edges.ts";
import { cutOf } from "../model.ts";
import { operandsOf, sharersOf } from "../model-fetch.ts";
import { outsideAtOnce, outsideOf } from "../overhang.ts";
import { partCount } from "../parts.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../recipe.ts";
import { depthOf, sharedBytes, tileCount, workerCount } from "../tile-shapes.ts";

const schedules = { tiles: 0, split: 1, parts: 2 } as const;

/** Gives the numbers of configurations of a product, for which the model has so many seconds. */
export function numbersOf(
  problem: MatmulProblem,
  recipe: Recipe,
  stored: ProductSizes,
  target: Target,
): (configuration: PersistentConfiguration, seconds: number) => readonly number[] {
  const depth = depthOf(problem, recipe);
  const operands = operandsOf(problem, recipe, stored);
  return (configuration, seconds) => {
    const { multipliers, columns, stages, schedule, turned, cluster } = configuration;
    const parts = partCount(problem, configuration, stored, depth, target);
    const sizes = { ...stored, k: Math.ceil(stored.k / parts), batch: stored.batch * parts };
    const tiled =
      schedule === "parts" ? ({ ...configuration, schedule: "tiles" } as const) : configuration;
    const steps = Math.ceil(sizes.k / depth);
    const tiles = tileCount(tiled, sizes);
    const workers = workerCount(tiled, sizes, depth, target);
    const plane = planeOf(tiled, sizes, target, workers);
    const sides = fetchedSides(problem, recipe, tiled, sizes);
    const windows = windowsOf(edgesAmong(problem, tiled, plane, sides), tiled, sides);
    const sharers = sharersOf(plane);
    const { begin } = operands(tiled);
    const rounds = Math.ceil(tiles / workers);
    const ofBlock = (rounds - 1) * steps + cutOf(tiled, tiles, workers, steps).each;
    return [
      ...[Math.log2(stored.m), Math.log2(stored.n), Math.log2(stored.k)],
      ...[problem.major.b === "k" ? 1 : 0, multipliers, columns, stages, schedules[schedule]],
      ...[turned ? 1 : 0, cluster, parts, steps, tiles, workers, ofBlock, steps / stages],
      ...[turned ? begin.b : begin.a, turned ? begin.a : begin.b],
      ...[sharedBytes(problem, tiled), plane.down, plane.across, sharers.row, sharers.column],
      ...[tiles / workers, tiles / (workers * rounds), (workers * cluster) / target.processors],
      Math.log2(multipliers * threadRows * (turned ? Math.min(columns, stored.m) : columns)),
      ...(["row", "column"] as const).flatMap((last) => [
        outsideOf(sides[last], windows[last]).part,
        outsideAtOnce(plane, sides[last], last, cluster, windows[last]),
      ]),
      Math.log(1e6 * seconds),
    ];
  };
}
