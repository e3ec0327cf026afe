/** What a launch on the CPU that did not come to its end is told as. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { LimitWatch } from "../../support/run-limits.ts";
import type { Location } from "../../support/location.ts";
import type { RangeFailure } from "../pool/range-pool.ts";

/** Throws where a limit has been reached by `blocks` blocks of what runs, which count as its steps. */
export function stoppedAt(watch: LimitWatch, blocks: number, what: string): void {
  const reached = watch.reached(blocks);
  if (reached === undefined) return;
  throw new TilewrightError({
    code: "TW3022",
    ...reached,
    notes: [{ message: `${what} had run ${blocks} blocks` }],
  });
}

/** What a trap or the end of a thread is told as; codes of a kernel are its own. */
export function brokenOff(
  failure: Exclude<RangeFailure, { readonly kind: "code" }>,
  kernel: string,
  location: Location,
): TilewrightError {
  if (failure.kind === "lost")
    return new TilewrightError({
      code: "TW4704",
      message: `a thread ended while it ran blocks of ${kernel}`,
      location,
      expected: "threads that live as long as their device",
      found: "one that has ended",
    });
  return new TilewrightError({
    code: "TW4702",
    message: `kernel ${kernel} stopped in or behind block ${failure.block}: ${failure.text}`,
    location,
    expected: "accesses within the memory of the device",
    found: failure.text,
  });
}
