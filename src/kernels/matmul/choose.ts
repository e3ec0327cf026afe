/**
 * Which configuration to use where none was given or measured: the one that a model of the GPU thinks fastest. The
 * model is of the whole launch, since what matters most is how tiles fill processors:
 *
 *   time = rounds of tiles × (steps × the longer of multiplying and fetching a step + what a tile costs besides)
 *          or the time that memory needs for all of it, if that is longer; and the summing of parts where k is split
 *
 * The rates are those of one processor at work, found by measuring single configurations, not shapes.
 */
import { ratesOf } from "../../ir/cost/index.ts";
import type { Target } from "../../targets/target.ts";
import { dtypes, packedBytes } from "../../formats/dtype.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type {
  MatmulConfiguration,
  PersistentConfiguration,
  PlainConfiguration,
  ProductSizes,
} from "./configuration.ts";
import type { MatmulProblem } from "./problem.ts";
import { depthOf } from "./persistent.ts";

/** The part of a processor's rate that tiles reach: wide ones read shared memory less for what they multiply. */
const tileEfficiency: { readonly [M in 1 | 2]: { readonly [C in 64 | 128 | 256]: number } } = {
  1: { 64: 0.3, 128: 0.5, 256: 0.66 },
  2: { 64: 0.45, 128: 0.72, 256: 0.82 },
};
/** Bytes a second that the shared cache gives one processor. */
const cacheBytes = 42e9;
/** The part of the memory's rate that copies reach. */
const memoryEfficiency = 0.9;
/** Seconds that a tile takes besides its steps, and a launch besides its tiles. */
const tileSeconds = 0.8e-6;
const launchSeconds = 3e-6;
const splits = [1, 2, 3, 4, 6, 8, 12, 16] as const;

/** Why the persistent kernel cannot be used, in words for a note; undefined where it can. */
export function persistentProblem(
  problem: MatmulProblem,
  { m, n, k }: ProductSizes,
  target: Target,
): string | undefined {
  const { a, b, major } = problem;
  if (!target.features.includes("wgmma") || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  if (a.dtype.bits > 16) return `wgmma does not multiply ${a.dtype.name} as it is`;
  if (a.dtype.bits === 8 && (major.a !== "k" || major.b !== "k"))
    return `wgmma reads ${a.dtype.name} along k alone: give a row-major and b column-major`;
  const extents = { m, n, k };
  for (const [name, along, dtype] of [
    ["a", major.a, a.dtype],
    ["b", major.b, b.dtype],
  ] as const) {
    const unit = 128 / dtype.bits;
    if (extents[along] % unit !== 0)
      return `${along} = ${extents[along]} keeps the copy engine from ${name}: pad it to ${Math.ceil(extents[along] / unit) * unit}`;
  }
  return undefined;
}

/** Bytes of shared memory that a configuration takes. */
export function sharedBytes({ multipliers, columns, stages }: PersistentConfiguration): number {
  const rows = multipliers * threadRows;
  return stages * (rows + columns) * rowBytes + multipliers * 2 * threadRows * rowBytes + 1024;
}

export function chooseConfiguration(
  problem: MatmulProblem,
  sizes: ProductSizes,
  target: Target,
): MatmulConfiguration {
  if (persistentProblem(problem, sizes, target) !== undefined)
    return plainConfiguration(problem, sizes, target);
  const candidates = persistentCandidates(target, sizes, depthOf(problem.a.dtype));
  return candidates.reduce((best, each) =>
    estimatedSeconds(problem, sizes, each, target) < estimatedSeconds(problem, sizes, best, target)
      ? each
      : best,
  );
}

function persistentCandidates(
  target: Target,
  { k }: ProductSizes,
  depth: number,
): readonly PersistentConfiguration[] {
  const steps = Math.ceil(k / depth);
  return ([1, 2] as const).flatMap((multipliers) =>
    ([256, 128, 64] as const).flatMap((columns) => {
      const stages = mostStages(multipliers, columns, target);
      return splits
        .filter((split) => split === 1 || split * 4 <= steps)
        .map((split) => ({ kernel: "persistent", multipliers, columns, stages, split }) as const);
    }),
  );
}

/** As many stages as fit, up to eight: more hide no more. */
function mostStages(multipliers: 1 | 2, columns: 64 | 128 | 256, target: Target): number {
  let stages = 8;
  const fits = (): boolean =>
    sharedBytes({ kernel: "persistent", multipliers, columns, stages, split: 1 }) <=
    target.sharedMemoryPerBlock;
  while (stages > 2 && !fits()) stages -= 1;
  return stages;
}

/** What the model thinks a launch takes. */
export function estimatedSeconds(
  { a, b, out }: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  { multipliers, columns, split }: PersistentConfiguration,
  target: Target,
): number {
  const rates = ratesOf(target);
  const rows = multipliers * threadRows;
  const depth = depthOf(a.dtype);
  const tiles = batch * Math.ceil(m / rows) * Math.ceil(n / columns) * split;
  const rounds = Math.ceil(tiles / target.processors);
  const steps = Math.ceil(Math.ceil(k / depth) / split);
  const rate = rates.products[a.dtype.bits === 8 ? "byte" : "half"] / target.processors;
  const multiplying = (2 * rows * columns * depth) / (rate * tileEfficiency[multipliers][columns]);
  // Rows and columns beyond the edges are filled in without being fetched.
  const fetching = ((Math.min(rows, m) + Math.min(columns, n)) * rowBytes) / cacheBytes;
  const busy = rounds * (steps * Math.max(multiplying, fetching) + tileSeconds);
  const moved =
    packedBytes(a.dtype, batch * m * k) +
    packedBytes(b.dtype, batch * k * n) +
    packedBytes(out.dtype, batch * m * n);
  const memory = moved / (rates.gmemBytes * memoryEfficiency);
  const summing =
    split === 1
      ? 0
      : launchSeconds +
        ((2 * split + 1) * 4 * batch * m * n) / (rates.gmemBytes * memoryEfficiency);
  return Math.max(busy, memory) + launchSeconds + summing;
}

/** Tiles that fit in registers for every format, split where they are too few for the processors. */
function plainConfiguration(
  { a, accumulator }: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  target: Target,
): PlainConfiguration {
  const wide = accumulator === dtypes.f64;
  const [rows, columns, depth] = wide
    ? ([64, 32, 16] as const)
    : ([64, 64, a.dtype.bits >= 32 ? 16 : a.dtype.bits === 16 ? 32 : 64] as const);
  const tiles = batch * Math.ceil(m / rows) * Math.ceil(n / columns);
  const steps = Math.ceil(k / depth);
  const wanted = Math.min(
    Math.floor(target.processors / Math.max(1, tiles)),
    Math.floor(steps / 8),
    16,
  );
  return { kernel: "plain", rows, columns, depth, split: Math.max(1, wanted) };
}
