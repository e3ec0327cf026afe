/**
 * Opening a GPU: the driver's library, a context, and the cache of compiled kernels; and reading kernels
 * from files. In a browser `browser.ts` stands in for this file, so that nothing here is bundled there.
 */
import process from "node:process";
import { lowerWithNotes } from "../lower/pipeline.ts";
import { CudaBackend } from "./backend.ts";
import type { CudaOptions } from "./backend.ts";
import { compilerFingerprint } from "./cache/fingerprint.ts";
import { KernelCache } from "./cache/kernel-cache.ts";
import { cacheSettings } from "./cache/settings.ts";
import { FileStore } from "./cache/store.ts";
import { kernelLoader } from "./compiler.ts";
import { CudaContext } from "./context.ts";
import type { Driver } from "./driver.ts";
import { DriverFiles } from "./driver-files.ts";
import { loadDriver } from "./native.ts";
import { startAhead } from "./start.ts";

export { compileAside } from "./compile-aside.ts";
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

export async function openGpu(options: GpuOptions = {}): Promise<CudaBackend> {
  const found = await processDriver();
  // In a checkout, finding out which compiler this is takes a look at all of its files.
  let known: KernelCache | undefined;
  const cache = (): KernelCache => (known ??= processCache());
  const start = (): Promise<() => void> => startAhead(found, options.gpu ?? 0, cache);
  const letGo = await (cacheSettings().folder === undefined ? start() : driverFiles.during(start));
  try {
    return openOn(found, options, cache());
  } finally {
    letGo();
  }
}

/** A back end on a GPU of the given driver. */
function openOn(
  driver: Driver,
  { gpu = 0, ...options }: GpuOptions = {},
  cache = processCache(),
): CudaBackend {
  const backend = backendOn(new CudaContext(driver, gpu), cache, options);
  try {
    backend.prepareMemory();
    return backend;
  } catch (error) {
    backend.dispose();
    throw error;
  }
}

function backendOn(context: CudaContext, cache: KernelCache, options: CudaOptions): CudaBackend {
  try {
    const loader = kernelLoader(lowerWithNotes, cache, (ptx) => driverFiles.take(ptx));
    return new CudaBackend(context, loader, options);
  } catch (error) {
    context.dispose();
    throw error;
  }
}

/** The cache that this process's settings name. */
function processCache(): KernelCache {
  const { folder, limitBytes } = cacheSettings();
  const store = folder === undefined ? undefined : new FileStore(folder, limitBytes);
  return new KernelCache(store, compilerFingerprint(import.meta.url));
}
