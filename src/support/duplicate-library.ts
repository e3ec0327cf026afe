/**
 * Objects of another copy of the library. A program may hold two, one below each of two packages or one
 * in a bundle, and what one made means nothing to the other: formats are compared by identity, and a trace is
 * known to its own copy alone. Each copy marks what it makes under a symbol that all copies share, so that
 * such an object is told from one that is no object of tilewright at all.
 *
 *   copy A: kernel(…)  ──▶  copy B: device.run(…)      TW0008: … was made by another copy of tilewright
 *
 * Only what is refused is looked at: an object that a copy takes is its own.
 */
import { TilewrightError } from "./diagnostics.ts";
import type { Location } from "./location.ts";

/** Where an object says which copy made it. */
export const madeBy: unique symbol = Symbol.for("tilewright.madeBy") as never;

/** What this copy's objects say. */
export const thisCopy: object = Object.freeze({});

/** Refuses an object of another copy; `what` names its role, such as "the kernel". */
export function refuseForeign(what: string, item: unknown, location?: Location): void {
  if (typeof item !== "object" || item === null || !(madeBy in item)) return;
  if (item[madeBy] === thisCopy) return;
  throw new TilewrightError({
    code: "TW0008",
    message: `${what} was made by another copy of tilewright`,
    location,
    expected: "an object of the copy whose function is called",
    found: "an object of another copy in the same program",
  });
}
