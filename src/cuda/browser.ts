/** What stands in for `open.ts` in a browser, where there are neither a driver nor files. */
import { TilewrightError } from "../support/diagnostics.ts";

export function openGpu(): Promise<never> {
  return Promise.reject(
    new TilewrightError({
      code: "TW4501",
      message: "a browser has no NVIDIA driver",
      expected: "Node on Linux or Windows",
      found: "a browser",
    }),
  );
}

export function readCompiled(path: string): Promise<never> {
  return Promise.reject(
    new TilewrightError({
      code: "TW4022",
      message: `a browser cannot read ${path}`,
      expected: "kernelFromCompiled(manifest, code), with what was fetched",
      found: "a browser",
    }),
  );
}
