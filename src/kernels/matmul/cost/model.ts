/**
 * What a product takes on a GPU, as a model thinks. It is of the whole launch, since what matters most is how tiles fill
 * processors:
 *
 *   by tiles   rounds of tiles × (steps × the longer of multiplying and fetching a step + what a tile costs besides)
 *   split      whole rounds, a part of one, and the handing over of sums
 *
 * or the time that memory needs for all of it, if that is longer; what the longer does not hide of the shorter is bounded. A step takes some
 * time however little it multiplies, and waits for memory where few steps are asked for ahead. How long rows take to fetch is told in
 * `fetch.ts`, what tiles and launches take besides in `overheads.ts`, and the plain kernel's time in `plain.ts`.
 *
 * Tiles that reach beyond an edge take longer where many do at once (`out-of-bounds.ts`).
 *
 * Rates are those of one processor at work among others; where there are blocks for few, the clock is higher. They were fitted to
 * what was timed on an H200 of bf16: 4800 configurations of 435 sizes, all at once, so that what the model likes best is fast rather than that
 * every time is met; those of tiles of swapped operands, of tiles that are a block's only one and of parts later, to 4600 configurations of 549 sizes. What it is wrong by for products of 16 bits was
 * learned (`learned/correction.ts`).
 */
import { ratesOf } from "../../../ir/cost/index.ts";
import { knownCut, wholeTile } from "../../../lang/pipeline/stream-k.ts";
import type { KnownCut } from "../../../lang/pipeline/stream-k.ts";
import type { Target } from "../../../targets/target.ts";
import { threadRows } from "../configuration.ts";
import type {
  PersistentConfiguration,
  ProductSizes,
  TiledConfiguration,
} from "../configuration.ts";
import { edgesAmong, fetchedSides, planeOf, windowsOf } from "../scheduler/edges.ts";
import { isHeld } from "../mainloop/register-operand.ts";
import { besidesOf, handingSeconds, memoryGap } from "./overheads.ts";
import { cacheRate, fetchingOf, operandsOf } from "./fetch.ts";
import { plainSeconds, summed } from "./plain.ts";
import {
  hidden,
  launchSeconds,
  memoryBytes,
  mostExposed,
  movedBytes,
  overlapped,
  productRate,
  readBytes,
} from "./rates.ts";
import { overhangSeconds } from "./out-of-bounds.ts";
import type { FetchedSteps, TilePlane } from "./out-of-bounds.ts";
import { partCount } from "../scheduler/split-k.ts";
import { prologueOf } from "../problem.ts";
import type { MatmulProblem } from "../problem.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { Recipe } from "../f32-emulation.ts";
import { depthOf, halvesColumns, stageBytes, tileCount, workerCount } from "../tile-shapes.ts";

/**
 * The part of a processor's rate that tiles reach, most · columns / (columns + half): wide ones read shared memory less for
 * what they multiply. The greatest tile of two consumers reaches 0.96.
 */
const tileEfficiency: {
  readonly [M in 1 | 2 | 4]: { readonly most: number; readonly half: number };
} = {
  1: { most: 1, half: 77.8 },
  2: { most: 1.07, half: 48.3 },
  4: { most: 1.07, half: 48.3 },
};
/**
 * The same with swapped operands, whose tiles have at most 64 columns: with as many a step takes little longer than without. 768 × 480 × 3840 took 10.8 µs in tiles of 64 × 64
 * that are, and 11.9 in others.
 */
const turnedEfficiency: typeof tileEfficiency = {
  1: { most: 1, half: 105 },
  2: { most: 1.07, half: 61.2 },
  4: { most: 1.07, half: 61.2 },
};
/** The part of `tileEfficiency` that tiles of swapped operands reach at any width where the operand is computed, but for weights in few bits. */
const computedEfficiency = 0.745;
/** How much longer steps of some widths take than that says. */
const widths: { readonly [columns: number]: number } = {
  128: 0.996,
  144: 1.12,
  160: 1.06,
  224: 1.03,
};
/** The same of f64, which each warp multiplies for itself. */
const doubleEfficiency: typeof tileEfficiency = {
  1: { most: 1.25, half: 116 },
  2: { most: 1.07, half: 38 },
  4: { most: 1.07, half: 38 },
};
/**
 * How much faster tensor cores are with half of the elements: an instruction of 256 columns then reads 18 KB of shared memory in
 * 128 cycles, which gives 16.
 */
const sparseGain = 1.75;
/** Elements of a prologue a second that a processor computes and hands to its tensor cores from registers. */
const computedElements: { readonly [M in 1 | 2 | 4]: number } = { 1: 17e9, 2: 25e9, 4: 26e9 };
/**
 * Likewise of weights in few bits, of 8 bits in parts of k alone, where nobody waits for sums of others meanwhile: with 32 rows of i4, 8192 × 28672 took 46.9 µs in parts of k,
 * and 28672 × 8192 48.2 µs in whole tiles.
 */
const wholeElements: typeof computedElements = { ...computedElements, 4: 41e9 };
/** Seconds of a request for what lies outside an array, for each that is made at once: of single blocks, and of pairs. */
const outsideSeconds: { readonly [M in 1 | 2 | 4]: number } = {
  ...{ 1: 6.5e-11, 2: 13.3e-11, 4: 13.3e-11 },
};
const pairOutside = 5.81e-11;
/** How much faster tensor cores are where most processors have nothing to do: the clock is that much higher. */
const clockOfFew = 0.134;
/**
 * How much faster steps of operands in parts are in pairs of blocks, which fetch columns once for both: the parts are more than the cache holds. f32 of 4096³ as three
 * products of bf16, in tiles of 128 × 128, took 581 µs in pairs and 587 without. Whole operands gain nothing by it.
 */
const pairedParts = 1.015;
/**
 * How much longer steps take whose sums are multiplied by scales of blocks, where operands are more than the cache holds: of single blocks, and of pairs. In tiles of
 * 192 columns 4096 × 7168 × 16384 took 769 µs, 745 where tiles are split, and 697 in pairs; 4096 × 4096 × 7168 took 202 where tiles are split, and 198 in pairs.
 */
const scaledLonger = { 1: 1.19, 2: 1.1 } as const;
/** What memory wants to be asked for at once, as a launch begins, and how much longer it takes for what is asked for besides: requests then meet in its banks. */
const [askedBytes, askedMore] = [10.8e6, 0.234];

function crowdedSeconds(asked: number): number {
  return (askedMore * Math.max(0, asked - askedBytes)) / memoryBytes;
}

/**
 * Seconds that a step takes at least, and from when memory is asked for it until it is there: of a pair of blocks, both of which must have
 * left a slot before either fills it, 512 × 2048 × 4096 took 20.5 µs with 8 stages of 64 × 128, and 16.3 of single blocks.
 */
const leastStepSeconds: { readonly [M in 1 | 2 | 4]: number } = {
  ...{ 1: 0.112e-6, 2: 0.173e-6, 4: 0.173e-6 },
};
const [askedSeconds, pairAskedSeconds] = [1.26e-6, 2.08e-6];

/**
 * Seconds that each of so many steps of a block takes at least by when memory gives them. All slots are asked for at once, and again as they are
 * left: steps come in waves. 18 steps of 64 × 1616 × 2304 in parts of k took 6.1 µs with 8 slots, which are three waves, and 5.5 with 9.
 */
function waitingSeconds(
  steps: number,
  { consumers, stages, cluster }: PersistentConfiguration,
): number {
  const asking = cluster > 1 ? pairAskedSeconds : askedSeconds;
  const waves = Math.max(0, Math.ceil(steps / stages) - 1);
  const left = (steps - waves * stages) * leastStepSeconds[consumers];
  return (waves * asking + left) / Math.max(1, steps);
}

/** Seconds that each of so many steps of a block takes at least, each term of which is multiplied, and each part fetched. */
function leastSeconds(
  { terms, parts }: Recipe,
  steps: number,
  configuration: PersistentConfiguration,
): number {
  const multiplying = terms.length * leastStepSeconds[configuration.consumers];
  return Math.max(multiplying, parts * waitingSeconds(parts * steps, configuration));
}

/** Seconds of a step of which a term takes so long to multiply, and a part of either operand to fetch. */
function stepSeconds({ terms, parts }: Recipe, multiplying: number, fetching: number): number {
  return overlapped(terms.length * multiplying, parts * fetching, hidden.step);
}

/** Seconds that a tile takes longer where tiles may be split, since its threads do not end it one after the other (`ping-pong.ts`). */
const unorderedSeconds = 0.5e-6;

/** Seconds of a launch besides its tiles whose blocks come in pairs. */
const pairSeconds = 1.22e-6;

/** What the model thinks of a configuration. */
export interface Estimate {
  /** Seconds that it takes at least, which are soon known: as if all were hidden of what is shorter, and nothing were fetched from outside arrays. */
  readonly least: number;
  /** The seconds that it takes. */
  readonly seconds: () => number;
}

/** What the model thinks of configurations of a problem, in seconds; undefined where it has no rates for it. */
export function tiledModel(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): ((configuration: TiledConfiguration) => number) | undefined {
  const estimate = tiledEstimates(problem, sizes, target);
  return estimate && ((configuration) => estimate(configuration).seconds());
}

/** The same for who need not know how long the slow ones take. */
export function tiledEstimates(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): ((configuration: TiledConfiguration) => Estimate) | undefined {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return undefined;
  const product = persistentModel(productOf(problem, recipe, sizes, target));
  const inParts = partsModel(problem, recipe, sizes, target);
  return (configuration) => {
    if (configuration.kernel === "persistent")
      return configuration.schedule === "split-k" ? inParts(configuration) : product(configuration);
    const seconds = plainSeconds(problem, recipe, configuration, sizes, target);
    return { least: seconds, seconds: () => seconds };
  };
}

/**
 * Seconds that parts of k take besides: they begin when the launch before has added up its sums. Of weights in few bits these are in the rates of computing them. 1 × 4096 × 4096 took
 * 9.7 µs in parts, and 9.1 in whole tiles.
 */
const partedSeconds = 0.44e-6;

/** What the model thinks products of parts of k take, which are those of a batch, and their sum. */
function partsModel(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  target: Target,
): (configuration: PersistentConfiguration) => Estimate {
  const depth = depthOf(problem, recipe);
  const besides = problem.weights === undefined ? partedSeconds : 0;
  const models = new Map<number, ReturnType<typeof persistentModel>>();
  const modelOf = (parts: number): ReturnType<typeof persistentModel> => {
    const apart = { ...sizes, k: Math.ceil(sizes.k / parts), batch: sizes.batch * parts };
    const model = persistentModel(productOf(problem, recipe, apart, target, sizes));
    models.set(parts, model);
    return model;
  };
  return (configuration) => {
    const parts = partCount(problem, configuration, sizes, depth, target);
    const product = (models.get(parts) ?? modelOf(parts))({ ...configuration, schedule: "tiles" });
    const summing = parts === 1 ? 0 : besides + summed(parts, sizes);
    return { least: product.least + summing, seconds: () => product.seconds() + summing };
  };
}

/** How tiles of the last round are cut. */
export function cutOf(
  configuration: PersistentConfiguration,
  tiles: number,
  workers: number,
  steps: number,
): KnownCut {
  if (configuration.schedule === "tiles") return wholeTile(steps);
  return knownCut(tiles, workers, steps, halvesColumns(configuration));
}

/** The part of a processor's rate that tiles of a product reach. */
function efficiencyOf(
  problem: MatmulProblem,
  recipe: Recipe,
): (tiles: PersistentConfiguration) => { readonly most: number; readonly half: number } {
  const efficiency = recipe.issuer === "warp" ? doubleEfficiency : tileEfficiency;
  const isPlain = recipe.issuer === "warpgroup" && !problem.sparse && !problem.weights;
  const isHeldSwapped = isHeld(problem, recipe, "b", { swapAB: true, cluster: 1 });
  if (!isPlain || isHeldSwapped) return ({ consumers }) => efficiency[consumers];
  const isComputed = prologueOf(problem) !== undefined;
  return ({ consumers, swapAB }) => {
    const { most, half } = efficiency[consumers];
    if (!swapAB) return { most, half };
    return isComputed ? { most: computedEfficiency * most, half } : turnedEfficiency[consumers];
  };
}

/**
 * Bytes that blocks ask for at most, where they ask for the same: parts of k are for products of few tiles, and the launch before them only adds up
 * sums. Rates of weights in few bits were fitted without that.
 */
function sharedReads(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  inParts: boolean,
): number {
  return inParts && problem.weights === undefined ? readBytes(problem, recipe, sizes) : Infinity;
}

/** A product for the persistent kernel, and what all of its configurations share. */
interface Product {
  readonly problem: MatmulProblem;
  readonly recipe: Recipe;
  readonly sizes: ProductSizes;
  readonly target: Target;
  readonly depth: number;
  /** Steps of a tile. */
  readonly steps: number;
  /** At which a processor multiplies. */
  readonly rate: number;
  /** Seconds that memory needs for all of it. */
  readonly memory: number;
  /** What `sharedReads` gives. */
  readonly shared: number;
  readonly bytes: ReturnType<typeof stageBytes>;
  readonly operands: ReturnType<typeof operandsOf>;
  readonly efficiency: ReturnType<typeof efficiencyOf>;
  readonly besides: ReturnType<typeof besidesOf>;
  /** Elements of a prologue a second, in whole tiles; undefined without one. */
  readonly computed: typeof computedElements | undefined;
}

function productOf(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  target: Target,
  /** How operands lie in memory, of which a product of parts of k takes parts. */
  stored = sizes,
): Product {
  const depth = depthOf(problem, recipe);
  const gain = problem.sparse ? sparseGain : 1;
  const inParts = stored !== sizes;
  const whole = inParts || problem.weights?.dtype.bits === 4 ? wholeElements : computedElements;
  return {
    problem,
    recipe,
    sizes,
    target,
    depth,
    steps: Math.ceil(sizes.k / depth),
    rate: (gain * ratesOf(target).products[productRate(recipe)]) / target.processors,
    memory: movedBytes(problem, recipe, sizes) / memoryBytes,
    shared: sharedReads(problem, recipe, sizes, inParts),
    bytes: stageBytes(problem),
    operands: operandsOf(problem, recipe, stored),
    efficiency: efficiencyOf(problem, recipe),
    besides: besidesOf(problem, recipe, sizes, target, inParts ? 2 : 1),
    computed: prologueOf(problem) === undefined ? undefined : whole,
  };
}

/** What the model thinks launches of the persistent kernel take. */
function persistentModel(product: Product): (configuration: PersistentConfiguration) => Estimate {
  return (configuration) => {
    const launch = launchOf(product, configuration);
    return { least: leastTime(product, launch), seconds: () => launchTime(product, launch) };
  };
}

/** A launch for a product, and what is known of it before it is known how long steps fetch. */
interface Launch {
  readonly configuration: PersistentConfiguration;
  readonly rows: number;
  readonly workers: number;
  /** Whole tiles of a block before its last one, and how that is cut. */
  readonly rounds: number;
  readonly cut: KnownCut;
  /** Seconds in which a term of a step is multiplied, and the part of them that one of the last tile takes. */
  readonly multiplying: number;
  readonly share: number;
  /** Seconds of a step however little it multiplies and fetches. */
  readonly leastStep: number;
  /** Bytes a second that a block fetches. */
  readonly fetchRate: number;
  /** Seconds of memory. */
  readonly moving: number;
  /** What tiles take besides their steps: those that others come after, and the last one. */
  readonly tileBesides: { readonly before: number; readonly last: number };
  /** Seconds that nothing hides. */
  readonly preparing: number;
  readonly handing: number;
  readonly starting: number;
}

/** Whether there are scales of blocks, and operands are more than the cache holds. */
function isScaledFromMemory({ problem, recipe, sizes, target }: Product): boolean {
  return (
    problem.blockScales !== undefined && readBytes(problem, recipe, sizes) > ratesOf(target).l2
  );
}

function launchOf(product: Product, configuration: PersistentConfiguration): Launch {
  const { recipe, sizes, target, depth, steps, rate } = product;
  const { consumers, columns, swapAB, cluster } = configuration;
  const rows = consumers * threadRows;
  const tiles = tileCount(configuration, sizes);
  const workers = workerCount(configuration, sizes, depth, target);
  const { most, half } = product.efficiency(configuration);
  const reached = (rate * most * columns) / (columns + half);
  // The part of the processors that have nothing to do.
  const idle = 1 - Math.min(1, (workers * cluster) / target.processors);
  const paired = cluster > 1 && recipe.terms.length > 1 ? pairedParts : 1;
  const width = swapAB ? 1 : (widths[columns] ?? 1);
  const longer = isScaledFromMemory(product) ? scaledLonger[cluster] : 1;
  const cut = cutOf(configuration, tiles, workers, steps);
  const rounds = Math.ceil(tiles / workers) - 1;
  const all = rounds * steps + cut.each;
  return {
    configuration,
    rows,
    workers,
    rounds,
    cut,
    multiplying:
      (longer * width * (2 * rows * columns * depth)) /
      (reached * paired * (1 + clockOfFew * idle)),
    share: cut.isHalved ? (columns / 2 + half) / (columns + half) : 1,
    leastStep: Math.max(
      computingSeconds(product, configuration),
      leastSeconds(recipe, all, configuration),
    ),
    fetchRate: cacheRate(idle) / width,
    moving: movingSeconds(product, configuration, workers),
    tileBesides: product.besides(configuration),
    preparing: product.operands(configuration).preparing,
    handing: handingSeconds(cut.others, rows * columns, cut.isHalved),
    starting: launchSeconds + (cluster > 1 ? pairSeconds : 0),
  };
}

/** Seconds of a step in which its rows are computed. */
function computingSeconds(
  { computed, depth }: Product,
  { consumers, schedule }: PersistentConfiguration,
): number {
  if (computed === undefined) return 0;
  const elements = schedule === "tiles" ? computed : computedElements;
  return (consumers * threadRows * depth) / elements[consumers];
}

/** Seconds that memory needs where so many blocks, or pairs of them, ask it. */
function movingSeconds(
  { problem, target, steps, bytes, memory, shared }: Product,
  configuration: PersistentConfiguration,
  workers: number,
): number {
  const { consumers, columns, stages, cluster } = configuration;
  const ofStep = consumers * threadRows * bytes.row + columns * bytes.column;
  const asked = workers * cluster * Math.min(steps, stages) * ofStep;
  const distinct = shared * Math.min(1, stages / steps);
  const gap = shared < Infinity ? 1 : memoryGap(problem, configuration, workers, target);
  return memory * gap + crowdedSeconds(Math.min(asked, distinct));
}

/**
 * Seconds of the block that has most to do, whose steps take so long, and those of its last tile; and so much longer those of tiles that reach
 * beyond an edge.
 */
function busySeconds(
  { steps }: Product,
  { configuration, rounds, cut, tileBesides: { before, last } }: Launch,
  step: number,
  lastStep: number,
  longer: number,
): number {
  const each =
    steps * step + before + (configuration.schedule === "stream-k" ? unorderedSeconds : 0);
  const overhang = (rounds === 0 ? cut.each : steps) * longer;
  return rounds * each + cut.each * lastStep + last + overhang;
}

/** What a launch takes. */
function launchTime(product: Product, launch: Launch): number {
  const { multiplying, share, leastStep, cut, moving, preparing, handing, starting } = launch;
  const plane = planeOf(launch.configuration, product.sizes, product.target, launch.workers);
  const fetching = fetchingOfStep(product, launch, plane);
  const stepOf = (fetched: number, part = 1): number =>
    Math.max(leastStep, stepSeconds(product.recipe, part * multiplying, fetched));
  const step = stepOf(fetching.row + fetching.column);
  const lastStep = cut.isHalved ? stepOf(fetching.row + fetching.column / 2, share) : step;
  const longer = longerSeconds(product, launch, plane, { fetching, step, stepOf });
  const busy = busySeconds(product, launch, step, lastStep, longer);
  return preparing + overlapped(busy, moving, hidden.all, mostExposed) + handing + starting;
}

/**
 * What it takes at least: what takes longer hides all of the rest, in steps as in the whole launch; what is fetched lies in whole lines, and nothing
 * beyond an edge. Nothing of this takes a power or goes over tiles.
 */
function leastTime(product: Product, launch: Launch): number {
  const { recipe, bytes } = product;
  const { multiplying, share, leastStep, moving, preparing, handing, starting } = launch;
  const { columns, cluster } = launch.configuration;
  const stepOf = (part: number): number =>
    Math.max(leastStep, recipe.terms.length * (part * multiplying));
  const fetched = launch.rows * bytes.row + (columns / cluster) * bytes.column;
  const step = Math.max(stepOf(1), (recipe.parts * fetched) / launch.fetchRate);
  const busy = busySeconds(product, launch, step, stepOf(share), 0);
  return preparing + Math.max(busy, moving) + handing + starting;
}

/** Seconds in which a step's rows and columns are fetched. */
function fetchingOfStep(
  { problem, recipe, bytes, operands }: Product,
  { configuration, rows, fetchRate }: Launch,
  plane: TilePlane,
): ReturnType<typeof fetchingOf> {
  const { columns, swapAB, cluster } = configuration;
  const { begin } = operands(configuration);
  const [rowSide, columnSide] = swapAB ? (["b", "a"] as const) : (["a", "b"] as const);
  // Columns that lie along them come in boxes of whole lines, or of halves where tiles have no whole ones.
  const isAcross = !recipe.alongK && problem.major[columnSide] !== "k";
  const halved = isAcross && (columns * recipe[columnSide].bits) % 1024 !== 0;
  const begins = { row: begin[rowSide], column: begin[columnSide] };
  return fetchingOf({ rows, columns, cluster, bytes, begin: begins, halved, plane }, fetchRate);
}

/** How much longer a step takes for what lies beyond an edge. */
function longerSeconds(
  { problem, recipe, sizes }: Product,
  { configuration }: Launch,
  plane: TilePlane,
  steps: FetchedSteps,
): number {
  const { consumers, cluster } = configuration;
  const sides = fetchedSides(problem, recipe, configuration, sizes);
  const edges = edgesAmong(problem, configuration, plane, sides);
  const windows = windowsOf(edges, configuration, sides);
  const seconds = cluster > 1 ? pairOutside : outsideSeconds[consumers];
  return overhangSeconds(plane, sides, windows, steps, { cluster, seconds });
}
