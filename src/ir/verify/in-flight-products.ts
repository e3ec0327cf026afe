/**
 * Verifies that a wait which leaves products running gives the tile of an accumulator that none of them writes:
 * at least as many must have been started since the accumulator's own last one.
 *
 *   %1 = wgmma %0, …
 *   %3 = wgmma %2, …
 *   %4 = wgmma_wait %1 {pending = 1, gives = tile}      %3 may run on
 *   %5 = wgmma_wait %3 {pending = 1, gives = tile}      rejected: %3 itself may
 */
import { followInFlightProducts, over } from "../in-flight-products.ts";
import type { Kernel } from "../node.ts";
import { reject } from "./report.ts";

export function verifyInFlightProducts({ body }: Kernel): void {
  followInFlightProducts(body, {
    lands(op, count) {
      if (count === over) return;
      const { pending } = op.attributes;
      reject(op, "TW2222", "the tile may still be written: its own product need not be over", {
        expected: `at least ${pending} products started after the last one of this accumulator`,
        found: `${count} on some way here`,
        remedy:
          count === 0 ? "wait() waits for all" : `wait({ pending: ${count} }) waits for its own`,
      });
    },
  });
}
