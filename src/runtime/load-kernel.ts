/** `loadKernel()`: a kernel that was compiled ahead of time, from its files. */
import type { Signature } from "../lang/index.ts";
import { kernelFromCompiled } from "../ptx/compiled-kernel.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";

/**
 * Reads what `tilewright compile --emit ptx` or `--emit cubin` wrote: the manifest at `path`, a .json file,
 * and the code beside it. A type argument says what the kernel was.
 *
 * ```ts
 * const axpy = await loadKernel<typeof import("./axpy.ts").axpy>("kernels/axpy.sm_90a.ptx.json");
 * const { out } = await device.run(axpy, { x, y, alpha: 2 });
 * ```
 */
export async function loadKernel<K extends Signature = Signature>(
  path: string,
): Promise<CompiledKernel<K["inputs"], K["outputs"], K["inouts"]>> {
  const location = captureLocation();
  try {
    // Behind the one module that a browser has a stand-in for.
    const { readCompiled } = await import("../cuda/open.ts");
    const { manifest, code } = await readCompiled(path);
    return kernelFromCompiled<K>(manifest, code);
  } catch (error) {
    throw error instanceof TilewrightError ? error.located(location) : error;
  }
}
