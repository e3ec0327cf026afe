/**
 * Opening a context takes the driver some hundred milliseconds. They pass on another thread, and this one
 * uses them to load the back end and to run the compiler on small kernels (`warm-up.ts`), so that the first kernel of the program
 * finds its code loaded and compiled by the JavaScript engine.
 *
 *   other thread   cuInit ────────────────┐ cuDevicePrimaryCtxRetain ──────┐
 *   this thread    pieces of work ────────┴─ further pieces until it ends ─┘  the rest of opening
 */
import { setImmediate } from "node:timers/promises";
import { dataView } from "./driver.ts";
import type { Driver } from "./driver.ts";
import { success } from "./results.ts";

/**
 * Has the driver open the context of a GPU, and gives what lets go of it again. What goes wrong is left to
 * whoever opens the GPU next, who asks the same and reports it.
 */
export async function startAhead(
  driver: Driver,
  ordinal: number,
  loadWork: () => Promise<Iterator<void>>,
): Promise<() => void> {
  const retained = retainAhead(driver, ordinal);
  try {
    return await workUntil(retained, loadWork);
  } catch (error) {
    (await retained)();
    throw error;
  }
}

async function retainAhead(driver: Driver, ordinal: number): Promise<() => void> {
  if ((await driver.callAside("cuInit", 0)) !== success) return () => undefined;
  const memory = driver.allocateHost(16);
  try {
    if (driver.calls.cuDeviceGet(memory.address, ordinal) !== success) return () => undefined;
    const device = dataView(memory).getInt32(0, true);
    const result = await driver.callAside("cuDevicePrimaryCtxRetain", memory.address + 8, device);
    if (result !== success) return () => undefined;
    return () => driver.calls.cuDevicePrimaryCtxRelease(device);
  } finally {
    driver.freeHost(memory);
  }
}

/**
 * What is waited for; until it is there, pieces of work are done. Between two of them this thread hears what others have ended, or that
 * it failed.
 */
async function workUntil<T>(
  waitedFor: Promise<T>,
  loadWork: () => Promise<Iterator<void>>,
): Promise<T> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  waitedFor.then(end, end);
  const work = await loadWork();
  do await setImmediate();
  while (!isOver && work.next().done !== true);
  return waitedFor;
}
