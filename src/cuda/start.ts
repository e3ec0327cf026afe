/**
 * Opening a context takes the driver some hundred milliseconds. They pass on another thread, and this one
 * uses them to run the compiler on small kernels (`warm-up.ts`), so that the first kernel of the program finds its
 * code loaded and compiled by the JavaScript engine.
 *
 *   other thread   cuInit ──────────────────────┐  cuDevicePrimaryCtxRetain ────┐
 *   this thread    pieces of work until it ends ┘  further pieces until it ends ┘  the rest of opening
 */
import { setImmediate } from "node:timers/promises";
import type { KernelCache } from "./cache/kernel-cache.ts";
import { dataView } from "./driver.ts";
import type { Driver } from "./driver.ts";
import { success } from "./results.ts";
import { warmUp } from "./warm-up.ts";

/**
 * Has the driver open the context of a GPU, and gives what lets go of it again. What goes wrong is left to
 * whoever opens the GPU next, who asks the same and reports it.
 */
export async function startAhead(
  driver: Driver,
  ordinal: number,
  cache: () => KernelCache,
): Promise<() => void> {
  const started = driver.callAside("cuInit", 0);
  const work = warmUp(cache);
  if ((await workUntil(started, work)) !== success) return () => undefined;
  const memory = driver.allocateHost(16);
  try {
    if (driver.calls.cuDeviceGet(memory.address, ordinal) !== success) return () => undefined;
    const device = dataView(memory).getInt32(0, true);
    const retained = driver.callAside("cuDevicePrimaryCtxRetain", memory.address + 8, device);
    if ((await workUntil(retained, work)) !== success) return () => undefined;
    return () => driver.calls.cuDevicePrimaryCtxRelease(device);
  } finally {
    driver.freeHost(memory);
  }
}

/** What is waited for; until it is there, pieces of work are done. */
async function workUntil<T>(waitedFor: Promise<T>, work: Iterator<void>): Promise<T> {
  let isThere = false;
  const settled = waitedFor.finally(() => (isThere = true));
  while (!isThere && work.next().done !== true) await setImmediate();
  return settled;
}
