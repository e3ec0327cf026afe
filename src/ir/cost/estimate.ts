/**
 * The time of a launch from what it takes (`work.ts`): that of the resource which is busy longest, as far as so many blocks can keep it busy.
 *
 *   24 blocks of a product         24 of 132 processors multiply
 *   1 block that waits 3,900 times 3,900 × the latency of memory, while everything else is idle
 */
import type { Target } from "../../targets/target.ts";
import { productFormats } from "./cost.ts";
import { reached } from "./roofline.ts";
import type { Rates } from "./roofline.ts";
import type { LaunchWork } from "./work.ts";

/** What bounds a launch. */
export type Bound =
  | "memory"
  | "cache"
  | "shared"
  | "instructions"
  | "special"
  | "products"
  | "atomics"
  | "latency"
  | "launch";

export interface LaunchEstimate {
  readonly seconds: number;
  /** What takes longest of it. */
  readonly bound: Bound;
  /** Seconds that each takes by itself, the launch besides. */
  readonly parts: { readonly [B in Bound]: number };
}

/** Blocks that a processor holds at once. */
function residentBlocks(work: LaunchWork, target: Target): number {
  const { lanes, sharedBytes, registers } = work;
  const byRegisters = Math.floor(65536 / (Math.max(32, registers) * lanes));
  const byShared =
    sharedBytes === 0
      ? Infinity
      : Math.floor(target.sharedMemoryPerProcessor / (sharedBytes + 1024));
  const byLanes = Math.floor(target.threadsPerProcessor / lanes);
  return Math.max(
    1,
    work.resident ?? 1,
    Math.min(byRegisters, byShared, byLanes, target.blocksPerProcessor),
  );
}

/** What memory gives and takes: arrays that the cache holds once for each way, others as often as they are moved. */
function memoryBytes(
  work: LaunchWork,
  cache: number,
): { readonly memory: number; readonly cached: number } {
  let [memory, cached] = [0, 0];
  for (const { bytes, read, written } of work.arrays.values()) {
    cached += read + written;
    // What blocks at work at a time read again is still in the cache; a larger array may have left it by then.
    const again = bytes <= cache ? 0 : 0.1;
    for (const moved of [read, written])
      memory += Math.min(moved, bytes) + again * Math.max(0, moved - bytes);
  }
  return { memory, cached };
}

export function launchEstimate(work: LaunchWork, target: Target, rates: Rates): LaunchEstimate {
  const { blocks } = work;
  const { processors } = target;
  const rounds = Math.max(1, Math.ceil(blocks / processors));
  // Blocks are dealt to processors whole: of 200 some have two, and all wait for these.
  const busy = blocks / (processors * rounds);
  const active = Math.min(1, blocks / processors);
  const { memory, cached } = memoryBytes(work, rates.l2);
  const reading = Math.min(
    1,
    (active * processors * reached.bytesOfProcessor * rates.clock) / rates.gmemBytes,
  );
  const resident = residentBlocks(work, target);
  const waves = blocks / (processors * resident);
  const clocks = waves <= 1 ? work.clocks.most : work.clocks.mean * waves;
  const products = productFormats.reduce(
    (sum, format) =>
      sum + work.products[format] / (rates.products[format] * reached.products[format]),
    0,
  );
  const parts = {
    memory: memory / (rates.gmemBytes * reached.gmemBytes * reading),
    cache: cached / (rates.gmemBytes * reached.cacheBytes * reading),
    shared: work.sharedTraffic / (rates.smemBytes * reached.sharedBytes * busy),
    instructions: work.instructions / (processors * reached.laneInstructions * rates.clock * busy),
    special: work.special / (rates.transcendentals * busy),
    products: products / busy,
    atomics: work.atomics / reached.atomics,
    latency: Math.max(0, clocks / rates.clock - reached.firstLoad),
    launch: reached.launch,
  };
  let bound: Bound = "launch";
  let longest = 0;
  for (const each of bounds)
    if (each !== "launch" && parts[each] > longest) [bound, longest] = [each, parts[each]];
  if (longest < reached.launch) bound = "launch";
  return { seconds: reached.launch + longest, bound, parts };
}

const bounds = [
  ...(["memory", "cache", "shared", "instructions", "special"] as const),
  ...(["products", "atomics", "latency", "launch"] as const),
];
