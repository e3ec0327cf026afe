/** How many elements a block draws. */
import { lanes } from "../support/sizes.ts";

/** Elements that a lane draws, where there are enough for all processors, and elsewhere. */
const [mostPerLane, leastPerLane] = [16, 4];

export function spanFor(count: number, processors: number): number {
  let each = mostPerLane;
  while (each > leastPerLane && count / (each * lanes) < 2 * processors) each /= 2;
  return each * lanes;
}
