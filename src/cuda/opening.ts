/**
 * What opening a GPU takes beyond the driver: a back end with its context, its memory and the cache of compiled kernels, and the
 * compiler's warm-up. It is most of this folder, and is loaded while the driver starts.
 */
import { lowerWithNotes } from "../lower/stages.ts";
import { CudaBackend } from "./backend.ts";
import type { CudaOptions } from "./backend.ts";
import { compilerFingerprint } from "./cache/fingerprint.ts";
import { KernelCache } from "./cache/kernel-cache.ts";
import { cacheSettings } from "./cache/settings.ts";
import { FileStore } from "./cache/store.ts";
import { kernelLoader } from "./compiler.ts";
import type { KernelLoader, TakeMachineCode } from "./compiler.ts";
import { CudaContext } from "./context.ts";
import type { Driver } from "./driver.ts";
import { warmUp } from "./warm-up.ts";

export interface Opening {
  /** Pieces of work for the time until the driver has opened a context. */
  readonly warmUp: Iterator<void>;
  /** A back end on a GPU of the given driver. */
  openOn(
    driver: Driver,
    gpu: number,
    options: CudaOptions,
    takeMachineCode: TakeMachineCode,
  ): CudaBackend;
}

/** Both parts of it use one cache: in a checkout, finding out which compiler this is takes a look at all of its files. */
export function opening(): Opening {
  let known: KernelCache | undefined;
  const cache = (): KernelCache => (known ??= processCache());
  return {
    warmUp: warmUp(cache),
    openOn: (driver, gpu, options, takeMachineCode) => {
      const loader = kernelLoader(lowerWithNotes, cache(), takeMachineCode);
      const backend = backendOn(new CudaContext(driver, gpu), loader, options);
      try {
        backend.prepareMemory();
        return backend;
      } catch (error) {
        backend.dispose();
        throw error;
      }
    },
  };
}

function backendOn(context: CudaContext, loader: KernelLoader, options: CudaOptions): CudaBackend {
  try {
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
