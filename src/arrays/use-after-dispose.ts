/**
 * Use after dispose: arrays that were disposed of, or donated to a call. Every use is refused by the same report,
 * also where its data happens to be on the host. What was asked for before goes on:
 *
 *   const reading = y.read();  y.dispose();  await reading      gives y's data
 *   y.dispose();  add(y, 1)                                      TW9314, as are y.read(), f(y) and donating y
 *   const z = add(y, 1);  y.dispose();  await z.read()          TW9314: z was not computed, and needs y's memory
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import type { GraphValue } from "../graph/ops/node.ts";

interface Gone {
  readonly how: "disposed of" | "donated";
  readonly location: Location;
}

const gone = new WeakMap<GraphValue, Gone>();

export function isUnusable(value: GraphValue): boolean {
  return gone.has(value);
}

/** Refuses values from now on. To do it twice changes nothing. */
export function markUnusable(values: readonly GraphValue[], how: Gone["how"]): void {
  if (values.length === 0) return;
  const mark = { how, location: captureLocation() };
  for (const value of values) if (!gone.has(value)) gone.set(value, mark);
}

/** Fails for a value that is gone; `isPending` where one that was recorded from it needs it. */
export function requireUsable(value: GraphValue, isPending = false): void {
  const found = gone.get(value);
  if (found === undefined) return;
  const { how, location } = found;
  throw new TilewrightError({
    code: "TW9314",
    message: isPending
      ? `an array that is still to be computed needs one that was ${how}`
      : `an array was used after it was ${how}`,
    expected: "an array that still has its memory",
    found: how === "donated" ? "an array that a call was given" : "a disposed array",
    notes: [{ message: `it was ${how} here`, location }],
  });
}
