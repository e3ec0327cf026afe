/**
 * What is told of a configuration and a product to the trees that correct the model (`trees.ts`): the sizes and how rows lie in memory, the model's own estimate,
 * the tiles, how they fill processors, and how their steps fill stages. Other kernels than that of tiles have the first of these alone.
 */
import type { Target } from "../../../../targets/target.ts";
import { threadRows } from "../../configuration.ts";
import type {
  GemvConfiguration,
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
  TiledConfiguration,
} from "../../configuration.ts";
import { wordDepth } from "../../skinny/gemv.ts";
import { edgesAmong, fetchedSides, planeOf, windowsOf } from "../../scheduler/edges.ts";
import { cutOf } from "../model.ts";
import { operandsOf, sharersOf } from "../fetch.ts";
import { outsideAtOnce, outsideOf } from "../out-of-bounds.ts";
import { partCount } from "../../scheduler/split-k.ts";
import type { MatmulProblem } from "../../problem.ts";
import type { Recipe } from "../../f32-emulation.ts";
import { depthOf, sharedBytes, tileCount, workerCount } from "../../tile-shapes.ts";

/** Kernels, and schedules of that of tiles. */
const kinds = { tiles: 0, "stream-k": 1, "split-k": 2, plain: 3, gemv: 4 } as const;

/** The greatest power of two up to 8 that a size is a multiple of: as many elements of 16 bits are accessed at once, and TMA takes rows of 8. */
function together(size: number): number {
  return [8, 4, 2].find((each) => size % each === 0) ?? 1;
}

/** Gives the numbers of configurations of a product, for which the model has so many seconds. */
export function numbersOf(
  problem: MatmulProblem,
  recipe: Recipe,
  stored: ProductSizes,
  target: Target,
): (configuration: TiledConfiguration | GemvConfiguration, seconds: number) => readonly number[] {
  const { m, n, k } = stored;
  const ofProduct = [Math.log2(m), Math.log2(n), Math.log2(k), problem.major.b === "k" ? 1 : 0];
  const lying = [together(n), together(k)];
  const ofTiles = tilesNumbers(problem, recipe, stored, target);
  return (configuration, seconds) => [
    ...ofProduct,
    ...lying,
    Math.log(1e6 * seconds),
    ...(configuration.kernel === "persistent"
      ? ofTiles(configuration, seconds)
      : configuration.kernel === "plain"
        ? plainNumbers(configuration, stored)
        : gemvNumbers(problem, configuration, stored)),
  ];
}

function plainNumbers(configuration: PlainConfiguration, sizes: ProductSizes): readonly number[] {
  const { columns, depth, splitK } = configuration;
  const steps = Math.ceil(sizes.k / depth / splitK);
  return [kinds.plain, columns, splitK, steps, tileCount(configuration, sizes)];
}

function gemvNumbers(
  problem: MatmulProblem,
  configuration: GemvConfiguration,
  { n, k }: ProductSizes,
): readonly number[] {
  const { columns, warps, words } = configuration;
  const steps = Math.ceil(k / (words * wordDepth(problem, configuration)));
  return [kinds.gemv, columns, 1, steps, Math.ceil(n / columns), warps];
}

/** Those of tiles, of which the first five mean what they mean of the other kernels; the next one is the warps of a block of the kernel for one row. */
function tilesNumbers(
  problem: MatmulProblem,
  recipe: Recipe,
  stored: ProductSizes,
  target: Target,
): (configuration: PersistentConfiguration, seconds: number) => readonly number[] {
  const depth = depthOf(problem, recipe);
  const operands = operandsOf(problem, recipe, stored);
  return (configuration, seconds) => {
    const { consumers, columns, stages, schedule, swapAB, cluster } = configuration;
    const parts = partCount(problem, configuration, stored, depth, target);
    const sizes = { ...stored, k: Math.ceil(stored.k / parts), batch: stored.batch * parts };
    const tiled =
      schedule === "split-k" ? ({ ...configuration, schedule: "tiles" } as const) : configuration;
    const steps = Math.ceil(sizes.k / depth);
    const tiles = tileCount(tiled, sizes);
    const workers = workerCount(tiled, sizes, depth, target);
    const plane = planeOf(tiled, sizes, target, workers);
    const sides = fetchedSides(problem, recipe, tiled, sizes);
    const windows = windowsOf(edgesAmong(problem, tiled, plane, sides), tiled, sides);
    const sharers = sharersOf(plane);
    const { begin, preparing } = operands(tiled);
    const rounds = Math.ceil(tiles / workers);
    const ofBlock = (rounds - 1) * steps + cutOf(tiled, tiles, workers, steps).each;
    return [
      ...[kinds[schedule], columns, parts, steps, tiles],
      ...[consumers, stages, swapAB ? 1 : 0, cluster, workers, ofBlock, steps / stages],
      ...[swapAB ? begin.b : begin.a, swapAB ? begin.a : begin.b, preparing / seconds],
      ...[sharedBytes(problem, tiled), plane.down, plane.across, sharers.row, sharers.column],
      ...[tiles / workers, tiles / (workers * rounds), (workers * cluster) / target.processors],
      Math.log2(consumers * threadRows * (swapAB ? Math.min(columns, stored.m) : columns)),
      ...(["row", "column"] as const).flatMap((last) => [
        outsideOf(sides[last], windows[last]).part,
        outsideAtOnce(plane, sides[last], last, cluster, windows[last]),
      ]),
    ];
  };
}
