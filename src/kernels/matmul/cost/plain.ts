/** Modelled time of the plain kernel, and of the split-K reduction, which it uses too. */
import { ratesOf } from "../../../ir/cost/index.ts";
import type { Target } from "../../../targets/target.ts";
import type { PlainConfiguration, ProductSizes } from "../configuration.ts";
import { tileBesides } from "./overheads.ts";
import {
  hidden,
  launchSeconds,
  memoryBytes,
  movedBytes,
  overlapped,
  productRate,
} from "./rates.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import { tileCount } from "../tile-shapes.ts";

/**
 * Seconds of a step of the plain kernel, of halves and of other formats, which are rearranged on the way; and of each time that lanes
 * ask memory for some of it.
 */
const plainStepSeconds = { ofHalves: 0.127e-6, ofOthers: 0.92e-6, load: 0.0225e-6 };
/**
 * The same of halves whose rows do not begin at multiples of 16 bytes: nothing copies them ahead, so that every step waits for memory. Where several tiles share
 * a processor, so do what they ask for. 82 × 6454 × 9024 took 285 µs, of which 102 had been thought.
 */
const waitingStepSeconds = { step: 0.714e-6, load: 0.0067e-6, shared: 0.0071e-6 };
/** The part of a processor's rate at which it multiplies, and its lanes. */
const [plainEfficiency, plainLanes] = [0.17, 128];
/** Seconds of adding up parts of k: of the launch, of each part, and of each number of a part. */
const summingSeconds = { launch: 0.901e-6, part: 0.0852e-6, number: 1.61e-12 };

/** What the model thinks the plain kernel takes where the persistent one could be used: steps wait for memory. */
export function plainSeconds(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PlainConfiguration,
  sizes: ProductSizes,
  target: Target,
): number {
  const { rows, columns, depth, splitK } = configuration;
  const tiles = tileCount(configuration, sizes);
  const steps = Math.ceil(Math.ceil(sizes.k / depth) / splitK) * recipe.terms.length;
  const rate = ratesOf(target).products[productRate(recipe)] / target.processors;
  const multiplying = (2 * rows * columns * depth) / (rate * plainEfficiency);
  const among = Math.max(1, tiles / target.processors);
  const step = stepSeconds(problem, configuration, sizes, multiplying, among);
  const summing = splitK === 1 ? 0 : summed(splitK, sizes);
  const busy = steps * step + among * tileBesides(rows * columns, "stored");
  return (
    launchSeconds +
    overlapped(busy, movedBytes(problem, recipe, sizes) / memoryBytes, hidden.step) +
    summing
  );
}

/** Seconds of a step of which multiplying takes so many, where so many tiles share a processor. */
function stepSeconds(
  problem: MatmulProblem,
  { rows, columns, depth }: PlainConfiguration,
  sizes: ProductSizes,
  multiplying: number,
  among: number,
): number {
  const [ofA, ofB] = [loadedElements(problem, "a", sizes), loadedElements(problem, "b", sizes)];
  const loads = ((rows * depth) / ofA + (columns * depth) / ofB) / plainLanes;
  const isHalf = problem.a.dtype.bits === 16 && problem.b.dtype.bits === 16;
  if (isHalf && Math.min(ofA, ofB) < 8) {
    const { step, load, shared } = waitingStepSeconds;
    return Math.max(step + load * loads, among * (multiplying + shared * loads));
  }
  const { ofHalves, ofOthers, load } = plainStepSeconds;
  return Math.max((isHalf ? ofHalves : ofOthers) + load * loads, among * multiplying);
}

/** Seconds of adding up so many parts of k. */
export function summed(parts: number, { m, n, batch }: ProductSizes): number {
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
