/**
 * How many elements a block draws. Where there are enough for all processors, threads draw so many that what is the same for all of a block, its key and the
 * upper words of its counter, is little beside them; with fewer, blocks are smaller.
 */
import { threadsPerBlock } from "../support/sizes.ts";

const leastPerLane = 4;

/** Elements of a block, where a thread draws so many at most. */
export function spanFor(count: number, processors: number, mostPerLane: number): number {
  let each = mostPerLane;
  while (each > leastPerLane && count / (each * threadsPerBlock) < 2 * processors) each /= 2;
  return each * threadsPerBlock;
}
