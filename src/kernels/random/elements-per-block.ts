/**
 * Random elements that a block draws. With enough for all processors, threads draw many each, which amortizes the work per block on the key and the
 * upper words of the counter; with fewer, blocks are smaller.
 */
import { threadsPerBlock } from "../support/sizes.ts";

const leastPerThread = 4;

/** Elements of a block, where a thread draws so many at most. */
export function elementsPerBlock(count: number, processors: number, mostPerThread: number): number {
  let each = mostPerThread;
  while (each > leastPerThread && count / (each * threadsPerBlock) < 2 * processors) each /= 2;
  return each * threadsPerBlock;
}
