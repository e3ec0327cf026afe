/**
 * Opening a GPU: the driver's library, and what is made of it (`opening.ts`); and reading kernels from files. The driver takes a
 * while to start, so that it is asked to before most of the back end is loaded. In a browser `browser.ts` stands in for this file, so
 * that nothing here is bundled there.
 *
 *   library of the driver ──▶ driver starts, opens a context ──────────────────────────────┐
 *                        └──▶ back end is loaded ──▶ pieces of the compiler's warm-up ─────┴──▶ device
 */
import process from "node:process";
import type { CudaBackend, CudaOptions } from "./backend.ts";
import { cacheSettings } from "./cache/settings.ts";
import type { Driver } from "./driver.ts";
import { DriverFiles } from "./driver-files.ts";
import { loadDriver } from "./native.ts";
import type { Opening } from "./opening.ts";
import { startAhead } from "./start.ts";

export { warnOfFallback } from "./fallback-notice.ts";
export { compileInBackground } from "./background-compile.ts";
export { readCompiled } from "./compiled-files.ts";
export { appendTuning, namedTuning, readTuning, replaceTuning } from "./tuning-files.ts";

export interface GpuOptions extends CudaOptions {
  /** The number of the GPU, in the driver's order; 0 unless given. */
  readonly gpu?: number;
}

let driver: Promise<Driver> | undefined;
const driverFiles = new DriverFiles();

/** The driver of this process, loaded when it is first asked for. */
export function processDriver(): Promise<Driver> {
  driver ??= loadDriver({ platform: process.platform, architecture: process.arch });
  // A driver that was not there may be there next time.
  driver.catch(() => (driver = undefined));
  return driver;
}

export async function openGpu({ gpu = 0, ...options }: GpuOptions = {}): Promise<CudaBackend> {
  const found = await processDriver();
  let loading: Promise<Opening> | undefined;
  const load = (): Promise<Opening> => (loading ??= loadOpening());
  const start = (): Promise<() => void> =>
    startAhead(found, gpu, async () => (await load()).warmUp);
  const letGo = await (cacheSettings().folder === undefined ? start() : driverFiles.during(start));
  try {
    const opening = await load();
    return opening.openOn(found, gpu, options, (ptx) => driverFiles.take(ptx));
  } finally {
    letGo();
  }
}

async function loadOpening(): Promise<Opening> {
  const { opening } = await import("./opening.ts");
  return opening();
}
