/**
 * The tile scheduler of the weight gradient. Tiles are few and positions many, so the steps of all tiles are assigned evenly to blocks, as
 * in stream-K, and a tile may be shared by several blocks:
 *
 *   2 tiles of 6 steps for 3 blocks     block 0: tile 0, 0 … 3     block 1: tile 0, 4 … 5 · tile 1, 0 … 1     block 2: tile 1, 2 … 5
 *
 * Where blocks of different tiles would then load the same positions at different times, the steps of each tile are split alike (split-K),
 * so that blocks of different tiles are at the same positions together:
 *
 *   2 tiles of 5 steps for 4 blocks     blocks 0 and 2: 0 … 2 of tile 0 and 1     blocks 1 and 3: 3 … 4 of them
 *
 * With about as many tiles as processors, each tile belongs to one block, and there are no partial sums. Tiles are chosen to that end: their
 * columns are runs of 64 channels at one tap, and several tiles may share one run.
 *
 *   9 runs for 4 tiles of 2 ¼     tile 0: 0, 1, 8 (0 … 15)     tile 1: 2, 3, 8 (16 … 31)     …     tile 3: 6, 7, 8 (48 … 63)
 */
import { ratesOf } from "../../ir/cost/index.ts";
import type { Target } from "../../targets/target.ts";
import { boxesAcross, exactBox } from "./tma-boxes.ts";
import type { Box } from "./tma-boxes.ts";
import { stepChannels } from "./tma-implicit-gemm.ts";
import type { TileColumns } from "./tma-implicit-gemm.ts";
import type { FiveAxes, Geometry } from "./problem.ts";

/** Places of a step. */
export const stepPositions = 64;
/** Outputs of a program thread. */
export const threadRows = 64;

/** Columns of a tile, over taps and channels. */
export interface WeightsColumns {
  readonly columns: TileColumns;
  /** Columns that it has besides, of a run that it shares with other tiles; 0 where it shares none. */
  readonly shared: 0 | 16 | 32;
}

export interface TmaWeightsConfiguration extends WeightsColumns {
  readonly kernel: "tma";
  /** The places of a step. */
  readonly box: Box;
  /** Program threads that multiply, 64 outputs each. */
  readonly consumers: 1 | 2;
  /** Whether every tile is the work of one block, which rounds its sums itself. */
  readonly isWhole: boolean;
  readonly stages: number;
}

/** Steps of all tiles, and how they are assigned to blocks. */
export interface StepAssignment {
  readonly workers: number;
  /** Steps of a block. */
  readonly share: number;
  /** Steps that a tile counts for: its own, or more of them where blocks never go from one tile to the next. */
  readonly period: number;
  /** Blocks that may share a tile. */
  readonly partials: number;
}

/** Tiles that share a run of 64 columns. */
export function sharersOf({ shared }: WeightsColumns): number {
  return shared === 0 ? 1 : stepChannels / shared;
}

/** Widths of tiles, and the part of the tensor cores' rate that two threads reach with them; one thread's steps take as long. */
const widths: readonly (WeightsColumns & { readonly efficiency: number })[] = [
  { columns: 256, shared: 32, efficiency: 0.85 },
  { columns: 256, shared: 0, efficiency: 0.88 },
  { columns: 192, shared: 0, efficiency: 0.86 },
  { columns: 128, shared: 16, efficiency: 0.7 },
  { columns: 128, shared: 0, efficiency: 0.63 },
  { columns: 64, shared: 0, efficiency: 0.45 },
];

/** Steps that the beginning and the end of a tile take, and steps that are worth a block of their own. */
const [tileSteps, leastSteps] = [4, 4];
/** What a second launch takes by itself, and bytes in a second of sums that blocks leave, and that it adds up. */
const [launchSeconds, leftBytes, addedBytes] = [2e-6, 3.4e12, 4e12];
/** The part of what blocks at the same places read once more that memory is asked for again. */
const driftingPart = 0.3;
/** The part of products, or of copies, that goes on while nothing of the other does. */
const exposedPart = 0.25;

/** What a assignment is judged by. */
interface Work extends WeightsColumns {
  readonly tiles: number;
  readonly steps: number;
  readonly processors: number;
  /** Bytes of the sums of a tile. */
  readonly tileBytes: number;
  /** Seconds of a step, and of memory: where blocks are at the same places together, and where they are not. */
  readonly step: number;
  readonly together: number;
  readonly apart: number;
}

interface Judged {
  readonly assignment: StepAssignment;
  readonly seconds: number;
}

function besideMemory(products: number, memory: number): number {
  return Math.max(products, memory) + exposedPart * Math.min(products, memory);
}

/** So many blocks leave sums of a tile, which a second launch adds up. */
function leavingSeconds({ tileBytes }: Work, left: number): number {
  return launchSeconds + left * tileBytes * (1 / leftBytes + 1 / addedBytes);
}

/**
 * Nobody is idle, but blocks end one tile and begin another, and those of different tiles are at different places: what the cache does
 * not hold is fetched for each.
 */
function evenly(work: Work): Judged | undefined {
  const { tiles, steps, processors, step, apart, shared } = work;
  // Tiles that share a run would have different numbers of blocks.
  if (shared > 0) return undefined;
  const workers = Math.min(processors, tiles * Math.max(1, Math.floor(steps / leastSteps)));
  const share = Math.ceil((tiles * steps) / workers);
  return {
    assignment: { workers, share, period: steps, partials: Math.ceil((steps - 1) / share) + 1 },
    seconds:
      besideMemory((share + 3 * tileSteps) * step, apart) + leavingSeconds(work, workers + tiles),
  };
}

/** Every tile's steps among blocks of its own; undefined where there are too few processors for two of each. */
function byTiles(work: Work): Judged | undefined {
  const { tiles, steps, processors, step, together } = work;
  const most = Math.min(Math.floor(processors / tiles), Math.floor(steps / leastSteps));
  if (most < 2) return undefined;
  const share = Math.ceil(steps / most);
  const partials = Math.ceil(steps / share);
  const workers = tiles * partials;
  return {
    assignment: { workers, share, period: share * partials, partials },
    seconds: besideMemory((share + tileSteps) * step, together) + leavingSeconds(work, workers),
  };
}

/** Whole tiles, of which a block has as many as there are rounds. */
function wholly({ tiles, steps, processors, step, together }: Work): Judged {
  const rounds = Math.ceil(tiles / processors);
  return {
    assignment: {
      workers: Math.ceil(tiles / rounds),
      share: rounds * steps,
      period: steps,
      partials: 1,
    },
    seconds: besideMemory(rounds * (steps + tileSteps) * step, together),
  };
}

function product(numbers: readonly number[]): number {
  return numbers.reduce((all, each) => all * each, 1);
}

export function chooseTmaWeights(
  { batch, outputs, groups, channels, taps, output, x, out }: Geometry,
  target: Target,
): { readonly configuration: TmaWeightsConfiguration; readonly assignment: StepAssignment } {
  const box = exactBox(stepPositions, output);
  const consumers = outputs % 128 === 0 || (groups === 1 && outputs > 128) ? 2 : 1;
  const wide = product(taps) * channels;
  const rows = consumers * threadRows;
  const steps = boxesAcross(batch, output, box);
  const { processors } = target;
  const { l2, gmemBytes, products } = ratesOf(target);
  const count = ({ extents }: FiveAxes): number => product(extents);
  // Windows that lie apart do not meet all of x.
  const met = Math.min(count(x), batch * product(output) * groups * wide);
  const bytes = 2 * (met + count(out));
  const judge = (width: (typeof widths)[number]) => {
    const { columns, shared, efficiency } = width;
    const all = columns + shared;
    const tiles = groups * Math.ceil(outputs / rows) * Math.ceil(wide / all);
    const read = tiles * steps * 2 * stepPositions * (rows + all);
    // The cache holds everything twice, once for each half of the processors.
    const again = Math.max(0, 1 - l2 / 2 / bytes) * Math.max(0, read - bytes);
    const work: Work = {
      ...{ columns, shared, tiles, steps, processors, tileBytes: 4 * rows * all },
      step: (2 * stepPositions * 2 * threadRows * all * processors) / (products.half * efficiency),
      together: (bytes + driftingPart * again) / gmemBytes,
      apart: (bytes + again) / gmemBytes,
    };
    const deals = [wholly(work), byTiles(work) ?? [], evenly(work) ?? []].flat();
    return { width, ...deals.reduce((best, each) => (each.seconds < best.seconds ? each : best)) };
  };
  // Runs are shared only where all of them come out even.
  const { width, assignment } = widths
    .filter(
      (each) => each.shared === 0 || wide % (sharersOf(each) * (each.columns + each.shared)) === 0,
    )
    .map(judge)
    .reduce((best, each) => (each.seconds < best.seconds ? each : best));
  const { columns, shared } = width;
  const stepBytes = 2 * stepPositions * (rows + columns + shared);
  const room = Math.floor((target.sharedMemoryPerBlock - 2048) / stepBytes);
  const stages = Math.max(2, Math.min(8, room));
  const isWhole = assignment.partials === 1;
  return {
    configuration: { kernel: "tma", box, consumers, columns, shared, isWhole, stages },
    assignment,
  };
}
