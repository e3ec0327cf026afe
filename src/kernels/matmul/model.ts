/**
 * What a product takes on a GPU, as a model thinks. It is of the whole launch, since what matters most is how tiles fill
 * processors:
 *
 *   by tiles   rounds of tiles × (steps × the longer of multiplying and fetching a step + what a tile costs besides)
 *   split      whole rounds, a part of one, and the handing over of sums
 *
 * or the time that memory needs for all of it, if that is longer; the shorter of the two is hidden but for a part. A step takes some
 * time however little it multiplies, and waits for memory where few steps are asked for ahead: those of 64 × 8 took 0.15 µs with 8
 * stages, 0.19 µs with 6.
 *
 * Rows of operands that do not begin at multiples of 32 bytes lie across sectors of the cache, and these are fetched twice, the more slowly the more
 * blocks ask for them at once:
 *
 *   1000 × 3000 × 2000 in tiles of 128 × 192   multiplying 0.47 µs a step, fetching 0.70 µs: 24 KB of columns across sectors
 *   the same by pairs of blocks                each fetches half of the columns, 0.41 µs
 *   b by columns, rows of 4000 bytes           0.33 µs
 *
 * Tiles that reach beyond an edge take longer where many do at once (`overhang.ts`).
 *
 * Rates are those of one processor at work among others; where there are blocks for few, the clock is higher. They were fitted to
 * what was timed on an H200 of bf16: 2300 configurations of 231 sizes, and those of docs/benchmarks/h200-matmul.jsonl. Of these
 * sizes what the model likes best reaches 0.99 of the fastest in the mean, 0.89 at worst (`model.test.ts`).
 */
import { ratesOf } from "../../ir/cost/index.ts";
import type { Target } from "../../targets/target.ts";
import { packedBytes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type {
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
  TiledConfiguration,
} from "./configuration.ts";
import { isHeld } from "./held-rows.ts";
import type { TileSides } from "./held-rows.ts";
import { partCount } from "./parts.ts";
import { preparationsOf } from "./prepare.ts";
import type { Preparation } from "./prepare.ts";
import { prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import { storedDepth } from "./prologue.ts";
import { recipeOf } from "./recipe.ts";
import type { Recipe } from "./recipe.ts";
import { storedHalf } from "./sparse-weights.ts";
import { edgesAmong, fetchedSides, planeOf, windowsOf } from "./edges.ts";
import { overhangSeconds } from "./overhang.ts";
import {
  copiesResult,
  depthOf,
  hasOneTile,
  isCopied,
  lastParts,
  mayDeferStores,
  roomOfBlock,
  sharedBytes,
  stageBytes,
  tileCount,
  workerCount,
} from "./tile-shapes.ts";

/**
 * The part of a processor's rate that tiles reach, most · columns / (columns + half): wide ones read shared memory less for
 * what they multiply. The greatest tile of two multipliers reaches 0.96.
 */
const tileEfficiency: {
  readonly [M in 1 | 2 | 4]: { readonly most: number; readonly half: number };
} = {
  1: { most: 1.15, half: 98.8 },
  2: { most: 1.1, half: 48.1 },
  4: { most: 1.1, half: 48.1 },
};
/** The part of that which tiles reach whose result is turned, but for weights in few bits, which come from registers. */
const turnedEfficiency = 0.771;
/** How much longer steps of some widths take than that says. */
const widths: { readonly [columns: number]: number } = { 128: 0.992, 144: 1.11, 160: 1.03, 224: 1.02 };
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
const wholeElements: typeof computedElements = { ...computedElements, 4: 45e9 };
/** Bytes a second that the shared cache gives one processor, and how much more where most of the others have nothing to do. */
const [cacheBytes, cacheOfFew] = [140e9, 0.484];
/** Seconds of a request for what lies outside an array, for each that is made at once: of single blocks, and of pairs. */
const outsideSeconds: { readonly [M in 1 | 2 | 4]: number } = {
  ...{ 1: 2.79e-11, 2: 12.1e-11, 4: 12.1e-11 },
};
const pairOutside = 6.08e-11;
/** How much faster tensor cores are where most processors have nothing to do: the clock is that much higher. */
const clockOfFew = 0.148;
/**
 * Bytes of a sector of the cache, and how much longer rows take which lie across sectors, so that these are fetched twice, which lie across
 * lines alone, and which are half lines.
 */
const [sectorBytes, acrossLines, halfLines] = [32, 0.649, 2.01];
/** Seconds of a row that lies across sectors, for each that is asked for at once. */
const sharedSeconds = 0.792e-9;
const acrossSeconds = 0.911e-11;
/** Bytes a second that memory gives, and that it gives and takes for operands which are prepared. */
export const memoryBytes = 4.3e12;
const preparedBytes = 1.7e12;
/** What memory wants to be asked for at once, and how much longer it takes for as much again: requests then meet in its banks. */
const [askedBytes, askedMore] = [9.51e6, 0.133];
/**
 * Seconds that a step takes at least, and from when memory is asked for it until it is there: of a pair of blocks, both of which must have
 * left a slot before either fills it, 512 × 2048 × 4096 took 20.5 µs with 8 stages of 64 × 128, and 16.3 of single blocks.
 */
const leastStepSeconds: { readonly [M in 1 | 2 | 4]: number } = {
  ...{ 1: 0.118e-6, 2: 0.173e-6, 4: 0.173e-6 },
};
const [askedSeconds, pairAskedSeconds] = [1.46e-6, 2.12e-6];
/**
 * Seconds of a step of the plain kernel, of halves and of other formats, which are rearranged on the way; and of each time that lanes
 * ask memory for some of it.
 */
const plainStepSeconds = { ofHalves: 0.127e-6, ofOthers: 0.92e-6, load: 0.0225e-6 };
/** The part of a processor's rate at which it multiplies, and its lanes. */
const [plainEfficiency, plainLanes] = [0.17, 128];
/** Seconds of adding up parts of k: of the launch, of each part, and of each number of a part. */
const summingSeconds = { launch: 1.04e-6, part: 0.079e-6, number: 1.58e-12 };
/** The part of the shorter of two things that the other does not hide: of a step, and of all that memory gives and takes. */
const [notHidden, notHiddenOfAll] = [6.95, 2.76];
/**
 * Seconds that a tile takes besides its steps: to begin, and for each number of its result; those of a tile that is stored while the
 * next one is multiplied, and of one that is a block's only one: 2048³ took 0.57 µs less as such, 1024³ 0.33.
 */
const besidesSeconds = {
  stored: { tile: 0.465e-6, number: 6.89e-11 },
  turned: { tile: 0.0999e-6, number: 10.1e-11 },
  deferred: { tile: 0.352e-6, number: 1.39e-11 },
  once: { tile: 0.197e-6, number: 6.41e-11 },
};
const slotShare = 0.318;
const aloneShare = 0.449;
/** Seconds of a launch besides its tiles, and of one whose blocks come in pairs. */
const [launchSeconds, pairSeconds] = [1.22e-6, 1.16e-6];
/** Seconds until a block hears of what others have written, and of each of them besides. */
const [heardSeconds, handedSeconds] = [1.9e-6, 0.22e-6];
/** Bytes a second at which a block hands sums to another through the shared cache. */
const handedBytes = 29.1e9;

/** What the model thinks of configurations of a problem, in seconds; undefined where it has no rates for it. */
export function tiledModel(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): ((configuration: TiledConfiguration) => number) | undefined {
  const recipe = recipeOf(problem);
  if (recipe === undefined) return undefined;
  const product = persistentModel(problem, recipe, sizes, target);
  return (configuration) =>
    configuration.kernel === "plain"
      ? plainSeconds(problem, recipe, configuration, sizes, target)
      : configuration.schedule === "parts"
        ? partsSeconds(problem, recipe, configuration, sizes, target)
        : product(configuration);
}

/** What the model thinks products of parts of k take, which are those of a batch, and their sum. */
function partsSeconds(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const parts = partCount(problem, configuration, sizes, depthOf(problem, recipe), target);
  const apart = { ...sizes, k: Math.ceil(sizes.k / parts), batch: sizes.batch * parts };
  const product = persistentModel(problem, recipe, apart, target, wholeElements, sizes);
  return (
    product({ ...configuration, schedule: "tiles" }) + (parts === 1 ? 0 : summed(parts, sizes))
  );
}

/** Seconds of computing so many elements of a prologue, where there is one. */
function prologueSeconds(problem: MatmulProblem, elements: number, rate: number): number {
  return prologueOf(problem) === undefined ? 0 : elements / rate;
}

/** How rows of an operand lie in the cache: at multiples of so many bytes. */
function longerOf(lies: number): number {
  return 1 + (1 - lies / rowBytes) * acrossLines;
}

/** Seconds in which a block fetches so many bytes of rows of a step that lie so, of so many that are asked for at once, each by so many blocks. */
function fetchSeconds(bytes: number, lies: number, cache: number, rows: number, sharers: number): number {
  const across = lies < sectorBytes ? rows * acrossSeconds + sharers * sharedSeconds : 0;
  return (bytes * longerOf(lies)) / cache + across;
}

/** Whether tiles of a configuration are stored while the next ones are multiplied. */
function storesLater(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
): boolean {
  return (
    copiesResult(problem, configuration) &&
    !isHeld(problem, recipe, configuration.turned ? "b" : "a", configuration) &&
    mayDeferStores(problem, recipe, configuration.columns)
  );
}

/** What tiles of a configuration take besides their steps: those that others come after, and the last one. */
function besidesOf(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  { processors }: Target,
  parts: number,
): (configuration: PersistentConfiguration) => { readonly before: number; readonly last: number } {
  const copies = isCopied(problem.out.dtype, sizes.n);
  return (configuration) => {
    const { multipliers, columns, turned } = configuration;
    // Lanes that write a turned result leave out what lies outside.
    const numbers = multipliers * threadRows * (turned ? Math.min(columns, sizes.m) : columns);
    const copiesOut = copies && copiesResult(problem, configuration);
    const form = { problem, recipe, configuration, sizes, processors, parts, copiesOut };
    const stored = hasOneTile(form) ? "once" : "stored";
    const last = tileBesides(numbers, turned ? "turned" : stored);
    const isLater = copies && storesLater(problem, recipe, configuration);
    return { last, before: isLater ? tileBesides(numbers, "deferred") : last };
  };
}

/** What the model thinks launches of the persistent kernel take. */
function persistentModel(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  target: Target,
  /** Of whole tiles. */
  computedWhole = problem.weights?.dtype.bits === 4 ? wholeElements : computedElements,
  /** How operands lie in memory, of which a product of parts of k takes parts. */
  stored = sizes,
): (configuration: PersistentConfiguration) => number {
  const { products } = ratesOf(target);
  const depth = depthOf(problem, recipe);
  const steps = Math.ceil(sizes.k / depth);
  const gain = problem.sparse ? sparseGain : 1;
  const efficiency = recipe.instruction === "mma" ? doubleEfficiency : tileEfficiency;
  const isPlain = recipe.instruction === "wgmma" && !problem.sparse && !problem.weights;
  const whenTurned = isPlain ? turnedEfficiency : 1;
  const rate = (gain * products[productRate(recipe)]) / target.processors;
  const memory = movedBytes(problem, recipe, sizes) / memoryBytes;
  const bytes = stageBytes(problem);
  const operandsOf = perSides((tiles) => operandsFor(problem, recipe, stored, tiles));
  // Columns that lie along them come in boxes of whole lines, or of halves where tiles have no whole ones.
  const halved = (name: "a" | "b", columns: number): boolean =>
    !recipe.alongK && problem.major[name] !== "k" && (columns * recipe[name].bits) % 1024 !== 0;
  const besides = besidesOf(problem, recipe, sizes, target, stored === sizes ? 1 : 2);
  return (configuration) => {
    const { multipliers, columns, stages, schedule, turned, cluster } = configuration;
    const rows = multipliers * threadRows;
    const { preparing, lines } = operandsOf(configuration);
    const tiles = tileCount(configuration, sizes);
    const workers = workerCount(configuration, sizes, depth, target);
    const { most, half } = efficiency[multipliers];
    const reached = (rate * most * (turned ? whenTurned : 1) * columns) / (columns + half);
    // The part of the processors that have nothing to do.
    const idle = 1 - Math.min(1, (workers * cluster) / target.processors);
    const width = turned ? 1 : (widths[columns] ?? 1);
    const multiplying =
      (width * (2 * rows * columns * depth)) / (reached * (1 + clockOfFew * idle));
    const [rowSide, columnSide] = turned ? (["b", "a"] as const) : (["a", "b"] as const);
    const cache = (cacheBytes * (1 + cacheOfFew * idle)) / width;
    const ofColumns =
      (columns / cluster) * bytes.column * (halved(columnSide, columns) ? halfLines : 1);
    const plane = planeOf(configuration, sizes, target, workers);
    // Tiles at once that have the same rows, and the same columns.
    const atOnce = Math.min(workers, plane.down * plane.across);
    const below = Math.min(plane.down, Math.max(plane.group, atOnce / plane.across));
    const beside = Math.min(plane.across, Math.max(1, atOnce / below));
    const fetching = {
      row: fetchSeconds(rows * bytes.row, lines[rowSide], cache, rows * cluster * workers, beside),
      column: fetchSeconds(ofColumns, lines[columnSide], cache, columns * workers, below),
    };
    const computed = schedule === "tiles" ? computedWhole : computedElements;
    const computing = prologueSeconds(problem, rows * depth, computed[multipliers]);
    const asking = cluster > 1 ? pairAskedSeconds : askedSeconds;
    const waiting = steps > stages ? (asking / stages) * (1 - (slotShare * stages) / steps) : 0;
    const stepOf = (fetched: number): number =>
      recipe.terms.length *
      Math.max(
        ...[overlapped(multiplying, fetched), computing],
        ...[leastStepSeconds[multipliers], waiting],
      );
    const step = stepOf(fetching.row + fetching.column);
    const sides = fetchedSides(problem, recipe, configuration, sizes);
    const edges = edgesAmong(problem, configuration, plane, sides);
    const longer = overhangSeconds(
      plane,
      sides,
      windowsOf(edges, configuration, sides),
      fetching,
      { cluster, seconds: cluster > 1 ? pairOutside : outsideSeconds[multipliers] },
      stepOf,
    );
    const { before, last } = besides(configuration);
    const parts = schedule === "tiles" ? 1 : lastParts(tiles, workers, steps);
    const rounds = Math.ceil(tiles / workers) - 1;
    const overhang = (steps * longer) / (rounds === 0 ? parts : 1);
    const busy =
      rounds * (steps * step + before) + Math.ceil(steps / parts) * step + last + overhang;
    const handing = handingSeconds(parts, rows * columns);
    const alone = isAlone(problem, configuration, workers, target);
    const starting =
      launchSeconds +
      (cluster > 1 ? pairSeconds : 0);
    const late = alone ? 1 + aloneShare * (target.processors / (workers * cluster) - 1) : 1;
    const asked =
      workers * cluster * Math.min(steps, stages) * (rows * bytes.row + columns * bytes.column);
    const crowded = 1 + askedMore * Math.max(0, asked / askedBytes - 1);
    return preparing + overlapped(busy, memory * crowded * late, notHiddenOfAll) + handing + starting;
  };
}

/** Seconds in which the parts of a tile of so many sums are handed from one to the next. */
function handingSeconds(parts: number, sums: number): number {
  const each = handedSeconds + (sums * 4) / handedBytes;
  return parts === 1 ? 0 : heardSeconds + (parts - 1) * each;
}

/** Whether blocks of a launch, of which there are so many, find no room beside those of the launch before. */
function isAlone(
  problem: MatmulProblem,
  configuration: PersistentConfiguration,
  workers: number,
  target: Target,
): boolean {
  const fits = isNarrow(configuration) && sharedBytes(problem, configuration) <= roomOfBlock(target, 2);
  return !fits && 2 * workers * configuration.cluster > target.processors;
}

/** What is done with operands before, in seconds, and how much longer their rows take to fetch. */
interface Operands {
  readonly preparing: number;
  readonly lines: { readonly a: number; readonly b: number };
}

function operandsFor(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  tiles: TileSides,
): Operands {
  const { a, b } = preparationsOf(problem, recipe, sizes, tiles);
  return {
    preparing: [a, b].reduce(
      (sum, each) => sum + (each === undefined ? 0 : preparationSeconds(each)),
      0,
    ),
    lines: {
      a: a === undefined ? sectorFactor(problem, "a", sizes) : rowBytes,
      b: b === undefined ? sectorFactor(problem, "b", sizes) : rowBytes,
    },
  };
}

/** A function of the sides of tiles, asked once for each: there are hundreds of configurations. */
function perSides<T>(find: (tiles: TileSides) => T): (tiles: TileSides) => T {
  const found = new Map<string, T>();
  return ({ turned, cluster }) => {
    const key = `${String(turned)} ${cluster}`;
    const known = found.get(key) ?? find({ turned, cluster });
    found.set(key, known);
    return known;
  };
}

/** What a tile of so many numbers takes besides its steps. */
function tileBesides(numbers: number, when: keyof typeof besidesSeconds): number {
  const { tile, number } = besidesSeconds[when];
  return tile + number * numbers;
}

/** Whether registers suffice for two blocks on a processor. */
function isNarrow({ multipliers, columns }: PersistentConfiguration): boolean {
  return multipliers === 1 && columns <= 64;
}

/** Two things at once: the longer, and a part of the shorter. */
function overlapped(left: number, right: number, part = notHidden): number {
  return (left ** part + right ** part) ** (1 / part);
}

/** How much longer rows of a tile take to fetch than rows that begin with a sector of the cache. */
function sectorFactor(problem: MatmulProblem, name: "a" | "b", { m, n, k }: ProductSizes): number {
  const { dtype } = problem[name];
  const isSparse = problem.sparse && name === "b";
  const stored = isSparse ? storedHalf(k) : storedDepth(problem.prologues[name], k);
  const along = problem.major[name] === "k" ? Number(stored) : name === "a" ? m : n;
  const bytes = packedBytes(dtype, along);
  return [128, 64, 32].find((each) => bytes % each === 0) ?? 16;
}

/** Bytes that memory gives and takes, each once. */
function movedBytes(
  problem: MatmulProblem,
  recipe: Recipe,
  { m, n, k, batch }: ProductSizes,
): number {
  const formatOf = (name: "a" | "b"): DType =>
    problem.prologues[name] === undefined ? recipe[name] : problem[name].dtype;
  const read =
    packedBytes(formatOf("a"), batch * m * k) +
    (problem.sparse ? 0.625 : 1) * packedBytes(formatOf("b"), batch * k * n);
  return recipe.parts * read + packedBytes(problem.out.dtype, batch * m * n);
}

function productRate({ a }: Recipe): "byte" | "half" | "tf32" | "f64" {
  if (a.bits === 64) return "f64";
  if (a.bits === 8) return "byte";
  return a.bits === 16 ? "half" : "tf32";
}

/** Reading an operand and writing its parts; rows that are not aligned are read element by element. */
function preparationSeconds({ dtype, parts, batch, rows, columns }: Preparation): number {
  const bytes = packedBytes(dtype, batch * rows * columns) * (parts + 1);
  return launchSeconds + bytes / preparedBytes;
}

/** What the model thinks the plain kernel takes where the persistent one could be used: steps wait for memory. */
function plainSeconds(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PlainConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const { rows, columns, depth, split } = configuration;
  const tiles = tileCount(configuration, sizes);
  const steps = Math.ceil(Math.ceil(sizes.k / depth) / split) * recipe.terms.length;
  const rate = ratesOf(target).products[productRate(recipe)] / target.processors;
  const multiplying = (2 * rows * columns * depth) / (rate * plainEfficiency);
  const { ofHalves, ofOthers, load } = plainStepSeconds;
  const isHalf = problem.a.dtype.bits === 16 && problem.b.dtype.bits === 16;
  const loads =
    (rows * depth) / loadedElements(problem, "a", sizes) +
    (columns * depth) / loadedElements(problem, "b", sizes);
  const among = Math.max(1, tiles / target.processors) * multiplying;
  const step = Math.max((isHalf ? ofHalves : ofOthers) + (load * loads) / plainLanes, among);
  const summing = split === 1 ? 0 : summed(split, sizes);
  const busy =
    steps * step + Math.max(1, tiles / target.processors) * tileBesides(rows * columns, "stored");
  return (
    launchSeconds + overlapped(busy, movedBytes(problem, recipe, sizes) / memoryBytes) + summing
  );
}

/** Seconds of adding up so many parts of k. */
function summed(parts: number, { m, n, batch }: ProductSizes): number {
  const { launch, part, number } = summingSeconds;
  return launch + parts * (part + number * batch * m * n);
}

/** Elements of an operand that a lane of the plain kernel loads at once: as many as rows begin at multiples of, up to 16 bytes. */
function loadedElements(
  problem: MatmulProblem,
  name: "a" | "b",
  { m, n, k }: ProductSizes,
): number {
  const { bits } = problem[name].dtype;
  const along = problem.major[name] === "k" ? k : name === "a" ? m : n;
  let elements = 128 / bits;
  while (elements > 1 && along % elements !== 0) elements /= 2;
  return elements;
}
