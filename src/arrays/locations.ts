/** Locations of recorded ops, which hold on to stacks until somebody has asked for their positions. */
import type { GraphRegion } from "../graph/ops/node.ts";
import { opsWithin } from "../graph/ops/traverse.ts";
import { settledLocation } from "../support/location.ts";

/** Looks the positions up. */
export function settleLocations(graph: GraphRegion): void {
  for (const { location } of opsWithin(graph)) settledLocation(location);
}
