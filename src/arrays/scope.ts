/**
 * Scopes of device memory: what was computed within and is not returned is given back at its end.
 *
 *   const w = scope(() => step(step(w0)));       the first step's result goes, the second's stays
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { onDevice } from "./array.ts";
import { chosenDevice, disposeValue, isHeld, tracked } from "./device.ts";
import { flatten } from "./tree.ts";

export function scope<R>(body: () => R): R {
  const { result, made } = tracked(body);
  if (result instanceof Promise)
    throw new TilewrightError({
      code: "TW9309",
      message: "scope was given a function that is asynchronous",
      expected: "a function that returns arrays",
      found: "a promise",
    });
  const returned = flatten(result).leaves.map(({ value }) => value);
  // What is returned and not computed yet needs what is about to go.
  const device = chosenDevice();
  const pending = returned.filter((value) => !isHeld(value));
  const kept = new Set(returned);
  if (device !== undefined && pending.length > 0) {
    const { made: computed } = tracked(() => onDevice(device, pending));
    for (const value of computed) if (!kept.has(value)) disposeValue(value);
  }
  for (const value of made) if (!kept.has(value)) disposeValue(value);
  return result;
}
