/**
 * Tiles of products that add up in tensor memory: which products these are, which configurations they have, and which of those is chosen. What is known of the
 * instruction is its record (`targets/product-instructions.ts`); nothing here was timed.
 *
 *   clocks = rounds · steps · (multiplying or fetching, whichever takes longer) + until the last tile is stored
 */
import type { DType } from "../../../formats/dtype.ts";
import { refused } from "../argument-errors.ts";
import { multipliesOn, tensorMemoryInstruction } from "../../../targets/product-instructions.ts";
import type { ProductInstruction } from "../../../targets/product-instructions.ts";
import type { Target } from "../../../targets/target.ts";
import type { Location } from "../../../support/location.ts";
import { persistentColumns, rowBytes, threadRows } from "../configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { MatmulProblem } from "../problem.ts";
import { mayHaveParts, partCount } from "../scheduler/split-k.ts";
import { depthOf, leastStages, sharedBytes, tileCount } from "../tile-shapes.ts";

/** Why products cannot add up in tensor memory, in words for a note; undefined where they can. */
export function tensorProblem(
  problem: MatmulProblem,
  { k }: ProductSizes,
  target: Target,
): string | undefined {
  const instruction = tensorMemoryInstruction(target);
  if (instruction === undefined) return `${target.name} has no tensor memory`;
  const { name, accumulators } = instruction;
  const recipe = recipeOf(problem);
  const isKnown = ({ name: format }: DType): boolean => multipliesOn(target, instruction, format);
  if (recipe === undefined || !isKnown(recipe.a) || !isKnown(recipe.b))
    return `${name} of ${target.name} does not multiply ${problem.a.dtype.name} by ${problem.b.dtype.name} as they are`;
  if (!accumulators.includes(problem.accumulator.name))
    return `${name} does not add up ${problem.accumulator.name}`;
  if (k === 0) return "there is nothing to multiply";
  if (problem.sparse) return "b is sparse";
  if (problem.blockScales !== undefined) return "sums of blocks are multiplied by scales of f32";
  if (recipe.terms.length > 1)
    return `sums of ${String(problem.precision)} are added up by lanes, which round to nearest`;
  const { a, b } = problem.prologues;
  return a === undefined && b === undefined
    ? undefined
    : `${a === undefined ? "b" : "a"} is computed by lanes`;
}

/** Columns that an instruction of so many rows takes are multiples of these. */
function grainOf(rows: number): number {
  return rows === 128 ? 16 : 8;
}

/** Why there is no such tile; undefined where there is one. */
function tileProblem({
  consumers,
  columns,
  schedule,
  cluster,
}: Omit<PersistentConfiguration, "kernel" | "stages">): string | undefined {
  if (consumers > 2) return "consumers 1 or 2, whose rows are one instruction's";
  if (columns % grainOf(consumers * threadRows) !== 0)
    return `a multiple of ${grainOf(consumers * threadRows)} columns`;
  if (schedule === "stream-k") return 'schedule "tiles" or "split-k"';
  return cluster === 1 ? undefined : "cluster 1";
}

/** Refuses what no kernel with sums in tensor memory can be. */
export function requireTensorTile(
  configuration: PersistentConfiguration,
  { of }: MatmulProblem,
  text: string,
  location: Location,
): void {
  const expected = tileProblem(configuration);
  if (expected === undefined) return;
  const message = `${of} has no such tile in tensor memory`;
  throw refused("TW9904", message, expected, text, location);
}

/** Copies ahead are worth no more stages than these. */
const mostStages = 8;

/** The tiles that products have, each with as many stages as fit. */
export function tensorCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): readonly PersistentConfiguration[] {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return [];
  const depth = depthOf(problem, recipe);
  const candidates: PersistentConfiguration[] = [];
  for (const schedule of mayHaveParts(problem, { ...recipe, promoted: false })
    ? (["tiles", "split-k"] as const)
    : (["tiles"] as const))
    for (const swapAB of [false, true])
      for (const columns of persistentColumns.toReversed()) {
        const tile = { consumers: 2, columns, schedule, swapAB, cluster: 1 } as const;
        if (tileProblem(tile) !== undefined) continue;
        let stages = mostStages;
        while (sharedBytes(problem, { ...tile, stages }) > target.sharedMemoryPerBlock) stages -= 1;
        if (stages < leastStages(recipe)) continue;
        const found = { kernel: "persistent", ...tile, stages } as const;
        const isCut = partCount(problem, found, sizes, depth, target) > 1;
        if (schedule === "tiles" || isCut) candidates.push(found);
      }
  return candidates;
}

/** Bytes that a processor is taken to fetch in a clock: wide tiles are what fetches least. */
const fetchedBytes = 64;

/** Clocks in which a column of a finished tile leaves, and those of a further launch that adds up parts. */
const [storeClocks, launchClocks] = [8, 3000];

/** What a configuration takes, counted; only its relation to others means something. */
export function tensorClocks(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const [recipe, instruction] = [recipeOf(problem), tensorMemoryInstruction(target)];
  if (recipe === undefined || instruction === undefined) return Infinity;
  const depth = depthOf(problem, recipe);
  const parts = partCount(problem, configuration, sizes, depth, target);
  const rounds = Math.ceil((tileCount(configuration, sizes) * parts) / target.processors);
  const steps = Math.ceil(sizes.k / depth / parts);
  const { consumers, columns } = configuration;
  const multiplying =
    stepInstructions(depth, recipe.a.bits, instruction) * instruction.clocks(columns);
  const fetching = ((consumers * threadRows + columns) * rowBytes) / fetchedBytes;
  const step = Math.max(multiplying, fetching);
  const summing = parts === 1 ? 0 : launchClocks;
  // Stores of a tile hide behind the products of the next one, but not the last.
  const products = rounds * steps * step;
  const stores = storeClocks * columns;
  return Math.max(products, rounds * stores) + stores + summing;
}

function stepInstructions(depth: number, bits: number, { shape }: ProductInstruction): number {
  return depth / (shape.depthBits / bits);
}

/** The one that is thought to take least, of those that take as long the one with the fewest tiles; undefined where there is none. */
export function chooseTensorTile(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): PersistentConfiguration | undefined {
  let best: PersistentConfiguration | undefined;
  let [least, fewest] = [Infinity, Infinity];
  for (const each of tensorCandidates(problem, sizes, target)) {
    const clocks = tensorClocks(problem, each, sizes, target);
    const tiles = tileCount(each, sizes);
    if (clocks < least || (clocks === least && tiles < fewest))
      [best, least, fewest] = [each, clocks, tiles];
  }
  return best;
}
