/**
 * Scopes of device memory: what was computed within and is not returned is given back at its end.
 *
 *   const w = scope(() => step(step(w0)));       the first step's result goes, the second's stays
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { compute, disposeValues, isPending, onDevice, placeFor } from "./array.ts";
import { tracked } from "./device.ts";
import { requireUsable } from "./use-after-dispose.ts";
import { isRecording } from "./trace-function.ts";
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
  for (const value of returned) requireUsable(value);
  // A function that is being recorded computes nothing.
  if (isRecording()) return result;
  // What is returned and not computed yet needs what is about to go.
  const pending = returned.filter(isPending);
  const place = placeFor(pending);
  const { made: late } = tracked(() =>
    place === undefined ? compute(pending) : onDevice(place, pending),
  );
  const kept = new Set(returned);
  disposeValues([...made, ...late].filter((value) => !kept.has(value)));
  return result;
}
