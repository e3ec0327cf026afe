/** All that can be said of a compiled kernel's speed before it is assembled. */
import type { Placement } from "../../layout/plan/place.ts";
import type { PtxModule } from "../module.ts";
import { emittedAccesses } from "./emitted-accesses.ts";
import type { PerformanceNote } from "./note.ts";
import { placementNotes } from "./placement-notes.ts";
import { renewedFactorNotes } from "./renewed-factors.ts";

export function performanceNotes(
  placement: Placement,
  module: PtxModule,
): readonly PerformanceNote[] {
  return [...placementNotes(placement, emittedAccesses(module)), ...renewedFactorNotes(module)];
}
